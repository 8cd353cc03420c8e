//! Session data: RFC 2516, section 6.

use pppoe::{Config, Discard, Phase, Vlans};
use wire::pppoe::Code;

use crate::common::{Bench, config, data, host, packet};

#[test]
fn a_frame_is_returned_with_its_session_and_without_padding() {
    let mut bench = Bench::new(config());
    let (key, id) = bench.open(host(1), &[]);
    let mut bytes = data(id);
    let len = bytes.len();
    bytes.resize(46, 0);
    let found = bench.endpoint.receive_data(&host(1), &bytes, bench.now);
    assert_eq!(found, Ok(Some((key, &bytes[6..len]))));
    assert_eq!(
        bench.endpoint.session(key).unwrap().phase,
        Phase::Established
    );
    // A Discovery packet is for `handle`.
    let padt = packet(Code::PADT, id, &[]);
    let found = bench.endpoint.receive_data(&host(1), &padt, bench.now);
    assert_eq!(found, Ok(None));
    let found = bench.endpoint.receive_data(&host(1), &[0x11], bench.now);
    assert_eq!(found, Ok(None));
}

#[test]
fn a_header_has_the_session_and_goes_to_its_host() {
    let mut bench = Bench::new(config());
    let (key, id) = bench.open(host(1), &[]);
    let [hi, lo] = id.to_be_bytes();
    let expected = ([0x11, 0, hi, lo, 0, 0], host(1));
    assert_eq!(bench.endpoint.header(key), Some(expected));
    bench.endpoint.close(key, bench.now);
    // "No further PPP traffic is allowed" (section 5.5).
    assert_eq!(bench.endpoint.header(key), None);
}

#[test]
fn frames_of_other_hosts_vlans_and_ids_are_ignored() {
    let mut quiet = config();
    quiet.unknown_padts_per_s = 0;
    let mut bench = Bench::new(quiet);
    let (_, id) = bench.open(host(1), &[]);
    let mut tagged = host(1);
    tagged.vlans = Vlans::one(3);
    let mut at = |route, bytes: &[u8]| {
        let found = bench.endpoint.receive_data(&route, bytes, bench.now);
        found.map(|found| found.is_some())
    };
    assert_eq!(at(host(2), &data(id)), Err(Discard::UnknownSession));
    assert_eq!(at(tagged, &data(id)), Err(Discard::WrongVlans));
    assert_eq!(at(host(1), &data(id ^ 1)), Err(Discard::UnknownSession));
    assert_eq!(at(host(1), &data(0)), Err(Discard::SessionReserved));
    assert_eq!(at(host(1), &data(0xffff)), Err(Discard::SessionReserved));
    let cut = &data(id)[..12];
    assert_eq!(at(host(1), cut), Err(Discard::Length));
    assert_eq!(bench.counters().discard_unknown_session, 2);
    assert_eq!(bench.sent(), []);
}

#[test]
fn data_of_an_unknown_session_draws_so_many_terminations() {
    let few = Config {
        unknown_padts_per_s: 3,
        ..config()
    };
    let mut bench = Bench::new(few);
    for _ in 0..10 {
        let found = bench.send(host(1), &data(77));
        assert_eq!(found, Ok(()));
    }
    let sent = bench.sent();
    assert_eq!(sent.len(), 3);
    assert!(
        sent.iter()
            .all(|sent| sent.code == Code::PADT && sent.session == 77 && sent.route == host(1))
    );
    assert_eq!(bench.counters().unknown_answered, 3);
    assert_eq!(bench.counters().discard_unknown_session, 10);
}

#[test]
fn ids_are_unique_over_ports_and_not_reused_soon() {
    let mut bench = Bench::new(config());
    bench.endpoint.add_port(1, pppoe::PortConfig::default());
    let mut seen = std::collections::HashSet::new();
    for n in 0..3_000 {
        let mut route = host(n);
        route.port = (n % 2) as u16;
        let (key, id) = bench.open(route, &[]);
        assert!(seen.insert(id), "{id} again after {n} sessions");
        if n % 3 == 0 {
            bench.endpoint.close(key, bench.now);
            bench.sent();
            bench.down();
        }
    }
}

#[test]
fn a_released_id_comes_again_after_all_others() {
    let mut bench = Bench::new(config());
    let mut live = std::collections::VecDeque::new();
    let mut last_use = std::collections::HashMap::new();
    for n in 0..140_000_u32 {
        let (key, id) = bench.open(host(n), &[]);
        if let Some(before) = last_use.insert(id, n) {
            assert!(n - before >= 65_000, "{id} again after {}", n - before);
        }
        live.push_back(key);
        if live.len() > 100 {
            let oldest = live.pop_front().unwrap();
            bench.endpoint.close(oldest, bench.now);
            bench.sent();
            bench.down();
        }
    }
}
