//! Trees as pictures and as a page.

use std::fmt::Write;

use super::layout::{LINE, Layout, PAD, Place, lay_out};
use super::model::{Join, Kind, Tree};
use super::text::printable;

/// Pixels of heading and legend.
const HEADING: u32 = 84;

/// Colours, light and dark; told apart also by who sees no red or green, and by border and text besides.
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
.q .unknown rect{fill:#fff;stroke:#c0392b;stroke-dasharray:5 3}
.q .default rect{stroke-width:3;stroke:#b35900}
.q path{fill:none;stroke:#8c959f;stroke-width:1.3}
.q path.sends{stroke:#c77700;stroke-dasharray:6 3}.q path.asks{stroke:#009e73;stroke-dasharray:2 3;stroke-width:1.8}
.q marker path{stroke:none;fill:#c77700}.q marker.g path{fill:#009e73}
@media (prefers-color-scheme:dark){.q{background:#15181c}.q text{fill:#e6edf3}.q .s,.q .n{fill:#9aa4af}
.q .d{fill:#ffb454}.q .interface rect,.q .device rect{fill:#e6edf3;stroke:#e6edf3}
.q .interface text,.q .device text{fill:#15181c}.q .qdisc rect{fill:#0f3350}.q .class rect{fill:#15181c}
.q .filter rect{fill:#3d2d0a}.q .group rect{fill:#262b31}.q .unknown rect{fill:#15181c}
.q .default rect{stroke:#ffb454}}";

/// The picture.
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
    for edge in &tree.edges {
        let (from, to) = (&layout.places[edge.from], &layout.places[edge.to]);
        let (class, marker) = match edge.join {
            Join::Holds => ("holds", ""),
            Join::Sends => ("sends", " marker-end=\"url(#sends)\""),
            Join::Asks => ("asks", " marker-end=\"url(#asks)\""),
        };
        let way = match edge.join {
            Join::Holds => held(from, to),
            _ => sent(from, to),
        };
        let _ = writeln!(out, "<path class=\"{class}\" d=\"{way}\"{marker}/>");
    }
    boxes(tree, &layout, &mut out);
    out.push_str("</svg>\n");
    out
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
            "<g class=\"{class}\"><rect x=\"{x}\" y=\"48\" width=\"16\" height=\"12\" rx=\"2\"/></g>\
             <text class=\"s\" x=\"{}\" y=\"58\">{name}</text>",
            x + 22
        );
        x += 100;
    }
    for (class, name) in [("sends", "sends to"), ("asks", "goes on with")] {
        let _ = write!(
            out,
            "<path class=\"{class}\" d=\"M{x} 54H{}\" marker-end=\"url(#{class})\"/>\
             <text class=\"s\" x=\"{}\" y=\"58\">{name}</text>",
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
        Kind::Class => "class",
        Kind::Filter => "filter",
        Kind::Group => "group",
        Kind::Device => "device",
        Kind::Unknown => "unknown",
    }
}

fn boxes(tree: &Tree, layout: &Layout, out: &mut String) {
    for (node, place) in tree.nodes.iter().zip(&layout.places) {
        let class = class_of(node.kind);
        let default = if node.is_default { " default" } else { "" };
        let radius = match node.kind {
            Kind::Class => 9,
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
        whole.extend(node.numbers.and_then(|numbers| numbers.words()));
        let _ = write!(
            out,
            "<g class=\"{class}{default}\" id=\"n{}\"><title>{}</title>\
             <rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{radius}\"/>",
            node.id,
            escaped(&whole.join("\u{a}"))
        );
        let mut base = y + PAD + 10;
        for (at, line) in place.lines.iter().enumerate() {
            let class = if at == 0 { " class=\"t\"" } else { "" };
            let left = x + PAD;
            let _ = write!(
                out,
                "<text{class} x=\"{left}\" y=\"{base}\">{}</text>",
                escaped(line)
            );
            base += LINE;
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

/// From the right of what holds to the left of what is held; in a grid, through the gap above its row.
fn held(from: &Place, to: &Place) -> String {
    let (x0, y0) = (from.x + from.width, from.y + from.height / 2);
    let (x1, y1) = (to.x, to.y + to.height / 2);
    if to.is_inner {
        let gap = to.y.saturating_sub(7);
        let bus = x0 + 32;
        let in_front = x1.saturating_sub(12);
        return format!("M{x0} {y0}H{bus}V{gap}H{in_front}V{y1}H{x1}");
    }
    let middle = x1.saturating_sub(32).max(x0);
    format!("M{x0} {y0}C{middle} {y0} {middle} {y1} {x1} {y1}")
}

/// From a filter to what it names: around the left side where both stand in a column, else straight to it.
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

/// A page of its own with the picture: who points at a box sees what it is joined to.
pub(super) fn html(tree: &Tree) -> String {
    let joins: Vec<(usize, usize)> = tree.edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let joins = serde_json::to_string(&joins).unwrap_or_else(|_| "[]".to_owned());
    let picture = svg(tree);
    let title = escaped(&tree.title);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<style>body{{margin:0}}\
         @media (prefers-color-scheme:dark){{body{{background:#15181c}}}}\
         .q.some g[id]{{opacity:.25}}.q.some path{{opacity:.12}}.q.some .on{{opacity:1!important}}</style></head>\n\
         <body>\n{picture}<script>\nconst joins={joins},q=document.querySelector('svg.q'),\
         lines=[...q.children].filter(e=>e.tagName==='path').slice(2);\n\
         const box=i=>document.getElementById('n'+i);\n\
         q.addEventListener('mouseover',e=>{{const g=e.target.closest('g[id]');\
         q.querySelectorAll('.on').forEach(x=>x.classList.remove('on'));q.classList.toggle('some',!!g);if(!g)return;\
         const id=+g.id.slice(1);g.classList.add('on');joins.forEach(([a,b],i)=>{{if(a===id||b===id){{\
         lines[i].classList.add('on');box(a).classList.add('on');box(b).classList.add('on')}}}})}});\n\
         </script>\n</body></html>\n"
    )
}

/// `text` for XML: nothing in it is markup, nothing is a control character but line feeds.
fn escaped(text: &str) -> String {
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
