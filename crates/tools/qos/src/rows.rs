//! The requests to a running shaper's control socket, and its rows from a snapshot. `control` declares the rows.

use std::collections::BTreeMap;

use qos::policy::Policy;
use serde::{Deserialize, Serialize};
use shaper::{LaneSnapshot, LaneStats, Snapshot};

use super::rates::{self, Counted};
use control::request::Nothing;
use control::rows::{QosLane, QosNode, QosPort, QosRule, QosRun, QosSums, QosWay};

/// The requests to a shaper.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do")]
pub(super) enum Verb {
    /// Returns a [`QosRun`], then a [`QosNodeRow`](control::rows::QosNodeRow) for every node.
    #[serde(rename = "qos.show")]
    Show(Nothing),
    /// Reloads the policy; returns a [`QosReloaded`](control::rows::QosReloaded).
    #[serde(rename = "qos.reload")]
    Reload(Nothing),
    /// Changes rates of the policy in force; returns a [`QosRate`](control::rows::QosRate).
    #[serde(rename = "qos.rate")]
    Rate(RateChange),
    /// Returns a [`QosHosts`](control::rows::QosHosts), then a [`QosHost`](control::rows::QosHost) for each of the
    /// hosts with the highest rates.
    #[serde(rename = "qos.hosts")]
    Hosts(HostsAsked),
}

/// The rates that are to change, in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RateChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) up_bps: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) down_bps: Option<u64>,
}

/// How many hosts are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostsAsked {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) count: Option<u64>,
}

fn sums(done: qos::Statistics, waiting: qos::Backlog) -> QosSums {
    QosSums {
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

/// The part of a row for a node of the tree that `policy` builds.
pub(super) fn node(node: &qos::tree::Node, way: &str, policy: &Policy) -> QosNode {
    let minor = node.handle.strip_prefix("1:").filter(|_| node.is_class);
    let minor = minor.and_then(|minor| u16::from_str_radix(minor, 16).ok());
    let details = node.details.iter();
    let mut names = match node.rules.is_empty() {
        true => Vec::new(),
        false => policy.rule_names(way == "up"),
    }
    .into_iter();
    QosNode {
        way: way.to_owned(),
        kind: node.kind.to_owned(),
        is_class: node.is_class,
        handle: node.handle.clone(),
        parent: node.parent.clone(),
        name: minor
            .and_then(|minor| policy.class_name(minor))
            .map(str::to_owned),
        options: node.options.clone(),
        sums: sums(node.statistics, node.backlog),
        details: details
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect(),
        rules: node
            .rules
            .iter()
            .map(|rule| QosRule {
                what: rule.what.clone(),
                class: rule.class.clone(),
                // Only the first discipline has rules of the policy; its rule for the rest comes after them.
                name: names.next().map(str::to_owned),
            })
            .collect(),
    }
}

/// One direction of a snapshot, including its nodes.
/// `file_bps` is the rate in the policy's file.
pub(super) fn direction(
    snapshot: &LaneSnapshot,
    way: &str,
    policy: &Policy,
    file_bps: Option<u64>,
) -> QosWay {
    let nodes = snapshot.nodes.iter();
    let is_up = way == "up";
    QosWay {
        rate_bps: if is_up {
            policy.up_bps()
        } else {
            policy.down_bps()
        },
        file_bps,
        line_bps: policy.line_bps(is_up),
        least_bps: file_bps.map(|_| policy.least_bps()),
        sums: sums(snapshot.statistics, snapshot.backlog),
        lane: lane(&snapshot.stats),
        nodes: nodes.map(|inner| node(inner, way, policy)).collect(),
    }
}

fn lane(stats: &LaneStats) -> QosLane {
    QosLane {
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

/// The interface `side` of a snapshot.
pub(super) fn port(name: &str, snapshot: &Snapshot, side: usize) -> QosPort {
    let stats = snapshot.ports[side];
    QosPort {
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
        faults: snapshot.faults[side],
    }
}

/// Fills in the rates of `now` since `before`, an earlier reading of the same process.
pub(super) fn fill_rates(now: &mut QosRun, before: &QosRun) {
    let span_ns = now.taken_ns.saturating_sub(before.taken_ns);
    if now.pid == before.pid && span_ns > 0 {
        now.interval_s = Some((span_ns / 1_000_000) as f64 / 1e3);
        fill_rates_of_way(&mut now.up, &before.up, span_ns);
        fill_rates_of_way(&mut now.down, &before.down, span_ns);
    }
}

fn fill_rates_of_way(now: &mut QosWay, before: &QosWay, span_ns: u64) {
    fill_rates_of_sums(&mut now.sums, &before.sums, span_ns);
    let key = |node: &QosNode| (node.handle.clone(), node.kind.clone(), node.is_class);
    let former: BTreeMap<_, _> = before.nodes.iter().map(|node| (key(node), node)).collect();
    for node in &mut now.nodes {
        if let Some(before) = former.get(&key(node)) {
            fill_rates_of_sums(&mut node.sums, &before.sums, span_ns);
        }
    }
}

fn fill_rates_of_sums(now: &mut QosSums, before: &QosSums, span_ns: u64) {
    now.rates = rates::between(counted(before), counted(now), span_ns);
}

fn counted(sums: &QosSums) -> Counted {
    Counted {
        bytes: sums.bytes,
        packets: sums.packets,
        drops: sums.drops,
        marks: sums.ecn_mark,
    }
}

/// Both directions, with the interfaces that they connect.
pub(super) fn ways(run: &QosRun) -> [(&'static str, &QosWay, &str, &str); 2] {
    let (lan, wan) = (run.lan.name.as_str(), run.wan.name.as_str());
    [("up", &run.up, lan, wan), ("down", &run.down, wan, lan)]
}
