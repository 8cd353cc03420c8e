//! PAP and CHAP packets: repeated, stale, unsolicited, or of the wrong protocol.

use base::Duration;
use ppp::{Authentication, Discard, Event, LinkEnd, Proof};
use wire::ppp::protocol;

use crate::harness::{
    End, NOW, SECRET, accept, claims, client, exchange, frame, network, open_lcp, send,
};

const ALICE: &[u8] = b"\x05alice\x06sesame";

fn refuse(end: &mut End) -> bool {
    end.call(NOW, |link, ctx| link.refuse(b"no", ctx))
}

/// The network's end after it sent its challenge, and the challenge's identifier.
fn challenged() -> (End, u8) {
    let mut end = network(&[Authentication::ChapMd5], 1);
    open_lcp(&mut end, &[]);
    let packets = end.packets();
    let challenge = packets.iter().find(|packet| packet.0 == protocol::CHAP);
    let identifier = challenge.unwrap().2;
    (end, identifier)
}

fn response(identifier: u8, octet: u8) -> Vec<u8> {
    let data = [&[16][..], &[octet; 16], b"alice"].concat();
    frame(protocol::CHAP, 2, identifier, &data)
}

#[test]
fn a_repeated_pap_request_makes_no_second_claim_and_gets_the_same_answer() {
    let mut end = network(&[Authentication::Pap], 1);
    open_lcp(&mut end, &[]);
    send(&mut end, &frame(protocol::PAP, 1, 1, ALICE)).unwrap();
    for identifier in 2..5 {
        assert!(exchange(&mut end, &frame(protocol::PAP, 1, identifier, ALICE)).is_empty());
    }
    assert_eq!(claims(&end), 1);
    end.sent.clear();
    accept(&mut end);
    // The reply carries the identifier of the latest request.
    let packets = end.packets();
    assert_eq!(
        (packets[0].0, packets[0].1, packets[0].2),
        (protocol::PAP, 2, 4)
    );
    for identifier in [4, 5, 6] {
        // A request with another name gets the same reply, so a peer cannot probe which names exist (RFC 1334, section
        // 2.2.1).
        let request = frame(protocol::PAP, 1, identifier, b"\x03bob\x01x");
        let packets = exchange(&mut end, &request);
        assert_eq!((packets[0].1, packets[0].2), (2, identifier));
    }
    assert_eq!(claims(&end), 1);
}

#[test]
fn a_refused_pap_request_gets_a_nak_and_the_link_ends() {
    let mut end = network(&[Authentication::Pap], 1);
    open_lcp(&mut end, &[]);
    send(&mut end, &frame(protocol::PAP, 1, 1, ALICE)).unwrap();
    end.sent.clear();
    assert!(refuse(&mut end));
    let packets = end.packets();
    assert_eq!((packets[0].1, &packets[0].3[..]), (3, &b"\x02no"[..]));
    assert_eq!((packets[1].0, packets[1].1), (protocol::LCP, 5));
    assert!(!refuse(&mut end) && !accept(&mut end));
    assert_eq!(end.link.view().end, Some(LinkEnd::AuthenticationFailed));
}

#[test]
fn malformed_proofs_are_ignored_and_the_right_one_still_counts() {
    let mut end = network(&[Authentication::Pap], 1);
    open_lcp(&mut end, &[]);
    for data in [&b""[..], b"\x09alice", b"\x05alice", b"\x05alice\x07sesame"] {
        let request = frame(protocol::PAP, 1, 1, data);
        assert_eq!(send(&mut end, &request), Err(Discard::Malformed));
    }
    send(&mut end, &frame(protocol::PAP, 1, 2, ALICE)).unwrap();
    assert_eq!(claims(&end), 1);

    let (mut end, identifier) = challenged();
    for data in [&b""[..], b"\x00alice", b"\x10short"] {
        let octets = frame(protocol::CHAP, 2, identifier, data);
        assert_eq!(send(&mut end, &octets), Err(Discard::Malformed));
    }
    send(&mut end, &response(identifier, 7)).unwrap();
    assert_eq!(claims(&end), 1);
}

#[test]
fn an_empty_name_or_password_is_a_claim_like_another() {
    let mut end = network(&[Authentication::Pap], 1);
    open_lcp(&mut end, &[]);
    send(&mut end, &frame(protocol::PAP, 1, 1, &[0, 0])).unwrap();
    let Some(Event::Authenticate(claim)) = end.events.last() else {
        panic!("{:?}", end.events);
    };
    assert!(claim.name.is_empty());
}

#[test]
fn proof_of_another_kind_or_unasked_for_is_ignored() {
    let (mut end, identifier) = challenged();
    let pap = frame(protocol::PAP, 1, 1, ALICE);
    assert_eq!(send(&mut end, &pap), Err(Discard::Stray));
    assert_eq!(claims(&end), 0);

    let mut end = network(&[Authentication::Pap], 1);
    open_lcp(&mut end, &[]);
    let chap = response(identifier, 7);
    assert_eq!(send(&mut end, &chap), Err(Discard::Stray));
    assert_eq!(claims(&end), 0);

    // No authentication was negotiated, so neither side answers.
    let mut end = network(&[], 1);
    open_lcp(&mut end, &[]);
    assert!(exchange(&mut end, &pap).is_empty());
    assert_eq!(send(&mut end, &pap), Err(Discard::Phase));
    let mut end = client(SECRET, 2);
    open_lcp(&mut end, &[]);
    assert!(exchange(&mut end, &pap).is_empty());
    let challenge = frame(protocol::CHAP, 1, 1, b"\x04abcdisp");
    assert_eq!(send(&mut end, &challenge), Err(Discard::Phase));
}

#[test]
fn a_response_repeated_after_success_gets_success_again() {
    let (mut end, identifier) = challenged();
    send(&mut end, &response(identifier, 7)).unwrap();
    // While the owner checks the claim, the link does not reply.
    assert!(exchange(&mut end, &response(identifier, 7)).is_empty());
    end.sent.clear();
    accept(&mut end);
    assert_eq!(end.packets()[0].1, 3);
    // RFC 1994, section 4.2: the same reply code to any response under the same identifier.
    for octet in [7, 8] {
        let packets = exchange(&mut end, &response(identifier, octet));
        assert_eq!((packets[0].1, packets[0].2), (3, identifier));
    }
    assert_eq!(claims(&end), 1);
}

#[test]
fn a_challenge_is_sent_again_unchanged_until_it_is_answered() {
    let mut end = network(&[Authentication::ChapMd5], 1);
    open_lcp(&mut end, &[]);
    let sent = end.packets();
    let first = sent
        .iter()
        .find(|packet| packet.0 == protocol::CHAP)
        .unwrap();
    let mut challenges = 1;
    while end.link.view().end.is_none() {
        let due = end.link.timeout();
        end.call(due, |link, ctx| link.handle_timeout(ctx));
        for packet in end.packets() {
            if packet.0 == protocol::CHAP {
                assert_eq!(&packet, first);
                challenges += 1;
            }
        }
    }
    assert_eq!(challenges, 10);
    assert_eq!(end.link.view().end, Some(LinkEnd::AuthenticationTimeout));
}

#[test]
fn a_peer_that_fails_a_later_challenge_is_put_out() {
    let (mut end, identifier) = challenged();
    end.config.rechallenge_interval = Duration::from_secs(10);
    send(&mut end, &response(identifier, 7)).unwrap();
    accept(&mut end);
    end.sent.clear();
    while end.sent.is_empty() && end.link.view().end.is_none() {
        let due = end.link.timeout();
        end.call(due, |link, ctx| link.handle_timeout(ctx));
        end.sent.retain(|octets| octets[2..4] == [0xc2, 0x23]);
    }
    let again = end.packets().remove(0);
    assert_eq!(again.1, 1);
    assert_ne!(again.2, identifier);
    // A response to the first challenge does not answer this one.
    assert_eq!(
        send(&mut end, &response(identifier, 7)),
        Err(Discard::Stray)
    );
    send(&mut end, &response(again.2, 8)).unwrap();
    assert_eq!(claims(&end), 2);
    assert!(refuse(&mut end));
    assert_eq!(end.link.view().end, Some(LinkEnd::AuthenticationFailed));
}

#[test]
fn a_response_of_a_wrong_length_is_judged_like_a_wrong_one() {
    let (mut end, identifier) = challenged();
    let octets = frame(protocol::CHAP, 2, identifier, b"\x03abcalice");
    send(&mut end, &octets).unwrap();
    let Some(Event::Authenticate(claim)) = end.events.last() else {
        panic!("{:?}", end.events);
    };
    assert_eq!(*claim.name, *b"alice");
    let Proof::Chap { response, .. } = claim.proof else {
        panic!("{:?}", claim.proof);
    };
    assert_eq!(response, [0; 16]);
}

#[test]
fn a_client_answers_each_challenge_and_minds_only_its_own_outcome() {
    let mut end = client(SECRET, 2);
    open_lcp(&mut end, &[3, 5, 0xc2, 0x23, 5]);
    let challenge = |identifier| frame(protocol::CHAP, 1, identifier, b"\x04abcdisp");
    let packets = exchange(&mut end, &challenge(5));
    assert_eq!((packets[0].1, packets[0].2), (2, 5));
    assert_eq!(packets[0].3[0], 16);
    assert_eq!(&packets[0].3[17..], b"alice");
    let success = |identifier| frame(protocol::CHAP, 3, identifier, b"");
    assert_eq!(send(&mut end, &success(4)), Err(Discard::Stray));
    send(&mut end, &success(5)).unwrap();
    assert_eq!(end.events.last(), Some(&Event::Authenticated));
    // A second Success reports no new event. A new challenge is answered.
    let told = end.events.len();
    send(&mut end, &success(5)).unwrap();
    assert_eq!(end.events.len(), told);
    assert_eq!(exchange(&mut end, &challenge(6)).remove(0).2, 6);
    assert_eq!(end.link.refusal(), "");
    send(&mut end, &frame(protocol::CHAP, 4, 6, b"no")).unwrap();
    assert_eq!(end.link.view().end, Some(LinkEnd::RefusedByPeer));
}

/// RFC 1994, section 4.2: the message is for people. It comes from an untrusted peer.
#[test]
fn a_client_keeps_the_text_of_its_refusal_escaped_and_bounded() {
    let text = b"no address\r\n\x1b[31mfor \xff you".repeat(20);
    let expected = r"no address\r\n\u{1b}[31mfor \xff you";
    let mut end = client(SECRET, 2);
    open_lcp(&mut end, &[3, 5, 0xc2, 0x23, 5]);
    exchange(&mut end, &frame(protocol::CHAP, 1, 5, b"\x04abcdisp"));
    send(&mut end, &frame(protocol::CHAP, 4, 5, &text)).unwrap();
    let shown = end.link.refusal().to_owned();
    assert!(shown.starts_with(expected), "{shown}");
    assert!(shown.ends_with("...") && shown.len() < 256, "{shown}");

    let mut end = client(SECRET, 2);
    open_lcp(&mut end, &[3, 4, 0xc0, 0x23]);
    let packets = end.packets();
    let request = packets.iter().find(|packet| packet.0 == protocol::PAP);
    let identifier = request.unwrap().2;
    send(
        &mut end,
        &frame(protocol::PAP, 3, identifier, b"\x04fullrest"),
    )
    .unwrap();
    assert_eq!(end.link.view().end, Some(LinkEnd::RefusedByPeer));
    assert_eq!(end.link.refusal(), "full");
}
