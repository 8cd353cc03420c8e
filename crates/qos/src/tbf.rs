//! TBF, the token bucket filter: limits the rate of the discipline below.
//!
//! Over any span of time `w` at most `rate * w + burst` leaves. As in tc-tbf(8), the next packet is known before it
//! may leave: the packet that waits for tokens has left the discipline below already.

use base::Instant;

use crate::bucket::{Bucket, Tokens};
use crate::discipline::{Backlog, Discipline, Statistics};
use crate::packet::{Id, Pool, Reason};
use crate::plan::{About, Declared, Make, Picture, Plan, Unfit};
use crate::units::{self, Octets, Rate};

/// A second rate that bursts must not exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peak {
    /// Bits per second.
    pub rate_bps: u64,
    /// Size of its bucket in bytes; larger packets are discarded.
    pub mtu: u32,
}

/// Rate and burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Bits per second.
    pub rate_bps: u64,
    /// Size of the bucket in bytes; larger packets are discarded.
    pub burst: u32,
    /// A second rate, which limits the bursts.
    pub peak: Option<Peak>,
}

impl Options {
    fn longest(&self) -> u32 {
        self.peak
            .map_or(self.burst, |peak| peak.mtu.min(self.burst))
    }
}

/// A token bucket above another discipline.
#[derive(Debug)]
pub struct Tbf {
    longest: u32,
    bucket: Bucket,
    peak: Option<Bucket>,
    child: Box<dyn Discipline>,
    /// The packet that leaves next, and its length.
    held: Option<(Id, u32)>,
    own: Statistics,
}

impl Tbf {
    /// Shapes what leaves `child`. The bucket starts full, or with `level` bytes: the level that
    /// [`Discipline::levels`] returned for its predecessor.
    #[must_use]
    pub fn new(
        options: &Options,
        child: Box<dyn Discipline>,
        level: Option<i64>,
        now: Instant,
    ) -> Self {
        let bucket = |rate_bps, size: u32| {
            Bucket::new(rate_bps, size, level.unwrap_or(i64::from(size)), now)
        };
        Self {
            longest: options.longest(),
            bucket: bucket(options.rate_bps, options.burst),
            peak: options.peak.map(|peak| bucket(peak.rate_bps, peak.mtu)),
            child,
            held: None,
            own: Statistics::default(),
        }
    }

    fn hold(&mut self, pool: &mut Pool, now: Instant) {
        if self.held.is_none() {
            self.held = self
                .child
                .dequeue(pool, now)
                .map(|id| (id, pool.get(id).length));
        }
    }

    fn due(&self, length: u32) -> Instant {
        let due = self.bucket.holds_at(length);
        self.peak.map_or(due, |peak| due.max(peak.holds_at(length)))
    }
}

/// The plan of a [`Tbf`].
#[derive(Debug, Clone, PartialEq)]
pub struct TbfSpec<S> {
    /// The rate.
    pub options: Options,
    /// The plan below it.
    pub child: Box<S>,
}

impl<S: 'static> Declared for TbfSpec<S> {
    const ABOUT: About<Self> = About {
        kinds: &["tbf"],
        queues: &[],
        picture: Picture {
            has_flow_classes: false,
        },
    };
}

impl<S> Plan<S> for TbfSpec<S> {
    fn kind(&self) -> &'static str {
        "tbf"
    }

    fn options(&self) -> String {
        let Options {
            rate_bps,
            burst,
            peak,
        } = self.options;
        let mut text = format!("rate {} burst {}", Rate(rate_bps), Octets(burst.into()));
        if let Some(peak) = peak {
            let (rate, mtu) = (Rate(peak.rate_bps), Octets(peak.mtu.into()));
            text += &format!(" peakrate {rate} mtu {mtu}");
        }
        text
    }

    fn packets_max(&self) -> u32 {
        0
    }

    fn longest(&self) -> u32 {
        let peak = self.options.peak.map(|peak| peak.rate_bps);
        let rates = [Some(self.options.rate_bps), peak].into_iter().flatten();
        rates
            .map(units::bytes_in_a_millisecond)
            .fold(self.options.longest(), u32::min)
    }

    fn make(&self, mut make: Make) -> Result<Box<dyn Discipline>, Unfit> {
        let (_, child) = make.children.pop().ok_or_else(Unfit::empty)?;
        let kept = make.levels.pop().map(|(_, _, level)| level);
        let level = kept.or(make.is_change.then_some(0));
        Ok(Box::new(Tbf::new(&self.options, child, level, make.now)))
    }

    fn children(&self) -> Vec<(u16, &S)> {
        vec![(1, &*self.child)]
    }
}

impl Discipline for Tbf {
    fn kind(&self) -> &'static str {
        "tbf"
    }

    fn enqueue(&mut self, pool: &mut Pool, id: Id, now: Instant) -> bool {
        if pool.length(id) > self.longest {
            pool.discard(id, Reason::Full);
            self.own.dropped += 1;
            return false;
        }
        let taken = self.child.enqueue(pool, id, now);
        self.hold(pool, now);
        taken
    }

    fn dequeue(&mut self, pool: &mut Pool, now: Instant) -> Option<Id> {
        self.hold(pool, now);
        let (id, length) = self.held?;
        self.bucket.fill(now);
        self.peak.iter_mut().for_each(|peak| peak.fill(now));
        if self.due(length) > now {
            self.own.overlimits += 1;
            return None;
        }
        let tokens = Tokens::of(length);
        self.bucket.take(tokens);
        self.peak.iter_mut().for_each(|peak| peak.take(tokens));
        self.own.sent_packets += 1;
        self.own.sent_bytes += u64::from(length);
        self.held = None;
        self.hold(pool, now);
        Some(id)
    }

    /// Exact, unless the discipline below holds packets back itself: then its next packet is not known yet.
    fn next_time(&self, now: Instant) -> Option<Instant> {
        match self.held {
            Some((_, length)) => Some(self.due(length)),
            None => self.child.next_time(now),
        }
    }

    fn backlog(&self) -> Backlog {
        let mut backlog = self.child.backlog();
        if let Some((_, length)) = self.held {
            backlog.packets += 1;
            backlog.bytes += u64::from(length);
        }
        backlog
    }

    fn statistics(&self) -> Statistics {
        let below = self.child.statistics();
        Statistics {
            dropped: self.own.dropped + below.dropped,
            ecn_mark: below.ecn_mark,
            ..self.own
        }
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut Vec<Id>) {
        into.extend(self.held.take().map(|(id, _)| id));
        self.child.drain(pool, into);
    }

    fn restore(&mut self, pool: &mut Pool, id: Id, now: Instant) -> bool {
        let taken = self.child.restore(pool, id, now);
        self.hold(pool, now);
        taken
    }

    fn levels(&self, now: Instant) -> Vec<(u16, i64, i64)> {
        let level = self.bucket.octets_at(now);
        let peak = self.peak.map_or(level, |peak| peak.octets_at(now));
        vec![(0, level, level.min(peak))]
    }

    fn children(&self) -> Vec<(String, &dyn Discipline)> {
        vec![("1:1".to_owned(), self.child.as_ref())]
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![("tokens", u64::try_from(self.bucket.octets()).unwrap_or(0))]
    }
}
