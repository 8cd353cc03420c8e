//! The rows of a `show`, a bounded number at a time: a place in the endpoint's
//! tables is all that is kept between two turns.

use base::{Duration, Instant, Machine};
use l2tp::{Codes, Endpoint, Pseudowire, SessionEnd, SessionView, TunnelEnd, TunnelView};
use reactor::{DescriptorInfo, SysCounts, usage};

use super::client::{Client, OUT_HIGH};
use super::sockets::End;
use super::turn::Core;
use crate::control::reply;
use crate::control::rows;

/// A `show` and how far it is.
pub(super) struct Show {
    what: What,
    cursor: u32,
    rows: u64,
}

#[derive(Clone, Copy)]
enum What {
    Tunnels,
    Sessions,
    Peers,
    EndedTunnels,
    EndedSessions,
    Counters,
    Waits,
    Descriptors,
    Timers,
    Cpu,
    Server { clients: usize },
}

/// What a step has left to do.
enum Step {
    /// Go on from here.
    From(u32),
    /// Go on with the next part.
    Then(What),
    End,
}

impl Show {
    pub(super) fn tunnels() -> Self {
        Self::new(What::Tunnels)
    }

    pub(super) fn sessions() -> Self {
        Self::new(What::Sessions)
    }

    pub(super) fn peers() -> Self {
        Self::new(What::Peers)
    }

    pub(super) fn ended_tunnels() -> Self {
        Self::new(What::EndedTunnels)
    }

    pub(super) fn ended_sessions() -> Self {
        Self::new(What::EndedSessions)
    }

    pub(super) fn counters() -> Self {
        Self::new(What::Counters)
    }

    pub(super) fn event_poll() -> Self {
        Self::new(What::Waits)
    }

    pub(super) fn event_timers() -> Self {
        Self::new(What::Timers)
    }

    pub(super) fn event_cpu() -> Self {
        Self::new(What::Cpu)
    }

    pub(super) fn server(clients: usize) -> Self {
        Self::new(What::Server { clients })
    }

    fn new(what: What) -> Self {
        Self {
            what,
            cursor: 0,
            rows: 0,
        }
    }

    /// Writes rows until they are at an end, `steps` are used up, or the client has
    /// enough to read; hands itself back if there is more.
    pub(super) fn work(
        mut self,
        id: u64,
        client: &mut Client,
        core: &Core,
        steps: &mut usize,
    ) -> Option<Self> {
        while *steps > 0 && !client.is_full() {
            *steps -= 1;
            let mut out = Rows {
                out: client.out(),
                id,
                count: 0,
            };
            let step = self.what.step(self.cursor, core, &mut out);
            self.rows += out.count;
            match step {
                Step::From(cursor) => self.cursor = cursor,
                Step::Then(what) => (self.what, self.cursor) = (what, 0),
                Step::End => {
                    reply::end(client.out(), id, self.rows);
                    return None;
                }
            }
        }
        Some(self)
    }
}

/// Where rows go.
struct Rows<'a> {
    out: &'a mut Vec<u8>,
    id: u64,
    count: u64,
}

impl Rows<'_> {
    fn push(&mut self, row: &impl serde::Serialize) {
        reply::row(self.out, self.id, row);
        self.count += 1;
    }
}

impl What {
    fn step(self, cursor: u32, core: &Core, out: &mut Rows) -> Step {
        let endpoint = &core.endpoint;
        match self {
            What::Tunnels => match endpoint.next_tunnel(cursor) {
                Some((next, view)) => {
                    tunnel(&view, core.now, out);
                    Step::From(next)
                }
                None => Step::End,
            },
            What::Sessions => match endpoint.next_session(cursor) {
                Some((next, view)) => {
                    session(&view, core.now, out);
                    Step::From(next)
                }
                None => Step::End,
            },
            What::Peers => match endpoint.next_peer(cursor) {
                Some((next, view)) => {
                    out.push(&rows::Peer {
                        schema: "peer/1",
                        address: view.addr,
                        tunnels: view.tunnels,
                        opened_total: view.opened_total,
                    });
                    Step::From(next)
                }
                None => Step::End,
            },
            What::EndedTunnels => ended_tunnel(endpoint, cursor, core.now, out),
            What::EndedSessions => ended_session(endpoint, cursor, core.now, out),
            What::Counters => {
                counters(core, out);
                Step::End
            }
            What::Waits => {
                waits(core, out);
                Step::Then(What::Descriptors)
            }
            What::Descriptors => descriptors(core, cursor, out),
            What::Timers => {
                timers(core, out);
                Step::End
            }
            What::Cpu => {
                cpu(core, out);
                Step::End
            }
            What::Server { clients } => {
                server(core, clients, out);
                Step::End
            }
        }
    }
}

fn tunnel(view: &TunnelView, now: Instant, out: &mut Rows) {
    let state: &dyn std::fmt::Display = if view.closing {
        &"closing"
    } else {
        &view.state
    };
    out.push(&rows::Tunnel {
        schema: "tunnel/1",
        id: view.id,
        remote_id: view.remote_id,
        version: view.version.number(),
        state,
        role: if view.originated { "lac" } else { "lns" },
        peer: view.route.peer,
        local: view.route.local,
        host_name: view.host_name,
        config_id: view.config_id,
        sessions: view.sessions,
        age_s: seconds(now.since(view.created)),
        up_s: view.up.map(|up| seconds(now.since(up))),
        window: view.peer_window,
        cwnd: view.cwnd,
        outstanding: view.outstanding,
        rx: view.received,
        tx: view.sent,
        retransmissions: view.retransmissions,
        duplicates: view.duplicates,
    });
}

fn session(view: &SessionView, now: Instant, out: &mut Rows) {
    let called = view
        .details
        .map_or(&[][..], |details| &details.called_number);
    out.push(&rows::Session {
        schema: "session/1",
        id: view.id,
        remote_id: view.remote_id,
        tunnel: view.tunnel_id,
        version: view.version.number(),
        role: &view.role,
        state: &view.state,
        pseudowire: Pseudowire::from_number(view.pseudowire).map_or("other", Pseudowire::name),
        age_s: seconds(now.since(view.created)),
        up_s: view.up.map(|up| seconds(now.since(up))),
        called_number: &String::from_utf8_lossy(called),
    });
}

fn ended_tunnel(endpoint: &Endpoint, cursor: u32, now: Instant, out: &mut Rows) -> Step {
    let Some(ended) = endpoint.ended_tunnel(cursor as usize) else {
        return Step::End;
    };
    let (result, error) = match &ended.reason {
        TunnelEnd::Peer(notice) => (Some(notice.result), notice.error),
        reason => codes(reason.codes(ended.version)),
    };
    out.push(&rows::Ended {
        schema: "ended/1",
        tunnel: ended.id,
        session: None,
        version: ended.version.number(),
        peer: Some(ended.route.peer),
        ended_s_ago: seconds(now.since(ended.ended)),
        reason: &ended.reason,
        result,
        error,
    });
    Step::From(cursor + 1)
}

fn ended_session(endpoint: &Endpoint, cursor: u32, now: Instant, out: &mut Rows) -> Step {
    let Some(ended) = endpoint.ended_session(cursor as usize) else {
        return Step::End;
    };
    let (result, error) = match &ended.reason {
        SessionEnd::Peer(notice) => (Some(notice.result), notice.error),
        reason => codes(reason.codes(ended.version)),
    };
    out.push(&rows::Ended {
        schema: "ended/1",
        tunnel: ended.tunnel_id,
        session: Some(ended.id),
        version: ended.version.number(),
        peer: None,
        ended_s_ago: seconds(now.since(ended.ended)),
        reason: &ended.reason,
        result,
        error,
    });
    Step::From(cursor + 1)
}

/// The Result Code and Error Code that we sent, where any were.
fn codes(codes: Option<Codes>) -> (Option<u16>, Option<u16>) {
    codes.map_or((None, None), |codes| (Some(codes.result), codes.error))
}

fn counters(core: &Core, out: &mut Rows) {
    let mut push = |name: &dyn std::fmt::Display, value| {
        out.push(&rows::Counter {
            schema: "counter/1",
            name,
            value,
        });
    };
    for (name, value) in core.endpoint.counters() {
        push(&name, value);
    }
    let udp = core.sockets.stats();
    push(&"udp_received", udp.received);
    push(&"udp_sent", udp.sent);
    push(&"udp_truncated", udp.truncated);
    push(&"udp_receive_errors", udp.receive_errors);
    push(&"udp_send_blocked", udp.blocked);
    push(&"udp_send_dropped", core.sockets.dropped);
}

fn waits(core: &Core, out: &mut Rows) {
    let stats = core.reactor.wait_stats();
    out.push(&rows::Waits {
        schema: "event.waits/1",
        poller: core.reactor.poller().name(),
        descriptors: core.reactor.store().name(),
        watched: core.reactor.watched() as u64,
        waits: stats.waits,
        empty: stats.empty,
        ready: stats.ready,
        stale: stats.stale,
        refused: stats.refused,
        ready_per_wait: rounded(stats.ready as f64 / stats.waits.max(1) as f64),
        ready_to_watched: rounded(stats.ready_ratio()),
        waits_per_s: rounded(stats.waits_per_second()),
        waited_s: seconds(stats.waited),
        busy_s: seconds(stats.busy()),
    });
}

/// One descriptor at a time would walk a list once for each.
const DESCRIPTORS: usize = 256;

fn descriptors(core: &Core, cursor: u32, out: &mut Rows) -> Step {
    let mut page: Vec<DescriptorInfo> = Vec::with_capacity(DESCRIPTORS);
    let next = core
        .reactor
        .descriptors(cursor.cast_signed(), DESCRIPTORS, &mut page);
    for info in &page {
        out.push(&rows::Descriptor {
            schema: "event.descriptor/1",
            fd: info.token.fd(),
            owner: info.owner,
            interest: &info.interest,
            wakeups: info.wakeups,
        });
    }
    debug_assert!(out.out.len() < 4 * OUT_HIGH, "a page of rows is bounded");
    next.map_or(Step::End, |next| Step::From(next.cast_unsigned()))
}

fn timers(core: &Core, out: &mut Rows) {
    let late = core.reactor.lateness();
    let next = core.endpoint.poll_timeout();
    let until = |at: Instant| (at.as_nanos() as f64 - core.now.as_nanos() as f64) / 1e6;
    out.push(&rows::Timers {
        schema: "event.timers/1",
        store: core.timers.name(),
        armed: core.endpoint.counts().timers.into(),
        next_ms: next.map(|(at, _)| rounded(until(at))),
        next_timer: next.map(|(_, name)| name),
        fired: late.count(),
        late_mean_us: micros(late.mean()),
        late_p99_us: micros(late.quantile(0.99)),
        late_max_us: micros(late.max()),
    });
    for (below, timers) in late.buckets() {
        let below_us = (below != Duration::MAX).then(|| micros(below));
        out.push(&rows::LatenessClass {
            schema: "event.lateness/1",
            below_us,
            timers,
        });
    }
}

fn cpu(core: &Core, out: &mut Rows) {
    for handler in core.reactor.handler_stats() {
        out.push(&rows::Handler {
            schema: "event.handler/1",
            name: handler.name,
            calls: handler.calls,
            total_us: micros(handler.total),
            mean_us: micros(handler.mean()),
            longest_us: micros(handler.longest),
        });
    }
    for (name, calls) in SysCounts::of_this_thread().iter() {
        out.push(&rows::SysCall {
            schema: "event.syscall/1",
            name,
            calls,
        });
    }
}

fn server(core: &Core, clients: usize, out: &mut Rows) {
    let used = usage::of_this_process();
    let counts = core.endpoint.counts();
    out.push(&rows::Server {
        schema: "server/1".into(),
        pid: std::process::id(),
        uptime_s: seconds(core.now.since(core.started)),
        user_us: used.user.as_nanos() / 1000,
        system_us: used.system.as_nanos() / 1000,
        rss_bytes: usage::resident_bytes().unwrap_or(0),
        rss_max_bytes: used.resident_bytes_max,
        lns: core.sockets.addresses(End::Lns),
        lac: core.sockets.addresses(End::Lac),
        tunnels: counts.tunnels.into(),
        established: counts.established.into(),
        opening: (counts.tunnels - counts.established).into(),
        closing: counts.closing.into(),
        held: counts.held.into(),
        sessions: counts.sessions.into(),
        sessions_established: counts.sessions_established.into(),
        peers: counts.peers.into(),
        timers: counts.timers.into(),
        sockets: core.sockets.len() as u64,
        clients: clients as u64,
    });
}

fn seconds(span: Duration) -> f64 {
    rounded(span.as_secs_f64())
}

fn micros(span: Duration) -> f64 {
    rounded(span.as_nanos() as f64 / 1000.0)
}

/// To three decimals, which is all that anyone reads.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
