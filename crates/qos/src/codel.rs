//! CoDel: one queue that keeps its packets' delay low. tc's `codel`.
//!
//! RFC 8289; RFC 3168 for marks. Left out: RFC 8289 appendix A (data centres), except the threshold for marks.

pub mod control;

use base::{Duration, Instant};

use crate::discipline::{Backlog, Discipline, Statistics};
use crate::packet::{Id, List, Pool, Reason};
use crate::plan::{About, Declared, Make, Picture, Plan, Unfit};
use crate::queue::{Given, LimitBy, Offer, Queue, Setting, Takes};
use crate::units::Time;
use control::{Control, Law, Pace, Tally, Turn, Waiting};

/// The parameters of the control law (RFC 8289 4.2 to 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// The standing delay that is acceptable: 5 ms.
    pub target: Duration,
    /// How long the delay may stay above the target before a packet is dropped: about a round trip of the slowest
    /// flow, 100 ms. Values above 4.29 s count as 4.29 s.
    pub interval: Duration,
    /// Bytes on the line of the largest packet. A packet with no more than this behind it is not dropped.
    pub mtu: u32,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Above this delay every ECN-capable packet is marked, whatever the control law says.
    pub ce_threshold: Option<Duration>,
}

impl Default for Parameters {
    /// RFC 8289's values for Ethernet, without marks.
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

/// Options of a [`Codel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Packets it holds.
    pub limit: u32,
    /// The control law.
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

/// One queue whose first packet is dropped or marked when it has waited too long.
#[derive(Debug)]
pub struct Codel {
    limit: u32,
    law: Law,
    list: List,
    control: Control,
    pace: Pace,
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
            pace: Pace::default(),
            tally: Tally::default(),
            statistics: Statistics::default(),
            drop_overlimit: 0,
        }
    }
}

impl Waiting for List {
    fn pop(&mut self, pool: &Pool) -> Option<Id> {
        List::pop(self, pool)
    }

    fn bytes_behind(&self) -> u64 {
        self.bytes()
    }
}

/// `ecn`: whether packets are marked instead of dropped.
pub static ECN: Setting = Setting {
    name: "ecn",
    takes: Takes::Flag,
    caution: None,
};

/// `target`: [`Parameters::target`], from 100 us to 1 s.
pub static TARGET: Setting = Setting {
    name: "target",
    takes: Takes::Time(100_000, 1_000_000_000),
    caution: None,
};

/// `interval`: [`Parameters::interval`], from 1 ms to 4 s.
pub static INTERVAL: Setting = Setting {
    name: "interval",
    takes: Takes::Time(1_000_000, 4_000_000_000),
    caution: None,
};

impl Parameters {
    /// The parameters for a policy. RFC 8289 4.4: the target is at least the time of 1.5 packets, or every packet
    /// would be late.
    pub(crate) fn of(given: &Given<'_>) -> Self {
        let settings = given.settings;
        let packet = u64::from(given.mtu) * 12_000_000_000 / given.link_bps;
        let least = Duration::from_millis(5);
        let target = settings
            .time(&TARGET)
            .unwrap_or(least.max(Duration::from_nanos(packet)));
        let more = Duration::from_nanos(target.as_nanos().saturating_sub(least.as_nanos()));
        let interval = settings.time(&INTERVAL);
        Self {
            target,
            interval: interval.unwrap_or(Duration::from_millis(100) + more),
            mtu: given.mtu,
            ecn: settings.is_on(&ECN),
            ce_threshold: None,
        }
    }

    /// The parameters as tc prints them, each after a space.
    pub(crate) fn options(&self) -> String {
        let (target, interval) = (Time(self.target), Time(self.interval));
        let mut text = format!(" target {target} interval {interval}");
        if let Some(threshold) = self.ce_threshold {
            text += &format!(" ce_threshold {}", Time(threshold));
        }
        if self.ecn {
            text.push_str(" ecn");
        }
        text
    }
}

impl Declared for Options {
    const ABOUT: About<Self> = About {
        kinds: &["codel"],
        queues: &[Queue {
            offer: Offer {
                name: "codel",
                template: "codel",
                settings: &[&ECN, &TARGET, &INTERVAL],
                limit: LimitBy::Packets(1_000),
                bounds_delay: true,
            },
            plan: |given| Options {
                limit: given.packets(),
                parameters: Parameters::of(given),
            },
        }],
        picture: Picture {
            has_flow_classes: false,
        },
    };
}

impl<S> Plan<S> for Options {
    fn kind(&self) -> &'static str {
        "codel"
    }

    fn options(&self) -> String {
        format!("limit {}p{}", self.limit, self.parameters.options())
    }

    fn packets_max(&self) -> u32 {
        self.limit
    }

    fn make(&self, _: Make) -> Result<Box<dyn Discipline>, Unfit> {
        Ok(Box::new(Codel::new(*self)))
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
        let id = self
            .control
            .dequeue(&mut self.pace, &mut turn, &mut self.list)?;
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
            ("count", self.pace.count().into()),
            ("lastcount", self.pace.last_count().into()),
            ("dropping", self.control.is_dropping().into()),
            ("maxpacket", self.tally.max_packet.into()),
            ("ecn_mark", self.tally.ecn_mark),
            ("ce_mark", self.tally.ce_mark),
            ("drop_overlimit", self.drop_overlimit),
        ]
    }
}
