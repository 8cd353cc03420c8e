//! Runs `headend trace` over randomly generated captures, split into several files and parts. The output must equal
//! that for the whole capture.
//!
//! `docs/trace-partitions.md` specifies this.

use capfile::{PcapWriter, Resolution};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use wire::link::LinkType;

/// Random numbers from a seed.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

/// A directory that is removed when dropped.
struct CaptureDirectory(PathBuf);

impl CaptureDirectory {
    fn new(name: &str) -> CaptureDirectory {
        let name = format!("headend-trace-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        CaptureDirectory(path)
    }

    /// The output of `headend trace`.
    fn trace(&self, words: &[&str]) -> Vec<u8> {
        let output = Command::new(env!("CARGO_BIN_EXE_headend"))
            .arg("trace")
            .args(words)
            .current_dir(&self.0)
            .env("TZ", "UTC")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
        output.stdout
    }
}

impl Drop for CaptureDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An IPv4 packet and its capture time.
struct Captured {
    time_ns: i64,
    octets: Vec<u8>,
}

const START: i64 = 1_700_000_000_000_000_000;

/// Packets of 20 consecutive connections, some hours apart, and some out of order.
fn packets(chance: &mut Chance, count: usize) -> Vec<Captured> {
    let mut time_ns = START;
    let mut next = [[0u32; 2]; 20];
    let packets = (0..count).map(|number| {
        let elapsed = chance.below(300_000_000) as i64;
        time_ns += match chance.below(40) {
            0 => chance.below(4 * 3600) as i64 * 1_000_000_000,
            1 => -(chance.below(5_000_000_000) as i64),
            _ => elapsed,
        };
        time_ns = time_ns.max(START);
        let (flow, back) = (chance.below(20) as usize, chance.one_in(2));
        let flags = match chance.below(20) {
            0..3 => 0x02,
            3 => 0x12,
            4 => 0x11,
            5 => 0x04,
            _ => 0x10,
        };
        let ends = &mut next[flow];
        let again = if chance.one_in(8) { 100 } else { 0 };
        let sequence = ends[usize::from(back)].wrapping_sub(again);
        let length = if chance.one_in(2) { 100 } else { 0 };
        ends[usize::from(back)] = sequence.wrapping_add(length);
        let acknowledged = ends[usize::from(!back)];
        let mut octets = vec![0x45, 0, 0, 40 + length as u8];
        octets.extend_from_slice(&(number as u16).to_be_bytes());
        octets.extend_from_slice(&[0, 0, 64, 6, 0, 0]);
        let client = ([192, 0, 2, (flow / 4) as u8], 1000 + flow as u16);
        let server = ([198, 51, 100, 1], 80u16);
        let (from, to) = if back {
            (server, client)
        } else {
            (client, server)
        };
        octets.extend_from_slice(&from.0);
        octets.extend_from_slice(&to.0);
        octets.extend_from_slice(&from.1.to_be_bytes());
        octets.extend_from_slice(&to.1.to_be_bytes());
        octets.extend_from_slice(&sequence.to_be_bytes());
        octets.extend_from_slice(&acknowledged.to_be_bytes());
        let window = if chance.one_in(10) { 0 } else { 0x10 };
        octets.extend_from_slice(&[0x50, flags, window, 0, 0, 0, 0, 0]);
        octets.resize(40 + length as usize, b'x');
        Captured { time_ns, octets }
    });
    packets.collect()
}

fn write(directory: &CaptureDirectory, name: &str, packets: &[Captured]) {
    let mut writer = PcapWriter::new(Vec::new(), LinkType::RAW, Resolution::Nanos).unwrap();
    for packet in packets {
        let length = packet.octets.len() as u32;
        writer
            .write(packet.time_ns, length, &packet.octets)
            .unwrap();
    }
    fs::write(directory.0.join(name), writer.into_inner()).unwrap();
}

/// Splits the capture into files at any point, each later than the one before. Returns their names.
fn split(directory: &CaptureDirectory, chance: &mut Chance, packets: &[Captured]) -> Vec<String> {
    let mut bounds: Vec<usize> = (0..chance.below(5))
        .map(|_| chance.below(packets.len() as u64) as usize)
        .collect();
    bounds.push(0);
    bounds.sort_unstable();
    bounds.dedup();
    let mut latest = i64::MIN;
    bounds.retain(|&bound| {
        let later = packets[bound].time_ns > latest;
        latest = latest.max(packets[bound].time_ns);
        later
    });
    let ends = bounds.iter().skip(1).copied().chain([packets.len()]);
    let files = bounds.iter().zip(ends).enumerate();
    let files = files.map(|(at, (&start, end))| {
        let name = format!("file{at}.pcap");
        write(directory, &name, &packets[start..end]);
        name
    });
    files.collect()
}

/// Removes the lines with file names from a report.
fn without_files(report: &[u8]) -> String {
    let report = String::from_utf8_lossy(report);
    let lines = report.lines().filter(|line| {
        let names = ["\tfilename:", "Running file '", "#Running file '"];
        let named = names.iter().any(|name| line.starts_with(name));
        !named && !line.contains("remaining, starting with")
    });
    let lines: Vec<&str> = lines.collect();
    lines
        .join("\n")
        .replace("trace files elapsed", "trace file elapsed")
}

#[test]
fn a_capture_in_any_files_over_any_parts_gives_the_report_of_the_whole() {
    for seed in 0..12 {
        let chance = &mut Chance(seed);
        let directory = CaptureDirectory::new(&format!("parts-{seed}"));
        let count = 50 + chance.below(800) as usize;
        let packets = packets(chance, count);
        write(&directory, "whole.pcap", &packets);
        let files = split(&directory, chance, &packets);
        let parts = [1, 2, 3, 7][seed as usize % 4];
        let names: Vec<String> = (0..parts).map(|part| format!("part{part}")).collect();
        for (part, name) in names.iter().enumerate() {
            let part = format!("{part}/{parts}");
            let mut words = vec!["--part", &part, "--part-file", name];
            words.extend(files.iter().map(String::as_str));
            directory.trace(&words);
        }
        let merged = |flags: &[&str]| {
            let words = flags.iter().copied().chain(["--merge"]);
            let words: Vec<&str> = words.chain(names.iter().map(String::as_str)).collect();
            directory.trace(&words)
        };
        let whole = |flags: &[&str]| {
            let words: Vec<&str> = flags.iter().copied().chain(["whole.pcap"]).collect();
            directory.trace(&words)
        };
        let flags = ["--json"];
        assert!(whole(&flags) == merged(&flags), "seed {seed}: JSON differs");
        for flags in [&["-b"] as &[&str], &["-l", "-r", "-W"], &["-l", "--csv"]] {
            let (whole, merged) = (whole(flags), merged(flags));
            let (whole, merged) = (without_files(&whole), without_files(&merged));
            assert!(
                whole == merged,
                "seed {seed}, {flags:?}:\n{whole}\nand\n{merged}"
            );
        }
        whole(&["-q", "--parquet", "whole.parquet"]);
        merged(&["-q", "--parquet", "merged.parquet"]);
        let read = |name: &str| fs::read(directory.0.join(name)).unwrap();
        let same = read("whole.parquet") == read("merged.parquet");
        assert!(same, "seed {seed}: Parquet differs");
    }
}

#[test]
fn a_part_that_was_cut_is_refused_with_where_it_ends() {
    let directory = CaptureDirectory::new("cut");
    write(&directory, "whole.pcap", &packets(&mut Chance(1), 200));
    let part = directory.trace(&["--part", "0/1", "whole.pcap"]);
    fs::write(directory.0.join("part"), &part[..part.len() - 9]).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_headend"))
        .args(["trace", "--json", "--merge", "part"])
        .current_dir(&directory.0)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    let wanted = format!("part: cut off at octet {}", part.len() - 9);
    assert!(said.contains(&wanted), "{said}");
}
