//! From packets to TCP connections and their statistics: the analyser behind `headend trace`.
//!
//! Packets go in as [`Segment`]s, in the order of the capture; [`Analyzer`] finds each one's connection and accounts
//! for it in a time that does not grow with the connection's length, nor with the connections there are. What comes
//! out are [`Connection`]s with the statistics of `tcptrace -l -r -W` and more, and one [`Verdict`] a packet for
//! whoever observes. There is no I/O here, no clock and no randomness.
//!
//! RFC 9293 (TCP), RFC 7323 (window scale, time stamps), RFC 2018 and 2883 (SACK, D-SACK), RFC 3168 (ECN). The meaning
//! of each statistic is that of tcptrace's manual.
#![forbid(unsafe_code)]

mod analyzer;
mod clock;
mod connection;
mod direction;
mod frozen;
pub mod graph;
mod key;
mod receive;
mod rtt;
mod segment;
pub mod segments;
pub mod text;
pub mod udp;
mod verdict;
pub mod xplot;

pub use analyzer::{Analyzer, Config, Finished, IDLE, IDLE_CLOSED, Limits};
pub use clock::Clock;
pub use connection::Connection;
pub use direction::{Direction, Episodes, Owin, Rare, Windows};
pub use frozen::NotFrozen;
pub use key::FlowKey;
pub use rtt::{Percentiles, Times};
pub use segment::{Segment, SegmentOptions};
pub use verdict::{AckKind, Nobody, Observer, Sample, Verdict};
