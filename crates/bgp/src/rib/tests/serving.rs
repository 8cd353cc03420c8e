//! How peers are served: packing, slow and new members, refresh, stale routes, several paths, intervals.

use base::Duration;
use wire::bgp::attr::code;

use super::*;

pub(super) fn many(count: u32) -> Vec<Nlri> {
    let prefix = |n: u32| Prefix::v4(0x0a00_0000 + (n << 8), 24);
    (0..count)
        .map(|n| Nlri {
            prefix: prefix(n),
            path_id: 0,
        })
        .collect()
}

#[test]
fn routes_with_equal_attributes_leave_in_one_message_however_they_came() {
    let mut net = Net::new();
    net.open(1, 64_501);
    net.open(2, 64_502);
    net.settle();
    for nlri in many(300) {
        let kind = nlri.prefix.bits() >> 104 & 3;
        net.say_routes(1, &Said::path(&[64_501, 100 + kind as u32]), &[nlri]);
    }
    net.settle();
    assert_eq!((net.ear(2).routes.len(), net.ear(2).updates), (300, 4));
    // A peer that connects later gets as few messages.
    net.open(3, 64_503);
    net.settle();
    assert_eq!((net.ear(3).routes.len(), net.ear(3).updates), (300, 4));
    assert_eq!(net.ear(3).ends, FamilyId::ALL);
    // The same holds in a group of its own.
    net.open(4, ASN);
    net.settle();
    assert_eq!((net.ear(4).routes.len(), net.ear(4).updates), (300, 4));
    net.close(1, Families::NONE);
    net.settle();
    assert_eq!((net.ear(2).routes.len(), net.ear(2).updates), (0, 5));
}

#[test]
fn what_changed_back_before_it_was_told_is_not_told() {
    let mut net = Net::new();
    net.open(1, 64_501);
    net.open(2, 64_502);
    let said = |n| Said::path(&[64_501, n]);
    net.say(1, &said(1), &["10.0.0.0/8"]);
    net.settle();
    net.say(1, &said(2), &["10.0.0.0/8"]);
    net.say(1, &said(1), &["10.0.0.0/8"]);
    net.unsay(1, &["10.0.0.0/8"]);
    net.say(1, &said(1), &["10.0.0.0/8"]);
    net.settle();
    assert_eq!(net.ear(2).updates, 1);
}

#[test]
fn a_member_that_does_not_read_costs_the_others_nothing_and_gets_all_in_the_end() {
    let mut net = Net::new();
    for n in 1..=3 {
        net.open(n, 64_500 + n);
    }
    net.settle();
    let routes = many(20_000);
    // Peer 3 reads none of the several megabytes queued for it.
    for round in 0..12 {
        for (at, some) in routes.chunks(20).enumerate() {
            let path = [64_501, 1 + round * 1_000 + at as u32];
            net.say_routes(1, &Said::path(&path), some);
            while net.rib.work(10_000, net.now) {}
            net.read(1, 65_536);
            net.read(2, 65_536);
        }
    }
    assert_eq!(net.ear(2).routes.len(), routes.len());
    assert_eq!(net.rib.counters().detached, 1);
    assert!(
        net.rib.memory().groups < 2_000_000,
        "{:?}",
        net.rib.memory()
    );
    assert!(net.rib.peer_counts(PeerId(3), FamilyId::Ipv4Unicast).behind > 0);
    net.say_routes(1, &Said::path(&[64_501]), &routes[..50]);
    let mut withdrawals = Vec::new();
    UpdateWriter::default().withdraw(
        FamilyId::Ipv4Unicast,
        routes[50..99].to_vec(),
        &mut withdrawals,
    );
    net.hear(1, &withdrawals, false);
    net.settle();
    net.read(3, 1_000);
    assert_eq!(net.ear(3).routes, net.ear(2).routes);
    assert_eq!(
        net.rib.peer_counts(PeerId(3), FamilyId::Ipv4Unicast).behind,
        0
    );
    // After that it reads the queue like the others.
    net.say(1, &Said::path(&[64_501, 5]), &["10.200.0.0/16"]);
    net.settle();
    assert_eq!(net.ear(3).routes, net.ear(2).routes);
}

#[test]
fn a_peer_that_comes_while_routes_change_hears_of_each_once_it_is_through() {
    let mut net = Net::new();
    net.open(1, 64_501);
    net.open(2, 64_502);
    let routes = many(5_000);
    net.say_routes(1, &Said::path(&[64_501]), &routes);
    net.settle();
    net.open(3, 64_503);
    let mut octets = Vec::new();
    assert!(net.rib.fill(PeerId(3), &mut octets, 4_000, T0));
    net.say_routes(1, &Said::path(&[64_501, 9]), &routes[..100]);
    net.unsay(1, &["10.19.0.0/24", "10.0.200.0/24"]);
    let (ear, context) = net.ears.get_mut(&3).expect("there");
    ear.listen(&octets, context);
    net.settle();
    assert_eq!(net.ear(3).routes, net.ear(2).routes);
    assert_eq!(
        net.ear(3).noise,
        0,
        "nothing is withdrawn that it was not told"
    );
    assert_eq!(net.ear(3).ends, FamilyId::ALL);
}

#[test]
fn a_refresh_is_all_again_between_its_marks() {
    let mut net = Net::new();
    net.open(1, 64_501);
    net.open(2, 64_502);
    let mut traits = Net::traits(3, 64_503);
    traits.enhanced_refresh = true;
    net.open_with(3, traits);
    net.say_routes(1, &Said::path(&[64_501]), &many(10));
    net.settle();
    for n in [2, 3] {
        net.ears.get_mut(&n).expect("there").0.routes.clear();
        net.rib.refresh(PeerId(n), FamilyId::Ipv4Unicast);
    }
    net.settle();
    for n in [2, 3] {
        assert_eq!((net.ear(n).routes.len(), net.ear(n).updates), (10, 2));
    }
    assert_eq!(net.ear(2).marks, []);
    assert_eq!(net.ear(3).marks, [Refresh::Begin, Refresh::End]);
}

#[test]
fn a_refresh_with_several_paths_loses_no_withdrawal_that_waits() {
    let mut net = Net::new();
    net.open(1, 64_501);
    let mut traits = Net::traits(2, 64_502);
    traits.add_path_tx = Families::ALL;
    traits.advertisement_interval = Duration::from_secs(30);
    net.open_with(2, traits);
    net.say_routes(1, &Said::path(&[64_501]), &many(10));
    net.settle();
    assert_eq!(net.ear(2).routes.len(), 10);
    // The timer runs, so this waits. The peer asks for all routes before it is over.
    net.unsay(1, &[&many(1)[0].prefix.to_string()]);
    net.settle();
    assert_eq!(net.ear(2).routes.len(), 10);
    net.rib.refresh(PeerId(2), FamilyId::Ipv4Unicast);
    net.settle();
    assert_eq!((net.ear(2).routes.len(), net.ear(2).noise), (9, 0));
}

#[test]
fn a_refresh_withdraws_nothing_that_was_not_sent() {
    let mut net = Net::new();
    net.open(1, 64_501);
    net.open(2, 64_502);
    net.say_routes(1, &Said::path(&[64_501]), &many(10));
    net.say(2, &Said::path(&[64_502]), &["10.200.0.0/16"]);
    net.settle();
    // Most routes of the group are the peer's own.
    for _ in 0..2 {
        net.rib.refresh(PeerId(1), FamilyId::Ipv4Unicast);
        net.settle();
    }
    assert_eq!((net.ear(1).noise, net.ear(1).updates), (0, 3));
    assert_eq!(net.ear(1).prefixes(), ["10.200.0.0/16"]);
    // Meanwhile a route is withdrawn that was sent, another one that was not, and a third one becomes the peer's own.
    net.say_routes(2, &Said::path(&[64_502, 7]), &many(14)[10..]);
    net.settle();
    net.rib.refresh(PeerId(1), FamilyId::Ipv4Unicast);
    net.read(1, 1);
    net.unsay(1, &[&many(14)[0].prefix.to_string()]);
    net.unsay(2, &["10.200.0.0/16"]);
    net.say_routes(1, &Said::path(&[64_501]), &many(14)[10..11]);
    net.settle();
    assert_eq!(net.ear(1).noise, 0);
    assert_eq!(net.ear(1).routes.len(), 3);
}

#[test]
fn stale_routes_stay_and_those_not_announced_again_go_at_the_end() {
    let mut net = Net::new();
    net.open(1, 64_501);
    net.open(2, 64_502);
    net.say_routes(1, &Said::path(&[64_501]), &many(10));
    net.settle();
    net.close(1, Families::ALL);
    net.settle();
    assert_eq!((net.ear(2).routes.len(), net.ear(2).updates), (10, 1));
    assert!(
        net.rib
            .routes(many(1)[0].prefix)
            .all(|route| route.is_stale)
    );
    net.open(1, 64_501);
    net.say_routes(1, &Said::path(&[64_501]), &many(6));
    net.settle();
    let counts = net.rib.peer_counts(PeerId(1), FamilyId::Ipv4Unicast);
    assert_eq!((counts.received, counts.stale), (10, 4));
    net.rib.end_of_rib(PeerId(1), FamilyId::Ipv4Unicast);
    net.settle();
    assert_eq!(net.ear(2).routes.len(), 6);
    assert_eq!(
        net.ear(2).updates,
        2,
        "unchanged routes are not advertised again"
    );
    // Routes that are stale for the second time are removed.
    net.close(1, Families::ALL);
    net.open(1, 64_501);
    net.say_routes(1, &Said::path(&[64_501]), &many(1));
    net.close(1, Families::ALL);
    net.settle();
    assert_eq!(net.ear(2).routes.len(), 1);
}

#[test]
fn routes_that_a_refresh_made_old_stay_when_the_session_ends_in_the_middle() {
    let v4 = FamilyId::Ipv4Unicast;
    let mut net = Net::new();
    net.open(1, 64_501);
    net.open(2, 64_502);
    net.say_routes(1, &Said::path(&[64_501]), &many(10));
    net.settle();
    // The peer starts three times, and sends some of its routes again each time.
    for count in [2, 4, 0] {
        net.rib.mark_stale(PeerId(1), v4);
        net.say_routes(1, &Said::path(&[64_501]), &many(count));
        net.settle();
        assert_eq!(net.rib.counts(v4), (10, 10));
    }
    net.close(1, Families::ALL);
    net.settle();
    assert_eq!(net.ear(2).routes.len(), 10);
    // It is back, and sends seven of them: after that only these are left.
    net.open(1, 64_501);
    net.say_routes(1, &Said::path(&[64_501]), &many(7));
    net.rib.end_of_rib(PeerId(1), v4);
    net.settle();
    assert_eq!((net.rib.counts(v4), net.ear(2).routes.len()), ((7, 7), 7));
    // Without graceful restart all go, also in the middle of a refresh.
    net.rib.mark_stale(PeerId(1), v4);
    net.say_routes(1, &Said::path(&[64_501]), &many(3));
    net.close(1, Families::NONE);
    net.settle();
    assert_eq!(net.rib.counts(v4), (0, 0));
}

#[test]
fn a_refresh_may_start_any_number_of_times() {
    let v4 = FamilyId::Ipv4Unicast;
    let mut net = Net::new();
    net.open(1, 64_501);
    net.say_routes(1, &Said::path(&[64_501]), &many(10));
    for round in 1..1_000 {
        net.rib.mark_stale(PeerId(1), v4);
        net.say_routes(1, &Said::path(&[64_501, round]), &many(2));
        net.settle();
        assert_eq!(net.rib.counts(v4), (10, 10), "round {round}");
    }
    net.close(1, Families::ALL);
    net.settle();
    assert_eq!(net.rib.counts(v4), (10, 10));
    net.open(1, 64_501);
    net.say_routes(1, &Said::path(&[64_501]), &many(3));
    net.rib.end_of_rib(PeerId(1), v4);
    net.settle();
    assert_eq!(net.rib.counts(v4), (3, 3));
}

#[test]
fn a_closed_peer_is_swept_in_slices_while_its_next_session_announces() {
    let mut net = Net::new();
    net.open(1, 64_501);
    net.open(2, 64_502);
    net.say_routes(1, &Said::path(&[64_501]), &many(3_000));
    net.settle();
    net.close(1, Families::NONE);
    assert!(net.rib.work(100, T0), "not all at once");
    assert!(net.rib.counts(FamilyId::Ipv4Unicast).0 > 2_500);
    net.open(1, 64_501);
    net.say_routes(1, &Said::path(&[64_501, 4]), &many(50));
    net.settle();
    assert_eq!(net.rib.counts(FamilyId::Ipv4Unicast), (50, 50));
    assert_eq!(net.ear(2).routes.len(), 50);
}

#[test]
fn a_peer_may_have_many_short_sessions_before_its_routes_are_swept() {
    let mut net = Net::new();
    net.open(2, 64_502);
    for round in 0..600 {
        net.open(1, 64_501);
        net.say(
            1,
            &Said::path(&[64_501, 1 + round]),
            &["10.0.0.0/8", &format!("10.{}.0.0/16", round % 250)],
        );
        net.close(1, Families::NONE);
    }
    net.settle();
    assert_eq!(net.rib.counts(FamilyId::Ipv4Unicast), (0, 0));
    assert_eq!(net.ear(2).routes.len(), 0);
}

#[test]
fn several_paths_go_to_those_that_take_them_with_identifiers_that_stay() {
    for (count, wanted) in [(0, 3), (2, 2)] {
        let mut net = Net::new();
        for n in 1..=3 {
            net.open(n, 64_500 + n);
        }
        let mut traits = Net::traits(4, 64_504);
        traits.add_path_tx = Families::ALL;
        traits.add_path_count = count;
        net.open_with(4, traits);
        for n in 1..=3 {
            net.say(n, &Said::path(&[64_500 + n]), &["10.0.0.0/8"]);
        }
        net.settle();
        let ids = |net: &Net| -> Vec<(u32, String)> {
            let routes = net.ear(4).routes.iter();
            routes.map(|((_, id), heard)| (*id, heard.path())).collect()
        };
        let before = ids(&net);
        assert_eq!(before.len(), wanted);
        net.say(2, &Said::path(&[64_502, 9]), &["10.0.0.0/8"]);
        net.settle();
        let after = ids(&net);
        if count == 0 {
            let id =
                |list: &[(u32, String)], path: &str| list.iter().find(|r| r.1 == path).map(|r| r.0);
            assert_eq!(id(&before, "65000 64502"), id(&after, "65000 64502 9"));
        } else {
            let paths: Vec<&str> = after.iter().map(|route| route.1.as_str()).collect();
            assert!(
                !paths.contains(&"65000 64502 9"),
                "the worst is not among the best two"
            );
        }
        net.rib.refresh(PeerId(4), FamilyId::Ipv4Unicast);
        net.ears.get_mut(&4).expect("there").0.routes.clear();
        net.settle();
        assert_eq!(ids(&net), after);
        net.close(1, Families::NONE);
        net.settle();
        assert_eq!(net.ear(4).routes.len(), 2);
        assert_eq!(net.ear(1 + 1).noise + net.ear(4).noise, 0);
    }
}

#[test]
fn an_interval_passes_between_advertisements_with_jitter() {
    let mut net = Net::new();
    net.open(1, 64_501);
    let mut traits = Net::traits(2, 64_502);
    traits.advertisement_interval = Duration::from_secs(30);
    net.open_with(2, traits);
    net.say(1, &Said::path(&[64_501]), &["10.0.0.0/8"]);
    net.settle();
    assert_eq!(net.ear(2).updates, 1);
    net.say(1, &Said::path(&[64_501, 2]), &["10.0.0.0/8"]);
    net.settle();
    assert_eq!(net.ear(2).updates, 1);
    let (at, name) = net.rib.poll_timeout().expect("a timer");
    assert_eq!(name, "MinRouteAdvertisementIntervalTimer");
    let wait = at - net.now;
    assert!(
        wait >= Duration::from_millis(22_500) && wait <= Duration::from_secs(30),
        "{wait:?}"
    );
    net.now = at;
    net.settle();
    assert_eq!(net.ear(2).updates, 2);
    assert_eq!(net.rib.poll_timeout(), None);
}

#[test]
fn a_deferred_rib_says_nothing_until_it_may() {
    let mut net = Net::new();
    net.rib.set_deferred(true);
    net.open(1, 64_501);
    net.open(2, 64_502);
    net.say(1, &Said::path(&[64_501]), &["10.0.0.0/8"]);
    net.settle();
    assert_eq!((net.ear(2).routes.len(), net.ear(2).ends.len()), (0, 0));
    net.rib.set_deferred(false);
    net.settle();
    assert_eq!((net.ear(2).routes.len(), net.ear(2).ends.len()), (1, 2));
}

#[test]
fn a_peer_over_its_limit_is_told_of() {
    let mut net = Net::new();
    let mut traits = Net::traits(1, 64_501);
    traits.prefix_limit = [Some(3), None];
    net.open_with(1, traits);
    assert!(
        !net.say_routes(1, &Said::path(&[64_501]), &many(3))
            .is_over_limit
    );
    assert!(
        net.say_routes(1, &Said::path(&[64_501]), &many(4))
            .is_over_limit
    );
}

#[test]
fn changes_of_best_routes_are_told_to_who_watches() {
    let mut net = Net::new();
    net.open(1, 64_501);
    net.say(1, &Said::path(&[64_501]), &["10.0.0.0/8"]);
    assert_eq!(net.rib.poll_change(), None);
    net.rib.watch_changes();
    let change = net.rib.poll_change().expect("the best route so far");
    assert_eq!(change.prefix, p("10.0.0.0/8"));
    let best = change.best.expect("a route");
    assert_eq!(
        (best.peer, best.next_hop),
        (Some(PeerId(1)), Some([10, 9, 0, 1].into()))
    );
    net.unsay(1, &["10.0.0.0/8"]);
    net.settle();
    let change = net.rib.poll_change().expect("a change");
    assert_eq!((change.prefix, change.best), (p("10.0.0.0/8"), None));
    assert_eq!(net.rib.poll_change(), None);
}

#[test]
fn tables_are_walked_in_bounded_steps_and_matched_by_length() {
    let mut net = Net::new();
    net.open(1, 64_501);
    net.say_routes(1, &Said::path(&[64_501]), &many(1_000));
    net.say(1, &Said::path(&[64_501]), &["10.0.0.0/8", "0.0.0.0/0"]);
    let mut seen = std::collections::BTreeSet::new();
    let mut cursor = Some(Default::default());
    while let Some(at) = cursor {
        let before = seen.len();
        cursor = net.rib.walk(FamilyId::Ipv4Unicast, at, 64, |prefix| {
            assert!(seen.insert(prefix))
        });
        assert!(seen.len() - before <= 64);
    }
    assert_eq!(seen.len(), 1_002);
    let mut within = 0;
    net.rib
        .walk_within(p("10.0.0.0/16"), Default::default(), 5_000, |_| within += 1);
    assert_eq!(within, 256);
    let longest = |text: &str| {
        net.rib
            .longest_match(p(text))
            .map(|prefix| prefix.to_string())
    };
    assert_eq!(longest("10.0.7.9/32").as_deref(), Some("10.0.7.0/24"));
    assert_eq!(longest("10.200.7.9/32").as_deref(), Some("10.0.0.0/8"));
    assert_eq!(longest("11.0.0.1/32").as_deref(), Some("0.0.0.0/0"));
    assert_eq!(longest("2001:db8::/32"), None);
}

#[test]
fn attributes_that_leave_no_room_for_a_prefix_are_counted_and_not_told() {
    let mut net = Net::new();
    net.open(1, 64_501);
    net.open(2, 64_502);
    let said = Said::path(&[64_501]);
    net.say(1, &said, &["10.0.0.0/8"]);
    net.settle();
    // The route arrives in a message of 4,096 octets; our AS does not fit into it.
    let large = said.with(code::COMMUNITIES, &[7; 4_000]);
    let room = 4_096 - 19 - 4 - 2 - large.raw.len() - 7;
    let large = large.with(99, &vec![1; room - 3]);
    net.say(1, &large, &["10.0.0.0/8"]);
    net.settle();
    assert_eq!(net.ear(2).routes.len(), 0, "and the old route is withdrawn");
    assert_eq!(net.rib.counters().too_long, 1);
}

#[test]
fn a_group_marks_a_large_table_in_slices_and_ends_its_dump_after_the_last() {
    // More slots than are marked together.
    let routes = many(150_000);
    let mut net = Net::new();
    net.open(1, 64_501);
    net.say_routes(1, &Said::path(&[64_501]), &routes);
    net.settle();
    // Internal peers are another group. It is served before all its slots are marked.
    let traits = Net::traits(2, ASN);
    net.open_with(2, traits);
    net.read(2, usize::MAX);
    assert!(
        !net.ear(2).ends.contains(&FamilyId::ALL[0]),
        "not before the last route"
    );
    net.settle();
    assert_eq!(net.ear(2).routes.len(), routes.len());
    assert_eq!(net.ear(2).ends.len(), FamilyId::ALL.len());
}

#[test]
fn a_fill_takes_one_window_at_a_time_however_large_its_limit() {
    let routes = many(100_000);
    let mut net = Net::new();
    net.open(1, 64_501);
    net.open(2, 64_502);
    for part in routes.chunks(1_000) {
        let n = (part[0].prefix.bits() >> 104) as u32;
        net.say_routes(1, &Said::path(&[64_501, n]), part);
    }
    net.settle();
    net.rib.refresh(PeerId(2), FamilyId::ALL[0]);
    let mut calls = 0;
    let mut out = Vec::new();
    while let Some(peer) = net.rib.poll_ready() {
        while net.rib.fill(peer, &mut out, usize::MAX, T0) {
            calls += 1;
        }
    }
    assert!(calls >= 100_000 / 32_768, "{calls}");
}

/// Peer 1 announces `count` routes, ten to an attribute set, and peer 2 has read them.
fn with_table(count: u32) -> Net {
    let mut net = Net::new();
    net.open(1, 64_501);
    net.open(2, 64_502);
    for (n, part) in many(count).chunks(10).enumerate() {
        net.say_routes(1, &Said::path(&[64_501, 100_000 + n as u32]), part);
    }
    net.settle();
    net
}

#[test]
fn peers_that_join_a_large_group_together_are_one_group_until_they_have_its_routes() {
    let mut net = with_table(40_000);
    let groups = net.rib.memory().group_count;
    for n in 3..=20 {
        net.open(n, 64_500 + n);
    }
    assert_eq!(net.rib.memory().group_count, groups + 1);
    net.settle();
    assert_eq!(net.ear(3).routes.len(), 0, "more may join");
    net.now += Duration::from_millis(100);
    net.settle();
    for n in 3..=20 {
        assert_eq!(net.ear(n).routes, net.ear(2).routes);
        assert_eq!(net.ear(n).ends.len(), FamilyId::ALL.len());
        assert_eq!(net.ear(n).updates, net.ear(3).updates);
    }
    assert_eq!(net.rib.memory().group_count, groups);
    net.say(1, &Said::path(&[64_501]), &["203.0.113.0/24"]);
    net.unsay(1, &["10.0.0.0/24"]);
    net.settle();
    assert!((2..=20).all(|n| net.ear(n).routes == net.ear(2).routes));
    assert_eq!(net.ear(20).routes.len(), 40_000);
    assert_eq!(net.ear(20).noise, 0);
}

#[test]
fn joiners_wait_for_the_slowest_of_them_for_three_seconds_and_no_longer() {
    let mut net = with_table(100_000);
    for n in 3..=5 {
        net.open(n, 64_500 + n);
    }
    let read = |net: &mut Net| {
        for _ in 0..100 {
            net.rib.work(10_000, net.now);
            net.read(3, 65_536);
            net.read(4, 65_536);
        }
    };
    net.now += Duration::from_millis(1);
    read(&mut net);
    net.now += Duration::from_millis(100);
    read(&mut net);
    let early = net.ear(3).routes.len();
    assert!(
        (1_000..100_000).contains(&early),
        "{early}: as far as the queue is long"
    );
    let (until, _) = net.rib.poll_timeout().expect("a timer");
    assert_eq!(
        until,
        net.now + Duration::from_secs(3),
        "and nothing is due before"
    );
    net.now = until;
    read(&mut net);
    assert_eq!(net.ear(3).routes.len(), 100_000);
    assert_eq!(net.ear(4).routes, net.ear(3).routes);
    // The slow one is served when it reads.
    assert_eq!(net.ear(5).routes.len(), 0);
    net.read(5, 65_536);
    net.settle();
    assert_eq!(net.ear(5).routes, net.ear(3).routes);
    assert_eq!(net.ear(5).ends.len(), FamilyId::ALL.len());
}

#[test]
fn peers_that_come_one_by_one_gather_while_others_are_sent_their_dump() {
    let mut net = with_table(40_000);
    let groups = net.rib.memory().group_count;
    // Nobody reads, so the first cohorts do not end.
    for n in 3..=14 {
        net.open(n, 64_500 + n);
        for _ in 0..20 {
            net.rib.work(10_000, net.now);
        }
        net.now += Duration::from_millis(200);
    }
    assert!(
        net.rib.memory().group_count <= groups + 3,
        "two that are sent, one that gathers"
    );
    for _ in 0..10 {
        net.settle();
        net.now += Duration::from_secs(1);
    }
    for n in 3..=14 {
        assert_eq!(net.ear(n).routes.len(), 40_000, "peer {n}");
        assert_eq!(net.ear(n).ends.len(), FamilyId::ALL.len());
    }
    assert_eq!(net.rib.memory().group_count, groups);
}

#[test]
fn peers_that_join_the_only_source_of_a_large_table_share_their_dump_too() {
    let mut net = Net::new();
    net.open(1, 64_501);
    for (n, part) in many(40_000).chunks(10).enumerate() {
        net.say_routes(1, &Said::path(&[64_501, 100_000 + n as u32]), part);
    }
    net.settle();
    let groups = net.rib.memory().group_count;
    for round in 0..3 {
        for n in 2..=5 {
            net.open(4 * round + n, 64_500 + 4 * round + n);
        }
        net.settle();
        net.now += Duration::from_millis(100);
        net.settle();
        for n in 2..=5 {
            assert_eq!(net.ear(4 * round + n).routes.len(), 40_000);
        }
        // The source keeps its own group; all others are in one.
        assert_eq!(net.rib.memory().group_count, groups + 1, "round {round}");
    }
    net.say(13, &Said::path(&[64_513]), &["203.0.113.0/24"]);
    net.settle();
    assert_eq!(net.ear(1).routes.len(), 1);
    assert_eq!(net.ear(2).routes.len(), 40_001);
    assert_eq!(net.ear(13).routes.len(), 40_000);
}

#[test]
fn joiners_that_never_read_keep_no_later_ones_from_their_dump() {
    let mut net = with_table(100_000);
    let turns = |net: &mut Net, readers: &[u32]| {
        for _ in 0..100 {
            net.rib.work(10_000, net.now);
            readers.iter().for_each(|&n| net.read(n, 65_536));
        }
    };
    // As many cohorts as run at the same time, and nobody in them reads.
    for n in [3, 4] {
        net.open(n, 64_500 + n);
        turns(&mut net, &[]);
        net.now += Duration::from_millis(200);
        turns(&mut net, &[]);
    }
    net.open(5, 64_505);
    for _ in 0..10 {
        net.now += Duration::from_secs(1);
        turns(&mut net, &[2, 5]);
    }
    assert_eq!(net.ear(5).routes.len(), 100_000);
    assert_eq!(net.ear(5).ends.len(), FamilyId::ALL.len());
    assert_eq!(net.ear(3).routes.len() + net.ear(4).routes.len(), 0);
}

#[test]
fn a_joiner_that_reads_a_little_each_second_does_not_set_the_pace() {
    let mut net = with_table(100_000);
    for n in [3, 4] {
        net.open(n, 64_500 + n);
    }
    // Peer 3 reads a message a second; 20 seconds are more than enough for peer 4.
    for _ in 0..20 {
        for _ in 0..100 {
            net.rib.work(10_000, net.now);
            net.read(4, 65_536);
        }
        let mut out = Vec::new();
        net.rib.fill(PeerId(3), &mut out, 1, net.now);
        net.now += Duration::from_secs(1);
    }
    assert_eq!(net.ear(4).routes.len(), 100_000);
}

#[test]
fn joiners_that_never_read_make_few_groups() {
    let mut net = with_table(40_000);
    let groups = net.rib.memory().group_count;
    for n in 3..=60 {
        net.open(n, 64_500 + n);
        for _ in 0..10 {
            net.rib.work(10_000, net.now);
        }
        net.now += Duration::from_secs(2);
    }
    assert!(net.rib.memory().group_count <= groups + 8);
    net.open(61, 64_561);
    for _ in 0..20 {
        net.rib.work(10_000, net.now);
        net.read(61, 65_536);
        net.now += Duration::from_secs(1);
    }
    assert_eq!(net.ear(61).routes.len(), 40_000);
}
