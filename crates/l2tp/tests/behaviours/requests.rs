//! Answers to invalid messages: unknown and malformed AVPs, unknown message types (RFC 2661 4.1, 4.2, 7.1; RFC
//! 3931 5.2, 7.1).

use l2tp::{Discard, SessionEnd, TunnelEnd};
use proptest::prelude::{ProptestConfig, any, prop, proptest};
use wire::l2tp::{Attribute as A, MessageType as M, Version};

use crate::common::{Body, Got, Peer, Stage, only, only_ack};

const VERSIONS: [fn() -> Peer; 2] = [Peer::v2, Peer::v3];

/// Sends `request` to an LNS and returns the StopCCN that it must get.
#[track_caller]
pub(crate) fn refused(stage: &mut Stage, peer: &mut Peer, request: &Body) -> Got {
    let got = peer.say(stage, request);
    let stop = only(&got, M::StopCcn);
    assert_eq!((stop.ns, stop.nr), (0, 1));
    assert_ne!(stop.assigned_connection(), 0);
    peer.remote = stop.assigned_connection();
    peer.ack(stage);
    assert!(stage.hear().is_empty(), "acknowledged, so not sent again");
    assert_eq!(stage.counts().tunnels, 0);
    assert_eq!(stage.counts().closing, 0);
    stop
}

/// "The entire tunnel MUST be terminated" (RFC 2661 4.1), error 8, and "the Error
/// Message SHOULD contain the attribute of the offending AVP" (4.4.2).
#[test]
fn b01_unknown_mandatory_avp_in_sccrq_gets_stopccn_2_8() {
    for peer in VERSIONS {
        let (mut stage, mut peer) = (Stage::lns(), peer());
        let request = peer.sccrq().raw(0x80, 0, 9999, b"?");
        let stop = refused(&mut stage, &mut peer, &request);
        assert_eq!(stop.codes(), (2, Some(8)));
        assert!(stop.error_text().contains("9999"), "{}", stop.error_text());
        assert_eq!(stop.connection, peer.id, "addressed to who asked");
        assert_eq!(
            stage.tunnel_end(),
            TunnelEnd::UnknownAvp {
                vendor: 0,
                attribute: 9999
            }
        );
    }
}

#[test]
fn b01_unknown_mandatory_avp_in_any_tunnel_message_gets_stopccn_2_8() {
    for peer in VERSIONS {
        // SCCRP, at the LAC.
        let (mut stage, mut lns) = (Stage::lac(), peer());
        stage.open_tunnel(lns.version);
        lns.take_sccrq(&mut stage);
        let reply = lns.sccrp().raw(0x80, 0, 9999, b"?");
        let got = lns.say(&mut stage, &reply);
        assert_eq!(only(&got, M::StopCcn).codes(), (2, Some(8)));
        assert_eq!(got[0].connection, lns.id);

        // SCCCN and HELLO, at the LNS.
        let (mut stage, mut lac) = (Stage::lns(), peer());
        let request = lac.sccrq();
        let got = lac.say(&mut stage, &request);
        lac.take_sccrp(&only(&got, M::Sccrp));
        let connected = Body::new(M::Scccn).raw(0x80, 0, 9999, b"?");
        let got = lac.say(&mut stage, &connected);
        assert_eq!(only(&got, M::StopCcn).codes(), (2, Some(8)));

        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        let hello = Body::new(M::Hello).raw(0x80, 0, 9999, b"?");
        let got = lac.say(&mut stage, &hello);
        assert_eq!(only(&got, M::StopCcn).codes(), (2, Some(8)));
    }
}

/// "Within a message associated with a particular session, the session [...] MUST
/// be terminated" (RFC 2661 4.1): CDN 2, error 8 (RFC 3931 5.2), and no more.
#[test]
fn b01_unknown_mandatory_avp_in_a_session_message_gets_cdn_2_8_and_the_tunnel_stays() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        let request = lac.icrq(5).raw(0x80, 0, 9999, b"?");
        let got = lac.say(&mut stage, &request);
        let cdn = only(&got, M::Cdn);
        assert_eq!(cdn.codes(), (2, Some(8)));
        assert!(cdn.error_text().contains("9999"));
        assert!(matches!(stage.session_end(), SessionEnd::UnknownAvp { .. }));
        lac.ack(&mut stage);

        for kind in [M::Iccn, M::Wen, M::Sli] {
            let got = lac.say(&mut stage, &lac.clone().icrq(6));
            let remote = only(&got, M::Icrp).assigned_session();
            let message = lac
                .connected(kind, 6, remote)
                .raw(0x80, 311, 1, b"a vendor's");
            let got = lac.say_in(&mut stage, remote as u16, &message);
            let cdn = only(&got, M::Cdn);
            assert_eq!(cdn.codes(), (2, Some(8)), "{kind:?}");
            assert_eq!(cdn.assigned_session(), remote);
            lac.ack(&mut stage);
        }
        assert_eq!(stage.counts().established, 1);
        assert_eq!(stage.counts().sessions, 0);
    }
}

/// RFC 3931 5.2: "In no case shall a receiver of an AVP 'validate' if the M bit is
/// set on a recognized AVP."
#[test]
fn b02_a_known_avp_is_taken_whatever_its_m_bit() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        let request = lac
            .sccrq()
            .avp(A::VendorName, b"vendor")
            .u16(A::ReceiveWindowSize, 8)
            .u64(A::TieBreaker, 1);
        let request = match lac.version {
            Version::V2 => request.u16(A::FirmwareRevision, 7),
            Version::V3 => request.avp(A::PreferredLanguage, b"de"),
        };
        let connected = Body::new(M::Scccn);
        lac.connect_with(&mut stage, &request.with_wrong_m_bits(), &connected);
        let request = lac.icrq(5).with_wrong_m_bits();
        let got = lac.say(&mut stage, &request);
        let remote = only(&got, M::Icrp).assigned_session();
        let connected = lac.connected(M::Iccn, 5, remote).with_wrong_m_bits();
        only_ack(&lac.say_in(&mut stage, remote as u16, &connected));
        assert_eq!(stage.counts().sessions_established, 1);
        let tunnel = stage.tunnel();
        let view = stage.endpoint().tunnel(tunnel).unwrap();
        assert_eq!((view.host_name, view.peer_window), ("peer", 8));
    }
}

/// "If the M bit is not set, an unrecognized AVP MUST be ignored" (RFC 2661 4.1).
#[test]
fn b03_unknown_avps_without_m_are_ignored_whatever_their_vendor() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        let strange = |body: Body| {
            body.raw(0, 0, 9999, b"?")
                .raw(0, 9, 1, b"Cisco's")
                .raw(0, 0xffff, 0xffff, &[0; 1017])
                .raw(0, 311, 0, b"")
        };
        let (request, connected) = (strange(lac.sccrq()), strange(Body::new(M::Scccn)));
        lac.connect_with(&mut stage, &request, &connected);
        let request = strange(lac.icrq(5));
        lac.call_with(&mut stage, 5, &request);
        only_ack(&lac.say(&mut stage, &strange(Body::new(M::Hello))));
        assert_eq!(stage.counts().sessions_established, 1);
        // Four AVPs in each of four messages.
        assert_eq!(stage.counter("ignored_avps"), 16);
    }
}

#[test]
fn b03_an_unknown_mandatory_avp_of_a_vendor_gets_stopccn_2_8_with_both_numbers() {
    for peer in VERSIONS {
        let (mut stage, mut peer) = (Stage::lns(), peer());
        let request = peer.sccrq().raw(0x80, 311, 7, b"");
        let stop = refused(&mut stage, &mut peer, &request);
        assert_eq!(stop.codes(), (2, Some(8)));
        let text = stop.error_text();
        assert!(text.contains('7') && text.contains("311"), "{text}");
    }
}

/// RFC 2661 4.1: "An AVP received with a reserved bit set to 1 MUST be treated as
/// an unrecognized AVP"; RFC 3931 5.1: reserved bits are "ignored upon receipt".
#[test]
fn b03_a_reserved_bit_makes_an_avp_unknown_in_version_2_and_is_ignored_in_version_3() {
    for bits in [0x20, 0x10, 0x08, 0x04] {
        let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
        let name = A::VendorName.number();
        let request = lac.sccrq().raw(0x80 | bits, 0, name, b"x");
        let stop = refused(&mut stage, &mut lac, &request);
        assert_eq!(stop.codes(), (2, Some(8)));

        let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
        let request = lac.sccrq().raw(bits, 0, name, b"x");
        lac.connect_with(&mut stage, &request, &Body::new(M::Scccn));

        let (mut stage, mut lac) = (Stage::lns(), Peer::v3());
        let request =
            lac.sccrq()
                .without(A::HostName)
                .raw(0x80 | bits, 0, A::HostName.number(), b"bits");
        lac.connect_with(&mut stage, &request, &Body::new(M::Scccn));
        let tunnel = stage.tunnel();
        let view = stage.endpoint().tunnel(tunnel).unwrap();
        assert_eq!(view.host_name, "bits");
    }
}

/// RFC 2661 7.1: "a message that is missing a required AVP" is malformed, and the
/// control connection is cleared.
#[test]
fn b06_an_sccrq_without_an_assigned_id_is_refused_with_a_code() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        let id = match lac.version {
            Version::V2 => A::AssignedTunnelId,
            Version::V3 => A::AssignedControlConnectionId,
        };
        let request = lac.sccrq().without(id);
        let stop = refused(&mut stage, &mut lac, &request);
        assert_eq!(stop.codes(), (2, Some(3)));
        // "Before the Assigned Tunnel ID AVP is received from a peer, messages
        // MUST be sent to that peer with a Tunnel ID value of 0" (4.4.3).
        assert_eq!(stop.connection, 0);
        assert_eq!(stage.tunnel_end(), TunnelEnd::MissingAvp(id));
    }
}

#[test]
fn b06_an_assigned_id_of_zero_is_refused_with_a_code() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.id = 0;
        let request = lac.sccrq();
        let stop = refused(&mut stage, &mut lac, &request);
        assert_eq!(stop.codes(), (2, Some(3)));
    }
}

#[test]
fn b06_other_required_avps_that_are_missing_are_refused_with_a_code() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    let request = lac.sccrq().without(A::ProtocolVersion);
    let stop = refused(&mut stage, &mut lac, &request);
    assert_eq!(stop.codes(), (2, Some(3)));
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        let request = lac.sccrq().without(A::HostName);
        let stop = refused(&mut stage, &mut lac, &request);
        assert_eq!(stop.codes(), (2, Some(3)));
    }
}

/// The same for a reply, at the LAC.
#[test]
fn b06_an_sccrp_without_an_assigned_id_is_refused_with_a_code() {
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::lac(), peer());
        stage.open_tunnel(lns.version);
        lns.take_sccrq(&mut stage);
        let reply = lns
            .sccrp()
            .without(A::AssignedTunnelId)
            .without(A::AssignedControlConnectionId);
        let got = lns.say(&mut stage, &reply);
        let stop = only(&got, M::StopCcn);
        assert_eq!((stop.codes(), stop.connection), ((2, Some(3)), 0));
    }
}

/// A session needs its ids, and version 3 a pseudowire type.
#[test]
fn b06_an_icrq_without_a_required_avp_gets_cdn_2_3() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        let mut bodies = vec![
            lac.icrq(5)
                .without(A::AssignedSessionId)
                .without(A::LocalSessionId),
            lac.icrq(0),
        ];
        if lac.version == Version::V3 {
            bodies.push(lac.icrq(5).without(A::PseudowireType));
        }
        for body in bodies {
            let got = lac.say(&mut stage, &body);
            let cdn = only(&got, M::Cdn);
            assert_eq!(cdn.codes(), (2, Some(3)));
            assert_ne!(cdn.assigned_session(), 0);
            lac.ack(&mut stage);
        }
        assert_eq!(stage.counts().sessions, 0);
        assert_eq!(stage.counts().established, 1);
    }
}

/// "The minimum Length of an AVP is 6" (RFC 2661 4.1). Anything after such an AVP cannot be located, so the M
/// bit does not matter (7.1).
#[test]
fn b07_an_avp_length_below_six_or_past_the_message_is_refused_with_a_code() {
    let broken: [&[u8]; 8] = [
        &[0x80, 5, 0, 0, 0, 8],
        &[0x00, 0, 0, 0, 0, 8],
        &[0x80, 0],
        &[0x80],
        &[0x80, 7, 0, 0, 0, 8],
        &[0x00, 7, 0, 0, 0, 8],
        &[0x83, 0xff, 0, 0, 0, 8, 1, 2, 3],
        &[0x80, 6, 0, 0, 0],
    ];
    for octets in broken {
        for peer in VERSIONS {
            let (mut stage, mut lac) = (Stage::lns(), peer());
            let request = lac.sccrq().octets(octets);
            let stop = refused(&mut stage, &mut lac, &request);
            assert_eq!(stop.codes(), (2, Some(2)), "{octets:02x?}");

            let (mut stage, mut lac) = (Stage::lns(), peer());
            lac.connect(&mut stage);
            let request = lac.icrq(5).octets(octets);
            let got = lac.say(&mut stage, &request);
            assert_eq!(only(&got, M::Cdn).codes(), (2, Some(2)));
            lac.ack(&mut stage);
            let hello = Body::new(M::Hello).octets(octets);
            let got = lac.say(&mut stage, &hello);
            assert_eq!(only(&got, M::StopCcn).codes(), (2, Some(2)));
        }
    }
}

/// RFC 2661 7.1: "if a malformed AVP is received with the M-bit set, the session
/// or tunnel should be terminated [...]. If the M-bit is not set, the AVP should
/// be ignored".
#[test]
fn b07_a_known_avp_of_a_wrong_length_is_refused_with_m_and_ignored_without() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        let request = lac.sccrq().avp(A::ReceiveWindowSize, &[1]);
        let stop = refused(&mut stage, &mut lac, &request);
        assert_eq!(stop.codes(), (2, Some(2)));
        assert!(stop.error_text().contains("Receive Window Size"));

        let (mut stage, mut lac) = (Stage::lns(), peer());
        let window = A::ReceiveWindowSize.number();
        let request = lac.sccrq().raw(0, 0, window, &[1]);
        lac.connect_with(&mut stage, &request, &Body::new(M::Scccn));
        assert_eq!(stage.counter("ignored_avps"), 1);
        let tunnel = stage.tunnel();
        // It is treated as absent.
        assert_eq!(stage.endpoint().tunnel(tunnel).unwrap().peer_window, 4);
    }
}

/// "A control message with a malformed header should be discarded" (RFC 2661 7.1).
#[test]
fn b07_a_malformed_header_is_discarded_and_counted() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    let whole = lac.packet(0, &lac.clone().sccrq());
    let mut bad = vec![
        Vec::new(),
        whole[..1].to_vec(),
        whole[..11].to_vec(),
        whole[..whole.len() - 1].to_vec(),
    ];
    for (at, octet) in [(0, 0x80), (0, 0xc0), (0, 0xca), (2, 0xff)] {
        let mut packet = whole.clone();
        packet[at] = octet;
        bad.push(packet);
    }
    let mut short = whole.clone();
    short[2..4].copy_from_slice(&[0, 11]);
    bad.push(short);
    for packet in &bad {
        stage.send(packet);
    }
    assert!(stage.hear().is_empty());
    assert_eq!(stage.discarded(Discard::Malformed), bad.len() as u64);
}

/// "The Message Type AVP MUST be the first AVP in a message" (RFC 2661 4.4.1).
#[test]
fn b07_a_message_without_a_message_type_clears_the_tunnel_with_a_code() {
    for peer in VERSIONS {
        for body in [
            Body::empty()
                .avp(A::HostName, b"first")
                .u16(A::MessageType, 6),
            Body::empty().avp(A::MessageType, &[6]),
            Body::empty().raw(0xc0, 0, 0, &[0, 6]),
            Body::empty().octets(&[0]),
        ] {
            let (mut stage, mut lac) = (Stage::lns(), peer());
            lac.connect(&mut stage);
            let got = lac.say(&mut stage, &body);
            let (result, error) = only(&got, M::StopCcn).codes();
            assert_eq!(result, 2);
            assert!(matches!(error, Some(2 | 3)), "{error:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever follows a Message Type: an answer with a code, or no answer.
    #[test]
    fn b07_any_octets_after_a_message_type_are_answered_or_ignored(
        kind in 1_u16..22,
        octets in prop::collection::vec(any::<u8>(), 0..60),
        v3 in any::<bool>(),
        up in any::<bool>(),
    ) {
        let (mut stage, mut lac) = (Stage::lns(), if v3 { Peer::v3() } else { Peer::v2() });
        if up {
            lac.connect(&mut stage);
        }
        let body = Body::empty().u16(A::MessageType, kind).octets(&octets);
        let got = lac.say(&mut stage, &body);
        assert!(got.len() <= 1, "{got:?}");
        for answer in got {
            if matches!(answer.kind(), M::StopCcn | M::Cdn) {
                assert_ne!(answer.codes().0, 0);
            }
        }
    }
}

/// "If the M-bit is not set, then the implementation may ignore an unknown message type" (RFC 2661 4.4.1); it
/// still consumes a sequence number.
#[test]
fn b16_an_unknown_message_type_without_m_is_acknowledged_and_ignored() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        for (vendor, number) in [(0, 5_u16), (0, 13), (0, 999), (311, 1)] {
            let body = Body::empty().raw(0, vendor, 0, &number.to_be_bytes()).raw(
                0x80,
                311,
                5,
                b"its own AVP, not to be judged",
            );
            let ack = only_ack(&lac.say(&mut stage, &body));
            assert_eq!(ack.nr, lac.ns);
        }
        assert_eq!(stage.counter("ignored_messages"), 4);
        assert_eq!(stage.counts().established, 1);
        lac.call(&mut stage, 5);
    }
}

/// "If the M-bit is set within the Message Type AVP and the Message Type is unknown
/// to the implementation, the tunnel MUST be cleared" (RFC 2661 4.4.1).
#[test]
fn b16_an_unknown_message_type_with_m_clears_the_tunnel() {
    for peer in VERSIONS {
        for (vendor, number) in [(0, 999_u16), (311, 1), (0, 0)] {
            let (mut stage, mut lac) = (Stage::lns(), peer());
            lac.connect(&mut stage);
            lac.call(&mut stage, 5);
            let body = Body::empty().raw(0x80, vendor, 0, &number.to_be_bytes());
            let got = lac.say(&mut stage, &body);
            assert_eq!(only(&got, M::StopCcn).codes(), (2, Some(8)));
            assert_eq!(stage.tunnel_end(), TunnelEnd::UnknownMessage(number));
            assert_eq!(stage.counts().sessions, 0);
        }
    }
}

/// Type 20 is version 3's ACK; in version 2 it is unknown (RFC 2661 3.2).
#[test]
fn b16_message_type_20_is_unknown_in_version_2() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    lac.connect(&mut stage);
    let body = Body::empty().avp(A::MessageType, &20_u16.to_be_bytes());
    let got = lac.say(&mut stage, &body);
    assert_eq!(only(&got, M::StopCcn).codes(), (2, Some(8)));
}
