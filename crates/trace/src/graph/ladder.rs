//! The time line: packets as arrows between both ends, from top to bottom.

use super::chart::{BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION};
use super::svg::{escape, open};
use super::{ConnectionGraph, Marks, Packet, series};
use core::fmt::Write;

/// Limit of packets drawn; a longer ladder is not readable.
const ROWS_MAX: usize = 500;

const ROW: f64 = 20.0;
const TOP: f64 = 110.0;
const A: f64 = 330.0;
const B: f64 = 870.0;

/// Appends formatted text; writing to a string cannot fail.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {{
        let _ = write!($out, $($text)*);
    }};
}

/// Draws the first packets.
pub(super) fn draw(graph: &ConnectionGraph) -> String {
    let rows = graph.packets.len().min(ROWS_MAX);
    let height = TOP + ROW * (rows as f64 + 1.5);
    let title = format!("Time line: {} and {}", graph.a, graph.b);
    let mut subtitle = series::subtitle(graph);
    if rows < graph.packets.len() {
        put!(subtitle, "; the first {rows} of them follow");
    }
    let mut out = String::with_capacity(1 << 16);
    open(&mut out, 1200.0, height, &title, &subtitle);
    for (x, end) in [(A, &graph.a), (B, &graph.b)] {
        put!(
            out,
            "<text x=\"{x}\" y=\"85\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>\
             <path d=\"M{x} 92V{}\" stroke=\"#555\"/>\n",
            escape(end),
            height - ROW / 2.0
        );
    }
    put!(
        out,
        "<text x=\"90\" y=\"85\" fill=\"#555\">seconds</text>\n"
    );
    for (row, packet) in graph.packets.iter().take(rows).enumerate() {
        let y = TOP + ROW * (row as f64 + 0.5);
        arrow(&mut out, packet, y);
    }
    out.push_str("</svg>\n");
    out
}

fn arrow(out: &mut String, packet: &Packet, y: f64) {
    let colour = if packet.marks.has(Marks::RETRANSMITTED) {
        VERMILION
    } else if packet.marks.has(Marks::OUT_OF_ORDER) {
        PURPLE
    } else if packet.flags & 7 != 0 {
        BLACK
    } else if packet.marks.has(Marks::PROBE) || packet.marks.has(Marks::KEEP_ALIVE) {
        ORANGE
    } else if packet.length > 0 {
        BLUE
    } else {
        GREEN
    };
    let (from, head) = if packet.from_a() {
        (A, format!("H{B}m-8-4l8 4l-8 4"))
    } else {
        (B, format!("H{A}m8-4l-8 4l8 4"))
    };
    let (x, anchor) = if packet.from_a() {
        (A - 10.0, "end")
    } else {
        (B + 10.0, "start")
    };
    let time = packet.time as f64 / 1e9;
    put!(
        out,
        "<path d=\"M{from} {y}{head}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\
         <text x=\"90\" y=\"{y}\" dy=\".35em\" fill=\"#555\">{time:.6}</text>\
         <text x=\"{x}\" y=\"{y}\" dy=\".35em\" text-anchor=\"{anchor}\" font-size=\"11\">{}</text>\n",
        words(packet)
    );
    if packet.marks.0 & !Marks::FROM_A.0 != 0 {
        put!(
            out,
            "<text x=\"600\" y=\"{}\" text-anchor=\"middle\" font-size=\"11\" fill=\"{colour}\">{}</text>\n",
            y - 3.0,
            notes(packet)
        );
    }
}

/// Flags and numbers.
fn words(packet: &Packet) -> String {
    let mut text = String::new();
    for (flag, name) in [(2, "SYN"), (1, "FIN"), (4, "RST"), (8, "PSH"), (32, "URG")] {
        if packet.flags & flag != 0 {
            text.push_str(name);
            text.push(' ');
        }
    }
    if packet.space() > 0 {
        let end = packet.sequence + i64::from(packet.length);
        put!(text, "{}:{end} ({}) ", packet.sequence, packet.length);
    }
    if packet.ack() {
        put!(text, "ack {} win {}", packet.acknowledgment, packet.window);
    }
    text
}

/// Anything unusual about the packet.
fn notes(packet: &Packet) -> String {
    let notes = [
        (Marks::RETRANSMITTED, "retransmitted"),
        (Marks::OUT_OF_ORDER, "out of order"),
        (Marks::PROBE, "window probe"),
        (Marks::KEEP_ALIVE, "keep-alive"),
        (Marks::COPY, "copy of another"),
        (Marks::ZERO_WINDOW, "zero window"),
        (Marks::TRIPLE, "third duplicate ACK"),
        (Marks::SACK, "SACK"),
    ];
    let own = notes.iter().filter(|(mark, _)| packet.marks.has(*mark));
    own.map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
}
