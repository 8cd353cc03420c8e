//! Runs the state table of RFC 4271, section 8, and carries out the actions of its rows.

use core::net::SocketAddr;

use base::{Duration, Instant};

use super::Speaker;
use crate::end::CloseReason;
use crate::event::{Event, What};
use crate::fsm::{self, Actions, Notify, Optional, State};
use crate::negotiate::Ours;
use crate::peer::{Origin, PeerId, Waits};
use crate::ring::Ring;
use crate::session::Conn;
use crate::table::{ConnId, Flags};
use crate::timers::Timer;

/// The HoldTimer of OpenSent (section 8.2.2: "a HoldTimer value of 4 minutes is suggested").
const HOLD_LARGE: Duration = Duration::from_secs(240);
/// The most times that IdleHoldTime doubles.
const DOUBLINGS_MAX: u8 = 16;

impl Speaker {
    /// Signals an event to the state machine of connection `conn`, or to that of a peer without a connection. `why` is
    /// the reason if the event ends the session.
    pub(super) fn run(
        &mut self,
        index: u32,
        conn: Option<ConnId>,
        event: fsm::Event,
        why: CloseReason,
        now: Instant,
    ) {
        self.note_late();
        self.step(index, conn, event, why, now);
        self.drop_stopped_timers();
    }

    fn step(
        &mut self,
        index: u32,
        conn: Option<ConnId>,
        event: fsm::Event,
        why: CloseReason,
        now: Instant,
    ) {
        let Some(peer) = self.peers.get(index) else {
            return;
        };
        let found = conn.map(|id| self.conns.get(id));
        let state = match found {
            None => peer.state,
            Some(Some(conn)) => conn.state,
            Some(None) => return,
        };
        let is_main = conn == peer.main;
        let step = fsm::step(state, event, self.optional(index, conn));
        let actions = step.actions;
        if let Some(id) = conn
            && actions.has(Actions::COLLISION)
            && self.loses_collision(index, id, now)
        {
            let event = fsm::Event::OpenCollisionDump;
            return self.step(index, conn, event, CloseReason::Collision, now);
        }
        self.count(index, is_main, actions);
        let mut is_over = false;
        if actions.has(Actions::DROP) {
            let why = match step.notify {
                Notify::Fsm if !matches!(why, CloseReason::Fault(_)) => {
                    CloseReason::StateMachine(state)
                }
                Notify::No
                | Notify::Cease
                | Notify::HoldTimer
                | Notify::Found
                | Notify::Fsm
                | Notify::SendHold => why,
            };
            is_over = self.drop_machine(index, conn, (state, step, event), &why, now);
            if state == State::Established {
                self.down(index, why, actions, now);
            }
        } else if step.next != state {
            self.set_state(index, conn, step.next, event, now);
        }
        if is_over {
            return;
        }
        self.act(index, conn, is_main, actions, now);
        let is_without = self
            .peers
            .get(index)
            .is_some_and(|peer| peer.main.is_none());
        if is_without && matches!(step.next, State::Idle | State::Active) && state != step.next {
            self.rest(index, state, (step.next, event), now);
        }
    }

    fn optional(&self, index: u32, conn: Option<ConnId>) -> Optional {
        let Some(peer) = self.peers.get(index) else {
            return Optional::default();
        };
        let settings = &*peer.settings;
        let found = conn.and_then(|id| self.conns.get(id));
        let graceful = found
            .and_then(|conn| conn.agreed.as_ref()?.graceful)
            .is_some_and(|graceful| !graceful.families.is_empty());
        Optional {
            delay_open: settings.delay_open.is_some(),
            delay_open_running: found.is_some_and(Conn::is_delaying),
            notify_without_open: settings.notify_without_open,
            collision_established: settings.collision_detect_established,
            damp: settings.damp_oscillations,
            graceful,
        }
    }

    fn count(&mut self, index: u32, is_main: bool, actions: Actions) {
        let Some(peer) = self.peers.get_mut(index).filter(|_| is_main) else {
            return;
        };
        if actions.has(Actions::COUNT) {
            peer.retry_counter = peer.retry_counter.saturating_add(1);
        }
        if actions.has(Actions::CLEAR_COUNTER) {
            peer.retry_counter = 0;
        }
        if actions.has(Actions::STOP_RETRY) {
            peer.waits = Waits::Nothing;
        }
    }

    /// Drops the connection of a state machine. Returns whether the machine is gone with it: it ran a second
    /// connection, or the second connection takes its place.
    fn drop_machine(
        &mut self,
        index: u32,
        conn: Option<ConnId>,
        (state, step, event): (State, fsm::Step, fsm::Event),
        why: &CloseReason,
        now: Instant,
    ) -> bool {
        let is_main = self.peers.get(index).is_some_and(|peer| peer.main == conn);
        if let Some(id) = conn {
            self.drop_conn(id, step.notify != Notify::No, why, now);
        }
        let Some(peer) = self.peers.get_mut(index) else {
            return true;
        };
        if *why == CloseReason::Collision {
            peer.counts.collisions = peer.counts.collisions.wrapping_add(1);
        }
        let remote = peer.remote;
        if !is_main {
            peer.second = None;
            return true;
        }
        if conn.is_some() {
            peer.last_end = Some(Box::new(why.clone()));
        }
        peer.main = peer.second.take();
        peer.state = step.next;
        let is_over = peer.main.is_some();
        if is_over {
            peer.waits = Waits::Nothing;
        }
        if state != step.next {
            let what = What::State {
                from: state,
                to: step.next,
                event: event.name(),
            };
            self.happened(remote, what, now);
        }
        is_over
    }

    /// Removes a connection from the tables and has the driver close it, after a NOTIFICATION if the reason has one.
    fn drop_conn(&mut self, id: ConnId, notify: bool, why: &CloseReason, now: Instant) {
        let Some((conn, hot)) = self.conns.remove(id) else {
            return;
        };
        let Some(peer) = self.peers.get_mut(conn.peer) else {
            return;
        };
        peer.counts.keepalives_in += u64::from(hot.keepalives_in);
        peer.counts.keepalives_out += u64::from(hot.keepalives_out);
        if matches!(why, CloseReason::Closed | CloseReason::ConnectFailed) {
            return;
        }
        let mut last = conn.output;
        let told = if notify { why.notification() } else { None };
        let remote = peer.remote;
        if let Some(notification) = told {
            peer.counts.notifications_out = peer.counts.notifications_out.wrapping_add(1);
            notification.emit(&mut last);
            self.happened(remote, What::Sent(Box::new(notification)), now);
        }
        self.events.push_back(Event::Close { conn: id, last });
    }

    /// The only place that writes the state of a machine that keeps its connection.
    fn set_state(
        &mut self,
        index: u32,
        conn: Option<ConnId>,
        to: State,
        event: fsm::Event,
        now: Instant,
    ) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        let remote = peer.remote;
        let place = match conn.map(|id| self.conns.get_mut(id)) {
            None => &mut peer.state,
            Some(Some(conn)) => &mut conn.state,
            Some(None) => return,
        };
        let from = core::mem::replace(place, to);
        let what = What::State {
            from,
            to,
            event: event.name(),
        };
        self.happened(remote, what, now);
    }

    /// Carries out the actions of a row, except changes of state and counters.
    fn act(
        &mut self,
        index: u32,
        conn: Option<ConnId>,
        is_main: bool,
        actions: Actions,
        now: Instant,
    ) {
        if actions.has(Actions::START_RETRY) && is_main {
            self.arm_retry(index, None, now);
        }
        if actions.has(Actions::CONNECT) {
            self.connect(index, now);
        }
        let Some(id) = conn else { return };
        if actions.has(Actions::START_DELAY) {
            self.start_delay(index, id, now);
        }
        if actions.has(Actions::STOP_DELAY)
            && let Some(conn) = self.conns.get_mut(id)
        {
            conn.wait = Instant::FAR_FUTURE;
        }
        if actions.has(Actions::SEND_OPEN) {
            self.send_open(index, id);
        }
        if actions.has(Actions::HOLD_LARGE)
            && let Some(conn) = self.conns.get_mut(id)
        {
            conn.wait = now + HOLD_LARGE;
            self.timers.arm(conn.wait, Timer::Hold(id));
        }
        if actions.has(Actions::SEND_KEEPALIVE) {
            self.want(id, Flags::KEEPALIVE);
        }
        if actions.has(Actions::HOLD_NEGOTIATED) {
            self.hold_negotiated(id, now);
        }
        if actions.has(Actions::RESTART_HOLD)
            && let Some(hot) = self.conns.hot_mut(id)
        {
            hot.heard = now;
        }
        if actions.has(Actions::UP) {
            self.up(index, id, now);
        }
    }

    /// Sets a flag that says what is to be sent.
    pub(super) fn want(&mut self, id: ConnId, flag: Flags) {
        if let Some(hot) = self.conns.hot_mut(id) {
            hot.flags.set(flag);
            self.make_ready(id);
        }
    }

    /// Starts the ConnectRetryTimer, unless we wait for the peer to connect.
    pub(super) fn arm_retry(&mut self, index: u32, span: Option<Duration>, now: Instant) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        if peer.is_passive() {
            return;
        }
        let span = span.unwrap_or(peer.settings.connect_retry);
        let at = now + self.random.jitter(span);
        peer.waits = Waits::Retry(at);
        self.timers.arm(at, Timer::ConnectRetry(index));
    }

    fn connect(&mut self, index: u32, now: Instant) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        let conn = self
            .conns
            .insert(Conn::new(index, State::Connect, true, peer.port), now);
        peer.main = Some(conn);
        self.events.push_back(Event::Connect {
            conn,
            remote: SocketAddr::new(peer.remote, peer.port),
            local: peer.local,
            settings: peer.settings.clone(),
        });
    }

    fn start_delay(&mut self, index: u32, id: ConnId, now: Instant) {
        let delay = self
            .peers
            .get(index)
            .and_then(|peer| peer.settings.delay_open);
        if let (Some(delay), Some(conn)) = (delay, self.conns.get_mut(id)) {
            conn.wait = now + delay;
            self.timers.arm(conn.wait, Timer::DelayOpen(id));
        }
    }

    fn send_open(&mut self, index: u32, id: ConnId) {
        let (Some(peer), Some(conn)) = (self.peers.get_mut(index), self.conns.get_mut(id)) else {
            return;
        };
        let ours = Ours {
            asn: self.asn,
            router_id: self.router_id,
            restarted: self.deferral.is_some(),
            settings: &peer.settings,
        };
        ours.emit(&mut conn.output);
        peer.counts.opens_out = peer.counts.opens_out.wrapping_add(1);
        self.want(id, Flags::CONTROL);
    }

    fn hold_negotiated(&mut self, id: ConnId, now: Instant) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        conn.wait = Instant::FAR_FUTURE;
        let Some(agreed) = conn.agreed.as_deref() else {
            return;
        };
        let (hold_s, keepalive_s) = (agreed.hold_time_s, agreed.keepalive_s);
        if hold_s == 0 {
            return;
        }
        let ring = self.ring(Duration::from_secs(u64::from(keepalive_s.max(1))), now);
        let tick = self.rings[usize::from(ring)].insert(id, now);
        if let Some(hot) = self.conns.hot_mut(id) {
            hot.hold_s = hold_s;
            hot.heard = now;
            hot.ring = ring;
            hot.sent_tick = tick;
        }
    }

    /// Finds or makes the ring of an interval. Intervals are whole seconds of 16 bits, which limits the number of
    /// rings.
    fn ring(&mut self, interval: Duration, now: Instant) -> u16 {
        let rings = &mut self.rings;
        let place = rings
            .iter()
            .position(|ring| ring.interval() == interval)
            .or_else(|| {
                let free = rings.iter().position(Ring::is_empty)?;
                rings[free] = Ring::new(interval, now, &mut self.random);
                Some(free)
            })
            .unwrap_or_else(|| {
                crate::table::reserve_some(rings);
                rings.push(Ring::new(interval, now, &mut self.random));
                rings.len() - 1
            });
        u16::try_from(place).expect("an interval is a number of 16 bits")
    }

    /// Section 6.8: returns whether this connection, whose OPEN was just received, is the one to close. If the other
    /// one is, it is closed here.
    fn loses_collision(&mut self, index: u32, id: ConnId, now: Instant) -> bool {
        let Some(peer) = self.peers.get(index) else {
            return false;
        };
        let other = if peer.main == Some(id) {
            peer.second
        } else {
            peer.main
        };
        let Some(other) = other else { return false };
        let (Some(this), Some(that)) = (self.conns.get(id), self.conns.get(other)) else {
            return false;
        };
        match that.state {
            State::Idle | State::Connect | State::Active | State::OpenSent => return false,
            State::Established if !peer.settings.collision_detect_established => return true,
            State::OpenConfirm | State::Established => {}
        }
        let Some(agreed) = this.agreed.as_deref() else {
            return false;
        };
        // Two systems can have the same identifier: then the higher AS number is preferred (RFC 6286, section 2.3).
        let ours = (self.router_id.to_bits(), agreed.local_asn);
        let theirs = (agreed.router_id.to_bits(), agreed.remote_asn);
        // Two connections that the peer opened do not collide: the peer has abandoned the first one.
        let keeps_this = this.outgoing == that.outgoing || this.outgoing == (ours > theirs);
        if keeps_this {
            let event = fsm::Event::OpenCollisionDump;
            self.run(index, Some(other), event, CloseReason::Collision, now);
        }
        !keeps_this
    }

    fn up(&mut self, index: u32, id: ConnId, now: Instant) {
        let Some(hot) = self.conns.hot_mut(id) else {
            return;
        };
        hot.flags.set(Flags::ESTABLISHED);
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        peer.since = now;
        peer.counts.ups = peer.counts.ups.wrapping_add(1);
        self.established += 1;
        let other = if peer.main == Some(id) {
            peer.second
        } else {
            peer.main
        };
        if let Some(other) = other {
            let event = fsm::Event::OpenCollisionDump;
            self.run(index, Some(other), event, CloseReason::Collision, now);
        }
        let peer = PeerId(index);
        self.events.push_back(Event::Up { peer, conn: id });
        self.open_routes(index, id);
    }

    fn down(&mut self, index: u32, why: CloseReason, actions: Actions, now: Instant) {
        self.established -= 1;
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        if now - peer.since >= peer.settings.stable_after {
            peer.doublings = 0;
        }
        peer.since = now;
        let remote = peer.remote;
        self.happened(remote, What::Ended(Box::new(why.clone())), now);
        self.events.push_back(Event::Down {
            peer: PeerId(index),
            remote,
            reason: why,
        });
        self.close_routes(index, actions.has(Actions::RETAIN), now);
    }

    /// Decides what follows when a state machine has lost its connection: nothing, a start at once, or a start after a
    /// while.
    fn rest(&mut self, index: u32, from: State, (to, event): (State, fsm::Event), now: Instant) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        let is_dynamic = matches!(peer.origin, Origin::Dynamic(_));
        if is_dynamic && from != State::Idle && peer.stale.is_none() && !peer.is_held {
            return self.forget(index);
        }
        if !peer.is_started || to != State::Idle {
            return;
        }
        let settings = peer.settings.clone();
        if event == fsm::Event::TcpConnectionFails {
            // Neither side made an error: the peer may connect at once. We connect again after a while.
            self.start_event(index, true, now);
            let span = (from == State::Established).then_some(settings.idle_hold);
            return self.arm_retry(index, span, now);
        }
        let span = match peer.held.take() {
            Some(span) => span,
            None if settings.damp_oscillations => {
                let doubled = settings.idle_hold.saturating_mul(1 << peer.doublings);
                peer.doublings = (peer.doublings + 1).min(DOUBLINGS_MAX);
                doubled.min(settings.idle_hold_max)
            }
            None => settings.idle_hold,
        };
        let at = now + self.random.jitter(span);
        peer.waits = Waits::IdleHold(at);
        self.timers.arm(at, Timer::IdleHold(index));
    }

    /// Signals the start event that fits a peer that was started before.
    pub(super) fn start_event(&mut self, index: u32, listen_first: bool, now: Instant) {
        let Some(peer) = self.peers.get(index) else {
            return;
        };
        let is_passive = listen_first || peer.is_passive();
        let event = match (peer.settings.damp_oscillations, is_passive) {
            (false, false) => fsm::Event::AutomaticStart,
            (false, true) => fsm::Event::AutomaticStartPassive,
            (true, false) => fsm::Event::AutomaticStartDamped,
            (true, true) => fsm::Event::AutomaticStartDampedPassive,
        };
        self.run(index, None, event, CloseReason::Closed, now);
    }
}
