//! Every way to end: the messages sent, the records kept for late duplicates, and
//! the history for the operator (RFC 2661 5.6, 5.7; RFC 3931 3.3.2, 3.4.3).

use base::{Duration, Instant, Route};
use wire::l2tp::{self, MessageType, Version};

use super::{Endpoint, FIRST_REPLY, REFUSALS_MAX, compose};
use crate::cause::PppCause;
use crate::config::Pseudowire;
use crate::discard::Discard;
use crate::emitter::Emitter;
use crate::end::{Codes, SessionEnd, TunnelEnd};
use crate::event::Event as Told;
use crate::pool::NIL;
use crate::session::{EndedSession, SessionKey, SessionState};
use crate::tunnel::fsm::{self, Action, Event};
use crate::tunnel::{EndedTunnel, Ending, Tunnel, TunnelKey, TunnelState};

/// How many stale entries the queue of held tunnels may contain before it is compacted.
const ORDER_SLACK: usize = 1_024;

/// How many held tunnels one new tunnel may evict while none of them frees a usable id.
const EVICTIONS_MAX: usize = 64;

impl Endpoint {
    pub(super) fn tunnel_key(&self, index: u32) -> TunnelKey {
        TunnelKey(self.tunnel_at(index).key)
    }

    /// Ends a tunnel by an event of its state machine.
    pub(super) fn end_tunnel(&mut self, index: u32, event: Event, reason: TunnelEnd, now: Instant) {
        let tunnel = self.tunnel_at(index);
        if tunnel.ending != Ending::No {
            return;
        }
        let (action, next) = fsm::step(tunnel.state, event);
        debug_assert_eq!(next, TunnelState::Idle, "{event:?} ends a tunnel");
        let was = tunnel.state;
        let originated = tunnel.originated;
        self.end_sessions_of(index, now);
        self.tunnel_at_mut(index).empty_deadline = Instant::FAR_FUTURE;
        self.set_tunnel_state(index, TunnelState::Idle);
        self.tally.live -= 1;
        match was {
            TunnelState::Established => self.tally.established -= 1,
            // A refused request counts until the peer has acknowledged the refusal, so that bad requests take
            // no more room than good ones.
            _ if !originated && action != Action::SendStopCcn => self.remove_half_open(index),
            _ => {}
        }
        self.unlink_peer(index);
        self.remember_tunnel(index, &reason, now);
        match action {
            // No peer knows a tunnel that never sent its SCCRQ.
            Action::SendStopCcn if originated && !self.tunnel_at(index).reliable.has_sent() => {
                self.remove_tunnel(index);
            }
            Action::SendStopCcn => self.send_stop_ccn(index, &reason),
            Action::CleanUp if matches!(reason, TunnelEnd::Peer(_)) => self.hold(index, now),
            Action::CleanUp
            | Action::Nothing
            | Action::SendSccrq
            | Action::SendSccrp
            | Action::SendScccn
            | Action::TunnelOpen => self.remove_tunnel(index),
        }
    }

    fn send_stop_ccn(&mut self, index: u32, reason: &TunnelEnd) {
        let tunnel = self.tunnel_at(index);
        if matches!(reason, TunnelEnd::ShutDown) && tunnel.originated && tunnel.received == 0 {
            // A peer that never answered gets one StopCCN, and we do not wait for it.
            let (route, version, id) = (tunnel.route, tunnel.version, tunnel.local_id);
            let next = (tunnel.reliable.next_ns(), 0);
            if let Some(codes) = reason.codes(version) {
                self.push_refusal(route, version, (id, 0), next, &codes);
            }
            return self.remove_tunnel(index);
        }
        let Self { tunnels, pool, .. } = self;
        let tunnel = tunnels.at_mut(index).expect("the tunnel is closing");
        tunnel.ending = Ending::StopSent;
        tunnel.idle_deadline = Instant::FAR_FUTURE;
        tunnel.reliable.drop_unsent(pool);
        self.tally.closing += 1;
        let Some(codes) = reason.codes(tunnel.version) else {
            return self.remove_tunnel(index);
        };
        self.compose_stop_ccn(index, &codes);
        self.tunnel_at_mut(index).reliable.make_room();
        if matches!(reason, TunnelEnd::Unanswered) {
            let Self {
                tunnels, config, ..
            } = self;
            let tunnel = tunnels.at_mut(index).expect("the tunnel is closing");
            tunnel.reliable.last_words(&config.retransmit);
        }
    }

    /// Notes the reason, reports it, and frees state that only a live tunnel needs.
    fn remember_tunnel(&mut self, index: u32, reason: &TunnelEnd, now: Instant) {
        self.counters.tunnels_ended += 1;
        let key = self.tunnel_key(index);
        let limit = self.config.limits.history as usize;
        let tunnel = self.tunnel_at_mut(index);
        tunnel.setup = None;
        let ended = EndedTunnel {
            id: tunnel.local_id,
            remote_id: tunnel.remote_id,
            version: tunnel.version,
            route: tunnel.route,
            host_name: core::mem::take(&mut tunnel.peer_host),
            created: tunnel.created,
            up: tunnel.up,
            ended: now,
            reason: reason.clone(),
        };
        let (id, reason) = (ended.id, reason.clone());
        push_bounded(&mut self.ended_tunnels, ended, limit);
        self.events.push_back(Told::TunnelDown {
            tunnel: key,
            id,
            reason,
        });
    }

    /// Keeps a closed tunnel's sequence state for a full retransmission cycle,
    /// so that late duplicates are still acknowledged (RFC 2661 5.7).
    pub(super) fn hold(&mut self, index: u32, now: Instant) {
        if self.tunnel_at(index).ending == Ending::StopSent {
            self.stop_ends(index);
        }
        self.tally.held += 1;
        let Self {
            tunnels,
            pool,
            config,
            ..
        } = self;
        let tunnel = tunnels.at_mut(index).expect("the tunnel is closing");
        tunnel.ending = Ending::Held;
        tunnel.reliable.drop_all(pool);
        tunnel.idle_deadline = now + config.hold;
        let (key, was_up) = (tunnel.key, tunnel.up.is_some());
        if was_up {
            // The peer may use its id for a new tunnel at once.
            self.remove_request(index);
        }
        self.held_order.push_back(key);
        if self.held_order.len() > 2 * self.tally.held as usize + ORDER_SLACK {
            let tunnels = &self.tunnels;
            self.held_order
                .retain(|&key| tunnels.get(key).is_some_and(Tunnel::is_held));
        }
        self.mark_ready(index);
        while self.tally.held > self.config.limits.held && self.forget_oldest_held() {}
    }

    /// Removes the tunnel that has been held longest.
    fn forget_oldest_held(&mut self) -> bool {
        while let Some(key) = self.held_order.pop_front() {
            if self.tunnels.get(key).is_some_and(Tunnel::is_held) {
                self.counters.held_forgotten += 1;
                self.remove_tunnel(key.index);
                return true;
            }
        }
        false
    }

    /// Removes a held tunnel whose time is over.
    pub(super) fn release_held(&mut self, index: u32) {
        self.remove_tunnel(index);
        while let Some(&key) = self.held_order.front() {
            if self.tunnels.get(key).is_some() {
                break;
            }
            self.held_order.pop_front();
        }
    }

    /// Makes a tunnel's record. Removes held ones if ids have run out.
    pub(super) fn add_tunnel_evicting(
        &mut self,
        route: Route,
        version: Version,
        now: Instant,
    ) -> Option<u32> {
        for _ in 0..EVICTIONS_MAX {
            if let Some(index) = self.add_tunnel(route, version, now) {
                return Some(index);
            }
            if !self.forget_oldest_held() {
                return None;
            }
        }
        None
    }

    /// Our StopCCN was acknowledged: the exchange is complete.
    pub(super) fn after_acknowledgement(&mut self, index: u32, now: Instant) {
        let Some(tunnel) = self.tunnels.at(index) else {
            return;
        };
        if tunnel.ending == Ending::StopSent && tunnel.reliable.is_idle() {
            self.hold(index, now);
        }
    }

    /// The peer restarted with an id that a tunnel of ours still has. That tunnel
    /// is dead, and a StopCCN would end the new one.
    pub(super) fn forget_restarted(&mut self, index: u32, now: Instant) {
        if self.tunnel_at(index).ending == Ending::No {
            self.end_tunnel(index, Event::Forget, TunnelEnd::PeerRestarted, now);
        } else {
            self.remove_tunnel(index);
        }
    }

    /// Sends one StopCCN to the tunnel that a peer calls `remote_id`, without a
    /// record of it; `sequence` is its Ns and Nr.
    pub(super) fn refuse_stateless(
        &mut self,
        route: Route,
        version: Version,
        remote_id: u32,
        sequence: (u16, u16),
        codes: &Codes,
    ) {
        let id = match version {
            Version::V2 => 1 + self.random.below(0xffff),
            Version::V3 => crate::ids::wide_id(0, &mut self.random),
        };
        self.push_refusal(route, version, (id, remote_id), sequence, codes);
    }

    /// Queues a StopCCN; `ids` are ours and the peer's.
    fn push_refusal(
        &mut self,
        route: Route,
        version: Version,
        ids: (u32, u32),
        sequence: (u16, u16),
        codes: &Codes,
    ) {
        if self.refusals.len() >= REFUSALS_MAX {
            return;
        }
        let mut body = Vec::with_capacity(64);
        let mut emitter = Emitter::new(&mut body, version, MessageType::StopCcn, None, None);
        compose::stop_ccn(&mut emitter, version, ids.0, codes);
        let mut message = Vec::with_capacity(body.len() + l2tp::CONTROL_HEADER_LEN);
        let (ns, nr) = sequence;
        l2tp::emit_control(&mut message, version, ids.1, 0, ns, nr, &body);
        self.refusals.push_back((route, message));
        self.counters.stateless_refusals += 1;
    }

    /// Refuses a request because the table is full.
    pub(super) fn refuse_full(
        &mut self,
        route: Route,
        version: Version,
        remote_id: u32,
    ) -> Result<(), Discard> {
        if let Some(codes) = TunnelEnd::NoResources.codes(version) {
            self.refuse_stateless(route, version, remote_id, FIRST_REPLY, &codes);
        }
        Err(Discard::TunnelLimit)
    }

    fn end_sessions_of(&mut self, tunnel: u32, now: Instant) {
        loop {
            let session = self.tunnel_at(tunnel).first_session;
            if session == NIL {
                return;
            }
            self.end_session(session, SessionEnd::TunnelEnded, now);
        }
    }

    /// Ends a session; its peer gets a CDN where the reason has codes and the
    /// call was announced.
    pub(super) fn end_session(&mut self, index: u32, reason: SessionEnd, now: Instant) {
        let session = self.session_at(index);
        let (tunnel, announced) = (session.tunnel, session.announced);
        if announced && let Some(codes) = reason.codes(session.version) {
            let (local_id, remote_id) = (session.local_id, session.remote_id);
            let cause = match &reason {
                SessionEnd::Relayed(notice) => notice.cause.clone(),
                _ => self.session_at_mut(index).cause.take(),
            };
            self.compose_cdn(tunnel, local_id, remote_id, &codes, cause.as_deref());
        }
        let tunnel_id = self.tunnel_at(tunnel).local_id;
        self.set_session_state(index, SessionState::Idle);
        let session = self.remove_session(index);
        self.watch_empty(tunnel, now);
        self.remember_session(EndedSession {
            id: session.local_id,
            remote_id: session.remote_id,
            tunnel_id,
            version: session.version,
            created: session.created,
            up: session.up,
            ended: now,
            reason: reason.clone(),
        });
        self.events.push_back(Told::SessionDown {
            session: SessionKey(session.key),
            tunnel: self.tunnel_key(tunnel),
            id: session.local_id,
            reason,
        });
    }

    /// Notes why a session ended, or why a call was refused.
    pub(super) fn remember_session(&mut self, ended: EndedSession) {
        self.counters.sessions_ended += 1;
        let limit = self.config.limits.history as usize;
        push_bounded(&mut self.ended_sessions, ended, limit);
    }

    /// Closes a tunnel for the operator; `false` if there is none to close.
    pub fn close_tunnel(&mut self, tunnel: TunnelKey, now: Instant) -> bool {
        let open = self
            .tunnels
            .get(tunnel.0)
            .is_some_and(|t| t.ending == Ending::No);
        if open {
            self.end_tunnel(tunnel.0.index, Event::Close, TunnelEnd::Administrative, now);
        }
        open
    }

    /// Closes a tunnel that was opened for a session, because that session failed. `false` if the tunnel has other
    /// sessions, or is closing already.
    pub fn close_tunnel_of_failed(&mut self, tunnel: TunnelKey, now: Instant) -> bool {
        let unused = self
            .tunnels
            .get(tunnel.0)
            .is_some_and(|t| t.ending == Ending::No && t.sessions == 0);
        if unused {
            self.end_tunnel(tunnel.0.index, Event::Close, TunnelEnd::SessionFailed, now);
        }
        unused
    }

    /// Closes a session for the operator; `false` if there is none to close.
    pub fn close_session(&mut self, session: SessionKey, now: Instant) -> bool {
        let open = self.sessions.get(session.0).is_some();
        if open {
            self.end_session(session.0.index, SessionEnd::Administrative, now);
        }
        open
    }

    /// Ends a session because its payload ended. `false` if there is no session.
    pub fn end_payload(&mut self, session: SessionKey, now: Instant) -> bool {
        let open = self.sessions.get(session.0).is_some();
        if open {
            self.end_session(session.0.index, SessionEnd::Payload, now);
        }
        open
    }

    /// Sets what our CDN will say about the end of PPP in a session (RFC 3145). `false` if there is no session with PPP.
    pub fn set_ppp_cause(&mut self, session: SessionKey, cause: PppCause) -> bool {
        let ppp = Pseudowire::Ppp.number();
        let one = self.sessions.get_mut(session.0);
        let one = one.filter(|one| one.pseudowire == ppp);
        one.map(|one| one.cause = Some(Box::new(cause))).is_some()
    }

    /// Ends a half of a switched call, whose other half ended for this reason. `false` if there is no session.
    pub fn hang_up(&mut self, session: SessionKey, reason: SessionEnd, now: Instant) -> bool {
        let open = self.sessions.get(session.0).is_some();
        if open {
            self.end_session(session.0.index, reason, now);
        }
        open
    }

    /// Ends a session because its payload ended, after a wait, unless the peer ends the session before.
    pub fn end_payload_after(&mut self, session: SessionKey, wait: Duration, now: Instant) -> bool {
        let open = self.sessions.get(session.0);
        let open = open.is_some_and(|open| open.state == SessionState::Established);
        if open {
            self.disarm_session(session.0.index);
            self.arm_session(session.0.index, now + wait);
        }
        open
    }

    /// Sends StopCCN 6 to every peer and refuses new work from now on.
    pub fn shut_down(&mut self, now: Instant) {
        self.shutting_down = true;
        let mut cursor = 0;
        while let Some((index, tunnel)) = self.tunnels.next_from(cursor) {
            cursor = index + 1;
            if tunnel.ending == Ending::No {
                self.end_tunnel(index, Event::Close, TunnelEnd::ShutDown, now);
            }
        }
    }

    /// Whether all tunnels are closed and nothing is left to send or to be acknowledged.
    pub fn is_quiet(&self) -> bool {
        self.tally.live == 0 && self.tally.closing == 0 && self.ready.is_empty()
    }
}

fn push_bounded<T>(list: &mut std::collections::VecDeque<T>, item: T, limit: usize) {
    if limit == 0 {
        return;
    }
    if list.len() >= limit {
        list.pop_back();
    }
    list.push_front(item);
}
