//! Protocol versions, and requests for either version: RFC 2661 3.1 and 4.4.3, RFC 3931 4.7.

use l2tp::{Config, Discard, TunnelEnd, Versions};
use wire::l2tp::{Attribute as A, MessageType as M, Version};

use crate::common::{Body, Peer, Stage, lns_config, only, only_ack};
use crate::requests::refused;

/// RFC 2661 4.4.2: StopCCN 5, "Error Code indicates highest version supported".
#[test]
fn b04_a_protocol_version_other_than_1_0_gets_stopccn_5() {
    for version in [0x0000, 0x0001, 0x0101, 0x0200, 0x0300, 0xffff] {
        let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
        let request = lac
            .sccrq()
            .without(A::ProtocolVersion)
            .u16(A::ProtocolVersion, version);
        let stop = refused(&mut stage, &mut lac, &request);
        assert_eq!(stop.codes(), (5, Some(0x0100)));
        assert_eq!(stage.tunnel_end(), TunnelEnd::ProtocolVersion(version));

        // 7.2.1: "If the version is earlier and not supported, a StopCCN MUST
        // be sent to the peer".
        let (mut stage, mut lns) = (Stage::lac(), Peer::v2());
        stage.open_tunnel(Version::V2);
        lns.take_sccrq(&mut stage);
        let reply = lns
            .sccrp()
            .without(A::ProtocolVersion)
            .u16(A::ProtocolVersion, version);
        let got = lns.say(&mut stage, &reply);
        assert_eq!(only(&got, M::StopCcn).codes(), (5, Some(0x0100)));
    }
}

fn only_version_2() -> Config {
    Config {
        versions: Versions {
            v2: true,
            v3: false,
        },
        ..lns_config()
    }
}

fn only_version_3() -> Config {
    Config {
        versions: Versions {
            v2: false,
            v3: true,
        },
        ..lns_config()
    }
}

/// "Packets received with an unknown Ver field MUST be discarded" (RFC 2661 3.1).
#[test]
fn b05_a_version_3_header_at_a_version_2_lns_is_discarded_and_counted() {
    let (mut stage, mut lac) = (Stage::new(only_version_2()), Peer::v3());
    let request = lac.sccrq();
    assert!(lac.say(&mut stage, &request).is_empty());
    assert_eq!(stage.discarded(Discard::UnsupportedVersion), 1);
    lac.remote = 0x1234_5678;
    assert!(lac.say(&mut stage, &Body::new(M::Hello)).is_empty());
    assert_eq!(stage.discarded(Discard::UnsupportedVersion), 2);
    assert_eq!(stage.counts(), Default::default());
}

#[test]
fn b05_a_version_2_header_at_a_version_3_lns_is_discarded_and_counted() {
    let (mut stage, mut lac) = (Stage::new(only_version_3()), Peer::v2());
    let request = lac.sccrq();
    assert!(lac.say(&mut stage, &request).is_empty());
    lac.remote = 5;
    assert!(lac.say(&mut stage, &Body::new(M::Hello)).is_empty());
    assert_eq!(stage.discarded(Discard::UnsupportedVersion), 2);
}

/// RFC 2661 8.1: an implementation without L2F "MUST silently discard all L2F
/// packets".
#[test]
fn b05_l2f_and_unknown_versions_are_discarded_and_counted() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    let packet = lac.packet(0, &lac.clone().sccrq());
    for version in [0, 1, 4, 15] {
        let mut packet = packet.clone();
        packet[1] = packet[1] & 0xf0 | version;
        stage.send(&packet);
    }
    assert!(stage.hear().is_empty());
    assert_eq!(stage.discarded(Discard::UnsupportedVersion), 4);
}

/// An SCCRQ that is valid in both versions: "L2TPv3-specific AVPs [...] sent with each M bit set to 0" (RFC
/// 3931 4.7.3).
fn sccrq_for_both(v2: &Peer, v3: &Peer) -> Body {
    v2.sccrq()
        .raw(0, 0, A::RouterId.number(), &[10, 0, 0, 1])
        .raw(
            0,
            0,
            A::AssignedControlConnectionId.number(),
            &v3.id.to_be_bytes(),
        )
        .raw(0, 0, A::PseudowireCapabilitiesList.number(), &[0, 7])
}

/// "If the peer implementation is L2TPv3-capable, a control message with the Ver
/// field set to 3 [...] will be sent in response" (RFC 3931 4.7.3).
#[test]
fn b05_an_sccrq_for_both_versions_is_answered_in_version_3_where_that_is_on() {
    for config in [lns_config(), only_version_3()] {
        let mut stage = Stage::new(config);
        let (mut v2, mut v3) = (Peer::v2(), Peer::v3());
        let request = v2.packet(0, &sccrq_for_both(&v2, &v3));
        stage.send(&request);
        v3.ns = 1;
        let got = v3.hear(&mut stage);
        let reply = only(&got, M::Sccrp);
        assert_eq!((reply.version, reply.connection), (Version::V3, v3.id));
        // The request again, with the other version's header, is a duplicate.
        stage.send(&request);
        let again = only(&v3.hear(&mut stage), M::Sccrp);
        assert_eq!(again.assigned_connection(), reply.assigned_connection());
        v3.take_sccrp(&reply);
        only_ack(&v3.say(&mut stage, &Body::new(M::Scccn)));
        assert_eq!(stage.counts().established, 1);
        v3.call(&mut stage, 0x0001_0005);
    }
}

/// "L2TPv3 AVPs will be ignored by an L2TPv2-only implementation" (RFC 3931 4.7.3).
#[test]
fn b05_an_sccrq_for_both_versions_is_answered_in_version_2_where_3_is_off() {
    let mut stage = Stage::new(only_version_2());
    let (mut v2, v3) = (Peer::v2(), Peer::v3());
    let request = sccrq_for_both(&v2, &v3);
    v2.connect_with(&mut stage, &request, &Body::new(M::Scccn));
    let tunnel = stage.tunnel();
    let view = stage.endpoint().tunnel(tunnel).unwrap();
    assert_eq!((view.version, view.remote_id), (Version::V2, v2.id));
}

/// An implementation of version 3 "MUST ignore all L2TPv2 AVPs [...] within an
/// SCCRQ [...] (even if the M bit is set)" (RFC 3931 4.7.3).
#[test]
fn b05_version_2_avps_in_an_sccrq_of_version_3_are_ignored_with_m_too() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v3());
    let request = lac
        .sccrq()
        .u16(A::ProtocolVersion, 0x0900)
        .u32(A::FramingCapabilities, 3)
        .u16(A::AssignedTunnelId, 9)
        .avp(A::Challenge, b"not for version 3");
    lac.connect_with(&mut stage, &request, &Body::new(M::Scccn));
}
