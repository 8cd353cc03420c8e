//! An operator's policy -> the trees that `headend qos run` would shape by.

use anyhow::Result;
use base::Instant;
use qos::policy::Policy;
use qos::tree::Tree as Disciplines;

use super::model::{Join, Kind, Numbers, Tree};

/// Both directions of `policy`, which was read from `name`.
///
/// # Errors
/// The policy's disciplines do not fit together.
pub(super) fn grow(policy: &Policy, name: &str) -> Result<Tree> {
    let mut tree = Tree {
        title: format!("Queues of {name}"),
        ..Tree::default()
    };
    for (direction, spec, rate) in [
        ("up", policy.up_spec(), policy.up_bps()),
        ("down", policy.down_spec(), policy.down_bps()),
    ] {
        let disciplines = Disciplines::new(&spec, 0, Instant::ZERO)?;
        let top = tree.add(Kind::Interface, direction, "");
        let rate = rate.map_or("not shaped".to_owned(), |rate| {
            format!("rate {}", qos::policy::units::Rate(rate))
        });
        tree.nodes[top].lines.push(rate);
        direction_of(&mut tree, top, policy, &disciplines);
    }
    Ok(tree)
}

fn direction_of(tree: &mut Tree, top: usize, policy: &Policy, disciplines: &Disciplines) {
    let first = tree.nodes.len();
    let walked = disciplines.walk();
    for node in &walked {
        let kind = match node.is_class {
            true => Kind::Class,
            false => Kind::Qdisc,
        };
        let title = format!("{} {}", node.kind, node.handle);
        let id = tree.add(kind, title, &node.handle);
        let name = node.handle.strip_prefix("1:").filter(|_| node.is_class);
        let minor = name.and_then(|minor| u16::from_str_radix(minor, 16).ok());
        let name = minor.and_then(|minor| policy.class_name(minor));
        let drawn = &mut tree.nodes[id];
        drawn
            .lines
            .extend(name.map(|name| format!("\u{201c}{name}\u{201d}")));
        if !node.options.is_empty() {
            drawn.lines.push(node.options.clone());
        }
        drawn.numbers = Some(Numbers {
            bytes: node.statistics.sent_bytes,
            packets: node.statistics.sent_packets,
            drops: node.statistics.dropped,
            overlimits: node.statistics.overlimits,
            backlog_bytes: node.backlog.bytes,
            backlog_packets: node.backlog.packets.into(),
            ecn_mark: node.statistics.ecn_mark,
        });
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
            let id = tree.add(Kind::Filter, rule.what.clone(), "");
            tree.join(first + at, id, Join::Holds);
            match class {
                Some(class) => tree.join(id, class, Join::Sends),
                None => tree.nodes[id].lines.push(format!("to {}", rule.class)),
            }
        }
    }
}
