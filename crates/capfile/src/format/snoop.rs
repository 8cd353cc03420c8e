//! snoop (RFC 1761), version 2: a header of 16 octets, then records of 24, the packet and its padding.

use wire::link::LinkType;

use super::{Format, IEEE802_5, PACKET_MAX, Step, UNKNOWN_LINK};
use crate::block::{Record, Sink};
use crate::fault::{Fault, OpenError};
use crate::octets::Order;

/// Size of the file's header, in bytes.
pub(crate) const HEADER_LEN: usize = 16;

const MAGIC: &[u8] = b"snoop\0\0\0";
const VERSION: u32 = 2;
const RECORD_HEADER: usize = 24;
/// Limit of padding bytes after a packet in its record.
const PAD_MAX: u32 = 4096;

/// A snoop file's header.
pub(crate) struct Snoop {
    link: LinkType,
}

pub(crate) fn is_magic(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

impl Snoop {
    pub(crate) fn new(head: &[u8]) -> Result<Self, OpenError> {
        let header = head
            .first_chunk::<HEADER_LEN>()
            .ok_or(OpenError::HeaderTruncated(Format::Snoop))?;
        let version = Order::Big.u32(header, 8);
        if version != VERSION {
            return Err(OpenError::UnsupportedVersion {
                format: Format::Snoop,
                major: version,
                minor: 0,
            });
        }
        let link = link_of(Order::Big.u32(header, 12));
        Ok(Snoop { link })
    }

    pub(crate) fn walk(&self, octets: &[u8], from: usize, sink: &mut Sink<'_>) -> Step {
        let mut at = from;
        while let Some(header) = octets[at..].first_chunk::<RECORD_HEADER>() {
            let [length, captured, whole, _drops, seconds, micros] =
                [0, 4, 8, 12, 16, 20].map(|field| Order::Big.u32(header, field));
            if captured > PACKET_MAX {
                sink.fault(at, Fault::RecordTooLong);
                return Step::ended_at(at);
            }
            let pad = whole.checked_sub(RECORD_HEADER as u32 + captured);
            if pad.is_none_or(|pad| pad > PAD_MAX) {
                sink.fault(at, Fault::BadRecordLength);
                return Step::ended_at(at);
            }
            let end = at + whole as usize;
            if end > octets.len() {
                break;
            }
            if micros >= 1_000_000 {
                sink.fault(at, Fault::BadTime);
            }
            sink.records.push(Record {
                start: (at + RECORD_HEADER) as u32,
                captured,
                length,
                time_ns: i64::from(seconds) * 1_000_000_000 + i64::from(micros) * 1000,
                link: self.link,
                interface: 0,
                offset: sink.base + at as u64,
            });
            at = end;
        }
        Step::more_from(at)
    }
}

/// The link type of one of RFC 1761's data link types, and of Solaris's DL_ATM, whose frames are as SunATM's.
fn link_of(datalink: u32) -> LinkType {
    match datalink {
        0 | 4 => LinkType::ETHERNET,
        2 => IEEE802_5,
        8 => LinkType::FDDI,
        18 => LinkType::SUNATM,
        _ => UNKNOWN_LINK,
    }
}
