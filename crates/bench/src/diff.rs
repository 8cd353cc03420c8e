//! `headend bench diff`: pairs of packets per second and memory of `headend trace diff`, beside bare loops that only read
//! both captures.
//!
//! The captures are of 64 TCP connections through a NAT: data one way, an ACK for every two packets the other way, delays
//! of 10 to 13 ms, and every thousandth packet lost. Their packets are cut to 96 bytes, as for headers only.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use capfile::{PcapWriter, Resolution};
use cli::interrupt::{self, AtEnd};
use cli::progress::spinner;
use lab::report::{Cell, CoreWitness, MachineInfo, Report, Table};
use wire::link::LinkType;

use super::Out;
use super::trace::child::{Used, measure};

/// Connections in the captures.
const FLOWS: u64 = 64;

/// Captured bytes of a packet, and its length as sent.
const CAPTURED: usize = 96;
const LENGTH: u32 = 1514;

/// Time between two packets, in nanoseconds.
const GAP: i64 = 10_000;

/// Time limit of one run.
const LIMIT: Duration = Duration::from_secs(600);

/// Measure the comparison of two captures.
#[derive(Debug, clap::Args)]
pub(super) struct DiffArgs {
    /// Packets of the first capture; twice and four times as many are measured too [default: 500000, with --quick 5000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..=20_000_000))]
    packets: Option<u64>,
    /// Number of runs of each; the median counts
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Measure small captures once, in a second
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    out: Out,
}

/// A directory that is removed when the run ends, also by a signal.
struct Directory {
    path: PathBuf,
    at_end: Option<AtEnd>,
}

impl Directory {
    fn new() -> Result<Directory> {
        let path = std::env::temp_dir().join(format!("headend-bench-diff-{}", std::process::id()));
        let own = path.clone();
        let at_end = interrupt::at_end(move || {
            let _ = fs::remove_dir_all(&own);
        })?;
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Directory {
            path,
            at_end: Some(at_end),
        })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
        drop(self.at_end.take());
    }
}

/// Measures and publishes.
pub(super) fn run(args: &DiffArgs) -> Result<ExitCode> {
    let packets = args
        .packets
        .unwrap_or(if args.quick { 5000 } else { 500_000 });
    let rounds = if args.quick { 1 } else { args.rounds };
    let directory = Directory::new()?;
    let bar = spinner("diff");
    let witness = CoreWitness::start();
    let mut table = Table::new(
        "Pairs of packets, one thread",
        &[
            ("pairs", ""),
            ("program", ""),
            ("CPU", "s"),
            ("pairs per s of CPU", "million"),
            ("CPU per pair", "ns"),
            ("time", "s"),
            ("memory", "MB"),
        ],
    );
    for size in [1, 2, 4].map(|times| times * packets) {
        bar.set_message(format!("{size} packets"));
        let files = ["a.pcap", "b.pcap"].map(|name| directory.path.join(name));
        let pairs = write(&files, size).context("cannot write the captures")?;
        let mut runs: [Vec<Used>; 3] = Default::default();
        for _ in 0..rounds {
            runs[0].push(both(&files, "read")?);
            runs[1].push(both(&files, "parse")?);
            runs[2].push(ours(&files)?);
        }
        for (name, runs) in ["reading both", "parsing both", "headend trace diff"]
            .iter()
            .zip(runs)
        {
            let cells = cells(pairs, name, runs);
            match name.starts_with("headend") {
                true => table.row(cells),
                false => table.floor(cells),
            }
        }
    }
    bar.finish_and_clear();
    let mut report = Report::new("diff", MachineInfo::read_with(witness));
    report.method = method(rounds);
    report.tables = vec![table];
    args.out.publish(&report)?;
    Ok(ExitCode::SUCCESS)
}

fn method(rounds: u32) -> Vec<String> {
    let mut lines = vec![
        format!("{FLOWS} TCP connections with time stamps through a NAT, data one way and an ACK for every two packets back, delays of 10 to 13 ms, every thousandth packet lost, a packet every 10 us. {CAPTURED} bytes of each packet are captured."),
        format!("Each figure is the median of {rounds} runs, the programs in turn. CPU is user and system time of a process of its own, by the kernel's account; memory is its largest resident memory."),
        "Reading and parsing are this program's own readers in a loop over both files, one process for each: their times are added, and the larger memory counts.".to_owned(),
    ];
    if cfg!(debug_assertions) {
        lines.push("This build is not optimised, so its figures are not valid.".to_owned());
    }
    lines
}

fn cells(pairs: u64, name: &str, mut runs: Vec<Used>) -> [Cell; 7] {
    runs.sort_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
    let median = runs[runs.len() / 2];
    let rate = pairs as f64 / median.cpu_s.max(1e-9);
    [
        pairs.into(),
        name.into(),
        Cell::num(median.cpu_s, 3),
        Cell::num(rate / 1e6, 2),
        Cell::num(1e9 / rate, 1),
        Cell::num(median.seconds, 3),
        Cell::num(median.resident_bytes as f64 / 1e6, 1),
    ]
}

fn program(words: &[&str], files: &[&PathBuf]) -> Result<Used> {
    let mut command = vec![std::env::current_exe()?.into_os_string()];
    command.extend(words.iter().map(OsString::from));
    command.extend(files.iter().map(|file| file.as_os_str().to_owned()));
    match measure(&command, LIMIT)? {
        Some(used) => Ok(used),
        None => bail!("{}: stopped after {} s", words.join(" "), LIMIT.as_secs()),
    }
}

/// A bare loop over both files.
fn both(files: &[PathBuf; 2], kind: &str) -> Result<Used> {
    let [a, b] = files;
    let words = ["bench", "trace-child", kind];
    let (first, second) = (program(&words, &[a])?, program(&words, &[b])?);
    Ok(Used {
        seconds: first.seconds + second.seconds,
        cpu_s: first.cpu_s + second.cpu_s,
        resident_bytes: first.resident_bytes.max(second.resident_bytes),
    })
}

fn ours(files: &[PathBuf; 2]) -> Result<Used> {
    let [a, b] = files;
    program(&["trace", "diff", "-q"], &[a, b])
}

/// Writes both captures. Returns how many packets both have.
fn write(files: &[PathBuf; 2], packets: u64) -> io::Result<u64> {
    let create = |path: &Path| {
        let out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        PcapWriter::new(out, LinkType::ETHERNET, Resolution::Nanos)
    };
    let (mut a, mut b) = (create(&files[0])?, create(&files[1])?);
    let mut pairs = 0;
    // Data on the way to B.
    let mut under_way: VecDeque<(i64, [u8; CAPTURED])> = VecDeque::new();
    for number in 0..packets {
        let time = 1_700_000_000_000_000_000 + number as i64 * GAP;
        while let Some((arrival, frame)) = under_way.front()
            && *arrival <= time
        {
            b.write(*arrival, LENGTH, frame)?;
            under_way.pop_front();
        }
        let packet = Packet::new(number, time);
        if packet.is_ack {
            // B sent it 10 ms earlier, so that both captures are in the order of time.
            b.write(time, 66, &packet.frame(true))?;
            a.write(time + 10_000_000, 66, &packet.frame(false))?;
            pairs += 1;
            continue;
        }
        a.write(time + 10_000_000, LENGTH, &packet.frame(false))?;
        if number % 1000 != 999 {
            // Up to 3 ms of queue, which fills and drains within a second.
            let queue = (time / 100 % 20_000_000 - 10_000_000).abs() * 3 / 10;
            under_way.push_back((time + 20_000_000 + queue, packet.frame(true)));
            pairs += 1;
        }
    }
    for (arrival, frame) in under_way {
        b.write(arrival, LENGTH, &frame)?;
    }
    a.into_inner().flush()?;
    b.into_inner().flush()?;
    Ok(pairs)
}

/// A packet of the captures.
struct Packet {
    flow: u64,
    /// Its place in the flow.
    at: u64,
    is_ack: bool,
    stamp: u32,
}

impl Packet {
    fn new(number: u64, time: i64) -> Packet {
        Packet {
            flow: number % FLOWS,
            at: number / FLOWS,
            is_ack: number / FLOWS % 3 == 2,
            stamp: (time / 1_000_000) as u32,
        }
    }

    /// Ethernet, IPv4 and TCP with time stamps, before the NAT or after it.
    fn frame(&self, translated: bool) -> [u8; CAPTURED] {
        let mut frame = [0; CAPTURED];
        let client = match translated {
            false => ([10, 0, 0, 2], 20_000 + self.flow as u16),
            true => ([203, 0, 113, 1], 40_000 + 3 * self.flow as u16),
        };
        let server = ([198, 51, 100, 7], 443);
        let (source, destination) = match self.is_ack {
            true => (server, client),
            false => (client, server),
        };
        let data = self.at / 3 * 2 + self.at % 3;
        let sent = (self.flow as u32)
            .wrapping_mul(0x9e37_79b9)
            .wrapping_add((data as u32).wrapping_mul(1448));
        let answered = (self.flow as u32).wrapping_mul(0x85eb_ca6b);
        let (sequence, acknowledgment) = match self.is_ack {
            true => (answered, sent),
            false => (sent, answered),
        };
        let total: u16 = if self.is_ack { 52 } else { 1500 };
        frame[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0]);
        frame[16..18].copy_from_slice(&total.to_be_bytes());
        frame[18..20].copy_from_slice(&(self.at as u16).to_be_bytes());
        frame[20] = 0x40;
        frame[22] = if translated == self.is_ack { 64 } else { 63 };
        frame[23] = 6;
        frame[26..30].copy_from_slice(&source.0);
        frame[30..34].copy_from_slice(&destination.0);
        frame[34..36].copy_from_slice(&u16::to_be_bytes(source.1));
        frame[36..38].copy_from_slice(&u16::to_be_bytes(destination.1));
        frame[38..42].copy_from_slice(&sequence.to_be_bytes());
        frame[42..46].copy_from_slice(&acknowledgment.to_be_bytes());
        frame[46..50].copy_from_slice(&[0x80, 0x10, 1, 0xf5]);
        frame[54..58].copy_from_slice(&[1, 1, 8, 10]);
        frame[58..62].copy_from_slice(&self.stamp.to_be_bytes());
        frame[62..66].copy_from_slice(&(self.flow as u32 + 1).to_be_bytes());
        for (octet, at) in frame[66..].iter_mut().zip(0u64..) {
            *octet = (self.at.wrapping_mul(31).wrapping_add(at * 7) % 251) as u8;
        }
        frame
    }
}
