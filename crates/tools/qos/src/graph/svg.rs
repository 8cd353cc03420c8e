//! Renders trees as SVG.

use std::fmt::Write;

use super::layout::{AXIS, CURVE, LINE, Layout, PAD, Place, lay_out};
use super::model::{Edge, Join, Kind, Node, Tree};
use crate::printable;
use crate::rates::bits;

/// Height of the heading and legend in pixels.
pub(super) const HEADING: u32 = 84;

/// Colours, light and dark. They also differ for readers with red-green colour blindness, and by border and text.
const STYLE: &str = "\
.q{font:12px 'DejaVu Sans Mono',Menlo,Consolas,monospace;background:#fff}
.q text{fill:#1b1f24;white-space:pre}.q .h{font:600 17px system-ui,sans-serif}
.q .s{font:12px system-ui,sans-serif;fill:#57606a}
.q .t{font-weight:600}.q .d{font-weight:600;fill:#b35900}.q .n{fill:#57606a}
.q rect{stroke-width:1.3}
.q .interface rect,.q .device rect{fill:#24292f;stroke:#24292f}
.q .interface text,.q .device text{fill:#fff}
.q .qdisc rect{fill:#ddeeff;stroke:#0072b2}
.q .class rect{fill:#fff;stroke:#0072b2}
.q .filter rect{fill:#fff3dc;stroke:#d08700}
.q .group rect{fill:#f3f4f6;stroke:#8c959f}
.q .fold rect{fill:#eaf5ee;stroke:#00795a;stroke-width:2}
.q .k{stroke:#0072b2;stroke-width:1.5;stroke-linejoin:round}.q .a{stroke:#8c959f;stroke-width:1}
.q .z{font-size:10px;fill:#57606a}.q .o{font-weight:600;fill:#00795a;text-decoration:underline}
.q .unknown rect{fill:#fff;stroke:#c0392b;stroke-dasharray:5 3}
.q .default rect{stroke-width:3;stroke:#b35900}
.q path{fill:none;stroke:#8c959f;stroke-width:1.3}
.q path.sends{stroke:#c77700;stroke-dasharray:6 3}.q path.asks{stroke:#009e73;stroke-dasharray:2 3;stroke-width:1.8}
.q .r{font-weight:600;fill:#00507d;paint-order:stroke;stroke:#fff;stroke-width:3px}
.q marker path{stroke:none;fill:#c77700}.q marker.g path{fill:#009e73}
@media (prefers-color-scheme:dark){.q{background:#15181c}.q text{fill:#e6edf3}.q .s,.q .n{fill:#9aa4af}
.q .d{fill:#ffb454}.q .interface rect,.q .device rect{fill:#e6edf3;stroke:#e6edf3}
.q .interface text,.q .device text{fill:#15181c}.q .qdisc rect{fill:#0f3350}.q .class rect{fill:#15181c}
.q .filter rect{fill:#3d2d0a}.q .group rect{fill:#262b31}.q .unknown rect{fill:#15181c}
.q .fold rect{fill:#12352a;stroke:#3fc796}.q .o{fill:#3fc796}.q .k{stroke:#8fd0ff}.q .z{fill:#9aa4af}
.q .default rect{stroke:#ffb454}.q .r{fill:#8fd0ff;stroke:#15181c}}";

/// Width in pixels of a line without traffic, and the extra width of the busiest line.
const STROKE: f64 = 1.3;
const STROKE_MORE: f64 = 7.7;
/// Width in pixels of the rate at a line.
pub(super) const LABEL: u32 = 92;
/// Pixels between a line and the rate above it.
const ABOVE: u32 = 8;
/// Vertical position in pixels of the note on the rates.
const STATE: u32 = 76;

/// Renders the picture.
pub(super) fn svg(tree: &Tree) -> String {
    let layout = lay_out(tree, HEADING);
    let (width, height) = (layout.width.max(560), layout.height);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"q\" role=\"img\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n<title>{}</title>\n<style>{STYLE}</style>\n<defs>",
        escaped(&tree.title)
    );
    for (name, class) in [("sends", ""), ("asks", " class=\"g\"")] {
        let _ = write!(
            out,
            "<marker id=\"{name}\"{class} viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" \
             markerHeight=\"8\" orient=\"auto\" markerUnits=\"userSpaceOnUse\"><path d=\"M0 0L8 4L0 8z\"/></marker>"
        );
    }
    out.push_str("</defs>\n");
    let _ = writeln!(
        out,
        "<text class=\"h\" x=\"24\" y=\"34\">{}</text>",
        escaped(&tree.title)
    );
    legend(&mut out);
    if tree.has_rates {
        let _ = writeln!(
            out,
            "<text class=\"s\" id=\"state\" x=\"24\" y=\"{STATE}\">{}</text>",
            escaped(&tree.state)
        );
    }
    let busiest = busiest_bps(tree);
    for edge in &tree.edges {
        line(tree, edge, &layout, busiest, &mut out);
    }
    boxes(tree, &layout, &mut out);
    out.push_str("</svg>\n");
    out
}

/// The rate of the busiest node, in bits per second.
pub(super) fn busiest_bps(tree: &Tree) -> u64 {
    let rates = tree.nodes.iter().filter_map(|node| node.rates);
    rates.map(|rates| rates.bps).max().unwrap_or(0)
}

/// The width in pixels of the line to `node`.
pub(super) fn stroke(node: &Node, busiest_bps: u64) -> f64 {
    let share = node
        .rates
        .map_or(0.0, |rates| rates.bps as f64 / busiest_bps.max(1) as f64);
    ((STROKE + STROKE_MORE * share) * 10.0).round() / 10.0
}

/// The text at the line to `node`; empty if no rate is known.
pub(super) fn label(node: &Node) -> String {
    node.rates.map_or(String::new(), |rates| bits(rates.bps))
}

fn line(tree: &Tree, edge: &Edge, layout: &Layout, busiest_bps: u64, out: &mut String) {
    let (from, to) = (&layout.places[edge.from], &layout.places[edge.to]);
    let (class, marker) = match edge.join {
        Join::Holds => ("holds", ""),
        Join::Sends => ("sends", " marker-end=\"url(#sends)\""),
        Join::Asks => ("asks", " marker-end=\"url(#asks)\""),
    };
    let way = match edge.join {
        Join::Holds => held(from, to, if tree.has_rates { LABEL } else { 0 }),
        _ => sent(from, to),
    };
    let node = &tree.nodes[edge.to];
    let is_counted = tree.has_rates && edge.join == Join::Holds && node.numbers.is_some();
    if !is_counted {
        let _ = writeln!(out, "<path class=\"{class}\" d=\"{way}\"{marker}/>");
        return;
    }
    let id = node.id;
    let (wide, label) = (stroke(node, busiest_bps), label(node));
    let (x, y) = (to.x - 8, to.y + to.height / 2 - ABOVE);
    let _ = writeln!(
        out,
        "<path class=\"{class}\" id=\"e{id}\" style=\"stroke-width:{wide}px\" d=\"{way}\"/>\
         <text class=\"r\" id=\"r{id}\" text-anchor=\"end\" x=\"{x}\" y=\"{y}\">{label}</text>"
    );
}

fn legend(out: &mut String) {
    let mut x = 24;
    for (kind, name) in [
        (Kind::Qdisc, "discipline"),
        (Kind::Class, "class"),
        (Kind::Filter, "filter"),
    ] {
        let class = class_of(kind);
        let _ = write!(
            out,
            "<g class=\"{class} l\"><rect x=\"{x}\" y=\"48\" width=\"16\" height=\"12\" rx=\"2\"/>\
             <text class=\"s\" x=\"{}\" y=\"58\">{name}</text></g>",
            x + 22
        );
        x += 100;
    }
    for (class, name) in [("sends", "sends to"), ("asks", "goes on with")] {
        let _ = write!(
            out,
            "<g class=\"l\"><path class=\"{class}\" d=\"M{x} 54H{}\" marker-end=\"url(#{class})\"/>\
             <text class=\"s\" x=\"{}\" y=\"58\">{name}</text></g>",
            x + 30,
            x + 36
        );
        x += 110;
    }
    out.push('\n');
}

fn class_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Interface => "interface",
        Kind::Qdisc => "qdisc",
        Kind::Class | Kind::Tin => "class",
        Kind::Filter => "filter",
        Kind::Group => "group",
        Kind::Device => "device",
        Kind::Unknown => "unknown",
        Kind::Fold => "fold",
    }
}

fn boxes(tree: &Tree, layout: &Layout, out: &mut String) {
    for (node, place) in tree.nodes.iter().zip(&layout.places) {
        let class = class_of(node.kind);
        let default = if node.is_default { " default" } else { "" };
        let radius = match node.kind {
            Kind::Class | Kind::Tin => 9,
            Kind::Filter => 0,
            _ => 3,
        };
        let Place {
            x,
            y,
            width,
            height,
            ..
        } = place;
        let mut whole = vec![node.title.clone()];
        whole.extend(node.lines.iter().cloned());
        if place.slots == 0 {
            whole.extend(node.numbers.and_then(|numbers| numbers.words()));
        }
        let _ = write!(
            out,
            "<g class=\"{class}{default}\" id=\"n{}\"><title>{}</title>\
             <rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{radius}\"/>",
            node.id,
            escaped(&whole.join("\u{a}"))
        );
        let mut base = y + PAD + 10;
        for (at, line) in place.lines.iter().enumerate() {
            let class = match at {
                0 => " class=\"t\"",
                at if at + place.slots >= place.lines.len() => " class=\"n\"",
                _ => "",
            };
            let left = x + PAD;
            let _ = write!(
                out,
                "<text{class} x=\"{left}\" y=\"{base}\">{}</text>",
                escaped(line)
            );
            base += LINE;
        }
        if tree.has_past && node.has_past() {
            past(node.id, place, out);
        }
        if node.kind == Kind::Fold {
            let _ = write!(
                out,
                "<text class=\"d o\" text-anchor=\"end\" x=\"{}\" y=\"{}\">open</text>",
                x + width - PAD,
                y + PAD + 10
            );
        }
        if node.is_default {
            let _ = write!(
                out,
                "<text class=\"d\" text-anchor=\"end\" x=\"{}\" y=\"{}\">default</text>",
                x + width - PAD,
                y + PAD + 10
            );
        }
        out.push_str("</g>\n");
    }
}

/// The empty curve of the last minutes, and its axis of time with a mark for each minute. The page's script draws it.
fn past(id: usize, place: &Place, out: &mut String) {
    let (left, width) = (place.x + PAD, place.width - 2 * PAD);
    let bottom = place.y + place.height - AXIS - 4;
    let (top, high) = (bottom - CURVE + 5, CURVE - 5);
    let _ = write!(
        out,
        "<path class=\"a\" d=\"M{left} {bottom}h{width}M{left} {bottom}v4M{} {bottom}v3M{} {bottom}v3M{} {bottom}v4\"/>\
         <path class=\"k\" id=\"k{id}\" data-x=\"{left}\" data-y=\"{top}\" data-w=\"{width}\" data-h=\"{high}\" d=\"\"/>",
        left + width / 3,
        left + width * 2 / 3,
        left + width
    );
    let base = bottom + 12;
    for (class, anchor, x, text) in [
        ("z p", "start", left, ""),
        ("z", "end", left + width, "now"),
    ] {
        let _ = write!(
            out,
            "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x}\" y=\"{base}\">{text}</text>"
        );
    }
    let _ = write!(
        out,
        "<text class=\"z\" id=\"m{id}\" text-anchor=\"middle\" x=\"{}\" y=\"{base}\"></text>",
        left + width / 2
    );
}

/// The line from the right edge of the parent to the left edge of the child. In a grid, it runs through the gap above
/// the child's row. Its last `flat` pixels are horizontal.
fn held(from: &Place, to: &Place, flat: u32) -> String {
    let (x0, y0) = (from.x + from.width, from.y + from.height / 2);
    let (x1, y1) = (to.x, to.y + to.height / 2);
    if to.is_inner {
        let gap = to.y.saturating_sub(7);
        let bus = x0 + 32;
        let in_front = x1.saturating_sub(12);
        return format!("M{x0} {y0}H{bus}V{gap}H{in_front}V{y1}H{x1}");
    }
    let end = x1.saturating_sub(flat).max(x0);
    let middle = end.saturating_sub(32).max(x0);
    format!("M{x0} {y0}C{middle} {y0} {middle} {y1} {end} {y1}H{x1}")
}

/// The line from a filter to its target: around the left side if both are in one column, otherwise straight.
fn sent(from: &Place, to: &Place) -> String {
    let y1 = to.y + to.height / 2;
    if to.x > from.x + from.width {
        let (x0, y0) = (from.x + from.width, from.y + from.height / 2);
        let (right, left) = (x0 + 40, to.x.saturating_sub(40));
        return format!("M{x0} {y0}C{right} {y0} {left} {y1} {} {y1}", to.x);
    }
    let y0 = from.y + from.height / 2;
    let span = y0.abs_diff(y1);
    let bulge = from.x.min(to.x).saturating_sub(14 + span.min(400) / 16);
    format!("M{} {y0}C{bulge} {y0} {bulge} {y1} {} {y1}", from.x, to.x)
}

/// Escapes `text` for XML: no markup, and no control characters except line feeds.
pub(super) fn escaped(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(printable).collect();
    let mut out = String::with_capacity(text.len());
    for char in lines.join("\n").chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => {}
            other => out.push(other),
        }
    }
    out
}
