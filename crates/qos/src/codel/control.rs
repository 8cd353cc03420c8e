//! CoDel's control law (RFC 8289 5.5, 5.6): decides whether the first packet of a queue is late.
//!
//! The RFC allows marks and leaves the details open, so marks work as in Linux: a mark replaces a drop and ends the
//! call, and the next mark is due when the next drop would be.

use base::{Duration, Instant};

use super::Parameters;
use crate::packet::{Id, Pool, Reason};

/// What the control law does with waiting packets. [`Pool`] is one such store.
pub trait Store {
    /// The arrival time of a packet.
    fn arrived(&self, id: Id) -> Instant;

    /// The bytes on the line of a packet.
    fn length(&self, id: Id) -> u32;

    /// Marks a packet "congestion experienced" if its sender is ECN-capable; returns whether it is.
    fn mark(&mut self, id: Id) -> bool;

    /// Removes a packet that is lost.
    fn discard(&mut self, id: Id, reason: Reason);
}

impl Store for Pool {
    #[inline]
    fn arrived(&self, id: Id) -> Instant {
        Pool::arrived(self, id)
    }

    #[inline]
    fn length(&self, id: Id) -> u32 {
        Pool::length(self, id)
    }

    fn mark(&mut self, id: Id) -> bool {
        Pool::mark(self, id)
    }

    fn discard(&mut self, id: Id, reason: Reason) {
        Pool::discard(self, id, reason);
    }
}

/// A queue whose delay is controlled.
pub trait Waiting<P = Pool> {
    /// Removes the first packet.
    fn pop(&mut self, pool: &P) -> Option<Id>;

    /// Bytes that wait behind the removed packet: "bytes()" of the RFC.
    fn bytes_behind(&self) -> u64;
}

/// [`Parameters`] in nanoseconds, limited to what the arithmetic can handle.
#[derive(Debug, Clone, Copy)]
pub struct Law {
    target: u64,
    /// 1 to `u32::MAX`, so that its square fits.
    interval: u64,
    mtu: u64,
    ce_threshold: u64,
    ecn: bool,
}

impl Law {
    /// The law with these parameters.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        let interval = parameters.interval.as_nanos().clamp(1, u32::MAX.into());
        Self {
            target: parameters.target.as_nanos(),
            interval,
            mtu: parameters.mtu.into(),
            ce_threshold: parameters.ce_threshold.map_or(u64::MAX, Duration::as_nanos),
            ecn: parameters.ecn,
        }
    }

    /// Whether a packet that leaves after this delay, in nanoseconds, with so many bytes behind it, is not late: it
    /// resets [`Control`], so a queue of such packets alone needs none.
    #[inline]
    #[must_use]
    pub fn is_calm(&self, delay_ns: u64, bytes_behind: u64) -> bool {
        (delay_ns < self.target || bytes_behind <= self.mtu) && delay_ns <= self.ce_threshold
    }

    /// "control_law": `t + interval / sqrt(count)`, rounded down. In integers this is exact: the root of the square
    /// over the count.
    fn next(&self, t: u64, count: u32) -> u64 {
        let square = self.interval * self.interval / u64::from(count.max(1));
        t.saturating_add(square.isqrt())
    }
}

/// Counters of a discipline's packets.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Packets dropped because they were late.
    pub dropped: u64,
    /// Packets marked instead of dropped.
    pub ecn_mark: u64,
    /// Packets marked because their delay was above the threshold.
    pub ce_mark: u64,
    /// Bytes of the longest packet.
    pub max_packet: u32,
}

/// The context of one call.
pub struct Turn<'a, P = Pool> {
    /// The parameters.
    pub law: &'a Law,
    /// Where drops and marks are counted.
    pub tally: &'a mut Tally,
    /// The packets.
    pub pool: &'a mut P,
    /// The time of the call.
    pub now: Instant,
}

impl<P: Store> Turn<'_, P> {
    #[inline]
    fn time(&self) -> u64 {
        self.now.as_nanos()
    }

    #[inline]
    fn sojourn(&self, id: Id) -> u64 {
        self.now.since(self.pool.arrived(id)).as_nanos()
    }

    /// Marks a packet if that is allowed, or else drops it; returns whether it was dropped.
    fn drop_unless_marked(&mut self, id: Option<Id>) -> bool {
        let Some(id) = id else { return false };
        if self.law.ecn && self.pool.mark(id) {
            self.tally.ecn_mark += 1;
            return false;
        }
        self.tally.dropped += 1;
        self.pool.discard(id, Reason::Late);
        true
    }
}

/// The state of one queue (RFC 8289 5.2) that each packet reads, under the RFC's names. As there, 0 means that no time
/// is set.
#[derive(Debug, Clone, Copy, Default)]
pub struct Control {
    first_above_time: u64,
    dropping: bool,
    /// Whether its [`Pace`] was written since it is new. If not, the place of the pace may have another queue's.
    has_pace: bool,
}

/// The rest of a queue's state, which only late packets read. It is separate so that a table of flows can store it
/// elsewhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    drop_next: u64,
    count: u32,
    lastcount: u32,
}

impl Pace {
    /// "count" of the RFC: drops since dropping started.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// "lastcount" of the RFC.
    #[must_use]
    pub fn last_count(&self) -> u32 {
        self.lastcount
    }
}

impl Control {
    /// Whether it drops late packets.
    #[must_use]
    pub fn is_dropping(&self) -> bool {
        self.dropping
    }

    /// Does what [`Control::dequeue`] does for an empty queue.
    #[inline]
    pub fn found_empty(&mut self) {
        self.first_above_time = 0;
        self.dropping = false;
    }

    /// Removes the packet that leaves next; drops or marks the late ones before it.
    #[inline]
    pub fn dequeue<P: Store>(
        &mut self,
        pace: &mut Pace,
        turn: &mut Turn<'_, P>,
        queue: &mut impl Waiting<P>,
    ) -> Option<Id> {
        let first = queue.pop(turn.pool);
        let late = self.is_late(turn, queue, first);
        let leaves = if self.dropping {
            self.go_on_dropping(pace, turn, queue, first, late)
        } else if late {
            self.begin_to_drop(pace, turn, queue, first)
        } else {
            first
        };
        if let Some(id) = leaves
            && turn.sojourn(id) > turn.law.ce_threshold
            && turn.pool.mark(id)
        {
            turn.tally.ce_mark += 1;
        }
        leaves
    }

    /// "ok_to_drop" of "dodequeue", for the packet just removed.
    #[inline]
    fn is_late<P: Store>(
        &mut self,
        turn: &mut Turn<'_, P>,
        queue: &impl Waiting<P>,
        id: Option<Id>,
    ) -> bool {
        let Some(id) = id else {
            self.first_above_time = 0;
            return false;
        };
        let length = turn.pool.length(id);
        turn.tally.max_packet = turn.tally.max_packet.max(length);
        if turn.sojourn(id) < turn.law.target || queue.bytes_behind() <= turn.law.mtu {
            self.first_above_time = 0;
            false
        } else if self.first_above_time == 0 {
            self.first_above_time = turn.time().saturating_add(turn.law.interval);
            false
        } else {
            turn.time() >= self.first_above_time
        }
    }

    /// Drops the first late packet. The count of the last dropping state sets how soon the next drop is due.
    fn begin_to_drop<P: Store>(
        &mut self,
        pace: &mut Pace,
        turn: &mut Turn<'_, P>,
        queue: &mut impl Waiting<P>,
        first: Option<Id>,
    ) -> Option<Id> {
        let mut at_head = first;
        if turn.drop_unless_marked(at_head) {
            at_head = queue.pop(turn.pool);
            self.is_late(turn, queue, at_head);
        }
        self.dropping = true;
        if !self.has_pace {
            self.has_pace = true;
            *pace = Pace::default();
        }
        let delta = pace.count.wrapping_sub(pace.lastcount);
        let since_last = turn.time().saturating_sub(pace.drop_next);
        let recent = since_last < 16 * turn.law.interval;
        pace.count = if delta > 1 && recent { delta } else { 1 };
        pace.drop_next = turn.law.next(turn.time(), pace.count);
        pace.lastcount = pace.count;
        at_head
    }

    /// Makes the drops that are due: several if drops are due more often than packets leave.
    fn go_on_dropping<P: Store>(
        &mut self,
        pace: &mut Pace,
        turn: &mut Turn<'_, P>,
        queue: &mut impl Waiting<P>,
        first: Option<Id>,
        late: bool,
    ) -> Option<Id> {
        let mut at_head = first;
        self.dropping = late;
        while self.dropping && turn.time() >= pace.drop_next {
            pace.count = pace.count.wrapping_add(1);
            let dropped = turn.drop_unless_marked(at_head);
            if dropped {
                at_head = queue.pop(turn.pool);
                self.dropping = self.is_late(turn, queue, at_head);
            }
            if self.dropping {
                pace.drop_next = turn.law.next(pace.drop_next, pace.count);
            }
            if !dropped {
                break;
            }
        }
        at_head
    }
}
