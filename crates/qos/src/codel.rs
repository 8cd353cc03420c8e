//! Controlled delay: one queue, in which no packet waits for long for long. tc's `codel`.
//!
//! RFC 8289; RFC 3168 for marks. Left out: what RFC 8289 appendix A says of data centres, beyond the threshold for marks.

pub(crate) mod control;

use base::{Duration, Instant};

use crate::discipline::{Backlog, Discipline, Statistics};
use crate::packet::{Id, List, Pool, Reason};
use control::{Control, Law, Queue, Tally, Turn};

/// What controls the delay (RFC 8289 4.2 to 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// The wait that may stand, 5 ms.
    pub target: Duration,
    /// How long it may be passed before a packet is dropped; about a round trip of the slowest flow, 100 ms. More than
    /// 4.29 s counts as that.
    pub interval: Duration,
    /// Octets on the line of the largest packet: while no more than this waits behind a packet, it is not dropped.
    pub mtu: u32,
    /// Whether a packet whose sender understands marks is marked in place of dropped.
    pub ecn: bool,
    /// The wait above which all such packets are marked, whatever came before.
    pub ce_threshold: Option<Duration>,
}

impl Default for Parameters {
    /// As RFC 8289 has it, without marks, for Ethernet.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            mtu: 1514,
            ecn: false,
            ce_threshold: None,
        }
    }
}

/// What a [`Codel`] is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Packets it holds.
    pub limit: u32,
    /// What controls the delay.
    pub parameters: Parameters,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limit: 1000,
            parameters: Parameters::default(),
        }
    }
}

/// One queue whose head is dropped, or marked, when it has waited too long.
#[derive(Debug)]
pub struct Codel {
    limit: u32,
    law: Law,
    list: List,
    control: Control,
    tally: Tally,
    statistics: Statistics,
    drop_overlimit: u64,
}

impl Codel {
    /// An empty queue.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            limit: options.limit,
            law: Law::new(&options.parameters),
            list: List::default(),
            control: Control::default(),
            tally: Tally::default(),
            statistics: Statistics::default(),
            drop_overlimit: 0,
        }
    }
}

impl Queue for List {
    fn pop(&mut self, pool: &Pool) -> Option<Id> {
        List::pop(self, pool)
    }

    fn bytes_behind(&self) -> u64 {
        self.bytes()
    }
}

impl Discipline for Codel {
    fn kind(&self) -> &'static str {
        "codel"
    }

    fn enqueue(&mut self, pool: &mut Pool, id: Id, _: Instant) -> bool {
        let fits = self.list.packets() < self.limit;
        if fits {
            self.list.push(pool, id);
        } else {
            self.drop_overlimit += 1;
            pool.discard(id, Reason::Full);
        }
        fits
    }

    fn restore(&mut self, pool: &mut Pool, id: Id, _: Instant) -> bool {
        self.list.push(pool, id);
        true
    }

    fn dequeue(&mut self, pool: &mut Pool, now: Instant) -> Option<Id> {
        let mut turn = Turn {
            law: &self.law,
            tally: &mut self.tally,
            pool,
            now,
        };
        let id = self.control.dequeue(&mut turn, &mut self.list)?;
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
        Statistics {
            dropped: self.drop_overlimit + self.tally.dropped,
            ecn_mark: self.tally.ecn_mark,
            ..self.statistics
        }
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut Vec<Id>) {
        self.list.drain(pool, into);
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("count", self.control.count().into()),
            ("lastcount", self.control.last_count().into()),
            ("dropping", self.control.is_dropping().into()),
            ("maxpacket", self.tally.max_packet.into()),
            ("ecn_mark", self.tally.ecn_mark),
            ("ce_mark", self.tally.ce_mark),
            ("drop_overlimit", self.drop_overlimit),
        ]
    }
}
