//! Renders trees as a page, which can fetch rates repeatedly.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;

use super::fold::fold;
use super::layout::{GRID_FROM, LINE, PAD, between, cut, lay_out};
use super::model::{Join, Kind, Tree};
use super::svg::{HEADING, LABEL, busiest_bps, escaped, label, stroke, svg};
use control::rows::QosRates;

/// Places, folds and highlights the boxes.
const PLACE: &str = include_str!("page.js");
/// Writes the rates into the picture. If the boxes have changed, the page loads the picture again.
const LIVE: &str = include_str!("live.js");
const STYLE: &str = include_str!("page.css");

/// A self-contained page with the picture. Groups of like boxes are folded; pointing at a box highlights the boxes
/// connected to it.
pub(super) fn html(tree: &Tree) -> String {
    let mut tree = tree.clone();
    fold(&mut tree);
    with_script(&tree, "")
}

/// The same page, which also fetches [`rates`] from its server every `every_ms`. `tree` is folded.
pub(super) fn live(tree: &Tree, every_ms: u128) -> String {
    let shape = shape(tree);
    let script = format!("const every={every_ms},shape=\"{shape}\";\n{LIVE}");
    with_script(tree, &script)
}

/// What the script has to know about the boxes.
#[derive(Serialize)]
struct Boxes<'t> {
    below: Vec<Vec<usize>>,
    roots: Vec<usize>,
    /// From, to, and 1 for an arrow.
    edges: Vec<(usize, usize, u8)>,
    folds: Vec<usize>,
    /// Identify the boxes when the page is loaded again.
    names: Vec<&'t str>,
    /// Pixels from the top of a box to the text of its first counter.
    first: Vec<u32>,
    top: u32,
    between: (u32, u32),
    grid: usize,
    /// Whether lines have rates, and the length of their last, horizontal part.
    deep: bool,
    flat: u32,
}

fn boxes(tree: &Tree) -> Boxes<'_> {
    let layout = lay_out(tree, HEADING);
    let first = layout.places.iter().map(|place| {
        let before = place.lines.len() - place.slots;
        PAD + 10 + LINE * u32::try_from(before).unwrap_or(0)
    });
    let edges = tree.edges.iter();
    let folds = tree.nodes.iter().filter(|node| node.kind == Kind::Fold);
    Boxes {
        below: tree.children(),
        roots: tree.roots(),
        edges: edges
            .map(|edge| (edge.from, edge.to, u8::from(edge.join != Join::Holds)))
            .collect(),
        folds: folds.map(|fold| fold.id).collect(),
        names: tree.nodes.iter().map(|node| node.title.as_str()).collect(),
        first: first.collect(),
        top: HEADING,
        between: between(tree),
        grid: GRID_FROM,
        deep: tree.has_rates,
        flat: LABEL,
    }
}

fn with_script(tree: &Tree, more: &str) -> String {
    let boxes = serde_json::to_string(&boxes(tree)).unwrap_or_else(|_| "{}".to_owned());
    // No text of tc ends the script.
    let boxes = boxes.replace('<', "\\u003c");
    let picture = svg(tree);
    let title = escaped(&tree.title);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<style>{STYLE}</style></head>\n\
         <body>\n{picture}<script>\nconst T={boxes};\n{PLACE}\n{more}</script>\n</body></html>\n"
    )
}

/// The parts of a node that change.
#[derive(Serialize)]
struct Moving {
    id: usize,
    handle: String,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rates: Option<QosRates>,
    /// The text at the line to the node, the width of that line in pixels, and the node's last lines.
    label: String,
    stroke: f64,
    lines: Vec<String>,
}

/// The changing parts of a tree, as JSON.
pub(super) fn rates(tree: &Tree) -> String {
    let busiest = busiest_bps(tree);
    let counted = tree.nodes.iter().filter_map(|node| {
        node.numbers?;
        let mut lines = node.slots();
        lines.iter_mut().for_each(cut);
        Some(Moving {
            id: node.id,
            handle: node.handle.clone(),
            title: node.title.clone(),
            rates: node.rates,
            label: label(node),
            stroke: stroke(node, busiest),
            lines,
        })
    });
    let document = serde_json::json!({
        "schema": "qos.rates/1",
        "shape": shape(tree),
        "state": tree.state,
        "nodes": counted.collect::<Vec<_>>(),
    });
    document.to_string()
}

/// A JSON object that reports that there is nothing to show.
pub(super) fn failure(error: &str) -> String {
    serde_json::json!({ "schema": "qos.error/1", "error": error }).to_string()
}

/// A counter that tc prints among the options.
const COUNTED: &str = "direct_packets_stat";

/// A hash that is the same for trees with the same boxes.
pub(super) fn shape(tree: &Tree) -> String {
    let mut hasher = DefaultHasher::new();
    for node in &tree.nodes {
        (&node.title, node.is_default, node.numbers.is_some()).hash(&mut hasher);
        let lines = node.lines.iter();
        let options = lines.map(|line| line.split(COUNTED).next().unwrap_or_default());
        options.for_each(|option| option.hash(&mut hasher));
    }
    for edge in &tree.edges {
        (edge.from, edge.to).hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{grow, record};

    fn tree(text: &str) -> Tree {
        grow::grow(&record::read(text, None), "eth0")
    }

    #[test]
    fn other_boxes_are_another_shape_and_other_numbers_are_not() {
        let htb = |direct: u32, sent: u32| {
            format!(
                "qdisc htb 1: root refcnt 2 r2q 10 default 0x20 direct_packets_stat {direct} direct_qlen 1000\n \
                 Sent {sent} bytes 9 pkt (dropped 0, overlimits 0 requeues 0)\n"
            )
        };
        let first = tree(&htb(0, 100));
        assert_eq!(shape(&first), shape(&tree(&htb(7, 999))));
        let class = "class htb 1:1 root prio 0 rate 9Mbit ceil 9Mbit\n";
        let second = tree(&(htb(0, 100) + class));
        assert_ne!(shape(&first), shape(&second));
        let faster = class.replace("9M", "8M");
        assert_ne!(shape(&second), shape(&tree(&(htb(0, 100) + &faster))));
    }

    #[test]
    fn what_moves_is_told_with_rates_lines_and_the_thickness_of_a_share() {
        let at = |bytes: u64| {
            tree(&format!(
                "qdisc prio 1: root\n Sent {bytes} bytes 9 pkt (dropped 0, overlimits 0 requeues 0)\n\
                 qdisc pfifo 2: parent 1:1\n Sent {} bytes 9 pkt (dropped 0, overlimits 0 requeues 0)\n",
                bytes / 2
            ))
        };
        let mut now = at(3_000_000);
        now.since(&at(1_000_000), 1_000_000_000);
        let told: serde_json::Value = serde_json::from_str(&rates(&now)).expect("JSON");
        let of = |n: usize| (&told["nodes"][n]["label"], &told["nodes"][n]["stroke"]);
        assert_eq!(of(0), (&"16.0 Mbit/s".into(), &9.0.into()));
        assert_eq!(of(1), (&"8.00 Mbit/s".into(), &5.2.into()), "{told}");
        assert_eq!(told["nodes"][0]["lines"][0], "sent 9 p, 3.00 MB");
        assert_eq!(told["state"], "rates over 1.00 s");
        let page = live(&now, 500);
        assert!(page.contains("const every=500,") && page.contains(">16.0 Mbit/s<"));
        assert!(!html(&now).contains("rates.json"));
        // A counter that was reset has no rate.
        let mut again = at(10);
        again.since(&now, 1_000_000_000);
        assert!(again.nodes.iter().all(|node| node.rates.is_none()));
    }
}
