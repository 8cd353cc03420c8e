//! tshark's analysis of the TCP streams of a capture.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

/// Address and port.
pub(crate) type End = (IpAddr, u16);

/// A TCP stream.
pub(crate) struct Stream {
    /// tshark's number.
    pub(crate) number: u64,
    /// The sender of its first packet, and the other end.
    pub(crate) ends: [End; 2],
    /// Time of its first packet and of its last, in nanoseconds since 1970.
    pub(crate) times: [i64; 2],
    /// Each end's counters, by the names of headend's columns.
    pub(crate) counts: [BTreeMap<&'static str, u64>; 2],
}

/// Fragments and segments are analysed as captured, whatever their checksums.
const PREFERENCES: &[&str] = &[
    "ip.defragment:FALSE",
    "ipv6.defragment:FALSE",
    "tcp.desegment_tcp_streams:FALSE",
    "tcp.check_checksum:FALSE",
];

/// Fields that describe a packet.
const FIELDS: &[&str] = &[
    "frame.protocols",
    "frame.time_epoch",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "tcp.stream",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.len",
    "tcp.flags",
    "tcp.window_size_scalefactor",
];

/// Fields of tshark's analysis, each with the column that it is counted in: retransmissions of any kind first.
const ANALYSIS: &[(&str, &str)] = &[
    ("tcp.analysis.retransmission", "retransmitted_packets"),
    ("tcp.analysis.fast_retransmission", "fast_retransmissions"),
    (
        "tcp.analysis.spurious_retransmission",
        "spurious_retransmissions",
    ),
    ("tcp.analysis.out_of_order", "out_of_order_packets"),
    ("tcp.analysis.keep_alive", "keep_alives"),
    ("tcp.analysis.zero_window_probe", "probe_packets"),
    ("tcp.analysis.zero_window", "zero_win_adv"),
    ("tcp.analysis.duplicate_ack", DUPLICATES),
];

/// Counted for the direction opposite to the packet's.
const DUPLICATES: &str = "duplicate_acks";

/// Between the fields of a packet; tshark writes a tab as `\t` within one.
const TAB: char = '\t';

/// Separates the values of a field that occurs several times in a packet.
const SEVERAL: char = ';';

/// All streams of a capture, ordered by their first packets; `None` if tshark cannot read it.
///
/// # Errors
/// tshark cannot be started, or its output has an unexpected form.
pub(crate) fn streams(file: &Path) -> Result<Option<Vec<Stream>>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-Y", "tcp.stream", "-T", "fields"]);
    command.args(["-E", "occurrence=a", "-E", &format!("aggregator={SEVERAL}")]);
    for preference in PREFERENCES {
        command.args(["-o", preference]);
    }
    let analysis = ANALYSIS.iter().map(|(field, _)| field);
    for field in FIELDS.iter().chain(analysis) {
        command.args(["-e", field]);
    }
    let output = command.arg("-r").arg(file).output().context("tshark")?;
    let text = String::from_utf8(output.stdout).context("tshark's output")?;
    if text.is_empty() && !output.status.success() {
        return Ok(None);
    }
    let mut streams: Vec<Stream> = Vec::new();
    for line in text.lines() {
        let packet = Packet::new(line);
        if let Some(packet) = packet.with_context(|| format!("tshark says {line:?}"))? {
            packet.add_to(&mut streams);
        }
    }
    Ok(Some(streams))
}

/// A packet's line.
struct Packet<'a> {
    fields: BTreeMap<&'static str, &'a str>,
    stream: u64,
    source: End,
    destination: End,
    time: i64,
}

impl<'a> Packet<'a> {
    /// `None` for a segment quoted in an ICMP message.
    fn new(line: &'a str) -> Result<Option<Packet<'a>>> {
        let names = FIELDS
            .iter()
            .copied()
            .chain(ANALYSIS.iter().map(|(field, _)| *field));
        let fields: BTreeMap<&str, &str> = names.zip(line.split(TAB)).collect();
        // The protocols before the first TCP encapsulate it; after it may come its content, even another IP and
        // TCP.
        let protocols = fields["frame.protocols"].split(':');
        let before: Vec<&str> = protocols.take_while(|name| *name != "tcp").collect();
        if before.contains(&"icmp") || before.contains(&"icmpv6") {
            return Ok(None);
        }
        let network = before
            .iter()
            .rfind(|name| matches!(**name, "ip" | "ipv6"))
            .context("no IP")?;
        let place = before.iter().filter(|name| name == &network).count() - 1;
        let (from, to) = match *network {
            "ip" => ("ip.src", "ip.dst"),
            _ => ("ipv6.src", "ipv6.dst"),
        };
        let end = |address: &str, port: &str| -> Result<End> {
            let address = fields[address].split(SEVERAL).nth(place);
            let address: IpAddr = address.context("no address")?.parse()?;
            Ok((address.to_canonical(), first(fields[port]).parse()?))
        };
        Ok(Some(Packet {
            stream: first(fields["tcp.stream"]).parse()?,
            source: end(from, "tcp.srcport")?,
            destination: end(to, "tcp.dstport")?,
            time: nanoseconds(fields["frame.time_epoch"])?,
            fields,
        }))
    }

    fn number(&self, field: &str) -> u64 {
        let text = first(self.fields[field]);
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).unwrap_or(0),
            None => text.parse().unwrap_or(0),
        }
    }

    fn add_to(&self, streams: &mut Vec<Stream>) {
        let known = streams
            .iter()
            .rposition(|stream| stream.number == self.stream);
        let at = known.unwrap_or_else(|| {
            streams.push(Stream {
                number: self.stream,
                ends: [self.source, self.destination],
                times: [self.time; 2],
                counts: Default::default(),
            });
            streams.len() - 1
        });
        let stream = &mut streams[at];
        stream.times[1] = self.time;
        let side = usize::from(self.source != stream.ends[0]);
        self.count(&mut stream.counts, side);
    }

    fn count(&self, counts: &mut [BTreeMap<&'static str, u64>; 2], side: usize) {
        let flags = self.number("tcp.flags");
        let length = self.number("tcp.len");
        let mut add = |side: usize, column: &'static str, count: u64| {
            *counts[side].entry(column).or_default() += count;
        };
        add(side, "packets", 1);
        add(side, "data_packets", u64::from(length > 0));
        add(side, "data_bytes", length);
        add(side, "fins", flags & 1);
        add(side, "syns", flags >> 1 & 1);
        add(side, "resets", flags >> 2 & 1);
        for &(field, column) in ANALYSIS {
            let to = if column == DUPLICATES { 1 - side } else { side };
            add(to, column, u64::from(!self.fields[field].is_empty()));
        }
        // The window factor of a packet without SYN: -1 and -2 mean that there is none.
        if flags & 2 == 0 {
            let factor = self.number("tcp.window_size_scalefactor");
            counts[side].insert("window_scale", u64::from(factor.max(1).ilog2()));
        }
    }
}

/// The value of the outermost occurrence.
fn first(values: &str) -> &str {
    values.split(SEVERAL).next().unwrap_or_default()
}

/// Parses seconds with a fraction of up to nine digits, or more for an invalid fraction.
fn nanoseconds(text: &str) -> Result<i64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction: i64 = format!("{fraction:0<9}").parse()?;
    let whole: i64 = seconds.parse()?;
    let sign = if seconds.starts_with('-') { -1 } else { 1 };
    Ok(whole * 1_000_000_000 + sign * fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_as_many_digits_as_the_capture() {
        assert_eq!(nanoseconds("12.345678").unwrap(), 12_345_678_000);
        assert_eq!(nanoseconds("-1.5").unwrap(), -1_500_000_000);
        assert_eq!(nanoseconds("7").unwrap(), 7_000_000_000);
        assert_eq!(nanoseconds("1.2000000001").unwrap(), 3_000_000_001);
    }
}
