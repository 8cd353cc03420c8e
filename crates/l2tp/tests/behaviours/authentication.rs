//! Tunnel authentication of version 2: RFC 2661 4.4.3 and 5.1.1.

use base::Redacted;
use l2tp::{Config, TunnelEnd};
use wire::l2tp::{Attribute as A, MessageType as M};

use crate::common::{
    Body, Peer, SECRET, Stage, kinds, lac_config, lns_config, only, only_ack, with_secret,
};
use crate::mac::chap;

/// MD5 of an id, "a shared secret" and "0123456789abcdef", by another program:
/// `printf '\002a shared secret0123456789abcdef' | md5sum`, and with `\003`.
const CHALLENGE: &[u8] = b"0123456789abcdef";
const RESPONSE_2: [u8; 16] = 0x201b_6d2a_a79b_fe69_2665_cd33_bfec_1d46_u128.to_be_bytes();
const RESPONSE_3: [u8; 16] = 0x9cfc_b80b_2738_2aba_f247_a364_bc2c_250c_u128.to_be_bytes();

#[test]
fn b18_the_md5_of_these_tests_is_that_of_md5sum() {
    assert_eq!(chap(2, SECRET, CHALLENGE), RESPONSE_2);
    assert_eq!(chap(3, SECRET, CHALLENGE), RESPONSE_3);
}

/// "For purposes of the ID value in the CHAP response calculation, the value of the
/// Message Type AVP for this message is used (e.g. 2 for an SCCRP, and 3 for an
/// SCCCN)" (RFC 2661 4.4.3).
#[test]
fn b18_the_response_in_an_sccrp_has_challenge_id_2() {
    let (mut stage, mut lac) = (Stage::new(with_secret(lns_config())), Peer::v2());
    let request = lac.sccrq().avp(A::Challenge, CHALLENGE);
    let reply = only(&lac.say(&mut stage, &request), M::Sccrp);
    assert_eq!(reply.get(A::ChallengeResponse).unwrap(), RESPONSE_2);
    // It must also send a challenge: at least one octet of random data.
    assert!(reply.get(A::Challenge).is_some_and(|c| c.len() >= 16));
}

#[test]
fn b18_the_response_in_an_scccn_has_challenge_id_3() {
    let (mut stage, mut lns) = (Stage::new(with_secret(lac_config())), Peer::v2());
    stage.open_tunnel(lns.version);
    let request = lns.take_sccrq(&mut stage);
    let theirs = request.get(A::Challenge).unwrap();
    let reply = lns
        .sccrp()
        .avp(A::ChallengeResponse, &chap(2, SECRET, &theirs))
        .avp(A::Challenge, CHALLENGE);
    let connected = only(&lns.say(&mut stage, &reply), M::Scccn);
    assert_eq!(connected.get(A::ChallengeResponse).unwrap(), RESPONSE_3);
    assert_eq!(stage.counts().established, 1);
}

/// A challenge of any length, from one octet to what an AVP holds.
#[test]
fn b18_a_challenge_may_have_any_length_but_none() {
    for len in [1, 15, 16, 17, 64, 1017] {
        let (mut stage, mut lac) = (Stage::new(with_secret(lns_config())), Peer::v2());
        let challenge = vec![0xa5; len];
        let request = lac.sccrq().avp(A::Challenge, &challenge);
        let reply = only(&lac.say(&mut stage, &request), M::Sccrp);
        let response = reply.get(A::ChallengeResponse).unwrap();
        assert_eq!(response, chap(2, SECRET, &challenge));
    }
    let (mut stage, mut lac) = (Stage::new(with_secret(lns_config())), Peer::v2());
    let request = lac.sccrq().avp(A::Challenge, &[]);
    let stop = only(&lac.say(&mut stage, &request), M::StopCcn);
    assert_eq!(stop.codes(), (2, Some(2)));
}

/// The LNS's answer to an SCCCN with this response, after it sent a challenge.
fn connect_with(response: impl Fn(&[u8]) -> Option<Vec<u8>>) -> (Stage, Vec<Option<M>>) {
    let (mut stage, mut lac) = (Stage::new(with_secret(lns_config())), Peer::v2());
    let request = lac.sccrq();
    let reply = only(&lac.say(&mut stage, &request), M::Sccrp);
    lac.take_sccrp(&reply);
    let challenge = reply.get(A::Challenge).unwrap();
    let mut connected = Body::new(M::Scccn);
    if let Some(response) = response(&challenge) {
        connected = connected.avp(A::ChallengeResponse, &response);
    }
    let got = lac.say(&mut stage, &connected);
    let kinds = kinds(&got);
    if got[0].kind() == M::StopCcn {
        assert_eq!(got[0].codes(), (4, None));
        assert_eq!(got[0].connection, lac.id);
    }
    (stage, kinds)
}

#[test]
fn b18_the_right_response_opens_the_tunnel() {
    let (stage, kinds) = connect_with(|c| Some(chap(3, SECRET, c)));
    assert_eq!(kinds, [None]);
    assert_eq!(stage.counts().established, 1);
}

/// "If the expected response and response received from a peer does not match,
/// establishment of the tunnel MUST be disallowed" (RFC 2661 5.1.1): StopCCN 4.
#[test]
fn b18_a_wrong_or_missing_response_in_an_scccn_gets_stopccn_4() {
    type Wrong = fn(&[u8]) -> Option<Vec<u8>>;
    let wrong: [Wrong; 5] = [
        |_| None,
        |c| Some(chap(2, SECRET, c)),
        |c| Some(chap(3, b"another secret", c)),
        |_| Some(vec![0; 16]),
        |c| {
            let mut response = chap(3, SECRET, c);
            response[15] ^= 1;
            Some(response)
        },
    ];
    for response in wrong {
        let (stage, kinds) = connect_with(response);
        assert_eq!(kinds, [Some(M::StopCcn)]);
        assert!(matches!(stage.tunnel_end(), TunnelEnd::NotAuthorized(_)));
        assert_eq!(stage.counts().tunnels, 0);
        assert_eq!(stage.counter("tunnels_established"), 0);
    }
}

#[test]
fn b18_a_wrong_or_missing_response_in_an_sccrp_gets_stopccn_4() {
    let replies: [fn(Body, &[u8]) -> Body; 4] = [
        |reply, _| reply,
        |reply, c| reply.avp(A::ChallengeResponse, &chap(3, SECRET, c)),
        |reply, c| reply.avp(A::ChallengeResponse, &chap(2, b"other", c)),
        // Sending our own challenge back does not make us answer it.
        |reply, c| reply.avp(A::Challenge, c),
    ];
    for reply in replies {
        let (mut stage, mut lns) = (Stage::new(with_secret(lac_config())), Peer::v2());
        stage.open_tunnel(lns.version);
        let request = lns.take_sccrq(&mut stage);
        let reply = reply(lns.sccrp(), &request.get(A::Challenge).unwrap());
        let stop = only(&lns.say(&mut stage, &reply), M::StopCcn);
        assert_eq!((stop.codes(), stop.connection), ((4, None), lns.id));
        assert!(matches!(stage.tunnel_end(), TunnelEnd::NotAuthorized(_)));
    }
}

/// The response must be 16 octets long, and the AVP is mandatory.
#[test]
fn b18_a_response_of_a_wrong_length_is_refused_with_a_code() {
    let (mut stage, mut lns) = (Stage::new(with_secret(lac_config())), Peer::v2());
    stage.open_tunnel(lns.version);
    lns.take_sccrq(&mut stage);
    let reply = lns.sccrp().avp(A::ChallengeResponse, &[1; 15]);
    let stop = only(&lns.say(&mut stage, &reply), M::StopCcn);
    assert_eq!(stop.codes(), (2, Some(2)));
}

/// "To participate in tunnel authentication, a single shared secret MUST exist" (RFC 2661 5.1.1).
#[test]
fn b18_a_challenge_without_a_secret_here_gets_stopccn_4() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    let request = lac.sccrq().avp(A::Challenge, CHALLENGE);
    let stop = only(&lac.say(&mut stage, &request), M::StopCcn);
    assert_eq!(stop.codes(), (4, None));

    let (mut stage, mut lns) = (Stage::lac(), Peer::v2());
    stage.open_tunnel(lns.version);
    assert_eq!(lns.take_sccrq(&mut stage).get(A::Challenge), None);
    let reply = lns.sccrp().avp(A::Challenge, CHALLENGE);
    let stop = only(&lns.say(&mut stage, &reply), M::StopCcn);
    assert_eq!(stop.codes(), (4, None));
}

/// Authentication may be one-way: a peer that sends no challenge must still answer ours.
#[test]
fn b18_a_peer_that_does_not_challenge_us_is_challenged_all_the_same() {
    let (mut stage, mut lac) = (Stage::new(with_secret(lns_config())), Peer::v2());
    let request = lac.sccrq();
    let reply = only(&lac.say(&mut stage, &request), M::Sccrp);
    assert_eq!(reply.get(A::ChallengeResponse), None);
    lac.take_sccrp(&reply);
    let response = chap(3, SECRET, &reply.get(A::Challenge).unwrap());
    let connected = Body::new(M::Scccn).avp(A::ChallengeResponse, &response);
    only_ack(&lac.say(&mut stage, &connected));
    assert_eq!(stage.counts().established, 1);
}

/// "Random data" (RFC 2661 4.4.3): no challenge is repeated.
#[test]
fn b18_no_two_challenges_are_equal() {
    let mut stage = Stage::new(with_secret(lns_config()));
    let mut seen = std::collections::HashSet::new();
    for id in 1..=100 {
        let mut lac = Peer::new(wire::l2tp::Version::V2, id);
        let request = lac.sccrq();
        let reply = only(&lac.say(&mut stage, &request), M::Sccrp);
        assert!(seen.insert(reply.get(A::Challenge).unwrap()));
    }
}

/// No printed form of a configuration contains the secret.
#[test]
fn b18_the_secret_does_not_print() {
    let config = Config {
        secret: Some(Redacted::new(b"very secret".to_vec())),
        ..lns_config()
    };
    let shown = format!("{config:?}");
    assert!(!shown.contains("118, 101, 114, 121") && !shown.contains("very"));
}
