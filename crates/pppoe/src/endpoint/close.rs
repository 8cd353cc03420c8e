//! Every way to end a session: RFC 2516, section 5.5.

use base::{Duration, Instant};
use wire::pppoe::Discovery;

use super::Endpoint;
use super::fsm::{self, Step, step};
use super::parting::Parting;
use crate::event::{EndReason, Event, text};
use crate::session::{Phase, Role, SessionKey};

impl Endpoint {
    /// Ends a session because its payload ended. The PADT is sent after `wait`, and frames may flow until then; zero:
    /// at once. A client that has no session id yet ends at once. Does nothing if the session no longer exists.
    pub fn end(&mut self, session: SessionKey, wait: Duration, now: Instant) {
        let Some(index) = self.index_of(session) else {
            return;
        };
        let event = match wait {
            Duration::ZERO => fsm::Event::End,
            _ => fsm::Event::EndLater,
        };
        if step(self.at(index).phase, event) == Step::To(Phase::Ending) {
            self.leave_half_open(index);
            self.at_mut(index).phase = Phase::Ending;
            self.arm(index, now + wait);
        } else {
            self.end_by(index, event, EndReason::Payload);
        }
    }

    /// Ends a session at once because an operator closes it. Does nothing if the session no longer exists.
    pub fn close(&mut self, session: SessionKey, _: Instant) {
        if let Some(index) = self.index_of(session) {
            self.end_by(index, fsm::Event::End, EndReason::Administrative);
        }
    }

    /// Ends every session and sends PADTs, some at a time: see [`Endpoint::lose`]. From now on PADIs are ignored and PADRs
    /// refused.
    pub fn shut_down(&mut self, now: Instant) {
        self.shutting_down = true;
        self.drop_delayed(|_| true);
        self.part(Parting::ShutDown, now, |_| true);
    }

    /// Whether no session is about to end, and every packet has been taken by `poll_transmit`.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let is_empty = self.outbox.is_empty() && self.padts.is_empty() && self.ready.is_empty();
        is_empty && self.partings.due().is_none()
    }

    /// A PADT of the peer. Its text, if it has one, is in a Generic-Error.
    pub(super) fn end_by_peer(&mut self, index: u32, payload: &[u8]) {
        let reason = match self.at(index).phase {
            // We ended it, and the peer agrees before our PADT.
            Phase::Ending => EndReason::Payload,
            Phase::Soliciting | Phase::Requesting | Phase::HalfOpen | Phase::Established => {
                let tags = Discovery::parse(payload).unwrap_or_default();
                EndReason::Peer(text(tags.fault.map_or(b"", |fault| fault.text)))
            }
        };
        self.end_by(index, fsm::Event::Padt, reason);
    }

    /// Ends a session by an event for which the table has an end.
    pub(super) fn end_by(&mut self, index: u32, event: fsm::Event, reason: EndReason) {
        match step(self.at(index).phase, event) {
            Step::Terminate => {
                let session = self.at(index);
                self.padts.push_back((session.route, session.id));
            }
            Step::Remove => {}
            Step::Ignore | Step::To(_) | Step::Retransmit => return,
        }
        self.disarm(index);
        self.leave_half_open(index);
        let session = self.take(index);
        if session.role == Role::Client && session.id == 0 {
            self.dialing -= 1;
        }
        match reason {
            EndReason::SetupTimeout => self.counters.setup_timeouts += 1,
            EndReason::Replaced => self.counters.replaced += 1,
            _ => {}
        }
        self.counters.sessions_down += 1;
        self.events.push_back(Event::SessionDown {
            session: SessionKey(session.key),
            place: session.place(),
            reason,
        });
    }

    fn leave_half_open(&mut self, index: u32) {
        if self.at(index).phase == Phase::HalfOpen {
            self.half_open -= 1;
        }
    }
}
