//! NAT44 for a carrier, without I/O, clock or threads: IPv4 network address and port translation (RFC 3022) by the rules of
//! RFC 4787 (UDP), RFC 5382 (TCP), RFC 5508 (ICMP), RFC 6888 (carriers), RFC 7857 (updates) and RFC 7422 (deterministic
//! ports).
//!
//! Each inside endpoint has one external endpoint per protocol, whatever it talks to (endpoint-independent mapping). A
//! subscriber gets external ports in blocks, all of one external address, when it first needs them; a log has an entry per
//! block, not per connection. Start reading at [`Nat`].
//!
//! | file | what it has |
//! |---|---|
//! | `nat` | the NAT: packets, mappings, blocks, time-outs |
//! | `config` | settings and their limits |
//! | `range` | ranges of addresses |
//! | `deterministic` | ports that follow from the inside address |
//! | `layout` | how an address's ports are divided |
//! | `pool` | external addresses and blocks |
//! | `pages` | the mappings of a block's ports |
//! | `mapping` | a mapping's record |
//! | `sessions` | further connections of a mapping |
//! | `subscribers` | subscribers and their limits |
//! | `tcp` | states of a TCP connection |
//! | `ftp` | commands of FTP that name an address |
//! | `rewrite` | changes in packets, with checksums |
//! | `share` | several NATs with the same external addresses |
//! | `table` | the hash table |
//! | `wheel` | timers |
//! | `discard` | reasons to drop a packet, counters |
//! | `event` | events for logs |
//! | `log` | events as IPFIX and syslog |
//!
//! Left out: protocols other than TCP, UDP and ICMP; ports shared by destination (RFC 7857 section 3); port preservation
//! and parity; PCP's messages (RFC 6887).
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod config;
mod deterministic;
mod discard;
mod event;
mod ftp;
mod layout;
pub mod log;
mod mapping;
mod nat;
mod pages;
mod pool;
mod range;
mod rewrite;
mod sessions;
mod share;
mod subscribers;
mod table;
pub mod tcp;
mod wheel;

pub use config::{
    ADDRESSES_MAX, Config, ConfigError, Deterministic, Exempt, Filtering, Limits, TIMEOUT_MAX,
    Timeouts,
};
pub use deterministic::record;
pub use discard::{Counters, Discard};
pub use event::{Block, Event, Forward};
pub use nat::forwards::{ForwardError, ForwardRequest};
pub use nat::homes::{Fragmented, Home};
pub use nat::{Direction, Nat, Verdict};
pub use pages::Reserve;
pub use pool::Protocol;
pub use range::{Range, RangeError};
pub use rewrite::Sum;
pub use share::Share;
pub use subscribers::{SubscriberId, SubscriberView};
