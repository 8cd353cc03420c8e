//! Files written as pcap read back unchanged.

use std::io::ErrorKind;

use capfile::{PcapWriter, Resolution};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::link::LinkType;

use crate::support::{SECOND_NS, read_whole};

const MAX_S: i64 = u32::MAX as i64;

proptest! {
    #[test]
    fn written_packets_read_back(
        packets in vec((0..(MAX_S + 1) * SECOND_NS, 0..100_000u32, vec(any::<u8>(), 1..300)), 0..40),
        link in any::<u16>(),
        nanos in any::<bool>(),
    ) {
        let resolution = if nanos { Resolution::Nanos } else { Resolution::Micros };
        let mut writer = PcapWriter::new(Vec::new(), LinkType(link), resolution).expect("to memory");
        // Records without a byte, or with more bytes than the packet had, may count as a fault.
        let packets: Vec<_> = packets
            .into_iter()
            .map(|(time_ns, more, octets)| (time_ns, more + octets.len() as u32, octets))
            .collect();
        for (time_ns, length, octets) in &packets {
            writer.write(*time_ns, *length, octets).expect("to memory");
        }
        let whole = read_whole(&writer.into_inner());
        prop_assert_eq!(whole.packets.len(), packets.len());
        for (read, (time_ns, length, octets)) in whole.packets.iter().zip(&packets) {
            let cut = if nanos { 0 } else { time_ns % 1000 };
            prop_assert_eq!(read.time_ns, time_ns - cut);
            prop_assert_eq!(read.length, *length);
            prop_assert_eq!(&read.octets, octets);
            prop_assert_eq!(read.link, LinkType(link));
        }
        prop_assert_eq!(whole.first, None);
    }
}

#[test]
fn a_file_is_little_endian_version_2_4() {
    let mut writer =
        PcapWriter::new(Vec::new(), LinkType::ETHERNET, Resolution::Micros).expect("to memory");
    writer
        .write(2 * SECOND_NS + 3999, 9, b"ab")
        .expect("to memory");
    writer.flush().expect("to memory");
    #[rustfmt::skip]
    assert_eq!(writer.into_inner(), [
        0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0,
        2, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0, b'a', b'b',
    ]);
}

#[test]
fn what_pcap_cannot_say_is_refused_and_nothing_of_it_is_written() {
    let mut writer =
        PcapWriter::new(Vec::new(), LinkType::ETHERNET, Resolution::Nanos).expect("to memory");
    for (time_ns, octets) in [
        (-1, 0),
        (i64::MIN, 0),
        ((MAX_S + 1) * SECOND_NS, 0),
        (0, 262_145),
    ] {
        let error = writer
            .write(time_ns, 1, &vec![0; octets])
            .expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(writer.into_inner().len(), 24);
}
