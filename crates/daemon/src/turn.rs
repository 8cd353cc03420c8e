//! One turn of the loop: wait, read, fire timers, serve control clients, send, pass events on.
//! Start with [`Daemon::run`]. No error of a source ends the loop: see `mend`.

use edge::access::Either::{First, Second};
use std::io;

use base::{Duration, Instant};
use reactor::{Ready, Signal, Signals, Slice};

use super::audit;
use super::core::{Core, Handlers};
use super::events::Summary;
use super::hangs::Hangs;
use super::health::Outcome;
use super::input::{self, Input};
use super::left;
use super::ports::Found;
use super::reload;
use super::rest::Rest;
use super::server::Server;
use super::show::past;
use super::snmp::Snmp;
use super::sockets::Outside;
use super::source::Source;
use super::watchdog::Watchdog;

/// Timers that fire, messages that are composed, and events that are passed on between two looks at the clock.
const TIMERS: usize = 64;
const MESSAGES: u64 = 512;
const EVENTS: u32 = 64;

/// Wait before queues that moved are handed over again.
const OWED: Duration = Duration::from_millis(1);

/// The daemon.
pub(super) struct Daemon {
    pub(super) core: Core,
    pub(super) server: Server,
    pub(super) summary: Summary,
    pub(super) signals: Signals,
    pub(super) input: Input,
    pub(super) rest: Rest,
    pub(super) composed: Vec<u8>,
    pub(super) handlers: Handlers,
    /// How long one kind of work may take in a turn.
    pub(super) span: Duration,
    /// Whether messages or events are left over from the last turn.
    pub(super) is_behind: bool,
    /// The SNMP agent, if there is one.
    pub(super) snmp: Option<Box<Snmp>>,
    pub(super) watchdog: Watchdog,
    /// Watches the loop from another thread, unless that is turned off.
    pub(super) hangs: Option<Hangs>,
    /// The error that ends the daemon, if no signal did.
    pub(super) failure: Option<io::Error>,
    /// How often in a row the wait for descriptors has failed.
    pub(super) waits_failed: u32,
}

impl Daemon {
    /// Runs until a signal requested the end, or the daemon cannot go on, and the peers were
    /// notified.
    pub(super) fn run(&mut self) {
        while !self.is_over() {
            self.turn();
        }
    }

    /// Whether the daemon has to end now.
    pub(super) fn is_over(&self) -> bool {
        let told = || {
            let radius = self.core.authority.radius();
            radius.is_none_or(|radius| radius.is_idle())
        };
        let routed = || {
            self.core
                .routes
                .as_ref()
                .is_none_or(|routes| routes.is_quiet(self.core.now))
        };
        let quiet =
            || self.core.edge.is_quiet() && !self.core.sockets.is_blocked() && told() && routed();
        self.core
            .stop_at
            .is_some_and(|at| at <= self.core.now || quiet())
    }

    /// Waits once, and serves everything that is due.
    pub(super) fn turn(&mut self) {
        let deadline = self.deadline();
        if let Some(span) = self.rest.span(self.core.now, deadline) {
            self.core.reactor.pause(span);
        }
        self.wait(deadline);
        self.record();
        self.is_behind = false;
        self.input.begin();
        let mut other_work = false;
        if let Some(routes) = &mut self.core.routes {
            routes.begin(&mut self.core.reactor, self.core.now);
        }
        while let Some(ready) = self.core.reactor.next_ready() {
            other_work |= self.ready(ready);
        }
        self.core.reactor.enter(self.handlers.input, 0);
        self.input.work(&mut self.core, &self.handlers);
        self.fire_timers();
        self.core.reactor.enter(self.handlers.reload, 0);
        let undone = reload::handle_timeout(&mut self.core);
        self.reloaded(undone);
        if reload::has_work(&self.core) {
            let slice = self.core.reactor.slice(self.span);
            self.is_behind |= reload::work(&mut self.core, slice);
            self.core.reactor.lap(self.handlers.reload);
        }
        self.core.reactor.enter(self.handlers.mend, 0);
        self.mend();
        self.answer();
        self.drain();
        self.write_device();
        let has_work = self.server.has_work();
        let came = self.input.take_count();
        self.rest.note(self.core.now, came, other_work || has_work);
        if has_work {
            self.core.reactor.enter(self.handlers.control, 0);
            // Reading the requests is a part of this handler, so that the slice starts here.
            let slice = Slice::until(reactor::clock::now() + self.span);
            self.server.serve(&mut self.core, slice);
            self.core.reactor.lap(self.handlers.control);
        }
        self.serve_snmp();
        self.core.redial();
        self.core.open_wanted();
        self.core.shards.tell(&mut self.core.edge);
        self.send();
        let mut told = self.tell();
        if self.core.close_failed() {
            self.send();
            told |= self.tell();
        }
        if let Some(routes) = &mut self.core.routes {
            routes.turn(&mut self.core.reactor, self.core.now);
        }
        self.log_translation();
        if told {
            self.core.reactor.enter(self.handlers.events, 0);
            self.server.flush(&mut self.core);
            self.core.reactor.lap(self.handlers.events);
        }
        self.set_addresses();
        self.core.shards.tell(&mut self.core.edge);
        self.watchdog.look(&self.core.reactor, self.core.now);
        self.core.report();
    }

    /// Passes events of the translation of addresses to its log.
    #[inline]
    fn log_translation(&mut self) {
        let Core {
            edge,
            translation,
            reactor,
            ..
        } = &mut self.core;
        if let Some(translation) = translation
            && (translation.is_asking() || edge.nat().is_some_and(nat::Nat::has_events))
        {
            reactor.enter(self.handlers.translation, 0);
            translation.work(edge);
            reactor.lap(self.handlers.translation);
            self.is_behind |= translation.has_work();
        }
    }

    /// Records the state at the end of the last turn, if a second has ended since.
    #[inline]
    fn record(&mut self) {
        if self.core.history.is_due(self.core.now) {
            self.core.reactor.enter(self.handlers.history, 0);
            let series = self.core.history.series().len();
            let reading = past::read(&mut self.core, series);
            self.core.history.record(&reading, self.core.now);
            self.core.reactor.lap(self.handlers.history);
        }
    }

    /// Compares the TUN device with the configuration when that is due, and writes the packets
    /// that wait for it.
    fn write_device(&mut self) {
        self.core.reactor.enter(self.handlers.tun_write, 0);
        if self.core.inside.check(self.core.now) {
            let error = io::Error::other("the device left this network namespace");
            self.lose(Source::Tun(0), None, &error);
        }
        if self.core.inside.flush() {
            self.core.reactor.lap(self.handlers.tun_write);
        }
    }

    /// Sets and removes addresses and routes of our clients in the kernel, when some are due.
    fn set_addresses(&mut self) {
        if let Some(clients) = &mut self.core.inside.clients
            && clients.has_work(self.core.now)
        {
            self.core.reactor.enter(self.handlers.addresses, 0);
            clients.work(self.core.now);
            self.core.reactor.lap(self.handlers.addresses);
        }
        if let Some(uplinks) = &mut self.core.inside.uplinks {
            uplinks.work(self.core.now);
        }
    }

    /// When the next wait has to end.
    fn deadline(&self) -> Option<Instant> {
        let clients = self.core.inside.clients.as_ref();
        let has_changes = clients.is_some_and(|clients| clients.has_work(self.core.now));
        let routes = self.core.routes.as_ref();
        let routing = routes.is_some_and(|routes| routes.has_work(self.core.now));
        let is_behind =
            self.is_behind || self.core.authority.has_work() || self.core.edge.has_wanted();
        if self.server.has_work() || self.input.has_kept() || has_changes || routing || is_behind {
            return Some(self.core.now);
        }
        let timer = self.core.edge.poll_timeout().map(|(at, _)| at);
        // Queued packets wait for blocked sockets, which wake the loop when they are writable.
        let is_blocked = self.core.sockets.is_blocked() || self.core.ports.is_blocked();
        let queues = self.core.edge.next_drain().filter(|_| !is_blocked);
        let radius = self.core.authority.radius();
        let radius = radius.and_then(|radius| radius.poll_timeout());
        let routes = routes.and_then(|routes| routes.poll_timeout());
        let routes = routes.map(|(at, _)| at);
        let keeper = self.core.inside.keeper.as_ref();
        let check = keeper.and_then(|keeper| keeper.due());
        let clients = clients.and_then(|clients| clients.due());
        let uplinks = self.core.inside.uplinks.as_ref();
        let uplinks = uplinks.and_then(|uplinks| uplinks.due());
        // Queues that moved and found no room on another core.
        let owed = self.core.edge.owes().then(|| self.core.now + OWED);
        let (summary, mend) = (self.summary.due(), self.core.health.due());
        let snmp = self.snmp.as_ref().map(|snmp| snmp.due(self.core.now));
        let undo = self.core.running.undo_at();
        let supervisor = self.core.supervisor.due();
        let all = [
            undo,
            snmp,
            owed,
            supervisor,
            timer,
            queues,
            radius,
            routes,
            summary,
            mend,
            check,
            clients,
            uplinks,
            self.core.stop_at,
            self.core.redial.due(),
        ];
        all.into_iter().flatten().min()
    }

    /// Serves a ready descriptor. Returns whether it was something other than incoming datagrams.
    fn ready(&mut self, ready: Ready) -> bool {
        let source = Source::from_bits(ready.user);
        let handler = self.handlers.of(source);
        self.core.reactor.enter(handler, source.work());
        let outcome = self.serve(source, ready);
        self.note(source, ready.token, outcome);
        !matches!(source, Source::Udp(_) | Source::Port(_))
    }

    fn serve(&mut self, source: Source, ready: Ready) -> Outcome {
        let core = &mut self.core;
        match source {
            Source::Udp(number) => {
                if ready.readiness.writable() {
                    core.sockets.writable(number, &mut core.reactor);
                }
                if ready.readiness.readable() {
                    return self.input.receive(number, ready, core, &self.handlers);
                }
            }
            Source::Port(number) => {
                return self.serve_frames(number, ready);
            }
            Source::Tun(_) => return self.forward().into(),
            Source::Shards => {
                let worked = left::work(core);
                core.reactor.lap(self.handlers.shards);
                if core.shards.take_lost() && !core.health.is_down(Source::Tun(0)) {
                    let error = io::Error::other("a packet thread lost its queue");
                    self.lose(Source::Tun(0), None, &error);
                }
                return worked.map_or_else(Outcome::Lost, |()| Outcome::Again);
            }
            Source::Radius(place) => {
                if let Some(radius) = core.authority.radius_mut() {
                    return radius.receive(place, core.now).into();
                }
            }
            Source::Disconnect => {
                if let Some(radius) = core.authority.radius_mut() {
                    return radius.receive_requests(core.now).into();
                }
            }
            Source::Bgp => {
                if let Some(routes) = &mut core.routes {
                    routes.ready(ready, &mut core.reactor, core.now);
                }
            }
            Source::Kernel => {
                let taken = core.take_notices();
                self.check_ports();
                return taken.into();
            }
            Source::Loader => {
                let answer = reload::finish(core);
                core.reactor.lap(self.handlers.reload);
                self.reloaded(answer);
            }
            Source::Snmp => {
                if let Some(snmp) = &mut self.snmp {
                    snmp.ready(ready.readiness, core);
                }
            }
            Source::Listener => return self.server.accept(core),
            Source::Client(place) => self.server.ready(place, ready.readiness),
            // It has no descriptor here.
            Source::Store => {}
            Source::Signals => {
                let taken = self.take_signals();
                self.core.reactor.lap(self.handlers.signals);
                return taken.into();
            }
        }
        Outcome::Again
    }

    /// Answers the SNMP master agent, up to a slice.
    fn serve_snmp(&mut self) {
        if let Some(snmp) = &mut self.snmp
            && snmp.due(self.core.now) <= self.core.now
        {
            self.core.reactor.enter(self.handlers.snmp, 0);
            let slice = self.core.reactor.slice(self.span);
            snmp.turn(&mut self.core, slice);
            self.core.reactor.lap(self.handlers.snmp);
        }
    }

    /// Serves a PPPoE interface that is ready.
    fn serve_frames(&mut self, number: u32, ready: Ready) -> Outcome {
        let core = &mut self.core;
        if ready.readiness.writable() {
            core.ports.writable(number, &mut core.reactor);
        }
        if !ready.readiness.readable() {
            return Outcome::Again;
        }
        let (outcome, frames) =
            input::receive_frames(number, ready, core, &self.handlers, self.span);
        self.input.add(frames);
        outcome
    }

    /// Compares the PPPoE interfaces with what the kernel has, if they may have changed.
    fn check_ports(&mut self) {
        for (number, found) in self.core.ports.check() {
            match found {
                Found::Mtu => {
                    self.core.serve_port(number);
                    self.core.shards.bind_port(number);
                }
                Found::Lost(error) => self.lose(Source::Port(number), None, &error),
                // Without waiting for the next attempt.
                Found::Returned => self.core.health.hurry(Source::Port(number), self.core.now),
            }
        }
    }

    /// Passes the outcome of a reload to the client that waits for it.
    fn reloaded(&mut self, answer: Option<reload::Answer>) {
        if let Some(answer) = answer {
            self.server.reloaded(answer);
        }
    }

    fn take_signals(&mut self) -> io::Result<()> {
        while let Some(signal) = self.signals.next_signal()? {
            self.signal(signal);
        }
        Ok(())
    }

    fn fire_timers(&mut self) {
        let core = &mut self.core;
        let due = core.edge.poll_timeout().filter(|(at, _)| *at <= core.now);
        if let Some((at, timer)) = due {
            core.reactor.enter(self.handlers.timers, 0);
            core.reactor.record_lateness(timer, core.now.since(at));
            let slice = core.reactor.slice(self.span);
            while core.edge.handle_timeouts(core.now, TIMERS) && !slice.is_over() {}
            core.reactor.lap(self.handlers.timers);
        }
    }

    /// Answers authentication requests.
    fn answer(&mut self) {
        let Core {
            edge,
            authority,
            reactor,
            now,
            ..
        } = &mut self.core;
        reactor.enter(self.handlers.authority, 0);
        let count = authority.answer(edge, reactor.slice(self.span), *now);
        if count > 0 {
            reactor.lap_many(self.handlers.authority, count);
        }
        if authority.radius().is_some() {
            reactor.enter(self.handlers.radius, 0);
            let slice = reactor.slice(self.span);
            authority.work(edge, reactor, slice, *now);
            reactor.lap(self.handlers.radius);
        }
    }

    /// Passes packets from the inside to the edge.
    fn forward(&mut self) -> io::Result<()> {
        let Core {
            edge,
            inside,
            sockets,
            ports,
            reactor,
            now,
            ..
        } = &mut self.core;
        let now = *now;
        let count = inside.read(reactor, |octets, reactor| {
            edge.forward(
                octets,
                now,
                &mut Outside {
                    sockets,
                    ports,
                    reactor,
                },
            );
        })?;
        inside.tell(edge);
        reactor.lap_many(self.handlers.tun_read, count);
        Ok(())
    }

    /// Sends queued packets of shaped subscribers that may leave.
    fn drain(&mut self) {
        let Core {
            edge,
            inside,
            sockets,
            ports,
            reactor,
            now,
            ..
        } = &mut self.core;
        let is_due = edge.next_drain().is_some_and(|at| at <= *now);
        if !is_due || sockets.is_blocked() || ports.is_blocked() {
            return;
        }
        reactor.enter(self.handlers.queues, 0);
        let slice = reactor.slice(self.span);
        while edge.drain(
            *now,
            &mut Outside {
                sockets,
                ports,
                reactor,
            },
            inside,
        ) && !slice.is_over()
        {}
        reactor.lap(self.handlers.queues);
    }

    /// Sends the endpoint's datagrams, as far as the send buffers take them.
    fn send(&mut self) {
        let Self {
            core,
            composed,
            handlers,
            span,
            is_behind,
            ..
        } = self;
        core.reactor.enter(handlers.output, 0);
        let slice = core.reactor.slice(*span);
        let mut messages = 0;
        if !core.sockets.is_blocked() && !core.ports.is_blocked() {
            let Core {
                edge,
                sockets,
                ports,
                reactor,
                ..
            } = core;
            let poured = edge.pour(&mut Outside {
                sockets,
                ports,
                reactor,
            });
            if poured > 0 {
                core.reactor.lap_many(handlers.output, poured);
            }
        }
        while !core.sockets.is_blocked() && !core.ports.is_blocked() {
            composed.clear();
            let Some(route) = core.edge.poll_transmit(core.now, composed) else {
                break;
            };
            messages += 1;
            let route = match route {
                First(route) => route,
                Second(route) => {
                    core.ports.push(&route, composed, &mut core.reactor);
                    continue;
                }
            };
            let is_full = messages == MESSAGES;
            if is_full || core.sockets.needs_room(route.socket) {
                core.reactor.lap_many(handlers.output, messages);
                core.reactor.enter(handlers.write, 0);
                core.sockets.make_room(route.socket, &mut core.reactor);
                core.reactor.lap(handlers.write);
                core.reactor.enter(handlers.output, 0);
                messages = 0;
            }
            core.sockets.push(route, composed);
            if is_full && slice.is_over() {
                *is_behind = true;
                break;
            }
        }
        if messages > 0 {
            core.reactor.lap_many(handlers.output, messages);
        }
        if core.sockets.has_queued() || core.ports.has_queued() {
            core.reactor.enter(handlers.write, 0);
            core.sockets.flush(&mut core.reactor);
            core.ports.flush(&mut core.reactor);
            core.reactor.lap(handlers.write);
        }
    }

    /// Passes the endpoint's events on; returns whether there were any.
    fn tell(&mut self) -> bool {
        let Self {
            core,
            server,
            summary,
            handlers,
            span,
            is_behind,
            ..
        } = self;
        core.reactor.enter(handlers.events, 0);
        let slice = core.reactor.slice(*span);
        let mut told = 0u32;
        while let Some(event) = core.edge.poll_event() {
            super::events::tell(event, core, server, summary);
            told += 1;
            if told.is_multiple_of(EVENTS) && slice.is_over() {
                *is_behind = true;
                break;
            }
        }
        let mut told = told > 0;
        while let Some(logged) = core.edge.poll_logged() {
            super::events::log_packet(&logged, core);
        }
        told |= server.hand_out(core);
        summary.write(core);
        told
    }

    pub(super) fn signal(&mut self, signal: Signal) {
        let core = &mut self.core;
        match signal {
            Signal::Hangup => {
                reload::on_signal(core);
            }
            Signal::Terminate | Signal::Interrupt if core.stop_at.is_some() => {
                tracing::warn!("second signal: exiting at once");
                core.stop_at = Some(Instant::ZERO);
            }
            Signal::Terminate | Signal::Interrupt => {
                let tunnels = core.edge.endpoint().l2tp().counts().tunnels;
                tracing::info!(tunnels, "shutting down: notifying every peer");
                core.edge.release_uplinks(core.now);
                // A release goes before the end of its session.
                self.send();
                let core = &mut self.core;
                core.edge.shut_down(core.now);
                if let Some(routes) = &mut core.routes {
                    routes.shut_down(core.now);
                }
                // The entries of all subscribers, however long that takes: nothing else is served any more.
                let slice = Slice::until(Instant::FAR_FUTURE);
                let (edge, reactor) = (&mut core.edge, &mut core.reactor);
                core.authority.work(edge, reactor, slice, core.now);
                if let Some(radius) = core.authority.radius_mut() {
                    radius.end();
                }
                core.stop_at = Some(core.now + core.running.shutdown_wait());
                let answer = reload::abandon(core);
                self.reloaded(answer);
            }
        }
    }

    /// Removes the control socket and sends the last messages. Returns whether a signal ended the
    /// daemon.
    pub(super) fn finish(&mut self) -> bool {
        // Answers whose client had no turn any more, such as that of a reload that was given up.
        self.server.flush(&mut self.core);
        self.server.remove_socket();
        // From here on nothing is served that could hang.
        self.hangs = None;
        self.core.shards.end();
        if let Some(routes) = &mut self.core.routes {
            routes.finish();
        }
        if let Some(radius) = self.core.authority.radius_mut() {
            radius.close();
        }
        if let Some(snmp) = &mut self.snmp {
            snmp.shut_down();
        }
        left::take_last(&mut self.core);
        if let Some(translation) = &mut self.core.translation {
            translation.work(&mut self.core.edge);
            translation.log.end();
        }
        audit::finish();
        let all_know = self.core.edge.is_quiet();
        match &self.failure {
            Some(error) => tracing::error!(%error, all_know, "ended"),
            None if all_know => tracing::info!("ended"),
            None => tracing::warn!("ended; some peers did not acknowledge in time"),
        }
        self.failure.is_none()
    }
}
