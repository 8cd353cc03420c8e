//! The Point-to-Point Protocol (RFC 1661) as a value without I/O: LCP, PAP (RFC 1334), CHAP with MD5 (RFC 1994), MS-CHAP
//! version 2 (RFC 2759), IPCP (RFC 1332, name servers of RFC 1877) and IPv6CP (RFC 5072), both sides of each; and EAP
//! (RFC 3748) passed through to a server.
//!
//! A [`Link`] is the connection to one peer. An owner may have 100,000 of them, so a link has no timer, queue or buffer
//! of its own. Every call takes a [`Context`] (the time, the configuration, random numbers, an [`Outbox`]) and puts
//! frames to send and [`Event`]s into the outbox.
//!
//! ```text
//! link.up(&mut ctx)                       -> Configure-Request
//! link.handle(frame, &mut ctx)            -> replies; Event::Authenticate(claim)
//! link.accept(&grant, b"", &mut ctx)      -> CHAP Success, IPCP's Configure-Request
//! link.handle(frame, &mut ctx)            -> Event::Ipv4Up(settings)
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `fsm` | the RFC's state table |
//! | `layer` | a control protocol: table, Restart timer, Configure packets, generic over options |
//! | `lcp`, `ipcp`, `ipv6cp` | options |
//! | `auth` | authentication of peers by PAP, CHAP and MS-CHAP; `eap`: by EAP; `applicant`: our own as a client |
//! | `link` | phases, and the layer that each frame goes to; `early` keeps requests of a peer that is not let in yet |
//! | `proxy` | continues a negotiation that a LAC started |
//! | `budget` | limit on control packets of one peer |
//! | `snapshot` | a link as a value: writes it as bytes, and reads it back |
//! | `view` | rows for `show` |
//!
//! Left out: multilink, compression and encryption (rejected), callback, MS-CHAP's Change-Password, EAP as a client.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod applicant;
mod auth;
mod budget;
mod config;
mod eap;
mod event;
mod fsm;
mod ipcp;
mod ipv6cp;
mod layer;
mod lcp;
mod link;
mod outbox;
mod proxy;
mod snapshot;
mod text;
mod view;

pub use auth::Credentials;
pub use config::{Authentication, Config, Random};
pub use eap::Challenge;
pub use event::{Claim, Discard, Event, Ipv4Settings, Ipv6Settings, LinkEnd, Proof};
pub use fsm::State;
pub use ipcp::Ipv4Offer;
pub use ipv6cp::Ipv6Offer;
pub use layer::Context;
pub use link::{Grant, Link, Side};
pub use outbox::Outbox;
pub use proxy::{Proxy, ProxyProof};
pub use view::{LcpOptions, LinkView};
