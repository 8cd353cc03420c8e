//! L2TP packet headers: a parsed header can be written, and reads back the same.

use wire::l2tp::data::{Sublayer, emit_data_v3};
use wire::l2tp::{
    CONTROL_HEADER_LEN, Control, DataV2, DataV3, Packet, ParseError, emit_control, parse,
};

/// Takes a UDP payload.
///
/// # Panics
/// If a header differs from the datagram's bytes.
pub fn target(data: &[u8]) {
    match parse(data) {
        Ok(Packet::Control(control)) => check_control(data, &control),
        Ok(Packet::DataV2(message)) => check_v2(data, &message),
        Ok(Packet::DataV3(message)) => check_v3(data, &message),
        Err(error) => check_error(data, error),
    }
}

fn check_control(data: &[u8], control: &Control<'_>) {
    let length = usize::from(u16::from_be_bytes([data[2], data[3]]));
    assert_eq!(control.whole, &data[..length]);
    assert_eq!(control.body, &data[CONTROL_HEADER_LEN..length]);
    let mut out = Vec::new();
    let Control {
        version,
        connection,
        session,
        ns,
        nr,
        body,
        ..
    } = *control;
    emit_control(&mut out, version, connection, session, ns, nr, body);
    assert_eq!(
        out[..2],
        [0xc8, version.number()],
        "reserved bits are sent as 0"
    );
    assert_eq!(out[2..], control.whole[2..]);
}

fn check_v2(data: &[u8], message: &DataV2<'_>) {
    let len = message.header_len() + message.payload.len();
    assert!(len <= data.len());
    assert!(message.with_length || len == data.len());
    assert_eq!(message.payload, &data[message.header_len()..len]);
    let mut out = Vec::new();
    message.emit(&mut out);
    assert_eq!(out.len(), len);
    assert_eq!(parse(&out), Ok(Packet::DataV2(*message)));
}

fn check_v3(data: &[u8], message: &DataV3<'_>) {
    assert_eq!(message.rest, &data[8..]);
    for cookie_len in [0, 4, 8] {
        let Some((cookie, after)) = message.cookie(cookie_len) else {
            assert!(message.rest.len() < cookie_len);
            continue;
        };
        assert_eq!(
            (cookie.len(), cookie.len() + after.len()),
            (cookie_len, message.rest.len())
        );
        let sublayer = Sublayer::parse(after);
        assert_eq!(sublayer.is_none(), after.len() < 4);
        let frame = sublayer.map_or(after, |(_, frame)| frame);
        let sublayer = sublayer.map(|(sublayer, _)| sublayer);
        let mut out = Vec::new();
        emit_data_v3(&mut out, message.session, cookie, sublayer, frame);
        assert_eq!(out.len(), data.len());
        assert_eq!(out[..4], [0, 3, 0, 0], "reserved bits are sent as 0");
        assert_eq!(out[4..8 + cookie_len], data[4..8 + cookie_len]);
        let Ok(Packet::DataV3(again)) = parse(&out) else {
            panic!("reads as it was written")
        };
        let (_, after) = again.cookie(cookie_len).expect("as long as before");
        assert_eq!(Sublayer::parse(after).map(|(s, _)| s), sublayer);
    }
}

fn check_error(data: &[u8], error: ParseError) {
    let version = data.get(1).map(|octet| octet & 0x0f);
    match error {
        ParseError::UnsupportedVersion(found) => {
            assert!(Some(found) == version && found != 2 && found != 3);
        }
        ParseError::Truncated => {
            // Only a datagram shorter than its header, or than its Length.
            let length = data
                .get(2..4)
                .map(|l| usize::from(u16::from_be_bytes([l[0], l[1]])));
            assert!(data.len() < 14 || length.is_some_and(|length| length > data.len()));
        }
        ParseError::BadFlags | ParseError::BadLength => assert!(data.len() >= 2),
        ParseError::BadOffset => assert!(version == Some(2) && data[0] & 0x82 == 0x02),
    }
}
