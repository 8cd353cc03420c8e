//! Hierarchical queues for the subscribers of an edge.
//!
//! [`spec`] has the values that an operator decides: rates, templates, shared links. A [`Tree`] queues the packets of
//! one direction by them:
//!
//! ```text
//! let mut tree = Tree::new(&plan, &options, now)?;
//! let subscriber = tree.add(&shape, owner, now)?;
//! match tree.admit(subscriber, length, now) {
//!     Admission::Pass => {}                                   // send it now: its tokens are taken
//!     Admission::Queue => tree.push(subscriber, packet, now), // may discard this packet or another
//!     Admission::Drop => {}
//! }
//! while let Some(sent) = tree.pop(now) {}                     // what may leave now
//! for (handle, reason) in tree.discarded() {}                 // handles to give back
//! let wake = tree.next_deadline();                            // when to call `pop` again
//! ```
//!
//! | file | what it does |
//! |---|---|
//! | `tree` | admission, the schedule, limits |
//! | `links` | shared links and subscribers: tokens, and turns among siblings |
//! | `flows` | hosts and flows of queued packets |
//! | `leaf` | a subscriber's counters and delays |
//! | `packets` | the queued packets |
//! | `ticks` | timers of links that wait for tokens |
//! | `pages` | a list that grows without moving |
//! | `change` | changes of shapes and plans |
//!
//! RFC 8289 (CoDel), RFC 8290 (fair queuing), RFC 3168 (marks). Left out: classes of service within a subscriber.
//!
//! This crate does no I/O, reads no clock and draws no random numbers: time and seeds are arguments.
#![forbid(unsafe_code)]

mod change;
mod flows;
mod leaf;
mod links;
mod packets;
mod pages;
pub mod spec;
mod ticks;
mod tree;

pub use flows::HostView;
pub use leaf::Counts;
pub use spec::{Fault, Plan, Shape};
pub use tree::{Admission, Options, Sent, SubId, Tree, View};

/// The bytes of a turn, for a weight of 1: an Ethernet frame without its checksum.
pub(crate) const MTU: u32 = 1_514;

/// The direction of a tree's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// To subscribers.
    Down,
    /// From subscribers.
    Up,
}

impl Direction {
    /// The rate of this direction.
    #[must_use]
    pub fn of(self, rates: spec::Rates) -> u64 {
        match self {
            Self::Down => rates.down,
            Self::Up => rates.up,
        }
    }
}
