//! What a request does, a bounded number of steps at a time.

use std::net::IpAddr;

use base::slab::Key;
use l2tp::{Call, Direction, OpenTunnel, Pseudowire, TunnelKey};
use wire::l2tp::Version;

use super::client::Client;
use super::server::{WaitFor, Waiter, Waiters};
use super::show::Show;
use super::turn::Core;
use crate::control::reply::{self, Code, Created, Refusal};
use crate::control::request::{
    Do, Request, SessionCreate, SessionName, TunnelCreate, TunnelDelete, Wait, Wire,
};

/// A request and how far it is.
pub(super) struct Job {
    id: u64,
    what: Work,
}

enum Work {
    /// Not begun.
    Request(Do),
    Tunnels {
        create: TunnelCreate,
        begun: u32,
        ticket: Key,
    },
    Sessions {
        create: SessionCreate,
        tunnel: TunnelKey,
        begun: u32,
        ticket: Key,
    },
    DeleteAll {
        cursor: u32,
        closed: u64,
    },
    Show(Show),
}

/// What a step works with.
struct Context<'a> {
    key: Key,
    client: &'a mut Client,
    core: &'a mut Core,
    waiters: &'a mut Waiters,
}

impl Job {
    pub(super) fn new(request: Request) -> Self {
        Self {
            id: request.id,
            what: Work::Request(request.what),
        }
    }

    /// Does up to `steps` of it, each of which is taken off; hands it back if it is
    /// not done.
    pub(super) fn work(
        self,
        steps: &mut usize,
        key: Key,
        client: &mut Client,
        core: &mut Core,
        waiters: &mut Waiters,
        clients: usize,
    ) -> Option<Self> {
        let id = self.id;
        let mut context = Context {
            key,
            client,
            core,
            waiters,
        };
        let next = match self.what {
            Work::Request(request) => {
                *steps -= 1;
                match context.begin(id, request, clients) {
                    Ok(next) => next,
                    Err(refusal) => {
                        reply::refused(context.client.out(), id, &refusal);
                        None
                    }
                }
            }
            Work::Tunnels {
                create,
                begun,
                ticket,
            } => context.tunnels(create, begun, ticket, steps),
            Work::Sessions {
                create,
                tunnel,
                begun,
                ticket,
            } => context.sessions(create, tunnel, begun, ticket, steps),
            Work::DeleteAll { cursor, closed } => context.delete_all(id, cursor, closed, steps),
            Work::Show(show) => {
                let Context { client, core, .. } = context;
                show.work(id, client, core, steps).map(Work::Show)
            }
        };
        next.map(|what| Self { id, what })
    }
}

impl Context<'_> {
    /// Begins a request: does it, or says what is to be gone on with.
    fn begin(&mut self, id: u64, request: Do, clients: usize) -> Result<Option<Work>, Refusal> {
        let show = |show| Ok(Some(Work::Show(show)));
        match request {
            Do::TunnelCreate(create) => self.begin_tunnels(id, create).map(Some),
            Do::TunnelDelete(delete) => self.delete(id, delete),
            Do::SessionCreate(create) => {
                check_count(create.count)?;
                let tunnel = self.tunnel(create.tunnel, create.version)?;
                let ticket = self.client.open_ticket(id);
                Ok(Some(Work::Sessions {
                    create,
                    tunnel,
                    begun: 0,
                    ticket,
                }))
            }
            Do::SessionDelete(name) => {
                let session = self.session(name)?;
                let closed = self.core.endpoint.close_session(session, self.core.now);
                reply::done(self.client.out(), id, Some(closed.into()));
                Ok(None)
            }
            Do::SessionAnswer(name) => {
                let session = self.session(name)?;
                if !self.core.endpoint.answer_call(session, self.core.now) {
                    let message = format!("session {} does not wait for an answer", name.session);
                    return Err(Refusal::new(Code::Refused, message));
                }
                reply::done(self.client.out(), id, None);
                Ok(None)
            }
            Do::ShowTunnels(_) => show(Show::tunnels()),
            Do::ShowSessions(_) => show(Show::sessions()),
            Do::ShowPeers(_) => show(Show::peers()),
            Do::ShowEndedTunnels(_) => show(Show::ended_tunnels()),
            Do::ShowEndedSessions(_) => show(Show::ended_sessions()),
            Do::ShowCounters(_) => show(Show::counters()),
            Do::ShowEventPoll(_) => show(Show::event_poll()),
            Do::ShowEventTimers(_) => show(Show::event_timers()),
            Do::ShowEventCpu(_) => show(Show::event_cpu()),
            Do::ServerStats(_) => show(Show::server(clients)),
        }
    }

    fn begin_tunnels(&mut self, id: u64, create: TunnelCreate) -> Result<Work, Refusal> {
        check_count(create.count)?;
        if !matches!(create.version, 2 | 3) {
            return Err(Refusal::new(Code::BadRequest, "version must be 2 or 3"));
        }
        if create.peer.port() == 0 {
            return Err(Refusal::new(
                Code::BadRequest,
                "the peer's port must not be 0",
            ));
        }
        if create
            .from
            .is_some_and(|from| from.is_ipv4() != create.peer.is_ipv4())
        {
            let message = "from and peer are not of one address family";
            return Err(Refusal::new(Code::BadRequest, message));
        }
        let ticket = self.client.open_ticket(id);
        Ok(Work::Tunnels {
            create,
            begun: 0,
            ticket,
        })
    }

    fn tunnels(
        &mut self,
        create: TunnelCreate,
        begun: u32,
        ticket: Key,
        steps: &mut usize,
    ) -> Option<Work> {
        let mut begun = begun;
        while begun < create.count && *steps > 0 && !self.client.is_full() {
            let from = create
                .from
                .map(|net| net.nth(create.skip + u64::from(begun)));
            if let Err(reason) = self.open_tunnel(&create, from, ticket) {
                let reason = Some(reason.as_str());
                let failed = Created {
                    up: Some(false),
                    reason,
                    ..Created::default()
                };
                self.client.report(ticket, failed);
            }
            begun += 1;
            *steps -= 1;
        }
        if begun < create.count {
            return Some(Work::Tunnels {
                create,
                begun,
                ticket,
            });
        }
        self.client.all_begun(ticket);
        None
    }

    fn open_tunnel(
        &mut self,
        create: &TunnelCreate,
        from: Option<IpAddr>,
        ticket: Key,
    ) -> Result<(), String> {
        let Core {
            endpoint,
            sockets,
            reactor,
            now,
            ..
        } = &mut *self.core;
        let route = sockets.originate(create.peer, from, reactor)?;
        let version = version(create.version);
        let tunnel = match endpoint.open_tunnel(OpenTunnel { route, version }, *now) {
            Ok(tunnel) => tunnel,
            Err(error) => {
                sockets.close(route.socket, reactor);
                return Err(error.to_string());
            }
        };
        let mut session = None;
        if create.session {
            match endpoint.open_session(tunnel, Call::default(), *now) {
                Ok(key) => session = Some(key),
                Err(error) => {
                    endpoint.close_tunnel(tunnel, *now);
                    return Err(error.to_string());
                }
            }
        }
        let id = endpoint.tunnel(tunnel).map_or(0, |tunnel| tunnel.id);
        let session_id = session
            .and_then(|session| endpoint.session(session))
            .map(|view| view.id);
        let wait_for = session.map_or(WaitFor::Tunnel(tunnel), WaitFor::Session);
        self.started(create.wait, wait_for, ticket, id, session_id);
        Ok(())
    }

    fn sessions(
        &mut self,
        create: SessionCreate,
        tunnel: TunnelKey,
        begun: u32,
        ticket: Key,
        steps: &mut usize,
    ) -> Option<Work> {
        let mut begun = begun;
        while begun < create.count && *steps > 0 && !self.client.is_full() {
            let call = call(&create);
            match self.core.endpoint.open_session(tunnel, call, self.core.now) {
                Ok(session) => {
                    let id = self.core.endpoint.session(session).map(|view| view.id);
                    self.started(
                        create.wait,
                        WaitFor::Session(session),
                        ticket,
                        create.tunnel,
                        id,
                    );
                }
                Err(error) => {
                    let (tunnel, reason) = (create.tunnel, error.to_string());
                    let reason = Some(reason.as_str());
                    let failed = Created {
                        tunnel,
                        up: Some(false),
                        reason,
                        ..Created::default()
                    };
                    self.client.report(ticket, failed);
                }
            }
            begun += 1;
            *steps -= 1;
        }
        if begun < create.count {
            return Some(Work::Sessions {
                create,
                tunnel,
                begun,
                ticket,
            });
        }
        self.client.all_begun(ticket);
        None
    }

    /// Replies at once, or notes that the client waits.
    fn started(
        &mut self,
        wait: Wait,
        what: WaitFor,
        ticket: Key,
        tunnel: u32,
        session: Option<u32>,
    ) {
        if wait == Wait::None {
            self.client.report(
                ticket,
                Created {
                    tunnel,
                    session,
                    ..Created::default()
                },
            );
            return;
        }
        let (client, since) = (self.key, self.core.now);
        self.waiters.insert(
            what,
            Waiter {
                client,
                ticket,
                since,
                tunnel,
                session,
            },
        );
        self.client.begin(ticket);
    }

    fn delete(&mut self, id: u64, delete: TunnelDelete) -> Result<Option<Work>, Refusal> {
        let Some(tunnel) = delete.tunnel else {
            if delete.all {
                return Ok(Some(Work::DeleteAll {
                    cursor: 0,
                    closed: 0,
                }));
            }
            return Err(Refusal::new(
                Code::BadRequest,
                "name a tunnel, or say \"all\":true",
            ));
        };
        let key = self.tunnel(tunnel, delete.version)?;
        let closed = self.core.endpoint.close_tunnel(key, self.core.now);
        reply::done(self.client.out(), id, Some(closed.into()));
        Ok(None)
    }

    fn delete_all(
        &mut self,
        id: u64,
        mut cursor: u32,
        mut closed: u64,
        steps: &mut usize,
    ) -> Option<Work> {
        let Core { endpoint, now, .. } = &mut *self.core;
        while *steps > 0 {
            *steps -= 1;
            let Some((next, view)) = endpoint.next_tunnel(cursor) else {
                reply::done(self.client.out(), id, Some(closed));
                return None;
            };
            let key = view.key;
            cursor = next;
            closed += u64::from(endpoint.close_tunnel(key, *now));
        }
        Some(Work::DeleteAll { cursor, closed })
    }

    fn tunnel(&self, id: u32, version_number: Option<u8>) -> Result<TunnelKey, Refusal> {
        let found = self
            .core
            .endpoint
            .find_tunnel(id, version_number.map(version));
        found.ok_or_else(|| Refusal::new(Code::NotFound, format!("there is no tunnel {id}")))
    }

    fn session(&self, name: SessionName) -> Result<l2tp::SessionKey, Refusal> {
        let tunnel = self.tunnel(name.tunnel, name.version)?;
        self.core
            .endpoint
            .find_session(tunnel, name.session)
            .ok_or_else(|| {
                let message = format!("tunnel {} has no session {}", name.tunnel, name.session);
                Refusal::new(Code::NotFound, message)
            })
    }
}

fn check_count(count: u32) -> Result<(), Refusal> {
    if count == 0 {
        return Err(Refusal::new(Code::BadRequest, "count must be 1 or more"));
    }
    Ok(())
}

fn version(number: u8) -> Version {
    if number == 2 {
        Version::V2
    } else {
        Version::V3
    }
}

fn call(create: &SessionCreate) -> Call {
    let mut call = Call {
        direction: if create.outgoing {
            Direction::Outgoing
        } else {
            Direction::Incoming
        },
        pseudowire: match create.pseudowire {
            Wire::Ppp => Pseudowire::Ppp,
            Wire::Ethernet => Pseudowire::Ethernet,
            Wire::Vlan => Pseudowire::Vlan,
        },
        ..Call::default()
    };
    call.details.called_number = create.called.as_bytes().into();
    call.details.calling_number = create.calling.as_bytes().into();
    call
}
