//! Ping experiments without I/O: the schedule of each stream, the fate of each packet, and statistics of both.
//!
//! A [`Plan`] lists streams: destination, traffic class, size, protocol and interval of each. An [`Experiment`] runs
//! it for the owner of the sockets. It returns the packets that are due, takes the kernel's time stamps and the
//! replies, and records every packet as waiting, replied, late, lost or not sent. The result is an [`Outcome`], which
//! [`file`](mod@file) writes and reads as JSON. Start with [`Experiment`].
//!
//! | module | what it is |
//! |---|---|
//! | [`plan`] | streams and their limits |
//! | [`experiment`], `stream` | the schedule, and the account of each packet |
//! | [`sample`] | what is kept of a packet |
//! | [`statistics`], [`histogram`], [`oneway`] | what that amounts to: as ping computes it, percentiles, each direction |
//! | [`probe`], [`responder`] | what is in our packets, and who answers those over UDP |
//! | [`load`] | the load service beside the responder: its messages, and who may load |
//! | [`outcome`], [`mod@file`], [`text`] | results as a value, as a file, as ping's text and CSV |
//!
//! Sources: RFC 792 and RFC 4443 (echo), RFC 2681 (round-trip delay), RFC 5481 (delay variation), RFC 3550 6.4.1
//! (jitter), and what ping of iputils prints. Left out: STAMP (RFC 8762) and OWAMP (RFC 4656), for whose reflectors
//! the UDP probes would need another format; time stamps in ICMP (RFC 792).
#![forbid(unsafe_code)]

pub mod experiment;
pub mod file;
pub mod histogram;
pub mod load;
pub mod oneway;
pub mod outcome;
pub mod plan;
pub mod probe;
pub mod responder;
pub mod sample;
pub mod statistics;
mod stream;
pub mod text;

pub use experiment::{Accepted, Due, Experiment, Ignored, Live, Reply, Sequence};
pub use outcome::{Outcome, Row, StreamOutcome, Summary};
pub use plan::{Plan, PlanError, Protocol, StreamPlan};
pub use sample::{OneWay, Sample, State};
