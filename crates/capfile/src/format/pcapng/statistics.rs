//! Interface Statistics Blocks (draft-ietf-opsawg-pcapng 4.6): what the capturing host itself counted.
//!
//! The counters run from the start of the capture, so that a later block of an interface replaces an earlier one. A damaged
//! block counts as absent: it has no packet that could be missed.

use super::interface::{Interface, options};
use crate::octets::Order;

const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;
const ISB_FILTERACCEPT: u16 = 6;
const ISB_OSDROP: u16 = 7;

/// Written by some programs for a counter that they do not have.
const UNKNOWN: u64 = u64::MAX;

/// Counts by the host that captured a pcapng file, of all interfaces together. A counter is `None` if the file lacks it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets that the interfaces received (`isb_ifrecv`).
    pub received: Option<u64>,
    /// Packets that the interfaces dropped for lack of resources (`isb_ifdrop`).
    pub dropped_by_interface: Option<u64>,
    /// Packets that the capture filter accepted (`isb_filteraccept`).
    pub accepted: Option<u64>,
    /// Packets that the operating system dropped (`isb_osdrop`).
    pub dropped_by_system: Option<u64>,
}

impl Statistics {
    /// Packets that the capture lacks, although they passed its interfaces.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        let [interface, system] =
            [self.dropped_by_interface, self.dropped_by_system].map(Option::unwrap_or_default);
        interface.saturating_add(system)
    }

    /// Whether the file has no counter.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Statistics::default()
    }

    /// Reads the options of a block.
    fn read(order: Order, body: &[u8]) -> Statistics {
        let mut read = Statistics::default();
        options(order, body, |code, value| {
            let Some(value) = value.first_chunk::<8>().filter(|_| value.len() == 8) else {
                return;
            };
            let count = Some(order.u64(value, 0)).filter(|&count| count != UNKNOWN);
            match code {
                ISB_IFRECV => read.received = count,
                ISB_IFDROP => read.dropped_by_interface = count,
                ISB_FILTERACCEPT => read.accepted = count,
                ISB_OSDROP => read.dropped_by_system = count,
                _ => {}
            }
        });
        read
    }

    /// Each counter of both, by `join` where both have it.
    fn with(self, other: Statistics, join: fn(u64, u64) -> u64) -> Statistics {
        let both = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(join(one, other)),
            _ => one.or(other),
        };
        Statistics {
            received: both(self.received, other.received),
            dropped_by_interface: both(self.dropped_by_interface, other.dropped_by_interface),
            accepted: both(self.accepted, other.accepted),
            dropped_by_system: both(self.dropped_by_system, other.dropped_by_system),
        }
    }

    /// The counters of both together.
    fn plus(self, other: Statistics) -> Statistics {
        self.with(other, u64::saturating_add)
    }
}

/// Notes a block, from its interface's number to before the length at its end.
#[cold]
pub(super) fn note(interfaces: &mut [Interface], order: Order, body: &[u8]) {
    // The interface, and a time stamp.
    let Some((head, rest)) = body.split_first_chunk::<12>() else {
        return;
    };
    if let Some(interface) = interfaces.get_mut(order.u32(head, 0) as usize) {
        let read = Statistics::read(order, rest);
        interface.statistics = interface.statistics.with(read, |_, later| later);
    }
}

/// The counters of a section's interfaces, and those of earlier sections.
pub(super) fn sum(earlier: Statistics, interfaces: &[Interface]) -> Statistics {
    let each = interfaces.iter().map(|interface| interface.statistics);
    each.fold(earlier, Statistics::plus)
}
