//! TCP connections in captures, with the statistics of `tcptrace -l -r -W` and more.
//!
//! ```
//! # fn main() -> Result<(), trace::Error> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/interop-trace/conn-size.pcap.gz");
//! let captures = trace::Captures::open([path], trace::Options::default());
//! let found = captures.read()?;
//! for connection in found.connections() {
//!     let connection = connection?;
//!     let ((a, a_port), (b, b_port)) = (connection.a_end(), connection.b_end());
//!     println!("{a}:{a_port} - {b}:{b_port}: {} packets", connection.packets);
//!     if connection.a.rtt.count > 0 {
//!         println!("  shortest round trip: {} ns", connection.a.rtt.min);
//!     }
//! }
//! println!("{} IP packets", found.summary().packets);
//! # assert!(found.len() > 0 && found.is_good());
//! # Ok(())
//! # }
//! ```
//!
//! | start here | for |
//! |---|---|
//! | [`Captures`], [`Options`] | analysing capture files; the results are [`Findings`] |
//! | [`Connection`], [`Direction`] | the statistics of a connection |
//! | [`columns`], [`json`] | the same as a table with named, typed columns, and as JSON lines |
//! | [`Watch`] | seeing each packet, and connections as they finish |
//! | [`details`] | what else a connection's packets show, if asked for |
//! | [`text`], [`graph`], [`xplot`] | reports and graphs, as tcptrace's |
//! | [`part`] | one capture analysed by several machines |
//! | [`spread`] | the same, where each machine reads a range of the capture only |
//! | [`Analyzer`] | analysing packets that are not in a file |
//!
//! [`Analyzer`] takes packets as [`Segment`]s in the order of the capture. The time for each packet depends neither on
//! the length of its connection nor on the number of connections.
//!
//! [`capture`] and [`part`] read and write files, and [`capture`] starts threads and seeds hashes. The rest of the crate
//! does no I/O and reads no clock.
//!
//! RFC 9293 (TCP), RFC 7323 (window scale, time stamps), RFC 2018 and 2883 (SACK, D-SACK), RFC 3168 (ECN). tcptrace's
//! manual defines each statistic.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
extern crate self as trace;

mod analyzer;
pub mod capture;
mod clock;
pub mod columns;
mod connection;
mod copies;
pub mod details;
mod direction;
mod frozen;
pub mod graph;
pub mod json;
mod key;
pub mod part;
mod prints;
pub mod quic;
mod receive;
mod records;
mod rtt;
mod segment;
pub mod segments;
mod span;
pub mod spread;
pub mod text;
pub mod udp;
mod verdict;
pub mod why;
pub mod xplot;

pub use analyzer::{Analyzer, Config, Finished, IDLE, IDLE_CLOSED, Limits};
pub use capture::{Captures, Connections, Error, FileReport, Findings, Options};
pub use clock::Clock;
pub use columns::Summary;
pub use connection::Connection;
pub use direction::{Direction, Episodes, Owin, Rare, Windows};
pub use frozen::NotFrozen;
pub use key::FlowKey;
pub use records::plan::Plan;
pub use records::tally::PARTIAL_CHECKSUMS;
pub use records::watch::{Checksum, Seen, Watch};
pub use rtt::{Percentiles, Times};
pub use segment::{Segment, SegmentOptions};
pub use verdict::{AckKind, Nobody, Observer, Sample, Verdict};
