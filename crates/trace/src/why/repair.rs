//! Losses of one sender's data, and how they are repaired: which cause the time of a repair has.
//!
//! RFC 5681, RFC 6298, RFC 8985, RFC 2883. [`super::sender`] decides all other time.

use super::cause::Cause;
use super::sender::{Data, ROUND, Sender};
use crate::segment::Segment;

/// After a longer silence, or with more packets missing, other connections of the sender have used the identifications.
const TIMEOUT_MAX: i64 = 10_000_000_000;
const LOST_MAX: u16 = 8;

/// The latest recovery from a loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Recovery {
    /// It ends when all data below is acknowledged; 0 if it has ended.
    pub(super) until: u64,
    pub(super) cause: u8,
    /// Its time so far.
    pub(super) time: i64,
    /// Retransmissions, and those that D-SACK reported as needless.
    pub(super) sent: u32,
    pub(super) needless: u32,
}

/// A silence whose cause the next segment decides: after a time-out, a sender sends one segment and waits for its ACK.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Restart {
    /// The end of the first segment after the silence; 0 if there is none.
    pub(super) end: u64,
    /// The time that counts as unknown until then.
    pub(super) time: i64,
    pub(super) packet: u64,
}

impl Sender {
    /// The other end reports that a retransmission was needless (RFC 2883).
    pub(super) fn needless(&mut self, packet: u64) {
        let recovery = &mut self.recovery;
        recovery.needless = recovery.needless.saturating_add(1);
        let cause = Cause::of(recovery.cause);
        if recovery.sent == 0
            || recovery.needless < recovery.sent
            || !cause.is_loss()
            || cause == Cause::Spurious
        {
            return;
        }
        recovery.cause = Cause::Spurious as u8;
        self.cut = Cause::Spurious as u8;
        self.move_time(self.recovery.time, cause, Cause::Spurious, packet);
    }

    /// Whether the segment was sent before, and lost on its way to the point of capture: after at least two round trips
    /// (RFC 8985 7.2), its packet follows others that are missing.
    pub(super) fn cause_of_lost(
        &mut self,
        now: i64,
        segment: &Segment,
        data: &Data,
        lost: Option<u16>,
    ) -> Option<Cause> {
        let silence = now.saturating_sub(self.last_sent.max(self.upto));
        let probe = self.round_trip().saturating_mul(2).max(ROUND);
        let is_window = self.blocked || self.window_end > 0 && self.window_end <= self.top;
        if self.is_near
            || is_window
            || segment.payload == 0
            || !data.follows
            || !lost.is_some_and(|lost| (1..=LOST_MAX).contains(&lost))
            || !(probe..TIMEOUT_MAX).contains(&silence)
        {
            return None;
        }
        let cause = match self.ended || lost == Some(1) {
            true => Cause::TailLoss,
            false => Cause::Timeout,
        };
        self.lose(now, data.end, cause);
        Some(cause)
    }

    /// The second segment after a silence: if the sender awaited the ACK of the first one, the silence was a time-out
    /// (RFC 5681 3.1: the loss window is one segment, the restart window as large as the initial one).
    pub(super) fn decide_restart(&mut self, now: i64) {
        let restart = core::mem::take(&mut self.restart);
        if restart.end == 0 || self.acked < restart.end || self.ended {
            return;
        }
        let waited = now.saturating_sub(self.last_sent);
        if waited >= self.near_min / 2 && waited > 0 {
            self.move_time(restart.time, Cause::Unknown, Cause::Timeout, restart.packet);
            self.ever_lost = true;
            self.cut = Cause::AfterLoss as u8;
        }
    }

    /// A loss: recovery starts.
    fn lose(&mut self, now: i64, until: u64, cause: Cause) {
        self.recovery = Recovery {
            until,
            cause: cause as u8,
            sent: 1,
            ..Recovery::default()
        };
        self.restart = Restart::default();
        if cause == Cause::Spurious {
            return;
        }
        self.ever_lost = true;
        self.cut = Cause::AfterLoss as u8;
        self.flight_max = 0;
        self.rates.lost(now, self.acked, self.round_trip());
    }

    /// A retransmission.
    pub(super) fn repeat(&mut self, now: i64, packet: u64, data: &Data) {
        let silence = now.saturating_sub(self.last_sent);
        let waited = silence >= self.path.silence_max;
        let cause = if data.spurious {
            Cause::Spurious
        } else if data.fast && !waited {
            Cause::FastRetransmit
        } else if data.end >= self.top {
            Cause::TailLoss
        } else {
            Cause::Timeout
        };
        if self.recovery.until > 0 {
            if waited && self.recovery.cause != Cause::Timeout as u8 {
                self.recovery.cause = cause as u8;
                self.recovery.time = 0;
            }
            self.recovery.sent = self.recovery.sent.saturating_add(1);
            self.settle(now, Cause::of(self.recovery.cause), packet);
            return;
        }
        self.lose(now, self.top.max(data.end), cause);
        self.settle(now, cause, packet);
    }

    /// If the losses are those of a policer, their time is the policer's.
    pub(super) fn judge_policer(&mut self) {
        let time = |cause: Cause| self.shares[cause as usize].time;
        let loss = [
            Cause::FastRetransmit,
            Cause::Timeout,
            Cause::TailLoss,
            Cause::AfterLoss,
        ];
        let lost: i64 = loss.into_iter().map(time).sum();
        let other = [Cause::Application, Cause::Receiver, Cause::Pacing];
        let other: i64 = other.into_iter().map(time).sum();
        if other > lost / 4
            || !self.rates.are_equal()
            || !self.clumps.are_uneven()
            || time(Cause::Queue) > lost / 4
        {
            return;
        }
        let mut policer = self.shares[Cause::Policer as usize];
        for cause in loss {
            let share = core::mem::take(&mut self.shares[cause as usize]);
            policer.time = policer.time.saturating_add(share.time);
            policer.spans = policer.spans.saturating_add(share.spans);
            if share.longest > policer.longest {
                (policer.longest, policer.packet) = (share.longest, share.packet);
            }
        }
        self.shares[Cause::Policer as usize] = policer;
    }
}
