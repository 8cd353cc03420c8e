//! What is asked for, and the replies, as values. The rows are those of the control protocol; of each, only the fields
//! that a view shows.

use std::collections::BTreeMap;

use control::rows::{History, Now, QosRun};
use serde::Deserialize;
use serde_json::Value;

use crate::view::View;

/// Rows that a list of subscribers has at most. A daemon with more subscribers sends the first ones in the order.
pub(crate) const LIST_MAX: u32 = 1_000;

/// Something that a view shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Want {
    /// The state of the whole daemon.
    Now,
    /// What the daemon recorded of the last minutes.
    History,
    /// A list of subscribers.
    Subscribers(Listing),
    /// One subscriber.
    Subscriber(Who),
    /// The event loop.
    Loop,
    /// BGP peers.
    Peers,
    /// The queues of a shaper.
    Queues,
}

/// Which subscribers to list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Listing {
    /// Part of the name.
    pub(crate) name: Option<String>,
    /// Their state.
    pub(crate) state: Option<String>,
    /// Their tunnel.
    pub(crate) tunnel: Option<u32>,
    /// The order of which the list holds the first ones, and whether it is reversed.
    pub(crate) sort: Option<(&'static str, bool)>,
}

/// A subscriber's tunnel and session: the name of a row while the subscriber is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Our tunnel id.
    pub(crate) tunnel: u32,
    /// Our session id.
    pub(crate) session: u32,
}

/// A subscriber that was opened: its session, and the name to look for once the session has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Who {
    pub(crate) key: Key,
    pub(crate) name: String,
}

/// A reply.
#[derive(Debug)]
pub(crate) enum Answer {
    Now(Box<Now>),
    History(Vec<History>),
    Subscribers(Listing, Vec<Subscriber>),
    /// The subscriber, unless it is gone, and its ended sessions.
    Subscriber(Key, Option<Value>, Vec<Value>),
    Loop(LoopRows),
    Peers(PeerRows),
    Queues(Box<QosRun>),
}

/// What came of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    Answer(Answer),
    /// The daemon refused the request; the connection works.
    Refused(String),
    /// There is no connection.
    Gone(String),
}

/// The outcomes of a round of requests, each with what was asked for.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) view: View,
    pub(crate) outcomes: Vec<(Want, Outcome)>,
}

/// A row of `subscriber/1`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(crate) struct Subscriber {
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) address: Option<String>,
    pub(crate) prefix: Option<String>,
    pub(crate) delegated: Option<String>,
    pub(crate) tunnel: u32,
    pub(crate) session: u32,
    pub(crate) age_s: f64,
    pub(crate) up_s: Option<f64>,
    pub(crate) octets_in: u64,
    pub(crate) octets_out: u64,
    pub(crate) dropped: u64,
    pub(crate) echo_rtt_us: Option<f64>,
}

impl Subscriber {
    /// What tells it apart.
    pub(crate) fn key(&self) -> Key {
        Key {
            tunnel: self.tunnel,
            session: self.session,
        }
    }
}

/// The rows of the event loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoopRows {
    pub(crate) handlers: Vec<Handler>,
    pub(crate) overruns: Vec<Overrun>,
    pub(crate) timers: Option<Timers>,
    pub(crate) shards: Vec<Shard>,
}

/// A row of `event.handler/1`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Handler {
    pub(crate) name: String,
    pub(crate) calls: u64,
    pub(crate) total_us: f64,
    pub(crate) mean_us: f64,
    pub(crate) longest_us: f64,
}

/// A row of `event.overrun/1`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Overrun {
    pub(crate) handler: String,
    pub(crate) s_ago: f64,
    pub(crate) wall_ms: f64,
    pub(crate) cpu_ms: f64,
    pub(crate) waiting: String,
    pub(crate) timer: Option<String>,
    pub(crate) timer_late_ms: Option<f64>,
}

/// A row of `event.timers/1`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Timers {
    pub(crate) armed: u64,
    pub(crate) next_ms: Option<f64>,
    pub(crate) next_timer: Option<String>,
    pub(crate) late_p99_us: f64,
    pub(crate) late_max_us: f64,
}

/// A row of `event.shard/1`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Shard {
    pub(crate) shard: u32,
    pub(crate) cpu_s: f64,
    pub(crate) packets_in: u64,
    pub(crate) packets_out: u64,
    pub(crate) discarded: u64,
    pub(crate) left: u64,
}

/// The rows of BGP.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerRows {
    pub(crate) summary: Summary,
    pub(crate) neighbors: Vec<Neighbor>,
}

/// A row of `bgp.summary/1`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Summary {
    pub(crate) router_id: String,
    pub(crate) asn: u32,
    pub(crate) peers: u64,
    pub(crate) established: u64,
    pub(crate) prefixes: BTreeMap<String, u64>,
    pub(crate) deferring: bool,
}

/// A row of `bgp.neighbor/1`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Neighbor {
    pub(crate) address: String,
    pub(crate) name: Option<String>,
    pub(crate) asn: Option<u32>,
    pub(crate) messages_in: u64,
    pub(crate) messages_out: u64,
    pub(crate) since_s: Option<f64>,
    pub(crate) state: String,
    pub(crate) prefixes_in: u64,
    pub(crate) prefixes_out: u64,
}
