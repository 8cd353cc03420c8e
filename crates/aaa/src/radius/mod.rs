//! A client of RADIUS servers (RFC 2865, RFC 2866), as one machine without I/O.
//!
//! - [`Client`]: sends requests and reports results, with 256 requests outstanding per socket. It retransmits
//!   (RFC 5080, section 2.2.1), moves to the next server, and tracks which servers are dead. Start reading
//!   here.
//! - [`config`]: its servers and limits.
//! - [`request`]: the NAS's identity, and what a request says about a subscriber.
//! - [`accept`]: parsing an Access-Accept. [`route`]: the text of Framed-Route. `proof`: replies to MS-CHAP and EAP.
//! - [`queue`]: the attributes about queues, in our own and other vendors' formats.
//! - [`tunnels`]: the tunnels of an Access-Accept.
//! - [`event`]: outcomes of requests, and why a datagram was ignored.
//! - [`views`]: statistics for operators.
//!
//! `examples/radius_client.rs` is the smallest program that uses it.
//!
//! A reply is matched to a request by server, socket and identifier, and then verified with the secret: each
//! Response Authenticator is checked against its own request, so a late reply never answers a later request.
//!
//! Left out: challenges other than EAP's (such an Access-Challenge is treated as a rejection), Status-Server, RADIUS over
//! TLS, the keys of MPPE.

pub mod accept;
mod client;
pub mod config;
pub mod event;
mod identifiers;
mod proof;
pub mod queue;
mod random;
pub mod request;
pub mod route;
mod server;
pub mod tunnels;
pub mod views;

pub use client::Client;
pub use config::{Config, ConfigError, ServerConfig};
pub use event::{Discard, Event, Failure, Ignored, Purpose, Refused, Rejection, Transmit};
pub use queue::QueueAttributes;
pub use request::{ANY_SERVER, AccessRequest, Line, Nas, PortType, Proof, Tunnel};
