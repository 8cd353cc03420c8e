//! The requests and rows of a running shaper's control socket. docs/qos.md describes the fields.

use std::collections::BTreeMap;

use qos::policy::Policy;
use serde::{Deserialize, Serialize};
use shaper::{LaneSnapshot, LaneStats, Snapshot};

use super::rates::{Counted, Rates};
use control::request::Nothing;

/// Names and versions of the JSON formats.
pub(super) const RUN: &str = "qos.run/1";
pub(super) const NODE: &str = "qos.node/1";
pub(super) const RELOADED: &str = "qos.reload/1";
pub(super) const SHOWN: &str = "qos/1";

/// The requests of an emulation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do")]
pub(super) enum Verb {
    /// Returns a [`Run`], then every [`Node`].
    #[serde(rename = "qos.show")]
    Show(Nothing),
    /// Reloads the policy; returns a [`Reloaded`].
    #[serde(rename = "qos.reload")]
    Reload(Nothing),
}

/// The result of a reload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reloaded {
    pub(super) schema: String,
    pub(super) file: String,
    /// The warnings, one per line.
    pub(super) advice: Vec<String>,
}

/// A snapshot of a shaper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) schema: String,
    pub(super) pid: u32,
    /// The policy's file, and when its present content was loaded.
    pub(super) policy: String,
    pub(super) policy_age_s: f64,
    /// Number of reloads.
    pub(super) reloads: u64,
    pub(super) uptime_s: f64,
    /// The monotonic clock at the snapshot.
    pub(super) taken_ns: u64,
    /// Seconds between the two readings that the rates are computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) interval_s: Option<f64>,
    pub(super) up: Way,
    pub(super) down: Way,
    pub(super) lan: Port,
    pub(super) wan: Port,
    /// Frame slots: in use, and in total.
    pub(super) frames: u32,
    pub(super) frames_max: u32,
}

/// One direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Way {
    /// The policy's rate, if this direction is shaped.
    pub(super) rate_bps: Option<u64>,
    /// The counters of all queues together.
    #[serde(flatten)]
    pub(super) sums: Sums,
    pub(super) lane: Lane,
    /// Filled in by the client; nodes are sent as separate rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) nodes: Vec<Node>,
}

/// A queue's counters, under the names of `tc -s -j`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    /// Bytes sent on the line.
    pub(super) bytes: u64,
    pub(super) packets: u64,
    pub(super) drops: u64,
    pub(super) overlimits: u64,
    /// Always 0: a dequeued packet is never put back.
    pub(super) requeues: u64,
    /// Backlog in bytes.
    pub(super) backlog: u64,
    /// Backlog in packets.
    pub(super) qlen: u64,
    pub(super) ecn_mark: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rates: Option<Rates>,
}

/// Counters outside the queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Lane {
    /// IP packets received.
    pub(super) packets: u64,
    /// Non-IP frames, which bypass the queues.
    pub(super) past: u64,
    /// Large frames that were segmented, and those that could not be.
    pub(super) cut: u64,
    pub(super) too_long: u64,
    /// Packets dropped: their queue was full, they were evicted for others, they waited too long, or no class matched.
    pub(super) full: u64,
    pub(super) overlimit: u64,
    pub(super) late: u64,
    pub(super) unclassified: u64,
    /// Packets dropped because the whole buffer was full.
    pub(super) no_room: u64,
    pub(super) marked: u64,
    /// Frames dropped because the outgoing interface was down.
    pub(super) down: u64,
}

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) received: u64,
    pub(super) received_bytes: u64,
    /// Frames received that had to be segmented.
    pub(super) received_large: u64,
    /// Frames that the kernel dropped because the engine did not read them in time.
    pub(super) missed: u64,
    pub(super) no_room: u64,
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    pub(super) refused: u64,
    /// How often the send buffer was full.
    pub(super) blocked: u64,
    /// How often the interface was found down.
    pub(super) downs: u64,
}

/// A discipline or a class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Node {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) schema: String,
    /// `up` or `down`.
    pub(super) way: String,
    pub(super) kind: String,
    pub(super) is_class: bool,
    pub(super) handle: String,
    pub(super) parent: Option<String>,
    /// The name of the class in the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    pub(super) options: String,
    #[serde(flatten)]
    pub(super) sums: Sums,
    /// Counters specific to the node's kind, under tc's names.
    pub(super) details: BTreeMap<String, i64>,
    /// The classifier's rules, in the order of evaluation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) rules: Vec<Rule>,
}

/// One rule of a classifier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rule {
    /// The match: "proto 6 proto-dst 22".
    pub(super) what: String,
    /// The class of matching packets.
    pub(super) class: String,
}

impl Sums {
    fn new(done: qos::Statistics, waiting: qos::Backlog) -> Self {
        Self {
            bytes: done.sent_bytes,
            packets: done.sent_packets,
            drops: done.dropped,
            overlimits: done.overlimits,
            requeues: 0,
            backlog: waiting.bytes,
            qlen: waiting.packets.into(),
            ecn_mark: done.ecn_mark,
            rates: None,
        }
    }

    pub(super) fn counted(&self) -> Counted {
        Counted {
            bytes: self.bytes,
            packets: self.packets,
            drops: self.drops,
            marks: self.ecn_mark,
        }
    }

    fn since(&mut self, before: &Self, span_ns: u64) {
        self.rates = Rates::between(before.counted(), self.counted(), span_ns);
    }
}

impl Node {
    /// A row for a node of the tree that `policy` builds.
    pub(super) fn new(node: &qos::tree::Node, way: &str, policy: &Policy) -> Self {
        let minor = node.handle.strip_prefix("1:").filter(|_| node.is_class);
        let minor = minor.and_then(|minor| u16::from_str_radix(minor, 16).ok());
        let details = node.details.iter();
        let rules = node.rules.iter();
        Self {
            schema: String::new(),
            way: way.to_owned(),
            kind: node.kind.to_owned(),
            is_class: node.is_class,
            handle: node.handle.clone(),
            parent: node.parent.clone(),
            name: minor
                .and_then(|minor| policy.class_name(minor))
                .map(str::to_owned),
            options: node.options.clone(),
            sums: Sums::new(node.statistics, node.backlog),
            details: details
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect(),
            rules: rules
                .map(|rule| Rule {
                    what: rule.what.clone(),
                    class: rule.class.clone(),
                })
                .collect(),
        }
    }
}

impl Way {
    /// One direction of a snapshot, including its nodes.
    pub(super) fn new(lane: &LaneSnapshot, way: &str, policy: &Policy) -> Self {
        let nodes = lane.nodes.iter();
        Self {
            rate_bps: match way {
                "up" => policy.up_bps(),
                _ => policy.down_bps(),
            },
            sums: Sums::new(lane.statistics, lane.backlog),
            lane: Lane::new(&lane.stats),
            nodes: nodes.map(|node| Node::new(node, way, policy)).collect(),
        }
    }

    fn since(&mut self, before: &Self, span_ns: u64) {
        self.sums.since(&before.sums, span_ns);
        let key = |node: &Node| (node.handle.clone(), node.kind.clone(), node.is_class);
        let former: BTreeMap<_, _> = before.nodes.iter().map(|node| (key(node), node)).collect();
        for node in &mut self.nodes {
            if let Some(before) = former.get(&key(node)) {
                node.sums.since(&before.sums, span_ns);
            }
        }
    }
}

impl Lane {
    fn new(stats: &LaneStats) -> Self {
        Self {
            packets: stats.packets,
            past: stats.past,
            cut: stats.cut,
            too_long: stats.too_long,
            full: stats.full,
            overlimit: stats.overlimit,
            late: stats.late,
            unclassified: stats.unclassified,
            no_room: stats.no_room,
            marked: stats.marked,
            down: stats.down,
        }
    }
}

impl Port {
    /// The interface `side` of a snapshot.
    pub(super) fn new(name: &str, snapshot: &Snapshot, side: usize) -> Self {
        let stats = snapshot.ports[side];
        Self {
            name: name.to_owned(),
            received: stats.received,
            received_bytes: stats.received_bytes,
            received_large: stats.received_large,
            missed: stats.missed,
            no_room: stats.no_room,
            sent: stats.sent,
            sent_bytes: stats.sent_bytes,
            refused: stats.refused,
            blocked: stats.blocked,
            downs: snapshot.downs[side],
        }
    }
}

impl Run {
    /// Fills in the rates since `before`, an earlier snapshot of the same process.
    pub(super) fn since(&mut self, before: &Self) {
        let span_ns = self.taken_ns.saturating_sub(before.taken_ns);
        if self.pid == before.pid && span_ns > 0 {
            self.interval_s = Some((span_ns / 1_000_000) as f64 / 1e3);
            self.up.since(&before.up, span_ns);
            self.down.since(&before.down, span_ns);
        }
    }

    /// Both directions, with the interfaces that they connect.
    pub(super) fn ways(&self) -> [(&'static str, &Way, &str, &str); 2] {
        let (lan, wan) = (self.lan.name.as_str(), self.wan.name.as_str());
        [("up", &self.up, lan, wan), ("down", &self.down, wan, lan)]
    }
}
