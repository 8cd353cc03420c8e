//! Three queues by priority, chosen by the TOS octet or traffic class: tc's `pfifo_fast`.
//!
//! RFC 2474 (the DS field), RFC 3168 (its last two bits are ECN's and never choose a queue), RFC 3246 (EF), RFC 5865
//! (VOICE-ADMIT), RFC 8622 (lower effort), RFC 4594 (CS6, CS7, CS1). Left out: the socket's priority, which Linux derives
//! from the octet too.

use base::Instant;
use wire::flow::Keys;

use crate::discipline::{Backlog, Classify, Discipline, Statistics};
use crate::packet::{Id, List, Pool, Reason};

/// Which band a packet belongs to, by the upper six bits of its TOS octet or traffic class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bands([u8; 64]);

impl Bands {
    /// The Linux kernel's reading: the bits of RFC 1349. Low delay is band 0, high throughput band 2, both, or
    /// neither, band 1. Expedited forwarding is band 1 to it.
    pub const LINUX: Self = {
        let mut bands = [0; 64];
        let mut dscp = 0;
        while dscp < 64 {
            bands[dscp] = [1, 2, 0, 1][(dscp >> 1) & 3];
            dscp += 1;
        }
        Self(bands)
    };

    /// The reading of differentiated services: EF, VOICE-ADMIT, CS6 and CS7 are band 0, CS1 and LE band 2, all else
    /// band 1.
    pub const DSCP: Self = {
        let mut bands = [1; 64];
        bands[46] = 0;
        bands[44] = 0;
        bands[48] = 0;
        bands[56] = 0;
        bands[8] = 2;
        bands[1] = 2;
        Self(bands)
    };

    /// A table of one's own: `bands[dscp]`.
    #[must_use]
    pub const fn new(bands: [u8; 64]) -> Self {
        Self(bands)
    }

    /// The band of a packet with this TOS octet or traffic class.
    #[must_use]
    #[inline]
    pub const fn band(&self, traffic_class: u8) -> u8 {
        self.0[(traffic_class >> 2) as usize]
    }
}

impl Classify for Bands {
    /// Band 0 is class 1, as in tc's `prio`.
    fn class(&self, keys: &Keys) -> Option<u32> {
        Some(1 + u32::from(self.band(keys.traffic_class)))
    }
}

/// What a [`PfifoFast`] is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Packets in each band.
    pub limit: u32,
    /// Which packet belongs where; bands above 2 count as 2.
    pub bands: Bands,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limit: 1000,
            bands: Bands::DSCP,
        }
    }
}

/// Three queues; one is served while those before it are empty.
#[derive(Debug)]
pub struct PfifoFast {
    options: Options,
    lists: [List; 3],
    statistics: Statistics,
}

impl PfifoFast {
    /// Empty queues.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            lists: [List::default(); 3],
            statistics: Statistics::default(),
        }
    }

    fn list(&mut self, pool: &Pool, id: Id) -> &mut List {
        let band = self.options.bands.band(pool.traffic_class(id));
        &mut self.lists[usize::from(band.min(2))]
    }
}

impl Discipline for PfifoFast {
    fn kind(&self) -> &'static str {
        "pfifo_fast"
    }

    fn enqueue(&mut self, pool: &mut Pool, id: Id, _: Instant) -> bool {
        let limit = self.options.limit;
        let list = self.list(pool, id);
        let fits = list.packets() < limit;
        if fits {
            list.push(pool, id);
        } else {
            self.statistics.dropped += 1;
            pool.discard(id, Reason::Full);
        }
        fits
    }

    fn restore(&mut self, pool: &mut Pool, id: Id, _: Instant) -> bool {
        self.list(pool, id).push(pool, id);
        true
    }

    fn dequeue(&mut self, pool: &mut Pool, _: Instant) -> Option<Id> {
        let id = self.lists.iter_mut().find_map(|list| list.pop(pool))?;
        self.statistics.count_sent(pool.length(id));
        Some(id)
    }

    fn next_time(&self, now: Instant) -> Option<Instant> {
        self.lists
            .iter()
            .any(|list| !list.is_empty())
            .then_some(now)
    }

    fn backlog(&self) -> Backlog {
        self.lists.iter().map(List::backlog).sum()
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut Vec<Id>) {
        for list in &mut self.lists {
            list.drain(pool, into);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;

    #[test]
    fn the_bits_of_ecn_choose_no_band() {
        for bands in [Bands::LINUX, Bands::DSCP] {
            for octet in 0..=255u8 {
                assert_eq!(bands.band(octet), bands.band(octet & 0xfc), "{octet:#x}");
            }
        }
    }

    #[test]
    fn the_kernel_s_table_repeats_its_four_rows() {
        for octet in 0..=255u8 {
            let expected = match octet & 0x1f {
                0x00..=0x07 => 1,
                0x08..=0x0f => 2,
                0x10..=0x17 => 0,
                _ => 1,
            };
            assert_eq!(Bands::LINUX.band(octet), expected, "{octet:#x}");
        }
    }

    #[test]
    fn differentiated_services_put_voice_and_control_first_and_scavengers_last() {
        for dscp in 0..64u8 {
            let expected = match dscp {
                44 | 46 | 48 | 56 => 0,
                1 | 8 => 2,
                _ => 1,
            };
            assert_eq!(Bands::DSCP.band(dscp << 2), expected, "{dscp}");
        }
    }

    #[test]
    fn the_first_band_goes_first_and_a_full_band_takes_nothing_from_another() {
        let mut pool = Pool::new(100);
        let mut queue = PfifoFast::new(Options {
            limit: 2,
            ..Options::default()
        });
        let mut taken = Vec::new();
        for (handle, traffic_class) in [(0, 0x00), (1, 0x20), (2, 0x02), (3, 0x00), (4, 0xb8)] {
            let mut packet = Packet {
                handle,
                length: 100,
                ..Packet::default()
            };
            packet.keys.traffic_class = traffic_class;
            let id = pool.insert(packet).expect("room");
            taken.push(queue.enqueue(&mut pool, id, Instant::ZERO));
        }
        assert_eq!(taken, [true, true, true, false, true]);
        let mut order = Vec::new();
        while let Some(id) = queue.dequeue(&mut pool, Instant::ZERO) {
            order.push(pool.take(id).handle);
        }
        assert_eq!(order, [4, 0, 2, 1]);
    }
}
