//! Splits the streams into messages, and passes each message to the state machine of its connection.
//!
//! Implements parts of RFC 4271, sections 6.4 and 8.1.5.

use base::Instant;
use wire::bgp::notification::{Notification, code, open};
use wire::bgp::{
    EXTENDED_MAX, FamilyId, HEADER_LEN, KEEPALIVE, Kind, MESSAGE_MAX, Open, Refresh, RouteRefresh,
    Update, frame,
};

use super::Speaker;
use crate::discard::Discard;
use crate::end::{CloseReason, unexpected};
use crate::event::{Event, What};
use crate::fsm::{self, State};
use crate::negotiate::Ours;
use crate::peer::{MALFORMED_OCTETS_MAX, Malformed, PeerId};
use crate::table::{ConnId, Flags, LATE_MAX, Late};

impl Speaker {
    /// Takes the next piece of a connection's stream, of any length. An incomplete message is stored until the rest
    /// arrives.
    ///
    /// # Errors
    /// The connection is not known; the octets were ignored. A fault in the stream is not returned as an error: it ends
    /// the session, and [`Event::Close`] reports that.
    #[inline]
    pub fn receive(&mut self, conn: ConnId, octets: &[u8], now: Instant) -> Result<(), Discard> {
        // With many idle sessions, nearly every message is a KEEPALIVE.
        if octets == KEEPALIVE
            && let Some(hot) = self.conns.hot_mut(conn)
            && hot.is_fast(conn)
        {
            let left = hot.hear(now);
            hot.keepalives_in = hot.keepalives_in.wrapping_add(1);
            if let Some(left) = left {
                self.margin.note(left, now);
            }
            return Ok(());
        }
        self.receive_any(conn, octets, now)
    }

    /// As [`receive`](Self::receive) of one KEEPALIVE, for a driver with very many idle sessions. It is stored, and noted
    /// together with others before anything depends on it. So the record of each session is not loaded for each
    /// KEEPALIVE: the peers of a router send in no order.
    #[inline]
    pub fn receive_keepalive(&mut self, conn: ConnId, now: Instant) {
        if self.conns.hear_late(conn, now) >= LATE_MAX {
            self.note_late();
        }
    }

    /// Notes the KEEPALIVEs of [`receive_keepalive`](Self::receive_keepalive). Everything that changes a connection, or
    /// asks when it last received a message, calls this first.
    #[inline]
    pub(super) fn note_late(&mut self) {
        if self.conns.has_late() {
            let mut odd = Vec::new();
            self.conns.note_late(&mut odd, &mut self.margin);
            self.receive_odd(odd);
        }
    }

    /// Takes KEEPALIVEs that are not only to be noted.
    pub(super) fn receive_odd(&mut self, odd: Vec<Late>) {
        for Late { conn, at } in odd {
            // The speaker counts what it ignores.
            let _ = self.receive_any(conn, &KEEPALIVE, at);
        }
    }

    fn receive_any(&mut self, id: ConnId, octets: &[u8], now: Instant) -> Result<(), Discard> {
        self.note_late();
        self.latest = now;
        let Some(conn) = self.conns.get_mut(id).filter(|conn| conn.is_up) else {
            return Err(self.discards.count(Discard::UnknownConnection));
        };
        let index = conn.peer;
        let mut kept = core::mem::take(&mut conn.input);
        let extended = self
            .peers
            .get(index)
            .is_some_and(|peer| peer.settings.extended_messages);
        let len_max = if extended { EXTENDED_MAX } else { MESSAGE_MAX };
        let mut rest = octets;
        loop {
            let source = if kept.is_empty() {
                rest
            } else {
                top_up(&mut kept, &mut rest);
                &kept
            };
            let len = match frame(source, len_max) {
                Ok(Some((kind, body, len))) => {
                    if !self.message(id, kind, body, now) {
                        return Ok(());
                    }
                    len
                }
                Ok(None) => break,
                Err(fault) => {
                    let why = CloseReason::Fault(Box::new(fault));
                    self.run(index, Some(id), fsm::Event::BgpHeaderErr, why, now);
                    return Ok(());
                }
            };
            if kept.is_empty() {
                rest = &rest[len..];
            } else {
                kept.clear();
            }
        }
        if kept.is_empty() {
            kept = rest.to_vec();
        }
        if let Some(hot) = self.conns.hot_mut(id) {
            hot.flags.clear(Flags::PARTIAL);
            if !kept.is_empty() {
                hot.flags.set(Flags::PARTIAL);
            }
        }
        if let Some(conn) = self.conns.get_mut(id) {
            conn.input = kept;
        }
        Ok(())
    }

    /// Takes one message. Returns whether its connection still exists.
    fn message(&mut self, id: ConnId, kind: Kind, body: &[u8], now: Instant) -> bool {
        let Some(conn) = self.conns.get(id) else {
            return false;
        };
        let (index, state) = (conn.peer, conn.state);
        match kind {
            Kind::Keepalive => {
                if let Some(hot) = self.conns.hot_mut(id) {
                    hot.keepalives_in = hot.keepalives_in.wrapping_add(1);
                }
                self.hear(id, now);
                if state != State::Established {
                    let why = unexpected(state, kind);
                    self.run(index, Some(id), fsm::Event::KeepAliveMsg, why, now);
                }
            }
            Kind::Update if state == State::Established => self.update(id, index, body, now),
            Kind::Update => {
                let why = unexpected(state, kind);
                self.run(index, Some(id), fsm::Event::UpdateMsg, why, now);
            }
            Kind::Open => self.open(id, index, state, body, now),
            Kind::Notification => self.notification(id, index, body, now),
            Kind::RouteRefresh if state == State::Established => {
                self.refresh_message(id, index, body, now);
            }
            Kind::RouteRefresh => {
                // The RFC has no event for ROUTE-REFRESH. Before Established it is treated as an UPDATE.
                let why = unexpected(state, kind);
                self.run(index, Some(id), fsm::Event::UpdateMsg, why, now);
            }
        }
        self.conns.hot(id).is_some()
    }

    /// Notes that a message was received on a connection.
    fn hear(&mut self, id: ConnId, now: Instant) {
        let left = self.conns.hot_mut(id).and_then(|hot| hot.hear(now));
        if let Some(left) = left {
            self.margin.note(left, now);
        }
    }

    fn open(&mut self, id: ConnId, index: u32, state: State, body: &[u8], now: Instant) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        peer.counts.opens_in = peer.counts.opens_in.wrapping_add(1);
        let ours = Ours {
            asn: self.asn,
            router_id: self.router_id,
            restarted: self.deferral.is_some(),
            settings: &peer.settings,
        };
        let agreed = Open::read(body).and_then(|theirs| ours.agree(&theirs, peer.remote_asn));
        let agreed = match agreed {
            Ok(agreed) => agreed,
            Err(fault) => {
                let why = CloseReason::Fault(Box::new(fault));
                return self.run(index, Some(id), fsm::Event::BgpOpenMsgErr, why, now);
            }
        };
        let why = unexpected(state, Kind::Open);
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        let event = if conn.is_delaying() {
            fsm::Event::BgpOpenDelayed
        } else {
            fsm::Event::BgpOpen
        };
        if conn.agreed.is_none() {
            conn.agreed = Some(Box::new(agreed));
        }
        self.run(index, Some(id), event, why, now);
    }

    fn notification(&mut self, id: ConnId, index: u32, body: &[u8], now: Instant) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        peer.counts.notifications_in = peer.counts.notifications_in.wrapping_add(1);
        let remote = peer.remote;
        let told = Box::new(Notification::read(body).unwrap_or_default());
        self.happened(remote, What::Received(told.clone()), now);
        let event = if (told.code, told.subcode) == (code::OPEN, open::UNSUPPORTED_VERSION) {
            fsm::Event::NotifMsgVerErr
        } else {
            fsm::Event::NotifMsg
        };
        self.run(index, Some(id), event, CloseReason::Received(told), now);
    }

    fn update(&mut self, id: ConnId, index: u32, body: &[u8], now: Instant) {
        self.hear(id, now);
        let (Some(conn), Some(peer)) = (self.conns.get(id), self.peers.get_mut(index)) else {
            return;
        };
        let Some(agreed) = conn.agreed.as_deref() else {
            return;
        };
        peer.counts.updates_in += 1;
        self.updates.0 += 1;
        let context = agreed.update_context(&peer.settings);
        match Update::read(body, &context) {
            Ok(update) => {
                if update.fault_count() > 0 {
                    let what = update.faults().iter().map(ToString::to_string);
                    let what = what.collect::<Vec<_>>().join("; ");
                    self.malformed(index, &what, body, now);
                }
                self.take_update(index, &update, now);
            }
            Err(fault) => {
                self.malformed(index, &fault.to_string(), body, now);
                let why = CloseReason::Fault(Box::new(fault));
                self.run(index, Some(id), fsm::Event::UpdateMsgErr, why, now);
            }
        }
    }

    /// Counts a malformed UPDATE, and stores it to be shown.
    fn malformed(&mut self, index: u32, why: &str, body: &[u8], now: Instant) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        peer.counts.malformed += 1;
        peer.malformed = Some(Box::new(Malformed {
            at: now,
            why: why.into(),
            octets: body[..body.len().min(MALFORMED_OCTETS_MAX)].into(),
        }));
        let remote = peer.remote;
        self.happened(remote, What::Malformed, now);
        let peer = PeerId(index);
        let event = Event::Malformed { peer, remote };
        // One event until it is polled, so that a flood of malformed messages costs no memory.
        if self.events.back() != Some(&event) {
            self.events.push_back(event);
        }
    }

    fn refresh_message(&mut self, id: ConnId, index: u32, body: &[u8], now: Instant) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        peer.counts.refreshes_in = peer.counts.refreshes_in.wrapping_add(1);
        let message = match RouteRefresh::read(body) {
            Ok(message) => message,
            Err(fault) => {
                let why = CloseReason::Fault(Box::new(fault));
                return self.run(index, Some(id), fsm::Event::UpdateMsgErr, why, now);
            }
        };
        let agreed = self.conns.get(id).and_then(|conn| conn.agreed.as_deref());
        let is_agreed = |family: &FamilyId| agreed.is_some_and(|a| a.families.contains(*family));
        // A refresh of a family that was not negotiated is ignored (RFC 2918, section 4), and so is an unknown subtype
        // (RFC 7313, section 5).
        let Some(family) = message.family.family().filter(is_agreed) else {
            return;
        };
        match message.refresh {
            Refresh::Request => self.refresh_routes(index, family),
            Refresh::Begin => self.refresh_begins(index, family),
            Refresh::End => self.refresh_ends(index, family),
            Refresh::Unknown(_) => {}
        }
    }
}

/// Moves octets from `rest` to the message that starts in `kept`, as far as the message reaches.
fn top_up(kept: &mut Vec<u8>, rest: &mut &[u8]) {
    let mut take = |kept: &mut Vec<u8>, len: usize| {
        let (now, later) = rest.split_at(len.saturating_sub(kept.len()).min(rest.len()));
        kept.extend_from_slice(now);
        *rest = later;
    };
    take(kept, HEADER_LEN);
    if let Some(header) = kept.first_chunk::<HEADER_LEN>() {
        let len = usize::from(u16::from_be_bytes([header[16], header[17]]));
        take(kept, len);
    }
}
