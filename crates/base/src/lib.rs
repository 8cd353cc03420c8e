//! What every other crate stands on: time as a value, the shape of a protocol
//! machine, stores for values and ids, secrets that do not print, the word that was
//! meant, and the timer stores.
//!
//! Nothing here reads a clock, opens a descriptor or starts a thread.
#![forbid(unsafe_code)]

pub mod first_free;
pub mod machine;
mod nearest;
pub mod redacted;
pub mod slab;
pub mod time;
pub mod timer;

pub use first_free::FirstFree;
pub use machine::{Datagram, Machine, Route};
pub use nearest::nearest;
pub use redacted::Redacted;
pub use slab::Slab;
pub use time::{Duration, Instant};
