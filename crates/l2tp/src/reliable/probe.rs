//! Sequence numbers after a crash: the stored ones may be lower than those that the peer knows.
//!
//! Our Ns. The peer may have received more messages than the stored state shows. So the first message, a HELLO, has the
//! oldest Ns that may be unacknowledged. The peer acknowledges it even if it is a duplicate (RFC 2661 5.8), and the Nr of
//! this acknowledgement is our next Ns.
//!
//! The peer may also hold messages of ours that arrived before the crash, ahead of a lost one. A new message gets the number
//! of the lost one, and then the Nr of its acknowledgement jumps over the held ones. Held messages are at most a window
//! ahead. Until we have sent as many messages, we send one at a time, since a second one could have the number of a held
//! one: the peer would ignore it as a duplicate.
//!
//! Our Nr. Before the crash we may have acknowledged more messages than the stored state shows. If the peer sends the
//! message with the stored Nr, this is not so. If it does not within [`SETTLE`], it never will, and Nr becomes the Ns that
//! the peer uses. The messages in between are lost.
//!
//! Implements parts of RFC 2661, section 5.8.

use base::snapshot::{Codec, Part};
use base::{Duration, Instant};

use super::Reliable;
use crate::pool::{MessagePool, NIL};

/// How long the peer may take to retransmit a message: the cap of 8 s that RFC 2661 5.8 recommends at least.
const SETTLE: Duration = Duration::from_secs(8);

/// What is not known yet.
pub(crate) struct Probe {
    /// The Ns from which on the peer holds nothing; `None` until a message was acknowledged in the ordinary way.
    clear_from: Option<u16>,
    /// The peer sent a message with the expected Ns, so Nr is right.
    is_in_step: bool,
    /// When the wait for such a message ends; `FAR_FUTURE` if no message was ahead.
    settle_at: Instant,
    /// The lowest Ns of the messages that are ahead.
    lowest: Option<u16>,
    /// The highest Ns of acknowledgements that are ahead.
    highest: Option<u16>,
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            clear_from: None,
            is_in_step: false,
            settle_at: Instant::FAR_FUTURE,
            lowest: None,
            highest: None,
        }
    }
}

impl Reliable {
    /// Drops what a crash loses, and starts with a closed window from the oldest Ns that may be unacknowledged.
    pub(crate) fn resume(&mut self, pool: &mut MessagePool) {
        self.clear(pool);
        self.sent_high = self.una;
        (self.in_flight, self.unsent) = (0, NIL);
        (self.cwnd, self.ssthresh) = (0, self.peer_window);
        (self.acks_in_cwnd, self.tries) = (0, 0);
        self.ack_owed = false;
        self.probe = Some(Box::default());
    }

    /// Opens the window for the probe.
    pub(crate) fn open(&mut self) {
        self.cwnd = self.cwnd.max(1);
    }

    pub(crate) const fn is_probing(&self) -> bool {
        self.probe.is_some()
    }

    /// Whether the window is closed until the probe is due.
    pub(crate) const fn is_closed(&self) -> bool {
        self.cwnd == 0
    }

    /// Whether our Nr may be too low.
    pub(crate) fn is_out_of_step(&self) -> bool {
        let probe = self.probe.as_deref();
        probe.is_some_and(|probe| !probe.is_in_step)
    }

    /// When [`Reliable::settle`] is due.
    pub(crate) fn settle_at(&self) -> Instant {
        let probe = self.probe.as_deref();
        probe.map_or(Instant::FAR_FUTURE, |probe| probe.settle_at)
    }

    /// Whether the peer may send an Nr beyond all that we know to have sent.
    pub(super) fn may_jump(&self, nr: u16) -> bool {
        self.probe.as_deref().is_some_and(|probe| {
            let limit = probe.clear_from.map(|from| from.wrapping_sub(self.una));
            limit.is_none_or(|limit| nr.wrapping_sub(self.una) <= limit)
        })
    }

    /// Takes such an Nr. Before the first acknowledgement, our message was a duplicate of one from before the crash, and is
    /// sent again with the new number. Later, the peer has accepted our message, and then the ones that it held.
    pub(super) fn jump(&mut self, nr: u16, pool: &mut MessagePool) {
        let is_answered = (self.probe.as_deref()).is_some_and(|probe| probe.clear_from.is_some());
        let accepted = match is_answered {
            true => self.sent_high.wrapping_sub(self.una),
            false => 0,
        };
        for _ in 0..accepted {
            if let Some(index) = pool.pop_front(&mut self.queue) {
                pool.release(index);
            }
        }
        (self.una, self.sent_high) = (nr, nr);
        self.rewind();
        self.deadline = Instant::FAR_FUTURE;
        self.tries = 0;
        self.open();
        if is_answered {
            self.note_answer();
        }
    }

    /// Our oldest message was acknowledged.
    pub(super) fn note_answer(&mut self) {
        let (una, window) = (self.una, self.peer_window);
        if let Some(probe) = &mut self.probe {
            probe.clear_from.get_or_insert(una.wrapping_add(window));
            self.cwnd = 1;
            self.end_probe();
        }
    }

    /// Notes the Ns of a message, or of an acknowledgement alone.
    pub(crate) fn note_ns(&mut self, ns: u16, is_message: bool, now: Instant) {
        let Some(probe) = &mut self.probe else {
            return;
        };
        let (nr, ahead) = (self.nr, ns.wrapping_sub(self.nr));
        let distance = |known: u16| known.wrapping_sub(nr);
        match ahead {
            0 => {
                probe.is_in_step = true;
                probe.settle_at = Instant::FAR_FUTURE;
                self.end_probe();
            }
            1..0x8000 if !probe.is_in_step => {
                if is_message && probe.lowest.is_none_or(|low| distance(low) > ahead) {
                    probe.lowest = Some(ns);
                }
                if !is_message && probe.highest.is_none_or(|high| distance(high) < ahead) {
                    probe.highest = Some(ns);
                }
                probe.settle_at = probe.settle_at.min(now + SETTLE);
            }
            _ => {}
        }
    }

    /// Continues with the number that the peer uses, if the time for the message with our Nr is over.
    pub(crate) fn settle(&mut self, now: Instant) -> bool {
        let Some(probe) = self.probe.as_deref_mut() else {
            return false;
        };
        if probe.settle_at > now {
            return false;
        }
        self.nr = probe.lowest.or(probe.highest).unwrap_or(self.nr);
        probe.is_in_step = true;
        probe.settle_at = Instant::FAR_FUTURE;
        self.end_probe();
        true
    }

    /// Skips to a message that is ahead and ends the tunnel.
    pub(crate) fn skip_to(&mut self, ns: u16) {
        self.nr = ns;
        self.drop_probe();
    }

    pub(super) fn drop_probe(&mut self) {
        self.probe = None;
        self.open();
    }

    fn end_probe(&mut self) {
        let una = self.una;
        self.probe.take_if(|probe| {
            let is_clear = |from: u16| matches!(una.wrapping_sub(from), 0..0x8000);
            probe.is_in_step && probe.clear_from.is_some_and(is_clear)
        });
    }
}

impl Part for Box<Probe> {
    const NAME: &'static str = "probe";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.maybe(1, "clear_from", &mut self.clear_from);
        codec.number(2, "is_in_step", &mut self.is_in_step);
        let mut due = (self.settle_at != Instant::FAR_FUTURE).then_some(self.settle_at);
        codec.maybe_time(3, "settle_at", &mut due);
        if C::READS && due == Some(Instant::FAR_FUTURE) {
            codec.refuse();
        }
        self.settle_at = due.unwrap_or(Instant::FAR_FUTURE);
        codec.maybe(4, "lowest", &mut self.lowest);
        codec.maybe(5, "highest", &mut self.highest);
    }
}
