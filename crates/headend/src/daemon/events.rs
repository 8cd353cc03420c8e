//! What the endpoint tells: to waiting clients, to the sockets, to the log.

use base::{Duration, Instant};
use l2tp::{Event, SessionEnd};

use super::server::{Server, WaitFor};
use super::turn::Core;

/// At most one line a so long about tunnels that came and went.
const QUIET: Duration = Duration::from_secs(10);

/// Counts what came and went, for a log line now and then.
#[derive(Debug, Default)]
pub(super) struct Summary {
    up: u64,
    down: u64,
    last: Option<Instant>,
    pending: bool,
    dropped: u64,
    own_refused: u64,
}

impl Summary {
    /// When the next line is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.pending
            .then(|| self.last.map_or(Instant::ZERO, |last| last + QUIET))
    }

    /// Writes the line if it is due.
    pub(super) fn write(&mut self, core: &Core) {
        let dropped = core.sockets.dropped;
        self.pending |= dropped != self.dropped;
        if self.due().is_none_or(|due| due > core.now) {
            return;
        }
        let counts = core.endpoint.counts();
        let (up, down) = (self.up, self.down);
        if up + down > 0 {
            let (tunnels, sessions) = (counts.established, counts.sessions_established);
            tracing::info!(up, down, tunnels, sessions, "tunnels came and went");
        }
        if self.own_refused > 0 {
            let refused = self.own_refused;
            tracing::warn!(
                refused,
                "tunnels that stay on the shared socket: none could be opened for them"
            );
        }
        if dropped != self.dropped {
            let error = core
                .sockets
                .last_error
                .as_ref()
                .map(tracing::field::display);
            tracing::warn!(
                dropped = dropped - self.dropped,
                error,
                "datagrams that could not be sent"
            );
        }
        *self = Self {
            last: Some(core.now),
            dropped,
            ..Self::default()
        };
    }
}

/// Hands one event on.
pub(super) fn tell(event: Event, core: &mut Core, server: &mut Server, summary: &mut Summary) {
    match event {
        Event::TunnelAccepted { tunnel } => give_socket(tunnel, core, summary),
        Event::TunnelUp { tunnel, id } => {
            summary.up += 1;
            summary.pending = true;
            tracing::debug!(tunnel = id, "tunnel up");
            server.up(WaitFor::Tunnel(tunnel), core.now);
        }
        Event::TunnelDown { tunnel, id, reason } => {
            summary.down += 1;
            summary.pending = true;
            tracing::debug!(tunnel = id, %reason, "tunnel down");
            server.down(WaitFor::Tunnel(tunnel), &reason, core.now);
        }
        Event::TunnelGone { socket, .. } => core.sockets.close(socket, &mut core.reactor),
        Event::SessionUp { session, id, .. } => {
            tracing::debug!(session = id, "session up");
            server.up(WaitFor::Session(session), core.now);
        }
        Event::SessionDown {
            session,
            tunnel,
            id,
            reason,
        } => {
            tracing::debug!(session = id, %reason, "session down");
            let what = WaitFor::Session(session);
            // The tunnel's end follows, and tells why.
            let later = reason == SessionEnd::TunnelEnded && server.defer(what, tunnel);
            if !later {
                server.down(what, &reason, core.now);
            }
        }
        Event::CallRequested { session } => {
            let id = core.endpoint.session(session).map(|session| session.id);
            tracing::debug!(
                session = id,
                "the peer wants a call placed: answer or delete it"
            );
        }
        Event::WanErrors { session, errors } => {
            let id = core.endpoint.session(session).map(|session| session.id);
            tracing::debug!(session = id, ?errors, "the peer reports line errors");
        }
        Event::LinkInfo {
            session,
            accm,
            circuit_status,
        } => {
            let id = core.endpoint.session(session).map(|session| session.id);
            tracing::debug!(
                session = id,
                ?accm,
                ?circuit_status,
                "the peer describes the link"
            );
        }
    }
}

/// Opens a socket for a tunnel that a peer opened, if it is to have its own.
fn give_socket(tunnel: l2tp::TunnelKey, core: &mut Core, summary: &mut Summary) {
    let Some(route) = core.endpoint.tunnel(tunnel).map(|tunnel| tunnel.route) else {
        return;
    };
    if !core.sockets.wants_own(route.socket) {
        return;
    }
    match core.sockets.accept(route, &mut core.reactor) {
        Ok(number) => core.endpoint.set_socket(tunnel, number),
        Err(error) => {
            if summary.own_refused == 0 {
                tracing::warn!(%error, "no socket for a tunnel; it stays on the shared one");
            }
            summary.own_refused += 1;
            summary.pending = true;
        }
    }
}
