//! Subscribers connecting and disconnecting.

use aaa::accounting::TerminateCause;
use aaa::{Address, Prefix, Profile};
use base::Duration;
use edge::{Admission, Config, End, Entry, Event, Phase};
use ppp::LinkEnd;

use crate::stage::{GATEWAY, Stage, lns_config};

#[test]
fn a_client_with_the_secret_comes_on_line_with_an_address_of_the_pool() {
    let mut stage = Stage::new(lns_config());
    stage.dial("alice", "sesame");
    assert_eq!(stage.up.len(), 1);
    let view = stage.lns.subscriber(stage.up[0]).unwrap();
    assert_eq!((view.name, view.phase), (&b"alice"[..], Phase::Up));
    let address = view.address.unwrap();
    assert_eq!(address.octets()[..3], [10, 0, 0]);
    let (_, client) = stage.lac.next_subscriber(0).unwrap();
    assert_eq!(client.address, Some(address));
    assert!(view.ipv6.is_some() && client.ipv6.is_some());
    assert_eq!(stage.lns.find(b"alice").collect::<Vec<_>>(), stage.up);
    assert_eq!(stage.accounts.len(), 1);
    assert_eq!(stage.accounts[0].entry, Entry::Start);
    assert_eq!(stage.accounts[0].address, Some(address));
    assert_ne!(address, GATEWAY);
}

#[test]
fn a_client_with_another_secret_is_refused_with_the_reason_and_nothing_stays() {
    let mut stage = Stage::new(lns_config());
    stage.dial("mallory", "guess");
    stage.pass(Duration::from_secs(10));
    assert!(stage.up.is_empty());
    let reasons: Vec<_> = stage.ended.iter().map(|(_, end)| end.clone()).collect();
    assert_eq!(reasons, [End::Refused("a wrong secret".into())]);
    assert_eq!(stage.lns.counts().subscribers, 0);
    assert_eq!(stage.lns.endpoint().counts().sessions, 0);
    assert!(
        stage.accounts.is_empty(),
        "a subscriber that never connected has no account"
    );
    let ended = stage.lns.ended(0).unwrap();
    assert_eq!((&*ended.name, ended.up), (&b"mallory"[..], None));
}

#[test]
fn a_client_that_is_refused_knows_why_though_its_session_is_gone_first() {
    let mut stage = Stage::new(lns_config());
    stage.dial("mallory", "guess");
    stage.pass(Duration::from_secs(10));
    let ended = stage.lac.ended(0).unwrap();
    assert_eq!(ended.reason, End::RefusedByPeer("no".into()));
    assert_eq!(ended.reason.to_string(), "the peer refused us: \"no\"");
}

#[test]
fn a_network_that_another_has_is_told_to_be_missing_until_that_one_goes() {
    let mut stage = Stage::new(lns_config());
    let network = |text: &str, length| Prefix::new(text.parse().unwrap(), length).unwrap();
    let networks = [network("198.51.100.0", 24), network("2001:db8:7::", 48)];
    stage.profile.routes = networks.to_vec();
    stage.dial("alice", "sesame");
    stage.profile.routes.push(network("203.0.113.0", 24));
    stage.dial("bob", "sesame");
    let [alice, bob] = stage.up[..] else {
        panic!("both are up");
    };
    assert_eq!(stage.lns.missing_routes(alice), []);
    assert_eq!(stage.lns.missing_routes(bob), networks);
    // The first subscriber keeps the network; after it ends, the next one gets it.
    stage.dial("carol", "sesame");
    let carol = *stage.up.last().unwrap();
    stage
        .lns
        .drop_subscriber(alice, End::Administrator, stage.now);
    stage.settle();
    stage.pass(Duration::from_secs(10));
    assert_eq!(stage.lns.missing_routes(alice), []);
    assert_eq!(stage.lns.missing_routes(bob), []);
    assert_eq!(stage.lns.missing_routes(carol).len(), 3);
    let inside = core::net::IpAddr::from([198, 51, 100, 7]);
    assert_eq!(stage.lns.at_address(inside), Some(bob));
    // A subscriber that ends while waiting leaves nothing behind.
    for key in [carol, bob] {
        stage
            .lns
            .drop_subscriber(key, End::Administrator, stage.now);
        stage.settle();
        stage.pass(Duration::from_secs(10));
    }
    assert_eq!(stage.lns.counts().routes, 0);
}

#[test]
fn who_hangs_up_has_time_to_read_the_answer_before_its_session_ends() {
    let mut stage = Stage::new(lns_config());
    stage.dial("alice", "sesame");
    let (_, view) = stage.lns.next_subscriber(0).unwrap();
    let session = view.session;
    // The client's link sends a Terminate-Request, but its tunnel sends nothing.
    let client = stage.lac.next_subscriber(0).unwrap().1.session;
    let header = stage.lac.endpoint_mut().data_header(client).unwrap();
    let request = [header.as_bytes(), &[0xff, 3, 0xc0, 0x21, 5, 9, 0, 4]].concat();
    let mut none = crate::stage::Packets::default();
    let from = crate::stage::route(crate::stage::LAC);
    stage.lns.receive(from, &request, stage.now, &mut none);
    stage.settle();
    assert_eq!(stage.ended.len(), 1, "what it had is free at once");
    assert!(stage.lns.endpoint().session(session).is_some());
    // RFC 1661, section 3.7: at least one Restart time must pass first.
    stage.pass(Duration::from_millis(2_900));
    assert!(stage.lns.endpoint().session(session).is_some());
    stage.pass(Duration::from_millis(200));
    assert!(stage.lns.endpoint().session(session).is_none());
}

#[test]
fn of_many_calls_at_once_none_speaks_before_it_is_connected() {
    let mut stage = Stage::with_pools(lns_config(), crate::stage::pools("10.0.0.1", "10.0.0.250"));
    for n in 0..200 {
        stage.begin_dial(&format!("user{n}"), "sesame", l2tp::Call::default());
    }
    // The tunnel's window admits a few messages at a time; no timer has fired.
    stage.settle();
    assert_eq!(stage.up.len(), 200);
    let counters = stage.lns.endpoint().counters();
    let early = counters.filter(|(name, _)| name.to_string().contains("data_too_early"));
    assert_eq!(early.map(|(_, count)| count).sum::<u64>(), 0);
}

#[test]
fn networks_behind_a_client_of_ours_pass_both_ways() {
    let mut stage = Stage::new(lns_config());
    let network = Prefix::new("192.168.7.0".parse().unwrap(), 24).unwrap();
    stage.profile.routes = vec![network];
    stage.client_networks = vec![network];
    stage.dial("alice", "sesame");
    let (host, far) = ([192, 168, 7, 9].into(), [198, 51, 100, 7].into());
    let up = crate::packets::udp(host, far, 20, true);
    stage.up_stream(&up);
    assert_eq!(stage.inside.0, [up]);
    let down = crate::packets::udp(far, host, 20, true);
    stage.down_stream(&down);
    assert_eq!(stage.client_inside.0, [down]);
    // Other addresses belong to no subscriber.
    stage.up_stream(&crate::packets::udp([192, 168, 8, 9].into(), far, 20, true));
    assert_eq!(stage.inside.0.len(), 1);
}

#[test]
fn what_a_subscriber_had_is_free_when_it_goes() {
    let mut stage = Stage::new(lns_config());
    for round in 0..30 {
        stage.dial("alice", "sesame");
        let subscriber = *stage.up.last().unwrap();
        assert!(
            stage
                .lns
                .drop_subscriber(subscriber, End::Administrator, stage.now)
        );
        stage.settle();
        stage.pass(Duration::from_secs(10));
        assert_eq!(stage.ended.len(), round + 1);
        assert_eq!(stage.lns.counts().routes, 0);
        assert_eq!(stage.lns.find(b"alice").count(), 0);
        assert!(
            stage.lns.subscriber(subscriber).is_none(),
            "a stale key is recognised"
        );
    }
    let used: Vec<_> = stage.lns.pools().views().map(|pool| pool.used).collect();
    assert_eq!(used, [0]);
    let stops = stage
        .accounts
        .iter()
        .filter(|a| a.entry == Entry::Stop(TerminateCause::AdminReset));
    assert_eq!(stops.count(), 30, "Acct-Terminate-Cause Admin Reset");
}

#[test]
fn a_full_pool_is_a_reason() {
    let mut stage = Stage::with_pools(lns_config(), crate::stage::pools("10.0.0.1", "10.0.0.2"));
    for name in ["a", "b", "c"] {
        stage.dial(name, "sesame");
    }
    stage.pass(Duration::from_secs(10));
    assert_eq!(stage.up.len(), 2);
    assert!(matches!(&stage.ended[..], [(_, End::NoAddress(_))]));
    assert_eq!(stage.lns.counts().without_address, 1);
    // The client's operator reads it as well.
    let ended = stage.lac.ended(0).unwrap();
    assert_eq!(ended.reason, End::RefusedByPeer("no address".into()));
}

#[test]
fn a_fixed_address_is_nobody_elses() {
    let mut stage = Stage::new(lns_config());
    stage.profile.address = Address::Fixed("10.0.0.5".parse().unwrap());
    stage.dial("a", "sesame");
    stage.dial("b", "sesame");
    stage.pass(Duration::from_secs(10));
    assert_eq!(stage.up.len(), 1);
    assert!(matches!(&stage.ended[..], [(_, End::NoAddress(_))]));
    stage.profile = Profile::default();
    for _ in 0..9 {
        stage.dial("c", "sesame");
    }
    let mut addresses: Vec<_> = stage
        .up
        .iter()
        .map(|&key| stage.lns.subscriber(key).unwrap().address.unwrap())
        .collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 10);
}

#[test]
fn echo_replies_to_our_requests_are_counted() {
    let mut stage = Stage::new(lns_config());
    stage.dial("alice", "sesame");
    assert_eq!(stage.lns.counts().echo_replies, 0);
    // An Echo-Request each minute, and a reply to each (RFC 1661, section 5.8).
    stage.pass(Duration::from_secs(250));
    assert_eq!(stage.lns.counts().echo_replies, 4);
}

#[test]
fn the_client_that_goes_ends_its_account_with_user_request() {
    let mut stage = Stage::new(lns_config());
    stage.dial("alice", "sesame");
    let (_, client) = stage.lac.next_subscriber(0).unwrap();
    let key = client.key;
    stage
        .lac
        .drop_subscriber(key, End::Administrator, stage.now);
    stage.settle();
    stage.pass(Duration::from_secs(10));
    assert_eq!(stage.ended[0].1, End::Link(LinkEnd::PeerTerminated));
    assert_eq!(
        stage.accounts.last().unwrap().entry,
        Entry::Stop(TerminateCause::UserRequest)
    );
    assert_eq!(stage.lac.counts().subscribers, 0);
}

#[test]
fn a_tunnel_that_ends_ends_its_subscribers() {
    let mut stage = Stage::new(lns_config());
    for name in ["a", "b", "c"] {
        stage.dial(name, "sesame");
    }
    let tunnel = stage.tunnel;
    stage.lac.endpoint_mut().close_tunnel(tunnel, stage.now);
    stage.lac.heed(stage.now);
    stage.settle();
    assert_eq!(stage.ended.len(), 3);
    assert_eq!(stage.lns.counts().subscribers, 0);
    assert_eq!(stage.lns.counts().routes, 0);
    let stops = stage
        .accounts
        .iter()
        .filter(|a| a.entry == Entry::Stop(TerminateCause::LostCarrier));
    assert_eq!(stops.count(), 3, "Lost Carrier");
}

#[test]
fn time_is_up_after_session_timeout_and_idle_timeout() {
    for (session, idle, due, entry) in [
        (
            Some(100),
            None,
            100,
            Entry::Stop(TerminateCause::SessionTimeout),
        ),
        (None, Some(40), 40, Entry::Stop(TerminateCause::IdleTimeout)),
    ] {
        let mut stage = Stage::new(lns_config());
        stage.profile.session_timeout = session.map(Duration::from_secs);
        stage.profile.idle_timeout = idle.map(Duration::from_secs);
        stage.dial("alice", "sesame");
        stage.pass(Duration::from_secs(due - 1));
        assert!(stage.ended.is_empty());
        stage.pass(Duration::from_secs(10));
        assert_eq!(stage.ended.len(), 1);
        assert_eq!(stage.accounts.last().unwrap().entry, entry);
    }
}

#[test]
fn an_account_is_given_at_each_interval() {
    let mut stage = Stage::new(lns_config());
    stage.profile.interim_interval = Some(Duration::from_secs(60));
    stage.dial("alice", "sesame");
    stage.pass(Duration::from_secs(301));
    let interim = stage.accounts.iter().filter(|a| a.entry == Entry::Interim);
    let ages: Vec<_> = interim.map(|a| a.age.as_millis() / 1_000).collect();
    assert_eq!(ages, [60, 120, 180, 240, 300]);
}

#[test]
fn the_end_of_the_edge_is_a_reason_of_its_own() {
    let mut stage = Stage::new(lns_config());
    stage.dial("alice", "sesame");
    stage.lns.shut_down(stage.now);
    stage.settle();
    assert_eq!(stage.ended[0].1, End::ShutDown);
    assert_eq!(
        stage.accounts.last().unwrap().entry,
        Entry::Stop(TerminateCause::AdminReboot)
    );
}

#[test]
fn nobody_who_does_not_answer_waits_for_ever() {
    let mut stage = Stage::new(lns_config());
    stage.answers = false;
    stage.dial("alice", "sesame");
    stage.pass(Duration::from_secs(60));
    let question = stage.lns.poll_question().unwrap();
    assert_eq!((stage.ended.len(), stage.lns.counts().subscribers), (1, 0));
    assert!(
        !stage
            .lns
            .admit(question.subscriber, Admission::default(), b"", stage.now),
        "an answer that comes too late is for nobody"
    );
}

fn network(address: &str, length: u8) -> aaa::Prefix {
    aaa::Prefix::new(address.parse().unwrap(), length).unwrap()
}

#[test]
fn a_network_that_was_somebodys_own_address_comes_to_who_waits_for_it() {
    let mut stage = Stage::new(lns_config());
    stage.profile.address = aaa::Address::Fixed("10.0.0.5".parse().unwrap());
    stage.dial("alice", "sesame");
    stage.profile.address = aaa::Address::FromPool;
    stage.profile.routes = vec![network("10.0.0.5", 32)];
    stage.dial("bob", "sesame");
    let [alice, bob] = stage.up[..] else {
        panic!("both are connected");
    };
    assert_eq!(stage.lns.missing_routes(bob).len(), 1);
    let now = stage.now;
    stage.lns.drop_subscriber(alice, End::Administrator, now);
    stage.settle();
    assert!(stage.lns.missing_routes(bob).is_empty());
}

#[test]
fn a_network_that_a_later_client_of_ours_took_comes_back_when_that_goes() {
    let mut stage = Stage::new(lns_config());
    stage.client_networks = vec![network("192.168.7.0", 24)];
    stage.dial("alice", "sesame");
    stage.dial("bob", "sesame");
    let (next, alice) = stage.lac.next_subscriber(0).unwrap();
    let alice = alice.key;
    let bob = stage.lac.next_subscriber(next).unwrap().1.key;
    assert_eq!(stage.lac.missing_routes(alice).len(), 1);
    let now = stage.now;
    stage.lac.drop_subscriber(bob, End::Administrator, now);
    stage.settle();
    assert!(stage.lac.missing_routes(alice).is_empty());
}

/// Times that were set to none when the subscriber connected apply to it all the same.
#[test]
fn new_times_apply_to_subscribers_that_are_connected() {
    let mut stage = Stage::new(lns_config());
    stage.dial("ann", "sesame");
    stage.pass(Duration::from_secs(10));
    assert_eq!(stage.up.len(), 1);
    let replies = stage.lns.counts().echo_replies;
    let mut config = lns_config();
    config.interim_interval = Duration::from_secs(60);
    config.ppp.echo_interval = Duration::from_secs(5);
    stage.lns.set_config(config.clone(), stage.now);
    stage.pass(Duration::from_secs(120));
    let interims = |stage: &Stage| {
        let entries = stage.accounts.iter();
        entries.filter(|one| one.entry == Entry::Interim).count()
    };
    assert!((1..=2).contains(&interims(&stage)), "{}", interims(&stage));
    assert!(stage.lns.counts().echo_replies >= replies + 20);

    let before = interims(&stage);
    config.interim_interval = Duration::ZERO;
    stage.lns.set_config(config.clone(), stage.now);
    stage.pass(Duration::from_secs(200));
    assert_eq!(interims(&stage), before);
    config.idle_timeout = Duration::from_secs(30);
    stage.lns.set_config(config, stage.now);
    stage.pass(Duration::from_secs(31));
    assert!(
        matches!(stage.ended[..], [(_, End::IdleTimeout)]),
        "{:?}",
        stage.ended
    );
}

/// A subscriber that connected before accounting was switched on has no account: a record without a first one would
/// belong to none.
#[test]
fn accounting_that_is_switched_on_begins_with_the_next_subscriber() {
    let without = Config {
        accounting: false,
        interim_interval: Duration::from_secs(60),
        ..lns_config()
    };
    let mut stage = Stage::new(without.clone());
    stage.dial("ann", "sesame");
    let with = Config {
        accounting: true,
        ..without
    };
    stage.lns.set_config(with, stage.now);
    stage.pass(Duration::from_secs(100));
    stage.dial("bob", "sesame");
    let ann = stage.up[0];
    stage
        .lns
        .drop_subscriber(ann, End::Administrator, stage.now);
    stage.pass(Duration::from_secs(10));
    let told: Vec<_> = stage
        .accounts
        .iter()
        .map(|one| (&*one.name, one.entry))
        .collect();
    assert_eq!(told, [(&b"bob"[..], Entry::Start)]);
}

/// The owner learns of the networks that lead to those who are connected already.
#[test]
fn networks_are_reported_from_the_moment_that_the_owner_wants_them() {
    let mut stage = Stage::new(lns_config());
    stage.profile.routes = vec![Prefix::new([192, 168, 7, 0].into(), 24).unwrap()];
    stage.dial("ann", "sesame");
    let wanted = Config {
        tells_networks: true,
        ..lns_config()
    };
    stage.lns.set_config(wanted, stage.now);
    stage.lns.handle_timeout(stage.now);
    let mut told = Vec::new();
    while let Some(event) = stage.lns.poll_event() {
        if let Event::Network {
            address,
            length,
            leads,
        } = event
        {
            told.push((address.to_string(), length, leads));
        }
    }
    told.sort();
    assert_eq!(
        told,
        [
            ("10.0.0.1".into(), 32, true),
            ("192.168.7.0".into(), 24, true)
        ]
    );
}

#[test]
fn the_subscribers_of_a_large_tunnel_leave_some_at_a_time() {
    let mut stage = Stage::with_pools(lns_config(), crate::stage::pools("10.0.0.1", "10.0.1.200"));
    for n in 0..200 {
        stage.dial(&format!("user{n}"), "sesame");
    }
    assert_eq!(stage.lac.counts().subscribers, 200);
    let (tunnel, now) = (stage.tunnel, stage.now);
    stage.lac.endpoint_mut().close_tunnel(tunnel, now);
    stage.lac.heed(now);
    let left = stage.lac.counts().subscribers;
    assert!(
        (100..200).contains(&left),
        "{left}: the others wait for the next turn"
    );
    let (at, name) = stage.lac.poll_timeout().expect("something is due");
    assert!(at <= now, "{name}");
    let mut turns = 0;
    while stage.lac.handle_timeouts(now, 64) {
        turns += 1;
    }
    assert!((2..10).contains(&turns), "{turns}");
    assert_eq!(stage.lac.counts().subscribers, 0);
    stage.settle();
    assert_eq!(stage.ended.len(), 200);
}
