//! From a capture file to a whole report, as the command prints it.

use capfile::{Block, Reader};
use jiff::tz::TimeZone;
use std::fs::File;
use std::path::Path;
use trace::text::{self, About, Frame, Head, LongOptions, Numeric, Print, Printed, ReportCounts};
use trace::{Analyzer, Config, Connection, Finished, Nobody, Segment};
use wire::checksum;
use wire::packet::{Packet, decode};
use wire::tcp::{Tcp, TcpError};

/// What was read.
pub(crate) struct Input {
    counts: ReportCounts,
    connections: Vec<Connection>,
    end: i64,
    /// The packets, printed.
    packets: String,
}

/// What to do with each packet.
#[derive(Default)]
struct Reading {
    /// How many packets to read.
    limit: Option<u64>,
    /// Leave out those with wrong checksums, and print all.
    print: bool,
}

/// The zone that the expected outputs were made in, by the rule that held until 2006.
fn eastern() -> TimeZone {
    TimeZone::posix("EST5EDT,M4.1.0,M10.5.0").expect("a rule")
}

/// Prints a packet with its number and time.
fn print_packet(
    out: &mut String,
    (number, time): (u64, i64),
    frame: Frame<'_>,
    packet: &Packet<'_>,
) {
    let printed = Printed {
        number,
        time,
        frame: Some(frame),
        packet,
        bases: [None; 2],
    };
    let zone = eastern();
    let print = Print {
        names: &Numeric,
        zone: &zone,
        hex: true,
        checksums: true,
    };
    text::packet(out, &printed, &print).unwrap();
}

/// The finished connections in the order of their first packets, with their numbers.
fn numbered(finished: &[Finished]) -> Vec<Connection> {
    let mut connections: Vec<Connection> = finished
        .iter()
        .map(|finished| {
            let mut connection = Connection::default();
            connection.thaw(&finished.octets).unwrap();
            connection
        })
        .collect();
    connections.sort_by_key(|connection| connection.first_packet);
    for (connection, number) in connections.iter_mut().zip(1..) {
        connection.number = number;
    }
    connections
}

fn read(path: &Path, reading: &Reading) -> Input {
    let mut reader = Reader::new(File::open(path).unwrap()).unwrap();
    let mut block = Block::new();
    let mut analyzer = Analyzer::new(Config::default());
    let mut counts = ReportCounts {
        files: 1,
        bad_checksums: reading.print.then_some([0; 3]),
        ..ReportCounts::default()
    };
    let (mut first, mut last, mut clock, mut end) = (None, 0, trace::Clock::default(), 0);
    let mut packets = String::new();
    'file: while reader.read_block(&mut block).unwrap() {
        for record in block.records() {
            let mut packet = Packet::new();
            let octets = block.bytes(record);
            if decode(record.link, octets, record.length, &mut packet).is_err() {
                end = record.time_ns;
                continue;
            }
            if Some(counts.packets) == reading.limit {
                break 'file;
            }
            end = record.time_ns;
            clock.tick(end);
            counts.packets += 1;
            first.get_or_insert(end);
            last = end;
            if reading.print {
                let frame = Frame {
                    link: record.link,
                    octets,
                    length: record.length,
                };
                print_packet(&mut packets, (counts.packets, end), frame, &packet);
            }
            if let Some(bad) = &mut counts.bad_checksums {
                let checks = [checksum::ip_ok(packet.network), checksum::tcp_ok(&packet)];
                if let Some(wrong) = checks.iter().position(|right| *right == Some(false)) {
                    bad[wrong] += 1;
                    continue;
                }
            }
            match Tcp::parse(&packet) {
                Ok(ref tcp) => {
                    counts.tcp += 1;
                    counts.too_short += u64::from(tcp.options.cut || tcp.options.malformed);
                    let segment = Segment::new(counts.packets, end, clock.now(), &packet, tcp, 0);
                    analyzer.packet(&segment, packet.layers.as_slice(), &mut Nobody);
                }
                Err(TcpError::Truncated) => counts.too_short += 1,
                Err(_) => {}
            }
        }
    }
    counts.elapsed = (last - first.unwrap_or(last)).max(0);
    analyzer.finish();
    let connections = numbered(&analyzer.take_finished());
    counts.connections = connections.len() as u64;
    Input {
        counts,
        connections,
        end,
        packets,
    }
}

fn head(input: &Input, name: &str, head: Head) -> String {
    let mut out = String::new();
    text::arguments(&mut out, &[name], head).unwrap();
    out.push_str(&input.packets);
    head.write(&mut out, &input.counts).unwrap();
    out
}

/// `tcptrace -lnrW`.
pub(crate) fn long(path: &Path, name: &str) -> String {
    let input = read(path, &Reading::default());
    let mut out = head(&input, name, Head::default());
    let zone = eastern();
    let options = LongOptions {
        rtt: true,
        owin: true,
    };
    for connection in &input.connections {
        if connection.number > 1 {
            out.push_str("================================\n");
        }
        let about = About {
            names: &Numeric,
            zone: &zone,
            pair: connection.number,
            file: name,
            end: input.end,
        };
        text::long(&mut out, connection, &about, options).unwrap();
    }
    out
}

/// `tcptrace -n`.
pub(crate) fn short(path: &Path, name: &str) -> String {
    listing(path, name, &Reading::default())
}

/// `tcptrace -np -E100 --checksum`.
pub(crate) fn packets(path: &Path, name: &str) -> String {
    let reading = Reading {
        limit: Some(100),
        print: true,
    };
    listing(path, name, &reading)
}

fn listing(path: &Path, name: &str, reading: &Reading) -> String {
    let input = read(path, reading);
    let brief = Head {
        brief: true,
        ..Head::default()
    };
    let mut out = head(&input, name, brief);
    let name_of = |connection: &Connection| {
        let mut name = String::new();
        text::brief_name(&mut name, connection, &Numeric, connection.number).unwrap();
        name
    };
    let names: Vec<String> = input.connections.iter().map(name_of).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    for (connection, name) in input.connections.iter().zip(&names) {
        text::brief(&mut out, connection, name, width, connection.number).unwrap();
    }
    out
}
