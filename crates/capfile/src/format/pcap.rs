//! pcap: a header of 24 octets, then records of 16 and the packet.
//!
//! Files of versions before 2.4 can have the two lengths of a record in reverse order. As in libpcap, they are reversed
//! in versions before 2.3 and in 543.0 always, and in 2.3 if the first is greater.
//!
//! A packet longer than the file's snapshot length is returned whole (libpcap truncates it). Seconds are unsigned, so
//! that they last until 2106.

use wire::link::LinkType;

use super::{Format, PACKET_MAX, Step};
use crate::block::{Record, Sink};
use crate::fault::{Fault, OpenError};
use crate::octets::Order;

/// Size of the file's header, in bytes.
pub(crate) const HEADER_LEN: usize = 24;

/// Time stamps in us.
pub(crate) const MAGIC_MICROS: u32 = 0xa1b2_c3d4;
/// Time stamps in ns.
pub(crate) const MAGIC_NANOS: u32 = 0xa1b2_3c4d;
/// Kuznetzov's: in us, each record's header with the interface, protocol and packet type after the lengths.
const MAGIC_MODIFIED: u32 = 0xa1b2_cd34;

/// The longest packet that a file may announce by its snapshot length.
const SNAPLEN_MAX: u32 = 256 << 20;

/// How the lengths of a record stand in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lengths {
    CapturedFirst,
    SmallerFirst,
    CapturedLast,
}

/// A pcap file's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pcap {
    order: Order,
    lengths: Lengths,
    modified: bool,
    link: LinkType,
    captured_max: u32,
    /// Nanoseconds in a unit of the fraction.
    unit_ns: u32,
}

impl Pcap {
    pub(crate) fn is_magic(head: &[u8]) -> bool {
        Self::magic(head).is_some()
    }

    fn magic(head: &[u8]) -> Option<(Order, u32)> {
        let head = head.first_chunk::<4>()?;
        [Order::Big, Order::Little]
            .map(|order| (order, order.u32(head, 0)))
            .into_iter()
            .find(|(_, magic)| [MAGIC_MICROS, MAGIC_NANOS, MAGIC_MODIFIED].contains(magic))
    }

    pub(crate) fn new(head: &[u8]) -> Result<Self, OpenError> {
        let (order, magic) = Self::magic(head).ok_or(OpenError::UnknownFormat)?;
        let header = head
            .first_chunk::<HEADER_LEN>()
            .ok_or(OpenError::HeaderTruncated(Format::Pcap))?;
        let (major, minor) = (order.u16(header, 4), order.u16(header, 6));
        let lengths = match (major, minor) {
            (2, 0..3) | (543, 0) => Lengths::CapturedLast,
            (2, 3) => Lengths::SmallerFirst,
            (2, 4) => Lengths::CapturedFirst,
            _ => {
                return Err(OpenError::UnsupportedVersion {
                    format: Format::Pcap,
                    major: major.into(),
                    minor: minor.into(),
                });
            }
        };
        let captured_max = match order.u32(header, 16) {
            snaplen @ PACKET_MAX..=SNAPLEN_MAX => snaplen,
            _ => PACKET_MAX,
        };
        Ok(Pcap {
            order,
            lengths,
            modified: magic == MAGIC_MODIFIED,
            // The upper bits tell whether frames end with a checksum, and its length.
            link: LinkType(order.u32(header, 20) as u16),
            captured_max,
            unit_ns: if magic == MAGIC_NANOS { 1 } else { 1000 },
        })
    }

    pub(crate) fn walk(&self, octets: &[u8], from: usize, sink: &mut Sink<'_>) -> Step {
        match (self.order, self.modified) {
            (Order::Big, false) => self.walk_as::<true, 16>(octets, from, sink),
            (Order::Little, false) => self.walk_as::<false, 16>(octets, from, sink),
            (Order::Big, true) => self.walk_as::<true, 24>(octets, from, sink),
            (Order::Little, true) => self.walk_as::<false, 24>(octets, from, sink),
        }
    }

    fn walk_as<const BIG: bool, const HEADER: usize>(
        &self,
        octets: &[u8],
        from: usize,
        sink: &mut Sink<'_>,
    ) -> Step {
        let order = if BIG { Order::Big } else { Order::Little };
        let second = 1_000_000_000 / self.unit_ns;
        let mut at = from;
        while let Some(header) = octets[at..].first_chunk::<HEADER>() {
            let seconds = order.u32(header, 0);
            let fraction = order.u32(header, 4);
            let (captured, length) = self.lengths(order.u32(header, 8), order.u32(header, 12));
            if captured > self.captured_max {
                sink.fault(at, Fault::RecordTooLong);
                return Step::ended_at(at);
            }
            let start = at + HEADER;
            let end = start + captured as usize;
            if end > octets.len() {
                break;
            }
            if fraction >= second {
                sink.fault(at, Fault::BadTime);
            }
            // At most 2^32 s and 2^32 us, which 63 bits of ns can hold.
            let time_ns =
                i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * i64::from(self.unit_ns);
            let interface = if HEADER == 24 {
                order.u32(header, 16) as u16
            } else {
                0
            };
            sink.records.push(Record {
                start: start as u32,
                captured,
                length,
                time_ns,
                link: self.link,
                interface,
                offset: sink.base + at as u64,
            });
            at = end;
        }
        Step::more_from(at)
    }

    /// The captured length and the length, given the two in the order of the file.
    #[inline(always)]
    fn lengths(&self, first: u32, second: u32) -> (u32, u32) {
        match self.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::SmallerFirst => (first.min(second), first.max(second)),
            Lengths::CapturedLast => (second, first),
        }
    }
}
