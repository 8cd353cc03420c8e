//! Files written as pcapng read back unchanged.

use std::io::ErrorKind;

use capfile::{PcapngWriter, Way};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::link::LinkType;

use crate::support::read_whole;

proptest! {
    #[test]
    fn written_packets_read_back_in_order_and_of_their_interfaces(
        packets in vec((0..2u32, 0..i64::MAX as u64, 0..100_000u32, vec(any::<u8>(), 0..300)), 0..40),
        links in any::<(u16, u16)>(),
    ) {
        let links = [LinkType(links.0), LinkType(links.1)];
        let mut writer = PcapngWriter::new(Vec::new(), "test").expect("to memory");
        for link in links {
            writer.interface(link, "one", "of two", 0).expect("to memory");
        }
        for (interface, time_ns, length, octets) in &packets {
            writer.packet(*interface, *time_ns, Way::Inbound, *length, octets).expect("to memory");
        }
        for interface in 0..2 {
            writer.statistics(interface, 7, 9, 2).expect("to memory");
        }
        let whole = read_whole(writer.get_mut());
        prop_assert_eq!(whole.packets.len(), packets.len());
        for (read, (interface, time_ns, length, octets)) in whole.packets.iter().zip(&packets) {
            prop_assert_eq!(read.time_ns, *time_ns as i64);
            prop_assert_eq!(read.length, *length);
            prop_assert_eq!(&read.octets, octets);
            prop_assert_eq!(read.link, links[*interface as usize]);
        }
        prop_assert_eq!(whole.first, None);
    }
}

#[test]
fn blocks_are_as_the_draft_draws_them() {
    let mut writer = PcapngWriter::new(Vec::new(), "abc").expect("to memory");
    let interface = writer
        .interface(LinkType::RAW, "in", "x", 96)
        .expect("to memory");
    writer
        .packet(interface, 0x0102_0304_0506_0708, Way::Outbound, 9, b"hello")
        .expect("to memory");
    writer
        .statistics(interface, 1, 0x20, 0x10)
        .expect("to memory");
    writer.flush().expect("to memory");
    #[rustfmt::skip]
    assert_eq!(*writer.get_mut(), [
        // Section header: byte order, version 1.0, no length, shb_userappl.
        0x0a, 0x0d, 0x0d, 0x0a, 40, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 4, 0, 3, 0, b'a', b'b', b'c', 0,
        0, 0, 0, 0, 40, 0, 0, 0,
        // Interface description: link type, snapshot length, if_name, if_description, if_tsresol.
        1, 0, 0, 0, 48, 0, 0, 0, 101, 0, 0, 0, 96, 0, 0, 0,
        2, 0, 2, 0, b'i', b'n', 0, 0, 3, 0, 1, 0, b'x', 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0,
        0, 0, 0, 0, 48, 0, 0, 0,
        // Enhanced packet: interface, time's upper and lower half, captured, length, octets, epb_flags.
        6, 0, 0, 0, 52, 0, 0, 0, 0, 0, 0, 0, 4, 3, 2, 1, 8, 7, 6, 5, 5, 0, 0, 0, 9, 0, 0, 0,
        b'h', b'e', b'l', b'l', b'o', 0, 0, 0, 2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 52, 0, 0, 0,
        // Interface statistics: interface, time, isb_ifrecv, isb_ifdrop.
        5, 0, 0, 0, 52, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
        4, 0, 8, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 5, 0, 8, 0, 0x10, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 52, 0, 0, 0,
    ]);
}

#[test]
fn an_interface_that_was_not_described_is_refused_and_nothing_written() {
    let mut writer = PcapngWriter::new(Vec::new(), "").expect("to memory");
    let before = writer.get_mut().len();
    let packet = writer.packet(0, 0, Way::Inbound, 0, b"");
    let statistics = writer.statistics(0, 0, 0, 0);
    for result in [packet, statistics] {
        assert_eq!(result.expect_err("refused").kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(writer.get_mut().len(), before);
}
