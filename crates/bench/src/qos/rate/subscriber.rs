//! A shaped subscriber of the edge whose queue is never empty: packets from the TUN device go through the edge's path,
//! and leave as the daemon drains its queues. In real time the loop sleeps in the daemon's reactor until the edge's next
//! deadline.

use anyhow::{Context, Result, ensure};
use base::{Duration, Instant, Route};
use edge::{Inside, Outside};
use hqos::spec::{Depth, NodeId, Rates, Template, TemplateId};
use hqos::{Plan, Shape};
use reactor::{PollerKind, Reactor, StoreKind, clock};

use super::super::packets::Random;
use super::super::path::Side;
use super::super::scheduled::Account;
use super::Kept;
use super::alone::Time;

/// Rates in bits per second; the last one in virtual time only.
pub(super) const RATES: [u64; 5] = [
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
    5_000_000_000,
];

/// The highest rate in real time.
pub(super) const REAL_MAX_BPS: u64 = 1_000_000_000;

/// The lengths of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mix {
    Full,
    Mixed,
}

impl Mix {
    pub(super) const ALL: [Mix; 2] = [Self::Full, Self::Mixed];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Full => "1,500 bytes",
            Self::Mixed => "64, 576 and 1,500 bytes",
        }
    }

    fn lengths(self) -> &'static [usize] {
        match self {
            Self::Full => &[1_500],
            Self::Mixed => &[64, 576, 1_500],
        }
    }
}

/// Milliseconds that the queue lasts without new packets.
pub(in super::super) const BACKLOG_MS: u64 = 20;

/// Packets that are queued at least.
const PACKETS_MIN: u64 = 16;

/// Counts what leaves.
#[derive(Default)]
struct Counter {
    buffer: Vec<u8>,
    packets: u64,
    octets: u64,
}

impl Outside for Counter {
    fn begin(&mut self, _: &Route) -> Option<&mut Vec<u8>> {
        self.buffer.clear();
        Some(&mut self.buffer)
    }

    fn commit(&mut self, _: &Route) {
        self.packets += 1;
        self.octets += self.buffer.len() as u64;
    }
}

impl Inside for Counter {
    fn packet(&mut self, _: &[u8]) {}
}

/// The subscriber and its packets.
struct Shaped {
    side: Side,
    /// A packet of each length.
    packets: Vec<Vec<u8>>,
    random: Random,
    /// Bytes before each packet on the way out.
    head: u64,
    left: Counter,
    inside: Counter,
    offered: u64,
    /// Packets that are queued.
    backlog: u64,
}

impl Shaped {
    fn new(rate_bps: u64, mix: Mix, now: Instant) -> Result<Self> {
        let template = Template {
            depth: Depth {
                packets: 1 << 20,
                octets: 1 << 30,
            },
            // The offered load does not react to drops.
            target: Duration::from_secs(10),
            ..Template::default()
        };
        let plan = Plan {
            templates: vec![template],
            nodes: Vec::new(),
        };
        let rates = Rates {
            down: rate_bps,
            up: rate_bps,
        };
        let shape = Shape {
            rates,
            template: TemplateId(0),
            node: None::<NodeId>,
        };
        let side = Side::new(1, Some((plan, shape)), now)?;
        let packets: Vec<_> = mix
            .lengths()
            .iter()
            .map(|&length| side.down(0, length))
            .collect();
        let mean = mix.lengths().iter().sum::<usize>() / mix.lengths().len();
        let wanted = u128::from(rate_bps) * u128::from(BACKLOG_MS) / 8_000;
        let mut shaped = Self {
            side,
            packets,
            random: Random::new(7),
            head: 0,
            left: Counter::default(),
            inside: Counter::default(),
            offered: 0,
            backlog: (wanted as u64 / mean as u64).max(PACKETS_MIN),
        };
        shaped.offer(now);
        ensure!(
            shaped.left.packets == 1,
            "the first packet did not pass at once"
        );
        let first = shaped.packets[0].len() - wire::virtio::LENGTH;
        shaped.head = shaped.left.octets - first as u64;
        Ok(shaped)
    }

    fn offer(&mut self, now: Instant) {
        // The first packet has the first length, so that the bytes before it are known.
        let at = match self.offered {
            0 => 0,
            _ => self.random.below(self.packets.len()),
        };
        let mut octets = self.packets[at].clone();
        self.side.lns.forward(&mut octets, now, &mut self.left);
        self.offered += 1;
    }

    fn fill(&mut self, now: Instant) {
        while self.offered - self.left.packets < self.backlog {
            self.offer(now);
        }
    }

    /// Number of bytes that leave now.
    fn leave(&mut self, now: Instant) -> u64 {
        let before = (self.left.packets, self.left.octets);
        while self.side.lns.drain(now, &mut self.left, &mut self.inside) {}
        self.fill(now);
        let (packets, octets) = (self.left.packets - before.0, self.left.octets - before.1);
        octets - packets * self.head
    }
}

/// What left in `span`, measured from the first departure after the burst to the last.
pub(super) fn run(rate_bps: u64, mix: Mix, time: Time, span: Duration) -> Result<Kept> {
    let before = Account::of_this_thread();
    let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::default())?;
    let is_real = time == Time::Real;
    let mut now = match is_real {
        true => clock::now(),
        false => Instant::from_nanos(1),
    };
    let mut shaped = Shaped::new(rate_bps, mix, now)?;
    shaped.fill(now);
    shaped.leave(now);
    let start = now;
    let (mut first, mut last, mut octets) = (None, start, 0);
    while now.since(start) < span {
        let next = shaped.side.lns.next_drain();
        let next = next.context("a queue that is not empty will never send")?;
        now = match is_real {
            true => reactor.wait(Some(next))?,
            false => now.max(next),
        };
        let left = shaped.leave(now);
        if left == 0 {
            continue;
        }
        match first {
            None => first = Some(now),
            Some(_) => octets += left,
        }
        last = now;
    }
    let span = last.since(first.context("nothing has left")?);
    let waited = Account::of_this_thread().zip(before).filter(|_| is_real);
    Ok(Kept {
        rate_bps,
        measured_bps: octets as f64 * 8.0 / span.as_secs_f64(),
        span,
        offered_bps: None,
        waited: waited.map(|(after, before)| after.waited_since(before)),
        absent: None,
        missed: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_virtual_time_a_subscriber_gets_its_rate_within_a_hundredth() {
        for mix in Mix::ALL {
            for rate_bps in [1_000_000, 1_000_000_000] {
                let span = Duration::from_nanos(20_000_000_000_000_000 / rate_bps);
                let span = span.max(Duration::from_millis(200));
                let kept = run(rate_bps, mix, Time::Virtual, span).unwrap();
                assert!(kept.error().abs() < 0.01, "{mix:?} {kept:?}");
            }
        }
    }
}
