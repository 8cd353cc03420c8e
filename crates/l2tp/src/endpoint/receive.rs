//! Finds the tunnel of a datagram, checks its sequence number, and dispatches
//! messages that are in order.

use base::{Datagram, Instant};
use wire::l2tp::{
    self, Attribute, Control, Fault, Message, MessageType, Packet, ParseError, Version, digest,
};

use super::Endpoint;
use super::data::Received;
use super::read::{assigned_id, unreadable};
use crate::discard::Discard;
use crate::end::{Notice, TunnelEnd};
use crate::reliable::Arrival;
use crate::tunnel::fsm::Event;
use crate::tunnel::{Ending, TunnelState};

/// Limit on queued messages of all tunnels. Above it, a message ahead of a missing
/// one is dropped instead of kept (RFC 2661 5.8 allows both).
const EARLY_POOL_MAX: usize = 1 << 17;
/// The longest message, in bytes, that is kept ahead of a missing one.
const EARLY_BODY_MAX: usize = 2_048;

impl Endpoint {
    pub(super) fn receive(&mut self, datagram: Datagram<'_>, now: Instant) -> Result<(), Discard> {
        match l2tp::parse(datagram.bytes) {
            Ok(Packet::Control(control)) => self.receive_control(&datagram, &control, now),
            Ok(Packet::DataV2(data)) => {
                let received = self.data_v2(&datagram.route, datagram.bytes, &data, now);
                self.not_forwarded(received)
            }
            Ok(Packet::DataV3(data)) => {
                let received = self.data_v3(&datagram.route, datagram.bytes, &data, now);
                self.not_forwarded(received)
            }
            Err(ParseError::UnsupportedVersion(_)) => Err(Discard::UnsupportedVersion),
            Err(
                ParseError::Truncated
                | ParseError::BadFlags
                | ParseError::BadLength
                | ParseError::BadOffset,
            ) => Err(Discard::Malformed),
        }
    }

    /// A data message of an owner that does not use frames. It shows that the peer is alive.
    fn not_forwarded(&mut self, received: Result<Received, Discard>) -> Result<(), Discard> {
        received.map(|_| self.counters.data_not_forwarded += 1)
    }

    fn receive_control(
        &mut self,
        datagram: &Datagram<'_>,
        control: &Control<'_>,
        now: Instant,
    ) -> Result<(), Discard> {
        let versions = self.config.versions;
        let spoken = match control.version {
            Version::V2 => versions.v2,
            Version::V3 => versions.v3,
        };
        if control.connection == 0 {
            // An SCCRQ in the form of version 2 may ask for version 3
            // (RFC 3931 4.7.3), so only `unaddressed` can tell.
            let may_be_v3 = versions.v3 && control.version == Version::V2;
            if !spoken && !may_be_v3 {
                return Err(Discard::UnsupportedVersion);
            }
            return self.receive_unaddressed(datagram, control, now);
        }
        if !spoken {
            return Err(Discard::UnsupportedVersion);
        }
        let peer = datagram.route.peer;
        match self.tunnel_for(control.version, control.connection, peer) {
            Ok(index) => self.receive_sequenced(index, datagram, control, now),
            Err(why) => {
                if why == Discard::UnknownTunnel {
                    self.refuse_stray_reply(datagram, control);
                }
                Err(why)
            }
        }
    }

    /// An SCCRP for an unknown tunnel gets a StopCCN (RFC 2661 7.2.1,
    /// RFC 3931 7.2), so that its sender need not wait for an SCCCN.
    fn refuse_stray_reply(&mut self, datagram: &Datagram<'_>, control: &Control<'_>) {
        let message = Message::parse(control.version, control.body);
        let id = assigned_id(&message);
        if message.kind() == MessageType::Sccrp
            && id != 0
            && let Some(codes) = TunnelEnd::StateMachine("SCCRP").codes(control.version)
        {
            let next = (control.nr, control.ns.wrapping_add(1));
            self.refuse_stateless(datagram.route, control.version, id, next, &codes);
        }
    }

    /// A message of a tunnel, for the reliable delivery of RFC 2661 5.8.
    pub(super) fn receive_sequenced(
        &mut self,
        index: u32,
        datagram: &Datagram<'_>,
        control: &Control<'_>,
        now: Instant,
    ) -> Result<(), Discard> {
        let message = Message::parse(control.version, control.body);
        self.check_digest(index, control, &message)?;
        let Self {
            tunnels,
            pool,
            config,
            counters,
            ..
        } = self;
        let tunnel = tunnels.at_mut(index).expect("the caller found it");
        let reliable = &mut tunnel.reliable;
        if reliable.is_impossible(control.nr) {
            return Err(Discard::ImpossibleNr);
        }
        let takes_no_place = control.body.is_empty() || message.kind() == MessageType::Ack;
        let arrival = match takes_no_place {
            true => None,
            false => Some(reliable.classify(control.ns, config.receive_window)),
        };
        let out_of_step = reliable.is_out_of_step();
        if arrival == Some(Arrival::BeyondWindow) && !out_of_step {
            return Err(Discard::BeyondWindow);
        }
        reliable.note_ns(control.ns, arrival.is_some(), now);
        tunnel.last_heard = now;
        tunnel.received = tunnel.received.wrapping_add(1);
        reliable.acknowledge(control.nr, pool, &config.retransmit, now);
        let backlogged = reliable.is_backlogged(tunnel.sessions);
        match arrival {
            Some(Arrival::InOrder | Arrival::Early) if backlogged => {
                counters.discard(Discard::Backlog);
            }
            None => counters.zlb_received += 1,
            Some(Arrival::Early | Arrival::BeyondWindow) if out_of_step => {
                self.receive_out_of_step(index, control, &message, arrival, now);
            }
            Some(Arrival::InOrder) => {
                self.follow_port(index, datagram);
                self.process(index, control.session, &message, control.body, now);
                self.process_early(index, now);
            }
            Some(Arrival::Duplicate) => {
                counters.duplicates += 1;
                tunnel.duplicates += 1;
                let asks = message.kind() == MessageType::Sccrq && tunnel.up.is_none();
                self.answer_duplicate(index, asks);
            }
            Some(Arrival::Early) => self.receive_early(index, control),
            Some(Arrival::BeyondWindow) => {}
        }
        self.after_acknowledgement(index, now);
        self.mark_ready(index);
        Ok(())
    }

    /// Keeps a message that arrived before its predecessors, if there is room.
    pub(super) fn receive_early(&mut self, index: u32, control: &Control<'_>) {
        let Self {
            tunnels,
            pool,
            counters,
            ..
        } = self;
        let tunnel = tunnels.at_mut(index).expect("the caller found it");
        counters.out_of_order += 1;
        tunnel.reliable.ack_owed = true;
        if pool.in_use() >= EARLY_POOL_MAX || control.body.len() > EARLY_BODY_MAX {
            counters.discard(Discard::Backlog);
        } else if !pool.contains_ns(&tunnel.reliable.early, control.ns) {
            let at = pool.take();
            let slot = pool.get_mut(at);
            (slot.ns, slot.session) = (control.ns, control.session);
            slot.body.extend_from_slice(control.body);
            pool.push_back(&mut tunnel.reliable.early, at);
        }
    }

    /// Acknowledges a duplicate. A repeated SCCRQ (`asks`) gets our answer again instead of a ZLB. During a flood
    /// it gets nothing, so that a genuine peer keeps asking until we have room.
    fn answer_duplicate(&mut self, index: u32, asks: bool) {
        if asks && self.has_drawn_enough(index) {
            self.counters.duplicates_unanswered += 1;
            return;
        }
        let reliable = &mut self.tunnel_at_mut(index).reliable;
        reliable.ack_owed = true;
        if asks {
            reliable.rewind();
        }
    }

    /// The digest is checked before anything of the message is used
    /// (RFC 3931 5.4.1).
    fn check_digest(
        &self,
        index: u32,
        control: &Control<'_>,
        message: &Message<'_>,
    ) -> Result<(), Discard> {
        if control.version == Version::V2 {
            return Ok(());
        }
        let tunnel = self.tunnel_at(index);
        let good = match (self.keys.of(tunnel.keys), &tunnel.auth) {
            (Some(keys), Some(auth)) => match message.kind() {
                // A retransmitted SCCRQ is signed without nonces.
                MessageType::Sccrq => digest::verify(control.whole, &keys.digest, &[], &[]),
                // The SCCRP is the first to bring the peer's nonce.
                MessageType::Sccrp if tunnel.state == TunnelState::WaitCtlReply => {
                    let nonce = message.get(Attribute::ControlMessageAuthenticationNonce);
                    digest::verify(
                        control.whole,
                        &keys.digest,
                        auth.local(),
                        nonce.unwrap_or(&[]),
                    )
                }
                // Accept a refusal by a peer without the secret: it sends nothing
                // else.
                MessageType::StopCcn
                    if auth.remote_nonce.is_empty() && !digest::present(control.whole) =>
                {
                    true
                }
                // A peer that closes before it has our nonce signs without.
                MessageType::StopCcn if tunnel.state == TunnelState::WaitCtlConn => {
                    let nonces: [&[u8]; 2] = [auth.local(), &[]];
                    nonces.into_iter().any(|local| {
                        digest::verify(control.whole, &keys.digest, local, &auth.remote_nonce)
                    })
                }
                _ => digest::verify(
                    control.whole,
                    &keys.digest,
                    auth.local(),
                    &auth.remote_nonce,
                ),
            },
            // No secret: a digest is an integrity check (RFC 3931 4.3).
            _ => {
                !digest::present(control.whole)
                    || digest::verify(control.whole, &digest::shared_key(&[]), &[], &[])
            }
        };
        if good {
            Ok(())
        } else {
            Err(Discard::BadDigest)
        }
    }

    /// The answer to our SCCRQ may come from another port, which is then the
    /// tunnel's (RFC 2661 8.1).
    fn follow_port(&mut self, index: u32, datagram: &Datagram<'_>) {
        let tunnel = self.tunnel_at_mut(index);
        if tunnel.state == TunnelState::WaitCtlReply {
            tunnel.route.peer = datagram.route.peer;
        }
    }

    /// Processes the queued messages that the one just received made deliverable.
    pub(super) fn process_early(&mut self, index: u32, now: Instant) {
        loop {
            let Self { tunnels, pool, .. } = self;
            let Some(tunnel) = tunnels.at_mut(index) else {
                return;
            };
            if tunnel.reliable.early.is_empty() {
                return;
            }
            let nr = tunnel.reliable.nr();
            let Some(at) = pool.remove_ns(&mut tunnel.reliable.early, nr) else {
                return;
            };
            let slot = pool.get_mut(at);
            let (session, body) = (slot.session, core::mem::take(&mut slot.body));
            let version = self.tunnel_at(index).version;
            let message = Message::parse(version, &body);
            self.process(index, session, &message, &body, now);
            self.pool.get_mut(at).body = body;
            self.pool.release(at);
        }
    }

    /// Processes an in-order message, given with the body that it was parsed from.
    pub(super) fn process(
        &mut self,
        index: u32,
        session: u16,
        message: &Message<'_>,
        body: &[u8],
        now: Instant,
    ) {
        let tunnel = self.tunnel_at_mut(index);
        tunnel.reliable.advance();
        if tunnel.ending != Ending::Held {
            self.process_now(index, session, message, body, now);
        }
    }

    /// Processes a message whatever its number is.
    pub(super) fn process_now(
        &mut self,
        index: u32,
        session: u16,
        message: &Message<'_>,
        body: &[u8],
        now: Instant,
    ) {
        let tunnel = self.tunnel_at(index);
        let (version, keys) = (tunnel.version, tunnel.keys);
        if message.has_hidden()
            && let Some(keys) = self.keys.of(keys)
        {
            let key: &[u8] = match version {
                Version::V2 => &keys.secret,
                Version::V3 => &keys.hiding,
            };
            let mut clear = core::mem::take(&mut self.unhidden);
            clear.clear();
            match l2tp::unhide(body, key, &mut clear) {
                Ok(()) => self.dispatch(index, session, &Message::parse(version, &clear), now),
                Err(_) => self.dispatch(index, session, message, now),
            }
            self.unhidden = clear;
        } else {
            self.dispatch(index, session, message, now);
        }
    }

    fn dispatch(&mut self, index: u32, session: u16, message: &Message<'_>, now: Instant) {
        let kind = message.kind();
        self.counters.count_received(kind.number());
        self.counters.ignored_avps += u64::from(message.ignored_avps());
        if self.tunnel_at(index).ending == Ending::StopSent {
            if kind == MessageType::StopCcn {
                self.hold(index, now);
            }
            return;
        }
        match kind {
            MessageType::Sccrq => {
                self.end_tunnel(
                    index,
                    Event::SccrqAcceptable,
                    TunnelEnd::StateMachine("SCCRQ"),
                    now,
                );
            }
            MessageType::Sccrp => self.receive_sccrp(index, message, now),
            MessageType::Scccn => self.receive_scccn(index, message, now),
            MessageType::StopCcn => self.receive_stop_ccn(index, message, now),
            MessageType::Hello => {
                if let Err(reason) = unreadable(message) {
                    self.end_tunnel(index, Event::Close, reason, now);
                }
            }
            MessageType::Ocrq
            | MessageType::Ocrp
            | MessageType::Occn
            | MessageType::Icrq
            | MessageType::Icrp
            | MessageType::Iccn
            | MessageType::Cdn
            | MessageType::Wen
            | MessageType::Sli => {
                if self.tunnel_at(index).state == TunnelState::Established {
                    self.receive_call(index, session, message, now);
                } else {
                    let reason = TunnelEnd::StateMachine("call before the tunnel is up");
                    self.end_tunnel(index, Event::Close, reason, now);
                }
            }
            MessageType::Csun | MessageType::Csurq => self.receive_speeds(index, message, now),
            MessageType::Ack => {}
            MessageType::Unknown(number) => self.receive_unknown(index, number, message, now),
        }
    }

    fn receive_unknown(&mut self, index: u32, number: u16, message: &Message<'_>, now: Instant) {
        let reason = match message.fault() {
            Some(Fault::NoMessageType) => TunnelEnd::BadValue("no Message Type AVP"),
            Some(_) if number == 0 => TunnelEnd::BadLength("AVP"),
            _ if message.kind_mandatory() => TunnelEnd::UnknownMessage(number),
            _ => {
                self.counters.ignored_messages += 1;
                return;
            }
        };
        self.end_tunnel(index, Event::Close, reason, now);
    }

    pub(super) fn receive_stop_ccn(&mut self, index: u32, message: &Message<'_>, now: Instant) {
        let notice = Notice::from_wire(message.result_code());
        let tunnel = self.tunnel_at_mut(index);
        if tunnel.remote_id == 0 {
            // A refusal is the first to bring the peer's id, by which our
            // acknowledgement finds it.
            tunnel.remote_id = assigned_id(message);
        }
        let unsigned = !message.has(Attribute::MessageDigest);
        if unsigned
            && tunnel
                .auth
                .as_ref()
                .is_some_and(|a| a.remote_nonce.is_empty())
        {
            // The peer could not verify an acknowledgement with a digest, either.
            tunnel.auth = None;
        }
        self.end_tunnel(index, Event::StopCcn, TunnelEnd::Peer(notice), now);
    }
}
