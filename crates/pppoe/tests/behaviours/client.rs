//! A host: RFC 2516, sections 5 and 8; RFC 4638, section 4.

use base::{Duration, Machine};
use pppoe::{
    Dial, DialError, Discard, EndReason, LineInfo, Mac, Phase, PortConfig, Refusal, Role, Route,
    SessionKey, Vlans,
};
use wire::pppoe::{Code, FaultKind, tag};

use crate::common::{AC, Bench, Sent, config, data, host, mac, packet};

fn dialled(dial: Dial) -> (Bench, SessionKey, Sent) {
    dialled_on(PortConfig::default(), dial)
}

fn dialled_on(port: PortConfig, dial: Dial) -> (Bench, SessionKey, Sent) {
    let mut bench = Bench::with_port(config(), port);
    let key = bench.endpoint.dial(0, Vlans::one(7), dial, bench.now);
    let padi = bench.one();
    (bench, key.unwrap(), padi)
}

fn ac(peer: Mac) -> Route {
    Route {
        port: 0,
        peer,
        vlans: Vlans::one(7),
    }
}

/// An answer with the Host-Uniq of a request.
fn reply(code: Code, session: u16, to: &Sent, tags: &[(u16, &[u8])]) -> Vec<u8> {
    let uniq: [(u16, &[u8]); 1] = [(tag::HOST_UNIQ, to.one(tag::HOST_UNIQ))];
    packet(code, session, &[&uniq, tags].concat())
}

const OFFER: [(u16, &[u8]); 2] = [(tag::AC_NAME, b"edge-1"), (tag::SERVICE_NAME, b"")];
const CONFIRM: [(u16, &[u8]); 1] = [(tag::SERVICE_NAME, b"")];

#[test]
fn a_session_is_set_up_in_four_packets() {
    let (mut bench, key, padi) = dialled(Dial::default());
    assert_eq!((padi.code, padi.session), (Code::PADI, 0));
    assert_eq!(padi.route, ac(Mac::BROADCAST));
    assert_eq!(padi.one(tag::SERVICE_NAME), b"");
    let view = bench.endpoint.session(key).unwrap();
    assert_eq!((view.role, view.phase), (Role::Client, Phase::Soliciting));
    assert_eq!(
        (view.id, view.host_uniq),
        (0, Some(padi.one(tag::HOST_UNIQ)))
    );

    let more: [(u16, &[u8]); 2] = [
        (tag::AC_COOKIE, b"\0cookie"),
        (tag::RELAY_SESSION_ID, b"relay"),
    ];
    let pado = reply(Code::PADO, 0, &padi, &[&OFFER[..], &more].concat());
    let padr = bench.answer(ac(AC), &pado);
    assert_eq!(
        (padr.code, padr.session, padr.route),
        (Code::PADR, 0, ac(AC))
    );
    assert_eq!(padr.one(tag::SERVICE_NAME), b"");
    // "It MUST return the TAG unmodified in the following PADR" (appendix A).
    assert_eq!(padr.one(tag::AC_COOKIE), b"\0cookie");
    assert_eq!(padr.one(tag::RELAY_SESSION_ID), b"relay");
    let view = bench.endpoint.session(key).unwrap();
    assert_eq!(
        (view.ac_name, view.phase),
        (&b"edge-1"[..], Phase::Requesting)
    );
    assert!(bench.endpoint.header(key).is_none());

    let pads = reply(Code::PADS, 0x1234, &padr, &CONFIRM);
    assert_eq!(bench.send(ac(AC), &pads), Ok(()));
    assert_eq!(bench.up(), key);
    let view = bench.endpoint.session(key).unwrap();
    assert_eq!((view.id, view.phase), (0x1234, Phase::Established));
    assert_eq!(bench.endpoint.header(key).unwrap().1, ac(AC));
    let bytes = data(0x1234);
    let found = bench.endpoint.receive_data(&ac(AC), &bytes, bench.now);
    assert_eq!(found, Ok(Some((key, &bytes[6..]))));
    // No retransmission follows, and late answers change nothing.
    bench.wait(Duration::from_secs(1_000));
    assert_eq!(bench.sent(), []);
    bench.ignored(ac(AC), &pado, Discard::Unexpected);
    bench.ignored(ac(AC), &pads, Discard::Unexpected);
    bench
        .send(ac(AC), &packet(Code::PADT, 0x1234, &[]))
        .unwrap();
    assert_eq!(bench.down(), (key, 0x1234, EndReason::Peer("".into())));
}

#[test]
fn the_first_offer_that_fits_is_taken() {
    let wanted = Dial {
        service_name: b"gold".as_slice().into(),
        ac_name: Some(b"edge-2".as_slice().into()),
        ..Dial::default()
    };
    let (mut bench, _, padi) = dialled(wanted);
    assert_eq!(padi.one(tag::SERVICE_NAME), b"gold");
    let offer = |name: &[u8], service: &[u8]| {
        let tags: [(u16, &[u8]); 3] = [
            (tag::SERVICE_NAME, b"gold plus"),
            (tag::SERVICE_NAME, service),
            (tag::AC_NAME, name),
        ];
        reply(Code::PADO, 0, &padi, &tags)
    };
    bench.ignored(ac(mac(1)), &offer(b"edge-1", b"gold"), Discard::OtherAc);
    let other = offer(b"edge-2", b"silver");
    bench.ignored(ac(mac(2)), &other, Discard::OtherService);
    let padr = bench.answer(ac(mac(2)), &offer(b"edge-2", b"gold"));
    assert_eq!(padr.route, ac(mac(2)));
    assert_eq!(padr.one(tag::SERVICE_NAME), b"gold");
    // Another one is too late, and only the chosen station confirms.
    bench.ignored(ac(mac(3)), &offer(b"edge-2", b"gold"), Discard::Unexpected);
    let pads = reply(Code::PADS, 5, &padr, &CONFIRM);
    bench.ignored(ac(mac(3)), &pads, Discard::OtherPeer);
    bench.send(ac(mac(2)), &pads).unwrap();
    bench.up();
}

#[test]
fn answers_to_other_hosts_and_faulty_ones_are_ignored() {
    let (mut bench, _, padi) = dialled(Dial::default());
    let offer = reply(Code::PADO, 0, &padi, &OFFER);
    let without = packet(Code::PADO, 0, &OFFER);
    bench.ignored(ac(AC), &without, Discard::UnknownHostUniq);
    let others: [(u16, &[u8]); 3] = [(tag::HOST_UNIQ, b"\0\0\0\0other"), OFFER[0], OFFER[1]];
    let other = packet(Code::PADO, 0, &others);
    bench.ignored(ac(AC), &other, Discard::UnknownHostUniq);
    // From another VLAN.
    bench.ignored(host(1), &offer, Discard::UnknownHostUniq);
    let nameless = reply(Code::PADO, 0, &padi, &OFFER[1..]);
    bench.ignored(ac(AC), &nameless, Discard::BadOffer);
    let error: [(u16, &[u8]); 3] = [OFFER[0], OFFER[1], (tag::GENERIC_ERROR, b"busy")];
    bench.ignored(
        ac(AC),
        &reply(Code::PADO, 0, &padi, &error),
        Discard::BadOffer,
    );
    let long = [0; 1_462];
    let long: [(u16, &[u8]); 3] = [(tag::AC_NAME, b"e"), OFFER[1], (tag::AC_COOKIE, &long)];
    let long = reply(Code::PADO, 0, &padi, &long);
    bench.ignored(ac(AC), &long, Discard::AnswerTooLong);
    let early = reply(Code::PADS, 4, &padi, &CONFIRM);
    bench.ignored(ac(AC), &early, Discard::Unexpected);
    let padr = bench.answer(ac(AC), &offer);
    let reserved = reply(Code::PADS, 0xffff, &padr, &CONFIRM);
    bench.ignored(ac(AC), &reserved, Discard::BadSession);
}

#[test]
fn waits_double_and_the_last_one_ends_the_session() {
    let dial = Dial {
        wait: Duration::from_secs(1),
        wait_max: Duration::from_secs(4),
        padis: 4,
        ..Dial::default()
    };
    let (mut bench, key, padi) = dialled(dial);
    // "It SHOULD resend it's PADI packet and double the waiting period" (section 8).
    for wait in [1, 2, 4] {
        bench.wait(Duration::from_millis(wait * 1_000 - 1));
        assert_eq!(bench.sent(), []);
        bench.wait(Duration::from_millis(1));
        assert_eq!(bench.one(), padi);
    }
    assert_eq!(bench.counters().retransmissions, 3);
    bench.wait(Duration::from_secs(4));
    assert_eq!(bench.down(), (key, 0, EndReason::NoPado));
    assert_eq!(bench.endpoint.poll_timeout(), None);
    assert_eq!(bench.endpoint.count(), 0);
}

#[test]
fn an_access_concentrator_that_does_not_confirm_is_left() {
    let dial = Dial {
        wait: Duration::from_secs(1),
        padis: 2,
        padrs: 3,
        ..Dial::default()
    };
    let (mut bench, key, padi) = dialled(dial);
    let offer = reply(Code::PADO, 0, &padi, &OFFER);
    for round in 0..2 {
        let padr = bench.answer(ac(AC), &offer);
        for wait in [1, 2] {
            bench.wait(Duration::from_secs(wait));
            assert_eq!(bench.one(), padr);
        }
        bench.wait(Duration::from_secs(4));
        if round == 0 {
            // "After a specified number of retries, the Host SHOULD then resend a PADI packet" (section 8).
            assert_eq!(bench.one(), padi);
            let view = bench.endpoint.session(key).unwrap();
            assert_eq!((view.phase, view.ac_name), (Phase::Soliciting, &b""[..]));
        }
    }
    assert_eq!(bench.down(), (key, 0, EndReason::NoPads));
}

#[test]
fn a_refusal_ends_the_session_with_its_text() {
    for (kind, name, text) in [
        (FaultKind::ServiceName, "Service-Name-Error", &b""[..]),
        (
            FaultKind::System,
            "AC-System-Error",
            b"too many\x1b sessions\0\0",
        ),
        (FaultKind::Generic, "Generic-Error", b"no"),
    ] {
        let (mut bench, key, padi) = dialled(Dial::default());
        let padr = bench.answer(ac(AC), &reply(Code::PADO, 0, &padi, &OFFER));
        let tags: [(u16, &[u8]); 2] = [CONFIRM[0], (kind.tag(), text)];
        bench
            .send(ac(AC), &reply(Code::PADS, 0, &padr, &tags))
            .unwrap();
        let (ended, id, reason) = bench.down();
        assert_eq!((ended, id), (key, 0));
        let EndReason::Refused(Refusal { kind: found, text }) = &reason else {
            panic!("{reason:?}")
        };
        assert_eq!(*found, Some(kind));
        assert!(!text.contains(['\u{1b}', '\0']));
        assert!(reason.to_string().starts_with(&format!("refused: {name}")));
    }
    let (mut bench, _, padi) = dialled(Dial::default());
    let padr = bench.answer(ac(AC), &reply(Code::PADO, 0, &padi, &OFFER));
    bench
        .send(ac(AC), &reply(Code::PADS, 0, &padr, &CONFIRM))
        .unwrap();
    assert_eq!(bench.down().2.to_string(), "refused: no session id");
}

#[test]
fn a_larger_payload_is_agreed_if_both_want_it() {
    for (mtu, want, asked, echo, agreed) in [
        (1_508, 1_500, Some(1_500), Some(1_500), 1500),
        (1_508, 1_500, Some(1_500), None, 1492),
        (1_508, 9_000, Some(1_500), Some(1_500), 1500),
        (9_000, 4_000, Some(4_000), Some(2_000), 2000),
        (9_000, 4_000, Some(4_000), Some(8_000), 4000),
        (9_000, 4_000, Some(4_000), Some(1_000), 1492),
        (1_500, 1_500, None, None, 1492),
        (1_500, 1_500, None, Some(1_500), 1492),
        (1_400, 1_500, None, None, 1392),
        (1_500, 1_400, None, None, 1400),
    ] {
        let port = PortConfig {
            mtu,
            ..PortConfig::default()
        };
        let dial = Dial {
            max_payload: want,
            ..Dial::default()
        };
        let (mut bench, key, padi) = dialled_on(port, dial);
        let asked: Vec<[u8; 2]> = asked.map(u16::to_be_bytes).into_iter().collect();
        assert_eq!(padi.all(tag::PPP_MAX_PAYLOAD), asked);
        let padr = bench.answer(ac(AC), &reply(Code::PADO, 0, &padi, &OFFER));
        assert_eq!(padr.all(tag::PPP_MAX_PAYLOAD), asked);
        let echo = echo.map(|echo: u16| echo.to_be_bytes());
        let mut tags = CONFIRM.to_vec();
        tags.extend(echo.iter().map(|echo| (tag::PPP_MAX_PAYLOAD, &echo[..])));
        bench
            .send(ac(AC), &reply(Code::PADS, 9, &padr, &tags))
            .unwrap();
        let view = bench.endpoint.session(key).unwrap();
        assert_eq!(view.max_payload, agreed, "mtu {mtu}, wanted {want}");
    }
}

#[test]
fn a_client_can_send_the_line_that_an_access_node_would_add() {
    let line = LineInfo::parse(&[1, 3, b'p', b'/', b'1']);
    let dial = Dial {
        line,
        ..Dial::default()
    };
    let (mut bench, _, padi) = dialled(dial);
    let value = [0, 0, 0x0d, 0xe9, 1, 3, b'p', b'/', b'1'];
    assert_eq!(padi.one(tag::VENDOR_SPECIFIC), value);
    let padr = bench.answer(ac(AC), &reply(Code::PADO, 0, &padi, &OFFER));
    assert_eq!(padr.one(tag::VENDOR_SPECIFIC), value);
}

#[test]
fn a_dial_that_cannot_be_sent_is_refused() {
    let mut bench = Bench::new(config());
    let mut dial = |port, dial| bench.endpoint.dial(port, Vlans::NONE, dial, bench.now);
    assert_eq!(dial(4, Dial::default()), Err(DialError::UnknownPort));
    let long = Dial {
        service_name: vec![0; 1_460].into(),
        ..Dial::default()
    };
    assert_eq!(dial(0, long), Err(DialError::TooLong));
    let longest = Dial {
        service_name: vec![0; 1_452].into(),
        ..Dial::default()
    };
    assert!(dial(0, longest).is_ok());
    let mut small = config();
    small.limits.sessions_max = 1;
    bench.endpoint.set_config(small);
    let mut dial = |dial| bench.endpoint.dial(0, Vlans::NONE, dial, bench.now);
    assert_eq!(dial(Dial::default()), Err(DialError::SessionLimit));
    bench.endpoint.shut_down(bench.now);
    let mut dial = |dial| bench.endpoint.dial(0, Vlans::NONE, dial, bench.now);
    assert_eq!(dial(Dial::default()), Err(DialError::ShuttingDown));
}

#[test]
fn a_client_that_is_ended_before_its_session_sends_nothing_more() {
    let (mut bench, key, padi) = dialled(Dial::default());
    bench.endpoint.end(key, Duration::from_secs(3), bench.now);
    assert_eq!(bench.down(), (key, 0, EndReason::Payload));
    bench.wait(Duration::from_secs(100));
    assert_eq!(bench.sent(), []);
    let offer = reply(Code::PADO, 0, &padi, &OFFER);
    bench.ignored(ac(AC), &offer, Discard::UnknownHostUniq);
    // A packet that was ready is not sent either.
    let again = bench
        .endpoint
        .dial(0, Vlans::NONE, Dial::default(), bench.now);
    bench.endpoint.close(again.unwrap(), bench.now);
    assert_eq!(bench.sent(), []);
    assert!(bench.endpoint.is_quiet());
}

#[test]
fn an_id_that_another_session_of_the_station_has_is_not_taken() {
    let (mut bench, _, padi) = dialled(Dial::default());
    let padr = bench.answer(ac(AC), &reply(Code::PADO, 0, &padi, &OFFER));
    bench
        .send(ac(AC), &reply(Code::PADS, 9, &padr, &CONFIRM))
        .unwrap();
    bench.up();
    let again = Dial::default();
    bench
        .endpoint
        .dial(0, Vlans::one(7), again, bench.now)
        .unwrap();
    let padi = bench.one();
    let padr = bench.answer(ac(AC), &reply(Code::PADO, 0, &padi, &OFFER));
    let pads = reply(Code::PADS, 9, &padr, &CONFIRM);
    bench.ignored(ac(AC), &pads, Discard::BadSession);
}

#[test]
fn data_before_the_confirmation_draws_no_termination() {
    let (mut bench, _, padi) = dialled(Dial::default());
    bench.answer(ac(AC), &reply(Code::PADO, 0, &padi, &OFFER));
    // The PADS was lost or overtaken: the session exists at the other end.
    assert_eq!(bench.send(ac(AC), &data(9)), Ok(()));
    assert_eq!(bench.sent(), []);
    assert_eq!(bench.counters().discard_unknown_session, 1);
}
