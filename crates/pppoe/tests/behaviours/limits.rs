//! Limits on sessions and on their set-up.

use base::Duration;
use pppoe::{Config, Discard, EndReason, MacPrefix, OverLimit, Vlans};
use wire::pppoe::{Code, tag};

use crate::common::{Bench, config, data, host, mac, padi, padr};

#[test]
fn a_host_that_restarts_replaces_its_session() {
    let mut bench = Bench::new(config());
    let (old, old_id) = bench.open(host(1), &[(tag::HOST_UNIQ, b"pid 7")]);
    bench.send(host(1), &data(old_id)).unwrap();
    // The same Host-Uniq: the cookie tells that this is another request.
    let cookie = {
        bench.now += Duration::from_millis(1);
        bench.cookie(host(1))
    };
    let request = padr(&cookie, &[(tag::HOST_UNIQ, b"pid 7")]);
    assert_eq!(bench.send(host(1), &request), Ok(()));
    let sent = bench.sent();
    let codes: Vec<Code> = sent.iter().map(|sent| sent.code).collect();
    assert_eq!(codes, [Code::PADS, Code::PADT]);
    assert_ne!(sent[0].session, old_id);
    assert_eq!(sent[1].session, old_id);
    assert_eq!(bench.down(), (old, old_id, EndReason::Replaced));
    bench.up();
    assert_eq!(bench.endpoint.count(), 1);
    assert_eq!(bench.counters().replaced, 1);
}

#[test]
fn the_oldest_of_a_host_s_sessions_is_replaced() {
    let mut three = config();
    three.limits.sessions_per_mac_max = 3;
    let mut bench = Bench::new(three);
    let keys: Vec<_> = (0..3).map(|_| bench.open(host(1), &[]).0).collect();
    // The middle one ends by itself.
    bench.endpoint.close(keys[1], bench.now);
    bench.sent();
    bench.down();
    let newer = bench.open(host(1), &[]).0;
    for expected in [keys[0], keys[2], newer] {
        bench.request(host(1), &[]);
        let (ended, _, reason) = bench.down();
        assert_eq!((ended, reason), (expected, EndReason::Replaced));
        bench.up();
    }
    assert_eq!(bench.endpoint.count(), 3);
}

#[test]
fn a_request_over_the_limit_of_its_host_may_be_refused() {
    let refuse = Config {
        over_mac_limit: OverLimit::Refuse,
        ..config()
    };
    let mut bench = Bench::new(refuse);
    let (key, _) = bench.open(host(1), &[]);
    let pads = bench.request(host(1), &[]);
    assert_eq!(pads.session, 0);
    let text = "too many sessions of this host";
    assert_eq!(pads.one(tag::AC_SYSTEM_ERROR), text.as_bytes());
    assert_eq!(bench.counters().refused_per_mac, 1);
    // The same address in another VLAN is another host.
    let mut tagged = host(1);
    tagged.vlans = Vlans::one(9);
    bench.open(tagged, &[]);
    bench.endpoint.close(key, bench.now);
    bench.sent();
    bench.down();
    bench.open(host(1), &[]);
}

#[test]
fn a_full_table_refuses_new_hosts_and_lets_old_ones_replace_their_session() {
    let mut few = config();
    few.limits.sessions_max = 2;
    let mut bench = Bench::new(few);
    bench.open(host(1), &[]);
    bench.open(host(2), &[]);
    let pads = bench.request(host(3), &[]);
    assert_eq!(pads.session, 0);
    assert_eq!(pads.one(tag::AC_SYSTEM_ERROR), b"too many sessions");
    assert_eq!(bench.counters().refused_sessions, 1);
    assert_ne!(bench.request(host(2), &[]).session, 0);
    assert_eq!(bench.endpoint.count(), 2);
}

#[test]
fn requests_wait_while_too_many_sessions_are_half_open() {
    let mut few = config();
    few.limits.half_open_max = 1;
    let mut bench = Bench::new(few);
    let (_, id) = bench.open(host(1), &[]);
    let cookie = bench.cookie(host(2));
    bench.ignored(host(2), &padr(&cookie, &[]), Discard::HalfOpenLimit);
    bench.send(host(1), &data(id)).unwrap();
    assert_eq!(bench.endpoint.half_open(), 0);
    bench.answer(host(2), &padr(&cookie, &[]));
}

#[test]
fn a_host_that_restarts_while_half_open_is_let_in_at_the_limit() {
    let mut one = config();
    one.limits.half_open_max = 1;
    let mut bench = Bench::new(one);
    let (old, _) = bench.open(host(1), &[]);
    assert_ne!(bench.request(host(1), &[]).session, 0);
    assert_eq!(bench.down().0, old);
    assert_eq!(bench.endpoint.half_open(), 1);
}

#[test]
fn a_session_without_a_ppp_frame_ends() {
    let mut bench = Bench::new(config());
    let timeout = bench.endpoint.config().setup_timeout;
    let (key, id) = bench.open(host(1), &[]);
    let (heard, _) = bench.open(host(2), &[]);
    bench.endpoint.heard(heard, bench.now);
    bench.wait(timeout);
    let padt = bench.one();
    assert_eq!((padt.code, padt.session), (Code::PADT, id));
    assert_eq!(bench.down(), (key, id, EndReason::SetupTimeout));
    assert_eq!(bench.endpoint.count(), 1);
    bench.wait(Duration::from_secs(100_000));
    bench.no_event();
}

#[test]
fn rates_are_limited_per_host_first_and_then_for_all() {
    let mut slow = config();
    slow.limits.padis_per_s = 10;
    slow.limits.padis_per_mac_per_s = 3;
    slow.limits.padrs_per_s = 6;
    slow.limits.padrs_per_mac_per_s = 2;
    slow.limits.sessions_per_mac_max = 0;
    let mut bench = Bench::new(slow);
    let mut cookies = Vec::new();
    for _ in 0..3 {
        cookies.push(bench.cookie(host(1)));
    }
    bench.ignored(host(1), &padi(), Discard::PadiRatePerMac);
    for n in 2..9 {
        cookies.push(bench.cookie(host(n)));
    }
    bench.ignored(host(20), &padi(), Discard::PadiRate);

    let uniq = |n: u8| padr(&cookies[0], &[(tag::HOST_UNIQ, &[n])]);
    bench.answer(host(1), &uniq(0));
    bench.answer(host(1), &uniq(1));
    bench.ignored(host(1), &uniq(2), Discard::PadrRatePerMac);
    // A repeated request costs nothing.
    bench.answer(host(1), &uniq(1));
    for n in 2..6 {
        bench.answer(host(n), &padr(&cookies[n as usize + 1], &[]));
    }
    bench.ignored(host(6), &padr(&cookies[7], &[]), Discard::PadrRate);
    bench.wait(Duration::from_secs(1));
    bench.answer(host(6), &padr(&cookies[7], &[]));
    bench.answer(host(1), &padi());
}

#[test]
fn a_blacklisted_host_gets_no_answer() {
    let mut bench = Bench::new(config());
    let cookie = bench.cookie(host(0x0102));
    let list = Config {
        blacklist: vec![MacPrefix::host(mac(7)), MacPrefix::new(mac(0x0100), 40)],
        ..config()
    };
    bench.endpoint.set_config(list);
    bench.ignored(host(7), &padi(), Discard::Blacklisted);
    bench.ignored(host(0x0102), &padr(&cookie, &[]), Discard::Blacklisted);
    bench.ignored(host(0x01ff), &padi(), Discard::Blacklisted);
    bench.answer(host(0x0202), &padi());
    bench.answer(host(8), &padi());
    bench.endpoint.set_config(config());
    bench.answer(host(7), &padi());
}

#[test]
fn a_prefix_covers_its_bits() {
    let all = MacPrefix::new(mac(0), 0);
    assert!(all.contains(mac(1)) && all.contains(crate::common::AC));
    let one = MacPrefix::new(mac(1), 200);
    assert_eq!(one, MacPrefix::host(mac(1)));
    assert!(one.contains(mac(1)) && !one.contains(mac(0)));
    assert!(MacPrefix::new(mac(0x10), 45).contains(mac(0x17)));
    assert!(!MacPrefix::new(mac(0x10), 45).contains(mac(0x18)));
}
