//! A page with a connection's graphs. It is a single file that contains the packets as columns and loads nothing else.

use super::series::subtitle;
use super::svg::escape;
use super::{ConnectionGraph, Packet, bands, thin};
use crate::why::Cause;
use base64::Engine as _;
use core::fmt::Write;
use plot::viewer::{self, quoted};

const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");

/// The name space of elements that the script makes, which names no address to ask.
const SVG: &str = "http:\\u002f/www.w3.org/2000/svg";

/// The columns, one after the other, each aligned to eight bytes.
#[derive(Default)]
struct Columns {
    octets: Vec<u8>,
    /// Name, type, offset and count of each, as JavaScript.
    index: String,
}

impl Columns {
    fn add<const N: usize>(
        &mut self,
        name: &str,
        kind: &str,
        values: impl Iterator<Item = [u8; N]>,
    ) {
        while !self.octets.len().is_multiple_of(8) {
            self.octets.push(0);
        }
        let start = self.octets.len();
        for value in values {
            self.octets.extend_from_slice(&value);
        }
        let count = (self.octets.len() - start) / N;
        // Writing to a string cannot fail.
        let _ = write!(self.index, "[\"{name}\",\"{kind}\",{start},{count}],");
    }
}

/// Draws a page with all kinds of graphs, for both directions.
///
/// Its size is at most about 20 MB: [`super::PAGE_PACKETS`] packets, and as many marked ones.
#[must_use]
pub fn html(graph: &ConnectionGraph) -> String {
    let kept = thin::packets(graph);
    let mut subtitle = subtitle(graph);
    if kept.len() < graph.packets.len() {
        let _ = write!(
            subtitle,
            "; this page has {} of them: extremes, and what is marked",
            kept.len()
        );
    }
    let title = format!("{} ↔ {}", graph.a, graph.b);
    let columns = columns(graph, &kept);
    let sorted = kept
        .iter()
        .map(|&index| graph.packets[index].time)
        .is_sorted();
    let about = format!(
        "{{a:{},b:{},letters:[{},{}],firstPacket:{},sorted:{sorted},svg:\"{SVG}\",causes:[{}],columns:[{}]}}",
        quoted(&graph.a),
        quoted(&graph.b),
        quoted(&graph.letters.0),
        quoted(&graph.letters.1),
        graph.first_packet,
        causes(graph),
        columns.index
    );
    let data = base64(&columns.octets);
    let mut page = String::with_capacity(data.len() + 120_000);
    let mut rest = PAGE;
    while let Some((before, after)) = rest.split_once('@') {
        page.push_str(before);
        let Some((name, after)) = after.split_once('@') else {
            break;
        };
        match name {
            "TITLE" => page.push_str(&escape(&title)),
            "SUBTITLE" => page.push_str(&escape(&subtitle)),
            "STYLE" => page.push_str(&viewer::style()),
            "UPLOT" => page.push_str(viewer::UPLOT),
            "LOOKS" => page.push_str(&viewer::looks()),
            "SCRIPT" => page.push_str(&viewer::script(&[SCRIPT])),
            "ABOUT" => page.push_str(&about),
            _ => page.push_str(&data),
        }
        rest = after;
    }
    page.push_str(rest);
    page
}

/// Name and colour of each cause, as JavaScript; nothing without bands.
fn causes(graph: &ConnectionGraph) -> String {
    let mut text = String::new();
    for cause in Cause::all().filter(|_| !graph.bands.is_empty()) {
        let name = quoted(cause.rule().name);
        // Writing to a string cannot fail.
        let _ = write!(text, "[{name},\"{}\"],", bands::colour(cause));
    }
    text
}

fn columns(graph: &ConnectionGraph, kept: &[usize]) -> Columns {
    let mut columns = Columns::default();
    let packets = || kept.iter().map(|&index| &graph.packets[index]);
    let seconds = |packet: &Packet| packet.time as f64 / 1e9;
    columns.add("time", "f8", packets().map(|p| seconds(p).to_le_bytes()));
    columns.add(
        "sequence",
        "f8",
        packets().map(|p| (p.sequence as f64).to_le_bytes()),
    );
    let acks = packets().map(|p| (p.acknowledgment as f64).to_le_bytes());
    columns.add("acknowledgment", "f8", acks);
    columns.add("total", "f8", totals(graph, kept).map(f64::to_le_bytes));
    columns.add("number", "u4", packets().map(|p| p.number.to_le_bytes()));
    columns.add("length", "u4", packets().map(|p| p.length.to_le_bytes()));
    columns.add("window", "u4", packets().map(|p| p.window.to_le_bytes()));
    columns.add(
        "inFlight",
        "u4",
        packets().map(|p| p.in_flight.to_le_bytes()),
    );
    columns.add("rtt", "f4", packets().map(|p| p.rtt.to_le_bytes()));
    columns.add("flags", "u2", packets().map(|p| p.flags.to_le_bytes()));
    columns.add("marks", "u2", packets().map(|p| p.marks.0.to_le_bytes()));
    let mut at = 0;
    let sacks: Vec<_> = graph
        .sacks
        .iter()
        .filter_map(|sack| {
            while kept
                .get(at)
                .is_some_and(|index| *index < sack.packet as usize)
            {
                at += 1;
            }
            (kept.get(at) == Some(&(sack.packet as usize))).then_some((at as u32, sack))
        })
        .take(thin::PAGE_PACKETS)
        .collect();
    columns.add(
        "sackPacket",
        "u4",
        sacks.iter().map(|(at, _)| at.to_le_bytes()),
    );
    let lefts = sacks
        .iter()
        .map(|(_, sack)| (sack.left as f64).to_le_bytes());
    columns.add("sackLeft", "f8", lefts);
    let rights = sacks
        .iter()
        .map(|(_, sack)| (sack.right as f64).to_le_bytes());
    columns.add("sackRight", "f8", rights);
    let bands = || graph.bands.iter();
    let second = |time: i64| (time as f64 / 1e9).to_le_bytes();
    columns.add("bandFrom", "f8", bands().map(|band| second(band.from)));
    columns.add("bandTo", "f8", bands().map(|band| second(band.to)));
    let cause = |band: &super::Band| band.cause as u16 * 2 + u16::from(band.from_a);
    columns.add("band", "u2", bands().map(|band| cause(band).to_le_bytes()));
    columns
}

/// For each packet kept, the payload that its sender had sent up to it.
fn totals<'a>(graph: &'a ConnectionGraph, kept: &'a [usize]) -> impl Iterator<Item = f64> + 'a {
    let (mut totals, mut next) = ([0_u64; 2], 0);
    kept.iter().map(move |&index| {
        while next <= index {
            let packet = &graph.packets[next];
            totals[usize::from(packet.from_a())] += u64::from(packet.length);
            next += 1;
        }
        totals[usize::from(graph.packets[index].from_a())] as f64
    })
}

/// RFC 4648, section 4.
fn base64(octets: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_as_rfc_4648_has_it() {
        for (octets, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(octets.as_bytes()), text);
        }
    }
}
