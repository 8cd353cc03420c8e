//! EAP passed through to the owner (RFC 3748), against hand-written packets.

use base::{Duration, Instant};
use ppp::{Authentication, Challenge, Claim, Discard, Event, LinkEnd, Proof};
use wire::ppp::protocol;

use crate::harness::{
    End, NOW, SECRET, accept, claims, client, exchange, frame, network, open_lcp, send,
};

/// LCP's option (RFC 3748, section 3.1).
const OPTION: [u8; 4] = [3, 4, 0xc2, 0x27];

/// The network's end after its Identity Request, and the identifier.
fn asked() -> (End, u8) {
    let mut end = network(&[Authentication::Eap, Authentication::ChapMd5], 1);
    open_lcp(&mut end, &[]);
    let packets = end.packets();
    let request = packets.iter().find(|packet| packet.0 == protocol::EAP);
    let (_, code, identifier, data) = request.expect("a request");
    // A Request (1) for the Identity (1), without a prompt.
    assert_eq!((*code, &data[..]), (1, &[1][..]));
    (end, *identifier)
}

fn response(identifier: u8, data: &[u8]) -> Vec<u8> {
    frame(protocol::EAP, 2, identifier, data)
}

fn claim(end: &End) -> Claim {
    match end.events.last() {
        Some(Event::Authenticate(claim)) => claim.clone(),
        other => panic!("{other:?}"),
    }
}

fn challenge(end: &mut End, request: &[u8], interval: Option<Duration>) -> bool {
    let challenge = Challenge {
        request,
        state: b"state",
        interval,
    };
    end.call(NOW, |link, ctx| link.challenge(challenge, ctx))
}

#[test]
fn requests_and_responses_pass_until_the_owner_decides() {
    let (mut end, identifier) = asked();
    send(&mut end, &response(identifier, b"\x01alice")).unwrap();
    let first = claim(&end);
    let Proof::Eap { packet, state, .. } = &first.proof else {
        panic!("{first:?}");
    };
    assert_eq!((&*first.name, state.len()), (&b"alice"[..], 0));
    assert_eq!(packet.reveal()[4..], *b"\x01alice");

    // A server chooses the identifiers of its Requests.
    let request = [1, 77, 0, 8, 4, 1, 9, 9];
    end.sent.clear();
    assert!(challenge(&mut end, &request, None));
    let sent = end.packets().remove(0);
    assert_eq!((sent.0, sent.1, sent.2), (protocol::EAP, 1, 77));
    assert_eq!(sent.3, request[4..]);
    // RFC 3748, section 4.1: the Response to an earlier Request is discarded.
    let stale = response(identifier, b"\x01alice");
    assert_eq!(send(&mut end, &stale), Err(Discard::Stray));
    // Padding of the frame is not part of the packet.
    let mut octets = response(77, b"\x04\x01z");
    octets.extend_from_slice(&[0; 20]);
    send(&mut end, &octets).unwrap();
    let second = claim(&end);
    let Proof::Eap { packet, state, .. } = &second.proof else {
        panic!("{second:?}");
    };
    assert_eq!((&*second.name, &**state), (&b"alice"[..], &b"state"[..]));
    assert_eq!(**packet.reveal(), [2, 77, 0, 7, 4, 1, b'z']);
    end.sent.clear();
    accept(&mut end);
    // RFC 3748, section 4.2: a Success has the identifier of the Response, and no data.
    let success = end.packets().remove(0);
    assert_eq!(success, (protocol::EAP, 3, 77, vec![]));
    // It was lost: the peer repeats its Response.
    assert_eq!(exchange(&mut end, &octets), [success]);
    assert_eq!(claims(&end), 2);
}

#[test]
fn a_refused_peer_gets_a_failure_and_the_link_ends() {
    let (mut end, identifier) = asked();
    send(&mut end, &response(identifier, b"\x01alice")).unwrap();
    end.sent.clear();
    assert!(end.call(NOW, |link, ctx| link.refuse(b"no", ctx)));
    assert_eq!(end.packets()[0], (protocol::EAP, 4, identifier, vec![]));
    let why = end.link.view().end;
    assert_eq!(why, Some(LinkEnd::AuthenticationFailed));
}

/// RFC 3579, section 2.1: the network makes no Failure up because its server is silent.
#[test]
fn what_is_undecided_ends_without_a_failure() {
    let (mut end, identifier) = asked();
    send(&mut end, &response(identifier, b"\x01alice")).unwrap();
    end.sent.clear();
    end.call(NOW, |link, ctx| link.close(ctx));
    let packets: Vec<_> = end.packets().iter().map(|one| (one.0, one.1)).collect();
    assert_eq!(packets, [(protocol::LCP, 5)]);
}

#[test]
fn the_identity_comes_first() {
    let (mut end, identifier) = asked();
    for data in [&b""[..], b"\x01", b"\x04\x01z", b"\x03\x04"] {
        let wrong = send(&mut end, &response(identifier, data));
        assert_eq!(wrong, Err(Discard::Malformed));
    }
    let long = [&[1][..], &[b'x'; 254]].concat();
    let wrong = send(&mut end, &response(identifier, &long));
    assert_eq!(wrong, Err(Discard::Malformed));
    let request = frame(protocol::EAP, 1, identifier, b"\x01");
    assert_eq!(send(&mut end, &request), Err(Discard::Stray));
    assert_eq!(claims(&end), 0);
    send(&mut end, &response(identifier, b"\x01alice")).unwrap();
    assert_eq!(claims(&end), 1);
    // A repeated Response, while the owner decides, is no second claim.
    send(&mut end, &response(identifier, b"\x01alice")).unwrap();
    assert_eq!(claims(&end), 1);
}

#[test]
fn a_request_is_repeated_at_the_interval_that_the_server_names() {
    let (mut end, identifier) = asked();
    send(&mut end, &response(identifier, b"\x01alice")).unwrap();
    assert!(challenge(
        &mut end,
        &[1, 9, 0, 6, 4, 0],
        Some(Duration::from_secs(7))
    ));
    let sent = end.packets();
    let first = sent.last().expect("a request").clone();
    assert_eq!(end.link.timeout(), NOW + Duration::from_secs(7));
    end.call(NOW + Duration::from_secs(7), |link, ctx| {
        link.handle_timeout(ctx)
    });
    assert_eq!(end.packets(), [first]);
}

#[test]
fn a_silent_peer_ends() {
    let (mut end, _) = asked();
    let mut requests = 0;
    while end.link.view().end.is_none() {
        let due = end.link.timeout();
        assert!(due < Instant::FAR_FUTURE);
        end.call(due, |link, ctx| link.handle_timeout(ctx));
        let sent = end.packets();
        requests += sent
            .iter()
            .filter(|packet| packet.0 == protocol::EAP)
            .count();
    }
    assert_eq!(requests, 9);
    let why = end.link.view().end;
    assert_eq!(why, Some(LinkEnd::AuthenticationTimeout));
}

#[test]
fn what_cannot_be_passed_on_is_not() {
    let (mut end, identifier) = asked();
    end.config.control_max_per_s = 0;
    assert!(!challenge(&mut end, &[1, 9, 0, 6, 4, 0], None));
    send(&mut end, &response(identifier, b"\x01alice")).unwrap();
    // RFC 3748, section 3.1: a packet has to fit the peer's MRU, here 1,500.
    let mut long = vec![0; 1_501];
    long[..5].copy_from_slice(&[1, 9, 5, 0xdd, 13]);
    for request in [
        &[2, 9, 0, 6, 4, 0][..],
        &[3, 9, 0, 4],
        &[1, 9, 0, 9, 4],
        &long,
    ] {
        assert!(!challenge(&mut end, request, None), "{request:?}");
    }
    assert!(challenge(&mut end, &[1, 9, 0, 6, 4, 0], None));
    for round in 0..100 {
        send(&mut end, &response(9, &[4, round])).unwrap();
        let passed = challenge(&mut end, &[1, 9, 0, 6, 4, 0], None);
        assert_eq!(passed, round < 99, "a 101st request");
    }
}

#[test]
fn a_peer_that_refuses_eap_is_asked_for_the_next_protocol() {
    let mut end = network(&[Authentication::Eap, Authentication::ChapMd5], 1);
    end.call(NOW, |link, ctx| link.up(ctx));
    let request = end.packets().remove(0);
    assert!(request.3.windows(4).any(|option| option == OPTION));
    let nak = frame(protocol::LCP, 3, request.2, &[3, 5, 0xc2, 0x23, 0x81]);
    let request = exchange(&mut end, &nak).remove(0);
    assert!(
        (request.3.windows(5)).any(|option| option == [3, 5, 0xc2, 0x23, 5]),
        "{request:?}"
    );
    // EAP is not negotiated, so its packets are of an unknown protocol.
    crate::harness::answer_lcp_of(&mut end, &request, &[]);
    let unknown = send(&mut end, &response(1, b"\x01alice"));
    assert_eq!(unknown, Err(Discard::UnknownProtocol));
}

#[test]
fn a_peer_without_the_protocol_ends_the_link() {
    let (mut end, _) = asked();
    let reject = frame(protocol::LCP, 8, 1, &[0xc2, 0x27]);
    send(&mut end, &reject).unwrap();
    let why = end.link.view().end;
    assert_eq!(why, Some(LinkEnd::AuthenticationRejected));
}

/// As a client we have no method of EAP: we ask for CHAP instead.
#[test]
fn a_client_asks_for_another_protocol() {
    let mut end = client(SECRET, 2);
    end.call(NOW, |link, ctx| link.up(ctx));
    let nak = exchange(&mut end, &frame(protocol::LCP, 1, 1, &OPTION)).remove(0);
    assert_eq!((nak.1, &nak.3[..]), (3, &[3, 5, 0xc2, 0x23, 5][..]));
}
