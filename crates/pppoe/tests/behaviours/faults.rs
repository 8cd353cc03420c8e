//! Frames that do not follow the RFC: each is ignored and counted under its own name.

use base::Machine;
use pppoe::{Discard, Frame, Mac};
use wire::pppoe::{Code, tag};

use crate::common::{Bench, config, host, packet, padi, padr};

#[test]
fn headers_that_are_wrong_are_ignored() {
    let mut bench = Bench::new(config());
    let whole = padi();
    for len in 0..6 {
        bench.ignored(host(1), &whole[..len], Discard::Short);
    }
    bench.ignored(host(1), &whole[..9], Discard::Length);
    let with = |place: usize, octet: u8| {
        let mut bytes = padi();
        bytes[place] = octet;
        bytes
    };
    bench.ignored(host(1), &with(0, 0x12), Discard::Version);
    bench.ignored(host(1), &with(0, 0x21), Discard::Version);
    bench.ignored(host(1), &with(1, 0x08), Discard::UnknownCode);
    bench.ignored(host(1), &with(3, 1), Discard::SessionNotZero);
    bench.ignored(host(1), &with(9, 1), Discard::TagLength);
    // Ethernet's padding is no fault.
    let mut padded = whole.clone();
    padded.resize(46, 0);
    bench.answer(host(1), &padded);
}

#[test]
fn requests_and_offers_have_no_session() {
    let mut bench = Bench::new(config());
    let cookie = bench.cookie(host(1));
    let mut request = padr(&cookie, &[]);
    request[2] = 1;
    bench.ignored(host(1), &request, Discard::SessionNotZero);
    let pado = packet(Code::PADO, 5, &[(tag::SERVICE_NAME, b"")]);
    bench.ignored(host(1), &pado, Discard::SessionNotZero);
}

#[test]
fn only_stations_ask_and_only_initiations_are_broadcast() {
    let mut bench = Bench::new(config());
    for source in [Mac::BROADCAST, Mac([1, 0, 0, 0, 0, 1]), Mac([0; 6])] {
        let mut route = host(1);
        route.peer = source;
        bench.ignored(route, &padi(), Discard::Source);
    }
    let cookie = bench.cookie(host(1));
    let request = padr(&cookie, &[]);
    for bytes in [&request[..], &packet(Code::PADT, 1, &[])] {
        let frame = Frame {
            route: host(1),
            is_broadcast: true,
            bytes,
        };
        assert_eq!(
            bench.endpoint.handle(frame, bench.now),
            Err(Discard::Broadcast)
        );
    }
    // A PADI sent to us alone is answered all the same.
    let frame = Frame {
        route: host(1),
        is_broadcast: false,
        bytes: &padi(),
    };
    assert_eq!(bench.endpoint.handle(frame, bench.now), Ok(()));
    bench.one();
}

#[test]
fn jumbo_discovery_packets_are_ignored() {
    let mut bench = Bench::new(config());
    let tags: [(u16, &[u8]); 2] = [(tag::SERVICE_NAME, b""), (0x7777, &[0; 1_500])];
    bench.ignored(host(1), &packet(Code::PADI, 0, &tags), Discard::TooLong);
}

#[test]
fn every_reason_has_a_counter_of_its_own() {
    let bench = Bench::new(config());
    let rows: Vec<&str> = bench.counters().rows().map(|(name, _)| name).collect();
    for why in Discard::ALL {
        let count = rows.iter().filter(|name| **name == why.name()).count();
        assert_eq!(count, 1, "{}", why.name());
        assert!(!why.to_string().is_empty());
    }
}
