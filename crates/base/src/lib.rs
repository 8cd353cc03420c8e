//! Ground for every other crate: time as a value, the `Machine` trait, slabs and id sets, state written as bytes, a disk
//! as a trait, secrets that do not print, spelling suggestions, and timer stores.
//!
//! Nothing here reads a clock, opens a descriptor or starts a thread.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod disk;
pub mod first_free;
pub mod machine;
mod nearest;
pub mod ordered;
pub mod redacted;
pub mod slab;
pub mod snapshot;
pub mod time;
pub mod timer;

pub use disk::Disk;
pub use first_free::FirstFree;
pub use machine::{Datagram, Machine, Route};
pub use nearest::nearest;
pub use ordered::OrderedSet;
pub use redacted::Redacted;
pub use slab::Slab;
pub use time::{Duration, Instant};
