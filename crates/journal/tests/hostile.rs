//! Segments that were changed: cut anywhere, with any bit flipped, with garbage. Opening them never panics and never
//! finds a record that was not written: either the state after one of the first entries, or none at all.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use base::Instant;
use journal::{Batch, Host, Limits, Log, Moment, OpenError, Opened};
use sim::{CrashDisk, Rng};

const NAME: &str = "000001.log";
const HOST: Host = Host {
    machine: [3; 16],
    boot: [4; 16],
};
const NOW: Moment = Moment {
    clock: Instant::from_nanos(5_000_000),
    wall_ns: 1_700_000_000_000_000_000,
};

type State = BTreeMap<(u8, u64), Vec<(u8, Vec<u8>)>>;

fn open(disk: &CrashDisk) -> Result<(Log<CrashDisk>, Opened), OpenError> {
    Log::open(disk.clone(), HOST, Limits::default(), b"fields", NOW)
}

fn state(opened: &Opened) -> State {
    let records = opened.records.iter().map(|record| {
        let sections = record.sections.into_iter();
        let sections = sections.map(|(number, octets)| (number, octets.to_vec()));
        ((record.kind, record.key), sections.collect())
    });
    records.collect()
}

/// A segment, the length that was synced before its last group, and the states that it went through.
struct Sample {
    octets: Vec<u8>,
    synced: usize,
    states: Vec<State>,
}

fn sample() -> Sample {
    let disk = CrashDisk::new(0);
    let mut states = vec![State::new()];
    let mut synced = 0;
    for life in 0..2_u8 {
        let (mut log, _) = open(&disk).expect("its own");
        for n in 0..4_u8 {
            let mut batch = Batch::default();
            let value = [life, n, 0xc7, b'g', b'r', b'p'];
            assert!(batch.put(
                1,
                u64::from(n % 3),
                &[(0, &value), (2, &value[..n as usize])]
            ));
            if n == 2 {
                batch.remove(1, 0);
                assert!(batch.change(1, 1, &[(0, b""), (9, b"nine")]));
            }
            synced = log.octets() as usize;
            log.add(&mut batch, NOW);
            log.sync().expect("a disk that works");
        }
        drop(log);
    }
    let octets = disk.octets(NAME).expect("it is there");
    // Each prefix of the entries, as the journal itself reads it; `crashes` checks those.
    for end in 0..octets.len() {
        if let Ok((_, opened)) = open(&changed(&octets[..end])) {
            states.push(state(&opened));
        }
    }
    let (_, opened) = open(&changed(&octets)).expect("its own");
    states.push(state(&opened));
    assert_eq!(states.last().map(State::len), Some(3));
    states.dedup();
    Sample {
        octets,
        synced,
        states,
    }
}

fn changed(octets: &[u8]) -> CrashDisk {
    let disk = CrashDisk::new(0);
    disk.put(NAME, octets);
    disk
}

/// Opens what became of the sample. Returns whether it was set aside or refused.
fn check(sample: &Sample, octets: &[u8]) -> bool {
    let disk = changed(octets);
    let Ok((log, opened)) = open(&disk) else {
        assert_eq!(disk.octets(NAME).as_deref(), Some(octets), "left as it was");
        return true;
    };
    let found = state(&opened);
    drop(log);
    if let Some((aside, _)) = &opened.damaged {
        assert!(found.is_empty());
        assert_eq!(disk.octets(aside).as_deref(), Some(octets));
    }
    assert!(sample.states.contains(&found), "{found:?}");
    let (_, again) = open(&disk).expect("it was repaired");
    assert_eq!(state(&again), found);
    assert_eq!((again.cut_octets, again.damaged), (0, None));
    opened.damaged.is_some()
}

#[test]
fn any_flipped_bit_is_noticed() {
    let sample = sample();
    for at in 0..sample.octets.len() {
        for bit in 0..8 {
            let mut octets = sample.octets.clone();
            octets[at] ^= 1 << bit;
            let is_refused = check(&sample, &octets);
            // Only behind the last group's note of a sync, damage looks like a torn write.
            assert_eq!(is_refused, at < sample.synced, "octet {at}, bit {bit}");
        }
    }
}

/// Compaction syncs a segment before it has its name, so no later group has to say so.
#[test]
fn any_flipped_bit_of_a_compacted_segment_is_damage() {
    let disk = CrashDisk::new(0);
    let limits = Limits {
        compact_octets: 500,
        ..Limits::default()
    };
    let opened = Log::open(disk.clone(), HOST, limits, b"fields", NOW);
    let (mut log, _) = opened.expect("a new one");
    while log.compactions() == 0 {
        let mut batch = Batch::default();
        assert!(batch.put(1, 1, &[(0, &[7; 40])]));
        log.add(&mut batch, NOW);
        log.sync().expect("a disk that works");
        while log.wants_step() {
            log.step(NOW).expect("a disk that works");
        }
    }
    drop(log);
    assert_eq!(disk.octets(NAME), None, "it was removed");
    let octets = disk.octets("000002.log").expect("it took its place");
    for at in 0..octets.len() {
        let disk = CrashDisk::new(0);
        let mut changed = octets.clone();
        changed[at] ^= 1;
        disk.put("000002.log", &changed);
        let damaged = open(&disk).map(|(_, opened)| opened.damaged.is_some());
        assert!(damaged.unwrap_or(true), "octet {at}");
    }
}

#[test]
fn groups_of_an_earlier_process_are_not_taken_for_those_of_the_last_one() {
    let disk = CrashDisk::new(0);
    drop(open(&disk).expect("a new one"));
    let begun = disk.octets(NAME).expect("it is there");
    // A process writes a group that is lost, and the next one begins in its place.
    let first = changed(&begun);
    let (mut log, _) = open(&first).expect("its own");
    let start = log.octets() as usize;
    let mut batch = Batch::default();
    assert!(batch.put(1, 1, &[(0, b"lost")]));
    log.add(&mut batch, NOW);
    log.sync().expect("a disk that works");
    drop(log);
    let group = first.octets(NAME).expect("it is there").split_off(start);

    let second = changed(&first.octets(NAME).expect("it is there")[..start]);
    drop(open(&second).expect("its own"));
    let mut octets = second.octets(NAME).expect("it is there");
    octets.extend_from_slice(&group);
    let (_, opened) = open(&changed(&octets)).expect("its own");
    assert!(opened.records.is_empty());
    assert_eq!(opened.cut_octets, group.len() as u64);
}

#[test]
fn a_segment_may_end_anywhere() {
    let sample = sample();
    for end in 0..sample.octets.len() {
        check(&sample, &sample.octets[..end]);
        // As a file that was made longer before its octets came.
        let mut octets = sample.octets[..end].to_vec();
        octets.resize(sample.octets.len() + 5_000, 0);
        check(&sample, &octets);
    }
}

#[test]
fn garbage_is_not_believed() {
    let sample = sample();
    sim::seeds(20_000, |seed| {
        let mut rng = Rng::stream(seed, &["garbage"]);
        let mut octets = sample.octets.clone();
        for _ in 0..=rng.below(3) {
            let from = rng.below(octets.len() as u64) as usize;
            let to = from + rng.below((octets.len() - from) as u64 + 1) as usize;
            match rng.below(4) {
                0 => rng.fill(&mut octets[from..to]),
                1 => octets[from..to].fill(0),
                2 => drop(octets.drain(from..to)),
                _ => {
                    let again = octets[from..to].to_vec();
                    let at = rng.below(octets.len() as u64) as usize;
                    octets.splice(at..at, again);
                }
            }
            if octets.is_empty() {
                break;
            }
        }
        check(&sample, &octets);
    });
}

#[test]
fn many_false_beginnings_cost_little() {
    let sample = sample();
    let mut octets = sample.octets.clone();
    // Each of these says that a group of 1 MiB follows.
    for _ in 0..400_000 {
        octets.extend_from_slice(b"\xc7grp\x00\x00\x10\x00");
    }
    assert!(check(&sample, &octets));
}
