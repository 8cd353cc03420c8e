//! Graphs for xplot, file by file, against the checksums of those that tcptrace drew of its own captures.

use capfile::{Block, Reader};
use core::fmt::{self, Write};
use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use trace::text::Names;
use trace::xplot::{Direct, FileId, Graphs, Options, Plots, Sink};
use trace::{Analyzer, Config, Segment};
use wire::packet::{Packet, decode};
use wire::tcp::Tcp;

/// Keeps files in memory.
#[derive(Default)]
struct Files {
    names: Vec<String>,
    octets: Vec<Vec<u8>>,
    closed: Vec<bool>,
}

impl Sink for Files {
    fn open(&mut self, name: &str) -> FileId {
        self.names.push(name.into());
        self.octets.push(Vec::new());
        self.closed.push(false);
        FileId(self.names.len() as u32 - 1)
    }

    fn write(&mut self, file: FileId, octets: &[u8]) {
        assert!(!self.closed[file.0 as usize], "written after its end");
        self.octets[file.0 as usize].extend_from_slice(octets);
    }

    fn close(&mut self, file: FileId) {
        self.closed[file.0 as usize] = true;
    }

    fn discard(&mut self, file: FileId) {
        self.closed[file.0 as usize] = true;
        self.names[file.0 as usize].clear();
    }
}

impl Files {
    fn by_name(self) -> BTreeMap<String, Vec<u8>> {
        assert!(self.closed.iter().all(|closed| *closed), "every file ends");
        let files = self.names.into_iter().zip(self.octets);
        files.filter(|(name, _)| !name.is_empty()).collect()
    }
}

/// Addresses as tcptrace writes them: every group of IPv6 has four digits.
struct FourDigits;

impl Names for FourDigits {
    fn host(&self, address: IpAddr, out: &mut dyn Write) -> fmt::Result {
        let IpAddr::V6(address) = address else {
            return write!(out, "{address}");
        };
        let text = address.to_string();
        let groups = text.split(':').map(|group| match group {
            "" => String::new(),
            group => format!("{group:0>4}"),
        });
        out.write_str(&groups.collect::<Vec<_>>().join(":"))
    }

    fn port(&self, port: u16, out: &mut dyn Write) -> fmt::Result {
        write!(out, "{port}")
    }
}

/// Draws the first packets of a capture.
fn draw(capture: &Path, packets_max: u64, options: Options) -> BTreeMap<String, Vec<u8>> {
    let mut plots = Plots::new(options, Direct::new(Files::default()));
    plots.set_names(Box::new(FourDigits));
    let mut reader = Reader::new(File::open(capture).unwrap()).unwrap();
    let mut block = Block::new();
    let mut analyzer = Analyzer::new(Config::default());
    let (mut number, mut clock) = (0, trace::Clock::default());
    while reader.read_block(&mut block).unwrap() {
        for record in block.records() {
            let mut packet = Packet::new();
            clock.tick(record.time_ns);
            if decode(record.link, block.bytes(record), record.length, &mut packet).is_err() {
                continue;
            }
            number += 1;
            if number <= packets_max
                && let Ok(tcp) = Tcp::parse(&packet)
            {
                let segment = Segment::new(number, record.time_ns, clock.now(), &packet, &tcp, 0);
                analyzer.packet(&segment, packet.layers.as_slice(), &mut plots);
            }
        }
    }
    plots.finish().0.into_sink().by_name()
}

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata")
        .join(path)
}

fn capture(name: &str) -> PathBuf {
    testdata("trace/tcptrace").join(name)
}

/// The checksum of POSIX `cksum`: a CRC of the octets and then of how many there are.
fn cksum(octets: &[u8]) -> u32 {
    let mut length = octets.len();
    let mut tail = Vec::new();
    while length > 0 {
        tail.push(length as u8);
        length >>= 8;
    }
    let mut crc = 0_u32;
    for octet in octets.iter().chain(&tail) {
        crc ^= u32::from(*octet) << 24;
        for _ in 0..8 {
            crc = crc << 1 ^ if crc >> 31 == 1 { 0x04c1_1db7 } else { 0 };
        }
    }
    !crc
}

/// Every file that tcptrace draws, by name: its checksum and size.
fn expected(name: &str) -> BTreeMap<String, (u32, usize)> {
    let text = fs::read_to_string(testdata("trace-xplot").join(format!("{name}.xplots.cksum")));
    let text = text.unwrap();
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let sum = words.next()?.parse().ok()?;
        let size = words.next()?.parse().ok()?;
        Some((words.next()?.to_owned(), (sum, size)))
    });
    lines
        .filter(|(name, _)| !name.ends_with("_rwin.xpl"))
        .collect()
}

fn all() -> Options {
    Options {
        graphs: Graphs::ALL,
        ..Options::default()
    }
}

#[test]
fn draws_what_tcptrace_draws_but_for_the_written_differences() {
    let listed = fs::read_to_string(testdata("trace-xplot/differences.tsv")).unwrap();
    let listed: BTreeSet<(String, String)> = listed
        .lines()
        .skip(1)
        .map(|line| {
            let words: Vec<_> = line.split('\t').collect();
            (words[0].to_owned(), words[1].to_owned())
        })
        .collect();
    let mut differ = BTreeSet::new();
    let mut agree = 0;
    for entry in fs::read_dir(testdata("trace-xplot")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = file.strip_suffix(".xplots.cksum") else {
            continue;
        };
        let expected = expected(name);
        // tcptrace takes this one for no capture.
        if name == "nlanr.tsh.gz" {
            assert!(expected.is_empty());
            continue;
        }
        let drawn = draw(&capture(name), 1000, all());
        let drawn: BTreeMap<_, _> = drawn
            .into_iter()
            .map(|(name, octets)| (name, (cksum(&octets), octets.len())))
            .collect();
        let files: BTreeSet<_> = expected.keys().chain(drawn.keys()).collect();
        for file in files {
            if expected.get(file) == drawn.get(file) {
                agree += 1;
            } else {
                differ.insert((name.to_owned(), file.clone()));
            }
        }
    }
    assert_eq!(differ, listed);
    assert_eq!(agree, 445);
}
