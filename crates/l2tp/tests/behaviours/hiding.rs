//! Hidden AVPs: RFC 2661 4.3, RFC 3931 5.3. The test computes the expected values independently of the code
//! under test, see `mac`.

use base::Redacted;
use l2tp::{Call, CallDetails, Config, Proxy, SessionEnd, TunnelEnd};
use wire::l2tp::{Attribute as A, Avps, DigestType, MessageType as M};

use crate::common::{Body, Got, Peer, SECRET, Stage, lac_config, lns_config, only, with_secret};
use crate::mac::{PeerAuth, chap, hide, hmac_md5, unhide};

const VECTOR: &[u8] = b"sixteen octets !";

/// An AVP with H and M set.
fn hidden(body: Body, attribute: A, value: &[u8], padding: &[u8], vector: &[u8]) -> Body {
    let number = attribute.number();
    let masked = hide(number, value, padding, SECRET, vector);
    body.raw(0xc0, 0, number, &masked)
}

/// An LNS with the secret and an established tunnel to the peer.
fn connected() -> (Stage, Peer) {
    let (mut stage, mut lac) = (Stage::new(with_secret(lns_config())), Peer::v2());
    let request = lac.sccrq();
    let reply = only(&lac.say(&mut stage, &request), M::Sccrp);
    lac.take_sccrp(&reply);
    let response = chap(3, SECRET, &reply.get(A::Challenge).unwrap());
    let connected = Body::new(M::Scccn).avp(A::ChallengeResponse, &response);
    lac.say(&mut stage, &connected);
    assert_eq!(stage.counts().established, 1);
    (stage, lac)
}

/// The Calling Number that the LNS reads from an ICRQ with this part.
fn calling_number(add: impl FnOnce(Body) -> Body) -> Result<Vec<u8>, (u16, Option<u16>)> {
    let (mut stage, mut lac) = connected();
    let request = add(lac.icrq(5));
    let got = lac.say(&mut stage, &request);
    assert_eq!(got.len(), 1);
    if got[0].kind() == M::Cdn {
        assert_eq!(stage.counts().established, 1, "the tunnel stays");
        return Err(got[0].codes());
    }
    let session = stage.session();
    let view = stage.endpoint().session(session).unwrap();
    Ok(view.details.unwrap().calling_number.to_vec())
}

/// "c(1) = p1 xor b1 [...] bi = MD5(S + c(i-1))": one block, its ends, and several.
#[test]
fn b19_a_hidden_value_of_any_number_of_md5_blocks_is_read() {
    for len in [0, 1, 13, 14, 15, 16, 30, 31, 32, 100, 500, 1015] {
        let value: Vec<u8> = (0..len).map(|i| i as u8).collect();
        let read = calling_number(|body| {
            let body = body.avp(A::RandomVector, VECTOR);
            hidden(body, A::CallingNumber, &value, &[], VECTOR)
        });
        assert_eq!(read, Ok(value), "{len} octets");
    }
}

/// "Padding does NOT alter the value placed in the Length of Original Attribute Value".
#[test]
fn b19_padding_is_taken_off() {
    for padding in [1, 7, 12, 100] {
        let read = calling_number(|body| {
            let body = body.avp(A::RandomVector, VECTOR);
            hidden(
                body,
                A::CallingNumber,
                b"0123",
                &vec![0x5a; padding],
                VECTOR,
            )
        });
        assert_eq!(read, Ok(b"0123".to_vec()), "{padding} octets");
    }
}

/// "The random vector is taken from the last Random Vector AVP encountered in the message
/// prior to the AVP to be unhidden"; a vector may have any length.
#[test]
fn b19_the_last_random_vector_before_an_avp_counts() {
    let read = calling_number(|body| {
        let body = body.avp(A::RandomVector, VECTOR);
        let body = hidden(body, A::CalledNumber, b"555", &[], VECTOR);
        let body = body.avp(A::RandomVector, b"x");
        let body = hidden(body, A::CallingNumber, b"0123", &[], b"x");
        body.avp(A::RandomVector, b"one that comes after")
    });
    assert_eq!(read, Ok(b"0123".to_vec()));
}

/// "This AVP MUST precede the first AVP with the H bit set" (RFC 2661 4.4.1).
#[test]
fn b19_a_hidden_avp_before_any_random_vector_is_refused() {
    let refused = calling_number(|body| {
        let body = hidden(body, A::CallingNumber, b"0123", &[], VECTOR);
        body.avp(A::RandomVector, VECTOR)
    });
    assert_eq!(refused, Err((2, Some(3))));
}

/// A hidden value contains its own length, which must fit. If not, the secrets most likely differ, so the
/// message cannot be read.
#[test]
fn b19_lengths_inside_a_hidden_avp_are_checked() {
    let with = |plain: &[u8]| {
        let number = A::CallingNumber.number();
        // Masks the octets of `plain` as they are, valid or not.
        let mask = unhide(number, &[0; 32], SECRET, VECTOR);
        let masked: Vec<u8> = plain.iter().zip(mask).map(|(p, m)| p ^ m).collect();
        calling_number(|body| {
            body.avp(A::RandomVector, VECTOR)
                .raw(0xc0, 0, number, &masked)
        })
    };
    assert_eq!(with(&[0, 2, b'4', b'2']), Ok(b"42".to_vec()));
    assert_eq!(with(&[0, 1, b'4', b'2']), Ok(b"4".to_vec()));
    assert_eq!(with(&[0, 0]), Ok(Vec::new()));
    for plain in [&[][..], &[0], &[0, 3, b'4', b'2'], &[0xff, 0xff, 1, 2]] {
        assert_eq!(with(plain), Err((2, Some(3))), "{plain:?}");
    }
}

/// The length of a decrypted value is checked like any other.
#[test]
fn b19_a_hidden_value_of_a_wrong_length_is_refused_with_a_code() {
    let refused = calling_number(|body| {
        let body = body.avp(A::RandomVector, VECTOR);
        hidden(body, A::BearerType, &[1, 2, 3], &[], VECTOR)
    });
    assert_eq!(refused, Err((2, Some(2))));
}

/// "This AVP MUST NOT be hidden": Host Name, Result Code and others.
#[test]
fn b19_an_avp_that_must_not_be_hidden_is_refused() {
    for attribute in [A::HostName, A::ReceiveWindowSize, A::ProtocolVersion] {
        let (mut stage, mut lac) = (Stage::new(with_secret(lns_config())), Peer::v2());
        let request = lac.sccrq().without(attribute).avp(A::RandomVector, VECTOR);
        let request = hidden(request, attribute, &[1, 0], &[], VECTOR);
        let stop = only(&lac.say(&mut stage, &request), M::StopCcn);
        assert_eq!(stop.codes().0, 2, "{attribute:?}");
    }
}

/// "The H bit MUST only be set if a shared secret exists" (RFC 2661 4.3).
#[test]
fn b19_a_hidden_avp_without_a_secret_here_is_refused() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    let request = lac.sccrq().avp(A::RandomVector, VECTOR);
    let request = hidden(request, A::VendorName, b"vendor", &[], VECTOR);
    let stop = only(&lac.say(&mut stage, &request), M::StopCcn);
    assert_eq!(stop.codes(), (2, Some(3)));
    assert!(matches!(stage.tunnel_end(), TunnelEnd::BadValue(_)));

    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    lac.connect(&mut stage);
    let request = lac.icrq(5).avp(A::RandomVector, VECTOR);
    let request = hidden(request, A::CallingNumber, b"0123", &[], VECTOR);
    let cdn = only(&lac.say(&mut stage, &request), M::Cdn);
    assert_eq!(cdn.codes(), (2, Some(3)));
    assert!(matches!(stage.session_end(), SessionEnd::BadValue(_)));
}

/// Every AVP of a request that may be hidden is hidden, including the ids, and hidden requests are still
/// recognised when repeated.
#[test]
fn b19_a_request_with_a_hidden_tunnel_id_gets_one_tunnel() {
    let (mut stage, mut lac) = (Stage::new(with_secret(lns_config())), Peer::v2());
    let request = lac
        .sccrq()
        .without(A::AssignedTunnelId)
        .avp(A::RandomVector, VECTOR);
    let id = (lac.id as u16).to_be_bytes();
    let request = hidden(request, A::AssignedTunnelId, &id, &[1; 9], VECTOR);
    let packet = lac.packet(0, &request);
    for _ in 0..3 {
        stage.send(&packet);
        let reply = only(&lac.hear(&mut stage), M::Sccrp);
        assert_eq!(reply.connection, lac.id);
    }
    assert_eq!(stage.counts().tunnels, 1);
}

/// The hidden AVPs of [`Got`], decrypted.
fn clear(got: &Got, key: &[u8]) -> Vec<(u16, bool, Vec<u8>)> {
    let mut vector = Vec::new();
    let mut avps = Vec::new();
    for avp in Avps::new(&got.body) {
        if avp.attribute == A::RandomVector.number() {
            assert!(avp.value.len() >= 16, "recommended in RFC 2661 4.4.1");
            vector = avp.value.to_vec();
        }
        let value = match avp.hidden {
            false => avp.value.to_vec(),
            true => {
                assert!(!vector.is_empty(), "a vector comes first");
                let plain = unhide(avp.attribute, avp.value, key, &vector);
                let len = usize::from(u16::from_be_bytes([plain[0], plain[1]]));
                plain[2..2 + len].to_vec()
            }
        };
        avps.push((avp.attribute, avp.hidden, value));
    }
    avps
}

fn hiding(config: Config) -> Config {
    Config {
        hide: true,
        ..with_secret(config)
    }
}

#[test]
fn b19_we_hide_what_may_be_hidden_and_nothing_else() {
    let (mut stage, mut lns) = (Stage::new(hiding(lac_config())), Peer::v2());
    stage.open_tunnel(lns.version);
    let request = only(&lns.hear(&mut stage), M::Sccrq);
    let avps = clear(&request, SECRET);
    let get = |a: A| {
        let found = avps.iter().find(|avp| avp.0 == a.number());
        let (_, hidden, value) = found.unwrap_or_else(|| panic!("no {a:?}"));
        assert_eq!(*hidden, a.may_hide(), "{a:?}");
        value.clone()
    };
    assert_eq!(get(A::HostName), b"lac");
    assert_eq!(get(A::ProtocolVersion), [1, 0]);
    assert_eq!(get(A::VendorName), b"headend");
    let id = get(A::AssignedTunnelId);
    lns.remote = u32::from(u16::from_be_bytes([id[0], id[1]]));
    // The rest of the exchange, and a call with a password in it.
    let reply = lns
        .sccrp()
        .avp(A::ChallengeResponse, &chap(2, SECRET, &get(A::Challenge)));
    only(&lns.say(&mut stage, &reply), M::Scccn);
    lns.ack(&mut stage);
    let tunnel = stage.tunnel();
    let proxy = Proxy {
        authen_response: Redacted::new(Box::from(&b"a password of more than one block"[..])),
        ..Proxy::default()
    };
    let details = CallDetails {
        proxy: Some(Box::new(proxy)),
        ..CallDetails::default()
    };
    let call = Call {
        details,
        ..Call::default()
    };
    stage.open_session(tunnel, call);
    let request = only(&lns.hear(&mut stage), M::Icrq);
    let avps = clear(&request, SECRET);
    let assigned = avps.iter().find(|avp| avp.0 == 14).unwrap();
    assert!(assigned.1);
    let remote = u16::from_be_bytes([assigned.2[0], assigned.2[1]]);
    let reply = lns.reply(M::Icrp, 9, remote.into());
    let connected = only(&lns.say_in(&mut stage, remote, &reply), M::Iccn);
    let avps = clear(&connected, SECRET);
    let response = avps.iter().find(|avp| avp.0 == 33).unwrap();
    assert!(response.1);
    assert_eq!(response.2, b"a password of more than one block");
    assert!(!connected.whole.windows(8).any(|w| w == b"password"));
}

/// "The H bit MUST only be set if a shared secret exists": configuration validation ensures that.
#[test]
fn b19_hiding_needs_a_secret() {
    let config = Config {
        hide: true,
        ..lns_config()
    };
    assert_eq!(config.validate().unwrap_err().key, "hide");
}

/// Version 3 derives its key: "shared_key = HMAC_MD5 (shared_secret, 1)" (RFC 3931 5.3).
#[test]
fn b19_version_3_hides_with_the_derived_key() {
    let key = hmac_md5(SECRET, &[&[1]]);
    let (mut stage, mut lns) = (Stage::new(hiding(lac_config())), Peer::v3());
    lns.auth = Some(PeerAuth::new(SECRET, DigestType::HmacMd5));
    stage.open_tunnel(lns.version);
    let request = only(&lns.hear(&mut stage), M::Sccrq);
    let avps = clear(&request, &key);
    let (_, hidden, id) = avps.iter().find(|avp| avp.0 == 61).unwrap();
    assert!(hidden);
    lns.remote = u32::from_be_bytes([id[0], id[1], id[2], id[3]]);
    let nonce = avps.iter().find(|avp| avp.0 == 73).unwrap();
    assert!(!nonce.1, "the nonce MUST NOT be hidden");
    lns.auth.as_mut().unwrap().remote_nonce = nonce.2.clone();
    assert!(lns.auth.as_ref().unwrap().verifies(&request.whole));

    // Ours can be decrypted, too.
    let number = A::AssignedControlConnectionId.number();
    let masked = hide(number, &lns.id.to_be_bytes(), &[3; 5], &key, VECTOR);
    let reply = lns
        .sccrp()
        .without(A::AssignedControlConnectionId)
        .avp(A::RandomVector, VECTOR)
        .raw(0xc0, 0, number, &masked);
    only(&lns.say(&mut stage, &reply), M::Scccn);
    let tunnel = stage.tunnel();
    assert_eq!(stage.endpoint().tunnel(tunnel).unwrap().remote_id, lns.id);
}
