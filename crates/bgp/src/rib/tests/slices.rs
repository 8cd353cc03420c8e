//! How much work one call does, by count: however large the table is and however many members there are.

use base::Duration;

use super::serving::many;
use super::*;

/// The slots that one call may note for members that are served apart: a slice, and the rest of one queue or window.
const NOTED_MAX: u32 = 3 * 32_768;

/// How many slots all peers are behind with.
fn behind(net: &Net, peers: std::ops::Range<u32>) -> u32 {
    let of = |n| net.rib.peer_counts(PeerId(n), FamilyId::Ipv4Unicast).behind;
    peers.map(of).sum()
}

#[test]
fn members_that_stop_to_read_together_are_served_apart_in_slices() {
    let slow = 3..13;
    let mut net = Net::new();
    for n in 1..slow.end {
        net.open(n, 64_500 + n);
    }
    net.settle();
    let routes = many(45_000);
    let mut most = 0;
    for round in 0..2 {
        for (at, part) in routes.chunks(700).enumerate() {
            let path = [64_501, 1 + round * 1_000 + at as u32];
            net.say_routes(1, &Said::path(&path), part);
        }
        let mut before = behind(&net, slow.clone());
        let mut note = |net: &Net| {
            let now = behind(net, slow.clone());
            most = most.max(now.saturating_sub(before));
            before = now;
        };
        for _ in 0..600 {
            net.rib.work(1_000, net.now);
            note(&net);
            let mut out = Vec::new();
            net.rib.fill(PeerId(2), &mut out, 16_384, net.now);
            note(&net);
            let (ear, context) = net.ears.get_mut(&2).expect("open");
            ear.listen(&out, context);
        }
        assert_eq!(net.ear(2).routes.len(), routes.len());
    }
    // Peer 1, whose routes these are, does not read either.
    assert_eq!(net.rib.counters().detached, slow.len() as u64 + 1);
    assert!(
        behind(&net, slow.clone()) > 2 * NOTED_MAX,
        "much is noted in all"
    );
    assert!(most <= NOTED_MAX, "{most} in one call");
    for n in slow {
        net.read(n, 65_536);
        assert_eq!(net.ear(n).routes, net.ear(2).routes);
    }
}

#[test]
fn a_member_that_reads_while_slots_are_noted_for_others_loses_no_change() {
    let mut net = Net::new();
    for n in 1..=12 {
        net.open(n, 64_500 + n);
    }
    net.settle();
    let routes = many(40_000);
    for round in 0..3 {
        net.say_routes(1, &Said::path(&[64_501, 1 + round]), &routes);
        for _ in 0..60 {
            net.rib.work(1, net.now);
            let mut out = Vec::new();
            net.rib.fill(PeerId(2), &mut out, 65_536, net.now);
            let (ear, context) = net.ears.get_mut(&2).expect("open");
            ear.listen(&out, context);
            // Each of the others reads a little, in turn.
            let n = 3 + round % 10;
            out = Vec::new();
            net.rib.fill(PeerId(n), &mut out, 4_096, net.now);
            let (ear, context) = net.ears.get_mut(&n).expect("open");
            ear.listen(&out, context);
        }
    }
    net.settle();
    for n in 2..=12 {
        net.read(n, 65_536);
        assert_eq!(net.ear(n).routes, net.ear(2).routes, "peer {n}");
        assert!(
            net.ear(n)
                .get("10.0.0.0/24")
                .expect("told")
                .path()
                .ends_with(" 3")
        );
    }
}

#[test]
fn slots_of_withdrawn_prefixes_are_freed_apart_from_other_work_and_no_more_than_asked() {
    let mut net = Net::new();
    net.open(1, 64_501);
    net.open(2, 64_502);
    let routes = many(40_000);
    net.say_routes(1, &Said::path(&[64_501]), &routes);
    net.settle();
    let mut octets = Vec::new();
    UpdateWriter::default().withdraw(FamilyId::Ipv4Unicast, routes.iter().copied(), &mut octets);
    net.hear(1, &octets, false);
    while net.rib.work_apart(10_000, net.now) {
        net.serve(65_536);
    }
    net.serve(65_536);
    assert_eq!(net.ear(2).routes.len(), 0);
    assert_eq!(net.rib.reclaimable(), routes.len());
    while net.rib.reclaimable() > 0 {
        let before = net.rib.reclaimable();
        let has_more = net.rib.reclaim(500, net.now);
        assert_eq!(before - net.rib.reclaimable(), 500);
        assert!(has_more);
    }
    assert!(!net.rib.reclaim(500, net.now));
    assert!(
        routes
            .iter()
            .all(|nlri| net.rib.store.slot(nlri.prefix).is_none())
    );
}

#[test]
fn a_slot_that_was_used_again_is_not_freed_before_its_last_withdrawal_was_read() {
    let mut net = Net::new();
    for n in 1..=3 {
        net.open(n, 64_500 + n);
    }
    let both = ["10.1.0.0/16", "10.2.0.0/16"];
    net.say(1, &Said::path(&[64_501]), &both);
    net.settle();
    net.unsay(1, &both);
    while net.rib.work_apart(1_000, net.now) {}
    net.serve(65_536);
    assert!(net.rib.reclaim(1, net.now), "one of two");
    assert_eq!(net.rib.store.slot(p(both[0])), None);
    // Now peer 3 does not read.
    net.say(1, &Said::path(&[64_501]), &both[1..]);
    while net.rib.work_apart(1_000, net.now) {}
    net.read(2, 65_536);
    net.unsay(1, &both[1..]);
    while net.rib.work_apart(1_000, net.now) {}
    net.read(2, 65_536);
    for _ in 0..3 {
        net.rib.reclaim(10, net.now);
        net.now += Duration::from_secs(2);
    }
    assert!(net.rib.store.slot(p(both[1])).is_some());
    net.serve(65_536);
    net.rib.reclaim(10, net.now);
    assert_eq!(net.rib.store.slot(p(both[1])), None);
    assert_eq!(net.ear(3).routes.len(), 0);
}

#[test]
fn what_a_peer_with_path_identifiers_was_sent_is_released_in_slices() {
    let mut net = Net::new();
    net.open(1, 64_501);
    let mut traits = Net::traits(2, 64_502);
    traits.add_path_tx = Families::ALL;
    net.open_with(2, traits);
    net.say_routes(1, &Said::path(&[64_501]), &many(5_000));
    net.settle();
    assert_eq!(net.ear(2).routes.len(), 5_000);
    net.close(2, Families::NONE);
    let mut calls = 0;
    while net.rib.groups.has_dying() {
        net.rib.work(100, net.now);
        calls += 1;
    }
    assert!(calls >= 50, "{calls}");
    net.close(1, Families::NONE);
    net.settle();
    assert_eq!(net.rib.memory().path_count, 0);
}
