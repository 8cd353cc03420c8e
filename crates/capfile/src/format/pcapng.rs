//! pcapng (draft-ietf-opsawg-pcapng): blocks with a type and a length, in sections that each have their own byte order
//! and interfaces.
//!
//! A section's length is not used: the section ends where the next one starts. Packets are in Enhanced, Simple and the
//! obsolete Packet Blocks. `statistics` reads what the
//! capture counted; blocks of other types are skipped. A Simple Packet Block has no time stamp, and gets that of
//! the packet before it.
//!
//! A block is read or skipped only if its two lengths agree. After a fault, `search` finds the next blocks. `division` is
//! for reading a part of a file.

use super::{Format, Step};
use crate::block::{Record, Sink};
use crate::fault::{Fault, OpenError};
use crate::octets::Order;

mod division;
mod interface;
mod search;
mod statistics;

use interface::Interface;
pub use statistics::Statistics;

/// The type of a Section Header Block, which reads the same in both byte orders.
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// The byte-order magic of a section header.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// The supported version. Its minor number does not matter for the blocks read here.
const VERSION_MAJOR: u16 = 1;

/// Types of blocks without packets that may be longer than [`BLOCK_LEN_MAX`]: name resolution, statistics, journal,
/// decryption secrets, custom. They are skipped without loading them.
const OTHERS: [u32; 6] = [4, 5, 9, 10, 0xbad, 0x4000_0bad];

const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// Type and length before, and the length again after, whatever is in a block.
const BLOCK_LEN_MIN: u32 = 12;
/// A section header without options.
const SECTION_LEN_MIN: u32 = 28;
/// Bytes of a section header that are read: type, length, byte order, version.
const SECTION_HEAD: usize = 16;
/// The longest block that has to be in memory as a whole; libpcap's limit too.
const BLOCK_LEN_MAX: u32 = 16 << 20;
/// Interfaces of a section.
const INTERFACES_MAX: usize = 1 << 16;

/// The state between two blocks.
pub(crate) struct PcapNg {
    order: Order,
    interfaces: Vec<Interface>,
    /// Counters of the sections before.
    earlier: Statistics,
    /// The block that is being passed over.
    passing: Option<Passing>,
    last_ns: i64,
    /// Offset in the file from which on no block is read.
    pub(crate) until: u64,
    /// There were packets without time stamps, so that the packets before them matter.
    pub(crate) untimed: bool,
}

/// A block of which the rest is not looked at, but for the length at its end.
#[derive(Debug, Clone, Copy)]
struct Passing {
    offset: u64,
    length: u32,
    /// Bytes left before the length field at the end.
    left: u32,
}

/// What became of a block.
enum Done {
    /// The block is dealt with up to here.
    Next(usize),
    /// More bytes are needed.
    Wait,
    /// Nothing after it can be read.
    End,
}

pub(crate) fn is_magic(head: &[u8]) -> bool {
    head.starts_with(&SECTION)
        && head
            .get(8..12)
            .is_none_or(|octets| order_of(octets).is_some())
}

fn order_of(magic: &[u8]) -> Option<Order> {
    [Order::Big, Order::Little]
        .into_iter()
        .find(|order| order.u32(magic, 0) == BYTE_ORDER)
}

impl PcapNg {
    pub(crate) fn new(head: &[u8]) -> Result<Self, OpenError> {
        let header = head
            .first_chunk::<SECTION_HEAD>()
            .ok_or(OpenError::HeaderTruncated(Format::PcapNg))?;
        let order = order_of(&header[8..12]).ok_or(OpenError::UnknownFormat)?;
        let (major, minor) = (order.u16(header, 12), order.u16(header, 14));
        if major != VERSION_MAJOR {
            return Err(OpenError::UnsupportedVersion {
                format: Format::PcapNg,
                major: major.into(),
                minor: minor.into(),
            });
        }
        Ok(PcapNg {
            order,
            interfaces: Vec::new(),
            earlier: Statistics::default(),
            passing: None,
            last_ns: 0,
            until: u64::MAX,
            untimed: false,
        })
    }

    /// Whether no block that begins at this offset is to be read.
    pub(crate) fn is_past(&self, offset: u64) -> bool {
        offset >= self.until
    }

    pub(crate) fn unfinished(&self) -> Option<u64> {
        self.passing.map(|passing| passing.offset)
    }

    /// The counters of all interfaces so far.
    pub(crate) fn statistics(&self) -> Statistics {
        statistics::sum(self.earlier, &self.interfaces)
    }

    pub(crate) fn walk(&mut self, octets: &[u8], from: usize, sink: &mut Sink<'_>) -> Step {
        let mut at = from;
        loop {
            let done = match self.passing {
                Some(passing) => self.pass(passing, octets, &mut at, sink),
                None if self.is_past(sink.base + at as u64) => Done::End,
                None => self.block(octets, at, sink),
            };
            match done {
                Done::Next(next) => at = next,
                Done::Wait => return Step::more_from(at),
                Done::End => return Step::ended_at(at),
            }
        }
    }

    fn block(&mut self, octets: &[u8], at: usize, sink: &mut Sink<'_>) -> Done {
        let Some(header) = octets[at..].first_chunk::<8>() else {
            return Done::Wait;
        };
        if header[..4] == SECTION {
            return self.section(octets, at, sink);
        }
        let length = self.order.u32(header, 4);
        if length < BLOCK_LEN_MIN || !length.is_multiple_of(4) {
            sink.fault(at, Fault::BadRecordLength);
            return Done::End;
        }
        let kind = self.order.u32(header, 0);
        if length > BLOCK_LEN_MAX {
            if OTHERS.contains(&kind) {
                return self.start_passing(at, length, 8, sink);
            }
            sink.fault(at, Fault::RecordTooLong);
            return Done::End;
        }
        let Some(block) = octets[at..].get(..length as usize) else {
            return Done::Wait;
        };
        if self.order.u32(block, block.len() - 4) != length {
            sink.fault(at, Fault::BlockLengthMismatch);
            return Done::End;
        }
        let body = &block[..block.len() - 4];
        let done = match kind {
            ENHANCED_PACKET => self.enhanced(body, at, sink),
            SIMPLE_PACKET => self.simple(body, at, sink),
            OBSOLETE_PACKET => self.obsolete(body, at, sink),
            INTERFACE => self.interface(body, at, sink),
            STATISTICS => {
                statistics::note(&mut self.interfaces, self.order, &body[8..]);
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(fault) = done {
            sink.fault(at, fault);
        }
        Done::Next(at + block.len())
    }

    /// Starts a section with its byte order and no interfaces.
    fn section(&mut self, octets: &[u8], at: usize, sink: &mut Sink<'_>) -> Done {
        let Some(header) = octets[at..].first_chunk::<SECTION_HEAD>() else {
            return Done::Wait;
        };
        let order = order_of(&header[8..12]);
        let Some(order) = order.filter(|order| order.u16(header, 12) == VERSION_MAJOR) else {
            sink.fault(at, Fault::BadSection);
            return Done::End;
        };
        let length = order.u32(header, 4);
        if length < SECTION_LEN_MIN || !length.is_multiple_of(4) {
            sink.fault(at, Fault::BadRecordLength);
            return Done::End;
        }
        if length > BLOCK_LEN_MAX {
            sink.fault(at, Fault::RecordTooLong);
            return Done::End;
        }
        let Some(block) = octets[at..].get(..length as usize) else {
            return Done::Wait;
        };
        if order.u32(block, block.len() - 4) != length {
            sink.fault(at, Fault::BlockLengthMismatch);
            return Done::End;
        }
        self.order = order;
        self.earlier = self.statistics();
        self.interfaces.clear();
        Done::Next(at + block.len())
    }

    /// Skips the rest of a block after its first `looked_at` bytes.
    fn start_passing(&mut self, at: usize, length: u32, looked_at: usize, sink: &Sink<'_>) -> Done {
        self.passing = Some(Passing {
            offset: sink.base + at as u64,
            length,
            left: length - 4 - looked_at as u32,
        });
        Done::Next(at + looked_at)
    }

    fn pass(
        &mut self,
        mut passing: Passing,
        octets: &[u8],
        at: &mut usize,
        sink: &mut Sink<'_>,
    ) -> Done {
        let skipped = (octets.len() - *at).min(passing.left as usize);
        *at += skipped;
        passing.left -= skipped as u32;
        self.passing = Some(passing);
        if passing.left > 0 {
            return Done::Wait;
        }
        let Some(trailer) = octets[*at..].first_chunk::<4>() else {
            return Done::Wait;
        };
        self.passing = None;
        if self.order.u32(trailer, 0) != passing.length {
            sink.faults.note(passing.offset, Fault::BlockLengthMismatch);
            return Done::End;
        }
        Done::Next(*at + 4)
    }

    #[cold]
    fn interface(&mut self, body: &[u8], at: usize, sink: &mut Sink<'_>) -> Result<(), Fault> {
        if body.len() < 16 {
            return Err(Fault::BadBlock);
        }
        if self.interfaces.len() == INTERFACES_MAX {
            return Err(Fault::TooManyInterfaces);
        }
        let (interface, whole) = Interface::parse(self.order, &body[8..]);
        if !whole {
            sink.fault(at, Fault::BadOptions);
        }
        self.interfaces.push(interface);
        Ok(())
    }

    #[inline]
    fn enhanced(&mut self, body: &[u8], at: usize, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let header = body.first_chunk::<28>().ok_or(Fault::BadBlock)?;
        let packet = Packet {
            interface: self.order.u32(header, 8),
            ticks: self.order.u64_of_words(header, 12),
            captured: self.order.u32(header, 20),
            length: self.order.u32(header, 24),
        };
        self.packet(packet, body, at, sink)
    }

    #[cold]
    fn obsolete(&mut self, body: &[u8], at: usize, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let header = body.first_chunk::<28>().ok_or(Fault::BadBlock)?;
        let packet = Packet {
            // Then 16 bits of drops.
            interface: self.order.u16(header, 8).into(),
            ticks: self.order.u64_of_words(header, 12),
            captured: self.order.u32(header, 20),
            length: self.order.u32(header, 24),
        };
        self.packet(packet, body, at, sink)
    }

    /// A packet in a block that has it after 28 bytes.
    #[inline(always)]
    fn packet(
        &mut self,
        packet: Packet,
        body: &[u8],
        at: usize,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        if packet.captured as usize > body.len() - 28 {
            return Err(Fault::BadBlock);
        }
        let interface = self
            .interfaces
            .get(packet.interface as usize)
            .ok_or(Fault::UnknownInterface)?;
        let (time_ns, right) = interface.time_ns(packet.ticks);
        if !right {
            sink.fault(at, Fault::BadTime);
        }
        self.last_ns = time_ns;
        sink.records.push(Record {
            start: (at + 28) as u32,
            captured: packet.captured,
            length: packet.length,
            time_ns,
            link: interface.link,
            interface: packet.interface as u16,
            offset: sink.base + at as u64,
        });
        Ok(())
    }

    #[cold]
    fn simple(&mut self, body: &[u8], at: usize, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let header = body.first_chunk::<12>().ok_or(Fault::BadBlock)?;
        let interface = self.interfaces.first().ok_or(Fault::UnknownInterface)?;
        self.untimed = true;
        let length = self.order.u32(header, 8);
        let captured = match interface.snaplen {
            0 => length,
            snaplen => length.min(snaplen),
        };
        // Some writers leave the snapshot length out and shorten the packet all the same.
        let captured = captured.min((body.len() - 12) as u32);
        sink.records.push(Record {
            start: (at + 12) as u32,
            captured,
            length,
            time_ns: self.last_ns,
            link: interface.link,
            interface: 0,
            offset: sink.base + at as u64,
        });
        Ok(())
    }
}

/// The fields of a packet block, as in the file.
struct Packet {
    interface: u32,
    ticks: u64,
    captured: u32,
    length: u32,
}
