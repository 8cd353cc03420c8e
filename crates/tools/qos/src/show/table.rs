//! A table with a line for each queue, indented below its parent.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use super::text::{heading, way_line};
use crate::printable;
use crate::rates::{bits, count, octets};
use crate::rows::ways;
use control::rows::{Field, QosNode, QosRates, QosRun, QosSums, QosWay};

/// The columns of figures, with their widths. The rows declare the headings.
const COLUMNS: [(&[Field], &str, usize); 7] = [
    (QosRates::FIELDS, "bps", 15),
    (QosRates::FIELDS, "pps", 9),
    (QosRates::FIELDS, "drops_ps", 14),
    (QosSums::FIELDS, "bytes", 13),
    (QosSums::FIELDS, "drops", 14),
    (QosSums::FIELDS, "ecn_mark", 14),
    (QosSums::FIELDS, "qlen", 10),
];

/// Renders the whole table.
pub(super) fn table(run: &QosRun) -> String {
    let mut out = String::new();
    heading(run, &mut out);
    for (name, way, from, to) in ways(run) {
        let lines = named(way);
        let width = lines.iter().map(|(name, _)| name.chars().count()).max();
        let width = width.unwrap_or(0).clamp(24, 44);
        let _ = writeln!(out, "\n{}", way_line(name, way, from, to));
        let _ = writeln!(out, "{:width$}{}", "", headings());
        for (name, sums) in lines {
            let name: String = name.chars().take(width).collect();
            let _ = writeln!(out, "{name:width$}{}", figures(sums));
        }
        if let Some(lost) = beside(way) {
            let _ = writeln!(out, "{lost}");
        }
    }
    out
}

/// The nodes with their names, each below its parent and indented by its depth.
fn named(way: &QosWay) -> Vec<(String, &QosSums)> {
    let handles: HashSet<&str> = way.nodes.iter().map(|node| node.handle.as_str()).collect();
    let mut below: HashMap<&str, Vec<&QosNode>> = HashMap::new();
    for node in way.nodes.iter().rev() {
        let parent = node
            .parent
            .as_deref()
            .filter(|parent| handles.contains(parent));
        below
            .entry(parent.unwrap_or_default())
            .or_default()
            .push(node);
    }
    let mut lines = Vec::with_capacity(way.nodes.len());
    let tops = below.remove("").unwrap_or_default();
    let mut open: Vec<(&QosNode, usize)> = tops.into_iter().map(|node| (node, 0)).collect();
    while let Some((node, depth)) = open.pop() {
        lines.push((format!("{:1$}{2}", "", 2 * depth, name(node)), &node.sums));
        // The entry is removed, so that a cycle cannot loop without end.
        let children = below.remove(node.handle.as_str()).unwrap_or_default();
        open.extend(children.into_iter().map(|child| (child, depth + 1)));
    }
    lines
}

fn name(node: &QosNode) -> String {
    match &node.name {
        Some(name) => format!("{} {}", node.handle, printable(name)),
        None => format!("{} {}", node.handle, node.kind),
    }
}

/// The headings of the columns of figures.
fn headings() -> String {
    let heading = |(fields, name, width): &(&[Field], &str, usize)| {
        let field = fields.iter().find(|field| field.name == *name);
        let heading = field.and_then(|field| field.heading).unwrap_or_default();
        format!("{heading:>width$}")
    };
    COLUMNS.iter().map(heading).collect()
}

fn figures(sums: &QosSums) -> String {
    let rates = sums.rates;
    let shown = |figure: Option<String>| figure.unwrap_or_else(|| "-".to_owned());
    format!(
        "{:>15} {:>8} {:>13} {:>12} {:>13} {:>13} {:>9}",
        shown(rates.map(|rates| bits(rates.bps))),
        shown(rates.map(|rates| count(rates.pps))),
        shown(rates.map(|rates| count(rates.drops_ps))),
        octets(sums.bytes),
        sums.drops,
        sums.ecn_mark,
        format!("{}p", sums.qlen)
    )
}

/// The packets lost outside the queues, if any.
fn beside(way: &QosWay) -> Option<String> {
    let lane = &way.lane;
    let lost = [
        ("too_long", lane.too_long),
        ("no_room", lane.no_room),
        ("unclassified", lane.unclassified),
        ("down", lane.down),
    ];
    let lost = lost.iter().filter(|(_, count)| *count > 0);
    let words: Vec<String> = lost
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    (!words.is_empty()).then(|| format!("lost beside the queues: {}", words.join(" ")))
}
