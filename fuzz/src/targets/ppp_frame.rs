//! PPP frames as a tunnel carries them: the frame's header, control packets, options, PAP, CHAP,
//! the messages of MS-CHAP, and EAP.

use wire::ppp::control::{self, Control, Options, emit_option};
use wire::ppp::{Compression, Frame, FrameError, chap, eap, mschap, pap};

/// Takes a frame.
///
/// # Panics
/// If a parsed value is not in the frame, or is not written again as it was read.
pub fn target(data: &[u8]) {
    match Frame::parse(data) {
        Ok(frame) => check_frame(data, &frame),
        Err(FrameError::Truncated) => assert!(data.len() < 4),
        Err(FrameError::Protocol(number)) => assert_eq!(number & 1, 0),
    }
    check_control(data);
    check_proofs(data);
}

fn check_frame(data: &[u8], frame: &Frame<'_>) {
    assert!(data.ends_with(frame.information));
    assert_eq!(frame.protocol & 1, 1);
    for (protocol, address) in [(false, false), (false, true), (true, false), (true, true)] {
        let (head, length) = Compression { protocol, address }.head(frame.protocol);
        let octets = [&head[..length], frame.information].concat();
        let again = Frame::parse(&octets);
        // A protocol number with an odd first octet has no two-octet form, and one that looks like an address
        // is reserved for that reason.
        if frame.protocol >> 8 & 1 == 0 && frame.protocol != 0xff {
            assert_eq!(again, Ok(*frame));
        }
    }
    check_control(frame.information);
}

fn check_control(data: &[u8]) {
    let Ok(packet) = Control::parse(data) else {
        return;
    };
    assert!(packet.data.len() + control::HEADER <= data.len());
    let mut again = Vec::new();
    control::emit(&mut again, packet.code, packet.identifier, |out| {
        out.extend_from_slice(packet.data);
    });
    assert!(data.starts_with(&again));

    let options = Options::new(packet.data);
    let mut octets = Vec::new();
    for option in options {
        assert_eq!(option.octets[2..], *option.data);
        emit_option(&mut octets, option.kind, option.data);
    }
    assert!(packet.data.starts_with(&octets));
    assert_eq!(options.are_whole(), octets.len() == packet.data.len());
}

fn check_proofs(data: &[u8]) {
    if let Some(request) = pap::Request::parse(data) {
        let mut again = Vec::new();
        request.emit(&mut again);
        assert!(data.starts_with(&again));
    }
    assert!(pap::message(data).len() < data.len().max(1));
    if let Some(value) = chap::Value::parse(data) {
        let mut again = Vec::new();
        value.emit(&mut again);
        assert_eq!(again, data);
        if let Ok(value) = value.value.try_into() {
            let response = mschap::Response::parse(value).to_octets();
            assert_eq!(
                (&response[..16], &response[24..48]),
                (&value[..16], &value[24..48])
            );
        }
    }
    if let Some(packet) = eap::Packet::parse(data) {
        assert!(data.starts_with(packet.octets) && packet.octets.ends_with(packet.data));
        assert_eq!(packet.octets.len(), packet.data.len() + 5);
        assert_eq!(eap::Packet::parse(packet.octets), Some(packet));
    }
    if let Some((error, text)) = mschap::parse_failure(data) {
        assert!(data.starts_with(b"E=") && data.ends_with(text));
        let mut again = Vec::new();
        mschap::emit_failure(&mut again, error, &[0; 16], text);
        let (same, longer) = mschap::parse_failure(&again).expect("it was written here");
        assert!(same == error && text.ends_with(longer));
    }
    if let Some((response, text)) = mschap::parse_success(data) {
        assert!(data.starts_with(response) && data.ends_with(text));
    }
}
