//! Changes of connected subscribers (RFC 5176, section 2.2): at once, all or nothing, and without a lost packet.

use core::net::Ipv4Addr;
use std::sync::Arc;

use aaa::queue::Way;
use aaa::{Change, Prefix, Queue};
use base::Duration;
use edge::queue::Defaults;
use edge::{ChangeRefusal, Config, Discard, End, Entry, Queues, SubscriberKey};
use filter::FilterSet;
use hqos::spec::{Node, Plan, Rates, Template};
use sim::Rng;

use crate::packets::{FAR, udp};
use crate::stage::{Datagrams, LNS, Stage, lns_config, route};

const MBIT: u64 = 1_000_000;

fn network(text: &str, length: u8) -> Prefix {
    Prefix::new(text.parse().unwrap(), length).unwrap()
}

fn filters() -> FilterSet {
    let text = "filter closed\nin\ndeny ip\nfilter open\nin\naccept ip\n";
    FilterSet::parse(text, &filter::Names::well_known())
        .unwrap()
        .0
}

/// A template `gold` of 50 Mbit/s down and a link `access` of 100.
fn config() -> Config {
    let template = Template {
        name: "gold".to_owned(),
        ..Template::default()
    };
    let link = Node {
        name: "access".to_owned(),
        parent: None,
        rates: Rates {
            down: 100 * MBIT,
            up: 0,
        },
        weight: 1,
    };
    let plan = Plan {
        templates: vec![template],
        nodes: vec![link],
    };
    let rates = vec![[Some(50 * MBIT), None]];
    let queues = Queues::new(plan, rates, Defaults::default()).unwrap();
    Config {
        queues: Arc::new(queues),
        ..lns_config()
    }
}

/// Alice and bob, connected.
fn two() -> (Stage, [SubscriberKey; 2]) {
    let mut stage = Stage::new(config());
    stage.lns.filters_mut().replace(filters());
    stage.dial("alice", "sesame");
    stage.dial("bob", "sesame");
    let keys = [stage.up[0], stage.up[1]];
    (stage, keys)
}

fn down(rate: u64) -> Change {
    Change {
        queue: Queue {
            rates_bps: [Some(rate), None],
            ..Queue::default()
        },
        ..Change::default()
    }
}

fn address(stage: &Stage, key: SubscriberKey) -> Ipv4Addr {
    stage.lns.subscriber(key).unwrap().address.unwrap()
}

fn rate(stage: &Stage, key: SubscriberKey) -> Option<u64> {
    let queue = stage.lns.subscriber(key).unwrap().queue;
    queue.and_then(|queue| queue.rate_bps(Way::Down))
}

#[test]
fn a_filter_applies_to_the_next_packet() {
    let (mut stage, [alice, _]) = two();
    // Only the first client's session is used for sending.
    let packet = udp(address(&stage, alice), FAR, 10, true);
    stage.send_up_raw(&packet);
    assert_eq!(stage.inside.0.len(), 1);
    for (name, passed) in [("closed", 1), ("closed", 1), ("open", 2), ("closed", 2)] {
        let change = Change {
            filter: Some(name.into()),
            ..Change::default()
        };
        let changed = stage.lns.change_sessions(&[alice], &change, stage.now);
        assert_eq!(changed, Ok(()));
        stage.send_up_raw(&packet);
        assert_eq!(stage.inside.0.len(), passed, "{name}");
    }
    assert_eq!(stage.lns.discarded(Discard::Filtered), 3);
}

/// RFC 5176, section 2.3: if one part cannot be changed for one session, nothing changes for any.
#[test]
fn a_change_that_fails_in_one_part_changes_nothing() {
    let (mut stage, keys) = two();
    let taken = network("10.9.0.0", 16);
    let give = Change {
        routes: [Some(vec![taken]), None],
        ..Change::default()
    };
    stage
        .lns
        .change_sessions(&keys[1..], &give, stage.now)
        .unwrap();
    let good = Change {
        filter: Some("closed".into()),
        session_timeout: Some(Duration::from_secs(5)),
        class: Some(vec![b"x"[..].into()]),
        ..down(20 * MBIT)
    };
    let of_queue = |queue: Queue| Change {
        queue,
        ..good.clone()
    };
    let bads = [
        Change {
            filter: Some("none".into()),
            ..good.clone()
        },
        Change {
            garden: Some(aaa::Walled::In("nowhere".into())),
            ..good.clone()
        },
        of_queue(Queue::default().with_template(Some("silver"))),
        of_queue(Queue {
            link: Some("access".into()),
            rates_bps: [Some(200 * MBIT), None],
            ..Queue::default()
        }),
        Change {
            routes: [Some(vec![network("10.8.0.0", 16), taken]), None],
            ..good.clone()
        },
    ];
    let before: Vec<_> = keys
        .map(|key| format!("{:?}", stage.lns.subscriber(key).unwrap().profile))
        .into();
    for bad in bads {
        for of in [&keys[..1], &keys[..]] {
            let refused = stage.lns.change_sessions(of, &bad, stage.now);
            assert!(refused.is_err(), "{bad:?}");
            for (key, before) in keys.iter().zip(&before) {
                let view = stage.lns.subscriber(*key).unwrap();
                assert_eq!(&format!("{:?}", view.profile), before, "{bad:?}");
                assert_eq!((view.filter, view.ends, view.queue), (None, None, None));
            }
        }
    }
    let routes = stage.lns.counts().routes;
    stage.lns.change_sessions(&keys, &good, stage.now).unwrap();
    for key in keys {
        assert_eq!(rate(&stage, key), Some(20 * MBIT));
        let view = stage.lns.subscriber(key).unwrap();
        assert!(view.filter.is_some() && view.ends.is_some());
    }
    assert_eq!(stage.lns.counts().routes, routes);
}

#[test]
fn subscribers_that_cannot_be_changed_are_refused_with_the_reason() {
    let (mut stage, [alice, bob]) = two();
    let change = down(MBIT);
    assert!(
        stage
            .lns
            .drop_subscriber(alice, End::Administrator, stage.now)
    );
    let refused = stage.lns.change_sessions(&[bob, alice], &change, stage.now);
    assert_eq!(refused, Err(ChangeRefusal::Gone));
    assert_eq!(rate(&stage, bob), None);
    stage.settle();
    stage.pass(Duration::from_secs(30));
    let refused = stage.lns.change_sessions(&[alice], &change, stage.now);
    assert_eq!(refused, Err(ChangeRefusal::Gone));
    let client = stage.lac.next_subscriber(0).unwrap().1.key;
    let refused = stage.lac.change_sessions(&[client], &change, stage.now);
    assert_eq!(refused, Err(ChangeRefusal::Client));
    stage.answers = false;
    stage.begin_dial("carol", "sesame", l2tp::Call::default());
    stage.settle();
    let mut cursor = 0;
    let mut refusals = Vec::new();
    while let Some((next, view)) = stage.lns.next_subscriber(cursor) {
        cursor = next;
        let key = view.key;
        if key != bob {
            refusals.push(stage.lns.change_sessions(&[key], &change, stage.now));
        }
    }
    assert_eq!(refusals, [Err(ChangeRefusal::NotAdmitted)]);
    let give = Change {
        routes: [Some(vec![network("10.9.0.0", 16)]), None],
        ..Change::default()
    };
    let refused = stage.lns.change_sessions(&[bob, bob], &give, stage.now);
    assert_eq!(refused, Err(ChangeRefusal::Several));
}

#[test]
fn networks_are_replaced_and_one_that_stays_leads_there_all_the_time() {
    let mut stage = Stage::new(Config {
        tells_networks: true,
        ..config()
    });
    let [one, two, six] = [
        network("10.1.0.0", 16),
        network("10.2.0.0", 16),
        network("2001:db8:1::", 48),
    ];
    stage.profile.routes = vec![one, six];
    stage.dial("alice", "sesame");
    let alice = stage.up[0];
    while stage.lns.poll_event().is_some() {}
    let mut replace = |networks: &[Prefix]| {
        let change = Change {
            routes: [Some(networks.to_vec()), None],
            ..Change::default()
        };
        stage
            .lns
            .change_sessions(&[alice], &change, stage.now)
            .unwrap();
        let mut told = Vec::new();
        while let Some(event) = stage.lns.poll_event() {
            if let edge::Event::Network { address, leads, .. } = event {
                told.push((address.to_string(), leads));
            }
        }
        let view = stage.lns.subscriber(alice).unwrap();
        assert!(stage.lns.missing_routes(alice).is_empty());
        (view.profile.unwrap().routes.clone(), told)
    };
    let told = |all: &[(&str, bool)]| {
        let all = all.iter().map(|(text, leads)| ((*text).to_owned(), *leads));
        all.collect::<Vec<_>>()
    };
    assert_eq!(
        replace(&[one, two]),
        (vec![six, one, two], told(&[("10.2.0.0", true)]))
    );
    assert_eq!(replace(&[one, two]), (vec![six, one, two], told(&[])));
    assert_eq!(
        replace(&[two]),
        (vec![six, two], told(&[("10.1.0.0", false)]))
    );
    assert_eq!(replace(&[]), (vec![six], told(&[("10.2.0.0", false)])));
}

#[test]
fn times_apply_from_the_start_of_the_session_and_zero_means_none() {
    let (mut stage, [alice, bob]) = two();
    stage.pass(Duration::from_secs(100));
    let limit = |seconds| Change {
        session_timeout: Some(Duration::from_secs(seconds)),
        ..Change::default()
    };
    let set = |stage: &mut Stage, key, change: &Change| {
        let now = stage.now;
        stage.lns.change_sessions(&[key], change, now).unwrap();
    };
    set(&mut stage, alice, &limit(150));
    set(&mut stage, bob, &limit(150));
    set(&mut stage, bob, &limit(0));
    stage.pass(Duration::from_secs(49));
    assert!(stage.ended.is_empty());
    stage.pass(Duration::from_secs(2));
    assert_eq!(stage.ended, [(alice, End::SessionTimeout)]);
    let idle = Change {
        idle_timeout: Some(Duration::from_secs(30)),
        ..Change::default()
    };
    set(&mut stage, bob, &idle);
    stage.pass(Duration::from_secs(31));
    assert_eq!(stage.ended[1], (bob, End::IdleTimeout));
    // A limit that is over already.
    stage.dial("carol", "sesame");
    let carol = *stage.up.last().unwrap();
    stage.pass(Duration::from_secs(10));
    set(&mut stage, carol, &limit(5));
    stage.pass(Duration::from_millis(20));
    assert_eq!(stage.ended[2], (carol, End::SessionTimeout));
}

#[test]
fn interim_entries_follow_the_new_interval_and_a_change_where_that_is_asked() {
    let mut stage = Stage::new(Config {
        interim_on_change: true,
        ..config()
    });
    stage.dial("alice", "sesame");
    let alice = stage.up[0];
    let change = Change {
        interim_interval: Some(Duration::from_secs(60)),
        class: Some(vec![b"new"[..].into()]),
        ..Change::default()
    };
    stage
        .lns
        .change_sessions(&[alice], &change, stage.now)
        .unwrap();
    stage.settle();
    let interims = |stage: &Stage| {
        let all = stage.accounts.iter();
        let all: Vec<_> = all.filter(|one| one.entry == Entry::Interim).collect();
        let class = vec![Box::<[u8]>::from(&b"new"[..])];
        assert!(all.iter().all(|one| one.class == class));
        all.len()
    };
    assert_eq!(interims(&stage), 1);
    stage.pass(Duration::from_secs(181));
    assert_eq!(interims(&stage), 4);
}

#[test]
fn accounts_and_ports_name_their_subscribers_until_these_end() {
    let (mut stage, [alice, bob]) = two();
    for key in [alice, bob] {
        let account = stage.lns.subscriber(key).unwrap().account;
        assert_eq!(stage.lns.at_account(account), Some(key));
        assert_eq!(stage.lns.at_port(key.to_token() as u32), Some(key));
    }
    let account = stage.lns.subscriber(alice).unwrap().account;
    stage
        .lns
        .drop_subscriber(alice, End::Administrator, stage.now);
    stage.settle();
    stage.pass(Duration::from_secs(30));
    assert_eq!(stage.lns.at_account(account), None);
    assert_eq!(stage.lns.at_account(0), None);
    stage.dial("carol", "sesame");
    let carol = *stage.up.last().unwrap();
    let account = stage.lns.subscriber(carol).unwrap().account;
    assert_eq!(stage.lns.at_account(account), Some(carol));
}

/// The number in a packet of `numbered`.
fn number_of(packet: &[u8]) -> u32 {
    let at = packet.len() - 4;
    u32::from_be_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]])
}

fn numbered(to: Ipv4Addr, number: u32) -> Vec<u8> {
    let mut packet = udp(FAR, to, 700, true);
    let at = packet.len() - 4;
    packet[at..].copy_from_slice(&number.to_be_bytes());
    packet
}

/// Hands the client what may leave.
fn drain(stage: &mut Stage) {
    let mut outside = Datagrams::default();
    while stage.lns.drain(stage.now, &mut outside, &mut stage.inside) {}
    for datagram in &outside.sent {
        stage
            .lac
            .receive(route(LNS), datagram, stage.now, &mut stage.client_inside);
    }
}

/// Rates, template and link change between packets, and also to no limit and back: every packet arrives, in order.
#[test]
fn changes_of_the_rate_lose_no_packet_and_reorder_none() {
    for seed in 0..100 {
        let mut random = Rng::new(seed);
        let (mut stage, [alice, _]) = two();
        let address = address(&stage, alice);
        for number in 0..400 {
            let change = match random.below(8) {
                0 => down(0),
                1 => Change {
                    reset_queue: true,
                    ..Change::default()
                },
                2 => Change {
                    queue: Queue::default().with_template(Some("gold")),
                    ..Change::default()
                },
                3 => Change {
                    queue: Queue {
                        link: Some("access".into()),
                        ..Queue::default()
                    },
                    ..Change::default()
                },
                _ => down(5 * MBIT + random.below(40) * MBIT),
            };
            stage
                .lns
                .change_sessions(&[alice], &change, stage.now)
                .unwrap_or_else(|why| panic!("seed {seed}: {why}"));
            stage.down_stream(&numbered(address, number));
            stage.now += Duration::from_micros(random.below(600));
            drain(&mut stage);
        }
        stage.now += Duration::from_secs(1);
        drain(&mut stage);
        let arrived: Vec<u32> = stage
            .client_inside
            .0
            .iter()
            .map(|one| number_of(one))
            .collect();
        let all: Vec<u32> = (0..400).collect();
        assert_eq!(arrived, all, "seed {seed}");
        assert_eq!(stage.lns.discarded(Discard::Queue), 0, "seed {seed}");
    }
}
