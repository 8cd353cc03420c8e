//! Control Message Authentication of version 3: RFC 3931 4.3 and 5.4.1. The test computes the digests
//! independently of the code under test, see `mac`.

use l2tp::{Call, Config, Discard, TunnelEnd};
use wire::l2tp::{Attribute as A, DigestType, MessageType as M, Version};

use crate::common::{
    Body, Got, Peer, SECRET, Stage, kinds, lac_config, lns_config, only, only_ack, with_secret,
};
use crate::mac::PeerAuth;

const DIGESTS: [DigestType; 2] = [DigestType::HmacMd5, DigestType::HmacSha1];

fn secret(config: Config, digest: DigestType) -> Config {
    Config {
        digest,
        ..with_secret(config)
    }
}

/// A peer that has the secret.
fn authentic(digest: DigestType) -> Peer {
    let mut peer = Peer::v3();
    peer.auth = Some(PeerAuth::new(SECRET, digest));
    peer
}

/// Checks that each received message has the right digest.
#[track_caller]
fn verify(peer: &Peer, got: &[Got]) {
    for message in got {
        let auth = peer.auth.as_ref().expect("an authentic peer");
        assert!(auth.verifies(&message.whole), "{message:?}");
    }
}

/// "It is now included in all L2TP messages" (RFC 3931 4.3), ours and theirs, with both
/// nonces in it and in both algorithms, from the SCCRQ to the last acknowledgement.
#[test]
fn b24_every_message_of_an_authenticated_connection_has_its_digest() {
    for digest in DIGESTS {
        let (mut stage, mut lac) = (Stage::new(secret(lns_config(), digest)), authentic(digest));
        let request = lac.sccrq();
        let got = lac.say(&mut stage, &request);
        lac.take_sccrp(&only(&got, M::Sccrp));
        verify(&lac, &got);
        let conversation = [
            (Body::new(M::Scccn), None),
            (Body::new(M::Hello), None),
            (lac.icrq(5), Some(M::Icrp)),
            (lac.cdn(5, 0, 3), None),
            (lac.stop_ccn(1), None),
        ];
        for (body, answer) in conversation {
            let got = lac.say(&mut stage, &body);
            assert_eq!(kinds(&got), [answer]);
            // "ZLB messages are only permitted when Control Message Authentication [...]
            // is not enabled" (6.15).
            assert_eq!(got[0].kind(), answer.unwrap_or(M::Ack));
            verify(&lac, &got);
            lac.ack(&mut stage);
        }
        assert_eq!(stage.discarded(Discard::BadDigest), 0);
        assert!(matches!(stage.tunnel_end(), TunnelEnd::Peer(_)));
    }
}

#[test]
fn b24_the_lac_signs_its_request_without_nonces_and_the_rest_with_both() {
    for digest in DIGESTS {
        let (mut stage, mut lns) = (Stage::new(secret(lac_config(), digest)), authentic(digest));
        let tunnel = stage.open_tunnel(Version::V3);
        let request = lns.take_sccrq(&mut stage);
        verify(&lns, core::slice::from_ref(&request));
        let nonce = request.get(A::ControlMessageAuthenticationNonce).unwrap();
        assert!(nonce.len() >= 16, "\"at least 16 octets is recommended\"");
        let reply = lns.sccrp();
        let got = lns.say(&mut stage, &reply);
        only(&got, M::Scccn);
        verify(&lns, &got);
        lns.ack(&mut stage);
        lns.take_call(&mut stage, tunnel, Call::default(), 9);
        // A retransmission is signed again, because its Nr may differ.
        stage.with(|lac, _| assert!(lac.send_hello(tunnel)));
        let first = only(&lns.hear(&mut stage), M::Hello);
        let hello = lns.packet_at(
            lns.ns,
            lns.nr.wrapping_sub(1),
            0,
            &Body::new(M::Hello).bytes,
        );
        lns.ns += 1;
        stage.send(&hello);
        stage.run_secs(1);
        let got = lns.hear(&mut stage);
        assert_eq!(kinds(&got), [None, Some(M::Hello)]);
        verify(&lns, &got);
        assert_eq!((got[1].ns, got[1].nr), (first.ns, first.nr + 1));
        assert_ne!(got[1].whole, first.whole);
        assert_eq!(stage.discarded(Discard::BadDigest), 0);
    }
}

/// "If the calculation fails, the message MUST be dropped" (RFC 3931 5.4.1).
#[test]
fn b24_a_bad_digest_is_dropped_and_counted_and_changes_nothing() {
    for digest in DIGESTS {
        let (mut stage, mut lac) = (Stage::new(secret(lns_config(), digest)), authentic(digest));
        lac.connect(&mut stage);
        let tunnel = stage.tunnel();
        let before = format!("{:?}", stage.endpoint().tunnel(tunnel));
        let good = lac.packet(0, &lac.clone().icrq(5));
        // A change of any octet: header, AVPs, the digest itself.
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            stage.send(&bad);
            assert!(stage.hear().is_empty(), "octet {at}");
            let now = format!("{:?}", stage.endpoint().tunnel(tunnel));
            assert_eq!(now, before, "octet {at}");
        }
        assert!(stage.discarded(Discard::BadDigest) > good.len() as u64 - 20);
        stage.send(&good);
        only(&lac.hear(&mut stage), M::Icrp);
    }
}

/// Without the other's nonce, with swapped nonces, without nonces, without a digest, with another secret: none
/// is accepted.
#[test]
fn b24_a_digest_with_other_nonces_or_another_secret_is_dropped() {
    let wrong: [fn(&mut PeerAuth); 4] = [
        |auth| auth.remote_nonce.clear(),
        |auth| core::mem::swap(&mut auth.local_nonce, &mut auth.remote_nonce),
        |auth| auth.secret = b"another secret".to_vec(),
        |auth| {
            auth.local_nonce.clear();
            auth.remote_nonce.clear();
        },
    ];
    for change in wrong {
        let digest = DigestType::HmacMd5;
        let (mut stage, mut lac) = (Stage::new(secret(lns_config(), digest)), authentic(digest));
        lac.connect(&mut stage);
        let mut changed = lac.clone();
        change(changed.auth.as_mut().unwrap());
        for body in [Body::new(M::Hello), lac.stop_ccn(1)] {
            let bad = changed.packet_at(lac.ns, lac.nr, 0, &body.bytes);
            stage.send(&bad);
        }
        changed.auth = None;
        for body in [&Body::new(M::Hello).bytes[..], &lac.stop_ccn(1).bytes, &[]] {
            let bad = changed.packet_at(lac.ns, lac.nr, 0, body);
            stage.send(&bad);
        }
        assert!(stage.hear().is_empty());
        assert_eq!(stage.discarded(Discard::BadDigest), 5);
        assert_eq!(stage.counts().established, 1);
        only_ack(&lac.say(&mut stage, &Body::new(M::Hello)));
    }
}

/// "Digest Type 0 (HMAC-MD5) MUST be supported, while Digest Type 1 (HMAC-SHA-1) SHOULD": the peer chooses its
/// own algorithm.
#[test]
fn b24_the_two_ends_may_use_different_algorithms() {
    for (ours, theirs) in [(DIGESTS[0], DIGESTS[1]), (DIGESTS[1], DIGESTS[0])] {
        let (mut stage, mut lac) = (Stage::new(secret(lns_config(), ours)), authentic(theirs));
        lac.connect(&mut stage);
        lac.call(&mut stage, 5);
        assert_eq!(stage.counts().sessions_established, 1);
    }
}

/// Two ends with different secrets never connect, and each reports why.
#[test]
fn b24_an_sccrq_signed_with_another_secret_is_dropped() {
    let digest = DigestType::HmacMd5;
    let (mut stage, mut lac) = (Stage::new(secret(lns_config(), digest)), authentic(digest));
    lac.auth.as_mut().unwrap().secret = b"another".to_vec();
    let request = lac.packet(0, &lac.clone().sccrq());
    for _ in 0..5 {
        stage.send(&request);
    }
    assert!(stage.hear().is_empty());
    assert_eq!(stage.discarded(Discard::BadDigest), 5);
    assert_eq!(stage.counts(), Default::default());
}

/// "Either both sides participate in authentication, or neither does" (RFC 3931 4.3).
#[test]
fn b24_authentication_on_one_side_only_is_refused_with_stopccn_4() {
    // The request has neither nonce nor digest, and we have a secret.
    let digest = DigestType::HmacMd5;
    let (mut stage, mut lac) = (Stage::new(secret(lns_config(), digest)), Peer::v3());
    let request = lac.sccrq();
    let stop = only(&lac.say(&mut stage, &request), M::StopCcn);
    assert_eq!((stop.codes(), stop.connection), ((4, None), lac.id));
    assert!(matches!(stage.tunnel_end(), TunnelEnd::NotAuthorized(_)));
    // The request has both, and we have no secret: its nonce requires one of ours.
    let (mut stage, mut lac) = (Stage::lns(), authentic(digest));
    let request = lac.sccrq();
    let stop = only(&lac.say(&mut stage, &request), M::StopCcn);
    assert_eq!(stop.codes(), (4, None));
    // Our request has both, and the reply has neither: anyone could have sent it.
    let (mut stage, mut lns) = (Stage::new(secret(lac_config(), digest)), Peer::v3());
    stage.open_tunnel(Version::V3);
    lns.take_sccrq(&mut stage);
    let reply = lns.sccrp();
    assert!(lns.say(&mut stage, &reply).is_empty());
    assert_eq!(stage.discarded(Discard::BadDigest), 1);
    // A refusal is accepted, though, and acknowledged in a form that the peer can read; otherwise neither side
    // would learn the cause.
    lns.ns = 0;
    let refusal = lns.stop_ccn(4);
    let ack = only_ack(&lns.say(&mut stage, &refusal));
    assert!(ack.body.is_empty());
    assert!(matches!(stage.tunnel_end(), TunnelEnd::Peer(_)));
    // Our request has neither, and the reply requires both.
    let (mut stage, mut lns) = (Stage::lac(), Peer::v3());
    stage.open_tunnel(Version::V3);
    lns.take_sccrq(&mut stage);
    let reply = lns
        .sccrp()
        .avp(A::ControlMessageAuthenticationNonce, b"nonce");
    let stop = only(&lns.say(&mut stage, &reply), M::StopCcn);
    assert_eq!(stop.codes(), (4, None));
}

/// "The receiver of the message MUST respond with a Message Digest AVP in all subsequent messages sent" (RFC
/// 3931 4.3). This includes a refusal, and the other end can verify it. The refusing end has sent no nonce, so
/// its nonce counts as empty.
#[test]
fn b24_a_refusal_of_an_authentic_request_is_signed() {
    let digest = DigestType::HmacSha1;
    let (mut stage, mut lac) = (Stage::new(secret(lns_config(), digest)), authentic(digest));
    let request = lac.sccrq().u16(A::ReceiveWindowSize, 0);
    let got = lac.say(&mut stage, &request);
    lac.remote = only(&got, M::StopCcn).assigned_connection();
    verify(&lac, &got);
    lac.ack(&mut stage);
    assert_eq!((stage.counts().closing, stage.counts().held), (0, 1));
    // An unacceptable SCCRP is refused with both nonces.
    let (mut stage, mut lns) = (Stage::new(secret(lac_config(), digest)), authentic(digest));
    stage.open_tunnel(Version::V3);
    lns.take_sccrq(&mut stage);
    let reply = lns.sccrp().raw(0x80, 0, 9999, b"?");
    let got = lns.say(&mut stage, &reply);
    assert_eq!(only(&got, M::StopCcn).codes(), (2, Some(8)));
    verify(&lns, &got);
    // And a forged refusal, signed but wrong, is dropped.
    let (mut stage, mut lns) = (Stage::new(secret(lac_config(), digest)), authentic(digest));
    stage.open_tunnel(Version::V3);
    lns.take_sccrq(&mut stage);
    lns.auth.as_mut().unwrap().secret = b"guessed".to_vec();
    let refusal = lns.stop_ccn(1);
    assert!(lns.say(&mut stage, &refusal).is_empty());
    assert_eq!(stage.discarded(Discard::BadDigest), 1);
    assert_eq!(stage.counts().tunnels, 1);
}

/// A peer that closes before it has received our nonce cannot sign with it.
#[test]
fn b24_a_stopccn_before_the_nonces_are_exchanged_ends_the_tunnel() {
    let digest = DigestType::HmacMd5;
    let (mut stage, mut lac) = (Stage::new(secret(lns_config(), digest)), authentic(digest));
    let request = lac.sccrq();
    only(&lac.say(&mut stage, &request), M::Sccrp);
    lac.nr = 0;
    let mut forged = lac.clone();
    forged.auth.as_mut().unwrap().secret = b"guessed".to_vec();
    let stop = lac.stop_ccn(1);
    let forged = forged.packet(0, &stop);
    stage.send(&forged);
    assert_eq!(stage.counts().half_open, 1);
    assert_eq!(stage.discarded(Discard::BadDigest), 1);
    only_ack(&lac.say(&mut stage, &stop));
    assert_eq!(stage.counts().half_open, 0);
    assert!(matches!(stage.tunnel_end(), TunnelEnd::Peer(_)));
}

/// "This message authenticity and integrity checking MUST be performed before utilizing any
/// information contained within the control message" (RFC 3931 5.4.1).
#[test]
fn b24_an_unauthentic_request_touches_no_tunnel_that_is_there() {
    let digest = DigestType::HmacMd5;
    let config = Config {
        tie_breaker: true,
        ..secret(lns_config(), digest)
    };
    let (mut stage, mut lac) = (Stage::new(config), authentic(digest));
    lac.connect(&mut stage);
    // One of our tunnels is opening; a stranger's tie breaker cannot end it.
    stage.open_tunnel(Version::V3);
    stage.hear();
    let mut stranger = Peer::v3();
    for tie in [None, Some(0)] {
        let mut request = stranger.sccrq();
        if let Some(tie) = tie {
            request = request.u64(A::TieBreaker, tie);
        }
        let packet = stranger.packet_at(0, 0, 0, &request.bytes);
        stage.send(&packet);
        assert!(stage.hear().is_empty());
    }
    assert_eq!(stage.discarded(Discard::NotARequest), 2);
    stranger.id += 1;
    let request = stranger.sccrq().u64(A::TieBreaker, 0);
    only(&stranger.say(&mut stage, &request), M::StopCcn);
    assert_eq!(stage.counts().tunnels, 2);
    assert_eq!(stage.counts().established, 1);
    only_ack(&lac.say(&mut stage, &Body::new(M::Hello)));
}

/// The nonces "guard against [...] replay attacks" (RFC 3931 4.3): a repeated request of an established tunnel
/// is never a new one, however late, since a new request has a new nonce.
#[test]
fn b24_a_replayed_sccrq_does_not_restart_an_authenticated_tunnel() {
    let digest = DigestType::HmacMd5;
    let (mut stage, mut lac) = (Stage::new(secret(lns_config(), digest)), authentic(digest));
    let request = lac.packet(0, &lac.clone().sccrq());
    stage.send(&request);
    let reply = only(&lac.hear(&mut stage), M::Sccrp);
    lac.take_sccrp(&reply);
    only_ack(&lac.say(&mut stage, &Body::new(M::Scccn)));
    stage.run_secs(30);
    stage.send(&request);
    only_ack(&lac.hear(&mut stage));
    assert_eq!(stage.counts().established, 1);
    assert_eq!(stage.counter("tunnels_opened"), 1);
    let mut again = authentic(digest);
    again.auth.as_mut().unwrap().local_nonce = b"another nonce".to_vec();
    again.connect(&mut stage);
    assert_eq!(stage.tunnel_end(), TunnelEnd::PeerRestarted);
    assert_eq!(stage.counts().established, 1);
}

/// "The Message Digest AVP still MAY be sent as an integrity check [...] with an empty
/// zero-length shared secret, local nonce, and remote nonce" (RFC 3931 4.3).
#[test]
fn b24_without_a_secret_a_digest_is_an_integrity_check() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v3());
    let mut auth = PeerAuth::new(b"", DigestType::HmacMd5);
    auth.local_nonce.clear();
    let request = lac.sccrq();
    lac.auth = Some(auth);
    let reply = only(&lac.say(&mut stage, &request), M::Sccrp);
    lac.remote = reply.assigned_connection();
    only_ack(&lac.say(&mut stage, &Body::new(M::Scccn)));
    let mut corrupt = lac.packet_at(lac.ns, lac.nr, 0, &Body::new(M::Hello).bytes);
    corrupt[30] ^= 1;
    stage.send(&corrupt);
    assert!(stage.hear().is_empty());
    assert_eq!(stage.discarded(Discard::BadDigest), 1);
    only_ack(&lac.say(&mut stage, &Body::new(M::Hello)));
    lac.auth = None;
    only_ack(&lac.say(&mut stage, &Body::new(M::Hello)));
    assert_eq!(stage.counts().established, 1);
}

/// "If two Message Digest AVPs are received in a control message, the message MUST be
/// accepted if either Message Digest is valid" (RFC 3931 5.4.1).
#[test]
fn b24_one_good_digest_of_two_is_enough() {
    let digest = DigestType::HmacMd5;
    let (mut stage, mut lac) = (Stage::new(secret(lns_config(), digest)), authentic(digest));
    lac.connect(&mut stage);
    // The second digest uses the next secret, and is zeroed while the first is computed.
    let mut other = [0; 21];
    other[0] = 1;
    let hello = Body::new(M::Hello).avp(A::MessageDigest, &other);
    let mut packet = lac.packet_at(lac.ns, lac.nr, 0, &hello.bytes);
    let end = packet.len();
    packet[end - 20..].fill(0x77);
    stage.send(&packet);
    only_ack(&stage.hear());
    assert_eq!(stage.discarded(Discard::BadDigest), 0);
}

/// Nonces and connection ids are never repeated, never zero, and not sequential.
#[test]
fn b24_nonces_ids_and_cookies_are_random() {
    let mut stage = Stage::new(secret(lns_config(), DigestType::HmacMd5));
    let mut nonces = std::collections::HashSet::new();
    let mut ids = Vec::new();
    let mut cookies = std::collections::HashSet::new();
    for id in 1..=50 {
        let mut lac = authentic(DigestType::HmacMd5);
        lac.id = id << 16;
        let request = lac.sccrq();
        let got = lac.say(&mut stage, &request);
        let reply = only(&got, M::Sccrp);
        lac.take_sccrp(&reply);
        assert!(nonces.insert(reply.get(A::ControlMessageAuthenticationNonce).unwrap()));
        ids.push(reply.assigned_connection());
        only_ack(&lac.say(&mut stage, &Body::new(M::Scccn)));
        let request = lac.icrq(5);
        let reply = only(&lac.say(&mut stage, &request), M::Icrp);
        assert!(cookies.insert(reply.get(A::AssignedCookie).unwrap()));
        ids.push(reply.assigned_session());
        lac.ack(&mut stage);
    }
    assert!(ids.iter().all(|id| *id != 0));
    let steps = ids.windows(3).filter(|w| w[2].wrapping_sub(w[0]) <= 1);
    assert_eq!(steps.count(), 0, "{ids:08x?}");
}
