//! The way of an IP packet, IPv4 (RFC 791, RFC 1812) or IPv6 (RFC 8200), through a broadband edge: functions over bytes
//! and values, without I/O, clock, or allocation per packet.
//!
//! Each takes the packet's header as [`wire::ip::Header`] has read it, once. An owner takes the steps in this order:
//!
//! ```text
//! up    Header::read  check::checksum  check::addresses  source::check  filters  hop::decrement  mss::clamp  -> network
//! down  Header::read  routes.lookup  filters  fragment::fit  hop::decrement  mss::clamp  -> subscriber
//! ```
//!
//! What fails gives a [`Discard`], to be counted, and [`icmp::Error::of`] says what its sender is told. A step that fails
//! leaves the packet as it came, as the error quotes it. Where a kernel routes every packet behind a TUN device the hop
//! is its: the two are one router.
//!
//! | file | what is there |
//! |---|---|
//! | `check` | whether a packet may be passed on at all |
//! | `hop` | TTL and hop limit |
//! | `mss` | TCP's maximum segment size, lowered |
//! | `fragment` | what does not fit: fragments, or too big |
//! | `icmp` | the errors that its sender is told |
//! | `routes` | a destination's session: longest prefix match |
//! | `source` | whether a subscriber may send from an address |
//! | `checksum` | a checksum after the change of one word, without the rest of the packet |
//! | `discard` | why a packet goes no further |
//! | `join` | packets of one flow as one, for a TUN device |
//! | `split` | what a TUN device gives, as packets for a link |
#![forbid(unsafe_code)]

pub mod check;
pub mod checksum;
mod discard;
pub mod fragment;
pub mod hop;
pub mod icmp;
pub mod join;
pub mod mss;
pub mod routes;
pub mod source;
pub mod split;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use discard::Discard;
