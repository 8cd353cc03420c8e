//! The same packets through Linux's queues and through ours.

use crate::kernel::{self, Experiment, Fate, Outcome, Timed, ours};
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use base::Instant;
use qos::classify::{Bands, Key, KeySet, Map};
use qos::codel::{self, Codel};
use qos::drr::{self, Drr};
use qos::fifo::{Fifo, Limit};
use qos::fq_codel::{self, Floor, FqCodel};
use qos::htb::{self, ClassOptions, Htb, Levels};
use qos::pfifo_fast::{self, PfifoFast};
use qos::prio::{self, Prio};
use qos::sfq::{self, Sfq};
use qos::tbf::{self, Tbf};
use qos::{Classify, Discipline};
use std::fmt::Write as _;

/// The rate of all queues here.
const RATE_BPS: u64 = 1_000_000;

/// The longest packet in bytes, with Ethernet's header.
const MTU: u32 = 1_514;

/// A host's evenly spaced datagrams.
#[derive(Clone, Copy)]
struct Flow {
    host: u8,
    rate_bps: u64,
    length: u16,
    traffic_class: u8,
}

impl Flow {
    const fn new(host: u8, rate_bps: u64) -> Self {
        Self {
            host,
            rate_bps,
            length: 986,
            traffic_class: 0,
        }
    }

    fn packet(&self) -> Vec<u8> {
        udp(self.traffic_class, [10, 1, 0, self.host], self.length)
    }
}

/// A UDP packet over IPv4.
fn udp(traffic_class: u8, source: [u8; 4], length: u16) -> Vec<u8> {
    let mut packet = vec![0; usize::from(length)];
    packet[0] = 0x45;
    packet[1] = traffic_class;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[8] = 64;
    packet[9] = 17;
    packet[12..16].copy_from_slice(&source);
    packet[16..20].copy_from_slice(&[10, 9, 0, 1]);
    packet[20..22].copy_from_slice(&[3, u8::MAX - source[3]]);
    packet[22..24].copy_from_slice(&2_000_u16.to_be_bytes());
    packet[24..26].copy_from_slice(&(length - 20).to_be_bytes());
    packet
}

/// Bytes of Ethernet's header, which a queue's rate counts too.
const ETHERNET: u64 = 14;

/// The packets of several flows, in the order of their times.
///
/// A flow's rate counts Ethernet's header, as the queues do. So the times between packets are whole fractions or
/// multiples of a packet's transmission time, and no packet arrives within microseconds of a departure: that
/// order, and with it which packet finds a queue full, would depend on the guest's timers.
fn mixed(flows: &[Flow], seconds: u64) -> Vec<Timed> {
    let mut packets: Vec<Timed> = flows
        .iter()
        .flat_map(|flow| {
            let every_us = (u64::from(flow.length) + ETHERNET) * 8 * 1_000_000 / flow.rate_bps;
            // Each flow starts at a different time.
            let first = u64::from(flow.host) * 2_300;
            (0..seconds * 1_000_000 / every_us).map(move |number| Timed {
                at_us: first + number * every_us,
                packet: flow.packet(),
            })
        })
        .collect();
    packets.sort_by_key(|timed| timed.at_us);
    packets
}

/// One queue to compare.
struct Comparison {
    name: &'static str,
    experiment: Experiment,
    ours: Box<dyn Discipline>,
    compare: fn(&mut String, &[Timed], &Outcome, &[Fate]) -> Result<()>,
}

/// In the guest: `leaf` below an htb class of 1 Mbit/s.
fn at_rate(leaf: &str) -> String {
    format!(
        "tc qdisc add dev a0 root handle 1: htb default 1\n\
         tc class add dev a0 parent 1: classid 1:1 htb rate 1mbit burst 1600 cburst 1600 quantum 1600\n\
         tc qdisc add dev a0 parent 1:1 handle 2: {leaf}"
    )
}

/// Ours likewise.
fn shaped(leaf: Box<dyn Discipline>) -> Box<dyn Discipline> {
    let options = htb::Options {
        major: 1,
        mtu: MTU,
        classes: vec![class(1, None, RATE_BPS, RATE_BPS)],
        default: Some(1),
        direct_limit: 100,
    };
    let htb = Htb::new(
        &options,
        vec![(1, leaf)],
        None,
        &Levels::Full,
        Instant::ZERO,
    );
    Box::new(htb.expect("one class"))
}

/// An htb class with the guest's bursts. If one byte of burst is left, Linux sends a whole packet beyond the
/// burst; ours counts it.
const fn class(minor: u16, parent: Option<u16>, rate_bps: u64, ceil_bps: u64) -> ClassOptions {
    ClassOptions {
        minor,
        parent,
        rate_bps,
        ceil_bps,
        burst: 1_600 + MTU,
        cburst: 1_600 + MTU,
        priority: 0,
        quantum: Some(1_600),
    }
}

/// Linux's own queues in a guest, compared with ours.
pub(crate) fn serve_alike(bench: &Bench<'_>) -> Result<()> {
    let comparisons = [
        pfifo_fast(),
        prio_by_filter(),
        tbf(),
        htb_borrows(),
        htb_prefers(),
        drr_by_quantum(),
        sfq_flows(),
        codel_alone(),
        fq_codel_flows(0),
        fq_codel_flows(2),
    ];
    let (mut experiments, mut rest) = (Vec::new(), Vec::new());
    for comparison in comparisons {
        rest.push((comparison.name, comparison.ours, comparison.compare));
        experiments.push(comparison.experiment);
    }
    let outcomes = kernel::run(bench, &experiments)?;
    let mut notes = String::new();
    for (((name, ours, compare), experiment), outcome) in
        rest.into_iter().zip(&experiments).zip(&outcomes)
    {
        let ours = ours::run(ours, &experiment.packets, &outcome.fates);
        let (otherwise, most_ms, worst_ms) = apart(&outcome.fates, &ours);
        writeln!(
            notes,
            "{name}\n  packet by packet: {otherwise} of {} lost by one of them only; the others leave {most_ms:.2} ms \
             apart (99 %), at most {worst_ms:.2} ms",
            ours.len()
        )?;
        let compared = compare(&mut notes, &experiment.packets, outcome, &ours);
        // The results are kept beside the logs, even after a success.
        std::fs::write(bench.directory.join("compared.txt"), &notes)?;
        compared.with_context(|| {
            format!(
                "{name}: qdiscs {}, classes {}",
                outcome.qdiscs, outcome.classes
            )
        })?;
    }
    Ok(())
}

/// Each flow's share of all data sent, over the time when all flows send.
fn shares(packets: &[Timed], fates: &[Fate], hosts: &[u8]) -> Vec<f64> {
    let (first, last) = (fates[0].sent_ns, fates[fates.len() - 1].sent_ns);
    let counted = first + (last - first) / 10..last;
    let octets = |host: u8| -> f64 {
        packets
            .iter()
            .zip(fates)
            .filter(|(timed, fate)| {
                timed.packet[15] == host && fate.arrived_ns.is_some_and(|at| counted.contains(&at))
            })
            .map(|(timed, _)| timed.packet.len() as f64)
            .sum()
    };
    let each: Vec<f64> = hosts.iter().map(|&host| octets(host)).collect();
    let all: f64 = each.iter().sum();
    each.iter().map(|octets| octets / all).collect()
}

fn lost(fates: &[Fate]) -> usize {
    fates
        .iter()
        .filter(|fate| fate.arrived_ns.is_none())
        .count()
}

/// Whether `a` and `b` differ by at most a fraction `by`, or by `least`.
fn near(a: f64, b: f64, by: f64, least: f64) -> bool {
    (a - b).abs() <= (by * a.max(b)).max(least)
}

fn compare_shares(
    notes: &mut String,
    packets: &[Timed],
    kernel: &Outcome,
    ours: &[Fate],
    hosts: &[u8],
    by: f64,
) -> Result<()> {
    let (theirs, own) = (
        shares(packets, &kernel.fates, hosts),
        shares(packets, ours, hosts),
    );
    writeln!(notes, "  shares: kernel {theirs:.3?}, ours {own:.3?}")?;
    for (theirs, own) in theirs.iter().zip(&own) {
        ensure!(
            (theirs - own).abs() <= by,
            "kernel {theirs:.4}, ours {own:.4}"
        );
    }
    Ok(())
}

fn compare_losses(
    notes: &mut String,
    kernel: &Outcome,
    ours: &[Fate],
    by: f64,
    least: f64,
) -> Result<()> {
    let (theirs, own) = (lost(&kernel.fates) as f64, lost(ours) as f64);
    writeln!(
        notes,
        "  lost: kernel {theirs}, ours {own} of {}",
        ours.len()
    )?;
    ensure!(
        near(theirs, own, by, least),
        "kernel lost {theirs}, ours {own}"
    );
    Ok(())
}

/// Tolerance of a packet's departure: an eighth of its transmission time. A guest's timers are occasionally
/// that late on a busy host.
const WORST_MS: f64 = 0.5;

/// Packet by packet: how many were lost by only one of the two, and by how much the departures of the others
/// differ: the 99th percentile and the maximum.
fn apart(kernel: &[Fate], ours: &[Fate]) -> (usize, f64, f64) {
    let arrivals = || {
        let both = kernel.iter().zip(ours);
        both.map(|(kernel, ours)| (kernel.arrived_ns, ours.arrived_ns))
    };
    let otherwise = arrivals().filter(|(kernel, ours)| kernel.is_some() != ours.is_some());
    let mut apart: Vec<u64> = arrivals()
        .filter_map(|(kernel, ours)| Some(kernel?.abs_diff(ours?)))
        .collect();
    apart.sort_unstable();
    let ms = |index: usize| apart.get(index).map_or(0.0, |ns| *ns as f64 / 1e6);
    let last = apart.len().saturating_sub(1);
    (otherwise.count(), ms(last * 99 / 100), ms(last))
}

/// The numbers of the packets in order of arrival.
fn order(fates: &[Fate]) -> Vec<usize> {
    let mut arrived: Vec<(u64, usize)> = fates
        .iter()
        .enumerate()
        .filter_map(|(number, fate)| Some((fate.arrived_ns?, number)))
        .collect();
    arrived.sort_unstable();
    arrived.into_iter().map(|(_, number)| number).collect()
}

/// One packet of each TOS value at once: their order of departure shows the bands.
fn pfifo_fast() -> Comparison {
    let packets = (0..=255u8)
        .map(|class| Timed {
            at_us: 40 * u64::from(class),
            packet: udp(class, [10, 1, 0, 1], 500),
        })
        .collect();
    Comparison {
        name: "pfifo_fast",
        experiment: Experiment {
            setup: at_rate("pfifo_fast"),
            packets,
            seconds: 3,
        },
        ours: shaped(Box::new(PfifoFast::new(pfifo_fast::Options {
            limit: 1_000,
            bands: Bands::LINUX,
        }))),
        compare: |notes, _, kernel, ours| {
            let bands = |fates: &[Fate]| -> Vec<u8> {
                let class = |number: usize| u8::try_from(number).unwrap_or(0);
                order(fates)
                    .into_iter()
                    .map(|number| Bands::LINUX.band(class(number)))
                    .collect()
            };
            let (theirs, own) = (bands(&kernel.fates), bands(ours));
            let same = theirs.iter().zip(&own).filter(|(a, b)| a == b).count();
            writeln!(notes, "  the same band: {same} of {}", own.len())?;
            let (otherwise, _, worst_ms) = apart(&kernel.fates, ours);
            ensure!(
                otherwise == 0 && worst_ms <= WORST_MS,
                "{otherwise}, {worst_ms} ms"
            );
            ensure!(
                theirs.len() == own.len() && same == own.len(),
                "kernel {theirs:?}, ours {own:?}"
            );
            Ok(())
        },
    }
}

/// Twice the rate for a while: when each packet leaves, and which are dropped.
fn tbf() -> Comparison {
    Comparison {
        name: "tbf",
        experiment: Experiment {
            setup: "tc qdisc add dev a0 root tbf rate 1mbit burst 5000 limit 20000".to_owned(),
            packets: mixed(&[Flow::new(1, 2 * RATE_BPS)], 3),
            seconds: 5,
        },
        ours: Box::new(Tbf::new(
            &tbf::Options {
                rate_bps: RATE_BPS,
                burst: 5_000,
                peak: None,
            },
            Box::new(Fifo::new(Limit::Bytes(20_000))),
            None,
            Instant::ZERO,
        )),
        compare: |notes, _, kernel, ours| {
            compare_losses(notes, kernel, ours, 0.0, 1.0)?;
            let (theirs, own) = (order(&kernel.fates), order(ours));
            let at = |fates: &[Fate], number: usize| fates[number].arrived_ns.unwrap_or(0);
            // The n-th departed packet of both: a single missing packet shifts all later ones by one
            // transmission time.
            let worst = theirs
                .iter()
                .zip(&own)
                .map(|(&a, &b)| at(&kernel.fates, a).abs_diff(at(ours, b)))
                .max();
            let worst_ms = worst.unwrap_or(u64::MAX) as f64 / 1e6;
            writeln!(notes, "  leave at most {worst_ms:.2} ms apart")?;
            ensure!(worst_ms <= WORST_MS, "{worst_ms} ms apart");
            Ok(())
        },
    }
}

/// Two classes below one parent: 300 and 700 kbit/s that may both borrow, each offered three times its rate.
fn htb_borrows() -> Comparison {
    let options = htb::Options {
        major: 1,
        mtu: MTU,
        classes: vec![
            class(1, None, RATE_BPS, RATE_BPS),
            class(0x11, Some(1), 100_000, RATE_BPS),
            class(0x12, Some(1), 500_000, RATE_BPS),
        ],
        default: None,
        direct_limit: 100,
    };
    let leaf = || -> Box<dyn Discipline> { Box::new(Fifo::new(Limit::Packets(50))) };
    let htb = Htb::new(
        &options,
        vec![(0x11, leaf()), (0x12, leaf())],
        Some(by_host(0x11)),
        &Levels::Full,
        Instant::ZERO,
    )
    .expect("a tree of two classes");
    Comparison {
        name: "htb",
        experiment: Experiment {
            setup: "tc qdisc add dev a0 root handle 1: htb\n\
                    tc class add dev a0 parent 1: classid 1:1 htb rate 1mbit burst 1600 cburst 1600 quantum 1600\n\
                    tc class add dev a0 parent 1:1 classid 1:11 htb rate 100kbit ceil 1mbit burst 1600 cburst 1600 quantum 1600\n\
                    tc class add dev a0 parent 1:1 classid 1:12 htb rate 500kbit ceil 1mbit burst 1600 cburst 1600 quantum 1600\n\
                    tc qdisc add dev a0 parent 1:11 pfifo limit 50; tc qdisc add dev a0 parent 1:12 pfifo limit 50\n\
                    tc filter add dev a0 parent 1: handle 1 flow map key src and 0xff addend -1 baseclass 1:11"
                .to_owned(),
            packets: mixed(&[Flow::new(1, 3 * RATE_BPS), Flow::new(2, 3 * RATE_BPS)], 8),
            seconds: 10,
        },
        ours: Box::new(htb),
        compare: |notes, packets, kernel, ours| compare_shares(notes, packets, kernel, ours, &[1, 2], 0.003),
    }
}

/// Three classes with excess traffic: one of high priority with a ceiling, one that gets the remaining rate,
/// and one limited to its own rate.
fn htb_prefers() -> Comparison {
    let leaf = || -> Box<dyn Discipline> { Box::new(Fifo::new(Limit::Packets(50))) };
    let mut classes = vec![class(1, None, RATE_BPS, RATE_BPS)];
    let mut setup = "tc qdisc add dev a0 root handle 1: htb\n\
         tc class add dev a0 parent 1: classid 1:1 htb rate 1mbit burst 1600 cburst 1600 quantum 1600"
        .to_owned();
    for (priority, minor, kbit, ceil_kbit) in [
        (0, 0x11, 100, 300),
        (1, 0x12, 200, 1_000),
        (2, 0x13, 200, 1_000),
    ] {
        classes.push(ClassOptions {
            priority,
            ..class(minor, Some(1), kbit * 1_000, ceil_kbit * 1_000)
        });
        setup += &format!(
            "\ntc class add dev a0 parent 1:1 classid 1:{minor:x} htb rate {kbit}kbit ceil {ceil_kbit}kbit \
             prio {priority} burst 1600 cburst 1600 quantum 1600\n\
             tc qdisc add dev a0 parent 1:{minor:x} pfifo limit 50"
        );
    }
    setup += "\ntc filter add dev a0 parent 1: handle 1 flow map key src and 0xff addend -1 baseclass 1:11";
    let options = htb::Options {
        major: 1,
        mtu: MTU,
        classes,
        default: None,
        direct_limit: 100,
    };
    let htb = Htb::new(
        &options,
        vec![(0x11, leaf()), (0x12, leaf()), (0x13, leaf())],
        Some(by_host(0x11)),
        &Levels::Full,
        Instant::ZERO,
    );
    Comparison {
        name: "htb with ceilings and priorities",
        experiment: Experiment {
            setup,
            packets: mixed(&[1, 2, 3].map(|host| Flow::new(host, 3 * RATE_BPS / 2)), 8),
            seconds: 10,
        },
        ours: Box::new(htb.expect("a tree of three classes")),
        compare: |notes, packets, kernel, ours| {
            compare_shares(notes, packets, kernel, ours, &[1, 2, 3], 0.003)?;
            let theirs = shares(packets, &kernel.fates, &[1, 2, 3]);
            let wanted = [0.3, 0.5, 0.2];
            let is_wanted = theirs
                .iter()
                .zip(wanted)
                .all(|(a, b)| near(*a, b, 0.0, 0.02));
            ensure!(is_wanted, "this shows nothing: {theirs:?}");
            Ok(())
        },
    }
}

/// Three bands by host; the first two leave little for the third.
fn prio_by_filter() -> Comparison {
    let band = |number| prio::Band {
        name: format!("2:{number}"),
        child: Box::new(Fifo::new(Limit::Packets(20))),
    };
    let prio = Prio::new((1..=3).map(band).collect(), Some(by_host(1)), Bands::LINUX);
    let mut setup = at_rate("prio bands 3");
    for band in 1..=3 {
        setup += &format!("\ntc qdisc add dev a0 parent 2:{band} pfifo limit 20");
    }
    setup += "\ntc filter add dev a0 parent 2: handle 1 flow map key src and 0xff addend -1 baseclass 2:1";
    let flows = [
        Flow::new(1, RATE_BPS / 3),
        Flow::new(2, RATE_BPS / 2),
        Flow::new(3, RATE_BPS),
    ];
    Comparison {
        name: "prio",
        experiment: Experiment {
            setup,
            packets: mixed(&flows, 8),
            seconds: 10,
        },
        ours: shaped(Box::new(prio)),
        compare: |notes, packets, kernel, ours| {
            let (otherwise, most_ms, _) = apart(&kernel.fates, ours);
            // Which packet finds the queue full by one depends on microseconds.
            ensure!(
                otherwise <= 8 && most_ms <= WORST_MS,
                "{otherwise}, {most_ms} ms"
            );
            compare_losses(notes, kernel, ours, 0.0, 1.0)?;
            compare_shares(notes, packets, kernel, ours, &[1, 2, 3], 0.003)
        },
    }
}

/// Classifies by the last octet of the source address; `baseclass` is the class of 1.
fn by_host(baseclass: u32) -> Box<dyn Classify> {
    Box::new(Map {
        addend: u32::MAX,
        baseclass,
        ..Map::new(Key::Src).and(0xff)
    })
}

fn drr_by_quantum() -> Comparison {
    let class = |number: u16, quantum| drr::Class {
        name: format!("2:{number:x}"),
        number,
        quantum,
        child: Box::new(Fifo::new(Limit::Packets(30))),
    };
    let drr = Drr::new(
        vec![class(1, 1_500), class(2, 3_000), class(3, 4_500)],
        by_host(1),
    );
    let mut setup = at_rate("drr");
    for (number, quantum) in [(1, 1_500), (2, 3_000), (3, 4_500)] {
        setup += &format!(
            "\ntc class add dev a0 parent 2: classid 2:{number} drr quantum {quantum}\n\
             tc qdisc add dev a0 parent 2:{number} pfifo limit 30"
        );
    }
    setup += "\ntc filter add dev a0 parent 2: handle 1 flow map key src and 0xff addend -1 baseclass 2:1";
    Comparison {
        name: "drr",
        experiment: Experiment {
            setup,
            packets: mixed(&[1, 2, 3].map(|host| Flow::new(host, RATE_BPS)), 8),
            seconds: 10,
        },
        ours: shaped(Box::new(drr)),
        compare: |notes, packets, kernel, ours| {
            compare_shares(notes, packets, kernel, ours, &[1, 2, 3], 0.005)
        },
    }
}

fn sfq_flows() -> Comparison {
    let flows = [
        Flow::new(1, RATE_BPS / 10),
        Flow::new(2, RATE_BPS / 2),
        Flow::new(3, RATE_BPS),
        Flow::new(4, 2 * RATE_BPS),
    ];
    Comparison {
        name: "sfq",
        experiment: Experiment {
            setup: at_rate("sfq quantum 1514 divisor 65536"),
            packets: mixed(&flows, 8),
            seconds: 10,
        },
        ours: shaped(Box::new(Sfq::new(sfq::Options {
            divisor: 65_536,
            ..sfq::Options::default()
        }))),
        compare: |notes, packets, kernel, ours| {
            compare_losses(notes, kernel, ours, 0.0, 2.0)?;
            compare_shares(notes, packets, kernel, ours, &[1, 2, 3, 4], 0.003)
        },
    }
}

fn codel_alone() -> Comparison {
    Comparison {
        name: "codel",
        experiment: Experiment {
            setup: at_rate("codel limit 1000 target 15ms interval 100ms noecn"),
            packets: mixed(&[Flow::new(1, 3 * RATE_BPS / 2)], 10),
            seconds: 16,
        },
        ours: shaped(Box::new(Codel::new(codel::Options {
            limit: 1_000,
            parameters: codel::Parameters {
                target: base::Duration::from_millis(15),
                ..codel::Parameters::default()
            },
        }))),
        compare: |notes, _, kernel, ours| {
            let first = |fates: &[Fate]| fates.iter().position(|fate| fate.arrived_ns.is_none());
            writeln!(
                notes,
                "  first lost: kernel {:?}, ours {:?}",
                first(&kernel.fates),
                first(ours)
            )?;
            ensure!(first(&kernel.fates) == first(ours), "another first loss");
            compare_losses(notes, kernel, ours, 0.01, 0.0)
        },
    }
}

/// Three unresponsive flows, one of them at twice its share, and a thin one; with `ecn` as ECN bits.
fn fq_codel_flows(ecn: u8) -> Comparison {
    let flow = |host, rate_bps| Flow {
        traffic_class: ecn,
        ..Flow::new(host, rate_bps)
    };
    let flows = [
        flow(1, RATE_BPS / 50),
        flow(2, RATE_BPS / 2),
        flow(3, RATE_BPS / 2),
        flow(4, 3 * RATE_BPS / 4),
    ];
    Comparison {
        name: if ecn == 0 {
            "fq_codel"
        } else {
            "fq_codel with ECN"
        },
        experiment: Experiment {
            setup: at_rate("fq_codel flows 65536 target 15ms interval 100ms quantum 1514"),
            packets: mixed(&flows, 10),
            seconds: 24,
        },
        ours: shaped(Box::new(FqCodel::new(fq_codel::Options {
            parameters: codel::Parameters {
                target: base::Duration::from_millis(15),
                ecn: true,
                ..codel::Parameters::default()
            },
            flows: 65_536,
            floor: Floor::All,
            keys: KeySet::FLOW,
            ..fq_codel::Options::default()
        }))),
        compare: |notes, packets, kernel, ours| {
            let marked = |fates: &[Fate]| {
                fates
                    .iter()
                    .filter(|fate| fate.arrived_ns.is_some() && fate.traffic_class & 3 == 3)
                    .count() as f64
            };
            let (theirs, own) = (marked(&kernel.fates), marked(ours));
            writeln!(notes, "  marked: kernel {theirs}, ours {own}")?;
            ensure!(
                near(theirs, own, 0.01, 0.0),
                "kernel marked {theirs}, ours {own}"
            );
            compare_losses(notes, kernel, ours, 0.01, 0.0)?;
            compare_shares(notes, packets, kernel, ours, &[1, 2, 3, 4], 0.003)?;
            let thin_ms = |fates: &[Fate]| {
                let thin = packets
                    .iter()
                    .zip(fates)
                    .filter(|(timed, _)| timed.packet[15] == 1);
                thin.filter_map(|(_, fate)| Some(fate.arrived_ns? - fate.sent_ns))
                    .max()
                    .unwrap_or(0) as f64
                    / 1e6
            };
            let (theirs, own) = (thin_ms(&kernel.fates), thin_ms(ours));
            writeln!(
                notes,
                "  the thin flow waits at most: kernel {theirs:.1} ms, ours {own:.1} ms"
            )?;
            ensure!((theirs - own).abs() <= 1.0, "kernel {theirs}, ours {own}");
            Ok(())
        },
    }
}
