//! A table with a line for each queue, indented below its parent.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use super::text::{heading, way_line};
use crate::printable;
use crate::rates::{bits, count, octets};
use crate::rows::{Node, Run, Sums, Way};

/// The headings of the columns of figures.
const HEADINGS: &str =
    "            now      p/s     dropped/s         sent       dropped        marked     waits";

/// Renders the whole table.
pub(super) fn table(run: &Run) -> String {
    let mut out = String::new();
    heading(run, &mut out);
    for (name, way, from, to) in run.ways() {
        let lines = named(way);
        let width = lines.iter().map(|(name, _)| name.chars().count()).max();
        let width = width.unwrap_or(0).clamp(24, 44);
        let _ = writeln!(out, "\n{}", way_line(name, way, from, to));
        let _ = writeln!(out, "{:width$}{HEADINGS}", "");
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
fn named(way: &Way) -> Vec<(String, &Sums)> {
    let handles: HashSet<&str> = way.nodes.iter().map(|node| node.handle.as_str()).collect();
    let mut below: HashMap<&str, Vec<&Node>> = HashMap::new();
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
    let mut open: Vec<(&Node, usize)> = tops.into_iter().map(|node| (node, 0)).collect();
    while let Some((node, depth)) = open.pop() {
        lines.push((format!("{:1$}{2}", "", 2 * depth, name(node)), &node.sums));
        // The entry is removed, so that a cycle cannot loop without end.
        let children = below.remove(node.handle.as_str()).unwrap_or_default();
        open.extend(children.into_iter().map(|child| (child, depth + 1)));
    }
    lines
}

fn name(node: &Node) -> String {
    match &node.name {
        Some(name) => format!("{} {}", node.handle, printable(name)),
        None => format!("{} {}", node.handle, node.kind),
    }
}

fn figures(sums: &Sums) -> String {
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
fn beside(way: &Way) -> Option<String> {
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
