//! What links do to datagrams, and that it is counted.

use base::{Duration, Instant};
use sim::{ADDRESS_A, ADDRESS_B, Fate, Link, LinkStats, Pair, Probe, Verdict, addr};

const MINUTE: Duration = Duration::from_secs(60);

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn probes(seed: u64, link: Link) -> Pair<Probe, Probe> {
    let mut pair = Pair::new(seed, link, Probe::default(), Probe::default());
    pair.set_log_limit(100_000);
    pair
}

/// Sends `n` numbered datagrams, one each millisecond, and waits for the last.
fn send_numbered(pair: &mut Pair<Probe, Probe>, n: u32) {
    for i in 0..n {
        pair.with_a(|a, _| a.send(ADDRESS_B, &i.to_be_bytes()));
        pair.run_for(Duration::from_millis(1));
    }
    assert!(pair.run_until_idle(MINUTE));
}

fn numbers(pair: &mut Pair<Probe, Probe>) -> Vec<u32> {
    let number = |bytes: Vec<u8>| u32::from_be_bytes(bytes.try_into().unwrap());
    pair.events_b()
        .into_iter()
        .map(|heard| number(heard.bytes))
        .collect()
}

fn stats(pair: &Pair<Probe, Probe>) -> LinkStats {
    pair.link_stats(pair.a, pair.b)
}

#[test]
fn loss_duplication_and_reordering_come_at_their_rates() {
    // 10,000 draws at p = 0.1 have a standard deviation of 30: the bounds are 4 of them.
    for seed in 0..5 {
        let link = Link {
            loss: 0.1,
            duplicate: 0.1,
            reorder: 0.1,
            reorder_delay: Duration::from_millis(5),
            ..Link::CLEAN
        };
        let mut pair = probes(seed, link);
        send_numbered(&mut pair, 10_000);
        let LinkStats {
            sent,
            delivered,
            lost,
            duplicated,
            reordered,
            ..
        } = stats(&pair);
        let heard = numbers(&mut pair);
        let overtaken = heard.windows(2).filter(|w| w[0] > w[1]).count() as u64;
        assert_eq!(sent, 10_000);
        assert_eq!(delivered, sent + duplicated - lost);
        assert_eq!(heard.len() as u64, delivered);
        assert!((880..=1120).contains(&lost), "{lost}");
        assert!((780..=1020).contains(&duplicated), "{duplicated}"); // of the 9,000 not lost
        assert!((870..=1110).contains(&reordered), "{reordered}"); // of 9,900 with copies
        assert!(
            overtaken > reordered / 2 && overtaken <= reordered,
            "{overtaken}"
        );
    }
}

#[test]
fn a_clean_link_delivers_all_in_order_after_its_delay() {
    let mut pair = probes(1, Link::CLEAN);
    send_numbered(&mut pair, 100);
    let times: Vec<_> = pair.log().map(|r| r.fate.clone()).collect();
    assert_eq!(times[0], Fate::Delivered { at: ms(10) });
    assert_eq!(times[99], Fate::Delivered { at: ms(109) });
    assert_eq!(numbers(&mut pair), (0..100).collect::<Vec<_>>());
}

#[test]
fn jitter_spreads_the_delay_and_keeps_the_order() {
    let mut pair = probes(
        1,
        Link {
            jitter: Duration::from_millis(20),
            ..Link::CLEAN
        },
    );
    send_numbered(&mut pair, 1000);
    assert_eq!(numbers(&mut pair), (0..1000).collect::<Vec<_>>());
    let delay = |record: &sim::Record| match record.fate {
        Fate::Delivered { at } => at.since(record.sent),
        _ => panic!("{record:?}"),
    };
    let (least, most) = (pair.log().map(delay).min(), pair.log().map(delay).max());
    assert!(least.unwrap() >= Duration::from_millis(10));
    assert!(most.unwrap() <= Duration::from_millis(30));
    assert!(most.unwrap() > Duration::from_millis(25));
}

#[test]
fn a_rate_spaces_datagrams_and_a_full_queue_drops() {
    // 72 + 28 bytes at 80 kbit/s: 10 ms each.
    let link = Link {
        rate_bps: Some(80_000),
        queue_limit: 3,
        ..Link::CLEAN
    };
    let mut pair = probes(1, link);
    pair.with_a(|a, _| (0..5).for_each(|_| a.send(ADDRESS_B, &[0; 72])));
    assert!(pair.run_until_idle(MINUTE));
    let at: Vec<_> = pair
        .world
        .take_timed_events(pair.b)
        .into_iter()
        .map(|(at, _)| at)
        .collect();
    assert_eq!(at, [ms(20), ms(30), ms(40)]);
    assert_eq!(stats(&pair).queue_full, 2);
    // The queue has emptied.
    pair.with_a(|a, _| a.send(ADDRESS_B, &[0; 72]));
    assert!(pair.run_until_idle(MINUTE));
    assert_eq!(pair.now(), ms(60));
}

#[test]
fn each_direction_has_its_own_link() {
    let mut pair = probes(1, Link::CLEAN);
    let (a, b) = (pair.a, pair.b);
    pair.set_link_one_way(
        a,
        b,
        Link {
            loss: 1.0,
            ..Link::CLEAN
        },
    );
    pair.with_a(|a, _| a.send(ADDRESS_B, b"lost"));
    pair.with_b(|b, _| b.send(ADDRESS_A, b"found"));
    assert!(pair.run_until_idle(MINUTE));
    assert_eq!(pair.events_a().len(), 1);
    assert_eq!(pair.events_b().len(), 0);
    assert_eq!(pair.log().next().unwrap().fate, Fate::Lost);
}

#[test]
fn an_interceptor_decides_by_content() {
    let mut pair = probes(1, Link::CLEAN);
    let (a, b) = (pair.a, pair.b);
    pair.intercept(a, b, |bytes, _now| match bytes {
        b"drop" => Verdict::Drop,
        b"twice" => Verdict::Duplicate,
        b"late" => Verdict::Delay(Duration::from_millis(100)),
        b"change" => Verdict::Replace(b"changed".to_vec()),
        _ => Verdict::Pass,
    });
    let texts: [&[u8]; 5] = [b"late", b"drop", b"twice", b"change", b"pass"];
    pair.with_a(|a, _| texts.iter().for_each(|text| a.send(ADDRESS_B, text)));
    assert!(pair.run_until_idle(MINUTE));
    let heard: Vec<_> = pair
        .events_b()
        .into_iter()
        .map(|heard| heard.bytes)
        .collect();
    assert_eq!(
        heard,
        [&b"twice"[..], b"twice", b"changed", b"pass", b"late"]
    );
    assert_eq!(stats(&pair).dropped, 1);

    pair.stop_intercepting(a, b);
    pair.drop_next(a, b, 2);
    pair.with_a(|a, _| (0..3).for_each(|i| a.send(ADDRESS_B, &[i])));
    assert!(pair.run_until_idle(MINUTE));
    let heard: Vec<_> = pair
        .events_b()
        .into_iter()
        .map(|heard| heard.bytes)
        .collect();
    assert_eq!(heard, [[2]]);
    assert_eq!(stats(&pair).dropped, 3);
}

#[test]
fn what_cannot_be_sent_is_counted_and_says_why() {
    let mut pair = probes(1, Link::CLEAN);
    pair.with_a(|a, _| {
        let route = base::Route {
            peer: ADDRESS_B,
            local: None,
            socket: 0,
        };
        a.send(addr("203.0.113.9:1701"), b"nobody");
        a.send(addr("[2001:db8::1]:1701"), b"another family");
        a.send_along(base::Route { socket: 7, ..route }, b"no such socket");
        let local = Some(addr("203.0.113.1:0").ip());
        a.send_along(base::Route { local, ..route }, b"not ours");
        a.send(ADDRESS_B, &[0; 65_508]);
        a.send(ADDRESS_B, &[0; 65_507]);
    });
    assert!(pair.run_until_idle(MINUTE));
    let fates: Vec<_> = pair.log().map(|record| record.fate.clone()).collect();
    let bad = Fate::BadRoute;
    assert_eq!(
        fates[..4],
        [Fate::NoSuchAddress, bad.clone(), bad.clone(), bad]
    );
    assert_eq!(fates[4..], [Fate::TooLong, Fate::Delivered { at: ms(10) }]);
    assert_eq!(pair.unrouted(), 5);
    assert_eq!(stats(&pair).sent, 1);
}
