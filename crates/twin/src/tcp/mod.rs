//! TCP as values without I/O, counted in segments: a sender with SACK-based loss recovery, a receiver with delayed
//! ACKs, and congestion control.
//!
//! | file | what it has | sources |
//! |---|---|---|
//! | `sender` | scoreboard, loss detection, recovery, transmission | RFC 6675, 8985, 6937 |
//! | `timer` | round-trip estimate, time-out and probe | RFC 6298, 8985 7 |
//! | `control` | Reno and the choice of algorithm | RFC 5681 |
//! | `cubic` | CUBIC and HyStart | RFC 9438; HyStart with Linux's constants |
//! | `bbr` | a model of BBR version 1 | draft-cardwell-iccrg-bbr-congestion-control-00 |
//! | `receiver` | cumulative and selective ACKs | RFC 5681 4.2, 2018 |
//!
//! Left out: ECN, reordering, window updates that are lost, Nagle's algorithm.

mod bbr;
mod control;
mod cubic;
mod receiver;
mod sender;
mod timer;

pub use control::{Algorithm, Control};
pub use receiver::{Ack, Receiver};
pub use sender::{Sender, Setup, Transmit};
