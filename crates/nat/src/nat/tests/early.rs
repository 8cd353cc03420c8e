//! Batches whose records were loaded ahead are translated as packets one by one are.

use super::*;
use crate::Direction;
use crate::nat::testing::{ACK, SYN, assert_sums, ends, read, tcp, udp};

fn packets() -> Vec<Vec<u8>> {
    let udp = (4000..4040).map(|port| udp(ends((ANN, port), (DNS, 53)), b"query"));
    let tcp = (4000..4010).map(|port| tcp(ends((ANN, port), (WEB, 80)), SYN));
    udp.chain(tcp).collect()
}

/// Translates a batch, of which the caller leaves out some packets. The external endpoints.
fn batch(world: &mut World, packets: &[Vec<u8>], takes: impl Fn(usize) -> bool) -> Vec<Ends> {
    let ahead = packets.iter().map(|one| (Some(world.ann), &one[..]));
    world.nat.touch(Direction::Out, ahead);
    let taken = packets.iter().enumerate().filter(|&(at, _)| takes(at));
    let sent = taken.map(|(_, one)| {
        let mut packet = one.clone();
        assert_eq!(world.out(world.ann, &mut packet), Ok(Verdict::Translated));
        assert_sums(&packet, true);
        read(&packet)
    });
    sent.collect()
}

#[test]
fn a_batch_keeps_its_mappings_and_its_answers_come_back() {
    let mut world = world(config());
    let packets = packets();
    let first = batch(&mut world, &packets, |_| true);
    assert_eq!(world.nat.counters().mappings, 50);
    assert_eq!(batch(&mut world, &packets, |_| true), first);
    let some = batch(&mut world, &packets, |at| at % 3 == 0);
    assert!(some.iter().eq(first.iter().step_by(3)));
    // None of the batch but its last packets, and then none of it.
    let last = batch(&mut world, &packets, |at| at > 40);
    assert_eq!(last[..], first[41..]);
    let answers = first.iter().enumerate().map(|(at, sent)| match at < 40 {
        true => udp(between(sent.to, sent.from), b"answer"),
        false => tcp(between(sent.to, sent.from), SYN | ACK),
    });
    let answers: Vec<Vec<u8>> = answers.collect();
    let ahead = answers.iter().map(|one| (None, &one[..]));
    world.nat.touch(Direction::In, ahead);
    for (answer, packet) in answers.iter().zip(&packets) {
        let mut answer = answer.clone();
        assert_eq!(world.back(&mut answer), Ok(Verdict::Translated));
        assert_sums(&answer, true);
        assert_eq!(read(&answer).to, read(packet).from);
    }
}

#[test]
fn a_mapping_that_ended_after_it_was_loaded_is_not_used() {
    let mut world = world(config());
    let packets = packets();
    let before = batch(&mut world, &packets, |_| true);
    let ahead = packets.iter().map(|one| (Some(world.ann), &one[..]));
    world.nat.touch(Direction::Out, ahead);
    world.nat.leave(world.ann, world.now);
    // Bob's mappings take the freed places.
    for port in 5000..5050 {
        let mut packet = udp(ends((BOB, port), (DNS, 53)), b"query");
        world.out(world.bob, &mut packet).expect("room");
    }
    let mut packet = packets[0].clone();
    let result = world.out(world.ann, &mut packet);
    assert_eq!(result, Err(Discard::Subscriber));
    // Nor is one by which an answer arrives.
    let answers = before
        .iter()
        .map(|one| udp(between(one.to, one.from), b"answer"));
    let answers: Vec<Vec<u8>> = answers.take(40).collect();
    world
        .nat
        .touch(Direction::In, answers.iter().map(|one| (None, &one[..])));
    world.nat.leave(world.bob, world.now);
    for answer in &answers {
        let result = world.back(&mut answer.clone());
        assert_eq!(result, Err(Discard::NoMapping));
    }
}

#[test]
fn ports_of_a_batch_of_new_mappings_are_random_and_distinct() {
    let mut world = world(config());
    batch(&mut world, &packets()[..1], |_| true);
    let sent = batch(&mut world, &packets(), |_| true);
    let mut ports: Vec<u16> = sent[..40].iter().map(|one| one.from.1).collect();
    let rising = ports
        .windows(2)
        .filter(|pair| pair[1] == pair[0] + 1)
        .count();
    assert!(rising < 10, "{ports:?}");
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 40);
}
