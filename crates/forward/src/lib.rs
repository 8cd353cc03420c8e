//! The way of an IP packet, IPv4 (RFC 791, RFC 1812) or IPv6 (RFC 8200), through a broadband edge: functions over bytes
//! and values, without I/O, clock, or allocation per packet.
//!
//! | file | what is there |
//! |---|---|
//! | `routes` | a destination's session: longest prefix match |
//! | `checksum` | a checksum after the change of one word, without the rest of the packet |
#![forbid(unsafe_code)]

pub mod checksum;
pub mod routes;
