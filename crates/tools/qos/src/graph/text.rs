//! Renders trees as text for the terminal, as dot for graphviz, and as JSON.

use std::fmt::Write;

use super::model::{Join, Kind, Tree};
use crate::printable;
use crate::rates::words;

/// Draws the tree with line characters, as `tree` draws directories.
pub(super) fn terminal(tree: &Tree) -> String {
    let children = tree.children();
    let targets = tree.targets();
    let mut out = String::new();
    // (node, prefix of its line, prefix of the lines below it)
    let mut open: Vec<(usize, String, String)> = tree
        .roots()
        .into_iter()
        .rev()
        .map(|root| (root, String::new(), String::new()))
        .collect();
    while let Some((id, before, below)) = open.pop() {
        let node = &tree.nodes[id];
        let mut line = format!("{before}{}", printable(&node.title));
        if node.is_default {
            line.push_str("  [default]");
        }
        for (to, join) in targets.get(&id).into_iter().flatten() {
            let arrow = match join {
                Join::Asks => "asks",
                _ => "->",
            };
            let target = &tree.nodes[*to];
            let name = match target.handle.is_empty() {
                true => &target.title,
                false => &target.handle,
            };
            let _ = write!(line, "  {arrow} {}", printable(name));
        }
        let _ = writeln!(out, "{line}");
        let own = &children[id];
        let bar = if own.is_empty() {
            "    "
        } else {
            "\u{2502}   "
        };
        let own_lines = node.lines.iter().cloned();
        let rates = node.rates.map(|rates| format!("now {}", words(&rates)));
        let numbers = node.numbers.and_then(|numbers| numbers.words());
        for text in own_lines.chain(rates).chain(numbers) {
            let _ = writeln!(out, "{below}{bar}{}", printable(&text));
        }
        for (at, child) in own.iter().enumerate().rev() {
            let (knot, bar) = match at + 1 == own.len() {
                true => ("\u{2514}\u{2500}\u{2500} ", "    "),
                false => ("\u{251c}\u{2500}\u{2500} ", "\u{2502}   "),
            };
            open.push((*child, format!("{below}{knot}"), format!("{below}{bar}")));
        }
    }
    out
}

/// The graph in graphviz's language.
pub(super) fn dot(tree: &Tree) -> String {
    let mut out = String::from("digraph queues {\n");
    let _ = writeln!(out, "  label = {};", quoted(&[tree.title.as_str()]));
    out.push_str(
        "  rankdir = LR;\n  node [shape = box, fontname = \"monospace\", fontsize = 10];\n",
    );
    for node in &tree.nodes {
        let shape = match node.kind {
            Kind::Interface | Kind::Device => "cds",
            Kind::Qdisc => "box",
            Kind::Class | Kind::Tin | Kind::Fold => "box\", style = \"rounded",
            Kind::Filter => "note",
            Kind::Group => "folder",
            Kind::Unknown => "box\", style = \"dashed",
        };
        let mut lines = vec![node.title.as_str()];
        if node.is_default {
            lines.push("(default)");
        }
        lines.extend(node.lines.iter().map(String::as_str));
        let rates = node.rates.map(|rates| format!("now {}", words(&rates)));
        lines.extend(rates.as_deref());
        let words = node.numbers.and_then(|numbers| numbers.words());
        lines.extend(words.as_deref());
        let label = quoted(&lines);
        let _ = writeln!(
            out,
            "  n{} [label = {label}, shape = \"{shape}\"];",
            node.id
        );
    }
    for edge in &tree.edges {
        let style = match edge.join {
            Join::Holds => "",
            Join::Sends => " [style = \"dashed\", constraint = \"false\"]",
            Join::Asks => " [style = \"dotted\", constraint = \"false\"]",
        };
        let _ = writeln!(out, "  n{} -> n{}{style};", edge.from, edge.to);
    }
    out.push_str("}\n");
    out
}

/// Quotes a string for dot: quotation marks and backslashes are escaped with a backslash.
fn quoted(lines: &[&str]) -> String {
    let lines = lines.iter().map(|line| {
        let line = printable(line);
        line.replace('\\', "\\\\").replace('"', "\\\"") + "\\l"
    });
    format!("\"{}\"", lines.collect::<String>())
}

/// Nodes and edges as JSON.
pub(super) fn json(tree: &Tree) -> String {
    let document = serde_json::json!({ "schema": "qos.graph/1", "tree": tree });
    format!("{document:#}\n")
}
