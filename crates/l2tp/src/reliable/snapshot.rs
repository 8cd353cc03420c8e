//! Sequence numbers and windows as a value. The queues are their tunnel's fields.

use base::snapshot::{Codec, Part};

use super::{Reliable, WINDOW_MAX};
use crate::pool::{Message, MessagePool, NIL, Queue};

impl Part for Reliable {
    const NAME: &'static str = "window";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let mut sent = self.sent_high.wrapping_sub(self.una);
        codec.number(1, "una", &mut self.una);
        codec.number(2, "sent", &mut sent);
        self.sent_high = self.una.wrapping_add(sent);
        codec.number(3, "nr", &mut self.nr);
        codec.number(4, "peer_window", &mut self.peer_window);
        codec.number(5, "cwnd", &mut self.cwnd);
        codec.number(6, "ssthresh", &mut self.ssthresh);
        codec.number(7, "acks_in_cwnd", &mut self.acks_in_cwnd);
        codec.number(8, "tries", &mut self.tries);
        codec.number(9, "in_flight", &mut self.in_flight);
        codec.deadline(10, "deadline", &mut self.deadline);
        codec.number(11, "ack_owed", &mut self.ack_owed);
        codec.maybe_part(12, "probe", &mut self.probe, Box::default);
    }
}

impl Reliable {
    /// State to read into: absent fields are 0.
    pub(crate) fn blank() -> Self {
        Self {
            peer_window: 0,
            cwnd: 0,
            ssthresh: 0,
            ..Self::new()
        }
    }

    /// The queue to the peer, and that of messages that arrived early.
    pub(crate) const fn queues(&self) -> (Queue, Queue) {
        (self.queue, self.early)
    }

    /// Whether what was read can go on with this queue: every message that was sent and not acknowledged is in it.
    pub(crate) fn fits(&self, queue: &[Message]) -> bool {
        let sent = self.sent_high.wrapping_sub(self.una);
        let windows = 1..=WINDOW_MAX;
        // A window is closed until its probe is due.
        let least = u16::from(!self.is_probing());
        sent <= WINDOW_MAX
            && self.in_flight <= sent
            && usize::from(sent) <= queue.len()
            && windows.contains(&self.peer_window)
            && (least..=self.peer_window).contains(&self.cwnd)
            && windows.contains(&self.ssthresh)
    }

    /// Whether `ns` is ahead of the expected one.
    pub(crate) const fn is_ahead(&self, ns: u16) -> bool {
        matches!(ns.wrapping_sub(self.nr), 1..0x8000)
    }

    /// Puts messages that were read into the pool.
    pub(crate) fn adopt(
        &mut self,
        queue: Vec<Message>,
        early: Vec<Message>,
        pool: &mut MessagePool,
    ) {
        let mut put = |message: Message, queue: &mut Queue| {
            let at = pool.take();
            *pool.get_mut(at) = message;
            pool.push_back(queue, at);
            at
        };
        self.unsent = NIL;
        for (message, place) in queue.into_iter().zip(0_u32..) {
            let at = put(message, &mut self.queue);
            if place == u32::from(self.in_flight) {
                self.unsent = at;
            }
        }
        for message in early {
            put(message, &mut self.early);
        }
    }
}
