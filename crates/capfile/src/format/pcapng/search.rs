//! Finds the next block after a fault.
//!
//! The reading resumes where three blocks follow each other (fewer before the end of the file), each of a known type and
//! with two equal lengths. Packets must be of an interface that the section has described.

use super::{
    BLOCK_LEN_MIN, ENHANCED_PACKET, INTERFACE, OBSOLETE_PACKET, PcapNg, SECTION, SECTION_HEAD,
    SIMPLE_PACKET, VERSION_MAJOR, order_of,
};
use crate::format::{CHAIN, Chain, Found, search};
use crate::octets::Order;

/// The longest block that the reading may resume at: longer than any packet. It bounds the bytes that the search needs
/// to have in memory.
const LENGTH_MAX: u32 = 1 << 20;

/// Types of blocks without packets that are often among packets: name resolution and statistics.
const AMONG: [u32; 2] = [4, 5];

/// The state of the section, as far as it is needed to judge a block.
#[derive(Clone, Copy)]
struct Section {
    order: Order,
    /// Interfaces that have been described.
    interfaces: usize,
}

impl PcapNg {
    /// After a fault: finds the next block from `from` on.
    pub(crate) fn find(&mut self, octets: &[u8], from: usize, drained: bool) -> Found {
        let section = Section {
            order: self.order,
            interfaces: self.interfaces.len(),
        };
        search(octets, from, drained, |at| {
            chain(section, octets, at, drained)
        })
    }
}

/// Whether a few plausible blocks follow each other from `at` on.
fn chain(mut section: Section, octets: &[u8], mut at: usize, drained: bool) -> Chain {
    for count in 0..CHAIN {
        if at == octets.len() && drained && count > 0 {
            return Chain::Whole;
        }
        match section.block(&octets[at..]) {
            Ok(Some(length)) => at += length,
            Ok(None) => return Chain::Unknown,
            Err(Implausible) => return Chain::Broken,
        }
    }
    Chain::Whole
}

struct Implausible;

impl Section {
    /// The length of the block that the bytes begin with; `None` if more bytes are needed.
    fn block(&mut self, octets: &[u8]) -> Result<Option<usize>, Implausible> {
        let Some(header) = octets.first_chunk::<8>() else {
            return Ok(None);
        };
        if header[..4] == SECTION {
            return self.section(octets);
        }
        let (kind, length) = (self.order.u32(header, 0), self.order.u32(header, 4));
        let shortest = match kind {
            ENHANCED_PACKET | OBSOLETE_PACKET => 32,
            SIMPLE_PACKET => 16,
            INTERFACE => 20,
            kind if AMONG.contains(&kind) => BLOCK_LEN_MIN,
            _ => return Err(Implausible),
        };
        let Some(block) = whole(self.order, octets, length, shortest)? else {
            return Ok(None);
        };
        let described = match kind {
            INTERFACE => {
                self.interfaces += 1;
                true
            }
            SIMPLE_PACKET => self.interfaces > 0,
            ENHANCED_PACKET => self.holds(self.order.u32(block, 8), block),
            OBSOLETE_PACKET => self.holds(self.order.u16(block, 8).into(), block),
            _ => true,
        };
        match described {
            true => Ok(Some(block.len())),
            false => Err(Implausible),
        }
    }

    /// Whether the block of a packet can hold it, and its interface has been described.
    fn holds(&self, interface: u32, block: &[u8]) -> bool {
        let captured = self.order.u32(block, 20) as usize;
        (interface as usize) < self.interfaces && captured <= block.len() - 32
    }

    /// The same for the header of a section. The blocks after it are in its byte order.
    fn section(&mut self, octets: &[u8]) -> Result<Option<usize>, Implausible> {
        let Some(header) = octets.first_chunk::<SECTION_HEAD>() else {
            return Ok(None);
        };
        let order = order_of(&header[8..12]);
        let order = order.filter(|order| order.u16(header, 12) == VERSION_MAJOR);
        let order = order.ok_or(Implausible)?;
        let length = order.u32(header, 4);
        let Some(block) = whole(order, octets, length, super::SECTION_LEN_MIN)? else {
            return Ok(None);
        };
        let length = block.len();
        let interfaces = 0;
        *self = Section { order, interfaces };
        Ok(Some(length))
    }
}

/// The bytes of a block, if both its lengths agree; `None` if more bytes are needed.
fn whole(
    order: Order,
    octets: &[u8],
    length: u32,
    shortest: u32,
) -> Result<Option<&[u8]>, Implausible> {
    if length < shortest || length > LENGTH_MAX || !length.is_multiple_of(4) {
        return Err(Implausible);
    }
    let Some(block) = octets.get(..length as usize) else {
        return Ok(None);
    };
    match order.u32(block, block.len() - 4) == length {
        true => Ok(Some(block)),
        false => Err(Implausible),
    }
}
