//! Tests `headend qos`: the commands of docs/qos.md, mistakes, queues of a real interface, and a shaper between two
//! hosts. Tests in namespaces need root or user namespaces, and fail without either.

mod apply;
mod apply_bpf;
mod apply_restore;
mod apply_six;
mod apply_watch;
mod explain;
mod files;
mod live;
mod run;
mod support;
