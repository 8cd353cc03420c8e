//! TSH: 44 octets for each packet: seconds, the interface in 8 bits, microseconds in 24, the first 20 octets of the
//! IPv4 header and the next 16. There is no file header and no magic number.

use wire::link::LinkType;

use super::Step;
use crate::block::{Record, Sink};
use crate::fault::Fault;
use crate::octets::Order;

const RECORD: usize = 44;
const TIME: usize = 8;
/// Captured bytes of a packet.
const HELD: u32 = 36;
const IP_HEADER: u32 = 20;
/// Records looked at to recognise the format.
const LOOKED_AT: usize = 8;
/// The most seconds that may lie between two of those.
const APART_S_MAX: u32 = 86_400;

/// Whether the first records look like TSH's: IPv4, fractions below a second, times close to each other.
pub(crate) fn plausible(head: &[u8]) -> bool {
    let (records, _) = head.as_chunks::<RECORD>();
    let records = &records[..records.len().min(LOOKED_AT)];
    !records.is_empty()
        && records.iter().all(|record| {
            record[8] >> 4 == 4
                && record[8] & 0x0f >= 5
                && u32::from(Order::Big.u16(record, TIME + 2)) >= IP_HEADER
                && fraction_us(record) < 1_000_000
        })
        && records
            .windows(2)
            .all(|pair| seconds(&pair[0]).abs_diff(seconds(&pair[1])) <= APART_S_MAX)
}

pub(crate) fn walk(octets: &[u8], from: usize, sink: &mut Sink<'_>) -> Step {
    let (records, _) = octets[from..].as_chunks::<RECORD>();
    let mut at = from;
    for record in records {
        let micros = fraction_us(record);
        if micros >= 1_000_000 {
            sink.fault(at, Fault::BadTime);
        }
        // Less than a header is no length (and 0 that of a packet to be segmented).
        let length = match u32::from(Order::Big.u16(record, TIME + 2)) {
            0..IP_HEADER => HELD,
            length => length,
        };
        sink.records.push(Record {
            start: (at + TIME) as u32,
            captured: HELD.min(length),
            length,
            time_ns: i64::from(seconds(record)) * 1_000_000_000 + i64::from(micros) * 1000,
            link: LinkType::IPV4,
            interface: u16::from(record[4]),
            offset: sink.base + at as u64,
        });
        at += RECORD;
    }
    Step::more_from(at)
}

fn seconds(record: &[u8; RECORD]) -> u32 {
    Order::Big.u32(record, 0)
}

fn fraction_us(record: &[u8; RECORD]) -> u32 {
    Order::Big.u32(record, 4) & 0x00ff_ffff
}
