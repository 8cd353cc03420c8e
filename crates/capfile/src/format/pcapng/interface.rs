//! Interface Description Blocks, and the resolution of their time stamps.

use wire::link::LinkType;

use super::statistics::Statistics;
use crate::octets::Order;

const END_OF_OPTIONS: u16 = 0;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;

const SECOND_NS: i64 = 1_000_000_000;

/// An interface of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) link: LinkType,
    /// Limit of bytes captured of a packet; 0 means no limit.
    pub(super) snaplen: u32,
    pub(super) resolution: Resolution,
    pub(super) offset_s: i64,
    /// What the capture counted at it.
    pub(super) statistics: Statistics,
}

/// How long a unit of the time stamps is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resolution {
    /// This many ns.
    Nanos(u32),
    /// A power of ten finer than ns: this many units per ns.
    Finer(u128),
    /// 2 to this power to the second.
    Binary(u32),
}

/// Calls `take` with code and value of each option of a block. False if one reaches past the block.
pub(super) fn options(order: Order, octets: &[u8], mut take: impl FnMut(u16, &[u8])) -> bool {
    let mut rest = octets;
    while let Some((header, after)) = rest.split_first_chunk::<4>() {
        let (code, length) = (order.u16(header, 0), usize::from(order.u16(header, 2)));
        if code == END_OF_OPTIONS {
            break;
        }
        let Some(value) = after.get(..length) else {
            return false;
        };
        take(code, value);
        rest = after.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    true
}

impl Interface {
    /// Reads a block from its link type to before the length at its end, at least 8 octets; and whether its options
    /// are whole.
    pub(super) fn parse(order: Order, body: &[u8]) -> (Interface, bool) {
        let mut interface = Interface {
            link: LinkType(order.u16(body, 0)),
            snaplen: order.u32(body, 4),
            resolution: Resolution::Nanos(1000),
            offset_s: 0,
            statistics: Statistics::default(),
        };
        let are_whole = options(order, &body[8..], |code, value| match (code, value) {
            (IF_TSRESOL, &[resolution]) => interface.resolution = Resolution::new(resolution),
            (IF_TSOFFSET, value) if value.len() == 8 => {
                interface.offset_s = offset(order, value);
            }
            _ => {}
        });
        (interface, are_whole)
    }

    /// The time after that many units, in ns since 1970, and whether it is exact except for a
    /// fraction of a ns.
    #[inline(always)]
    pub(super) fn time_ns(&self, ticks: u64) -> (i64, bool) {
        if let Resolution::Nanos(unit_ns) = self.resolution
            && self.offset_s == 0
            && let Some(time_ns) = ticks.checked_mul(u64::from(unit_ns))
            && let Ok(time_ns) = i64::try_from(time_ns)
        {
            return (time_ns, true);
        }
        self.time_ns_of_any(ticks)
    }

    #[cold]
    #[inline(never)]
    fn time_ns_of_any(&self, ticks: u64) -> (i64, bool) {
        let ticks = u128::from(ticks);
        let since_offset = match self.resolution {
            Resolution::Nanos(unit_ns) => ticks * u128::from(unit_ns),
            Resolution::Finer(to_the_ns) => ticks / to_the_ns,
            Resolution::Binary(power) => (ticks * SECOND_NS as u128) >> power,
        };
        // Below 2^64 times 10^9, so it fits.
        let time_ns = since_offset as i128 + i128::from(self.offset_s) * i128::from(SECOND_NS);
        match i64::try_from(time_ns) {
            Ok(time_ns) => (time_ns, true),
            Err(_) if time_ns < 0 => (i64::MIN, false),
            Err(_) => (i64::MAX, false),
        }
    }
}

impl Resolution {
    /// Reads the value of if_tsresol: a negative power of 2 or, where the high bit is clear, of 10.
    fn new(octet: u8) -> Resolution {
        let power = u32::from(octet & 0x7f);
        match octet {
            0x80.. => Resolution::Binary(power),
            0..=9 => Resolution::Nanos(10u32.pow(9 - power)),
            // No 64-bit count of units so fine reaches 1 ns beyond 10^38.
            _ => Resolution::Finer(10u128.checked_pow(power - 9).unwrap_or(u128::MAX)),
        }
    }
}

/// Reads the 64-bit value of if_tsoffset.
fn offset(order: Order, value: &[u8]) -> i64 {
    let (high, low) = match order {
        Order::Big => (0, 4),
        Order::Little => (4, 0),
    };
    (u64::from(order.u32(value, high)) << 32 | u64::from(order.u32(value, low))) as i64
}
