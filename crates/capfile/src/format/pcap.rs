//! pcap: a header of 24 octets, then records of 16 and the packet.
//!
//! Files of versions before 2.4 can have the two lengths of a record in reverse order. As in libpcap, they are reversed
//! in versions before 2.3 and in 543.0 always, and in 2.3 if the first is greater.
//!
//! Records have no mark of their own. A record with unusual lengths, or with a time far from that of the record before,
//! is accepted only if another record can begin after it. After a fault, the reading resumes where three records in a
//! row have plausible lengths and times, or at the header of another file. A damaged length that is still plausible is
//! not noticed.
//!
//! A packet longer than the file's snapshot length is returned whole (libpcap truncates it). Seconds are unsigned, so
//! that they last until 2106.

use wire::link::LinkType;

use super::{CHAIN, Chain, Format, Found, PACKET_MAX, Step, search};
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

/// The longest packet that may follow an unusual record.
const LENGTH_MAX: u32 = 16 << 20;

/// How the lengths of a record stand in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lengths {
    CapturedFirst,
    SmallerFirst,
    CapturedLast,
}

/// Seconds that a record may be earlier or later than the one before it without being doubtful.
const EARLIER_MAX_S: u32 = 3600;
const LATER_MAX_S: u32 = 86_400;

/// Seconds that the first record after a gap may be later than the last one before it.
const GAP_MAX_S: u32 = 30 * 86_400;

/// A pcap file's header, and the time of the last record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pcap {
    /// The first 8 bytes: magic number and version.
    head: [u8; 8],
    /// Seconds of the last record.
    last: Option<u32>,
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
        let mut first = [0; 8];
        first.copy_from_slice(&header[..8]);
        Ok(Pcap {
            head: first,
            last: None,
            order,
            lengths,
            modified: magic == MAGIC_MODIFIED,
            // The upper bits tell whether frames end with a checksum, and its length.
            link: LinkType(order.u32(header, 20) as u16),
            captured_max,
            unit_ns: if magic == MAGIC_NANOS { 1 } else { 1000 },
        })
    }

    pub(crate) fn walk(&mut self, octets: &[u8], from: usize, sink: &mut Sink<'_>) -> Step {
        match (self.order, self.modified) {
            (Order::Big, false) => self.walk_as::<true, 16>(octets, from, sink),
            (Order::Little, false) => self.walk_as::<false, 16>(octets, from, sink),
            (Order::Big, true) => self.walk_as::<true, 24>(octets, from, sink),
            (Order::Little, true) => self.walk_as::<false, 24>(octets, from, sink),
        }
    }

    fn walk_as<const BIG: bool, const HEADER: usize>(
        &mut self,
        octets: &[u8],
        from: usize,
        sink: &mut Sink<'_>,
    ) -> Step {
        let order = if BIG { Order::Big } else { Order::Little };
        let second = 1_000_000_000 / self.unit_ns;
        let mut at = from;
        let first = octets.get(at..at + 4).map(|octets| order.u32(octets, 0));
        let mut last = self.last.or(first).unwrap_or(0);
        while let Some(header) = octets[at..].first_chunk::<HEADER>() {
            let seconds = order.u32(header, 0);
            let fraction = order.u32(header, 4);
            let (captured, length) = self.lengths(order.u32(header, 8), order.u32(header, 12));
            let start = at + HEADER;
            let doubtful = is_doubtful(captured, length);
            if doubtful | (seconds != last) && (doubtful || is_far(seconds, last)) {
                match self.doubt(octets, at, HEADER, sink.drained) {
                    Doubt::Accept => {}
                    Doubt::Wait => break,
                    Doubt::Fault(fault) => {
                        sink.fault(at, fault);
                        if at > from {
                            self.last = Some(last);
                        }
                        return Step::ended_at(at);
                    }
                }
            }
            let end = start + captured as usize;
            if end > octets.len() {
                break;
            }
            // The time of a record that may be junk is none to compare with.
            if !doubtful {
                last = seconds;
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
        if at > from {
            self.last = Some(last);
        }
        Step::more_from(at)
    }

    /// Whether to accept a record whose lengths or time are unusual. It is accepted if another record can begin after
    /// it.
    #[cold]
    #[inline(never)]
    fn doubt(&self, octets: &[u8], at: usize, header: usize, drained: bool) -> Doubt {
        let fields = self.fields(octets, at);
        if fields.captured > self.captured_max {
            return Doubt::Fault(Fault::RecordTooLong);
        }
        let empty = |fields: &Fields| fields.captured == 0 && fields.length == 0;
        let end = at + header + fields.captured as usize;
        let next = octets.get(end..).filter(|rest| rest.len() >= header);
        if next.is_none() && drained {
            return match empty(&fields) && octets.len() > end {
                true => Doubt::Fault(Fault::BadRecordLength),
                false => Doubt::Accept,
            };
        }
        if next.is_none() {
            return Doubt::Wait;
        }
        let next = self.fields(octets, end);
        // Two records without a byte in a row are zeros where a part of the file was never written.
        let possible = next.captured <= self.captured_max
            && next.length <= self.captured_max.max(LENGTH_MAX)
            && !(empty(&fields) && empty(&next))
            && !(is_doubtful(next.captured, next.length) && is_far(next.seconds, fields.seconds));
        if !possible {
            return Doubt::Fault(Fault::BadRecordLength);
        }
        Doubt::Accept
    }

    /// The fields of the record header at `at`, which must be in `octets`.
    fn fields(&self, octets: &[u8], at: usize) -> Fields {
        let [seconds, fraction, first, second] =
            [0, 4, 8, 12].map(|field| self.order.u32(&octets[at..], field));
        let (captured, length) = self.lengths(first, second);
        Fields {
            seconds,
            fraction,
            captured,
            length,
        }
    }

    /// After a fault: finds the next record from `from` on, or the header of another file of the same kind.
    pub(crate) fn find(&mut self, octets: &[u8], from: usize, drained: bool) -> Found {
        let found = search(octets, from, drained, |at| self.chain(octets, at, drained));
        if let Found::At(at) = found {
            // The first record is not far from itself.
            self.last = None;
            if octets[at..].starts_with(&self.head) {
                return Found::At(at + HEADER_LEN);
            }
        }
        found
    }

    /// Whether a few plausible records follow each other from `from` on.
    fn chain(&self, octets: &[u8], from: usize, drained: bool) -> Chain {
        let header = if self.modified { 24 } else { 16 };
        let (mut at, mut last) = (from, self.last.map(|last| (last, GAP_MAX_S)));
        if octets[at..].starts_with(&self.head) {
            (at, last) = (at + HEADER_LEN, None);
        }
        for count in 0..CHAIN {
            if at == octets.len() && drained && count > 0 {
                return Chain::Whole;
            }
            if octets.len() < at + header {
                return Chain::Unknown;
            }
            let fields = self.fields(octets, at);
            if !self.is_plausible(&fields, last) {
                return Chain::Broken;
            }
            last = Some((fields.seconds, LATER_MAX_S));
            at += header + fields.captured as usize;
            if at > octets.len() {
                return Chain::Unknown;
            }
        }
        Chain::Whole
    }

    fn is_plausible(&self, fields: &Fields, last: Option<(u32, u32)>) -> bool {
        let time = last.is_none_or(|(last, later)| {
            let ahead = fields.seconds.wrapping_sub(last);
            ahead.wrapping_add(EARLIER_MAX_S) <= later + EARLIER_MAX_S
        });
        time && !is_doubtful(fields.captured, fields.length)
            && fields.fraction < 1_000_000_000 / self.unit_ns
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

/// The fields of a record's header.
struct Fields {
    seconds: u32,
    fraction: u32,
    captured: u32,
    length: u32,
}

/// What to do with an unusual record.
enum Doubt {
    Accept,
    /// More bytes are needed to tell.
    Wait,
    Fault(Fault),
}

/// Whether the lengths are unusual: nothing captured, more than was sent, or more than any packet has.
#[inline(always)]
fn is_doubtful(captured: u32, length: u32) -> bool {
    (captured.wrapping_sub(1) >= length) | (length > PACKET_MAX)
}

/// Whether a time is unusually far from that of the record before.
#[inline(always)]
fn is_far(seconds: u32, last: u32) -> bool {
    seconds.wrapping_sub(last).wrapping_add(EARLIER_MAX_S) > LATER_MAX_S + EARLIER_MAX_S
}
