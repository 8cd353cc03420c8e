//! The line tags of access nodes (TR-101, RFC 4679), and limits by line.

use pppoe::{Config, Vlans};
use wire::pppoe::tag;

use crate::common::{Bench, config, host};

fn per_line(most: u32) -> Config {
    let mut config = config();
    config.limits.sessions_per_line_max = most;
    config
}

fn vendor(options: &[u8]) -> Vec<u8> {
    [&[0, 0, 0x0d, 0xe9], options].concat()
}

#[test]
fn a_session_has_the_line_of_its_request() {
    let mut bench = Bench::new(config());
    let line = vendor(&[
        1, 3, b'p', b'/', b'1', 2, 2, b'4', b'2', 0x82, 4, 0, 1, 0, 0,
    ]);
    let (key, _) = bench.open(host(1), &[(tag::VENDOR_SPECIFIC, &line)]);
    let view = bench.endpoint.session(key).unwrap();
    let line = view.line.unwrap();
    assert_eq!(line.circuit_id(), Some(&b"p/1"[..]));
    assert_eq!(line.remote_id(), Some(&b"42"[..]));
    assert_eq!(line.word(0x82), Some(65_536));
    // Another vendor's tag is no line.
    let (key, _) = bench.open(host(2), &[(tag::VENDOR_SPECIFIC, &[0, 0, 0, 9, 1, 1, 65])]);
    assert_eq!(bench.endpoint.session(key).unwrap().line, None);
}

#[test]
fn sessions_are_limited_by_line() {
    let mut bench = Bench::new(per_line(2));
    let line = |id: u8| vendor(&[1, 1, id]);
    let (a, b) = (line(b'a'), line(b'b'));
    let (first, _) = bench.open(host(1), &[(tag::VENDOR_SPECIFIC, &a)]);
    bench.open(host(2), &[(tag::VENDOR_SPECIFIC, &a)]);
    bench.open(host(3), &[(tag::VENDOR_SPECIFIC, &b)]);
    let pads = bench.request(host(4), &[(tag::VENDOR_SPECIFIC, &a)]);
    assert_eq!(pads.session, 0);
    assert_eq!(
        pads.one(tag::AC_SYSTEM_ERROR),
        b"too many sessions of this line"
    );
    assert_eq!(bench.counters().refused_per_line, 1);
    // A host of the line that restarts replaces its own session.
    assert_ne!(
        bench
            .request(host(2), &[(tag::VENDOR_SPECIFIC, &a)])
            .session,
        0
    );
    bench.endpoint.close(first, bench.now);
    bench.sent();
    assert_ne!(
        bench
            .request(host(4), &[(tag::VENDOR_SPECIFIC, &a)])
            .session,
        0
    );
}

#[test]
fn a_line_is_both_its_ids() {
    let mut bench = Bench::new(per_line(1));
    let lines: [&[u8]; 5] = [
        &[1, 1, b'a'],
        &[2, 1, b'a'],
        &[1, 1, b'a', 2, 1, b'b'],
        &[1, 1, b'b', 2, 1, b'a'],
        &[1, 2, b'a', b'b'],
    ];
    for (n, line) in (0..).zip(lines) {
        bench.open(host(n), &[(tag::VENDOR_SPECIFIC, &vendor(line))]);
    }
    // Rates do not matter.
    let with_rate = vendor(&[0x81, 4, 0, 0, 0, 1, 1, 1, b'a']);
    let pads = bench.request(host(9), &[(tag::VENDOR_SPECIFIC, &with_rate)]);
    assert_eq!(pads.session, 0);
}

#[test]
fn without_line_tags_the_vlans_are_the_line_and_untagged_hosts_have_none() {
    let mut bench = Bench::new(per_line(1));
    let tagged = |n: u32, vlans| {
        let mut route = host(n);
        route.vlans = vlans;
        route
    };
    bench.open(tagged(1, Vlans::two(7, 1)), &[]);
    bench.open(tagged(2, Vlans::two(7, 2)), &[]);
    let pads = bench.request(tagged(3, Vlans::two(7, 1)), &[]);
    assert_eq!(pads.session, 0);
    for n in 10..20 {
        bench.open(host(n), &[]);
    }
}
