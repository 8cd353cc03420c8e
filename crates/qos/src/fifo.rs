//! First in, first out, up to a limit in packets or in bytes: tc's `pfifo` and `bfifo`.

use base::{Duration, Instant};

use crate::discipline::{Backlog, Discipline, Statistics};
use crate::packet::{Id, List, Pool, Reason};
use crate::plan::{About, Declared, Make, Picture, Plan, Unfit};
use crate::queue::{self, Given, Offer, Queue};
use crate::units::Octets;

/// Bytes on the line of the shortest packet.
const SHORTEST: u64 = 64;

/// The limit of a [`Fifo`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// In packets.
    Packets(u32),
    /// In bytes on the line.
    Bytes(u64),
}

/// One queue; a packet beyond the limit is discarded on arrival.
#[derive(Debug)]
pub struct Fifo {
    limit: Limit,
    list: List,
    statistics: Statistics,
}

impl Fifo {
    /// An empty queue.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self {
            limit,
            list: List::default(),
            statistics: Statistics::default(),
        }
    }
}

impl Limit {
    fn kind(self) -> &'static str {
        match self {
            Self::Packets(_) => "pfifo",
            Self::Bytes(_) => "bfifo",
        }
    }

    /// The limit for a policy. A limit in bytes has room for the longest packet.
    fn of(given: &Given<'_>) -> Self {
        let longest = u64::from(given.mtu);
        match given.limit {
            queue::LimitBy::Packets(packets) => Self::Packets(packets),
            queue::LimitBy::Octets(octets) => Self::Bytes(octets.max(longest)),
            queue::LimitBy::Time(time) => {
                Self::Bytes(queue::octets_in(given.link_bps, time).max(longest))
            }
        }
    }
}

impl Declared for Limit {
    const ABOUT: About<Self> = About {
        kinds: &["pfifo", "bfifo"],
        queues: &[
            Queue {
                offer: Offer {
                    name: "fifo",
                    template: "fifo",
                    settings: &[],
                    limit: queue::LimitBy::Time(Duration::from_millis(100)),
                    bounds_delay: false,
                },
                plan: Limit::of,
            },
            Queue {
                offer: Offer {
                    name: "pfifo",
                    template: "pfifo",
                    settings: &[],
                    limit: queue::LimitBy::Packets(100),
                    bounds_delay: false,
                },
                plan: Limit::of,
            },
        ],
        picture: Picture {
            has_flow_classes: false,
        },
    };
}

impl<S> Plan<S> for Limit {
    fn kind(&self) -> &'static str {
        Limit::kind(*self)
    }

    fn options(&self) -> String {
        match self {
            Self::Packets(packets) => format!("limit {packets}p"),
            Self::Bytes(bytes) => format!("limit {}", Octets(*bytes)),
        }
    }

    fn packets_max(&self) -> u32 {
        match self {
            Self::Packets(packets) => *packets,
            Self::Bytes(bytes) => u32::try_from(bytes / SHORTEST).unwrap_or(u32::MAX),
        }
    }

    fn longest(&self) -> u32 {
        match self {
            Self::Packets(_) => u32::MAX,
            // Several of them fit.
            Self::Bytes(bytes) => u32::try_from(bytes / 8).unwrap_or(u32::MAX),
        }
    }

    fn make(&self, _: Make) -> Result<Box<dyn Discipline>, Unfit> {
        Ok(Box::new(Fifo::new(*self)))
    }
}

impl Discipline for Fifo {
    fn kind(&self) -> &'static str {
        self.limit.kind()
    }

    fn enqueue(&mut self, pool: &mut Pool, id: Id, _: Instant) -> bool {
        let fits = match self.limit {
            Limit::Packets(limit) => self.list.packets() < limit,
            Limit::Bytes(limit) => {
                let bytes = self.list.bytes() + u64::from(pool.length(id));
                bytes <= limit
            }
        };
        if fits {
            self.list.push(pool, id);
        } else {
            self.statistics.dropped += 1;
            pool.discard(id, Reason::Full);
        }
        fits
    }

    fn restore(&mut self, pool: &mut Pool, id: Id, _: Instant) -> bool {
        self.list.push(pool, id);
        true
    }

    fn dequeue(&mut self, pool: &mut Pool, _: Instant) -> Option<Id> {
        let id = self.list.pop(pool)?;
        self.statistics.count_sent(pool.length(id));
        Some(id)
    }

    fn next_time(&self, now: Instant) -> Option<Instant> {
        (!self.list.is_empty()).then_some(now)
    }

    fn backlog(&self) -> Backlog {
        self.list.backlog()
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut Vec<Id>) {
        self.list.drain(pool, into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;

    fn taken(limit: Limit, lengths: &[u32]) -> Vec<bool> {
        let mut pool = Pool::new(100);
        let mut fifo = Fifo::new(limit);
        lengths
            .iter()
            .map(|&length| {
                let packet = Packet {
                    length,
                    ..Packet::default()
                };
                let id = pool.insert(packet).expect("room");
                fifo.enqueue(&mut pool, id, Instant::ZERO)
            })
            .collect()
    }

    #[test]
    fn a_limit_in_packets_ignores_their_size() {
        assert_eq!(
            taken(Limit::Packets(2), &[9000, 9000, 1]),
            [true, true, false]
        );
        assert_eq!(taken(Limit::Packets(0), &[1]), [false]);
    }

    #[test]
    fn a_limit_in_bytes_takes_a_small_packet_after_a_large_one_did_not_fit() {
        assert_eq!(
            taken(Limit::Bytes(1000), &[900, 101, 100, 1]),
            [true, false, true, false]
        );
    }
}
