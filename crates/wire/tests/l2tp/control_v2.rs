//! Every control message of L2TPv2, read from its golden bytes and written to the same bytes.

use super::expect::Value::{Bytes, Flag, Hidden, Result, U16, U32, U64};
use super::expect::{Expected, SECRET, Value};
use wire::l2tp::Attribute as A;
use wire::l2tp::{Attribute, Message, MessageType, Version, auth};

const LAC_TUNNEL: u32 = 0x2a01;
const LNS_TUNNEL: u32 = 0x3b02;
const LAC_SESSION: u16 = 0x0c11;
const LNS_SESSION: u16 = 0x0d22;
const LNS_OUTGOING: u16 = 0x0d33;
const CHALLENGE: &[u8] = b"@ABCDEFGHIJKLMNO";
const CHALLENGE_BACK: &[u8] = b"`abcdefghi";

/// MD5 computed with Python's hashlib, as the golden files say.
const RESPONSE: [u8; 16] = [
    0xcb, 0x7c, 0xad, 0xb6, 0x7b, 0x91, 0xa8, 0x79, 0x95, 0x3e, 0x70, 0x76, 0x0b, 0xc7, 0x6c, 0xc9,
];
const RESPONSE_BACK: [u8; 16] = [
    0x9a, 0x0d, 0x40, 0xc7, 0x95, 0xa5, 0x05, 0x46, 0xb5, 0x63, 0xc0, 0xc7, 0xba, 0xc8, 0xf7, 0x18,
];

fn check(
    name: &'static str,
    (connection, session): (u32, u16),
    (ns, nr): (u16, u16),
    kind: MessageType,
    avps: &'static [(Attribute, Value)],
) {
    let version = Version::V2;
    let kind = Some(kind);
    Expected {
        name,
        version,
        connection,
        session,
        ns,
        nr,
        kind,
        signed: None,
        avps,
    }
    .check();
}

#[test]
fn sccrq_with_every_avp() {
    check(
        "v2-01-sccrq",
        (0, 0),
        (0, 0),
        MessageType::Sccrq,
        &[
            (A::ProtocolVersion, U16(0x0100)),
            (A::HostName, Bytes(b"lac.example.net")),
            (A::FramingCapabilities, U32(3)),
            (A::AssignedTunnelId, U16(0x2a01)),
            (A::BearerCapabilities, U32(3)),
            (A::ReceiveWindowSize, U16(16)),
            (A::Challenge, Bytes(CHALLENGE)),
            (A::TieBreaker, U64(0x0123_4567_89ab_cdef)),
            (A::FirmwareRevision, U16(0x0110)),
            (A::VendorName, Bytes(b"headend")),
        ],
    );
}

#[test]
fn sccrp_with_every_avp() {
    check(
        "v2-02-sccrp",
        (LAC_TUNNEL, 0),
        (0, 1),
        MessageType::Sccrp,
        &[
            (A::ProtocolVersion, U16(0x0100)),
            (A::FramingCapabilities, U32(1)),
            (A::HostName, Bytes(b"lns.example.net")),
            (A::AssignedTunnelId, U16(0x3b02)),
            (A::BearerCapabilities, U32(0)),
            (A::FirmwareRevision, U16(0x0110)),
            (A::VendorName, Bytes(b"headend")),
            (A::ReceiveWindowSize, U16(8)),
            (A::Challenge, Bytes(CHALLENGE_BACK)),
            (A::ChallengeResponse, Bytes(&RESPONSE)),
        ],
    );
}

#[test]
fn scccn_with_challenge_response() {
    check(
        "v2-03-scccn",
        (LNS_TUNNEL, 0),
        (1, 1),
        MessageType::Scccn,
        &[(A::ChallengeResponse, Bytes(&RESPONSE_BACK))],
    );
}

#[test]
fn challenge_responses_are_those_of_the_golden_messages() {
    for (id, challenge, response) in [(2, CHALLENGE, RESPONSE), (3, CHALLENGE_BACK, RESPONSE_BACK)]
    {
        assert_eq!(auth::challenge_response(id, SECRET, challenge), response);
        assert!(auth::verify_response(id, SECRET, challenge, &response));
        assert!(!auth::verify_response(5 - id, SECRET, challenge, &response));
        assert!(!auth::verify_response(id, b"torch", challenge, &response));
        assert!(!auth::verify_response(
            id,
            SECRET,
            challenge,
            &response[..15]
        ));
    }
}

#[test]
fn zlb_is_a_header_alone() {
    let (version, kind) = (Version::V2, None);
    let (name, connection) = ("v2-04-zlb", LAC_TUNNEL);
    Expected {
        name,
        version,
        connection,
        session: 0,
        ns: 1,
        nr: 2,
        kind,
        signed: None,
        avps: &[],
    }
    .check();
}

#[test]
fn icrq_with_every_avp() {
    check(
        "v2-05-icrq",
        (LNS_TUNNEL, 0),
        (2, 1),
        MessageType::Icrq,
        &[
            (A::AssignedSessionId, U16(LAC_SESSION)),
            (A::CallSerialNumber, U32(66_051)),
            (A::BearerType, U32(2)),
            (A::PhysicalChannelId, U32(31)),
            (A::CallingNumber, Bytes(b"5551234")),
            (A::CalledNumber, Bytes(b"5559876")),
            (A::SubAddress, Bytes(b"77")),
        ],
    );
}

#[test]
fn icrp() {
    check(
        "v2-06-icrp",
        (LAC_TUNNEL, LAC_SESSION),
        (1, 3),
        MessageType::Icrp,
        &[(A::AssignedSessionId, U16(LNS_SESSION))],
    );
}

#[test]
fn iccn_with_every_avp() {
    check(
        "v2-07-iccn",
        (LNS_TUNNEL, LNS_SESSION),
        (3, 2),
        MessageType::Iccn,
        &[
            (A::TxConnectSpeed, U32(56_000)),
            (A::FramingType, U32(1)),
            (
                A::InitialReceivedLcpConfreq,
                Bytes(b"\x01\x04\x05\xdc\x05\x06\x0b\xad\xca\xfe"),
            ),
            (
                A::LastSentLcpConfreq,
                Bytes(b"\x01\x04\x05\xdc\x03\x05\xc2\x23\x05\x05\x06\x00\xc0\xff\xee"),
            ),
            (
                A::LastReceivedLcpConfreq,
                Bytes(b"\x01\x04\x05\xdc\x05\x06\x0b\xad\xca\xfe"),
            ),
            (A::ProxyAuthenType, U16(2)),
            (A::ProxyAuthenName, Bytes(b"alice@example.net")),
            (
                A::ProxyAuthenChallenge,
                Bytes(b"\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f"),
            ),
            (A::ProxyAuthenId, U16(7)),
            (
                A::ProxyAuthenResponse,
                Bytes(b"\x90\x91\x92\x93\x94\x95\x96\x97\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f"),
            ),
            (A::PrivateGroupId, Bytes(b"blue")),
            (A::RxConnectSpeed, U32(33_600)),
            (A::SequencingRequired, Flag),
        ],
    );
}

#[test]
fn ocrq_with_every_avp() {
    check(
        "v2-08-ocrq",
        (LAC_TUNNEL, 0),
        (2, 4),
        MessageType::Ocrq,
        &[
            (A::AssignedSessionId, U16(LNS_OUTGOING)),
            (A::CallSerialNumber, U32(9)),
            (A::MinimumBps, U32(9_600)),
            (A::MaximumBps, U32(64_000)),
            (A::BearerType, U32(1)),
            (A::FramingType, U32(3)),
            (A::CalledNumber, Bytes(b"5550000")),
            (A::SubAddress, Bytes(b"1")),
        ],
    );
}

#[test]
fn ocrp_with_every_avp() {
    check(
        "v2-09-ocrp",
        (LNS_TUNNEL, LNS_OUTGOING),
        (4, 3),
        MessageType::Ocrp,
        &[
            (A::AssignedSessionId, U16(0x0c44)),
            (A::PhysicalChannelId, U32(2)),
        ],
    );
}

#[test]
fn occn_with_every_avp() {
    check(
        "v2-10-occn",
        (LNS_TUNNEL, LNS_OUTGOING),
        (5, 3),
        MessageType::Occn,
        &[
            (A::TxConnectSpeed, U32(64_000)),
            (A::FramingType, U32(1)),
            (A::RxConnectSpeed, U32(64_000)),
            (A::SequencingRequired, Flag),
        ],
    );
}

#[test]
fn wen() {
    check(
        "v2-11-wen",
        (LNS_TUNNEL, LNS_SESSION),
        (6, 3),
        MessageType::Wen,
        &[(
            A::CallErrors,
            Bytes(b"\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x05\0\0\0\x06"),
        )],
    );
}

#[test]
fn sli() {
    check(
        "v2-12-sli",
        (LAC_TUNNEL, LAC_SESSION),
        (3, 7),
        MessageType::Sli,
        &[(A::Accm, Bytes(b"\0\0\0\x0a\0\0\xff\xff\xff\xff"))],
    );
}

#[test]
fn hello() {
    check(
        "v2-13-hello",
        (LNS_TUNNEL, 0),
        (7, 4),
        MessageType::Hello,
        &[],
    );
}

#[test]
fn iccn_with_avps_hidden_under_two_random_vectors() {
    check("v2-14-iccn-hidden", (LNS_TUNNEL, LNS_SESSION), (8, 4), MessageType::Iccn, &[
        (A::TxConnectSpeed, U32(56_000)),
        (A::FramingType, U32(1)),
        (A::ProxyAuthenType, U16(3)),
        (
            A::RandomVector,
            Bytes(b"\xc0\xc1\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xc9\xca\xcb\xcc\xcd\xce\xcf"),
        ),
        (A::ProxyAuthenName, Hidden(b"bob", b"")),
        (
            A::RandomVector,
            Bytes(
                b"\xe0\xe1\xe2\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xea\xeb\xec\xed\xee\xef\xf0\xf1\xf2\xf3",
            ),
        ),
        (
            A::ProxyAuthenResponse,
            Hidden(b"correct horse battery staple and some more", b"0123456"),
        ),
    ]);
}

#[test]
fn cdn_with_every_avp() {
    check(
        "v2-15-cdn",
        (LNS_TUNNEL, LNS_SESSION),
        (9, 4),
        MessageType::Cdn,
        &[
            (A::ResultCode, Result(2, Some(6), "line cut")),
            (A::AssignedSessionId, U16(LAC_SESSION)),
            (A::Q931CauseCode, Bytes(b"\0\x10\x45bye")),
        ],
    );
}

#[test]
fn stopccn_without_error_code() {
    check(
        "v2-16-stopccn",
        (LAC_TUNNEL, 0),
        (4, 10),
        MessageType::StopCcn,
        &[
            (A::AssignedTunnelId, U16(0x3b02)),
            (A::ResultCode, Result(6, None, "")),
        ],
    );
}

const DUAL: &str = "v2-17-sccrq-v3-capable";

#[test]
fn sccrq_for_either_version_is_whole_in_v2() {
    check(
        DUAL,
        (0, 0),
        (0, 0),
        MessageType::Sccrq,
        &[
            (A::ProtocolVersion, U16(0x0100)),
            (A::HostName, Bytes(b"lac.example.net")),
            (A::FramingCapabilities, U32(3)),
            (A::AssignedTunnelId, U16(0x2a77)),
            (A::RouterId, U32(0xc000_0201)),
            (A::AssignedControlConnectionId, U32(0x1122_3344)),
            (A::PseudowireCapabilitiesList, Bytes(&[0, 7, 0, 5])),
        ],
    );
}

#[test]
fn sccrq_for_either_version_is_whole_in_v3() {
    let golden = super::golden::all()
        .into_iter()
        .find(|golden| golden.name == DUAL);
    let octets = golden.expect("the golden packet").octets;
    let message = Message::parse(Version::V3, &octets[wire::l2tp::CONTROL_HEADER_LEN..]);
    assert_eq!(
        (message.fault(), message.unrecognised_mandatory()),
        (None, None)
    );
    assert_eq!(message.get(A::HostName), Some(&b"lac.example.net"[..]));
    assert_eq!(
        message.u32(A::AssignedControlConnectionId),
        Some(0x1122_3344)
    );
    assert_eq!(message.u32(A::RouterId), Some(0xc000_0201));
    assert_eq!(
        message.get(A::PseudowireCapabilitiesList),
        Some(&[0, 7, 0, 5][..])
    );
    assert_eq!(message.get(A::AssignedTunnelId), None);
}

/// RFC 5515 6.2.
#[test]
fn icrq_whose_lac_may_send_speed_updates() {
    check(
        "v2-18-icrq-updates",
        (LNS_TUNNEL, 0),
        (3, 2),
        MessageType::Icrq,
        &[
            (A::AssignedSessionId, U16(LAC_SESSION)),
            (A::CallSerialNumber, U32(1)),
            (A::ConnectSpeedUpdateEnable, Flag),
        ],
    );
}

/// RFC 5515 4.1 and 6.1: the id is the receiver's, and the speeds have 32 bits.
#[test]
fn csun() {
    check(
        "v2-19-csun",
        (LNS_TUNNEL, 0),
        (6, 3),
        MessageType::Csun,
        &[(
            A::ConnectSpeedUpdate,
            Bytes(b"\0\0\x0d\x22\x05\xf5\xe1\0\x02\x62\x5a\0"),
        )],
    );
}

/// RFC 5515 4.2: both speeds are 0.
#[test]
fn csurq() {
    check(
        "v2-20-csurq",
        (LAC_TUNNEL, 0),
        (4, 7),
        MessageType::Csurq,
        &[(
            A::ConnectSpeedUpdate,
            Bytes(b"\0\0\x0c\x11\0\0\0\0\0\0\0\0"),
        )],
    );
}

/// RFC 3145 2.
#[test]
fn cdn_with_the_reason_why_ppp_ended() {
    check(
        "v2-21-cdn-cause",
        (LAC_TUNNEL, LAC_SESSION),
        (5, 7),
        MessageType::Cdn,
        &[
            (A::ResultCode, Result(3, None, "")),
            (A::AssignedSessionId, U16(LNS_SESSION)),
            (A::PppDisconnectCauseCode, Bytes(b"\0\x10\xc2\x23\x01no")),
        ],
    );
}
