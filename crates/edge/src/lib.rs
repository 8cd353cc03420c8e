//! Subscribers on line: what a broadband edge makes of L2TP sessions, without I/O.
//!
//! A session that is up becomes a PPP link ([`ppp`]); who its peer is goes out as a [`Question`], and with the answer
//! come an address ([`aaa::pools`]) and routes; then packets pass between the tunnel and the inside.
//!
//! | module | what it holds |
//! |---|---|
//! | `edge` | the tables, and all that happens to a subscriber: links, admission, accounts, networks, taps |
//! | `path` | the data path of packets, on one core or several |
//! | `subscriber` | one subscriber's record |
//! | `event`, `end`, `history` | what the edge reports: events, reasons, ended subscribers |
//! | `key`, `config`, `counters`, `outgoing` | what several of these share |
//!
//! `edge` uses all others, `subscriber` uses `path`, and `path` uses only the last row: a packet needs nothing else.
//!
//! Left out: PPPoE, tunnel switching, NAT, IPv6 prefix delegation, the kernel's data plane.
#![forbid(unsafe_code)]

pub mod access;
mod config;
mod counters;
mod edge;
mod end;
mod event;
mod history;
mod key;
mod outgoing;
mod path;
mod random;
mod subscriber;

pub use access::{Access, Numbers};
pub use config::Config;
pub use counters::Discard;
pub use edge::{
    Account, Counts, Dial, Edge, Entry, FiltersMut, Limits, SubscriberView, TAPPED_MAX, TAPS_MAX,
};
pub use end::End;
pub use event::{Admission, Event, Question};
pub use history::Ended;
pub use key::{SubscriberKey, Traffic};
pub use path::{
    Change, Filters, Inside, Logged, Outside, Passed, Path, PathCounts, Taken, TapId, Tapped,
};
pub use subscriber::Phase;
