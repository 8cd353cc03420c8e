//! Reliable delivery of control messages: RFC 2661 5.8 and appendix A, which
//! RFC 3931 4.2 repeats. Sequence numbers and windows only: the messages
//! themselves are stored in a [`MessagePool`].

use base::Instant;

use crate::config::Retransmit;
use crate::pool::{MessagePool, NIL, Queue};

mod probe;
mod snapshot;

use probe::Probe;

/// The window of a peer that sent no Receive Window Size AVP (RFC 2661 4.4.3).
pub(crate) const DEFAULT_WINDOW: u16 = 4;

/// The largest usable window: half the range of sequence numbers distinguishes
/// new from old (RFC 2661 5.8).
const WINDOW_MAX: u16 = 0x7fff;

/// Limit on a peer's unacknowledged messages, besides those of its sessions. Above
/// it, requests of the peer are ignored until it acknowledges some.
const BACKLOG_MAX: u32 = 16_384;

/// How a received Ns relates to the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The next one: process it.
    InOrder,
    /// A duplicate: acknowledge it again, do not process it.
    Duplicate,
    /// Inside our window, ahead of a missing one: keep it.
    Early,
    /// Beyond our window: drop it.
    BeyondWindow,
}

/// The meaning of a retransmission timer's expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// Nothing was due.
    NotDue,
    /// Retransmit the oldest message.
    Retransmit,
    /// The last try went unanswered.
    GiveUp,
}

/// The sequence state of one control connection.
pub(crate) struct Reliable {
    /// Messages that wait for an acknowledgement or for the window, in order.
    queue: Queue,
    /// The first of `queue` that is not in flight.
    unsent: u32,
    /// Messages that arrived ahead of a missing one.
    pub(crate) early: Queue,
    /// When the oldest message is retransmitted; `FAR_FUTURE` if none is in flight.
    pub(crate) deadline: Instant,
    /// How many of `queue` are in flight.
    in_flight: u16,
    /// Ns of the head of `queue`: the oldest unacknowledged message.
    una: u16,
    /// Ns after the highest ever sent.
    sent_high: u16,
    /// The Ns that we expect next.
    nr: u16,
    peer_window: u16,
    cwnd: u16,
    ssthresh: u16,
    acks_in_cwnd: u16,
    tries: u8,
    /// An acknowledgement is due.
    pub(crate) ack_owed: bool,
    /// After a crash, until the sequence numbers are those of the peer.
    probe: Option<Box<Probe>>,
}

impl Reliable {
    pub(crate) const fn new() -> Self {
        Self {
            queue: Queue::EMPTY,
            unsent: NIL,
            early: Queue::EMPTY,
            deadline: Instant::FAR_FUTURE,
            in_flight: 0,
            una: 0,
            sent_high: 0,
            nr: 0,
            peer_window: DEFAULT_WINDOW,
            cwnd: 1,
            ssthresh: DEFAULT_WINDOW,
            acks_in_cwnd: 0,
            tries: 0,
            ack_owed: false,
            probe: None,
        }
    }

    pub(crate) const fn nr(&self) -> u16 {
        self.nr
    }

    /// The Ns of the next new message, which a ZLB carries too.
    pub(crate) const fn next_ns(&self) -> u16 {
        self.sent_high
    }

    /// Ns of the oldest message that is not acknowledged, or of the next one.
    pub(crate) const fn oldest_ns(&self) -> u16 {
        self.una
    }

    pub(crate) const fn peer_window(&self) -> u16 {
        self.peer_window
    }

    pub(crate) const fn cwnd(&self) -> u16 {
        self.cwnd
    }

    /// Messages not yet acknowledged, sent or not.
    pub(crate) const fn outstanding(&self) -> u32 {
        self.queue.len()
    }

    /// Whether more messages are unacknowledged than `sessions` calls of a
    /// well-behaved peer can cause.
    pub(crate) const fn is_backlogged(&self, sessions: u32) -> bool {
        self.queue.len() > BACKLOG_MAX.saturating_add(sessions.saturating_mul(2))
    }

    pub(crate) const fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Sets the peer's Receive Window Size, which is not 0.
    pub(crate) fn set_peer_window(&mut self, window: u16) {
        let window = window.min(WINDOW_MAX);
        self.peer_window = window;
        self.ssthresh = window;
        self.cwnd = self.cwnd.min(window);
    }

    /// Classifies the Ns of a message that consumes a sequence number.
    pub(crate) const fn classify(&self, ns: u16, our_window: u16) -> Arrival {
        let ahead = ns.wrapping_sub(self.nr);
        if ahead == 0 {
            Arrival::InOrder
        } else if ahead >= 0x8000 {
            Arrival::Duplicate
        } else if ahead < our_window {
            Arrival::Early
        } else {
            Arrival::BeyondWindow
        }
    }

    /// Advances past a processed in-order message.
    pub(crate) fn advance(&mut self) {
        self.nr = self.nr.wrapping_add(1);
        self.ack_owed = true;
    }

    /// Whether `nr` acknowledges a message that was never sent.
    pub(crate) fn is_impossible(&self, nr: u16) -> bool {
        self.is_beyond(nr) && !self.may_jump(nr)
    }

    /// Whether `nr` acknowledges a message of which we do not know that it was sent.
    const fn is_beyond(&self, nr: u16) -> bool {
        let acked = nr.wrapping_sub(self.una);
        acked < 0x8000 && acked > self.sent_high.wrapping_sub(self.una)
    }

    /// Processes a valid Nr: frees the acknowledged messages and opens the window. Returns how many messages
    /// were acknowledged.
    pub(crate) fn acknowledge(
        &mut self,
        nr: u16,
        pool: &mut MessagePool,
        retransmit: &Retransmit,
        now: Instant,
    ) -> u16 {
        let acked = nr.wrapping_sub(self.una);
        if acked == 0 || acked >= 0x8000 {
            return 0;
        }
        if self.is_beyond(nr) {
            self.jump(nr, pool);
            return 0;
        }
        for _ in 0..acked {
            let index = pool
                .pop_front(&mut self.queue)
                .expect("una..sent_high are queued");
            if self.unsent == index {
                self.unsent = self.queue.head;
            }
            pool.release(index);
        }
        self.una = nr;
        self.in_flight = self.in_flight.saturating_sub(acked);
        self.tries = 0;
        self.open_window();
        self.deadline = if self.in_flight > 0 {
            now + retransmit.first
        } else {
            Instant::FAR_FUTURE
        };
        self.note_answer();
        acked
    }

    /// Appendix A: one more per acknowledgement in slow start, one more per
    /// window in congestion avoidance, never above the peer's window.
    fn open_window(&mut self) {
        if self.cwnd < self.ssthresh {
            self.cwnd += 1;
        } else {
            self.acks_in_cwnd += 1;
            if self.acks_in_cwnd >= self.cwnd {
                self.acks_in_cwnd = 0;
                self.cwnd = self.cwnd.saturating_add(1);
            }
        }
        self.cwnd = self.cwnd.min(self.peer_window);
    }

    /// Queues the message in `index`.
    pub(crate) fn enqueue(&mut self, index: u32, pool: &mut MessagePool) {
        pool.push_back(&mut self.queue, index);
        if self.unsent == NIL {
            self.unsent = index;
        }
    }

    /// Whether `next_to_send` has a message.
    pub(crate) const fn can_send(&self) -> bool {
        self.unsent != NIL && self.in_flight < self.cwnd
    }

    /// The next message inside the window: its Ns, its index, and whether it was sent before.
    pub(crate) fn next_to_send(
        &mut self,
        pool: &MessagePool,
        retransmit: &Retransmit,
        now: Instant,
    ) -> Option<(u16, u32, bool)> {
        if !self.can_send() {
            return None;
        }
        let index = self.unsent;
        let ns = self.una.wrapping_add(self.in_flight);
        self.unsent = pool.next(index);
        self.in_flight += 1;
        let again = self.sent_high != ns;
        if !again {
            self.sent_high = ns.wrapping_add(1);
        }
        if self.deadline == Instant::FAR_FUTURE {
            self.deadline = now + self.interval(retransmit);
        }
        self.ack_owed = false;
        Some((ns, index, again))
    }

    fn interval(&self, retransmit: &Retransmit) -> base::Duration {
        let doubled = retransmit.first.saturating_mul(1 << self.tries.min(63));
        doubled.min(retransmit.cap)
    }

    /// Fires the retransmission timer if it is due: the window shrinks to one, and the oldest message is sent
    /// again.
    pub(crate) fn expire(&mut self, retransmit: &Retransmit, now: Instant) -> Expiry {
        if self.deadline > now {
            return Expiry::NotDue;
        }
        self.deadline = Instant::FAR_FUTURE;
        if self.tries >= retransmit.tries {
            return Expiry::GiveUp;
        }
        self.tries += 1;
        self.ssthresh = (self.cwnd / 2).max(1);
        self.cwnd = 1;
        self.acks_in_cwnd = 0;
        self.rewind();
        Expiry::Retransmit
    }

    /// Starts the second interval without a retransmission; `false` if that interval is over.
    pub(crate) fn wait_again(&mut self, retransmit: &Retransmit, now: Instant) -> bool {
        let first = self.tries == 0;
        if first {
            self.tries = 1;
            self.deadline = now + self.interval(retransmit);
        }
        first
    }

    /// Makes the oldest message the next to be sent, after a duplicate from the peer showed that it did not
    /// receive our answer. Timers and window stay unchanged.
    pub(crate) fn rewind(&mut self) {
        self.unsent = self.queue.head;
        self.in_flight = 0;
    }

    /// Opens the window for all queued messages, as far as the peer allows, so
    /// that a StopCCN does not wait behind unacknowledged messages.
    pub(crate) fn make_room(&mut self) {
        if self.is_probing() {
            return self.open();
        }
        let queued = u16::try_from(self.queue.len()).unwrap_or(u16::MAX);
        self.cwnd = self.cwnd.max(queued.min(self.peer_window));
    }

    /// Whether anything was ever sent.
    pub(crate) const fn has_sent(&self) -> bool {
        self.sent_high != 0 || self.una != 0
    }

    /// Sends all queued messages one last time, to a peer that does not answer.
    pub(crate) fn last_words(&mut self, retransmit: &Retransmit) {
        self.tries = retransmit.tries;
        self.cwnd = self.peer_window;
        self.deadline = Instant::FAR_FUTURE;
        self.rewind();
    }

    /// Drops everything queued, in both directions; sequence numbers stay.
    pub(crate) fn drop_all(&mut self, pool: &mut MessagePool) {
        self.una = self.sent_high;
        self.clear(pool);
    }

    /// Frees all queued messages.
    pub(crate) fn clear(&mut self, pool: &mut MessagePool) {
        self.drop_queued(pool, 0);
        pool.clear(&mut self.early);
        self.drop_probe();
    }

    /// Drops the unsent messages, so that a StopCCN is sent next.
    pub(crate) fn drop_unsent(&mut self, pool: &mut MessagePool) {
        self.drop_queued(pool, self.sent_high.wrapping_sub(self.una).into());
        pool.clear(&mut self.early);
    }

    fn drop_queued(&mut self, pool: &mut MessagePool, keep: u32) {
        let mut kept = Queue::EMPTY;
        while let Some(index) = pool.pop_front(&mut self.queue) {
            if kept.len() < keep {
                pool.detach(index);
                pool.push_back(&mut kept, index);
            } else {
                pool.release(index);
            }
        }
        self.queue = kept;
        if u32::from(self.in_flight) >= kept.len() {
            self.in_flight = kept.len() as u16;
            self.unsent = NIL;
        }
        if kept.is_empty() {
            self.deadline = Instant::FAR_FUTURE;
        }
    }
}
