//! MS-CHAP version 2 (RFC 2759), both sides, against hand-written packets.

use base::Duration;
use ppp::{Authentication, Discard, Event, LinkEnd};
use wire::ppp::{mschap, protocol};

use crate::harness::{
    End, Pair, SECRET, Wire, claims, client, exchange, frame, grant, network, open_lcp, send,
    success,
};

const NOW: base::Instant = crate::harness::NOW;
/// LCP's option (RFC 2759, section 2).
const OPTION: [u8; 5] = [3, 5, 0xc2, 0x23, 0x81];

/// The network's end after its challenge, with the identifier and the value.
fn challenged() -> (End, u8, [u8; 16]) {
    let mut end = network(&[Authentication::MsChapV2], 1);
    open_lcp(&mut end, &[]);
    let packets = end.packets();
    let challenge = packets.iter().find(|packet| packet.0 == protocol::CHAP);
    let (_, code, identifier, data) = challenge.expect("a challenge");
    assert_eq!((*code, data[0], &data[17..]), (1, 16, &b"headend"[..]));
    (end, *identifier, data[1..17].try_into().unwrap())
}

/// A right response of alice's.
fn response(identifier: u8, challenge: &[u8; 16]) -> Vec<u8> {
    let peer_challenge = &[7; 16];
    let challenges = mschap::Challenges {
        authenticator: challenge,
        peer: peer_challenge,
        name: b"alice",
    };
    let nt_response = &challenges.nt_response(&mschap::password_hash(SECRET));
    let response = mschap::Response {
        peer_challenge,
        nt_response,
    };
    let data = [&[49][..], &response.to_octets(), b"alice"].concat();
    frame(protocol::CHAP, 2, identifier, &data)
}

fn claim(end: &End) -> ppp::Claim {
    match end.events.last() {
        Some(Event::Authenticate(claim)) => claim.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_sides_prove_themselves() {
    let mut pair = Pair::new(
        network(&[Authentication::MsChapV2], 1),
        client(SECRET, 2),
        Wire::default(),
        3,
    );
    pair.up();
    pair.run(Duration::from_secs(20));
    let [network, client] = &pair.ends;
    assert!(network.link.is_open(false) && client.link.is_open(false));
    assert!(client.events.contains(&Event::Authenticated));
    let asked = network.link.view().local.authentication;
    assert_eq!(asked, Some(Authentication::MsChapV2));
}

#[test]
fn a_wrong_password_is_refused_with_error_691() {
    let mut pair = Pair::new(
        network(&[Authentication::MsChapV2], 1),
        client(b"wrong", 2),
        Wire::default(),
        3,
    );
    pair.up();
    pair.run(Duration::from_secs(20));
    let [network, client] = &pair.ends;
    let end = network.link.view().end;
    assert_eq!(end, Some(LinkEnd::AuthenticationFailed));
    assert_eq!(client.link.view().end, Some(LinkEnd::RefusedByPeer));
    let text = client.link.refusal();
    assert!(text.starts_with("E=691 R=0 C="), "{text}");
    assert!(text.ends_with(" V=3 M=no"), "{text}");
}

#[test]
fn a_repeated_response_gets_the_same_success() {
    let (mut end, identifier, challenge) = challenged();
    let response = response(identifier, &challenge);
    send(&mut end, &response).unwrap();
    let message = success(&claim(&end)).expect("a right response");
    end.sent.clear();
    let message = [&message[..], b" M=hello"].concat();
    assert!(end.call(NOW, |link, ctx| link.accept(&grant(), &message, ctx)));
    let first = end.packets().remove(0);
    assert_eq!((first.1, first.2, &first.3), (3, identifier, &message));
    assert_eq!(exchange(&mut end, &response), [first]);
    assert_eq!(claims(&end), 1);
}

#[test]
fn the_owner_s_error_code_is_in_the_failure() {
    let (mut end, identifier, challenge) = challenged();
    send(&mut end, &response(identifier, &challenge)).unwrap();
    end.sent.clear();
    assert!(end.call(NOW, |link, ctx| link.refuse(b"E=648 expired", ctx)));
    let failure = end.packets().remove(0);
    assert_eq!((failure.1, failure.2), (4, identifier));
    let text = String::from_utf8(failure.3).unwrap();
    // RFC 2759, section 6: the new challenge has 32 hexadecimal digits.
    let rest = text.strip_prefix("E=648 R=0 C=").unwrap();
    assert_eq!((rest.len(), &rest[32..]), (46, " V=3 M=expired"));
    assert!(rest[..32].bytes().all(|octet| octet.is_ascii_hexdigit()));
}

#[test]
fn change_password_and_wrong_lengths_prove_nothing() {
    let (mut end, identifier, challenge) = challenged();
    // RFC 2759, section 7: 586 octets.
    let change = frame(protocol::CHAP, 7, identifier, &[0; 582]);
    assert_eq!(send(&mut end, &change), Err(Discard::Phase));
    let md5 = [&[16][..], &[1; 16], b"alice"].concat();
    send(&mut end, &frame(protocol::CHAP, 2, identifier, &md5)).unwrap();
    assert_eq!(success(&claim(&end)), None);
    // The claim waits for its answer; the right response comes too late.
    send(&mut end, &response(identifier, &challenge)).unwrap();
    assert_eq!(claims(&end), 1);
}

/// MPPE is negotiated in CCP (RFC 3078, section 2), which is rejected (RFC 1661, section 5.7).
#[test]
fn encryption_is_rejected() {
    let mut pair = Pair::new(
        network(&[Authentication::MsChapV2], 1),
        client(SECRET, 2),
        Wire::default(),
        3,
    );
    pair.up();
    pair.run(Duration::from_secs(20));
    let mppe = frame(protocol::CCP, 1, 1, &[18, 6, 1, 0, 0, 0x40]);
    let rejected = exchange(&mut pair.ends[0], &mppe).remove(0);
    assert_eq!((rejected.0, rejected.1), (protocol::LCP, 8));
    assert_eq!(rejected.3[..2], protocol::CCP.to_be_bytes());
}

/// RFC 2759, section 5: a peer that is accepted without the authenticator response ends the link.
#[test]
fn a_client_minds_who_accepts_it() {
    for message in [
        &b""[..],
        b"hello",
        b"S=0000000000000000000000000000000000000000 M=hello",
    ] {
        let mut end = client(SECRET, 2);
        open_lcp(&mut end, &OPTION);
        let challenge = [&[16][..], &[9; 16], b"isp"].concat();
        let packets = exchange(&mut end, &frame(protocol::CHAP, 1, 5, &challenge));
        assert_eq!((packets[0].1, packets[0].3[0]), (2, 49));
        assert_eq!(&packets[0].3[50..], b"alice");
        send(&mut end, &frame(protocol::CHAP, 3, 5, message)).unwrap();
        assert_eq!(end.link.view().end, Some(LinkEnd::UnprovenPeer));
        assert!(!end.events.contains(&Event::Authenticated));
    }
}

#[test]
fn a_client_takes_digits_of_either_case_and_no_short_challenge() {
    let mut end = client(SECRET, 2);
    open_lcp(&mut end, &OPTION);
    let short = frame(protocol::CHAP, 1, 5, b"\x04abcdisp");
    assert_eq!(send(&mut end, &short), Err(Discard::Malformed));
    let challenge = [&[16][..], &[9; 16], b"isp"].concat();
    let packets = exchange(&mut end, &frame(protocol::CHAP, 1, 6, &challenge));
    let value: [u8; 49] = packets[0].3[1..50].try_into().unwrap();
    let response = mschap::Response::parse(&value);
    let challenges = mschap::Challenges {
        authenticator: &[9; 16],
        peer: response.peer_challenge,
        name: b"alice",
    };
    let hash = mschap::password_hash(SECRET);
    let mut message = challenges.authenticator_response(&hash, response.nt_response);
    message[2..].make_ascii_lowercase();
    send(&mut end, &frame(protocol::CHAP, 3, 6, &message)).unwrap();
    assert_eq!(end.events.last(), Some(&Event::Authenticated));
}
