//! L2TP control connections and sessions, LAC and LNS, versions 2 and 3, as a
//! machine without I/O.
//!
//! Read RFC 2661 for version 2 and RFC 3931 for version 3; `docs/rfc/` lists
//! the code for each section. [`Endpoint`] is the machine: datagrams and time
//! go in, datagrams and [`Event`]s come out. `examples/lns.rs` is the smallest
//! program around it.
//!
//! The owner handles the frames in sessions: [`Endpoint::receive_data`] returns a frame's session,
//! [`Endpoint::data_header`] the header of a frame to send.
//!
//! Left out: L2TPv3 directly over IP (RFC 3931 4.1.1), recovery (RFC 4951).
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod cause;
mod config;
mod discard;
mod emitter;
mod end;
mod endpoint;
mod event;
mod ids;
mod peers;
mod pool;
mod random;
mod reliable;
mod session;
mod snapshot;
mod tunnel;

pub use cause::PppCause;
pub use config::{
    Config, ConfigFault, ConfigIds, Limits, OutgoingCalls, PeerLookup, Pseudowire, Retransmit,
    Versions,
};
pub use discard::{CounterName, Discard};
pub use end::{Codes, Notice, SessionEnd, TunnelEnd};
pub use endpoint::{
    Counts, DataHeader, DataIds, DataWay, Endpoint, FIRMWARE_REVISION, Generator, Identity,
    OpenError, OpenTunnel, PeerView, Received, Totals,
};
pub use event::{CallErrors, Event};
pub use session::{
    Call, CallDetails, Cookie, Direction, EndedSession, Proxy, Role, SessionKey, SessionState,
    SessionView,
};
pub use snapshot::Refused;
pub use tunnel::{EndedTunnel, TunnelKey, TunnelState, TunnelView};
