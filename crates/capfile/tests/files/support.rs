//! Reading a whole file at once, and putting one together.

use std::io::{self, Read};

use capfile::{Block, Fault, Gap, OpenError, Reader};
use wire::link::LinkType;

pub(crate) const SECOND_NS: i64 = 1_000_000_000;

/// A packet, with its octets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) time_ns: i64,
    pub(crate) length: u32,
    pub(crate) link: LinkType,
    pub(crate) interface: u16,
    pub(crate) offset: u64,
    pub(crate) octets: Vec<u8>,
}

/// All of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Whole {
    pub(crate) packets: Vec<Packet>,
    pub(crate) first: Option<(u64, Fault)>,
    pub(crate) faults: Vec<(Fault, u64)>,
    pub(crate) gaps: Vec<Gap>,
}

impl Whole {
    pub(crate) fn octets(&self) -> Vec<&[u8]> {
        let packets = self.packets.iter();
        packets.map(|packet| packet.octets.as_slice()).collect()
    }

    pub(crate) fn times_ns(&self) -> Vec<i64> {
        self.packets.iter().map(|packet| packet.time_ns).collect()
    }
}

/// Reads to the end.
pub(crate) fn read(source: impl Read) -> Result<Whole, OpenError> {
    Ok(read_with(Reader::new(source)?))
}

/// Reads up to the first fault that ends a file.
pub(crate) fn read_strict(octets: &[u8]) -> Whole {
    let mut reader = Reader::new(octets).expect("the format is known");
    reader.set_resync(false);
    read_with(reader)
}

fn read_with(mut reader: Reader<impl Read>) -> Whole {
    let mut block = Block::new();
    let mut packets = Vec::new();
    while reader
        .read_block(&mut block)
        .expect("no error of the source")
    {
        assert!(!block.is_empty());
        packets.extend(block.records().iter().map(|record| Packet {
            time_ns: record.time_ns,
            length: record.length,
            link: record.link,
            interface: record.interface,
            offset: record.offset,
            octets: block.bytes(record).to_vec(),
        }));
    }
    assert!(
        !reader
            .read_block(&mut block)
            .expect("the end stays the end")
    );
    Whole {
        packets,
        first: reader.faults().first(),
        faults: reader.faults().iter().collect(),
        gaps: reader.faults().gaps().to_vec(),
    }
}

pub(crate) fn read_whole(octets: &[u8]) -> Whole {
    read(octets).expect("the format is known")
}

/// Returns this many bytes at a time.
pub(crate) struct Dribble<'a> {
    pub(crate) octets: &'a [u8],
    pub(crate) step: usize,
}

impl Read for Dribble<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let step = self.step.min(out.len());
        self.octets.read(&mut out[..step])
    }
}

/// The order a file is to be written in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order(pub(crate) bool);

pub(crate) const BIG: Order = Order(true);
pub(crate) const LITTLE: Order = Order(false);

impl Order {
    pub(crate) fn u16(self, value: u16) -> [u8; 2] {
        if self.0 {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    pub(crate) fn u32(self, value: u32) -> [u8; 4] {
        if self.0 {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    pub(crate) fn words(self, values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|&value| self.u32(value)).collect()
    }
}

/// A file of `testdata/capture/files`.
pub(crate) fn real(name: &str) -> Vec<u8> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/capture/files/");
    std::fs::read(format!("{root}{name}")).expect("the file is there")
}
