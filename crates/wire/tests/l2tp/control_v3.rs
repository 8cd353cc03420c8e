//! Every control message of L2TPv3, read from its golden bytes and written to the same bytes.

use super::expect::Value::{Bytes, Flag, Hidden, Result, U16, U32, U64};
use super::expect::{Expected, SECRET, Signed, Value};
use wire::l2tp::Attribute as A;
use wire::l2tp::{Attribute, DigestType, MessageType, Version};

const A_CONNECTION: u32 = 0x1a2b_3c4d;
const B_CONNECTION: u32 = 0x5e6f_7081;
const A_NONCE: &[u8] = b"\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f";
const B_NONCE: &[u8] = b"\x20\x21\x22\x23\x24\x25\x26\x27\x28\x29\x2a\x2b\x2c\x2d\x2e\x2f0123";
const MD5: &[(DigestType, &[u8])] = &[(DigestType::HmacMd5, SECRET)];
const SHA1: &[(DigestType, &[u8])] = &[(DigestType::HmacSha1, SECRET)];
const A_SESSION: u32 = 0xa000_0001;
const B_SESSION: u32 = 0xb000_0002;
const A_OUTGOING: u32 = 0xa000_0003;
const B_OUTGOING: u32 = 0xb000_0004;

fn check(
    name: &'static str,
    connection: u32,
    (ns, nr): (u16, u16),
    kind: Option<MessageType>,
    signed: Option<Signed>,
    avps: &'static [(Attribute, Value)],
) {
    let (version, session) = (Version::V3, 0);
    Expected {
        name,
        version,
        connection,
        session,
        ns,
        nr,
        kind,
        signed,
        avps,
    }
    .check();
}

/// A message from A to B, with A's digest.
fn a_to_b(
    name: &'static str,
    seq: (u16, u16),
    kind: MessageType,
    avps: &'static [(Attribute, Value)],
) {
    check(name, B_CONNECTION, seq, Some(kind), from_a(MD5), avps);
}

/// A message from B to A, with B's digest.
fn b_to_a(
    name: &'static str,
    seq: (u16, u16),
    kind: MessageType,
    avps: &'static [(Attribute, Value)],
) {
    check(name, A_CONNECTION, seq, Some(kind), from_b(MD5), avps);
}

fn from_a(digests: &'static [(DigestType, &'static [u8])]) -> Option<Signed> {
    Some(Signed {
        digests,
        sender_nonce: A_NONCE,
        receiver_nonce: B_NONCE,
    })
}

fn from_b(digests: &'static [(DigestType, &'static [u8])]) -> Option<Signed> {
    Some(Signed {
        digests,
        sender_nonce: B_NONCE,
        receiver_nonce: A_NONCE,
    })
}

fn without_nonces(digests: &'static [(DigestType, &'static [u8])]) -> Option<Signed> {
    Some(Signed {
        digests,
        sender_nonce: &[],
        receiver_nonce: &[],
    })
}

#[test]
fn sccrq_with_digest_and_nonce() {
    check(
        "v3-01-sccrq",
        0,
        (0, 0),
        Some(MessageType::Sccrq),
        without_nonces(MD5),
        &[
            (A::HostName, Bytes(b"a.example.net")),
            (A::RouterId, U32(0xc000_0201)),
            (A::AssignedControlConnectionId, U32(A_CONNECTION)),
            (A::PseudowireCapabilitiesList, Bytes(&[0, 4, 0, 5, 0, 7])),
            (A::ControlMessageAuthenticationNonce, Bytes(A_NONCE)),
            (A::TieBreaker, U64(0xfedc_ba98_7654_3210)),
            (A::VendorName, Bytes(b"headend")),
            (A::ReceiveWindowSize, U16(16)),
            (A::PreferredLanguage, Bytes(b"en")),
        ],
    );
}

#[test]
fn sccrp_with_digest_and_nonce() {
    b_to_a(
        "v3-02-sccrp",
        (0, 1),
        MessageType::Sccrp,
        &[
            (A::HostName, Bytes(b"b.example.net")),
            (A::RouterId, U32(0xc000_0202)),
            (A::AssignedControlConnectionId, U32(B_CONNECTION)),
            (A::PseudowireCapabilitiesList, Bytes(&[0, 5])),
            (A::ControlMessageAuthenticationNonce, Bytes(B_NONCE)),
            (A::ReceiveWindowSize, U16(4)),
        ],
    );
}

#[test]
fn scccn() {
    a_to_b("v3-03-scccn", (1, 1), MessageType::Scccn, &[]);
}

#[test]
fn explicit_acknowledgement() {
    b_to_a("v3-04-ack", (1, 2), MessageType::Ack, &[]);
}

#[test]
fn hello_with_a_sha1_digest() {
    check(
        "v3-05-hello",
        B_CONNECTION,
        (2, 1),
        Some(MessageType::Hello),
        from_a(SHA1),
        &[],
    );
}

#[test]
fn icrq_with_every_avp_in_the_clear() {
    a_to_b(
        "v3-06-icrq",
        (3, 1),
        MessageType::Icrq,
        &[
            (A::LocalSessionId, U32(A_SESSION)),
            (A::RemoteSessionId, U32(0)),
            (A::CallSerialNumber, U32(1)),
            (A::PseudowireType, U16(5)),
            (A::RemoteEndId, Bytes(b"circuit-1")),
            (A::CircuitStatus, U16(3)),
            (A::AssignedCookie, U64(0x1122_3344_5566_7788)),
            (A::TieBreaker, U64(0x0f)),
            (A::L2SpecificSublayer, U16(1)),
            (A::DataSequencing, U16(2)),
            (A::TxConnectSpeedBps, U64(10_000_000_000)),
            (A::RxConnectSpeedBps, U64(1_000_000_000)),
            (A::PhysicalChannelId, U32(3)),
        ],
    );
}

#[test]
fn icrp_with_a_cookie_of_four_octets() {
    b_to_a(
        "v3-07-icrp",
        (1, 4),
        MessageType::Icrp,
        &[
            (A::LocalSessionId, U32(B_SESSION)),
            (A::RemoteSessionId, U32(A_SESSION)),
            (A::CircuitStatus, U16(3)),
            (A::AssignedCookie, Bytes(b"\xaa\xbb\xcc\xdd")),
            (A::L2SpecificSublayer, U16(1)),
        ],
    );
}

#[test]
fn iccn() {
    a_to_b(
        "v3-08-iccn",
        (4, 2),
        MessageType::Iccn,
        &[
            (A::LocalSessionId, U32(A_SESSION)),
            (A::RemoteSessionId, U32(B_SESSION)),
            (A::CircuitStatus, U16(1)),
        ],
    );
}

#[test]
fn ocrq_with_an_empty_cookie() {
    b_to_a(
        "v3-09-ocrq",
        (2, 5),
        MessageType::Ocrq,
        &[
            (A::LocalSessionId, U32(B_OUTGOING)),
            (A::RemoteSessionId, U32(0)),
            (A::CallSerialNumber, U32(2)),
            (A::PseudowireType, U16(5)),
            (A::RemoteEndId, Bytes(b"circuit-2")),
            (A::CircuitStatus, U16(2)),
            (A::AssignedCookie, Flag),
        ],
    );
}

#[test]
fn ocrp() {
    a_to_b(
        "v3-10-ocrp",
        (5, 3),
        MessageType::Ocrp,
        &[
            (A::LocalSessionId, U32(A_OUTGOING)),
            (A::RemoteSessionId, U32(B_OUTGOING)),
            (A::CircuitStatus, U16(3)),
            (A::PhysicalChannelId, U32(4)),
        ],
    );
}

#[test]
fn occn() {
    a_to_b(
        "v3-11-occn",
        (6, 3),
        MessageType::Occn,
        &[
            (A::LocalSessionId, U32(A_OUTGOING)),
            (A::RemoteSessionId, U32(B_OUTGOING)),
            (A::DataSequencing, U16(0)),
        ],
    );
}

#[test]
fn wen() {
    a_to_b(
        "v3-12-wen",
        (7, 3),
        MessageType::Wen,
        &[
            (A::LocalSessionId, U32(A_SESSION)),
            (A::RemoteSessionId, U32(B_SESSION)),
            (
                A::CallErrors,
                Bytes(b"\0\0\0\0\0\0\0\0\0\0\0\0\0\x03\0\0\0\x04\0\0\0\x05\0\0\0\x06"),
            ),
        ],
    );
}

#[test]
fn sli() {
    a_to_b(
        "v3-13-sli",
        (8, 3),
        MessageType::Sli,
        &[
            (A::LocalSessionId, U32(A_SESSION)),
            (A::RemoteSessionId, U32(B_SESSION)),
            (A::CircuitStatus, U16(0)),
        ],
    );
}

#[test]
fn icrq_with_hidden_avps_under_the_derived_key() {
    a_to_b(
        "v3-14-icrq-hidden",
        (9, 3),
        MessageType::Icrq,
        &[
            (A::LocalSessionId, U32(0xa000_0005)),
            (A::RemoteSessionId, U32(0)),
            (A::CallSerialNumber, U32(3)),
            (A::PseudowireType, U16(5)),
            (A::RandomVector, Bytes(b"pqrstuvwxyz{|}~\x7f")),
            (
                A::RemoteEndId,
                Hidden(
                    b"a remote end of more than two blocks",
                    b"\0\x01\x02\x03\x04",
                ),
            ),
            (A::CircuitStatus, Hidden(b"\0\x03", b"")),
        ],
    );
}

#[test]
fn cdn_with_error_message() {
    b_to_a(
        "v3-15-cdn",
        (3, 10),
        MessageType::Cdn,
        &[
            (A::ResultCode, Result(14, Some(0), "no such pseudowire")),
            (A::LocalSessionId, U32(B_SESSION)),
            (A::RemoteSessionId, U32(A_SESSION)),
        ],
    );
}

#[test]
fn hello_with_two_digests_is_right_under_either_secret() {
    let two: &[(DigestType, &[u8])] = &[
        (DigestType::HmacMd5, b"candle"),
        (DigestType::HmacSha1, SECRET),
    ];
    let hello = Some(MessageType::Hello);
    check(
        "v3-16-hello-two-digests",
        A_CONNECTION,
        (4, 10),
        hello,
        from_b(two),
        &[],
    );
}

#[test]
fn stopccn() {
    b_to_a(
        "v3-17-stopccn",
        (5, 10),
        MessageType::StopCcn,
        &[
            (A::ResultCode, Result(2, Some(8), "0/99")),
            (A::AssignedControlConnectionId, U32(B_CONNECTION)),
        ],
    );
}

#[test]
fn sccrq_with_only_what_it_must_carry() {
    check(
        "v3-20-sccrq-plain",
        0,
        (0, 0),
        Some(MessageType::Sccrq),
        None,
        &[
            (A::HostName, Bytes(b"c")),
            (A::RouterId, U32(0)),
            (A::AssignedControlConnectionId, U32(0xc0c)),
            (A::PseudowireCapabilitiesList, Bytes(&[0, 7])),
        ],
    );
}

#[test]
fn zlb_is_a_header_alone() {
    check("v3-21-zlb", 0xc0c, (0, 1), None, None, &[]);
}

#[test]
fn hello_with_a_digest_for_integrity_only() {
    let empty: &[(DigestType, &[u8])] = &[(DigestType::HmacMd5, b"")];
    let hello = Some(MessageType::Hello);
    check(
        "v3-22-hello-integrity",
        0xc0c,
        (0, 1),
        hello,
        without_nonces(empty),
        &[],
    );
}

/// RFC 5515 6.1: the speeds have 64 bits.
#[test]
fn csun() {
    a_to_b(
        "v3-17-csun",
        (9, 3),
        MessageType::Csun,
        &[(
            A::ConnectSpeedUpdate,
            Bytes(b"\xb0\0\0\x02\0\0\0\x02\x54\x0b\xe4\0\0\0\0\0\x3b\x9a\xca\0"),
        )],
    );
}

/// RFC 5515 6.2.
#[test]
fn icrq_whose_lcce_may_send_speed_updates() {
    a_to_b(
        "v3-18-icrq-updates",
        (10, 3),
        MessageType::Icrq,
        &[
            (A::LocalSessionId, U32(A_SESSION)),
            (A::ConnectSpeedUpdateEnable, Flag),
        ],
    );
}

/// RFC 3145 2.
#[test]
fn cdn_with_the_reason_why_ppp_ended() {
    a_to_b(
        "v3-19-cdn-cause",
        (11, 3),
        MessageType::Cdn,
        &[
            (A::ResultCode, Result(3, None, "")),
            (A::LocalSessionId, U32(A_SESSION)),
            (A::RemoteSessionId, U32(B_SESSION)),
            (A::PppDisconnectCauseCode, Bytes(b"\0\x08\xc0\x21\0")),
        ],
    );
}
