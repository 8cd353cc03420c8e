//! The kernel's queues as values: queueing disciplines, classes and filters of tc(8).
//!
//! | module | purpose |
//! |---|---|
//! | `object` | a [`Tree`] of [`Qdisc`]s, [`Class`]es and [`Filter`]s of one interface |
//! | `compile` | a policy becomes a tree, for what a kernel has ([`Abilities`]) |
//! | `change` | the [`Change`]s that turn one tree into another |
//! | `encode`, `decode` | objects as rtnetlink messages (rtnetlink(7), linux/pkt_sched.h, linux/pkt_cls.h), both ways |
//! | `raw` | options as bytes that the kernel accepts again |
//! | `text` | the `tc` line of a change |
//!
//! No I/O. Left out: the kernel's statistics. Start with
//! [`compile::compile`] and [`changes`].
#![forbid(unsafe_code)]

mod attributes;
mod change;
pub mod compile;
mod decode;
mod encode;
mod object;
mod raw;
mod text;

pub use change::{Change, changes};
pub use compile::{Abilities, Compiled, Refusal};
pub use decode::{Found, decode};
pub use encode::{Message, Verb};
pub use object::{
    Action, Bpf, Cake, Class, ClassKind, CodelKind, Filter, FilterKind, FlowKeys, Handle, Key,
    Object, Qdisc, QdiscKind, Speed, Tree, canonical_us,
};
pub use raw::Raw;
pub use text::line;
