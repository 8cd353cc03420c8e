//! Passes the endpoint's events on: to waiting control clients, to the sockets, and to the log.
//! Start with [`tell`].

use std::fmt::Display;
use std::net::Ipv4Addr;

use base::{Duration, Instant};
use edge::SubscriberKey;
use edge::access::Either::{First, Second};
use l2tp::{Event, SessionEnd};

use serde_json::json;

use super::audit;
use super::core::Core;
use super::served::{End, Place, SubscriberView};
use super::server::Server;
use super::source::Source;
use super::waiting::WaitFor;

/// Minimum interval between log lines about opened and closed tunnels.
const QUIET: Duration = Duration::from_secs(10);

/// Delay before the first such line, so that it covers more than the first tunnel.
const GATHER: Duration = Duration::from_secs(1);

/// Counts opened and closed tunnels and sessions, for a summary line in the log.
#[derive(Debug, Default)]
pub(super) struct Summary {
    up: u64,
    down: u64,
    own_refused: u64,
    /// Clients of ours that their peers refused, and the latest of them with the reason.
    clients_refused: u64,
    refusal: Option<(String, String)>,
    /// Subscribers of whose queues a part could not be applied, and the latest of them with the reason.
    queue_faults: u64,
    queue_fault: Option<(String, String)>,
    /// Number of unsendable datagrams at the last line.
    dropped: u64,
    last: Option<Instant>,
    /// When the next line is due, if there is anything to report.
    due: Option<Instant>,
}

impl Summary {
    /// When the next line is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    fn changed(&mut self, now: Instant) {
        let quiet = self.last.map_or(Instant::ZERO, |last| last + QUIET);
        self.due.get_or_insert(quiet.max(now + GATHER));
    }

    fn client_refused(&mut self, name: &str, reason: &impl Display, now: Instant) {
        self.clients_refused += 1;
        self.refusal = Some((name.to_owned(), reason.to_string()));
        self.changed(now);
    }

    fn queue_fault(&mut self, name: &str, faults: &str, now: Instant) {
        tracing::debug!(subscriber = %name, %faults, "a part of its queues cannot be applied");
        self.queue_faults += 1;
        self.queue_fault = Some((name.to_owned(), faults.to_owned()));
        self.changed(now);
    }

    /// Logs the summary if it is due.
    pub(super) fn write(&mut self, core: &Core) {
        let dropped = core.sockets.dropped;
        if dropped != self.dropped {
            self.changed(core.now);
        }
        if self.due.is_none_or(|due| due > core.now) {
            return;
        }
        let (up, down) = (self.up, self.down);
        if up + down > 0 {
            let counts = core.edge.endpoint().l2tp().counts();
            let (tunnels, sessions) = (counts.established, counts.sessions_established);
            tracing::info!(up, down, tunnels, sessions, "tunnels opened and closed");
        }
        if self.own_refused > 0 {
            let refused = self.own_refused;
            tracing::warn!(refused, "some tunnels stay on the shared socket");
        }
        if let Some((name, reason)) = &self.refusal {
            let clients = self.clients_refused;
            tracing::warn!(clients, %name, %reason, "clients were refused");
        }
        if let Some((name, faults)) = &self.queue_fault {
            let subscribers = self.queue_faults;
            tracing::warn!(subscribers, %name, %faults, "parts of subscribers' queues cannot be applied");
        }
        if dropped != self.dropped {
            let error = core
                .sockets
                .last_error
                .as_ref()
                .map(tracing::field::display);
            let datagrams = dropped - self.dropped;
            tracing::warn!(datagrams, error, "some datagrams could not be sent");
        }
        let last = Some(core.now);
        *self = Self {
            last,
            dropped,
            ..Self::default()
        };
    }
}

/// Logs a packet that a filter rule asks to log. This is the only place that formats text for it.
pub(super) fn log_packet(logged: &edge::Logged, core: &Core) {
    let name = core.edge.subscriber(logged.subscriber);
    let name = name.map(|view| String::from_utf8_lossy(view.name).into_owned());
    let filter = core.edge.filters().set().get(logged.filter);
    let packet = filter::describe(&logged.header, &core.names);
    tracing::info!(
        target: "filter",
        subscriber = name.unwrap_or_default(),
        filter = filter.map_or("", |filter| filter.name()),
        rule = logged.rule,
        direction = %logged.direction,
        verdict = if logged.accepted { "accept" } else { "deny" },
        "{packet}"
    );
}

/// Our client's IPv6 changed.
fn uplink(subscriber: SubscriberKey, view: Option<&edge::v6::UplinkView>, core: &mut Core) {
    if let Some(view) = view {
        let delegated = view.delegated.as_ref();
        let delegated = delegated.map(|one| one.prefix.to_string());
        tracing::debug!(state = view.state, dns = ?view.dns, ?delegated, "client's IPv6");
    }
    if let Some(uplinks) = &mut core.inside.uplinks {
        uplinks.set(subscriber, view);
    }
}

/// Reports that there is no IPv6 prefix for a subscriber.
fn tell_no_prefix(subscriber: edge::SubscriberKey, pool: Option<&str>, core: &Core) {
    let view = core.edge.subscriber(subscriber);
    let name = view.map_or_else(String::new, |view| {
        String::from_utf8_lossy(view.name).into_owned()
    });
    match pool {
        Some(pool) => tracing::warn!(
            %pool, subscriber = %name, "no IPv6 prefix: the pool is used up or does not exist"
        ),
        None => tracing::warn!(
            subscriber = %name, "no IPv6 prefix: another subscriber has the one of its profile"
        ),
    }
}

/// Passes one event on.
pub(super) fn tell(
    event: crate::served::Event,
    core: &mut Core,
    server: &mut Server,
    summary: &mut Summary,
) {
    match event {
        edge::Event::Access(First(event)) => tell_l2tp(event, core, server, summary),
        edge::Event::Access(Second(event)) => tell_pppoe(&event, core),
        edge::Event::Up { subscriber } => {
            connected(subscriber, core, server);
        }
        edge::Event::Network {
            address,
            length,
            leads,
        } => {
            if let Some(routes) = &mut core.routes {
                routes.leads(address, length, leads);
            }
        }
        edge::Event::Client {
            subscriber,
            addresses,
        } => {
            tell_client(subscriber, addresses, core);
        }
        edge::Event::Uplink { subscriber, view } => uplink(subscriber, view.as_deref(), core),
        edge::Event::NoPrefix { subscriber, pool } => {
            tell_no_prefix(subscriber, pool.as_deref(), core)
        }
        edge::Event::QueueFaults { subscriber, faults } => {
            let view = core.edge.subscriber(subscriber);
            let name = view.map_or_else(String::new, |view| {
                String::from_utf8_lossy(view.name).into_owned()
            });
            summary.queue_fault(&name, &faults, core.now);
        }
        edge::Event::Down {
            subscriber,
            session,
            name,
            reason,
            account,
            was_up,
            is_client,
            ..
        } => {
            if !is_client {
                note_end((&name, account, was_up), &reason, core);
                if let Some(translation) = &mut core.translation {
                    translation.gone(subscriber, &name);
                }
            }
            // The session's own end, or its tunnel's, reports why it ended.
            if !matches!(reason, edge::End::Session(_))
                && let First(session) = session
            {
                server.down(WaitFor::Line(session), &reason, core.now);
            }
            let name = String::from_utf8_lossy(&name);
            if reason.is_by_refusal() {
                summary.client_refused(&name, &reason, core.now);
            }
            tracing::debug!(subscriber = %name, %reason, "disconnected");
        }
    }
}

/// Our client got an address, or lost it.
fn tell_client(
    subscriber: SubscriberKey,
    addresses: Option<(Ipv4Addr, Ipv4Addr)>,
    core: &mut Core,
) {
    tracing::debug!(?addresses, "client");
    if let Some(clients) = &mut core.inside.clients {
        let view = core.edge.subscriber(subscriber);
        let tunnel = view
            .and_then(|view| view.place.first())
            .map(|place| place.tunnel);
        let tunnel = tunnel.and_then(|key| core.edge.endpoint().l2tp().tunnel(key));
        let lns = tunnel.map(|tunnel| tunnel.route.peer.ip());
        clients.set(subscriber, addresses.map(|(own, _)| (own, lns)));
    }
}

/// Notes the end of a subscriber in the audit log: a refusal, if it had not connected.
fn note_end((name, account, was_up): (&[u8], u64, bool), reason: &End, core: &Core) {
    let event = if was_up { "ended" } else { "refused" };
    audit::note(event, || {
        json!({
            "name": String::from_utf8_lossy(name),
            "account": core.authority.account(account),
            "reason": reason.to_string(),
        })
    });
}

/// Notes in the audit log that a subscriber connected.
fn note_admission(view: &SubscriberView<'_>, core: &Core) {
    audit::note("admitted", || {
        let [prefix, delegated] = [view.leases.prefix, view.leases.delegated]
            .map(|prefix| prefix.map(|prefix| prefix.to_string()));
        let calling = view.numbers.map(|numbers| &*numbers.calling);
        let policy = crate::show::policy(core, view);
        json!({
            "name": String::from_utf8_lossy(view.name),
            "account": core.authority.account(view.account),
            "place": line(view.place, core),
            "calling": calling.map(String::from_utf8_lossy),
            "address": view.address,
            "prefix": prefix,
            "delegated_prefix": delegated,
            "filter": policy.filter,
            "garden": policy.garden,
        })
    });
}

/// Where a subscriber's session is.
fn line(place: Place, core: &Core) -> String {
    match place {
        First(place) => place.to_string(),
        Second(place) => {
            let name = core
                .edge
                .config()
                .interfaces
                .get(usize::from(place.route.port));
            let name = name.map_or("pppoe", |name| name);
            format!("{name} {} session {}", place.route.vlans, place.session_id)
        }
    }
}

/// A subscriber is up; a control client may wait for that.
fn connected(subscriber: SubscriberKey, core: &mut Core, server: &mut Server) {
    let Some(view) = core.edge.subscriber(subscriber) else {
        return;
    };
    if tracing::enabled!(tracing::Level::DEBUG) {
        let name = String::from_utf8_lossy(view.name);
        tracing::debug!(subscriber = %name, address = ?view.address, "connected");
    }
    if !view.is_client {
        note_admission(&view, core);
    }
    match view.session {
        First(session) => {
            let line = WaitFor::Line(session);
            core.opened_for.up(line);
            server.up(line, core.now);
        }
        Second(session) => core.redial.up(session),
    }
}

/// Passes an event of PPPoE on.
fn tell_pppoe(event: &pppoe::Event, core: &mut Core) {
    match event {
        pppoe::Event::SessionUp { session } => {
            let view = core.edge.endpoint().pppoe().session(*session);
            tracing::debug!(session = view.map(|view| view.id), "pppoe session up");
        }
        pppoe::Event::SessionDown {
            session,
            place,
            reason,
        } => {
            tracing::debug!(session = place.id, host = %place.route.peer, %reason, "pppoe session down");
            core.redial.down(*session, reason, core.now);
        }
    }
}

/// Passes an event of a tunnel or session on.
// long: a total table of events
fn tell_l2tp(event: Event, core: &mut Core, server: &mut Server, summary: &mut Summary) {
    let id_of = |session| {
        let view = core.edge.endpoint().l2tp().session(session);
        view.map(|view| view.id)
    };
    match event {
        Event::TunnelAccepted { tunnel } => give_socket(tunnel, core, summary),
        Event::TunnelUp { tunnel, id } => {
            summary.up += 1;
            summary.changed(core.now);
            tracing::debug!(tunnel = id, "tunnel up");
            server.up(WaitFor::Tunnel(tunnel), core.now);
        }
        Event::TunnelDown { tunnel, id, reason } => {
            summary.down += 1;
            summary.changed(core.now);
            tracing::debug!(tunnel = id, %reason, "tunnel down");
            server.down(WaitFor::Tunnel(tunnel), &reason, core.now);
        }
        Event::TunnelGone { socket, .. } => close_socket(socket, core),
        Event::SessionUp { session, id, .. } => {
            tracing::debug!(session = id, "session up");
            core.opened_for.up(WaitFor::Session(session));
            server.up(WaitFor::Session(session), core.now);
        }
        Event::SessionDown {
            session,
            tunnel,
            id,
            reason,
        } => {
            tracing::debug!(session = id, %reason, "session down");
            for what in [WaitFor::Session(session), WaitFor::Line(session)] {
                // The end of the tunnel follows, and reports the reason.
                let later = reason == SessionEnd::TunnelEnded && server.defer(what, tunnel);
                if !later {
                    server.down(what, &reason, core.now);
                }
            }
            core.opened_for.down(session);
        }
        Event::CallRequested { session } => {
            let id = id_of(session);
            tracing::debug!(
                session = id,
                "the peer wants a call placed: answer or delete it"
            );
        }
        Event::WanErrors { session, errors } => {
            let id = id_of(session);
            tracing::debug!(session = id, ?errors, "the peer reports line errors");
        }
        Event::SpeedChanged {
            session,
            tx_bps,
            rx_bps,
        } => {
            let id = id_of(session);
            tracing::debug!(
                session = id,
                tx_bps,
                rx_bps,
                "the peer reports new speeds of the line"
            );
        }
        Event::LinkInfo {
            session,
            accm,
            circuit_status,
        } => {
            let id = id_of(session);
            tracing::debug!(
                session = id,
                ?accm,
                ?circuit_status,
                "the peer describes the link"
            );
        }
    }
}

fn close_socket(socket: u32, core: &mut Core) {
    if core.sockets.close(socket, &mut core.reactor) {
        core.health.forget(Source::Udp(socket));
    }
    let Core {
        edge,
        sockets,
        reactor,
        ..
    } = core;
    sockets.left(
        socket,
        || edge.endpoint().l2tp().tunnels_on(socket),
        reactor,
    );
}

/// Opens a socket for a tunnel that a peer opened, if tunnels get their own sockets.
fn give_socket(tunnel: l2tp::TunnelKey, core: &mut Core, summary: &mut Summary) {
    let Some(mut route) = core
        .edge
        .endpoint()
        .l2tp()
        .tunnel(tunnel)
        .map(|tunnel| tunnel.route)
    else {
        return;
    };
    let Some(parent) = core.sockets.to_be_parted(route.socket) else {
        return;
    };
    route.socket = parent;
    let socket = core.sockets.accept(route, &mut core.reactor);
    if let Err(error) = &socket {
        if summary.own_refused == 0 {
            tracing::warn!(%error, "no socket for a tunnel; it stays on the shared one");
        }
        summary.own_refused += 1;
        summary.changed(core.now);
    }
    core.edge
        .endpoint_mut()
        .l2tp_mut()
        .set_socket(tunnel, socket.unwrap_or(parent));
}
