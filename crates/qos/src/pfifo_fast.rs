//! Three queues by priority, chosen by the TOS octet or traffic class: tc's `pfifo_fast`.
//!
//! RFC 2474 (the DS field). Left out: the socket's priority, which Linux also derives from the octet. [`Bands`] has
//! the RFCs of each code point.

use base::Instant;

use crate::classify::Bands;
use crate::discipline::{Backlog, Discipline, Statistics};
use crate::packet::{Id, List, Pool, Reason};
use crate::plan::{About, Declared, Make, Picture, Plan, Unfit};
use crate::queue::{LimitBy, Offer, Queue};

/// Options of a [`PfifoFast`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Packets in each band.
    pub limit: u32,
    /// The band of each packet; bands above 2 count as 2.
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

/// Three queues; each is served while those before it are empty.
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

impl Declared for Options {
    const ABOUT: About<Self> = About {
        kinds: &["pfifo_fast"],
        queues: &[Queue {
            offer: Offer {
                name: "bands",
                template: "bands",
                settings: &[],
                limit: LimitBy::Packets(100),
                bounds_delay: false,
            },
            plan: |given| Options {
                limit: given.packets(),
                ..Options::default()
            },
        }],
        picture: Picture {
            has_flow_classes: false,
        },
    };
}

impl<S> Plan<S> for Options {
    fn kind(&self) -> &'static str {
        "pfifo_fast"
    }

    fn options(&self) -> String {
        format!("bands 3 limit {}p", self.limit)
    }

    fn packets_max(&self) -> u32 {
        self.limit.saturating_mul(3)
    }

    fn make(&self, _: Make) -> Result<Box<dyn Discipline>, Unfit> {
        Ok(Box::new(PfifoFast::new(*self)))
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
