//! What every other crate stands on: time as a value, the shape of a protocol
//! machine, limits, secrets that do not print, and the timer stores.
//!
//! Nothing here reads a clock, opens a descriptor or starts a thread.
#![forbid(unsafe_code)]

pub mod machine;
pub mod redacted;
pub mod time;
pub mod timer;

pub use machine::{Datagram, Machine, Route};
pub use redacted::Redacted;
pub use time::{Duration, Instant};
