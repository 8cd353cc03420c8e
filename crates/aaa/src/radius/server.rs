//! State of one purpose of one server: whether it is alive, its round-trip times, its counters.
//!
//! Implements parts of RFC 2865, section 2.6.

use core::net::SocketAddr;

use base::{Duration, Instant};

use super::event::Discard;
use super::identifiers::Identifiers;
use super::views::Counters;

/// One address of a server.
pub(super) struct Service {
    pub(super) address: SocketAddr,
    pub(super) identifiers: Identifiers,
    pub(super) counters: Counters,
    /// Consecutive timeouts of requests sent after its last reply.
    unanswered: u32,
    last_answer: Option<Instant>,
    dead: Option<Death>,
    /// When it last timed out.
    failed_at: Instant,
    pub(super) rtt_last: Option<Duration>,
    pub(super) rtt_smoothed: Option<Duration>,
}

#[derive(Clone, Copy)]
struct Death {
    since: Instant,
    /// When it may next be probed.
    probe_at: Instant,
}

impl Service {
    pub(super) fn new(address: SocketAddr, sockets_max: u16) -> Self {
        Self {
            address,
            identifiers: Identifiers::new(sockets_max),
            counters: Counters::default(),
            unanswered: 0,
            last_answer: None,
            dead: None,
            failed_at: Instant::ZERO,
            rtt_last: None,
            rtt_smoothed: None,
        }
    }

    /// Since when it has been dead.
    pub(super) fn dead_since(&self) -> Option<Instant> {
        self.dead.map(|death| death.since)
    }

    /// When it last timed out.
    pub(super) fn failed_at(&self) -> Instant {
        self.failed_at
    }

    /// Whether it is alive, or due for a probe.
    pub(super) fn is_worth_trying(&self, now: Instant) -> bool {
        self.dead.is_none_or(|death| now >= death.probe_at)
    }

    /// Notes that a request is sent to it; if it is dead, this starts the time until the next probe.
    pub(super) fn try_it(&mut self, now: Instant, dead_time: Duration) {
        if let Some(death) = &mut self.dead {
            death.probe_at = now + dead_time;
        }
    }

    /// Notes a timeout of a request sent at `sent_at`; returns whether it has just been declared dead.
    pub(super) fn time_out(
        &mut self,
        now: Instant,
        sent_at: Instant,
        dead_after: u8,
        dead_time: Duration,
    ) -> bool {
        self.counters.timeouts += 1;
        self.failed_at = now;
        if self.last_answer.is_some_and(|answer| answer > sent_at) {
            return false;
        }
        self.unanswered = self.unanswered.saturating_add(1);
        let dies = self.dead.is_none() && self.unanswered >= u32::from(dead_after);
        if dies {
            self.dead = Some(Death {
                since: now,
                probe_at: now + dead_time,
            });
        }
        dies
    }

    /// Notes a reply, `rtt` after the request if that is unambiguous; returns whether it was dead until now.
    pub(super) fn answer(&mut self, now: Instant, rtt: Option<Duration>) -> bool {
        self.last_answer = Some(now);
        self.unanswered = 0;
        if let Some(rtt) = rtt {
            self.rtt_last = Some(rtt);
            // A moving average over about eight replies, as in TCP.
            let smoothed = self.rtt_smoothed.unwrap_or(rtt).as_nanos();
            let smoothed = smoothed - smoothed / 8 + rtt.as_nanos() / 8;
            self.rtt_smoothed = Some(Duration::from_nanos(smoothed));
        }
        self.dead.take().is_some()
    }

    /// Counts an ignored datagram.
    pub(super) fn discard(&mut self, why: Discard) -> Discard {
        if let Some(index) = why.index() {
            self.counters.discards[index] += 1;
        }
        why
    }
}
