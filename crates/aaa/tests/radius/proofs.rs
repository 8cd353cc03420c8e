//! MS-CHAP version 2 (RFC 2548, section 2) and EAP (RFC 3579) through a server.

use aaa::accounting::SessionId;
use aaa::radius::{AccessRequest, Event, Line, Proof, Refused, Rejection};
use base::{Duration, Machine};
use wire::radius::attribute as a;
use wire::radius::{Packet, code};

use crate::lab::{How, Lab, config};

fn request<'a>(proof: Proof<'a>) -> AccessRequest<'a> {
    AccessRequest {
        user: b"alice",
        proof,
        session: SessionId::default(),
        line: Line::default(),
        servers: aaa::radius::ANY_SERVER,
    }
}

fn mschap() -> AccessRequest<'static> {
    request(Proof::MsChapV2 {
        identifier: 9,
        challenge: &[1; 16],
        response: &[2; 49],
    })
}

fn eap<'a>(packet: &'a [u8], state: &'a [u8]) -> AccessRequest<'a> {
    request(Proof::Eap {
        packet,
        state,
        mtu: 1_492,
    })
}

/// What the first server answers to a request with these attributes.
fn outcome(how: How, grants: &[(u8, &[u8])], request: &AccessRequest<'_>) -> (Event, Vec<u8>) {
    let mut lab = Lab::new(config(1), &[how], 1);
    let grants = grants.iter().map(|&(kind, value)| (kind, value.to_vec()));
    lab.servers[0].grants = grants.collect();
    lab.client.authenticate(lab.now, request, 1).unwrap();
    lab.run_for(60);
    lab.assert_idle();
    let event = lab.ends().remove(&1).expect("an outcome");
    (event, lab.servers[0].got.remove(0))
}

/// A Vendor-Specific value of Microsoft (311).
fn microsoft(kind: u8, value: &[u8]) -> Vec<u8> {
    let head = [0, 0, 1, 55, kind, value.len() as u8 + 2];
    [&head, value].concat()
}

fn message(event: &Event) -> Option<&str> {
    match event {
        Event::Accepted { message, .. } | Event::Rejected { message, .. } => message.as_deref(),
        other => panic!("{other:?}"),
    }
}

const SUCCESS: &str = "S=407A5589115FD0D6209F510FE9C04566932CDA56";

#[test]
fn an_ms_chap_response_is_sent_in_microsoft_s_attributes() {
    let (_, sent) = outcome(How::Reject, &[], &mschap());
    let packet = Packet::parse(&sent).unwrap();
    let values: Vec<_> = packet
        .attributes()
        .filter(|attribute| attribute.kind == a::VENDOR_SPECIFIC)
        .map(|attribute| attribute.value.to_vec())
        .collect();
    // RFC 2548, section 2.3.2: identifier, flags, peer challenge, 8 reserved octets, response.
    let response = [&[9, 0][..], &[2; 48]].concat();
    assert_eq!(values, [microsoft(11, &[1; 16]), microsoft(25, &response)]);
    assert_eq!(packet.find(a::CHAP_PASSWORD), None);
}

#[test]
fn the_server_s_success_becomes_the_message() {
    let success = microsoft(26, &[&[9][..], SUCCESS.as_bytes()].concat());
    let keys = microsoft(16, &[0; 34]);
    let (event, _) = outcome(
        How::Accept,
        &[(a::VENDOR_SPECIFIC, &success), (a::VENDOR_SPECIFIC, &keys)],
        &mschap(),
    );
    assert_eq!(message(&event), Some(SUCCESS));
    let with_text = &[
        (a::VENDOR_SPECIFIC, &success[..]),
        (a::REPLY_MESSAGE, b"hello"),
    ];
    let (event, _) = outcome(How::Accept, with_text, &mschap());
    assert_eq!(message(&event), Some(&*format!("{SUCCESS} M=hello")));
    assert!(matches!(event, Event::Accepted { .. }));
}

/// RFC 2548, section 2.1.5. The server's retry flag is not passed on.
#[test]
fn the_server_s_error_becomes_the_message() {
    let error = microsoft(2, b"\x09E=648 R=1 C=00 V=3 M=expired");
    let grants = &[(a::VENDOR_SPECIFIC, &error[..])];
    let (event, _) = outcome(How::Reject, grants, &mschap());
    assert_eq!(message(&event), Some("E=648 expired"));
    let grants = &[
        (a::VENDOR_SPECIFIC, &error[..]),
        (a::REPLY_MESSAGE, b"call us"),
    ];
    let (event, _) = outcome(How::Reject, grants, &mschap());
    assert_eq!(message(&event), Some("E=648 call us"));
    let (event, _) = outcome(How::Reject, &[], &mschap());
    assert_eq!(message(&event), None);
}

#[test]
fn an_accept_without_a_success_is_no_accept() {
    let short = microsoft(26, &[&[9][..], &SUCCESS.as_bytes()[..41]].concat());
    for grants in [&[][..], &[(a::VENDOR_SPECIFIC, &short[..])]] {
        let (event, _) = outcome(How::Accept, grants, &mschap());
        let Event::Rejected { why, .. } = event else {
            panic!("{event:?}");
        };
        assert_eq!(why, Rejection::NoSuccess);
    }
}

#[test]
fn a_challenge_passes_on_the_packet_and_the_next_request_has_the_state() {
    let packet = [2, 1, 0, 10, 1, b'a', b'l', b'i', b'c', b'e'];
    // A Request in two parts (RFC 3579, section 3.1).
    let mut first = vec![1, 7, 1, 0x2c, 13];
    first.resize(253, 3);
    let second = [4; 47];
    let grants = &[
        (a::EAP_MESSAGE, &first[..]),
        (a::EAP_MESSAGE, &second),
        (a::STATE, b"of the server"),
        (a::SESSION_TIMEOUT, &[0, 0, 0, 20]),
    ];
    let (event, sent) = outcome(How::Challenge, grants, &eap(&packet, b""));
    let asked = Packet::parse(&sent).unwrap();
    assert_eq!(asked.find(a::EAP_MESSAGE).unwrap().value, packet);
    assert_eq!(asked.find(a::STATE), None);
    assert_eq!(asked.find(a::FRAMED_MTU).unwrap().integer(), Some(1_492));
    let Event::Challenged {
        request,
        state,
        wait,
        ..
    } = event
    else {
        panic!("{event:?}");
    };
    assert_eq!(*request, [&first[..], &second].concat()[..]);
    assert_eq!(wait, Some(Duration::from_secs(20)));

    // A Response of more than one attribute.
    let mut long = vec![2, 7, 5, 0xdc, 13];
    long.resize(1_500, 9);
    let (_, sent) = outcome(How::Reject, &[], &eap(&long, &state));
    let asked = Packet::parse(&sent).unwrap();
    let parts: Vec<_> = asked
        .attributes()
        .filter(|attribute| attribute.kind == a::EAP_MESSAGE)
        .collect();
    let sizes: Vec<_> = parts.iter().map(|part| part.value.len()).collect();
    assert_eq!(sizes, [253, 253, 253, 253, 253, 235]);
    let whole: Vec<u8> = parts.iter().flat_map(|part| part.value).copied().collect();
    assert_eq!(whole, long);
    assert_eq!(asked.find(a::STATE).unwrap().value, b"of the server");
}

/// RFC 3579, section 2.6.3: the code decides, not the EAP packet beside it. Section 3.2: a reply with an EAP-Message and
/// without a Message-Authenticator is discarded.
#[test]
fn replies_decide_by_their_code_and_must_be_signed() {
    let packet = [2, 1, 0, 6, 1, b'a'];
    let failure: (u8, &[u8]) = (a::EAP_MESSAGE, &[4, 1, 0, 4]);
    let (event, _) = outcome(How::Accept, &[failure], &eap(&packet, b""));
    assert!(matches!(event, Event::Accepted { .. }), "{event:?}");
    let (event, _) = outcome(How::Unsigned, &[failure], &eap(&packet, b""));
    assert!(matches!(event, Event::Failed { .. }), "{event:?}");
    let (event, _) = outcome(How::Challenge, &[], &eap(&packet, b""));
    let Event::Rejected { why, .. } = event else {
        panic!("{event:?}");
    };
    assert_eq!(why, Rejection::Challenge);
}

/// RFC 3579, section 2.1: State means something only to the server that sent it.
#[test]
fn a_conversation_stays_with_its_server() {
    let mut lab = Lab::new(config(2), &[How::Accept, How::Silent], 1);
    let to_second = eap(&[2, 1, 0, 6, 4, 0], b"\x01state");
    lab.client.authenticate(lab.now, &to_second, 1).unwrap();
    lab.run_for(300);
    assert_eq!(lab.servers[0].got.len(), 0);
    assert!(lab.servers[1].got.len() > 1);
    let codes = lab.servers[1].got.iter().map(|octets| octets[0]);
    assert!(codes.into_iter().all(|one| one == code::ACCESS_REQUEST));
    assert!(matches!(lab.ends()[&1], Event::Failed { .. }));
    lab.assert_idle();
    // A server that is not configured any more.
    let gone = eap(&[2, 1, 0, 6, 4, 0], b"\x07state");
    let refused = lab.client.authenticate(lab.now, &gone, 2);
    assert_eq!(refused, Err(Refused::NoServer));
    assert!(lab.client.poll_event().is_none());
}

#[test]
fn a_request_goes_only_to_servers_that_it_allows() {
    let mut lab = Lab::new(config(3), &[How::Accept, How::Accept, How::Silent], 1);
    let only_third = AccessRequest {
        servers: 1 << 2,
        ..request(Proof::Pap {
            password: b"a password of more than sixteen octets",
        })
    };
    lab.client.authenticate(lab.now, &only_third, 1).unwrap();
    lab.run_for(300);
    let asked: Vec<usize> = lab.servers.iter().map(|one| one.got.len()).collect();
    assert_eq!(asked[..2], [0, 0]);
    assert!(matches!(lab.ends()[&1], Event::Failed { .. }));
}
