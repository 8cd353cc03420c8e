//! A subagent of an SNMP agent by AgentX version 1 (RFC 2741), without I/O: it registers subtrees at a master agent and
//! answers the master's questions about them.
//!
//! | module | contents |
//! |---|---|
//! | `oid` | object identifiers |
//! | `pdu` | PDUs: decoding in both byte orders, encoding |
//! | `session` | opens, registers, pings, is asked, and opens again after a loss |
//!
//! Left out: sets (every one is refused with notWritable), notifications, index allocation, agent capabilities, and
//! shared index ranges (`range_subid`).
//!
//! Start with [`Session`]. The owner has the stream and the objects: it passes bytes and the time, takes one [`Question`]
//! after the other, and so decides how long it works on a request.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod oid;
pub mod pdu;
mod session;

pub use oid::{OID_IDS_MAX, Oid};
pub use session::{
    Answer, Config, Counts, Event, INPUT_MAX, Question, RESPONSE_MAX, Reason, Session, State,
};
