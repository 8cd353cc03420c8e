//! Floods: what they may cost.

use base::{Duration, Machine};
use pppoe::{Config, Discard, Limits, Vlans};
use wire::pppoe::Code;

use crate::common::{Bench, config, data, host, packet, padi};

#[test]
fn a_flood_of_initiations_is_answered_at_the_rate_and_leaves_nothing() {
    let limits = Limits {
        padis_per_s: 1_000,
        padis_per_mac_per_s: 5,
        padis_per_vlan_per_s: 0,
        ..Limits::default()
    };
    let mut bench = Bench::new(Config { limits, ..config() });
    let (_, id) = bench.open(host(0xffff), &[]);
    bench.wait(Duration::from_secs(2));
    // 100,000 from as many addresses within a second.
    let mut answered = 0;
    for n in 0..100_000 {
        bench.now += Duration::from_micros(10);
        match bench.send(host(0x10_0000 + n), &padi()) {
            Ok(()) => answered += bench.sent().len(),
            Err(why) => assert_eq!(why, Discard::PadiRate),
        }
        if n % 1_000 == 0 {
            assert_eq!(bench.send(host(0xffff), &data(id)), Ok(()));
        }
    }
    assert!((1_900..=2_001).contains(&answered), "{answered}");
    assert_eq!(bench.endpoint.count(), 1);
    assert_eq!(bench.endpoint.poll_timeout(), None);
    // One host cannot use up the rate of the others.
    bench.wait(Duration::from_secs(1));
    for _ in 0..10_000 {
        let _ = bench.send(host(5), &padi());
    }
    assert_eq!(bench.sent().len(), 5);
    for n in 0..900 {
        bench.answer(host(0x20_0000 + n), &padi());
    }
}

#[test]
fn a_flood_in_one_vlan_leaves_the_rate_to_the_others() {
    let limits = Limits {
        padis_per_s: 1_000,
        padis_per_mac_per_s: 0,
        padis_per_vlan_per_s: 400,
        ..Limits::default()
    };
    let mut bench = Bench::new(Config { limits, ..config() });
    let tagged = |n: u32, vlans| {
        let mut route = host(n);
        route.vlans = vlans;
        route
    };
    for n in 0..5_000 {
        let _ = bench.send(tagged(n, Vlans::one(1)), &padi());
    }
    assert_eq!(bench.sent().len(), 400);
    assert_eq!(bench.counters().discard_padi_rate_per_vlan, 4_600);
    for n in 0..600 {
        bench.answer(tagged(n, Vlans::two(1, n as u16)), &padi());
    }
    bench.ignored(host(1), &padi(), Discard::PadiRate);
}

#[test]
fn answers_that_are_not_taken_are_bounded() {
    let mut bench = Bench::new(config());
    let mut kept = 0;
    for n in 0..10_000 {
        match bench.send(host(n), &padi()) {
            Ok(()) => kept += 1,
            Err(why) => assert_eq!(why, Discard::OutboxFull),
        }
    }
    assert_eq!(kept, 4_096);
    assert_eq!(bench.sent().len(), kept);
    bench.answer(host(1), &padi());
}

#[test]
fn a_storm_of_terminations_ends_nothing_of_others() {
    let mut bench = Bench::new(config());
    let ids: Vec<u16> = (0..100).map(|n| bench.open(host(n), &[]).1).collect();
    for id in 1..0xffff_u16 {
        // From one host, with every id there is.
        let _ = bench.send(host(0), &packet(Code::PADT, id, &[]));
    }
    assert_eq!(bench.sent(), []);
    assert_eq!(bench.endpoint.count(), 99);
    assert_eq!(bench.down().1, ids[0]);
    bench.no_event();
}

#[test]
fn sessions_of_all_ids_are_told_apart_and_more_share_an_id() {
    let mut large = config();
    large.limits.sessions_max = 70_000;
    large.limits.half_open_max = 0;
    let mut bench = Bench::new(large);
    let keys: Vec<_> = (0..70_000).map(|n| bench.open(host(n), &[])).collect();
    assert_eq!(bench.endpoint.count(), 70_000);
    let unique: std::collections::HashSet<u16> = keys[..65_534].iter().map(|(_, id)| *id).collect();
    assert_eq!(unique.len(), 65_534);
    for (n, (key, id)) in (0..).zip(&keys) {
        let bytes = data(*id);
        let found = bench.endpoint.receive_data(&host(n), &bytes, bench.now);
        assert_eq!(found, Ok(Some((*key, &bytes[6..]))));
    }
    assert_eq!(bench.endpoint.sessions().count(), 70_000);
    assert_eq!(
        bench.endpoint.next_session(69_999).unwrap().key.index(),
        69_999
    );
}
