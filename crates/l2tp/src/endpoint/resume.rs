//! Tunnels after a crash: the stored state may be older than what the peer knows.
//!
//! Queued messages are lost, and the sequence numbers may be too low; `reliable/probe.rs` finds the right ones. A peer needs
//! no support for this: it receives a HELLO, and its own messages may be acknowledged late. Start reading at
//! [`Endpoint::resume`].
//!
//! Implements parts of RFC 2661, sections 5.4 and 5.8. Left out: the recovery of RFC 4951, which both ends must support.

use base::{Duration, Instant};
use wire::l2tp::{Control, Message, MessageType};

use super::Endpoint;
use crate::pool::NIL;
use crate::reliable::Arrival;
use crate::session::Session;
use crate::tunnel::{Ending, TunnelKey, TunnelState};

/// How far our data's sequence numbers jump: the stored number may be older by fewer. A peer takes a jump of less than
/// half of the numbers, which are 65,536 in L2TPv2.
const SEQUENCE_JUMP: u32 = 8_192;

impl Endpoint {
    /// Continues an established tunnel and its sessions with state that was stored before a crash. Call it after they are
    /// restored, and before the endpoint sends. Data flows at once. `false` if there is no such tunnel.
    ///
    /// The tunnel sends a HELLO after `wait`, so that a large endpoint can spread the HELLOs of its tunnels. If the peer does
    /// not answer, the tunnel ends as [`crate::TunnelEnd::Unanswered`].
    ///
    /// Sessions that were not established must not be restored, since their queued messages are lost. If a session's data
    /// is numbered, its state must not be older than 8,000 of its frames.
    pub fn resume(&mut self, tunnel: TunnelKey, wait: Duration, now: Instant) -> bool {
        let Self { tunnels, pool, .. } = self;
        let record = tunnels.get_mut(tunnel.0);
        let record = record.filter(|one| one.state == TunnelState::Established);
        let Some(record) = record else {
            return false;
        };
        record.reliable.resume(pool);
        record.last_heard = now;
        record.idle_deadline = now + wait;
        let is_unwatched = record.empty_deadline == Instant::FAR_FUTURE;
        let (index, mut at) = (record.key.index, record.first_session);
        while at != NIL {
            let session = self.session_at_mut(at);
            session.resume();
            at = session.next;
        }
        self.compose_hello(index);
        if is_unwatched {
            self.watch_empty(index, now);
        }
        true
    }

    /// A message is ahead of the expected one, which the peer may never send. A message that ends a session or the tunnel
    /// takes effect at once. Other messages wait.
    pub(super) fn receive_out_of_step(
        &mut self,
        index: u32,
        control: &Control<'_>,
        message: &Message<'_>,
        arrival: Option<Arrival>,
        now: Instant,
    ) {
        let (session, body) = (control.session, control.body);
        match message.kind() {
            MessageType::StopCcn => {
                self.tunnel_at_mut(index).reliable.skip_to(control.ns);
                return self.process(index, session, message, body, now);
            }
            // When its turn comes, the session is unknown, and the CDN does nothing.
            MessageType::Cdn if self.tunnel_at(index).ending == Ending::No => {
                self.process_now(index, session, message, body, now);
            }
            _ => {}
        }
        if arrival == Some(Arrival::Early) {
            self.receive_early(index, control);
        }
    }

    /// Stops waiting for a message that the peer has not sent in time. `true` if a later message then ended the tunnel.
    pub(super) fn settle(&mut self, index: u32, now: Instant) -> bool {
        if !self.tunnel_at_mut(index).reliable.settle(now) {
            return false;
        }
        self.counters.resumed_with_losses += 1;
        self.process_early(index, now);
        self.mark_ready(index);
        self.tunnels.at(index).is_none()
    }
}

impl Session {
    /// The stored numbers of its data are lower than the present ones (RFC 2661 5.4).
    fn resume(&mut self) {
        self.any_sequence = true;
        if self.sent_sequence != 0 {
            self.sent_sequence = (self.sent_sequence + SEQUENCE_JUMP) & 0x00ff_ffff;
        }
    }
}
