//! The log, the report, the capture file, recordings and their replay.

use crate::toy::{Event, Toy};
use base::{Duration, Instant};
use sim::{ADDRESS_A, ADDRESS_B, Call, Entry, Fate, Link, Pair, Probe, Recording, World};

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn the_log_is_bounded_and_forgets_the_oldest() {
    let mut pair = Pair::new(1, Link::CLEAN, Probe::default(), Probe::default());
    pair.set_log_limit(3);
    pair.with_a(|a, _| (0..5).for_each(|i| a.send(ADDRESS_B, &[i])));
    assert!(pair.run_until_idle(HOUR));
    let kept: Vec<_> = pair.log().map(|record| record.bytes[0]).collect();
    assert_eq!(kept, [2, 3, 4]);
    // Fates reach the records that are kept.
    assert!(pair.log().all(|r| matches!(r.fate, Fate::Delivered { .. })));
    assert_eq!(pair.events_b().len(), 5);
    pair.set_log_limit(0);
    pair.with_a(|a, _| a.send(ADDRESS_B, b"unlogged"));
    assert!(pair.run_until_idle(HOUR));
    assert_eq!(pair.log().len(), 0);
    assert_eq!(pair.events_b().len(), 1);
}

#[test]
fn a_report_names_the_seed_the_time_the_nodes_and_the_last_datagrams() {
    let mut pair = Pair::new(42, Link::CLEAN, Toy::sender(ADDRESS_B), Toy::echoer());
    pair.with_a(|a, now| a.send(1, now));
    pair.run_for(Duration::from_millis(10));
    pair.cut_link();
    pair.run_for(Duration::from_millis(20));
    assert_eq!(
        pair.report(2),
        "seed 42, t=0.030000000s, 2 steps, 0 under way\n  \
         a 192.0.2.1:1701, retry due t=1.000000000s, 0 events unread, 0 discarded\n  \
         b 192.0.2.2:1701, no deadline, 1 events unread, 0 discarded\n  \
         a > b: 1 sent, 1 delivered (now cut)\n  \
         b > a: 1 sent, 1 cut (now cut)\n\
         the last 2 of 2 datagrams:\n\
         t=0.000000000s 192.0.2.1:1701 > 192.0.2.2:1701 4 B [00000000] \
         a > b: delivered t=0.010000000s\n\
         t=0.010000000s 192.0.2.2:1701 > 192.0.2.1:1701 4 B [00000000] b > a: cut\n"
    );
    pair.set_decoder(|bytes| format!("number {}", bytes[3]));
    assert!(pair.report(1).contains("[number 0]"));
}

#[test]
fn a_capture_has_a_block_for_each_datagram_with_its_fate() {
    let mut pair = Pair::new(1, Link::CLEAN, Probe::default(), Probe::default());
    let (a, b) = (pair.a, pair.b);
    pair.drop_next(a, b, 1);
    pair.run_for(Duration::from_secs(5));
    pair.with_a(|a, _| (0..2).for_each(|_| a.send(ADDRESS_B, b"hello")));
    assert!(pair.run_until_idle(HOUR));
    let file = pair.pcap();
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let mut blocks = Vec::new();
    let mut at = 0;
    while at < file.len() {
        let len = word(at + 4) as usize;
        // A block ends with its length again.
        assert_eq!(word(at + len - 4) as usize, len);
        blocks.push((word(at), at, len));
        at += len;
    }
    let kinds: Vec<_> = blocks.iter().map(|block| block.0).collect();
    assert_eq!(kinds, [0x0a0d_0d0a, 1, 6, 6]);
    let (_, at, len) = blocks[2];
    let ns = u64::from(word(at + 12)) << 32 | u64::from(word(at + 16));
    assert_eq!(ns, 5_000_000_000);
    assert_eq!(word(at + 20), 20 + 8 + 5);
    let text = String::from_utf8_lossy(&file[at..at + len]).into_owned();
    assert!(text.contains("hello") && text.contains("a > b: dropped"));
}

/// A rough run of a sender, recorded.
fn recorded() -> (Pair<Toy, Toy>, Recording) {
    let mut pair = Pair::new(9, Link::ROUGH, Toy::sender(ADDRESS_B), Toy::echoer());
    let a = pair.a;
    pair.record(a);
    pair.on_event(a, |toy, event, now| {
        if *event == Event::Acked(7) {
            toy.send(3, now);
        }
    });
    pair.with_a(|a, now| a.send(5, now));
    pair.run_for(Duration::from_secs(2));
    pair.with_a(|a, now| a.send(10, now));
    assert!(pair.run_until_idle(HOUR));
    let recording = pair.take_recording(a).unwrap();
    (pair, recording)
}

#[test]
fn a_replay_takes_a_fresh_machine_to_the_same_end() {
    let (mut pair, recording) = recorded();
    let replayed = recording.replay(Toy::sender(ADDRESS_B), |toy, call, now| match call {
        Call::Command(0) => toy.send(5, now),
        Call::Command(_) => toy.send(10, now),
        Call::Event(Event::Acked(7)) => toy.send(3, now),
        Call::Event(_) => {}
    });
    assert_eq!(replayed.recording, recording);
    assert_eq!(replayed.machine.waiting(), 0);
    assert_eq!(replayed.events, pair.world.take_timed_events(pair.a));
    assert_eq!(
        replayed.discards.len(),
        pair.world.take_discards(pair.a).len()
    );
    let timeouts = recording
        .entries()
        .iter()
        .filter(|(_, e)| *e == Entry::Timeout);
    assert!(timeouts.count() > 0);
}

#[test]
fn a_recording_survives_being_written_down() {
    let (_, recording) = recorded();
    assert_eq!(recording.to_string().parse(), Ok(recording));
}

#[test]
fn a_replay_of_another_machine_diverges() {
    let (_, recording) = recorded();
    let replayed = recording.replay(Toy::sender(ADDRESS_A), |toy, call, now| {
        if let Call::Command(_) = call {
            toy.send(5, now);
        }
    });
    assert_ne!(replayed.recording, recording);
}

#[test]
fn a_world_of_mixed_types_gives_each_its_own_back() {
    let mut world = World::new(1);
    let toy = world.add("toy", Toy::echoer(), [ADDRESS_A]);
    let probe = world.add("probe", Probe::default(), [ADDRESS_B]);
    world.with(probe, |p, _| p.send(ADDRESS_A, &[0, 0, 0, 9]));
    assert!(world.run_until_idle(HOUR));
    assert_eq!(
        world.take_timed_events(toy)[0].0,
        Instant::from_nanos(10_000_000)
    );
    assert_eq!(world.take_events(probe)[0].bytes, [0, 0, 0, 9]);
}
