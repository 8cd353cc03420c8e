//! `headend bench nat`: what a translated packet and a new mapping cost, by number of mappings. A bare loop that reads the
//! same headers and one record of 32 bytes at a random place is the comparison: no NAT can do with less. Start with
//! [`run`].

use core::hint::black_box;
use std::process::ExitCode;
use std::time::Instant as Clock;

use anyhow::{Context, Result, ensure};
use base::Instant;
use lab::report::{Cell, CoreWitness, MachineInfo, Report, Table};
use nat::{Config, Direction, Nat, SubscriberId, Sum};
use reactor::memory::large_pages;
use wire::ip::Header;

use super::Out;
use crate::harness::costs::median_by;
use crate::harness::others_of;
use cli::progress::spinner;

/// Packets of a batch: the NAT's records are loaded first, then headers are read and packets are translated.
const BATCH: usize = 32;
/// Mappings of a subscriber.
const PER_SUBSCRIBER: u32 = 250;
/// Bytes of a packet.
const LENGTH: usize = 40;
/// Goals in ns: of a packet, and of a new mapping, at a million mappings.
const GOALS: [(&str, f64); 3] = [
    ("packet out", 60.0),
    ("packet in", 60.0),
    ("new mapping", 250.0),
];

/// Measure what translation of addresses costs.
#[derive(Debug, clap::Args)]
pub(super) struct NatArgs {
    /// Numbers of mappings
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4_000_000))]
    sizes: Vec<u32>,
    /// Number of rounds
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Measure with a few thousand mappings, in a second
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    out: Out,
}

impl NatArgs {
    fn sizes(&self) -> Vec<u32> {
        match (self.sizes.is_empty(), self.quick) {
            (false, _) => self.sizes.clone(),
            (true, false) => vec![62_500, 250_000, 1_000_000],
            (true, true) => vec![500, 2_000, 8_000],
        }
    }
}

/// ns per packet or mapping in one round, with one number of mappings.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// A packet out, a packet in, a new mapping.
    ours: [f64; 3],
    bare: f64,
    others_percent: Option<f64>,
}

/// Measures and publishes.
pub(super) fn run(args: &NatArgs) -> Result<ExitCode> {
    let witness = CoreWitness::start();
    let bar = spinner("nat");
    let mut all = Vec::new();
    for count in args.sizes() {
        let mut rounds = Vec::new();
        for number in 1..=args.rounds {
            bar.set_message(format!("{count} mappings, {number} of {}", args.rounds));
            rounds.push(round(count)?);
        }
        all.push((count, rounds));
    }
    bar.finish_and_clear();
    let mut report = Report::new("nat", MachineInfo::read_with(witness));
    report.method = method(args);
    report.tables = vec![costs(&all), goals(&all)];
    args.out.publish(&report)?;
    Ok(ExitCode::SUCCESS)
}

type Packet = [u8; LENGTH];

/// A UDP datagram without a checksum.
fn datagram(source: u32, port: u16) -> Packet {
    let mut packet = [0; LENGTH];
    packet[..12].copy_from_slice(&[0x45, 0, 0, 40, 0, 1, 0x40, 0, 64, 17, 0x55, 0x55]);
    packet[12..16].copy_from_slice(&source.to_be_bytes());
    packet[16..20].copy_from_slice(&[198, 51, 100, 7]);
    packet[20..22].copy_from_slice(&port.to_be_bytes());
    packet[22..28].copy_from_slice(&[0, 53, 0, 20, 0, 0]);
    packet
}

/// The answer to a packet that was translated.
fn answer(packet: &Packet) -> Packet {
    let mut back = *packet;
    back[12..16].copy_from_slice(&packet[16..20]);
    back[16..20].copy_from_slice(&packet[12..16]);
    back[20..22].copy_from_slice(&packet[22..24]);
    back[22..24].copy_from_slice(&packet[20..22]);
    back
}

/// The same order in each run.
fn shuffle<T>(items: &mut [T]) {
    let mut state = 0x1234_5678_9abc_def1_u64;
    for at in (1..items.len()).rev() {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let other = (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % (at + 1);
        items.swap(at, other);
    }
}

type Flow = (SubscriberId, Packet);

/// Translates each packet once, in batches, in one direction.
fn pass(nat: &mut Nat, flows: &[Flow], direction: Direction, now: Instant) {
    let mut packets: [Packet; BATCH] = [[0; LENGTH]; BATCH];
    for batch in flows.chunks(BATCH) {
        for (packet, flow) in packets.iter_mut().zip(batch) {
            *packet = flow.1;
        }
        let ahead = packets.iter().zip(batch);
        nat.touch(direction, ahead.map(|(one, flow)| (Some(flow.0), &one[..])));
        for (packet, flow) in packets.iter_mut().zip(batch) {
            // By reference: to move the header would wait for its fields to be stored.
            let header = Header::read(packet);
            let Ok(header) = &header else { continue };
            let verdict = match direction {
                Direction::Out => nat.outbound(flow.0, header, packet, Sum::Complete, now),
                Direction::In => nat.inbound(header, packet, Sum::Complete, now),
            };
            let _ = black_box(verdict);
        }
    }
}

/// The floor: copies and reads each header, and loads one record.
fn pass_bare(memory: &[[u64; 4]], flows: &[Flow]) {
    for batch in flows.chunks(BATCH) {
        let mut sum = 0;
        for (_, packet) in batch {
            let packet = *black_box(packet);
            if let Ok(header) = Header::read(&packet) {
                let key = (header.source as u64).wrapping_mul(0x9e37_79b9)
                    + u64::from(header.source_port);
                let at = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                sum ^= memory[((at * memory.len() as u64) >> 32) as usize][0];
            }
        }
        black_box(sum);
    }
}

/// ns per item of one pass.
fn timed(items: usize, pass: impl FnOnce()) -> f64 {
    let start = Clock::now();
    pass();
    start.elapsed().as_nanos() as f64 / items.max(1) as f64
}

/// A NAT that is empty at first, then has that many mappings.
fn round(count: u32) -> Result<Round> {
    let witness = CoreWitness::start();
    let externals = vec!["192.0.0.0/24".parse().context("a prefix")?];
    let seed = [0x1357_9bdf_0246_8ace, 0xfedc_ba98_7654_3210, 7];
    let mut config = Config::new(externals, seed);
    config.limits.mappings_max = count + count / 8;
    config.limits.events_max = 1 << 20;
    let mut nat = Nat::new(config)?;
    nat.on_reserve(large_pages);
    let now = Instant::from_nanos(1 << 40);
    let mut flows: Vec<Flow> = Vec::with_capacity(count as usize);
    for subscriber in 0..count.div_ceil(PER_SUBSCRIBER) {
        let address = 0x6440_0000 + subscriber;
        let id = nat
            .join(subscriber.into(), address.into())
            .context("room")?;
        let left = PER_SUBSCRIBER.min(count - flows.len() as u32);
        flows.extend((0..left).map(|port| (id, datagram(address, 1024 + port as u16 * 7))));
    }
    shuffle(&mut flows);
    let new = timed(flows.len(), || pass(&mut nat, &flows, Direction::Out, now));
    let made = nat.counters().mappings;
    ensure!(made == count, "{made} mappings of {count}");
    let outbound = timed(flows.len(), || pass(&mut nat, &flows, Direction::Out, now));
    let mut answers = Vec::with_capacity(flows.len());
    for (id, packet) in &flows {
        let mut packet = *packet;
        let header = Header::read(&packet).ok().context("a packet")?;
        nat.outbound(*id, &header, &mut packet, Sum::Complete, now)?;
        answers.push((*id, answer(&packet)));
    }
    let inbound = timed(answers.len(), || {
        pass(&mut nat, &answers, Direction::In, now)
    });
    let translated = nat.counters().inbound;
    ensure!(
        translated == u64::from(count),
        "{translated} answers of {count}"
    );
    let mut memory: Vec<[u64; 4]> = Vec::with_capacity(count as usize);
    large_pages(memory.as_ptr().cast(), count as usize * 32);
    memory.resize(count as usize, [1; 4]);
    let bare = timed(flows.len(), || pass_bare(&memory, &flows));
    Ok(Round {
        ours: [outbound, inbound, new],
        bare,
        others_percent: others_of(witness.finish()),
    })
}

fn costs(all: &[(u32, Vec<Round>)]) -> Table {
    let mut table = Table::new(
        "A packet, and a new mapping",
        &[
            ("what", ""),
            ("mappings", ""),
            ("each", "ns"),
            ("of the bare loop", "x"),
            ("others' share of the cores", "%"),
        ],
    );
    for (count, rounds) in all {
        let Some(bare) = median_by(rounds, |round| round.bare) else {
            continue;
        };
        let others = |round: &Round| {
            let share = round.others_percent;
            share.map_or_else(|| "".into(), |share| Cell::num(share, 1))
        };
        for (at, (what, _)) in GOALS.iter().enumerate() {
            if let Some(median) = median_by(rounds, |round| round.ours[at]) {
                let each = median.ours[at];
                table.row([
                    Cell::from(*what),
                    u64::from(*count).into(),
                    Cell::num(each, 1),
                    Cell::num(each / bare.bare.max(1e-9), 2),
                    others(median),
                ]);
            }
        }
        table.floor([
            Cell::from("bare loop"),
            u64::from(*count).into(),
            Cell::num(bare.bare, 1),
            "".into(),
            others(bare),
        ]);
    }
    table
}

/// The goals, beside the figures with the most mappings.
fn goals(all: &[(u32, Vec<Round>)]) -> Table {
    let columns = ["mappings", "what", "measured ns", "to reach ns", "reached"];
    let mut table = Table::new("To reach", &columns.map(|name| (name, "")));
    let Some((count, rounds)) = all.iter().max_by_key(|(count, _)| *count) else {
        return table;
    };
    for (at, (what, goal)) in GOALS.into_iter().enumerate() {
        if let Some(median) = median_by(rounds, |round| round.ours[at]) {
            let measured = median.ours[at];
            table.row([
                u64::from(*count).into(),
                Cell::from(what),
                Cell::num(measured, 1),
                Cell::num(goal, 0),
                if measured <= goal { "yes" } else { "no" }.into(),
            ]);
        }
    }
    table
}

fn method(args: &NatArgs) -> Vec<String> {
    let mut lines = vec![
        format!(
            "{} rounds for each number of mappings, each with a new NAT in this process. UDP packets of {LENGTH} bytes, one of each mapping, in random order, {PER_SUBSCRIBER} mappings a subscriber. The first pass makes the mappings, the next two translate a packet of each in both directions. The table shows the round of median cost.",
            args.rounds
        ),
        format!(
            "Packets are translated in batches of {BATCH}: the NAT's records of a batch are loaded, then each header is read and its packet rewritten. The bare loop copies and reads each header, and reads one record of 32 bytes at a random place in as much memory as the mappings take. Both ask for large pages of memory."
        ),
    ];
    if cfg!(debug_assertions) {
        lines.push("This build is not optimised, so its figures are not valid.".into());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_translates_every_packet_and_its_answer() {
        let done = round(1_000).expect("a round");
        assert!(done.ours.iter().all(|&each| each > 0.0), "{done:?}");
        let all = [(1_000, vec![done])];
        let text = costs(&all).to_text() + &goals(&all).to_text();
        for what in ["packet out", "packet in", "new mapping", "bare loop"] {
            assert!(text.contains(what), "{text}");
        }
    }
}
