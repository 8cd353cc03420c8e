//! BGP-4 (RFC 4271): the state machines, sessions and routes of a router, without I/O, clock or randomness of its own.
//!
//! - [`Speaker`]: a router as its driver sees it. Start here, with `examples/speaker.rs`. The driver passes in what it
//!   reads from TCP streams, writes what the speaker fills, and opens connections when an event asks for it.
//! - [`config`]: settings of the speaker and its peers. [`fsm`]: the state table of section 8, as a pure function.
//! - [`rib`]: routes, the best of them, and what peers are sent. [`policy`]: which routes are accepted and advertised.
//! - [`Event`]: what the owner of a speaker has to do or should know. [`CloseReason`]: why sessions end. [`Discard`]:
//!   input that was ignored.
//!
//! Further RFCs: 2918, 4486, 4724, 5082, 5492, 6286, 6608, 6793, 7606, 7607, 7911, 8654, 9003, 9072, 9234, 9687.
//!
//! Left out: confederations (RFC 5065), outbound route filters (RFC 5291), TCP-AO (RFC 5925), and the retry without
//! capabilities of RFC 5492.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod config;
pub mod discard;
pub mod end;
pub mod event;
pub mod fsm;
mod margin;
mod negotiate;
pub mod peer;
pub mod policy;
mod random;
pub mod rib;
mod ring;
mod session;
pub mod speaker;
mod table;
mod timers;

pub use config::{DynamicConfig, PeerConfig, PeerSettings, RemoteAsn, SpeakerConfig};
pub use discard::Discard;
pub use end::CloseReason;
pub use event::Event;
pub use negotiate::{Agreed, Graceful};
pub use peer::PeerId;
pub use rib::Rib;
pub use speaker::Speaker;
pub use table::ConnId;
