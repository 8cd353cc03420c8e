//! A client of RADIUS servers (RFC 2865, RFC 2866), as one machine without I/O.
//!
//! - [`Client`]: asks and reports, with as many requests outstanding as there are identifiers on as many sockets as it
//!   may use; repeats (RFC 5080, section 2.2.1), goes on to the next server, and knows which are dead.
//! - [`config`]: its servers.
//! - [`request`]: who asks, and what it says of a subscriber.
//! - [`accept`]: what an Access-Accept grants. [`route`]: the text of Framed-Route.
//! - [`event`]: what became of a request, and why a datagram was ignored.
//! - [`views`]: what an operator sees.
//!
//! `examples/radius_client.rs` is the smallest program around it.
//!
//! A reply belongs to a request by its server, socket and identifier, and because the secret says so: each Response
//! Authenticator is verified against its own request, so that a late reply never answers a later request.
//!
//! Left out: challenges (an Access-Challenge is a refusal), EAP, Status-Server, RADIUS over TLS.

pub mod accept;
mod client;
pub mod config;
pub mod event;
mod identifiers;
mod random;
pub mod request;
pub mod route;
mod server;
pub mod views;

pub use client::Client;
pub use config::{Config, ConfigError, ServerConfig};
pub use event::{Discard, Event, Failure, Purpose, Refused, Rejection, Transmit};
pub use request::{AccessRequest, Line, Nas, Proof, Tunnel};
