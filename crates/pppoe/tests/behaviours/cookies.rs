//! AC-Cookies: RFC 2516, section 9.

use base::Duration;
use pppoe::{Config, Discard, Vlans};
use wire::pppoe::tag;

use crate::common::{Bench, config, host, packet, padr};

#[test]
fn a_request_without_a_cookie_leaves_no_state() {
    let mut bench = Bench::new(config());
    let bare = packet(wire::pppoe::Code::PADR, 0, &[(tag::SERVICE_NAME, b"")]);
    bench.ignored(host(1), &bare, Discard::NoCookie);
    bench.ignored(host(1), &padr(b"", &[]), Discard::BadCookie);
    bench.ignored(host(1), &padr(&[0; 24], &[]), Discard::BadCookie);
}

#[test]
fn a_cookie_serves_its_host_alone() {
    let mut bench = Bench::new(config());
    let cookie = bench.cookie(host(1));
    let mut tagged = host(1);
    tagged.vlans = Vlans::one(5);
    bench.endpoint.add_port(1, pppoe::PortConfig::default());
    let mut other_port = host(1);
    other_port.port = 1;
    for other in [host(2), tagged, other_port] {
        bench.ignored(other, &padr(&cookie, &[]), Discard::BadCookie);
    }
    bench.answer(host(1), &padr(&cookie, &[]));
    bench.up();
}

#[test]
fn a_cookie_serves_for_its_lifetime() {
    let short = Config {
        cookie_lifetime: Duration::from_secs(10),
        ..config()
    };
    let mut bench = Bench::new(short);
    let cookie = bench.cookie(host(1));
    bench.wait(Duration::from_secs(10));
    bench.answer(host(1), &padr(&cookie, &[]));
    let cookie = bench.cookie(host(2));
    bench.wait(Duration::from_millis(10_001));
    bench.ignored(host(2), &padr(&cookie, &[]), Discard::StaleCookie);
}

#[test]
fn a_repeated_request_gets_the_same_session() {
    let mut bench = Bench::new(config());
    let cookie = bench.cookie(host(1));
    let request = padr(&cookie, &[(tag::HOST_UNIQ, b"u")]);
    let first = bench.answer(host(1), &request);
    bench.up();
    for wait in [0, 1, 20] {
        bench.wait(Duration::from_secs(wait));
        assert_eq!(bench.answer(host(1), &request), first);
    }
    assert_eq!(bench.endpoint.count(), 1);
    assert_eq!(bench.counters().padrs_repeated, 3);
    // Also once PPP frames flow: the network may have duplicated it.
    let data = crate::common::data(first.session);
    assert_eq!(bench.send(host(1), &data), Ok(()));
    assert_eq!(bench.answer(host(1), &request), first);
    bench.no_event();
}

#[test]
fn two_hosts_behind_one_address_are_two_if_their_marks_differ() {
    let mut two = config();
    two.limits.sessions_per_mac_max = 2;
    let mut bench = Bench::new(two);
    let cookie = bench.cookie(host(1));
    let first = bench.answer(host(1), &padr(&cookie, &[(tag::HOST_UNIQ, b"a")]));
    let second = bench.answer(host(1), &padr(&cookie, &[(tag::HOST_UNIQ, b"b")]));
    assert_ne!(first.session, second.session);
    assert_eq!(bench.endpoint.count(), 2);
}
