//! `-p`, `-P` and `--dump_packet_data`: prints packets as text, before the report.

use std::fmt::Write as _;

use trace::text::{self, Frame, Print, Printed};
use trace::{Connection, Seen};
use wire::tcp::Tcp;
use wire::udp::Udp;

use crate::low::LowArgs;
use crate::report::Style;

/// Prints packets.
pub(super) struct Printer<'a> {
    print: Print<'a>,
    /// All packets, not only those of the chosen connections.
    pub(super) all: bool,
    data: bool,
    relative: bool,
    text: String,
}

impl<'a> Printer<'a> {
    /// `None` if nothing is to be printed.
    pub(super) fn new(style: &'a Style<'a>) -> Option<Printer<'a>> {
        let low: &LowArgs = &style.args.low;
        let all = low.print_all || low.print_data;
        (all || low.print).then(|| Printer {
            print: Print {
                names: style.names,
                zone: style.zone,
                hex: low.hex,
                checksums: low.checksum,
            },
            all,
            data: low.print_data,
            relative: low.relative,
            text: String::new(),
        })
    }

    /// The text printed since the last call.
    pub(super) fn text(&mut self) -> &mut String {
        &mut self.text
    }

    /// Any packet with its frame.
    pub(super) fn frame(&mut self, seen: &Seen<'_, '_>) {
        let frame = Frame {
            link: seen.record.link,
            octets: seen.frame,
            length: seen.record.length,
        };
        self.one(seen, Some(frame), [None, None]);
    }

    /// A packet of a chosen connection, or UDP flow.
    pub(super) fn chosen(&mut self, seen: &Seen<'_, '_>, of: Option<(&Connection, bool)>) {
        let bases = match of {
            Some((connection, from_a)) if self.relative => {
                let syn = |syn: Option<u64>| syn.map(|syn| syn as u32);
                let (a, b) = (syn(connection.a.syn), syn(connection.b.syn));
                if from_a { [a, b] } else { [b, a] }
            }
            _ => [None, None],
        };
        self.one(seen, None, bases);
    }

    fn one(&mut self, seen: &Seen<'_, '_>, frame: Option<Frame<'_>>, bases: [Option<u32>; 2]) {
        let printed = Printed {
            number: seen.number,
            time: seen.record.time_ns,
            frame,
            packet: seen.packet,
            bases,
        };
        // Formatting into a String cannot fail.
        let _ = text::packet(&mut self.text, &printed, &self.print);
        if self.data {
            let payload = match (Tcp::parse(seen.packet), Udp::parse(seen.packet)) {
                (Ok(tcp), _) => tcp.payload,
                (_, Ok(udp)) => udp.payload,
                _ => &[],
            };
            raw(&mut self.text, payload);
        }
    }
}

/// Prints bytes as text, other bytes in octal, in lines of about 70 characters, as tcptrace does.
fn raw(out: &mut String, octets: &[u8]) {
    if octets.is_empty() {
        return;
    }
    const RULE: &str = "========================================\n";
    out.push_str(RULE);
    let _ = writeln!(out, "   data ({} bytes):", octets.len());
    let mut column = 0;
    let mut octets = octets.iter().peekable();
    while let Some(&octet) = octets.next() {
        if octet == b'\r' && octets.next_if(|&&next| next == b'\n').is_some() {
            out.push('\n');
            column = 0;
        } else if octet.is_ascii_graphic() || octet == b' ' {
            out.push(char::from(octet));
            column += 1;
        } else {
            let _ = write!(out, "\\{octet:03o}");
            column += 4;
        }
        if column > 70 {
            out.push_str("\\\n");
            column = 0;
        }
    }
    if column != 0 {
        out.push_str("\\\n");
    }
    out.push_str(RULE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_dumped_as_text_with_octal_between() {
        let mut out = String::new();
        raw(&mut out, b"GET /\r\n\x00\xffz");
        let rule = "=".repeat(40);
        assert_eq!(
            out,
            format!("{rule}\n   data (10 bytes):\nGET /\n\\000\\377z\\\n{rule}\n")
        );
    }
}
