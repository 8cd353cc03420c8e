//! Two captures of one path: which packet of the first is which of the second, what was lost between them, how long
//! packets took, and what the path rewrote.
//!
//! | start here | for |
//! |---|---|
//! | [`Sight`] | a packet at one point |
//! | [`Align`] | finding packets that both captures share |
//! | [`Matcher`], [`Config`] | matching all packets |
//! | [`Findings`] | the result |
//! | [`Times`], [`Clock`] | clocks and delays |
//!
//! Packets come from the caller in the order that [`Matcher::next`] asks for; the memory needed grows with the packets
//! that wait for their counterpart, not with the captures. The crate does no I/O, reads no clock and draws no random
//! numbers.
//!
//! RFC 9293 (TCP), RFC 7323 (time stamps), RFC 2018 and 2883 (SACK, D-SACK), RFC 2679 and RFC 3393 (one-way delay and its
//! variation), RFC 4737 (reordering). Left out: fragments after the first; IP packets inside ICMP errors; a new initial
//! sequence number that a firewall chooses for a second connection with the same addresses and ports.
#![forbid(unsafe_code)]

mod align;
mod clock;
mod findings;
mod matcher;
mod packet;
mod prints;
mod track;

pub use align::{Align, Aligned, Best, HEAD, TELL_AFTER};
pub use clock::{Clock, Delay, Piece, Step, Times, Way};
pub use findings::{
    AtPoint, Change, Changed, Field, Findings, Lost, MAPPINGS_MAX, Mapping, OneWay, Pair, Rewrites,
    Sink,
};
pub use matcher::{Config, Matcher};
pub use packet::{DEPTH, FlowKey, Point, Sight};
pub use track::Counted;
