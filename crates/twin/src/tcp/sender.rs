//! The sender: what is in flight, what is lost, and what is sent next.
//!
//! The model's path does not reorder. A segment is therefore lost as soon as a segment that was sent later has
//! arrived and three segments above a gap have arrived, or a recovery has started (RFC 6675 4, RFC 8985 6).

use std::collections::VecDeque;

use super::control::{Algorithm, Control, Delivery};
use super::receiver::Ack;
use super::timer::Timer;

/// Segments above a gap that show a loss (RFC 6675 2).
const DUPLICATES: u64 = 3;

/// The constants of a sender.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Congestion control.
    pub algorithm: Algorithm,
    /// Initial window, in segments.
    pub initial: u32,
    /// Bytes of payload of a full segment.
    pub mss: u32,
}

/// A segment to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// Its number.
    pub segment: u64,
    /// Offset of its first byte.
    pub start: u64,
    /// Bytes of payload.
    pub bytes: u32,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    start: u64,
    bytes: u32,
    sent: u64,
    /// Counts transmissions, to tell which of two was later.
    order: u64,
    sacked: bool,
    lost: bool,
    again: bool,
    /// Segments delivered when it was sent, and when the last of these was.
    delivered: (u64, u64),
}

#[derive(Debug, Clone, Copy)]
struct Recovery {
    point: u64,
    is_time_out: bool,
    before: f64,
    delivered: u64,
    sent: u64,
}

/// What the timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alarm {
    TimeOut,
    Probe,
    /// A gap below fewer than three segments counts as lost (RFC 8985 6.2, step 5).
    Reorder,
}

/// A sender. The caller gives it bytes with [`Sender::write`], ACKs and time, and then drains [`Sender::poll`].
#[derive(Debug, Clone)]
pub struct Sender {
    setup: Setup,
    control: Control,
    timer: Timer,
    segments: VecDeque<Segment>,
    /// Number of the first segment of `segments`.
    first: u64,
    /// Offset after the last acknowledged byte, and after the last byte sent.
    acked: u64,
    top: u64,
    /// Offset after the last byte of the application, and of the receiver's window.
    written: u64,
    right: u64,
    sacked: u64,
    lost: u64,
    order: u64,
    newest: u64,
    /// All segments below this number are known to be lost, or sacked, or sent again.
    scanned: u64,
    highest: u64,
    queue: VecDeque<u64>,
    resent: VecDeque<(u64, u64)>,
    recovery: Option<Recovery>,
    round_end: u64,
    delivered: (u64, u64),
    is_limited: bool,
    budget: u64,
    paced_until: u64,
    alarm: Option<(u64, Alarm)>,
}

impl Sender {
    /// A sender without data.
    #[must_use]
    pub fn new(setup: Setup) -> Sender {
        Sender {
            control: Control::new(setup.algorithm, setup.initial),
            setup,
            timer: Timer::default(),
            segments: VecDeque::new(),
            first: 0,
            acked: 0,
            top: 0,
            written: 0,
            right: 0,
            sacked: 0,
            lost: 0,
            order: 0,
            newest: 0,
            scanned: 0,
            highest: 0,
            queue: VecDeque::new(),
            resent: VecDeque::new(),
            recovery: None,
            round_end: 0,
            delivered: (0, 0),
            is_limited: false,
            budget: 0,
            paced_until: 0,
            alarm: None,
        }
    }

    /// The handshake measured a round trip.
    pub fn handshake(&mut self, time: u64) {
        self.timer.sample(time);
    }

    /// The application writes bytes up to offset `to`, after a pause.
    pub fn write(&mut self, to: u64, pause: u64) {
        self.written = self.written.max(to);
        if self.top > 0 && pause > self.timer.rto() {
            self.control.restart(self.setup.initial);
        }
    }

    /// The application writes no more. Returns the offset after the last byte sent.
    pub fn stop(&mut self) -> u64 {
        self.written = self.top;
        self.top
    }

    /// The receiver takes bytes up to offset `right`.
    pub fn open(&mut self, right: u64) {
        self.right = self.right.max(right);
    }

    /// Offset after the last byte that is acknowledged without a gap.
    #[must_use]
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// The congestion window, in segments.
    #[must_use]
    pub fn window(&self) -> f64 {
        self.control.window
    }

    /// Segments that are on their way, as the sender sees it.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.segments.len() as u64 - self.sacked - self.lost
    }

    /// Segments that arrived, from the first on and above gaps: start and end offsets of the newest block.
    #[must_use]
    pub fn block(&self, segment: u64) -> Option<(u64, u64)> {
        let place = segment.checked_sub(self.first)?;
        let segment = self.segments.get(place as usize)?;
        Some((segment.start, segment.start + u64::from(segment.bytes)))
    }

    /// An ACK arrives.
    pub fn acknowledge(&mut self, ack: Ack, now: u64) {
        let mut delivery = Delivery {
            now,
            segments: 0,
            round_trip: None,
            in_flight: 0,
            is_round: false,
            rate: None,
        };
        let mut newest = None;
        self.advance(ack.next, &mut delivery, &mut newest);
        self.sack(ack.sacked, &mut delivery, &mut newest);
        if let Some(segment) = newest {
            self.newest = self.newest.max(segment.order);
            self.delivered = (self.delivered.0 + delivery.segments, now);
            let time = (now - segment.delivered.1).max(now - segment.sent);
            delivery.rate = Some((self.delivered.0 - segment.delivered.0, time));
            if segment.delivered.0 >= self.round_end {
                self.round_end = self.delivered.0;
                delivery.is_round = true;
            }
        }
        if let Some(time) = delivery.round_trip {
            self.timer.sample(time);
        }
        self.find_losses();
        delivery.in_flight = self.in_flight();
        self.recover(ack, &delivery);
        self.set_alarm(now);
    }

    /// Removes the segments that are acknowledged without a gap.
    fn advance(&mut self, next: u64, delivery: &mut Delivery, newest: &mut Option<Segment>) {
        let mut is_clean = true;
        let mut last = None;
        while self.first < next {
            let Some(segment) = self.segments.pop_front() else {
                break;
            };
            self.first += 1;
            self.acked = segment.start + u64::from(segment.bytes);
            is_clean &= !segment.again;
            self.lost -= u64::from(segment.lost);
            if segment.sacked {
                self.sacked -= 1;
                continue;
            }
            delivery.segments += 1;
            last = Some(segment);
        }
        if let Some(segment) = last {
            *newest = Some(segment);
            if is_clean {
                delivery.round_trip = Some(delivery.now - segment.sent);
            }
        }
        self.scanned = self.scanned.max(self.first);
    }

    /// Marks a segment above a gap as arrived.
    fn sack(&mut self, sacked: Option<u64>, delivery: &mut Delivery, newest: &mut Option<Segment>) {
        let Some(number) = sacked else { return };
        let Some(place) = number.checked_sub(self.first) else {
            return;
        };
        let Some(segment) = self.segments.get_mut(place as usize) else {
            return;
        };
        if segment.sacked {
            return;
        }
        segment.sacked = true;
        self.lost -= u64::from(segment.lost);
        segment.lost = false;
        self.sacked += 1;
        self.highest = self.highest.max(number);
        delivery.segments += 1;
        if !segment.again {
            delivery.round_trip = delivery.round_trip.or(Some(delivery.now - segment.sent));
        }
        if newest.is_none_or(|other| other.order < segment.order) {
            *newest = Some(*segment);
        }
    }

    /// Marks lost segments.
    fn find_losses(&mut self) {
        if self.sacked >= DUPLICATES || (self.recovery.is_some() && self.sacked > 0) {
            self.mark_gaps();
        }
        while let Some(&(number, order)) = self.resent.front() {
            if order >= self.newest {
                break;
            }
            self.resent.pop_front();
            let place = number.checked_sub(self.first);
            let segment = place.and_then(|place| self.segments.get(place as usize));
            if segment.is_some_and(|segment| segment.order == order) {
                self.mark(number);
            }
        }
    }

    /// Every gap below the highest segment that arrived is lost.
    fn mark_gaps(&mut self) {
        while self.scanned < self.highest {
            let number = self.scanned;
            self.scanned += 1;
            self.mark(number);
        }
    }

    /// A segment is lost, unless it has arrived.
    fn mark(&mut self, number: u64) {
        let Some(place) = number.checked_sub(self.first) else {
            return;
        };
        if let Some(segment) = self.segments.get_mut(place as usize)
            && !segment.sacked
            && !segment.lost
        {
            segment.lost = true;
            self.lost += 1;
            self.queue.push_back(number);
        }
    }

    /// Follows a recovery, or grows the window.
    fn recover(&mut self, ack: Ack, delivery: &Delivery) {
        if self
            .recovery
            .is_some_and(|recovery| ack.next >= recovery.point)
        {
            if self.recovery.take().is_some_and(|ended| !ended.is_time_out)
                && self.control.is_loss_based()
            {
                self.control.window = self.control.threshold;
            }
            return;
        }
        if self.recovery.is_none() && self.lost > 0 {
            self.enter(false);
        }
        if !self.control.is_loss_based() {
            self.control.delivered(delivery, true);
            return;
        }
        match &mut self.recovery {
            Some(recovery) if !recovery.is_time_out => {
                recovery.delivered += delivery.segments;
                let (in_flight, threshold) = (delivery.in_flight as f64, self.control.threshold);
                // RFC 6937 3: in proportion to what arrives, and slow start below the threshold.
                let more = if in_flight > threshold {
                    let due = recovery.delivered as f64 * threshold / recovery.before;
                    (due.ceil() - recovery.sent as f64).max(0.0)
                } else {
                    let behind = recovery.delivered as f64 - recovery.sent as f64;
                    let bound = behind.max(delivery.segments as f64) + 1.0;
                    bound.min(threshold - in_flight)
                };
                let first = if recovery.sent == 0 { 1.0 } else { 0.0 };
                self.control.window = in_flight + more.max(first);
            }
            _ => {
                let is_limited = self.is_limited || self.recovery.is_some();
                self.control.delivered(delivery, is_limited);
            }
        }
    }

    fn enter(&mut self, is_time_out: bool) {
        let before = self.control.window;
        match is_time_out {
            true => self.control.time_out(),
            false => self.control.reduce(),
        }
        self.recovery = Some(Recovery {
            point: self.first + self.segments.len() as u64,
            is_time_out,
            before,
            delivered: 0,
            sent: 0,
        });
    }

    /// The next segment to send now, if any.
    pub fn poll(&mut self, now: u64) -> Option<Transmit> {
        let has_room = (self.in_flight() as f64) + 1.0 <= self.control.window.max(1.0);
        self.is_limited = !has_room;
        if self.budget == 0 && !has_room {
            return None;
        }
        if now < self.paced_until {
            return None;
        }
        let sent = self.next_lost(now).or_else(|| self.next_new(now))?;
        self.budget = self.budget.saturating_sub(1);
        if let Some(recovery) = &mut self.recovery {
            recovery.sent += 1;
        }
        if let Some(interval) = self.control.interval() {
            self.paced_until = now.max(self.paced_until) + interval;
        }
        if self.alarm.is_none() {
            self.set_alarm(now);
        }
        Some(sent)
    }

    fn next_lost(&mut self, now: u64) -> Option<Transmit> {
        while let Some(number) = self.queue.pop_front() {
            let Some(place) = number.checked_sub(self.first) else {
                continue;
            };
            let is_lost = |segment: &&Segment| segment.lost;
            if self.segments.get(place as usize).filter(is_lost).is_some() {
                return self.send_again(number, now);
            }
        }
        None
    }

    fn send_again(&mut self, number: u64, now: u64) -> Option<Transmit> {
        let place = number.checked_sub(self.first)?;
        let delivered = (self.delivered.0, self.delivered.1.max(1));
        let segment = self.segments.get_mut(place as usize)?;
        self.order += 1;
        self.lost -= u64::from(segment.lost);
        (segment.lost, segment.again) = (false, true);
        (segment.sent, segment.order) = (now, self.order);
        segment.delivered = delivered;
        self.resent.push_back((number, self.order));
        Some(Transmit {
            segment: number,
            start: segment.start,
            bytes: segment.bytes,
        })
    }

    fn next_new(&mut self, now: u64) -> Option<Transmit> {
        let left = self.written.saturating_sub(self.top);
        let bytes = left.min(u64::from(self.setup.mss)) as u32;
        if bytes == 0 || self.top + u64::from(bytes) > self.right {
            return None;
        }
        self.order += 1;
        if self.segments.is_empty() {
            self.delivered.1 = now;
        }
        let transmit = Transmit {
            segment: self.first + self.segments.len() as u64,
            start: self.top,
            bytes,
        };
        self.segments.push_back(Segment {
            start: self.top,
            bytes,
            sent: now,
            order: self.order,
            sacked: false,
            lost: false,
            again: false,
            delivered: self.delivered,
        });
        self.top += u64::from(bytes);
        Some(transmit)
    }

    fn set_alarm(&mut self, now: u64) {
        let has_gap = self.sacked > 0 && self.scanned < self.highest;
        self.alarm = match (self.segments.is_empty(), self.recovery) {
            (true, _) => None,
            (false, None) if has_gap => Some((now + self.timer.min() / 4, Alarm::Reorder)),
            (false, None) => Some((now + self.timer.probe(self.in_flight()), Alarm::Probe)),
            (false, Some(_)) => Some((now + self.timer.rto(), Alarm::TimeOut)),
        };
    }

    /// When to call [`Sender::expire`] or [`Sender::poll`] again.
    #[must_use]
    pub fn deadline(&self, now: u64) -> Option<u64> {
        let paced = (self.paced_until > now && self.has_work()).then_some(self.paced_until);
        let alarm = self.alarm.map(|(at, _)| at);
        paced.into_iter().chain(alarm).min()
    }

    fn has_work(&self) -> bool {
        let has_room = (self.in_flight() as f64) + 1.0 <= self.control.window;
        has_room && (!self.queue.is_empty() || self.written > self.top)
    }

    /// Time passes.
    pub fn expire(&mut self, now: u64) {
        let Some((_, alarm)) = self.alarm.filter(|&(at, _)| at <= now) else {
            return;
        };
        match alarm {
            Alarm::Reorder => {
                self.mark_gaps();
                if self.lost > 0 {
                    self.enter(false);
                    // RFC 6937 3: the first retransmission is always sent.
                    self.budget = 1;
                }
                self.set_alarm(now);
            }
            Alarm::Probe => {
                // RFC 8985 7.3: new data, or the last segment again.
                self.budget = 1;
                let can_send_new = self.written > self.top && self.top < self.right;
                if !can_send_new {
                    self.mark(self.first + self.segments.len() as u64 - 1);
                }
                self.alarm = Some((now + self.timer.rto(), Alarm::TimeOut));
            }
            Alarm::TimeOut => {
                self.timer.back_off();
                self.enter(true);
                let end = self.first + self.segments.len() as u64;
                self.queue.clear();
                self.resent.clear();
                for (number, segment) in (self.first..end).zip(&mut self.segments) {
                    if !segment.sacked {
                        self.lost += u64::from(!segment.lost);
                        segment.lost = true;
                        self.queue.push_back(number);
                    }
                }
                self.scanned = end;
                self.alarm = Some((now + self.timer.rto(), Alarm::TimeOut));
            }
        }
    }

    /// The smoothed and the shortest round trip.
    #[must_use]
    pub fn round_trips(&self) -> (u64, u64) {
        (self.timer.srtt(), self.timer.min())
    }
}

#[cfg(test)]
mod tests;
