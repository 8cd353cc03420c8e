//! Subscribers on line: what a broadband edge makes of L2TP sessions, without I/O.
//!
//! A session that is up becomes a PPP link ([`ppp`]); who its peer is goes out as a [`Question`], and with the answer
//! come an address ([`aaa::pools`]) and routes; then packets pass between the tunnel and the inside.
//!
//! | file | what happens there |
//! |---|---|
//! | `edge` | the tables; in what order the parts hear of things |
//! | `links` | sessions become subscribers; what their links tell; every way to end |
//! | `admit` | what somebody gets that is let in, and gives back |
//! | `parting` | the last account of who ended |
//! | `networks` | networks behind subscribers |
//! | `account` | that an account began, goes on, ended |
//! | `path` | the way of packets, on one core or several |
//! | `paths` | what the edge tells its paths, and what they counted |
//! | `frames` | frames of a tunnel: which are packets, and which a link's |
//! | `dial` | links in which we are the client |
//! | `tap` | who is looked at |
//! | `views` | what `show` reads |
//!
//! Left out: PPPoE, tunnel switching, NAT, IPv6 prefix delegation, the kernel's data plane.
#![forbid(unsafe_code)]

mod account;
mod admit;
mod config;
mod counters;
mod dial;
mod edge;
mod end;
mod event;
mod frames;
mod history;
mod links;
mod networks;
mod outgoing;
mod parting;
mod path;
mod paths;
mod random;
mod subscriber;
mod tap;
mod views;

pub use account::{Account, Entry, Numbers};
pub use config::Config;
pub use counters::Discard;
pub use dial::Dial;
pub use edge::Edge;
pub use end::End;
pub use event::{Admission, Event, Question};
pub use history::Ended;
pub use path::{
    Change, Filters, Inside, Logged, Outside, Passed, Path, PathCounts, Taken, TapId, Tapped,
};
pub use paths::FiltersMut;
pub use subscriber::{Phase, SubscriberKey, Traffic};
pub use tap::{TAPPED_MAX, TAPS_MAX};
pub use views::{Counts, Limits, SubscriberView};
