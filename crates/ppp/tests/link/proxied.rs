//! Negotiation that an access concentrator started in our name (RFC 2661, section 4.4.5).

use base::Redacted;
use ppp::{Authentication, Discard, Event, Proof, Proxy, ProxyProof, State};
use wire::ppp::{chap, protocol};

use crate::harness::{
    End, NOW, SECRET, accept, claims, exchange, frame, grant, is_right, network, send,
};

const MAGIC: [u8; 6] = [5, 6, 1, 2, 3, 4];
const ASKS_CHAP: [u8; 5] = [3, 5, 0xc2, 0x23, 5];
const ASKS_PAP: [u8; 4] = [3, 4, 0xc0, 0x23];
const BOTH: [Authentication; 2] = [Authentication::ChapMd5, Authentication::Pap];

fn proxy<'a>(sent: &'a [u8], received: &'a [u8]) -> Proxy<'a> {
    Proxy {
        sent,
        received,
        proof: None,
    }
}

fn adopt(end: &mut End, proxy: &Proxy<'_>) -> bool {
    end.call(NOW, |link, ctx| link.up_with_proxy(proxy, ctx))
}

/// The protocols and codes of the packets sent.
fn codes(end: &mut End) -> Vec<(u16, u8)> {
    let packets = end.packets();
    packets.iter().map(|packet| (packet.0, packet.1)).collect()
}

#[test]
fn lcp_is_taken_over_with_all_that_was_agreed() {
    let mut end = network(&BOTH, 1);
    let sent = [&ASKS_CHAP[..], &[5, 6, 9, 9, 9, 9], &[1, 4, 5, 0xd4]].concat();
    let received = [
        &[1, 4, 5, 0x78][..],
        &MAGIC,
        &[7, 2, 8, 2],
        &[2, 6, 0, 0, 0, 0],
    ]
    .concat();
    assert!(adopt(&mut end, &proxy(&sent, &received)));
    let view = end.link.view();
    assert_eq!(view.lcp, State::Opened);
    assert_eq!((view.local.mru, view.local.magic), (1_492, 0x0909_0909));
    assert_eq!((view.peer.mru, view.peer.magic), (1_400, 0x0102_0304));
    assert!(view.peer.compression.protocol && view.peer.compression.address);
    assert_eq!(end.events, [Event::LcpUp]);
    // Without a proxied proof the link challenges the peer, and sends no LCP packet.
    assert_eq!(codes(&mut end), [(protocol::CHAP, 1)]);
}

#[test]
fn a_proxied_response_is_the_owner_s_to_verify_and_answered_under_its_identifier() {
    let challenge = b"a challenge of the concentrator's";
    let response = chap::md5_response(77, SECRET, challenge);
    let mut proxy = proxy(&ASKS_CHAP, &MAGIC);
    proxy.proof = Some(ProxyProof {
        by: Authentication::ChapMd5,
        name: b"alice",
        identifier: 77,
        challenge,
        response: Redacted::new(&response),
    });
    let mut end = network(&BOTH, 1);
    assert!(adopt(&mut end, &proxy));
    assert!(end.sent.is_empty());
    let Some(Event::Authenticate(claim)) = end.events.last() else {
        panic!("{:?}", end.events);
    };
    assert!(is_right(claim));
    assert!(accept(&mut end));
    let packets = end.packets();
    assert_eq!(
        (packets[0].0, packets[0].1, packets[0].2),
        (protocol::CHAP, 3, 77)
    );
    assert_eq!((packets[1].0, packets[1].1), (protocol::IPCP, 1));
    // The client did not receive the Success, and retransmits its response.
    let data = [&[16][..], &response, b"alice"].concat();
    let packets = exchange(&mut end, &frame(protocol::CHAP, 2, 77, &data));
    assert_eq!((packets[0].1, packets[0].2), (3, 77));
    assert_eq!(claims(&end), 1);
}

#[test]
fn a_proxied_password_is_the_owner_s_to_verify() {
    let mut proxy = proxy(&ASKS_PAP, &[]);
    proxy.proof = Some(ProxyProof {
        by: Authentication::Pap,
        name: b"alice",
        identifier: 3,
        challenge: b"",
        response: Redacted::new(SECRET),
    });
    let mut end = network(&BOTH, 1);
    assert!(adopt(&mut end, &proxy));
    let Some(Event::Authenticate(claim)) = end.events.last() else {
        panic!("{:?}", end.events);
    };
    assert!(is_right(claim));
    assert!(matches!(claim.proof, Proof::Pap { identifier: 3, .. }));
    end.call(NOW, |link, ctx| link.refuse(b"", ctx));
    let packets = end.packets();
    assert_eq!(
        (packets[0].0, packets[0].1, packets[0].2),
        (protocol::PAP, 3, 3)
    );
}

#[test]
fn a_proof_of_another_kind_than_was_negotiated_counts_for_nothing() {
    let mut proxy = proxy(&ASKS_CHAP, &MAGIC);
    for (by, response) in [
        (Authentication::Pap, SECRET),
        (Authentication::ChapMd5, b"too short"),
        (Authentication::ChapMd5, b""),
    ] {
        proxy.proof = Some(ProxyProof {
            by,
            name: b"alice",
            identifier: 3,
            challenge: b"abc",
            response: Redacted::new(response),
        });
        let mut end = network(&BOTH, 1);
        assert!(adopt(&mut end, &proxy));
        assert_eq!(claims(&end), 0);
        assert_eq!(codes(&mut end), [(protocol::CHAP, 1)]);
    }
}

#[test]
fn what_we_would_not_have_agreed_to_begins_lcp_anew() {
    let unknown_sent = [&ASKS_CHAP[..], &[13, 3, 6]].concat();
    let ms_chap = [3, 5, 0xc2, 0x23, 0x81];
    let cases: [(&str, &[u8], &[u8]); 10] = [
        ("nothing was sent", &[], &MAGIC),
        ("no proof was asked for", &MAGIC, &[]),
        ("a proof that we do not know", &ms_chap, &MAGIC),
        ("an unknown option was sent", &unknown_sent, &MAGIC),
        ("an unknown option was received", &ASKS_CHAP, &[13, 3, 6]),
        ("the peer wants a proof", &ASKS_CHAP, &ASKS_PAP),
        ("an MRU too small", &ASKS_CHAP, &[1, 4, 0, 9]),
        ("a magic number of zero", &ASKS_CHAP, &[5, 6, 0, 0, 0, 0]),
        ("malformed as sent", &[3, 5, 0xc2, 0x23], &MAGIC),
        ("malformed as received", &ASKS_CHAP, &[5, 0]),
    ];
    for (why, sent, received) in cases {
        let mut end = network(&BOTH, 1);
        assert!(!adopt(&mut end, &proxy(sent, received)), "{why}");
        assert_eq!(codes(&mut end), [(protocol::LCP, 1)], "{why}");
        assert_eq!(end.link.states()[0], State::ReqSent);
        assert!(end.events.is_empty());
        // Nothing of the refused negotiation remains.
        let view = end.link.view();
        assert_eq!(view.local.authentication, Some(Authentication::ChapMd5));
        assert_eq!((view.peer.magic, view.local.mru), (0, 1_500), "{why}");
    }
}

#[test]
fn a_proof_that_is_not_ours_to_ask_begins_lcp_anew() {
    let mut end = network(&[Authentication::ChapMd5], 1);
    assert!(!adopt(&mut end, &proxy(&ASKS_PAP, &MAGIC)));
    let mut end = network(&[], 1);
    assert!(!adopt(&mut end, &proxy(&ASKS_PAP, &MAGIC)));
    let mut end = network(&[], 1);
    assert!(adopt(&mut end, &proxy(&MAGIC, &[])));
    assert_eq!(claims(&end), 1);
}

#[test]
fn no_octets_of_a_proxy_panic() {
    let mut random = crate::harness::Seeded(11);
    let mut octets = |limit: u64| -> Vec<u8> {
        let length = random.next() % limit;
        (0..length).map(|_| random.next() as u8 % 9).collect()
    };
    for _ in 0..20_000 {
        let (sent, received, response) = (octets(20), octets(20), octets(20));
        let proxy = Proxy {
            sent: &sent,
            received: &received,
            proof: Some(ProxyProof {
                by: Authentication::Pap,
                name: &response,
                identifier: 1,
                challenge: &sent,
                response: Redacted::new(&response),
            }),
        };
        let mut end = network(&[], 1);
        adopt(&mut end, &proxy);
        assert_ne!(end.link.states()[0], State::Initial);
    }
}

#[test]
fn a_client_that_begins_lcp_anew_after_a_proxy_is_renegotiated_with() {
    for accepted in [false, true] {
        let mut end = network(&BOTH, 1);
        assert!(adopt(&mut end, &proxy(&ASKS_PAP, &MAGIC)));
        if accepted {
            send(
                &mut end,
                &frame(protocol::PAP, 1, 1, b"\x05alice\x06sesame"),
            )
            .unwrap();
            assert!(accept(&mut end));
        }
        end.packets();
        let packets = exchange(&mut end, &frame(protocol::LCP, 1, 9, &[5, 6, 7, 7, 7, 7]));
        let codes: Vec<u8> = packets.iter().map(|packet| packet.1).collect();
        assert_eq!(codes, [1, 2]);
        let early = frame(protocol::PAP, 1, 2, b"\x05alice\x06sesame");
        assert_eq!(send(&mut end, &early), Err(Discard::Phase));
        let ack = frame(protocol::LCP, 2, packets[0].2, &packets[0].3);
        send(&mut end, &ack).unwrap();
        assert_eq!(end.link.states()[0], State::Opened);
        send(&mut end, &early).unwrap();
        assert!(end.call(NOW, |link, ctx| link.accept(&grant(), b"", ctx)));
        assert_eq!(end.link.states()[1], State::ReqSent);
    }
}
