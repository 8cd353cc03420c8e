//! The examples of RFC 2865, section 7, and bytes that are not a packet.

use super::attribute::{CHAP_PASSWORD, FRAMED_IP_ADDRESS, USER_NAME, USER_PASSWORD};
use super::secret::{
    Signature, hide_password, reveal_password, signature, verify_reply, verify_request,
};
use super::*;

/// The secret of the examples (RFC 2865, section 7).
const SECRET: &[u8] = b"xyzzy5461";

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter_map(|digit| char::from(digit).to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn nemo() -> [Vec<u8>; 2] {
    [
        hex("01 00 00 38 0f 40 3f 94 73 97 80 57 bd 83 d5 cb
             98 f4 22 7a 01 06 6e 65 6d 6f 02 12 0d be 70 8d
             93 d4 13 ce 31 96 e4 3f 78 2a 0a ee 04 06 c0 a8
             01 10 05 06 00 00 00 03"),
        hex("02 00 00 26 86 fe 22 0e 76 24 ba 2a 10 05 f6 bf
             9b 55 e0 b2 06 06 00 00 00 01 0f 06 00 00 00 00
             0e 06 c0 a8 01 03"),
    ]
}

fn flopsy() -> [Vec<u8>; 2] {
    [
        hex("01 01 00 47 2a ee 86 f0 8d 0d 55 96 9c a5 97 8e
             0d 33 67 a2 01 08 66 6c 6f 70 73 79 03 13 16 e9
             75 57 c3 16 18 58 95 f2 93 ff 63 44 07 72 75 04
             06 c0 a8 01 10 05 06 00 00 00 14 06 06 00 00 00
             02 07 06 00 00 00 01"),
        hex("02 01 00 38 15 ef bc 7d ab 26 cf a3 dc 34 d9 c0
             3c 86 01 a4 06 06 00 00 00 02 07 06 00 00 00 01
             08 06 ff ff ff fe 0a 06 00 00 00 02 0d 06 00 00
             00 01 0c 06 00 00 05 dc"),
    ]
}

#[test]
fn the_rfc_s_password_is_hidden_and_revealed() {
    let [octets, _] = nemo();
    let request = Packet::parse(&octets).unwrap();
    assert_eq!(request.find(USER_NAME).unwrap().text(), Some("nemo"));
    let hidden = request.find(USER_PASSWORD).unwrap().value;
    let authenticator = request.authenticator();
    let revealed = reveal_password(hidden, SECRET, &authenticator).unwrap();
    assert_eq!(revealed, b"arctangent");
    let mut again = Vec::new();
    hide_password(b"arctangent", SECRET, &authenticator, &mut again);
    assert_eq!(again, hidden);
}

#[test]
fn the_rfc_s_replies_are_right_for_their_requests_and_for_no_others() {
    let [nemo_request, nemo_reply] = nemo();
    let [flopsy_request, flopsy_reply] = flopsy();
    let authenticator = |octets: &[u8]| Packet::parse(octets).unwrap().authenticator();
    let right = |reply: &[u8], request: &[u8], secret: &[u8]| {
        verify_reply(
            &Packet::parse(reply).unwrap(),
            &authenticator(request),
            secret,
        )
    };
    assert!(right(&nemo_reply, &nemo_request, SECRET));
    assert!(right(&flopsy_reply, &flopsy_request, SECRET));
    assert!(!right(&flopsy_reply, &nemo_request, SECRET));
    assert!(!right(&nemo_reply, &nemo_request, b"another"));
    let mut altered = flopsy_reply.clone();
    *altered.last_mut().unwrap() ^= 1;
    assert!(!right(&altered, &flopsy_request, SECRET));
}

#[test]
fn the_rfc_s_chap_is_the_response_to_the_request_s_authenticator() {
    let [octets, reply] = flopsy();
    let request = Packet::parse(&octets).unwrap();
    let proof = request.find(CHAP_PASSWORD).unwrap().value;
    assert_eq!((proof[0], proof.len()), (0x16, 17));
    let reply = Packet::parse(&reply).unwrap();
    let address = reply.find(FRAMED_IP_ADDRESS).unwrap().address().unwrap();
    assert_eq!(address.octets(), [255, 255, 255, 254]);
}

#[test]
fn what_is_written_is_read_and_its_signatures_are_right() {
    let authenticator = [7; 16];
    let mut out = b"before".to_vec();
    let mut request = Writer::new(&mut out, code::ACCESS_REQUEST, 9, &authenticator);
    request
        .message_authenticator()
        .attribute(USER_NAME, b"alice");
    request.finish(SECRET).unwrap();
    let packet = Packet::parse(&out[6..]).unwrap();
    assert_eq!(packet.authenticator(), authenticator);
    assert_eq!(signature(&packet, &authenticator, SECRET), Signature::Right);
    assert_eq!(
        signature(&packet, &authenticator, b"wrong"),
        Signature::Wrong
    );

    let mut reply = Vec::new();
    let mut writer = Writer::new(&mut reply, code::ACCESS_ACCEPT, 9, &authenticator);
    writer.message_authenticator().integer(27, 3_600);
    writer.finish_signed(SECRET).unwrap();
    let packet = Packet::parse(&reply).unwrap();
    assert!(verify_reply(&packet, &authenticator, SECRET));
    assert_eq!(signature(&packet, &authenticator, SECRET), Signature::Right);
    assert_eq!(signature(&packet, &[8; 16], SECRET), Signature::Wrong);
    assert_eq!(packet.find(27).unwrap().integer(), Some(3_600));

    let mut accounting = Vec::new();
    let mut writer = Writer::new(&mut accounting, code::ACCOUNTING_REQUEST, 1, &[0; 16]);
    writer.integer(40, attribute::status::START);
    writer.finish_signed(SECRET).unwrap();
    let packet = Packet::parse(&accounting).unwrap();
    assert!(verify_request(&packet, SECRET));
    assert_eq!(signature(&packet, &[0; 16], SECRET), Signature::Missing);
}

#[test]
fn a_signature_that_is_there_twice_or_too_short_is_wrong() {
    for values in [&[&[0; 16][..], &[0; 16]][..], &[&[0; 15]]] {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, code::ACCESS_ACCEPT, 1, &[1; 16]);
        for value in values {
            writer.attribute(attribute::MESSAGE_AUTHENTICATOR, value);
        }
        writer.finish_signed(SECRET).unwrap();
        let packet = Packet::parse(&out).unwrap();
        assert_eq!(signature(&packet, &[1; 16], SECRET), Signature::Wrong);
    }
}

#[test]
fn impossible_lengths_are_refused_and_padding_is_not_read() {
    let [octets, _] = nemo();
    assert_eq!(
        Packet::parse(&octets[..55]).unwrap_err(),
        ParseError::Truncated
    );
    assert_eq!(
        Packet::parse(&octets[..19]).unwrap_err(),
        ParseError::Truncated
    );
    let mut short = octets.clone();
    short[3] = 19;
    assert_eq!(Packet::parse(&short).unwrap_err(), ParseError::Length(19));
    let mut bad = octets.clone();
    bad[27] = 1;
    assert_eq!(Packet::parse(&bad).unwrap_err(), ParseError::Attribute(26));
    let padded = [&octets[..], &[0; 9]].concat();
    assert_eq!(Packet::parse(&padded).unwrap().octets(), octets);
}

#[test]
fn what_has_no_room_is_no_packet() {
    let mut out = vec![1, 2, 3];
    let mut writer = Writer::new(&mut out, code::ACCESS_REQUEST, 1, &[0; 16]);
    for _ in 0..17 {
        writer.attribute(USER_NAME, &[b'x'; 253]);
    }
    assert!(writer.finish(SECRET).is_err());
    assert_eq!(out, [1, 2, 3]);
    let mut writer = Writer::new(&mut out, code::ACCESS_REQUEST, 1, &[0; 16]);
    writer.attribute(USER_NAME, &[0; 254]);
    assert!(writer.finish(SECRET).is_err());
}

#[test]
fn passwords_of_every_length_survive() {
    for length in 0..=128_usize {
        let password: Vec<u8> = (0..length).map(|n| n as u8 | 1).collect();
        let mut hidden = Vec::new();
        hide_password(&password, SECRET, &[3; 16], &mut hidden);
        assert_eq!(hidden.len(), length.div_ceil(16).max(1) * 16);
        assert_eq!(reveal_password(&hidden, SECRET, &[3; 16]), Some(password));
    }
    assert_eq!(reveal_password(&[0; 15], SECRET, &[3; 16]), None);
    assert_eq!(reveal_password(&[], SECRET, &[3; 16]), None);
    assert_eq!(reveal_password(&[0; 144], SECRET, &[3; 16]), None);
}

#[test]
fn a_list_of_attributes_waits_without_a_header_and_is_put_into_a_packet_later() {
    let mut waiting = b"before".to_vec();
    let mut list = List::new(&mut waiting);
    list.integer(attribute::ACCT_STATUS_TYPE, attribute::status::STOP)
        .tagged_integer(attribute::TUNNEL_TYPE, attribute::tunnel_type::L2TP)
        .tagged_string(attribute::TUNNEL_CLIENT_ENDPOINT, b"192.0.2.1");
    list.finish().unwrap();
    let octets = &waiting[6..];
    assert_eq!(
        octets,
        hex("28 06 00 00 00 02 40 06 00 00 00 03
             42 0c 00 31 39 32 2e 30 2e 32 2e 31")
    );
    let attributes = Attributes::parse(octets).unwrap();
    assert_eq!(attributes.octets(), octets);
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, code::ACCOUNTING_REQUEST, 1, &[0; 16]);
    writer.list().encoded(attributes);
    writer.finish_signed(SECRET).unwrap();
    assert_eq!(&out[HEADER..], octets);
    assert_eq!(
        Attributes::parse(&octets[..octets.len() - 1]).unwrap_err(),
        ParseError::Attribute(12)
    );
    assert_eq!(
        Attributes::parse(&[0; 4_077]).unwrap_err(),
        ParseError::Length(4_077)
    );
}

#[test]
fn a_list_that_is_too_long_leaves_its_buffer_alone() {
    let mut out = vec![1, 2];
    let mut list = List::new(&mut out);
    for _ in 0..17 {
        list.tagged_string(TUNNEL_TEXT, &[b'x'; 252]);
    }
    assert_eq!(list.finish(), Err(TooLong));
    assert_eq!(out, [1, 2]);
    let mut list = List::new(&mut out);
    list.tagged_string(TUNNEL_TEXT, &[b'x'; 253]);
    assert_eq!(list.finish(), Err(TooLong));
}

const TUNNEL_TEXT: u8 = attribute::TUNNEL_CLIENT_AUTH_ID;
