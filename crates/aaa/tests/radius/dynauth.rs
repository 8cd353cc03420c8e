//! Disconnect-Requests (RFC 5176): validated, parsed, answered once.

use aaa::accounting::{Authentic, SessionId, Subscriber};
use aaa::dynauth::{Answer, Dynauth, DynauthClient, DynauthConfig, DynauthDiscard};
use aaa::radius::{Line, Nas};
use base::{Datagram, Duration, Instant, Redacted, Route};
use wire::radius::attribute::{self as a, error_cause};
use wire::radius::secret::{Signature, signature, verify_reply};
use wire::radius::{Packet, Writer, code};

const SECRET: &[u8] = b"shared";
const WALL_S: u64 = 1_700_000_000;
const CLIENT: [u8; 4] = [192, 0, 2, 1];

fn dynauth() -> Dynauth {
    let mut config = DynauthConfig::new(Nas {
        identifier: Some("edge".into()),
        address: Some([198, 51, 100, 1].into()),
    });
    config.recent_max = 20;
    config.clients.push(DynauthClient {
        address: CLIENT.into(),
        secret: Redacted::new(SECRET.into()),
    });
    Dynauth::new(config)
}

fn request(code: u8, id: u8, attributes: &[(u8, &[u8])]) -> Vec<u8> {
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

fn handle(dynauth: &mut Dynauth, bytes: &[u8], at_s: u64) -> Result<(), DynauthDiscard> {
    let route = Route {
        peer: (CLIENT, 4_000).into(),
        local: None,
        socket: 0,
    };
    let now = Instant::ZERO + Duration::from_secs(at_s);
    dynauth.handle(Datagram { route, bytes }, now, WALL_S + at_s)
}

/// The code and the Error-Cause of the pending reply, which is checked against its request.
fn reply(dynauth: &mut Dynauth, request: &[u8]) -> Option<(u8, Option<u32>)> {
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
    assert_eq!(*asked.class, [b"why".as_slice().into()]);
    let again = handle(&mut dynauth, &bytes, 1);
    assert_eq!(again, Err(DynauthDiscard::InProgress));
    dynauth.answer(asked.ticket, Answer::Done);
    dynauth.answer(asked.ticket, Answer::NotFound);
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
fn each_answer_has_its_error_cause() {
    for (answer, cause) in [
        (Answer::NotFound, error_cause::SESSION_NOT_FOUND),
        (Answer::NotRemovable, error_cause::SESSION_NOT_REMOVABLE),
        (Answer::Prohibited, error_cause::PROHIBITED),
        (Answer::Unavailable, error_cause::RESOURCES_UNAVAILABLE),
    ] {
        let mut dynauth = dynauth();
        let bytes = request(code::DISCONNECT_REQUEST, 7, &[(a::USER_NAME, b"bob")]);
        handle(&mut dynauth, &bytes, 0).unwrap();
        let asked = dynauth.poll_event().unwrap();
        dynauth.answer(asked.ticket, answer);
        let nak = Some((code::DISCONNECT_NAK, Some(cause)));
        assert_eq!(reply(&mut dynauth, &bytes), nak);
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
fn a_change_of_authorisation_is_refused_as_unsupported() {
    let mut dynauth = dynauth();
    let bytes = request(code::COA_REQUEST, 7, &[(a::USER_NAME, b"alice")]);
    handle(&mut dynauth, &bytes, 0).unwrap();
    let nak = Some((code::COA_NAK, Some(error_cause::UNSUPPORTED_EXTENSION)));
    assert_eq!(reply(&mut dynauth, &bytes), nak);
    assert_eq!(dynauth.poll_event(), None);
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
    dynauth.answer(asked.ticket, Answer::Done);
    for at_s in [1, 299, 599] {
        handle(&mut dynauth, &bytes, at_s).unwrap();
        assert_eq!(dynauth.poll_event(), None, "a replay after {at_s} s");
    }
    assert_eq!(
        handle(&mut dynauth, &bytes, 600),
        Err(DynauthDiscard::Stale)
    );
}

#[test]
fn the_table_of_requests_is_bounded_and_empties_itself() {
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

#[test]
fn a_session_is_meant_if_all_that_is_said_of_it_is_so() {
    let subscriber = Subscriber {
        user: b"alice",
        line: Line {
            port: 9,
            calling: b"123",
            ..Line::default()
        },
        class: &[],
        address: Some([203, 0, 113, 9].into()),
        interface_id: None,
        authentic: Authentic::Radius,
    };
    let session = SessionId { boot: 1, number: 2 };
    for (attributes, is_meant) in [
        (&[(a::USER_NAME, &b"alice"[..])][..], true),
        (&[(a::USER_NAME, b"bob")], false),
        (
            &[(a::USER_NAME, b"alice"), (a::NAS_PORT, &[0, 0, 0, 9])],
            true,
        ),
        (
            &[(a::USER_NAME, b"alice"), (a::NAS_PORT, &[0, 0, 0, 8])],
            false,
        ),
        (&[(a::FRAMED_IP_ADDRESS, &[203, 0, 113, 9])], true),
        (&[(a::FRAMED_IP_ADDRESS, &[203, 0, 113, 8])], false),
        (&[(a::CALLING_STATION_ID, b"123")], true),
        (&[(a::CALLED_STATION_ID, b"123")], false),
        (&[(a::ACCT_SESSION_ID, b"000000010000000002")], true),
        (&[(a::ACCT_SESSION_ID, b"000000010000000003")], false),
    ] {
        let mut dynauth = dynauth();
        let bytes = request(code::DISCONNECT_REQUEST, 1, attributes);
        handle(&mut dynauth, &bytes, 0).unwrap();
        let asked = dynauth.poll_event().unwrap();
        let matches = asked.selection.matches(session, &subscriber);
        assert_eq!(matches, is_meant, "{attributes:?}");
    }
}

/// A client that stays keeps its answers, one that goes is unknown, and one that comes back starts anew.
#[test]
fn clients_are_replaced_without_forgetting_what_was_answered() {
    let mut dynauth = dynauth();
    let bytes = request(code::DISCONNECT_REQUEST, 1, &[(a::USER_NAME, b"alice")]);
    handle(&mut dynauth, &bytes, 0).unwrap();
    let ticket = dynauth.poll_event().unwrap().ticket;
    dynauth.answer(ticket, Answer::Done);
    assert_eq!(
        reply(&mut dynauth, &bytes),
        Some((code::DISCONNECT_ACK, None))
    );
    let client = |last: u8, secret: &[u8]| DynauthClient {
        address: [192, 0, 2, last].into(),
        secret: Redacted::new(secret.into()),
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
    dynauth.answer(ticket, Answer::Done);
    assert_eq!(reply(&mut dynauth, &open), None);
    assert_eq!(
        handle(&mut dynauth, &bytes, 4),
        Err(DynauthDiscard::UnknownClient)
    );
}
