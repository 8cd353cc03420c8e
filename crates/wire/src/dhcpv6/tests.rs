use proptest::prelude::*;

use super::*;

/// A Solicit as RFC 8415 lays it out: Client Identifier, Elapsed Time, Option Request, IA_PD with a hint.
const SOLICIT: &[u8] = &[
    1, 0x12, 0x34, 0x56, // Solicit, transaction
    0, 1, 0, 10, 0, 3, 0, 1, 2, 0, 0, 0, 0, 7, // DUID-LL
    0, 8, 0, 2, 0, 0, // Elapsed Time
    0, 6, 0, 4, 0, 23, 0, 24, // Option Request
    0, 25, 0, 41, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, // IA_PD
    0, 26, 0, 25, 0, 0, 0, 1, 0, 0, 0, 2, 56, // IA Prefix
    0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

#[test]
fn a_solicit_is_read_field_by_field() {
    let message = Message::read(SOLICIT).unwrap();
    assert_eq!(
        (message.kind, message.transaction),
        (Kind::Solicit, [0x12, 0x34, 0x56])
    );
    let duid: &[u8] = &[0, 3, 0, 1, 2, 0, 0, 0, 0, 7];
    assert_eq!(message.options.only(code::CLIENT_ID), Ok(Some(duid)));
    assert_eq!(message.options.only(code::SERVER_ID), Ok(None));
    assert!(message.options.requests(23) && !message.options.requests(31));
    let value = message.options.only(code::IA_PD).unwrap().unwrap();
    let association = Association::read(value).unwrap();
    assert_eq!(association.iaid, 9);
    let lease = Lease {
        address: "2001:db8::".parse().unwrap(),
        length: Some(56),
        preferred_s: 1,
        valid_s: 2,
    };
    assert_eq!(association.leases().collect::<Vec<_>>(), [lease]);
}

#[test]
fn the_same_octets_are_written() {
    let mut out = Vec::new();
    let mut writer = Writer::new(Kind::Solicit, [0x12, 0x34, 0x56], &mut out);
    writer.option(code::CLIENT_ID, &[&[0, 3, 0, 1], &[2, 0, 0, 0, 0, 7]]);
    writer.option(code::ELAPSED_TIME, &[&[0, 0]]);
    writer.option(code::ORO, &[&[0, 23, 0, 24]]);
    let lease = Lease {
        address: "2001:db8::".parse().unwrap(),
        length: Some(56),
        preferred_s: 1,
        valid_s: 2,
    };
    writer.association(code::IA_PD, [9, 0, 0], |out| lease.write(out));
    assert_eq!(out, SOLICIT);
}

#[test]
fn relay_messages_and_cut_options_are_refused() {
    let read = |octets: &[u8]| Message::read(octets).unwrap_err();
    assert_eq!(read(&[1, 0, 0]), DhcpError::Truncated);
    // Relay-forward and Relay-reply (section 7.3), 0, and an unknown type.
    for kind in [0, 12, 13, 99] {
        assert_eq!(read(&[kind, 0, 0, 0]), DhcpError::Kind(kind));
    }
    assert_eq!(read(&[1, 0, 0, 0, 0, 1, 0, 2, 9]), DhcpError::Option(1));
    assert_eq!(read(&[1, 0, 0, 0, 0, 1, 0]), DhcpError::Option(1));
    // The option of an IA that runs past the IA, although not past the message.
    let nested = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 26, 0, 1];
    assert_eq!(Association::read(&nested), None);
}

#[test]
fn a_repeated_option_is_not_the_only_one() {
    let list = [0, 1, 0, 0, 0, 1, 0, 0];
    assert_eq!(Options::read(&list).unwrap().only(1), Err(Repeated(1)));
}

proptest! {
    #[test]
    fn no_octets_make_it_panic(octets: Vec<u8>) {
        if let Ok(message) = Message::read(&octets) {
            for one in message.options {
                if let Some(association) = Association::read(one.value) {
                    let _ = association.leases().count();
                }
            }
        }
    }
}
