//! ERF: a record has a header of 16 bytes, optional extension headers, a prefix that depends on the record's type, and
//! the packet. There is no file header and no magic number.
//!
//! The wire length in the file includes a checksum of 4 bytes for Ethernet and packet over SONET; here it does not. An
//! ATM cell is decoded as the first cell of an AAL5 frame that starts with LLC.

use wire::link::LinkType;

use super::Step;
use crate::block::{Record, Sink};
use crate::fault::Fault;
use crate::octets::Order;

const HEADER: usize = 16;
/// The payload of an ATM cell.
const CELL: usize = 48;
/// The octets of a checksum.
const FCS: usize = 4;
/// In the type of a record or of an extension header: another extension header follows.
const MORE: u8 = 0x80;
/// In the flags: which port of the card.
const PORT: u8 = 0x03;
/// In the flags: reserved, and 0.
const FLAGS_RESERVED: u8 = 0xc0;
/// Records looked at to recognise the format.
const LOOKED_AT: usize = 3;

/// What a type of record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// This many bytes, then a frame that ends with a checksum.
    Ethernet,
    /// This many bytes, then PPP or Cisco HDLC with a checksum.
    Hdlc(usize),
    /// This many bytes, then the payload of a cell.
    Cell(usize),
    /// This many bytes, then an AAL5 frame.
    Aal5(usize),
    Ipv4,
    Ipv6,
    /// Nothing of a packet: counters, meta-data, padding.
    NoPacket,
    Unknown,
}

impl Kind {
    /// The types of Endace's list; those with other things than packets are passed over, those with links that
    /// nothing here reads are unknown.
    fn of(number: u8) -> Kind {
        match number {
            2 | 11 | 16 | 20 => Kind::Ethernet,
            1 | 10 | 15 | 19 => Kind::Hdlc(0),
            5 | 17 => Kind::Hdlc(4),
            3 => Kind::Cell(4),
            7 => Kind::Cell(8),
            4 => Kind::Aal5(4),
            9 => Kind::Aal5(8),
            22 => Kind::Ipv4,
            23 => Kind::Ipv6,
            13 | 14 | 27 | 48 => Kind::NoPacket,
            _ => Kind::Unknown,
        }
    }
}

/// Whether the first records look like ERF's: types that there are, lengths that hold their headers, no reserved
/// flags, time not running backwards.
pub(crate) fn plausible(head: &[u8]) -> bool {
    let mut at = 0;
    let mut time_before = 0;
    let mut seen = 0;
    while seen < LOOKED_AT {
        let Some(header) = head.get(at..).and_then(|rest| rest.first_chunk::<HEADER>()) else {
            break;
        };
        let kind = header[8] & !MORE;
        let whole = usize::from(Order::Big.u16(header, 10));
        let time =
            u64::from(Order::Little.u32(header, 4)) << 32 | u64::from(Order::Little.u32(header, 0));
        if Kind::of(kind) == Kind::Unknown
            || header[9] & FLAGS_RESERVED != 0
            || whole < HEADER
            || time < time_before
            || time >> 32 == 0
        {
            return false;
        }
        time_before = time;
        at += whole;
        seen += 1;
    }
    seen > 0
}

pub(crate) fn walk(octets: &[u8], from: usize, sink: &mut Sink<'_>) -> Step {
    let mut at = from;
    while let Some(header) = octets[at..].first_chunk::<HEADER>() {
        let whole = usize::from(Order::Big.u16(header, 10));
        if whole < HEADER {
            sink.fault(at, Fault::BadRecordLength);
            return Step::ended_at(at);
        }
        let Some(record) = octets[at..].get(..whole) else {
            break;
        };
        match packet(header, record) {
            Ok(Some((link, before, length, captured))) => sink.records.push(Record {
                start: (at + before) as u32,
                captured: captured as u32,
                length: length as u32,
                time_ns: time_ns(header),
                link,
                interface: u16::from(header[9] & PORT),
                offset: sink.base + at as u64,
            }),
            Ok(None) => {}
            Err(fault) => {
                sink.fault(at, fault);
                if fault == Fault::BadRecordLength {
                    return Step::ended_at(at);
                }
            }
        }
        at += whole;
    }
    Step::more_from(at)
}

/// The packet of a record: its link type, its start, its length and its captured length.
fn packet(
    header: &[u8; HEADER],
    record: &[u8],
) -> Result<Option<(LinkType, usize, usize, usize)>, Fault> {
    let kind = Kind::of(header[8] & !MORE);
    let own = match kind {
        Kind::Ethernet => 2,
        Kind::Hdlc(own) | Kind::Cell(own) | Kind::Aal5(own) => own,
        Kind::Ipv4 | Kind::Ipv6 => 0,
        Kind::NoPacket => return Ok(None),
        Kind::Unknown => return Err(Fault::UnknownRecordType),
    };
    let before = extensions(record)? + own;
    let held = record
        .len()
        .checked_sub(before)
        .ok_or(Fault::BadRecordLength)?;
    let on_wire = usize::from(Order::Big.u16(header, 14));
    let (link, length) = match kind {
        Kind::Ethernet => (LinkType::ETHERNET, on_wire.saturating_sub(FCS)),
        Kind::Hdlc(_) => (hdlc(&record[before..]), on_wire.saturating_sub(own + FCS)),
        Kind::Cell(_) => (LinkType::ATM_RFC1483, CELL),
        Kind::Aal5(_) => (LinkType::ATM_RFC1483, on_wire.saturating_sub(own)),
        Kind::Ipv4 => (LinkType::IPV4, on_wire),
        Kind::Ipv6 | Kind::NoPacket | Kind::Unknown => (LinkType::IPV6, on_wire),
    };
    Ok(Some((link, before, length, held.min(length))))
}

/// Bytes of the record's header and its extension headers.
fn extensions(record: &[u8]) -> Result<usize, Fault> {
    let mut more = record[8] & MORE != 0;
    let mut at = HEADER;
    while more {
        let first = record.get(at).ok_or(Fault::BadRecordLength)?;
        more = first & MORE != 0;
        at += 8;
    }
    Ok(at)
}

/// PPP if the frame starts as in RFC 1662, otherwise Cisco HDLC.
fn hdlc(frame: &[u8]) -> LinkType {
    match frame {
        [0xff, 0x03, ..] => LinkType::PPP_HDLC,
        _ => LinkType::C_HDLC,
    }
}

/// Seconds and 2^-32 of one, little-endian whatever the machine, to the nearest ns.
fn time_ns(header: &[u8; HEADER]) -> i64 {
    let fraction = u64::from(Order::Little.u32(header, 0));
    let seconds = i64::from(Order::Little.u32(header, 4));
    let nanos = (fraction * 1_000_000_000 + (1 << 31)) >> 32;
    seconds * 1_000_000_000 + nanos as i64
}
