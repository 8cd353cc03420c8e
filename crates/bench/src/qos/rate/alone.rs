//! A shaped tree that is never empty. In virtual time it is polled at each instant at which a
//! packet may leave; in real time, continuously.

use anyhow::{Context, Result};
use base::{Duration, Instant};
use qos::htb::{ClassOptions, burst_of};
use qos::tree::{HtbSpec, Spec, TbfSpec, Tree};
use qos::{Discipline, Packet, Pool, tbf};
use reactor::clock;
use wire::flow::Keys;

use super::super::packets::{self, Random};
use super::super::scheduled::Account;
use super::Kept;

/// The discipline that shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Shaper {
    Htb,
    Tbf,
}

impl Shaper {
    pub(super) const ALL: [Shaper; 2] = [Self::Htb, Self::Tbf];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Htb => "htb + fair",
            Self::Tbf => "tbf + fair",
        }
    }

    /// How time passes in its measurements. In real time, one discipline suffices to show the
    /// machine's influence.
    pub(super) fn times(self) -> &'static [Time] {
        match self {
            Self::Htb => &[Time::Virtual, Time::Late, Time::Real],
            Self::Tbf => &[Time::Virtual, Time::Late],
        }
    }
}

/// Size of each packet on the line, in bytes.
const LENGTH: u32 = 1_000;

/// Number of packets always queued.
const WAITING: u32 = 256;

/// How time passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    /// Jumps to the next instant at which a packet may leave.
    Virtual,
    /// The same, with each poll up to a millisecond late.
    Late,
    /// Real time, polled continuously.
    Real,
}

impl Time {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Virtual => "virtual",
            Self::Late => "virtual, woken up to 1 ms late",
            Self::Real => "real, the queue alone",
        }
    }
}

/// One rate, with fair queueing below it.
pub(in super::super) fn spec(shaper: Shaper, rate_bps: u64) -> Spec {
    let burst = burst_of(rate_bps, 1514);
    let fair = Spec::Fair(qos::fair::Options::default());
    if shaper == Shaper::Tbf {
        return Spec::Tbf(TbfSpec {
            options: tbf::Options {
                rate_bps,
                burst,
                peak: None,
            },
            child: Box::new(fair),
        });
    }
    let class = ClassOptions {
        minor: 0x10,
        parent: None,
        rate_bps,
        ceil_bps: rate_bps,
        burst,
        cburst: burst,
        priority: 0,
        quantum: None,
    };
    Spec::Htb(HtbSpec {
        mtu: 1514,
        classes: vec![class],
        leaves: vec![(0x10, fair)],
        classifier: None,
        default: Some(0x10),
        direct_limit: 0,
    })
}

/// A tree that is never empty.
struct Shaped {
    tree: Tree,
    pool: Pool,
    keys: Vec<Keys>,
    random: Random,
}

impl Shaped {
    fn fill(&mut self, now: Instant) {
        while self.pool.len() < WAITING {
            let packet = Packet {
                length: LENGTH,
                keys: self.keys[self.random.below(self.keys.len())],
                arrived: now,
                ..Packet::default()
            };
            let Some(id) = self.pool.insert(packet) else {
                return;
            };
            self.tree.enqueue(&mut self.pool, id, now);
        }
    }

    /// Number of bytes that leave now.
    fn leave(&mut self, now: Instant) -> u64 {
        let mut octets = 0;
        while let Some(id) = self.tree.dequeue(&mut self.pool, now) {
            octets += u64::from(self.pool.take(id).length);
            self.fill(now);
        }
        self.pool.discarded();
        self.fill(now);
        octets
    }
}

/// What left in `span`, measured from the first departure after the burst to the last.
pub(super) fn run(shaper: Shaper, rate_bps: u64, time: Time, span: Duration) -> Result<Kept> {
    let before = Account::of_this_thread();
    let start = match time {
        Time::Real => clock::now(),
        Time::Virtual | Time::Late => Instant::from_nanos(1),
    };
    let mut shaped = Shaped {
        tree: Tree::new(&spec(shaper, rate_bps), 1, start)?,
        pool: Pool::new(WAITING),
        keys: packets::keys(1_024),
        random: Random::new(7),
    };
    shaped.fill(start);
    shaped.leave(start);
    let mut late = Random::new(11);
    let mut now = start;
    let (mut first, mut last, mut octets) = (None, start, 0);
    let mut absent = Duration::ZERO;
    while now.since(start) < span {
        let next = match time {
            Time::Real => clock::now(),
            Time::Virtual | Time::Late => {
                let next = shaped.tree.next_time(now);
                let next = next.context("a tree that is not empty will never send")?;
                let late = late.below(1_000_000) as u64;
                next + Duration::from_nanos(if time == Time::Late { late } else { 0 })
            }
        };
        absent = absent.max(next.since(now));
        now = next;
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
    let is_real = time == Time::Real;
    let waited = Account::of_this_thread().zip(before).filter(|_| is_real);
    Ok(Kept {
        rate_bps,
        measured_bps: octets as f64 * 8.0 / span.as_secs_f64(),
        span,
        offered_bps: None,
        waited: waited.map(|(after, before)| after.waited_since(before)),
        absent: is_real.then_some(absent),
        missed: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_virtual_time_the_rate_is_met_within_a_hundredth() {
        for shaper in Shaper::ALL {
            for time in [Time::Virtual, Time::Late] {
                for rate_bps in [1_000_000, 1_000_000_000] {
                    let span = Duration::from_nanos(4_000_000_000_000_000 / rate_bps);
                    let kept = run(shaper, rate_bps, time, span).unwrap();
                    let error = kept.error();
                    assert!(error.abs() < 0.01, "{shaper:?} {time:?} {kept:?}");
                }
            }
        }
    }
}
