//! One direction of a link: how it treats datagrams, and counters of that.

use std::collections::VecDeque;

use base::{Duration, Instant};

use crate::{Fate, Rng};

/// How a link treats datagrams; probabilities are in `0.0..=1.0`.
///
/// Jitter keeps the order; only `reorder` lets one datagram pass another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// The propagation delay.
    pub delay: Duration,
    /// The largest additional delay, uniformly distributed.
    pub jitter: Duration,
    /// Probability that a datagram is lost.
    pub loss: f64,
    /// Probability that a datagram arrives twice.
    pub duplicate: f64,
    /// Probability that a datagram is held back, so that later ones may pass it.
    pub reorder: f64,
    /// How long it is held back.
    pub reorder_delay: Duration,
    /// Bits per second, including IP and UDP headers; `None` is no limit, 0 counts as 1.
    pub rate_bps: Option<u64>,
    /// Datagrams that may wait for the rate, including the one being sent; more are dropped. It has no effect without
    /// a rate.
    pub queue_limit: usize,
}

impl Link {
    /// 10 ms each way, without loss, changes or limits.
    pub const CLEAN: Link = Link {
        delay: Duration::from_millis(10),
        jitter: Duration::ZERO,
        loss: 0.0,
        duplicate: 0.0,
        reorder: 0.0,
        reorder_delay: Duration::ZERO,
        rate_bps: None,
        queue_limit: 1000,
    };

    /// A bad link, for runs over many seeds: 20 to 30 ms, one in ten lost, one in ten held back by 50 ms, one in
    /// twenty duplicated.
    pub const ROUGH: Link = Link {
        delay: Duration::from_millis(20),
        jitter: Duration::from_millis(10),
        loss: 0.1,
        duplicate: 0.05,
        reorder: 0.1,
        reorder_delay: Duration::from_millis(50),
        ..Link::CLEAN
    };
}

impl Default for Link {
    /// [`Link::CLEAN`].
    fn default() -> Self {
        Self::CLEAN
    }
}

/// Counters of one direction of a link, in datagrams.
///
/// `sent + duplicated` is the sum of `delivered`, `lost`, `cut`, `queue_full`, `dropped`, `gone` and the datagrams in
/// flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Datagrams that entered the link.
    pub sent: u64,
    /// Their UDP payload in bytes.
    pub sent_bytes: u64,
    /// Datagrams delivered to the receiving node, including copies.
    pub delivered: u64,
    /// Datagrams lost at random.
    pub lost: u64,
    /// Lost because the link was cut or a node isolated.
    pub cut: u64,
    /// Lost because the queue was full.
    pub queue_full: u64,
    /// Datagrams removed by an interceptor or by `drop_next`.
    pub dropped: u64,
    /// Lost because no node had the address any more when they arrived.
    pub gone: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Held back, copies included.
    pub reordered: u64,
}

/// An interceptor's decision on a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The link treats it as usual.
    Pass,
    /// It is dropped.
    Drop,
    /// It is delivered twice.
    Duplicate,
    /// It is held back by this much, and later ones may pass it.
    Delay(Duration),
    /// It is delivered with other bytes.
    Replace(Vec<u8>),
}

/// Inspects each payload that enters one direction of a link.
pub(crate) type Interceptor = Box<dyn FnMut(&[u8], Instant) -> Verdict>;

/// One direction of a link, with its own random stream.
pub(crate) struct Wire {
    rng: Rng,
    /// `None`: the world's default link.
    pub(crate) own: Option<Link>,
    pub(crate) cut: bool,
    pub(crate) drop_next: u32,
    pub(crate) interceptor: Option<Interceptor>,
    pub(crate) stats: LinkStats,
    /// When each datagram in the queue has been sent, earliest first.
    departures: VecDeque<Instant>,
    /// The latest arrival among the datagrams that keep the order.
    last_arrival: Instant,
}

/// A datagram that the link carries.
pub(crate) struct Carried {
    pub(crate) arrival: Instant,
    pub(crate) copy_arrival: Option<Instant>,
    /// What an interceptor put in place of the payload.
    pub(crate) replaced: Option<Vec<u8>>,
}

/// The random numbers of one datagram.
///
/// All are always drawn, so that changing one property of a link, or cutting it for a while, does not change the rest
/// of its random stream.
struct Draws {
    loss: f64,
    duplicate: f64,
    reorder: [f64; 2],
    jitter: [f64; 2],
}

impl Wire {
    pub(crate) fn new(rng: Rng) -> Self {
        Self {
            rng,
            own: None,
            cut: false,
            drop_next: 0,
            interceptor: None,
            stats: LinkStats::default(),
            departures: VecDeque::new(),
            last_arrival: Instant::ZERO,
        }
    }

    /// Decides the fate of one datagram; `Err` is its fate on entering.
    pub(crate) fn carry(
        &mut self,
        default: Link,
        payload: &[u8],
        header_bytes: usize,
        isolated: bool,
        now: Instant,
    ) -> Result<Carried, Fate> {
        let [loss, duplicate, r0, r1, j0, j1] = [(); 6].map(|()| self.rng.unit());
        let draws = Draws {
            loss,
            duplicate,
            reorder: [r0, r1],
            jitter: [j0, j1],
        };
        let link = self.own.unwrap_or(default);
        self.stats.sent += 1;
        self.stats.sent_bytes += payload.len() as u64;
        if self.cut || isolated {
            self.stats.cut += 1;
            return Err(Fate::Cut);
        }
        let verdict = self.judge(payload, now);
        if verdict == Verdict::Drop {
            self.stats.dropped += 1;
            return Err(Fate::Dropped);
        }
        let Some(departure) = self.queue(&link, payload.len() + header_bytes, now) else {
            self.stats.queue_full += 1;
            return Err(Fate::QueueFull);
        };
        if draws.loss < link.loss {
            self.stats.lost += 1;
            return Err(Fate::Lost);
        }
        let held = if let Verdict::Delay(held) = verdict {
            held
        } else {
            Duration::ZERO
        };
        let arrival = self.arrival(&link, departure, held, &draws, 0);
        let copied = draws.duplicate < link.duplicate || verdict == Verdict::Duplicate;
        let copy_arrival = copied.then(|| {
            self.stats.duplicated += 1;
            self.arrival(&link, departure, Duration::ZERO, &draws, 1)
        });
        let replaced = if let Verdict::Replace(bytes) = verdict {
            Some(bytes)
        } else {
            None
        };
        Ok(Carried {
            arrival,
            copy_arrival,
            replaced,
        })
    }

    /// The interceptor sees every datagram, even one that `drop_next` removes.
    fn judge(&mut self, payload: &[u8], now: Instant) -> Verdict {
        let verdict = self
            .interceptor
            .as_mut()
            .map_or(Verdict::Pass, |f| f(payload, now));
        if self.drop_next == 0 {
            return verdict;
        }
        self.drop_next -= 1;
        Verdict::Drop
    }

    /// When the last bit has left, or `None` if the queue is full.
    fn queue(&mut self, link: &Link, bytes: usize, now: Instant) -> Option<Instant> {
        while self.departures.front().is_some_and(|at| *at <= now) {
            self.departures.pop_front();
        }
        let Some(rate_bps) = link.rate_bps else {
            return Some(now);
        };
        if self.departures.len() >= link.queue_limit {
            return None;
        }
        let ns = (bytes as u128 * 8_000_000_000).div_ceil(u128::from(rate_bps.max(1)));
        let starts = self.departures.back().copied().unwrap_or(now);
        let departure = starts + Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        self.departures.push_back(departure);
        Some(departure)
    }

    fn arrival(
        &mut self,
        link: &Link,
        departure: Instant,
        held: Duration,
        draws: &Draws,
        copy: usize,
    ) -> Instant {
        let jitter_ns = link.jitter.as_nanos() as f64 * draws.jitter[copy];
        let earliest = departure + link.delay + Duration::from_nanos(jitter_ns as u64);
        let in_order = earliest.max(self.last_arrival);
        let reordered = draws.reorder[copy] < link.reorder;
        if !reordered && held == Duration::ZERO {
            self.last_arrival = in_order;
            return in_order;
        }
        self.stats.reordered += 1;
        let reorder_delay = if reordered {
            link.reorder_delay
        } else {
            Duration::ZERO
        };
        in_order + held + reorder_delay
    }
}
