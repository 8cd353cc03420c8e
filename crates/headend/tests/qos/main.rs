//! `headend qos`: the commands of docs/qos.md, mistakes, queues of a real interface, and a shaper between two hosts.
//! What needs namespaces takes root, or leave to make them, and fails where there is neither.

mod files;
mod live;
mod run;
mod support;
