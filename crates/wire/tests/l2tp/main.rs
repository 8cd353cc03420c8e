//! Tests L2TP encoding against the golden packets of `testdata/l2tp`, which were derived by hand from RFC 2661
//! and RFC 3931, against random input, and against the page that documents the attributes.
#![forbid(unsafe_code)]

mod attribute_page;
mod control_v2;
mod control_v3;
mod data;
mod expect;
mod golden;
mod properties;

use wire::l2tp::{Attribute, Message, Packet, Version, parse};

/// A golden packet that no test reads would verify nothing.
#[test]
fn every_golden_packet_is_named_by_a_test() {
    let sources = [
        include_str!("control_v2.rs"),
        include_str!("control_v3.rs"),
        include_str!("data.rs"),
    ];
    for golden in golden::all() {
        let quoted = format!("\"{}\"", golden.name);
        assert!(
            sources.iter().any(|source| source.contains(&quoted)),
            "{quoted}"
        );
    }
}

#[test]
fn every_golden_control_message_carries_its_recipient_s_identifier() {
    for golden in golden::all() {
        let Ok(Packet::Control(control)) = parse(&golden.octets) else {
            continue;
        };
        let recipient: &[u32] = if golden.from_lac {
            &[0x3b02, 0x5e6f_7081]
        } else {
            &[0x2a01, 0x1a2b_3c4d, 0xc0c]
        };
        let connection = control.connection;
        assert!(
            connection == 0 || recipient.contains(&connection),
            "{}",
            golden.name
        );
    }
}

/// This ties its number, M bit and length to bytes derived by hand. The Extended Vendor ID has its own test,
/// because tshark misreads it.
#[test]
fn every_attribute_of_a_version_stands_in_one_of_its_golden_messages() {
    for version in [Version::V2, Version::V3] {
        let mut missing: Vec<_> = Attribute::all()
            .iter()
            .filter(|a| a.defined_in(version))
            .collect();
        for golden in golden::all() {
            let Ok(Packet::Control(control)) = parse(&golden.octets) else {
                continue;
            };
            if control.version == version {
                let message = Message::parse(version, control.body);
                missing.retain(|a| !message.avps().any(|avp| avp.known() == Some(**a)));
            }
        }
        missing.retain(|a| **a != Attribute::ExtendedVendorId);
        assert!(missing.is_empty(), "{version:?}: {missing:?}");
    }
}
