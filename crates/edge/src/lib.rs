//! Connected subscribers: a broadband edge without I/O.
//!
//! When a session of the [`access`] protocol is up, the edge starts a PPP link ([`ppp`]) in it. The link's peer
//! authenticates, and the edge asks its owner about it ([`Question`]). With the answer the subscriber gets an address
//! ([`aaa::pools`]), a filter and routes. Then packets pass between its session and the inside.
//!
//! Start reading at [`Edge`]; for the data path at [`Path`].
//!
//! | module | what it holds |
//! |---|---|
//! | `access` | what the edge needs of L2TP and PPPoE |
//! | `edge` | the tables, and all that happens to a subscriber: links, admission, accounts, networks, taps |
//! | `path` | the data path of packets, on one core or several |
//! | `subscriber` | one subscriber's record |
//! | `queue` | what decides a subscriber's queues: templates, shared links, the order of sources |
//! | `v6` | IPv6 on a subscriber's link: what is advertised and leased there, a DHCPv6 server |
//! | `event`, `end`, `history` | what the edge reports: events, reasons, ended subscribers |
//! | `garden` | walled gardens |
//! | `switch` | which sessions are handed over to which LNS |
//! | `key`, `config`, `counters`, `outgoing` | what several of these share |
//!
//! `edge` uses all others, `subscriber` uses `path`, and `path` uses only `access`, `v6` and the last row.
//!
//! Left out: the kernel's data plane.
#![forbid(unsafe_code)]

pub mod access;
mod config;
mod counters;
mod edge;
mod end;
mod event;
mod garden;
mod history;
mod key;
mod outgoing;
mod path;
pub mod queue;
mod random;
mod subscriber;
mod switch;
pub mod v6;

pub use access::{Access, Numbers};
pub use config::Config;
pub use counters::{Discard, Ends, Refusal, Refusals};
pub use edge::{
    Account, ChangeRefusal, Counts, Dial, Edge, Entry, Far, FilterChange, FiltersMut, Limits,
    NatSubscribers, NoRoute, SubscriberView, SwitchedView, TAPPED_MAX, TAPS_MAX, Wanted,
};
pub use end::End;
pub use event::{Admission, Event, Question};
pub use garden::Garden;
pub use history::Ended;
pub use key::{QueueLosses, SubscriberKey, Traffic};
pub use path::{
    Asked, Change, Filters, Handover, Inside, Logged, Look, NatTotals, Outside, Owner, Passed,
    Path, PathCounts, Taken, TapId, Tapped,
};
pub use queue::{QueueFault, Queues, Setting, Source};
pub use subscriber::{ByVersion, Phase};
pub use switch::{LineRule, NamedTunnel, SwitchCounts, Switching, VlanIds};
