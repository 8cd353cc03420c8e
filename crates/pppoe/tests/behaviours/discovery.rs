//! PADI to PADS as an access concentrator: RFC 2516, sections 5.1 to 5.4.

use pppoe::{Config, Discard, PortConfig};
use wire::pppoe::{Code, tag};

use crate::common::{Bench, config, host, names, packet, padi, padr};

#[test]
fn an_offer_has_the_name_the_service_and_the_tags_of_its_request() {
    let mut bench = Bench::new(config());
    let padi = packet(
        Code::PADI,
        0,
        &[
            (tag::HOST_UNIQ, b"\x00\xffanything\x00"),
            (tag::RELAY_SESSION_ID, b"relay"),
            (0x7777, b"unknown"),
            (tag::SERVICE_NAME, b"whatever"),
        ],
    );
    let pado = bench.answer(host(1), &padi);
    assert_eq!((pado.code, pado.session), (Code::PADO, 0));
    assert_eq!(pado.route, host(1));
    assert_eq!(pado.one(tag::AC_NAME), b"edge-1");
    assert_eq!(pado.one(tag::SERVICE_NAME), b"whatever");
    assert_eq!(pado.one(tag::HOST_UNIQ), b"\x00\xffanything\x00");
    assert_eq!(pado.one(tag::RELAY_SESSION_ID), b"relay");
    assert_eq!(pado.all(0x7777), [] as [&[u8]; 0]);
    assert_eq!(bench.endpoint.count(), 0);
    bench.no_event();
}

#[test]
fn an_offer_lists_all_services_and_the_requested_one_first() {
    let offered = Config {
        services: names(&[b"gold", b"silver"]),
        ..config()
    };
    let mut bench = Bench::new(offered);
    let pado = bench.answer(host(1), &padi());
    let all: [&[u8]; 3] = [b"", b"gold", b"silver"];
    assert_eq!(pado.all(tag::SERVICE_NAME), all);
    let silver = packet(Code::PADI, 0, &[(tag::SERVICE_NAME, b"silver")]);
    let pado = bench.answer(host(2), &silver);
    let all: [&[u8]; 2] = [b"silver", b"gold"];
    assert_eq!(pado.all(tag::SERVICE_NAME), all);
    // "If the Access Concentrator can not serve the PADI it MUST NOT respond with a PADO" (section 5.2).
    let other = packet(Code::PADI, 0, &[(tag::SERVICE_NAME, b"bronze")]);
    bench.ignored(host(3), &other, Discard::UnknownService);
}

#[test]
fn an_empty_name_may_be_refused() {
    let strict = Config {
        services: names(&[b"gold"]),
        accept_any_service: false,
        ..config()
    };
    let mut bench = Bench::new(strict);
    bench.ignored(host(1), &padi(), Discard::UnknownService);
}

#[test]
fn a_confirmation_has_one_service_and_a_session() {
    let offered = Config {
        services: names(&[b"gold", b"silver"]),
        ..config()
    };
    let mut bench = Bench::new(offered);
    let cookie = bench.cookie(host(1));
    let tags: [(u16, &[u8]); 4] = [
        (tag::SERVICE_NAME, b"silver"),
        (tag::AC_COOKIE, &cookie),
        (tag::HOST_UNIQ, b"pid 7"),
        (tag::RELAY_SESSION_ID, b"relay"),
    ];
    let pads = bench.answer(host(1), &packet(Code::PADR, 0, &tags));
    assert_eq!(pads.code, Code::PADS);
    assert!(pads.session != 0 && pads.session != 0xffff);
    assert_eq!(pads.one(tag::SERVICE_NAME), b"silver");
    assert_eq!(pads.one(tag::HOST_UNIQ), b"pid 7");
    assert_eq!(pads.one(tag::RELAY_SESSION_ID), b"relay");
    let key = bench.up();
    let view = bench.endpoint.session(key).unwrap();
    assert_eq!(view.id, pads.session);
    assert_eq!(view.service_name, b"silver");
    assert_eq!(view.ac_name, b"edge-1");
    assert_eq!(view.host_uniq, Some(&b"pid 7"[..]));
    assert_eq!(view.max_payload, 1492);
    let found = bench.endpoint.find(0, host(1).peer, pads.session);
    assert_eq!(found, Some(key));
}

#[test]
fn a_service_that_is_not_offered_is_refused_without_a_session() {
    let offered = Config {
        services: names(&[b"gold"]),
        ..config()
    };
    let mut bench = Bench::new(offered);
    let cookie = bench.cookie(host(1));
    let tags: [(u16, &[u8]); 3] = [
        (tag::SERVICE_NAME, b"bronze"),
        (tag::AC_COOKIE, &cookie),
        (tag::HOST_UNIQ, b"u"),
    ];
    let pads = bench.answer(host(1), &packet(Code::PADR, 0, &tags));
    // "The SESSION_ID MUST be set to 0x0000" (section 5.4).
    assert_eq!((pads.code, pads.session), (Code::PADS, 0));
    assert_eq!(pads.all(tag::SERVICE_NAME_ERROR).len(), 1);
    assert_eq!(pads.one(tag::HOST_UNIQ), b"u");
    assert_eq!(bench.endpoint.count(), 0);
    assert_eq!(bench.counters().refused_service, 1);
    bench.no_event();
}

#[test]
fn initiation_and_request_have_exactly_one_service() {
    let mut bench = Bench::new(config());
    let cookie = bench.cookie(host(1));
    let two: [(u16, &[u8]); 3] = [
        (tag::SERVICE_NAME, b"a"),
        (tag::SERVICE_NAME, b"b"),
        (tag::AC_COOKIE, &cookie),
    ];
    for code in [Code::PADI, Code::PADR] {
        for tags in [&two[..], &two[2..], &[]] {
            bench.ignored(host(1), &packet(code, 0, tags), Discard::ServiceCount);
        }
    }
}

#[test]
fn ports_have_their_own_names_and_roles() {
    let mut bench = Bench::new(config());
    let port = PortConfig {
        ac_name: Some(b"edge-2".as_slice().into()),
        services: Some(names(&[b"business"])),
        ..PortConfig::default()
    };
    bench.endpoint.add_port(3, port);
    let mut at_three = host(1);
    at_three.port = 3;
    let pado = bench.answer(at_three, &padi());
    assert_eq!(pado.route, at_three);
    assert_eq!(pado.one(tag::AC_NAME), b"edge-2");
    assert_eq!(pado.all(tag::SERVICE_NAME)[1], b"business");

    let client_only = PortConfig {
        server: false,
        ..PortConfig::default()
    };
    let cookie = bench.cookie(host(1));
    bench.endpoint.set_port(0, client_only);
    bench.ignored(host(1), &padi(), Discard::NotServer);
    bench.ignored(host(1), &padr(&cookie, &[]), Discard::NotServer);
    let mut nowhere = host(1);
    nowhere.port = 9;
    bench.ignored(nowhere, &padi(), Discard::UnknownPort);
}

#[test]
fn an_answer_longer_than_a_frame_is_not_sent() {
    let mut bench = Bench::new(config());
    let cookie = bench.cookie(host(1));
    let long = [0xaa; 1_460];
    let tags: [(u16, &[u8]); 2] = [(tag::SERVICE_NAME, b""), (tag::HOST_UNIQ, &long)];
    let padi = packet(Code::PADI, 0, &tags);
    assert!(padi.len() <= 1_484);
    bench.ignored(host(1), &padi, Discard::AnswerTooLong);
    let long = [0xaa; 1_440];
    let request = padr(&cookie, &[(tag::HOST_UNIQ, &long)]);
    bench.ignored(host(1), &request, Discard::AnswerTooLong);
    let long = [0xaa; 1_300];
    bench.request(host(1), &[(tag::HOST_UNIQ, &long)]);
}
