//! Requests of RFC 5176: validated, parsed, answered once.

use aaa::accounting::SessionId;
use aaa::dynauth::{Cause, Dynauth, DynauthClient, DynauthConfig, DynauthDiscard, Identity, Order};
use aaa::radius::{Line, Nas};
use base::{Datagram, Duration, Instant, Redacted, Route};
use wire::radius::attribute::{self as a, error_cause};
use wire::radius::secret::{Signature, signature, verify_reply};
use wire::radius::{Packet, Writer, code};

pub(crate) const SECRET: &[u8] = b"shared";
pub(crate) const WALL_S: u64 = 1_700_000_000;
pub(crate) const CLIENT: [u8; 4] = [192, 0, 2, 1];

pub(crate) fn dynauth() -> Dynauth {
    let mut config = DynauthConfig::new(Nas {
        identifier: Some("edge".into()),
        address: Some([198, 51, 100, 1].into()),
    });
    config.recent_max = 20;
    let secret = Redacted::new(SECRET.into());
    config
        .clients
        .push(DynauthClient::new(CLIENT.into(), secret));
    Dynauth::new(config)
}

pub(crate) fn request(code: u8, id: u8, attributes: &[(u8, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, code, id, &[0; 16]);
    for (kind, value) in attributes {
        if *kind == a::MESSAGE_AUTHENTICATOR {
            writer.message_authenticator();
        } else {
            writer.attribute(*kind, value);
        }
    }
    writer.finish_signed(SECRET).unwrap();
    out
}

pub(crate) fn handle(dynauth: &mut Dynauth, bytes: &[u8], at_s: u64) -> Result<(), DynauthDiscard> {
    handle_from(dynauth, 4_000, bytes, at_s)
}

fn handle_from(
    dynauth: &mut Dynauth,
    port: u16,
    bytes: &[u8],
    at_s: u64,
) -> Result<(), DynauthDiscard> {
    let route = Route {
        peer: (CLIENT, port).into(),
        local: None,
        socket: 0,
    };
    let now = Instant::ZERO + Duration::from_secs(at_s);
    dynauth.handle(Datagram { route, bytes }, now, WALL_S + at_s)
}

/// The code and the Error-Cause of the pending reply, which is checked against its request.
pub(crate) fn reply(dynauth: &mut Dynauth, request: &[u8]) -> Option<(u8, Option<u32>)> {
    let mut out = Vec::new();
    let route = dynauth.poll_transmit(&mut out)?;
    assert_eq!(route.peer, (CLIENT, 4_000).into());
    let request = Packet::parse(request).unwrap();
    let reply = Packet::parse(&out).unwrap();
    assert_eq!(reply.identifier(), request.identifier());
    assert!(verify_reply(&reply, &request.authenticator(), SECRET));
    let signature = signature(&reply, &request.authenticator(), SECRET);
    assert_eq!(signature, Signature::Right);
    let cause = reply.find(a::ERROR_CAUSE).and_then(|cause| cause.integer());
    Some((reply.code(), cause))
}

/// The Error-Cause of the immediate NAK for a Disconnect-Request with these attributes.
fn refusal(attributes: &[(u8, &[u8])]) -> Option<u32> {
    let mut dynauth = dynauth();
    let bytes = request(code::DISCONNECT_REQUEST, 1, attributes);
    handle(&mut dynauth, &bytes, 0).unwrap();
    let (code, cause) = reply(&mut dynauth, &bytes)?;
    assert_eq!(code, code::DISCONNECT_NAK);
    assert_eq!(dynauth.poll_event(), None);
    cause
}

#[test]
fn a_disconnect_request_is_asked_and_answered_and_asked_only_once() {
    let mut dynauth = dynauth();
    let bytes = request(
        code::DISCONNECT_REQUEST,
        7,
        &[
            (a::MESSAGE_AUTHENTICATOR, &[]),
            (a::NAS_IDENTIFIER, b"edge"),
            (a::NAS_IP_ADDRESS, &[198, 51, 100, 1]),
            (a::USER_NAME, b"alice"),
            (a::ACCT_SESSION_ID, b"000000010000000002"),
            (a::EVENT_TIMESTAMP, &(WALL_S as u32 - 100).to_be_bytes()),
            (a::PROXY_STATE, b"first"),
            (a::PROXY_STATE, b"second"),
            (a::CLASS, b"why"),
        ],
    );
    handle(&mut dynauth, &bytes, 0).unwrap();
    assert_eq!(reply(&mut dynauth, &bytes), None);
    let asked = dynauth.poll_event().unwrap();
    assert_eq!(
        asked.selection.session_id(),
        Some(SessionId { boot: 1, number: 2 })
    );
    let class = vec![b"why".as_slice().into()];
    assert_eq!(asked.order, Order::Disconnect { class });
    let again = handle(&mut dynauth, &bytes, 1);
    assert_eq!(again, Err(DynauthDiscard::InProgress));
    dynauth.answer(asked.ticket, Ok(()));
    dynauth.answer(asked.ticket, Err(Cause::NotFound));
    let ack = Some((code::DISCONNECT_ACK, None));
    assert_eq!(reply(&mut dynauth, &bytes), ack);
    assert_eq!(reply(&mut dynauth, &bytes), None);

    handle(&mut dynauth, &bytes, 2).unwrap();
    assert_eq!(dynauth.poll_event(), None);
    let mut out = Vec::new();
    dynauth.poll_transmit(&mut out).unwrap();
    let states = Packet::parse(&out).unwrap();
    let states = states
        .attributes()
        .filter(|attribute| attribute.kind == a::PROXY_STATE);
    let states: Vec<&[u8]> = states.map(|state| state.value).collect();
    assert_eq!(states, [&b"first"[..], b"second"]);
    let counters = dynauth.counters();
    assert_eq!(
        (counters.requests, counters.acks, counters.repeated),
        (1, 1, 1)
    );
}

#[test]
fn each_answer_has_its_error_cause_and_its_counter() {
    for (place, cause) in Cause::ALL.into_iter().enumerate() {
        let mut dynauth = dynauth();
        for (sent, nak) in [
            (code::DISCONNECT_REQUEST, code::DISCONNECT_NAK),
            (code::COA_REQUEST, code::COA_NAK),
        ] {
            let user = (a::USER_NAME, &b"bob"[..]);
            let bytes = request(sent, 7, &[user, (a::CLASS, b"x")]);
            handle(&mut dynauth, &bytes, 0).unwrap();
            let asked = dynauth.poll_event().unwrap();
            dynauth.answer(asked.ticket, Err(cause));
            let nak = Some((nak, Some(cause.value())));
            assert_eq!(reply(&mut dynauth, &bytes), nak);
        }
        let counters = dynauth.counters();
        assert_eq!(counters.causes[place], 2);
        assert_eq!((counters.naks, counters.change_naks), (1, 1));
    }
}

#[test]
fn what_a_request_cannot_mean_is_refused_with_its_error_cause() {
    let user = (a::USER_NAME, &b"alice"[..]);
    let refused = Some(error_cause::NAS_IDENTIFICATION_MISMATCH);
    assert_eq!(refusal(&[user, (a::NAS_IDENTIFIER, b"another")]), refused);
    assert_eq!(
        refusal(&[user, (a::NAS_IP_ADDRESS, &[1, 2, 3, 4])]),
        refused
    );
    assert_eq!(refusal(&[user, (a::NAS_IPV6_ADDRESS, &[1; 16])]), refused);
    let refused = Some(error_cause::UNSUPPORTED_ATTRIBUTE);
    assert_eq!(refusal(&[user, (a::SERVICE_TYPE, &[0, 0, 0, 2])]), refused);
    assert_eq!(refusal(&[user, (a::STATE, b"x")]), refused);
    assert_eq!(refusal(&[user, (a::VENDOR_SPECIFIC, &[0; 8])]), refused);
    assert_eq!(refusal(&[user, (250, b"x")]), refused);
    let refused = Some(error_cause::MISSING_ATTRIBUTE);
    assert_eq!(refusal(&[]), refused);
    assert_eq!(refusal(&[(a::NAS_IDENTIFIER, b"edge")]), refused);
    let refused = Some(error_cause::INVALID_REQUEST);
    assert_eq!(refusal(&[user, user]), refused);
    assert_eq!(refusal(&[(a::NAS_PORT, &[1, 2, 3])]), refused);
    assert_eq!(refusal(&[user, (a::NAS_IP_ADDRESS, &[1])]), refused);
}

#[test]
fn what_is_not_believed_gets_no_answer() {
    let mut dynauth = dynauth();
    let user = (a::USER_NAME, &b"alice"[..]);
    let good = request(code::DISCONNECT_REQUEST, 1, &[user]);
    let stranger = Route {
        peer: ([192, 0, 2, 2], 4_000).into(),
        local: None,
        socket: 0,
    };
    let datagram = Datagram {
        route: stranger,
        bytes: &good,
    };
    let why = dynauth.handle(datagram, Instant::ZERO, WALL_S);
    assert_eq!(why, Err(DynauthDiscard::UnknownClient));
    let mut altered = good.clone();
    *altered.last_mut().unwrap() ^= 1;
    let why = handle(&mut dynauth, &altered, 0);
    assert_eq!(why, Err(DynauthDiscard::BadAuthenticator));
    let why = handle(&mut dynauth, &good[..21], 0);
    assert!(matches!(why, Err(DynauthDiscard::Malformed(_))));
    let access = request(code::ACCESS_REQUEST, 1, &[user]);
    assert_eq!(
        handle(&mut dynauth, &access, 0),
        Err(DynauthDiscard::Code(1))
    );
    for (apart, is_stale) in [(-301_i64, true), (-300, false), (300, false), (301, true)] {
        let sent = (WALL_S.saturating_add_signed(apart) as u32).to_be_bytes();
        let bytes = request(
            code::DISCONNECT_REQUEST,
            1,
            &[user, (a::EVENT_TIMESTAMP, &sent)],
        );
        let why = handle(&mut dynauth, &bytes, 0);
        assert_eq!(why == Err(DynauthDiscard::Stale), is_stale, "{apart}");
    }
    let short = request(
        code::DISCONNECT_REQUEST,
        1,
        &[user, (a::EVENT_TIMESTAMP, &[1])],
    );
    assert_eq!(handle(&mut dynauth, &short, 0), Err(DynauthDiscard::Stale));
    let mut signed = request(
        code::DISCONNECT_REQUEST,
        2,
        &[(a::MESSAGE_AUTHENTICATOR, &[]), user],
    );
    // A wrong Message-Authenticator under a right authenticator.
    signed[22] ^= 1;
    signed[4..20].fill(0);
    let mut resigned = Vec::new();
    let packet = Packet::parse(&signed).unwrap();
    let mut writer = Writer::new(&mut resigned, code::DISCONNECT_REQUEST, 2, &[0; 16]);
    writer.list().encoded(packet.attributes());
    writer.finish_signed(SECRET).unwrap();
    let why = handle(&mut dynauth, &resigned, 0);
    assert_eq!(why, Err(DynauthDiscard::BadSignature));
    let mut out = Vec::new();
    assert_eq!(dynauth.poll_transmit(&mut out), None);
    let counters = dynauth.counters();
    assert_eq!(
        (counters.stale, counters.unauthentic, counters.malformed),
        (3, 2, 2)
    );
}

#[test]
fn a_request_is_remembered_for_as_long_as_its_time_stamp_would_be_taken() {
    let mut dynauth = dynauth();
    let sent = (WALL_S as u32 + 299).to_be_bytes();
    let attributes = [(a::USER_NAME, &b"alice"[..]), (a::EVENT_TIMESTAMP, &sent)];
    let bytes = request(code::DISCONNECT_REQUEST, 1, &attributes);
    handle(&mut dynauth, &bytes, 0).unwrap();
    let asked = dynauth.poll_event().unwrap();
    dynauth.answer(asked.ticket, Ok(()));
    for at_s in [1, 299, 599] {
        handle(&mut dynauth, &bytes, at_s).unwrap();
        assert_eq!(dynauth.poll_event(), None, "a replay after {at_s} s");
    }
    assert_eq!(
        handle(&mut dynauth, &bytes, 600),
        Err(DynauthDiscard::Stale)
    );
}

/// RFC 5176, section 2.3: the source port tells requests apart. A sender that changes a rate there and back, with a new
/// port for each request, may use the same identifier twice.
#[test]
fn only_a_request_with_a_time_is_the_same_from_another_port() {
    let sent = (WALL_S as u32).to_be_bytes();
    let user = (a::USER_NAME, &b"alice"[..]);
    for (dated, is_same) in [(false, false), (true, true)] {
        let attributes = [user, (a::EVENT_TIMESTAMP, &sent[..])];
        let attributes = &attributes[..1 + usize::from(dated)];
        let bytes = request(code::DISCONNECT_REQUEST, 1, attributes);
        let mut dynauth = dynauth();
        handle(&mut dynauth, &bytes, 0).unwrap();
        let asked = dynauth.poll_event().unwrap();
        dynauth.answer(asked.ticket, Ok(()));
        handle_from(&mut dynauth, 4_001, &bytes, 1).unwrap();
        assert_eq!(dynauth.poll_event().is_none(), is_same);
        // From the same port it is the same one.
        handle(&mut dynauth, &bytes, 2).unwrap();
        assert_eq!(dynauth.poll_event(), None);
    }
}

#[test]
fn requests_without_an_answer_fill_the_table_until_they_are_old() {
    let mut dynauth = dynauth();
    let user = (a::USER_NAME, &b"alice"[..]);
    for id in 0..20 {
        let bytes = request(code::DISCONNECT_REQUEST, id, &[user]);
        handle(&mut dynauth, &bytes, 0).unwrap();
    }
    let bytes = request(code::DISCONNECT_REQUEST, 99, &[user]);
    assert_eq!(handle(&mut dynauth, &bytes, 0), Err(DynauthDiscard::Busy));
    handle(&mut dynauth, &bytes, 601).unwrap();
    assert_eq!(dynauth.counters().busy, 1);
}

/// RFC 5176, section 6.3: a replay has no effect, also after so many requests that the table had to forget the first.
#[test]
fn a_request_that_the_table_forgot_cannot_be_replayed() {
    let mut dynauth = dynauth();
    let sent = |at_s: u64| ((WALL_S + at_s) as u32).to_be_bytes();
    let ask = |id: u8, at_s: u64| {
        let (user, class) = ((a::USER_NAME, &b"alice"[..]), (a::CLASS, &b"x"[..]));
        let time = sent(at_s);
        request(
            code::COA_REQUEST,
            id,
            &[user, class, (a::EVENT_TIMESTAMP, &time)],
        )
    };
    let mut all = Vec::new();
    for id in 0..100 {
        let at_s = u64::from(id) / 4;
        let bytes = ask(id, at_s);
        handle(&mut dynauth, &bytes, at_s).unwrap();
        let asked = dynauth.poll_event().unwrap();
        dynauth.answer(asked.ticket, Ok(()));
        assert_eq!(reply(&mut dynauth, &bytes), Some((code::COA_ACK, None)));
        all.push(bytes);
    }
    for (n, bytes) in all.iter().enumerate() {
        let result = handle(&mut dynauth, bytes, 25);
        assert_eq!(dynauth.poll_event(), None, "request {n} is done twice");
        if n < 80 {
            assert_eq!(result, Err(DynauthDiscard::Stale), "request {n}");
        } else {
            assert_eq!(reply(&mut dynauth, bytes), Some((code::COA_ACK, None)));
        }
    }
    // A new one is accepted all the same.
    let bytes = ask(200, 25);
    handle(&mut dynauth, &bytes, 25).unwrap();
    assert!(dynauth.poll_event().is_some());
}

#[test]
fn a_session_is_meant_if_all_that_is_said_of_it_is_so() {
    let prefix = |length| {
        let address = "2001:db8:7::".parse().unwrap();
        aaa::Prefix::new(address, length).unwrap()
    };
    let networks = [prefix(48), prefix(64)];
    let one = Identity {
        session: SessionId { boot: 1, number: 2 },
        user: b"alice",
        line: Line {
            port: 9,
            port_id: "l2tp 4/5",
            calling: b"123",
            ..Line::default()
        },
        address: Some([203, 0, 113, 9].into()),
        interface: Some([1; 8]),
        networks: &networks,
        leases: [None, Some(prefix(60)), None],
    };
    let alice = (a::USER_NAME, &b"alice"[..]);
    let prefix_48 = (
        a::FRAMED_IPV6_PREFIX,
        &[0, 48, 0x20, 0x01, 0x0d, 0xb8, 0, 7][..],
    );
    let prefix_56 = (
        a::FRAMED_IPV6_PREFIX,
        &[0, 56, 0x20, 0x01, 0x0d, 0xb8, 0, 7, 0][..],
    );
    let prefix_60 = (
        a::FRAMED_IPV6_PREFIX,
        &[0, 60, 0x20, 0x01, 0x0d, 0xb8, 0, 7, 0, 0][..],
    );
    for (attributes, is_meant) in [
        (&[alice][..], true),
        (&[(a::USER_NAME, b"bob")], false),
        (&[alice, (a::NAS_PORT, &[0, 0, 0, 9])], true),
        (&[alice, (a::NAS_PORT, &[0, 0, 0, 8])], false),
        (&[(a::NAS_PORT_ID, b"l2tp 4/5")], true),
        (&[(a::NAS_PORT_ID, b"l2tp 4/6")], false),
        (&[(a::FRAMED_IP_ADDRESS, &[203, 0, 113, 9])], true),
        (&[(a::FRAMED_IP_ADDRESS, &[203, 0, 113, 8])], false),
        (&[prefix_48, (a::FRAMED_INTERFACE_ID, &[1; 8])], true),
        (&[prefix_48, (a::FRAMED_INTERFACE_ID, &[2; 8])], false),
        (&[prefix_56], false),
        // A delegated prefix is the session's own.
        (&[prefix_60], true),
        (&[prefix_48, prefix_56], false),
        (&[(a::CALLING_STATION_ID, b"123")], true),
        (&[(a::CALLED_STATION_ID, b"123")], false),
        (&[(a::ACCT_SESSION_ID, b"000000010000000002")], true),
        (&[(a::ACCT_SESSION_ID, b"000000010000000003")], false),
        (&[alice, (a::ACCT_SESSION_ID, b"000000010000000003")], false),
    ] {
        let mut dynauth = dynauth();
        let bytes = request(code::DISCONNECT_REQUEST, 1, attributes);
        handle(&mut dynauth, &bytes, 0).unwrap();
        let asked = dynauth.poll_event().unwrap();
        assert_eq!(asked.selection.matches(&one), is_meant, "{attributes:?}");
    }
}

/// A client that stays keeps its answers, one that goes is unknown, and one that comes back starts anew.
#[test]
fn clients_are_replaced_without_forgetting_what_was_answered() {
    let mut dynauth = dynauth();
    let bytes = request(code::DISCONNECT_REQUEST, 1, &[(a::USER_NAME, b"alice")]);
    handle(&mut dynauth, &bytes, 0).unwrap();
    let ticket = dynauth.poll_event().unwrap().ticket;
    dynauth.answer(ticket, Ok(()));
    assert_eq!(
        reply(&mut dynauth, &bytes),
        Some((code::DISCONNECT_ACK, None))
    );
    let client = |last: u8, secret: &[u8]| {
        DynauthClient::new([192, 0, 2, last].into(), Redacted::new(secret.into()))
    };
    dynauth.set_clients(vec![client(9, b"other"), client(1, SECRET)]);
    handle(&mut dynauth, &bytes, 1).unwrap();
    assert!(dynauth.poll_event().is_none(), "it was done already");
    assert_eq!(
        reply(&mut dynauth, &bytes),
        Some((code::DISCONNECT_ACK, None))
    );
    dynauth.set_clients(vec![client(1, b"new"), client(9, b"other")]);
    assert_eq!(
        handle(&mut dynauth, &bytes, 2),
        Err(DynauthDiscard::BadAuthenticator)
    );
    let open = request(code::DISCONNECT_REQUEST, 2, &[(a::USER_NAME, b"bob")]);
    dynauth.set_clients(vec![client(1, SECRET)]);
    handle(&mut dynauth, &open, 3).unwrap();
    let ticket = dynauth.poll_event().unwrap().ticket;
    dynauth.set_clients(vec![client(9, b"other")]);
    dynauth.answer(ticket, Ok(()));
    assert_eq!(reply(&mut dynauth, &open), None);
    assert_eq!(
        handle(&mut dynauth, &bytes, 4),
        Err(DynauthDiscard::UnknownClient)
    );
}
