//! BGP-4 (RFC 4271) without I/O, clock or randomness of its own: the machine of a router, its sessions, its routes.
//!
//! - [`Speaker`]: a router, as a driver sees it. Streams go in and come out; connections are asked for by events.
//! - [`config`]: what it and its peers are set to. [`fsm`]: the table of section 8, a pure function.
//! - [`rib`]: routes, the best of them, and what peers are told. [`policy`]: which are taken and passed on.
//! - [`Event`]: what its owner is to do or should know. [`CloseReason`]: why sessions end. [`Discard`]: what was ignored.
//!
//! Also read before: RFC 2918, 4486, 4724, 5082, 5492, 6286, 6608, 6793, 7606, 7607, 7911, 8654, 9003, 9072, 9234, 9687.
//!
//! Left out: confederations (RFC 5065), outbound route filters (RFC 5291), TCP-AO (RFC 5925), the retry without
//! capabilities of RFC 5492.
#![forbid(unsafe_code)]

pub mod config;
pub mod discard;
pub mod end;
pub mod event;
pub mod fsm;
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
