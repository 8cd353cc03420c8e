//! The result for one direction: its main cause in one sentence, how sure it is, and what would contradict it.

use core::fmt;

use super::Why;
use super::cause::{CAUSES, Cause};
use super::sender::{Sender, Share};
use crate::connection::Connection;
use crate::direction::Direction;
use crate::span::span;

/// Where the capture was taken, by the round trips on both sides of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vantage {
    /// Near the sender: less than an eighth of the round trip is between them.
    Sender,
    /// Near the receiver.
    Receiver,
    /// Between them.
    Between,
    /// The capture lacks the handshake, and one end sent no data.
    Unknown,
}

impl Vantage {
    /// Its name in JSON and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Vantage::Sender => "sender",
            Vantage::Receiver => "receiver",
            Vantage::Between => "between",
            Vantage::Unknown => "unknown",
        }
    }

    /// What a capture taken there does not show.
    #[must_use]
    pub const fn cannot_see(self) -> &'static str {
        match self {
            Vantage::Sender => "losses of ACKs, and what the network did behind this point",
            Vantage::Receiver => {
                "data that was lost on its way here, and when the sender received ACKs"
            }
            Vantage::Between => "losses on its other side, and when the sender received ACKs",
            Vantage::Unknown => "which round trips are the path's",
        }
    }

    /// Of data that goes `there`, by the round trips from the point of capture to the receiver and to the sender.
    fn of(to_receiver: Option<i64>, to_sender: Option<i64>) -> Vantage {
        match (to_receiver, to_sender) {
            (None, _) | (_, None) | (Some(0), Some(0)) => Vantage::Unknown,
            (Some(far), Some(near)) if near <= far / 8 => Vantage::Sender,
            (Some(near), Some(far)) if near <= far / 8 => Vantage::Receiver,
            _ => Vantage::Between,
        }
    }
}

/// Idle time is named from this part of a connection's life on: a tenth.
const IDLE_SHOWN: i64 = 10;

/// How sure a verdict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// The capture lacks what the rule needs.
    Low,
    /// The rule holds, seen from afar.
    Medium,
    /// The rule holds where it is best seen.
    High,
}

impl Confidence {
    /// Its name in JSON and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }
}

/// The result for one direction.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Its sender is end `a`.
    pub from_a: bool,
    /// Time of the connection, in nanoseconds.
    pub life: i64,
    /// Time of it in which the sender was idle.
    pub idle: i64,
    /// The cause with the most time but for idle time; idle time, if there is nothing else.
    pub cause: Cause,
    /// Its time.
    pub share: Share,
    /// How sure it is.
    pub confidence: Confidence,
    /// Where the capture was taken.
    pub vantage: Vantage,
    /// What the sentence says beyond the cause, such as the size of the window.
    pub detail: Option<String>,
    sent_bytes: u64,
    is_download: bool,
}

impl Verdict {
    /// The result for the data of one end. `why` is from [`Why::until`]; `None` if the end sent no data.
    #[must_use]
    pub fn new(connection: &Connection, why: &Why, from_a: bool) -> Option<Verdict> {
        let (sender, this, other) = if from_a {
            (&why.a, &connection.a, &connection.b)
        } else {
            (&why.b, &connection.b, &connection.a)
        };
        if this.data_bytes == 0 {
            return None;
        }
        let life = connection.elapsed();
        let idle = sender.shares()[Cause::Idle as usize].time;
        let (cause, share) = main_cause(sender, life.saturating_sub(idle));
        let vantage = Vantage::of(super::near(this), to_sender(sender, other));
        Some(Verdict {
            from_a,
            life,
            idle,
            cause,
            share,
            confidence: confidence(cause, vantage, this, other),
            vantage,
            detail: detail(cause, sender, this, other),
            sent_bytes: this.unique_bytes,
            is_download: !from_a,
        })
    }

    /// Time of the connection in which the sender was not idle.
    #[must_use]
    pub fn active(&self) -> i64 {
        self.life.saturating_sub(self.idle)
    }

    /// Its part of the time in which the sender was active, from 0 to 1. Idle time is a part of the whole life.
    #[must_use]
    pub fn part(&self) -> f64 {
        let whole = match self.cause {
            Cause::Idle => self.life,
            _ => self.active(),
        };
        match whole {
            0 => 0.0,
            whole => self.share.time as f64 / whole as f64,
        }
    }
}

/// Round trip from the point of capture to the sender: a lost SYN makes that of the handshake too long.
fn to_sender(sender: &Sender, other: &Direction) -> Option<i64> {
    match (super::near(other), sender.near_min) {
        (None, 0) => None,
        (None, least) => Some(least),
        (Some(time), 0) => Some(time),
        (Some(time), least) => Some(time.min(least)),
    }
}

/// Causes that explain a connection together: the sentence is about the one with the most time of the group with the
/// most time.
const GROUPS: [&[Cause]; 8] = [
    &[Cause::Handshake, Cause::Tls],
    &[Cause::Application],
    &[Cause::Receiver],
    &[
        Cause::FastRetransmit,
        Cause::Timeout,
        Cause::TailLoss,
        Cause::AfterLoss,
    ],
    &[Cause::Spurious],
    &[Cause::Queue],
    &[Cause::Policer],
    &[Cause::SlowStart, Cause::Pacing],
];

/// The main cause and its time. Idle time counts only if the sender was never active.
fn main_cause(sender: &Sender, active: i64) -> (Cause, Share) {
    let times = sender.shares().map(|share| share.time);
    let (longest, best) = longest(&times);
    let idle = times[Cause::Idle as usize];
    let cause = match longest {
        _ if times[Cause::Unknown as usize] > best || active == 0 && idle == 0 => Cause::Unknown,
        Some(cause) if best > 0 => cause,
        _ => Cause::Idle,
    };
    (cause, sender.shares()[cause as usize])
}

/// The main cause of an interval of `span`, by the time of each. It is idle if there is little else.
pub(super) fn main_of(times: &[i64; CAUSES], span: i64) -> Cause {
    let (longest, best) = longest(times);
    let unknown = times[Cause::Unknown as usize];
    match longest {
        _ if span == 0 || unknown > best && unknown >= span / 10 => Cause::Unknown,
        Some(cause) if best >= span / 10 => cause,
        _ => Cause::Idle,
    }
}

/// The cause with the most time of the group with the most time, and the time of this group.
fn longest(times: &[i64; CAUSES]) -> (Option<Cause>, i64) {
    let time = |cause: &Cause| times[*cause as usize];
    let sum = |group: &[Cause]| group.iter().map(time).sum::<i64>();
    let best = GROUPS.into_iter().max_by_key(|group| sum(group));
    let group = best.unwrap_or(&[]);
    (group.iter().copied().max_by_key(time), sum(group))
}

fn confidence(cause: Cause, vantage: Vantage, this: &Direction, other: &Direction) -> Confidence {
    let whole = this.syns > 0 && other.syns > 0;
    if !whole || vantage == Vantage::Unknown || cause == Cause::Unknown {
        return Confidence::Low;
    }
    match (cause, vantage) {
        (_, Vantage::Sender) => Confidence::High,
        // The receiver's own window is seen best there, and so is a duplicate.
        (Cause::Receiver | Cause::Handshake | Cause::Tls | Cause::Idle, _) => Confidence::High,
        _ => Confidence::Medium,
    }
}

/// What makes the cause plausible.
pub(super) fn detail(
    cause: Cause,
    sender: &Sender,
    this: &Direction,
    other: &Direction,
) -> Option<String> {
    let ms = |time: i64| time as f64 / 1e6;
    match cause {
        Cause::Receiver => Some(window_detail(this, other)),
        Cause::Queue if sender.round_trip_min() > 0 => Some(format!(
            "round trips of {:.1} ms at most, {:.1} ms at least",
            ms(sender.queue_max),
            ms(sender.round_trip_min())
        )),
        Cause::Policer => Some(format!(
            "{:.2} Mbit/s between losses",
            sender.rates.bytes_per_second() * 8.0 / 1e6
        )),
        cause if cause.is_loss() || cause == Cause::AfterLoss => Some(format!(
            "{} of {} packets with data were retransmissions",
            this.retransmitted_packets, this.data_packets
        )),
        _ => None,
    }
}

fn window_detail(this: &Direction, other: &Direction) -> String {
    let size = other.windows.max;
    if other.windows.zero > 0 && other.windows.min == 0 {
        return "the window was 0".to_owned();
    }
    let without = |direction: &Direction| direction.syns > 0 && !direction.asked_scale;
    let why = match (without(other), without(this)) {
        (true, true) => ": neither SYN has the window scale option",
        (true, false) => ": the receiver's SYN lacks the window scale option",
        (false, true) => ": the sender's SYN lacks the window scale option",
        (false, false) => "",
    };
    format!("{size} bytes{why}")
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match (self.is_download, self.sent_bytes) {
            (true, _) => "download",
            (false, _) => "upload",
        };
        let phrase = self.cause.rule().phrase;
        let percent = self.part() * 100.0;
        // A little idle time would only make the sentence longer.
        let is_idle =
            self.cause != Cause::Idle && self.idle > 0 && self.idle >= self.life / IDLE_SHOWN;
        match is_idle {
            true => {
                let active = span(self.active(), 1);
                write!(
                    f,
                    "{percent:.0} % of the {active} of activity of this {what} {phrase}"
                )?;
            }
            false => write!(f, "{percent:.0} % of this {what} {phrase}")?,
        }
        if let Some(detail) = &self.detail {
            write!(f, " ({detail})")?;
        }
        match is_idle {
            true => write!(f, "; idle for {} besides", span(self.idle, 1)),
            false => Ok(()),
        }
    }
}
