//! PPP over Ethernet, access concentrator and host, as a machine without I/O.
//!
//! Read RFC 2516, and RFC 4638 for payloads over 1,492 bytes; `docs/rfc/` lists the code for each section. [`Endpoint`]
//! is the machine: frames and time go in, frames and [`Event`]s come out. `examples/pair.rs` is the smallest program
//! around it.
//!
//! Ethernet's header and VLAN tags belong to the owner: a [`Route`] stands for them. The owner also handles the PPP
//! frames: [`Endpoint::receive_data`] returns a frame's session, [`Endpoint::header`] the header of a frame to send.
//!
//! Left out: the relay of Discovery packets, and credit flow and quality metrics (RFC 5578).
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod blacklist;
mod bucket;
mod config;
mod cookie;
mod counters;
mod discard;
mod endpoint;
mod event;
mod ids;
mod outbox;
mod random;
mod route;
mod session;

pub use config::{Config, ConfigFault, DelayStep, Limits, MacPrefix, OverLimit, PortConfig};
pub use counters::Counters;
pub use discard::Discard;
pub use endpoint::{Dial, DialError, Endpoint};
pub use event::{EndReason, Event, Place, Refusal};
pub use route::{Frame, Route};
pub use session::{Phase, Role, SessionKey, SessionView};
pub use wire::pppoe::{LineInfo, Mac, Vlans};
