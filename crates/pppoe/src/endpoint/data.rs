//! Session data: RFC 2516, section 6.

use base::Instant;
use wire::pppoe::{Code, HEADER_LEN, Writer};

use super::fsm::{Event, Step, step};
use super::{Endpoint, PACKET_MAX};
use crate::discard::Discard;
use crate::route::Route;
use crate::session::{Phase, SessionKey};

impl Endpoint {
    /// The PPP frame in a received frame, with its session. The PPP frame starts with the protocol field and ends where
    /// LENGTH says. `None`: a Discovery packet, or no packet at all; pass it to
    /// [`handle`](base::Machine::handle).
    ///
    /// # Errors
    /// The frame was ignored and counted. If it is of an unknown session, its sender may get a PADT.
    #[inline]
    pub fn receive_data<'a>(
        &mut self,
        route: &Route,
        bytes: &'a [u8],
        now: Instant,
    ) -> Result<Option<(SessionKey, &'a [u8])>, Discard> {
        if bytes.get(1) != Some(&Code::DATA.0) {
            return Ok(None);
        }
        let found = self.locate(route, bytes, now);
        found.map(Some).map_err(|why| self.discard(why))
    }

    fn locate<'a>(
        &mut self,
        route: &Route,
        bytes: &'a [u8],
        now: Instant,
    ) -> Result<(SessionKey, &'a [u8]), Discard> {
        let packet = wire::pppoe::parse(bytes)?;
        let index = match self.find_by_id(route, packet.session) {
            Ok(index) => index,
            Err(why) => {
                if why == Discard::UnknownSession {
                    self.answer_unknown(route, packet.session, now);
                }
                return Err(why);
            }
        };
        let session = self.at(index);
        let key = SessionKey(session.key);
        if session.phase == Phase::HalfOpen {
            self.heard_at(index);
        }
        Ok((key, packet.payload))
    }

    /// Tells a station that the session it uses does not exist, for example after we restarted. A station that a client
    /// of ours may just have a PADS from gets nothing.
    fn answer_unknown(&mut self, route: &Route, id: u16, now: Instant) {
        let is_server = self.port(route.port).is_some_and(|port| port.server);
        let per_s = self.config.unknown_padts_per_s;
        let may = per_s > 0 && is_server && self.dialing == 0 && route.peer.is_unicast();
        if !may || !self.outbox.has_room() || !self.unknown_padts.take(per_s, now) {
            return;
        }
        self.outbox.push(*route, PACKET_MAX, |out| {
            Writer::new(out, Code::PADT, id).finish();
        });
        self.counters.unknown_answered += 1;
        self.counters.sent_padt += 1;
    }

    /// Reports that a path received a PPP frame of this session.
    pub fn heard(&mut self, session: SessionKey, _: Instant) {
        if let Some(index) = self.index_of(session) {
            self.heard_at(index);
        }
    }

    fn heard_at(&mut self, index: u32) {
        if let Step::To(phase) = step(self.at(index).phase, Event::Data) {
            self.disarm(index);
            self.half_open -= 1;
            self.at_mut(index).phase = phase;
        }
    }

    /// The header before a PPP frame of this session, and the frame's destination. The header's LENGTH is 0: append
    /// the PPP frame, then call [`wire::pppoe::complete`]. `None`: no frames flow in this session.
    #[must_use]
    pub fn header(&self, session: SessionKey) -> Option<([u8; HEADER_LEN], Route)> {
        let session = self.sessions.get(session.0)?;
        let header = wire::pppoe::header(Code::DATA, session.id);
        session
            .phase
            .carries_data()
            .then_some((header, session.route))
    }
}
