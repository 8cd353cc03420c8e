//! Simulates thousands of pairs of ends, each with its own configuration, over wires that lose, duplicate, delay and
//! reorder. Afterwards both ends agree on the state of the link, or both have ended and know why.

use base::Duration;
use ppp::{Authentication, Config, Credentials, Event, Grant, Ipv4Offer, Ipv6Offer, Side, State};

use crate::harness::{DNS, End, LOCAL, PEER, Pair, SECRET, Seeded, Wire, client, network};
use crate::twins::RENEWED;

const SEEDS: u64 = 3_000;

/// Two ends and everything in which they can differ.
pub(crate) struct World {
    pub(crate) pair: Pair,
    /// The network protocols that the network offers and that the client requests: IPv4, IPv6.
    offered: [bool; 2],
    asked: [bool; 2],
    /// Whether the client has credentials, and whether they are right.
    able: bool,
    right: bool,
    authenticate: Vec<Authentication>,
}

/// Twins take most of a test's time: one pair in five has them, and reads half of them anew at every step.
fn some_twins(pair: &mut Pair, seed: u64) {
    let renewed = match seed % 10 {
        0 => Some(100),
        5 => Some(RENEWED),
        _ => None,
    };
    pair.ends.iter_mut().for_each(|end| end.renewed = renewed);
}

fn flip(random: &mut Seeded) -> bool {
    random.percent(50)
}

fn mru(random: &mut Seeded) -> u16 {
    [1_500, 1_492, 1_400, 1_280, 1_279, 576, 9_000][random.next() as usize % 7]
}

pub(crate) fn world(seed: u64) -> World {
    let random = &mut Seeded(seed);
    let (pap, chap) = (Authentication::Pap, Authentication::ChapMd5);
    let (ms, eap) = (Authentication::MsChapV2, Authentication::Eap);
    let ways = [
        vec![],
        vec![pap],
        vec![chap],
        vec![chap, pap],
        vec![ms],
        vec![ms, chap],
        // The client refuses EAP, and gets the next one.
        vec![eap, ms],
    ];
    let authenticate = ways[random.next() as usize % ways.len()].clone();
    let (able, right) = (!random.percent(10), !random.percent(10));
    let offered = [!random.percent(10), flip(random)];
    let asked = [!random.percent(10), flip(random)];
    let config = |random: &mut Seeded| Config {
        mru: mru(random),
        compress: flip(random),
        ..Config::default()
    };
    let network = Config {
        authenticate: authenticate.clone(),
        ..config(random)
    };
    let side = Side::Client {
        credentials: able.then(|| Credentials {
            name: b"alice"[..].into(),
            secret: base::Redacted::new(if right { SECRET } else { b"wrong" }.into()),
        }),
        ipv4: asked[0].then_some(Ipv4Offer::ASK),
        // Some clients have no identifier, some the same identifier as the network's end.
        ipv6: asked[1].then(|| Ipv6Offer::free(random.next() % 3)),
    };
    let client = End::new(side, config(random), seed + 1);
    let wire = Wire {
        loss: random.next() % 31,
        duplicates: random.next() % 20,
        reordered: random.next() % 25,
    };
    let mut pair = Pair::new(End::new(Side::Network, network, seed), client, wire, seed);
    some_twins(&mut pair, seed);
    pair.grant = Grant {
        ipv4: offered[0].then_some(Ipv4Offer {
            local: LOCAL,
            peer: PEER,
            dns: [Some(DNS), None],
            ask_dns: false,
        }),
        ipv6: offered[1].then(|| Ipv6Offer::free(1)),
    };
    World {
        pair,
        offered,
        asked,
        able,
        right,
        authenticate,
    }
}

pub(crate) fn end_of(end: &End) -> Option<Event> {
    let is_end = |event: &&Event| matches!(event, Event::Ended(_));
    assert!(end.events.iter().filter(is_end).count() <= 1);
    end.events.last().filter(is_end).cloned()
}

impl World {
    /// Checks that both ends agree on the state of the link.
    fn check(&self, seed: u64) {
        let [network, client] = &self.pair.ends;
        let ended = [end_of(network), end_of(client)];
        let views = [network.link.view(), client.link.view()];
        assert_eq!(
            ended[0].is_some(),
            ended[1].is_some(),
            "seed {seed}: {ended:?}"
        );
        for (view, ended) in views.iter().zip(&ended) {
            assert_eq!(view.end.is_some(), ended.is_some(), "seed {seed}");
        }
        if ended[0].is_some() {
            return;
        }
        let [ours, theirs] = views;
        assert_eq!([ours.lcp, theirs.lcp], [State::Opened; 2], "seed {seed}");
        assert_eq!(ours.local, theirs.peer, "seed {seed}");
        assert_eq!(ours.peer, theirs.local, "seed {seed}");
        let is_open = |end: usize, ipv6| self.pair.ends[end].link.is_open(ipv6);
        for ipv6 in [false, true] {
            assert_eq!(is_open(0, ipv6), is_open(1, ipv6), "seed {seed}: {ipv6}");
        }
        assert!(is_open(0, false) || is_open(0, true), "seed {seed}");
        if let (true, Some((_, ours)), Some((_, theirs))) =
            (is_open(0, false), ours.ipv4, theirs.ipv4)
        {
            assert_eq!((ours.local, ours.peer), (LOCAL, PEER), "seed {seed}");
            assert_eq!((theirs.local, theirs.peer), (PEER, LOCAL), "seed {seed}");
            assert_eq!(theirs.dns, [Some(DNS), None], "seed {seed}");
        }
        if let (true, Some((_, ours)), Some((_, theirs))) =
            (is_open(0, true), ours.ipv6, theirs.ipv6)
        {
            assert_eq!((ours.local, ours.peer), (theirs.peer, theirs.local));
            assert_ne!(ours.local, ours.peer, "seed {seed}");
            assert!(ours.local != 0 && ours.peer != 0, "seed {seed}");
        }
        // No peer is admitted without the required authentication.
        assert!(
            self.authenticate.is_empty() || (self.able && self.right),
            "seed {seed}"
        );
        for nth in 0..2 {
            assert!(!is_open(0, nth == 1) || (self.offered[nth] && self.asked[nth]));
        }
    }
}

#[test]
fn both_ends_agree_or_both_have_ended_for_a_reason() {
    let (mut up, mut over) = (0, 0);
    for seed in 0..SEEDS {
        let mut world = world(seed);
        world.pair.up();
        // Long enough for each end to notice that the other gave up.
        world.pair.run_for(Duration::from_secs(900));
        // Then a lossless wire delivers the frames still in transit.
        world.pair.wire = Wire::default();
        world.pair.run_for(Duration::from_secs(300));
        world.check(seed);
        match end_of(&world.pair.ends[0]) {
            Some(_) => over += 1,
            None => up += 1,
        }
    }
    assert!(up > SEEDS / 3 && over > SEEDS / 20, "{up} up, {over} over");
}

/// Virtual milliseconds until both ends have IPv4 open, for each of many seeds, in order. `None` for links that ended.
fn times(loss: u64, seeds: u64) -> Vec<Option<u64>> {
    let one = |seed| {
        let wire = Wire {
            loss,
            ..Wire::default()
        };
        let ends = [
            network(&[Authentication::ChapMd5], seed),
            client(SECRET, seed + 9_000),
        ];
        let [network, client] = ends;
        let mut pair = Pair::new(network, client, wire, seed);
        some_twins(&mut pair, seed);
        pair.up();
        let is_up = |pair: &Pair| pair.ends.iter().all(|end| end.link.is_open(false));
        let up = pair.run_until(Duration::from_secs(600), is_up);
        up.then_some(pair.now.as_nanos() / 1_000_000)
    };
    let mut times: Vec<_> = (0..seeds).map(one).collect();
    times.sort_unstable_by_key(|time| time.unwrap_or(u64::MAX));
    times
}

#[test]
fn links_come_up_over_bad_wires() {
    const LINKS: u64 = 1_000;
    println!(
        "loss %: virtual ms to IPv4 on both ends: p10 p50 p90 p99 longest; links that gave up"
    );
    for (loss, up_min) in [(0, 1_000), (10, 999), (30, 980)] {
        let times = times(loss, LINKS);
        let up: Vec<u64> = times.iter().flatten().copied().collect();
        assert!(up.len() >= up_min, "{} of {LINKS} at {loss} %", up.len());
        let nth = |percent: usize| up[(up.len() - 1) * percent / 100];
        println!(
            "{loss}: {} {} {} {} {}; {}",
            nth(10),
            nth(50),
            nth(90),
            nth(99),
            nth(100),
            LINKS - up.len() as u64
        );
    }
}
