//! Ping experiments without I/O: when each stream sends, what became of each packet, and what that amounts to.
//!
//! A [`Plan`] says what is sent: streams over destination, traffic class, size and protocol, each with an interval.
//! An [`Experiment`] carries it out for whoever has sockets: it says which packet is due, is told when the kernel sent
//! it and which replies came, and gives a full account of every packet: waiting, replied, replied late, lost, not
//! sent. What came out is an [`Outcome`], which [`file`](mod@file) writes and reads as JSON.
//!
//! | module | what it is |
//! |---|---|
//! | [`plan`] | streams and their limits |
//! | [`experiment`], `stream` | the schedule, and the account of each packet |
//! | [`sample`] | what is kept of a packet |
//! | [`statistics`], [`histogram`], [`oneway`] | what that amounts to: as ping computes it, percentiles, each direction |
//! | [`probe`], [`responder`] | what is in our packets, and who answers those over UDP |
//! | [`outcome`], [`mod@file`], [`text`] | results as a value, as a file, as ping's text and CSV |
//!
//! Sources: RFC 792 and RFC 4443 (echo), RFC 2681 (round-trip delay), RFC 5481 (delay variation), RFC 3550 6.4.1
//! (jitter), and what ping of iputils prints. Left out: STAMP (RFC 8762) and OWAMP (RFC 4656), for whose reflectors
//! the UDP probes would need another format; time stamps in ICMP (RFC 792).
#![forbid(unsafe_code)]

pub mod experiment;
pub mod file;
pub mod histogram;
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
