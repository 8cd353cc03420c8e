//! Forwarding of IP packets, IPv4 (RFC 791, RFC 1812) and IPv6 (RFC 8200), in a broadband edge: functions over bytes
//! and values, without I/O, clock, or allocation per packet.
//!
//! Each function takes the header that [`wire::ip::Header`] read once. An owner calls them in this order:
//!
//! ```text
//! up    Header::read  check::checksum  check::addresses  source::check  filters  hop::decrement  mss::clamp  ->
//! network down  Header::read  routes.lookup  filters  fragment::fit  hop::decrement  mss::clamp  -> subscriber
//! ```
//!
//! A step that fails returns a [`Discard`] for the owner to count; [`icmp::Error::of`] gives the ICMP error for it. The
//! step leaves the packet unchanged, because the error quotes it. If a kernel routes every packet behind a TUN device,
//! skip `hop::decrement`: edge and kernel are one router, and the kernel counts the hop.
//!
//! | file | what it does |
//! |---|---|
//! | `check` | checks that a packet may be forwarded at all |
//! | `hop` | TTL and hop limit |
//! | `mss` | lowers TCP's maximum segment size |
//! | `fragment` | packets above the MTU: fragments, or an error |
//! | `icmp` | ICMP errors to a packet's sender |
//! | `portal` | answers to web requests in a walled garden |
//! | `routes` | the session of a destination: longest prefix match |
//! | `source` | whether a subscriber may send from an address |
//! | `checksum` | updates a checksum after a change of one word |
//! | `discard` | reasons to drop a packet |
//! | `join` | joins packets of one flow for a TUN device |
//! | `split` | splits large packets from a TUN device |
#![forbid(unsafe_code)]

pub mod check;
pub mod checksum;
mod discard;
pub mod fragment;
pub mod hop;
pub mod icmp;
pub mod join;
pub mod mss;
pub mod portal;
pub mod routes;
pub mod source;
pub mod split;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use discard::Discard;
