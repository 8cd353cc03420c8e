//! Uncompressed capture files: the packets read are in the file, in order, in whatever portions it is read.

use std::io::Read;

use capfile::{Block, Compression, Fault, Format, PcapWriter, Reader, Resolution};
use wire::link::LinkType;

/// A packet of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packet {
    time_ns: i64,
    length: u32,
    link: LinkType,
    interface: u16,
    offset: u64,
    octets: Vec<u8>,
}

/// Everything read from a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) format: Format,
    compression: Option<Compression>,
    pub(super) packets: Vec<Packet>,
    first: Option<(u64, Fault)>,
    pub(super) faults: Vec<(Fault, u64)>,
}

/// Returns a few octets at a time, varying in number.
struct Dribble<'a> {
    octets: &'a [u8],
    step: usize,
}

impl Read for Dribble<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        self.step = self.step % 31 + 1;
        let step = self.step.min(out.len());
        self.octets.read(&mut out[..step])
    }
}

/// Reads to the end; `None` if the file cannot be read at all.
fn read(source: impl Read) -> Option<Whole> {
    let mut reader = Reader::new(source).ok()?;
    let mut block = Block::new();
    let mut packets = Vec::new();
    while reader
        .read_block(&mut block)
        .expect("memory gives no error")
    {
        assert!(!block.is_empty(), "a block has a record, or is the end");
        packets.extend(block.records().iter().map(|record| Packet {
            time_ns: record.time_ns,
            length: record.length,
            link: record.link,
            interface: record.interface,
            offset: record.offset,
            octets: block.bytes(record).to_vec(),
        }));
    }
    assert!(block.is_empty());
    let faults = reader.faults();
    assert_eq!(faults.first().is_none(), faults.total() == 0);
    Some(Whole {
        format: reader.format(),
        compression: reader.compression(),
        packets,
        first: faults.first(),
        faults: faults.iter().collect(),
    })
}

/// Reads the file in one go, and in portions.
pub(super) fn read_twice(data: &[u8]) -> (Option<Whole>, Option<Whole>) {
    let step = data.len();
    (read(data), read(Dribble { octets: data, step }))
}

/// Reads a file and checks the invariants of every format; `before` lists the possible octets between the start
/// of a record and its packet.
fn check(data: &[u8], format: Format, before: &[usize]) -> Option<Whole> {
    let (whole, again) = read_twice(data);
    assert_eq!(whole, again, "the portions make no difference");
    // Offsets in a compressed file are those of its contents.
    let whole = whole.filter(|whole| whole.compression.is_none())?;
    let mut end_before = 0;
    for packet in &whole.packets {
        assert!(packet.offset >= end_before, "records follow each other");
        end_before = packet.offset + packet.octets.len() as u64;
        assert!(end_before <= data.len() as u64);
    }
    if let Some((offset, _)) = whole.first {
        assert!(offset <= data.len() as u64);
    }
    if whole.format != format {
        return None;
    }
    for packet in &whole.packets {
        let record = &data[packet.offset as usize..];
        let found = before.iter().any(|&before| {
            record
                .get(before..)
                .is_some_and(|rest| rest.starts_with(&packet.octets))
        });
        assert!(found, "the octets are those of the file");
    }
    Some(whole)
}

/// Takes a pcap file, and writes what it read.
///
/// # Panics
/// If the packets are not those of the file, or do not read back.
pub fn target_pcap(data: &[u8]) {
    let Some(whole) = check(data, Format::Pcap, &[16, 24]) else {
        return;
    };
    let written = whole
        .packets
        .iter()
        .filter(|packet| (0..1 << 62).contains(&packet.time_ns));
    let link = LinkType(7);
    let mut writer =
        PcapWriter::new(Vec::new(), link, Resolution::Nanos).expect("memory gives no error");
    let mut kept = Vec::new();
    for packet in written {
        if writer
            .write(packet.time_ns, packet.length, &packet.octets)
            .is_ok()
        {
            kept.push(packet);
        }
    }
    let again = read(&writer.into_inner()[..]).expect("what was written is pcap");
    assert_eq!(again.first, None);
    assert_eq!(again.packets.len(), kept.len());
    for (read, packet) in again.packets.iter().zip(kept) {
        assert_eq!(read.time_ns, packet.time_ns);
        assert_eq!(read.length, packet.length);
        assert_eq!(read.octets, packet.octets);
    }
}

/// Takes a pcapng file.
///
/// # Panics
/// If the packets are not those of the file.
pub fn target_pcapng(data: &[u8]) {
    check(data, Format::PcapNg, &[28, 12]);
}

/// Takes a snoop file.
///
/// # Panics
/// If the packets are not those of the file.
pub fn target_snoop(data: &[u8]) {
    check(data, Format::Snoop, &[24]);
}

/// Takes an ERF file.
///
/// # Panics
/// If the packets are not those of the file.
pub fn target_erf(data: &[u8]) {
    // After up to 31 extension headers; records in inputs of this length have no more.
    let before: Vec<usize> = (0..256).map(|words| 16 + 2 * words).collect();
    check(data, Format::Erf, &before);
}

/// Takes a TSH file.
///
/// # Panics
/// If the packets are not those of the file, or some are missing.
pub fn target_tsh(data: &[u8]) {
    if let Some(whole) = check(data, Format::Tsh, &[8]) {
        assert_eq!(whole.packets.len(), data.len() / 44);
    }
}

/// Takes an EtherPeek file.
///
/// # Panics
/// If the packets are not those of the file.
pub fn target_etherpeek(data: &[u8]) {
    check(data, Format::EtherPeek, &[26, 16]);
}
