//! The trees of a policy file, or of a running shaper.

use anyhow::Result;
use base::Instant;
use qos::policy::Policy;
use qos::tree::Tree as Disciplines;
use qos::units::Rate;

use super::model::{Join, Kind, Numbers, Tree};
use super::{header, units};
use crate::rows;
use control::rows::{QosNode, QosRun, QosSums};

/// The trees of both directions of `policy`, which was read from `name`.
///
/// # Errors
/// The policy's disciplines cannot be combined.
pub(super) fn grow(policy: &Policy, name: &str) -> Result<Tree> {
    let mut tree = Tree {
        title: format!("Queues of {name}"),
        ..Tree::default()
    };
    for (direction, spec, rate) in [
        ("up", policy.up_spec(), policy.up_bps()),
        ("down", policy.down_spec(), policy.down_bps()),
    ] {
        let walked = Disciplines::new(&spec, 0, Instant::ZERO)?.walk();
        let nodes = walked
            .iter()
            .map(|node| rows::node(node, direction, policy));
        let nodes: Vec<QosNode> = nodes.collect();
        let top = top(&mut tree, direction, rate);
        direction_of(&mut tree, top, &nodes);
    }
    Ok(tree)
}

/// The trees of both directions of a running shaper, with its counters.
pub(super) fn of_run(run: &QosRun) -> Tree {
    let mut tree = Tree {
        title: format!("Queues between {} and {}", run.lan.name, run.wan.name),
        ..Tree::default()
    };
    for (direction, way, from, to) in rows::ways(run) {
        let title = format!("{direction}: {from} to {to}");
        let top = top(&mut tree, title, way.rate_bps);
        direction_of(&mut tree, top, &way.nodes);
    }
    tree
}

fn top(tree: &mut Tree, title: impl Into<String>, rate_bps: Option<u64>) -> usize {
    let top = tree.add(Kind::Interface, title, "");
    let rate = rate_bps.map_or("not shaped".to_owned(), |rate| {
        format!("rate {}", Rate(rate))
    });
    tree.nodes[top].lines.push(rate);
    top
}

fn direction_of(tree: &mut Tree, top: usize, walked: &[QosNode]) {
    let first = tree.nodes.len();
    for node in walked {
        let kind = match node.is_class {
            true => Kind::Class,
            false => Kind::Qdisc,
        };
        let title = format!("{} {}", node.kind, node.handle);
        let id = tree.add(kind, title, &node.handle);
        tree.name(id, node.name.as_deref());
        let drawn = &mut tree.nodes[id];
        if !node.options.is_empty() {
            drawn.lines.push(units::line(&node.options));
        }
        drawn.numbers = Some(numbers(&node.sums));
    }
    let found = |handle: &str| {
        let at = walked.iter().position(|node| node.handle == handle);
        at.map(|at| first + at)
    };
    for (at, node) in walked.iter().enumerate() {
        let above = node.parent.as_deref().and_then(found).unwrap_or(top);
        tree.join(above, first + at, Join::Holds);
    }
    for (at, node) in walked.iter().enumerate() {
        for rule in &node.rules {
            let class = rule.class.split(' ').next().unwrap_or_default();
            let class = found(class);
            if let (Some(class), "else") = (class, rule.what.as_str()) {
                tree.nodes[class].is_default = true;
                continue;
            }
            let id = tree.add(Kind::Filter, header::rule(&rule.what), "");
            tree.name(id, rule.name.as_deref());
            tree.join(first + at, id, Join::Holds);
            match class {
                Some(class) => tree.join(id, class, Join::Sends),
                None => tree.nodes[id].lines.push(format!("to {}", rule.class)),
            }
        }
    }
}

fn numbers(sums: &QosSums) -> Numbers {
    Numbers {
        bytes: sums.bytes,
        packets: sums.packets,
        drops: sums.drops,
        overlimits: sums.overlimits,
        backlog_bytes: sums.backlog,
        backlog_packets: sums.qlen,
        ecn_mark: sums.ecn_mark,
        delays: None,
    }
}
