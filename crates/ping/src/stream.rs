//! The records of one stream: its next packet, and the fate of each.

use base::timer::TimerId;
use base::{Duration, Instant};

use crate::oneway::Tally;
use crate::plan::{Protocol, StreamPlan};
use crate::sample::{OneWay, Sample, State, Store, WINDOW, flag};
use crate::statistics::Statistics;

/// How far a stream may be behind, at least one interval, before it skips packets instead of catching up.
const BEHIND_MAX: Duration = Duration::from_secs(1);

/// The shortest wait for the last packets: ping's usual interval.
const LINGER_MIN: Duration = Duration::from_secs(1);
/// The shortest wait for the last packets after the user stopped the experiment.
const STOPPED_LINGER_MIN: Duration = Duration::from_millis(100);

/// From packet `index` on, packets are due at `due_ns` after the start and then one interval apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) index: u64,
    pub(crate) due_ns: u64,
}

/// How the stream counts a reply, first or further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Booked {
    pub(crate) rtt: Duration,
    pub(crate) late: bool,
    pub(crate) duplicate: bool,
    pub(crate) reordered: bool,
}

/// The contents of a reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) at_ns: i64,
    pub(crate) ttl: u8,
    pub(crate) tos: u8,
    /// The responder's clock at arrival and departure, relative to the start by our clock, and its count.
    pub(crate) far: Option<(i64, i64, u32)>,
}

#[derive(Debug)]
pub(crate) struct Stream {
    interval: Duration,
    /// Packets left to send; constant if the plan has no count.
    left: Option<u64>,
    pub(crate) next_due: Instant,
    pub(crate) runs: Vec<Run>,
    pub(crate) samples: Store<Sample>,
    pub(crate) one_ways: Option<Store<OneWay>>,
    pub(crate) tally: Tally,
    pub(crate) statistics: Statistics,
    pub(crate) last_rtt: Option<Duration>,
    /// All packets before this index are settled.
    oldest: u64,
    /// All packets before this index are settled or overdue, and the number of overdue ones.
    watched: u64,
    overdue: u64,
    /// One more than the highest index answered.
    answered: u64,
    pub(crate) first_sent_ns: i64,
    pub(crate) last_sent_ns: i64,
    pub(crate) last_reply_ns: i64,
    pub(crate) timer: Option<TimerId>,
    stopped: bool,
    /// Whether it was stopped without a reply, so that no reply is waited for.
    abandoned: bool,
}

impl Stream {
    pub(crate) fn new(plan: &StreamPlan, start: Instant, keep_max: u64) -> Self {
        let both_ways = matches!(plan.protocol, Protocol::Udp { .. });
        Self {
            interval: plan.interval,
            left: plan.count,
            next_due: start + plan.offset,
            runs: Vec::new(),
            samples: Store::new(keep_max),
            one_ways: both_ways.then(|| Store::new(keep_max)),
            tally: Tally::default(),
            statistics: Statistics::default(),
            last_rtt: None,
            oldest: 0,
            watched: 0,
            overdue: 0,
            answered: 0,
            first_sent_ns: 0,
            last_sent_ns: 0,
            last_reply_ns: 0,
            timer: None,
            stopped: false,
            abandoned: false,
        }
    }

    /// Whether there is another packet to send.
    pub(crate) fn sends(&self) -> bool {
        !self.stopped && self.left != Some(0)
    }

    /// Whether no more packets are sent or waited for.
    pub(crate) fn is_over(&self) -> bool {
        !self.sends() && (self.abandoned || self.statistics.waiting() == 0)
    }

    /// Stops sending. Replies are still waited for if there were any.
    pub(crate) fn stop(&mut self) {
        if self.sends() {
            self.stopped = true;
            self.abandoned = self.statistics.received == 0;
        }
    }

    /// Stops sending and waiting.
    pub(crate) fn abandon(&mut self) {
        self.stopped = true;
        self.abandoned = true;
        self.timer = None;
    }

    /// Takes the packet that is due: its index and due time. Schedules the next one.
    pub(crate) fn take(&mut self, start: Instant, now: Instant) -> (u64, Instant) {
        self.catch_up(now);
        let due = self.next_due;
        let index = self.samples.length();
        let due_ns = (due - start).as_nanos();
        let expected = self.runs.last().map(|run| {
            let since = self.interval.saturating_mul(index - run.index);
            run.due_ns.saturating_add(since.as_nanos())
        });
        if expected != Some(due_ns) {
            self.runs.push(Run { index, due_ns });
        }
        // An unanswered packet that leaves the window is lost, or it would wait unnoticed.
        if let Some(oldest) = index.checked_sub(WINDOW) {
            while self.oldest <= oldest {
                self.give_up(self.oldest);
                self.oldest += 1;
            }
        }
        let sent_ns = ns_after(start, now);
        self.samples.push(Sample::new(sent_ns));
        if let Some(one_ways) = &mut self.one_ways {
            one_ways.push(OneWay::default());
        }
        self.statistics.transmitted += 1;
        self.last_sent_ns = sent_ns;
        if index == 0 {
            self.first_sent_ns = sent_ns;
        }
        self.left = self.left.map(|left| left - 1);
        self.next_due = due + self.interval;
        (index, due)
    }

    /// Skips packets if too many are due.
    fn catch_up(&mut self, now: Instant) {
        let behind = now.since(self.next_due);
        if behind > BEHIND_MAX.max(self.interval) {
            let turns = behind.as_nanos() / self.interval.as_nanos();
            self.next_due += self.interval.saturating_mul(turns);
            self.statistics.skipped += turns;
        }
    }

    /// Records the kernel's time stamp of a packet.
    pub(crate) fn sent(&mut self, index: u64, sent_ns: i64) {
        if let Some(sample) = self.samples.get_mut(index)
            && sample.state() == State::Waiting
        {
            sample.stamp(sent_ns);
        }
    }

    /// Records that the kernel refused a packet.
    pub(crate) fn failed(&mut self, index: u64) {
        if let Some(sample) = self.samples.get_mut(index)
            && sample.state() == State::Waiting
        {
            sample.set_state(State::Failed);
            self.statistics.failed += 1;
            self.overdue -= u64::from(index < self.watched);
            self.tally.fail(index);
        }
    }

    /// Records a reply; `None` if there is no such packet, or it is forgotten.
    pub(crate) fn reply(&mut self, index: u64, wait: Duration, arrival: Arrival) -> Option<Booked> {
        let length = self.samples.length();
        let sample = self.samples.get_mut(index)?;
        let rtt_ns = u64::try_from(arrival.at_ns.saturating_sub(sample.sent_ns())).unwrap_or(0);
        let rtt = Duration::from_nanos(rtt_ns);
        self.last_reply_ns = arrival.at_ns;
        self.statistics.pipe = self.statistics.pipe.max(length - index);
        let state = sample.state();
        if matches!(state, State::Replied | State::Late) {
            sample.add_flags(flag::DUPLICATED);
            self.statistics.add_rtt(rtt, true);
            return Some(Booked {
                rtt,
                late: false,
                duplicate: true,
                reordered: false,
            });
        }
        let late = rtt > wait;
        let reordered = index < self.answered;
        sample.set_reply(rtt_ns, arrival.ttl, arrival.tos);
        sample.set_state(if late { State::Late } else { State::Replied });
        if reordered {
            sample.add_flags(flag::REORDERED);
        }
        let sent_ns = sample.sent_ns();
        match state {
            State::Lost => self.statistics.lost -= 1,
            State::Failed => self.statistics.failed -= 1,
            _ => self.overdue -= u64::from(index < self.watched),
        }
        self.statistics.late += u64::from(late);
        self.statistics.reordered += u64::from(reordered);
        self.statistics.add_rtt(rtt, false);
        self.last_rtt = Some(rtt);
        self.answered = self.answered.max(index + 1);
        if let Some(far) = arrival.far {
            self.book_directions(index, sent_ns, arrival.at_ns, far);
        }
        Some(Booked {
            rtt,
            late,
            duplicate: false,
            reordered,
        })
    }

    fn book_directions(
        &mut self,
        index: u64,
        sent_ns: i64,
        at_ns: i64,
        (arrival, departure, count): (i64, i64, u32),
    ) {
        let Some(place) = self.one_ways.as_mut().and_then(|all| all.get_mut(index)) else {
            return;
        };
        let turn = u32::try_from(departure.saturating_sub(arrival).max(0)).unwrap_or(u32::MAX);
        let one_way = OneWay {
            up_ns: arrival.saturating_sub(sent_ns),
            turn_ns: turn,
            count,
        };
        *place = one_way;
        let rtt = Duration::from_nanos(u64::try_from(at_ns.saturating_sub(sent_ns)).unwrap_or(0));
        self.tally
            .add(index, one_way.up_ns, one_way.down_ns(rtt), count);
    }

    /// When the oldest unanswered packet times out, in nanoseconds after the start.
    pub(crate) fn gives_up_ns(&mut self, wait: Duration) -> Option<i64> {
        self.settle();
        let oldest = self.samples.get(self.oldest)?.sent_ns();
        let last = saturating(self.last_sent_ns, self.linger(wait));
        let by_wait = saturating(oldest, wait);
        Some(if self.sends() {
            by_wait
        } else {
            by_wait.min(last)
        })
    }

    /// How long a stream waits after its last packet. As in ping: twice the longest round trip and at least an
    /// interval if replies came, but no longer than the timeout. Intervals may be very short and queues may fill, so
    /// it waits at least [`LINGER_MIN`], or [`STOPPED_LINGER_MIN`] if it was stopped.
    fn linger(&self, wait: Duration) -> Duration {
        let least = if self.stopped {
            STOPPED_LINGER_MIN
        } else {
            LINGER_MIN
        };
        self.patience(wait).max(least).min(wait)
    }

    /// The longest likely round trip of a reply that is still on its way.
    fn patience(&self, wait: Duration) -> Duration {
        if self.statistics.received == 0 {
            return wait;
        }
        let twice = self.statistics.rtt_max().saturating_mul(2);
        let least = if self.stopped {
            Duration::ZERO
        } else {
            self.interval
        };
        twice.max(least).min(wait)
    }

    /// Times out the packets that have waited long enough.
    pub(crate) fn expire(&mut self, wait: Duration, now_ns: i64) {
        let all = !self.sends() && saturating(self.last_sent_ns, self.linger(wait)) <= now_ns;
        while let Some(sample) = self.samples.get(self.oldest) {
            let is_due = all || saturating(sample.sent_ns(), wait) <= now_ns;
            if sample.state() == State::Waiting && !is_due {
                break;
            }
            self.give_up(self.oldest);
            self.oldest += 1;
        }
    }

    /// Skips settled packets.
    fn settle(&mut self) {
        while let Some(sample) = self.samples.get(self.oldest)
            && sample.state() != State::Waiting
        {
            self.oldest += 1;
        }
    }

    fn give_up(&mut self, index: u64) {
        if let Some(sample) = self.samples.get_mut(index)
            && sample.state() == State::Waiting
        {
            sample.set_state(State::Lost);
            self.statistics.lost += 1;
            self.overdue -= u64::from(index < self.watched);
        }
    }

    /// Packets that have waited for more than twice the longest round trip (or the timeout): likely lost, for a live
    /// view.
    pub(crate) fn overdue(&mut self, wait: Duration, now_ns: i64) -> u64 {
        let patience = self.patience(wait);
        self.watched = self.watched.max(self.oldest);
        while let Some(sample) = self.samples.get(self.watched) {
            if saturating(sample.sent_ns(), patience) > now_ns {
                break;
            }
            self.overdue += u64::from(sample.state() == State::Waiting);
            self.watched += 1;
        }
        self.overdue
    }

    /// The latest settled or overdue packets, oldest first.
    pub(crate) fn recent(&self, most: usize) -> impl Iterator<Item = Sample> {
        let end = self.watched.max(self.answered);
        let begin = end.saturating_sub(most as u64);
        (begin..end).filter_map(|index| self.samples.get(index).copied())
    }
}

fn saturating(at_ns: i64, span: Duration) -> i64 {
    at_ns.saturating_add(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX))
}

/// Nanoseconds from `start` to `at`; negative if `at` is earlier.
pub(crate) fn ns_after(start: Instant, at: Instant) -> i64 {
    let difference = i128::from(at.as_nanos()) - i128::from(start.as_nanos());
    difference.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}
