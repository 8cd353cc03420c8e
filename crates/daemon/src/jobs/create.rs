//! Creates tunnels and sessions by the thousand: a bounded number in each turn, and no more in
//! progress than one client's share.

use std::net::IpAddr;

use base::slab::Key;
use edge::access::Either::First;
use l2tp::{Call, Direction, OpenTunnel, Pseudowire, TunnelKey};

use super::{Context, Work, check_count, version};
use crate::client::Steps;
use crate::core::Core;
use crate::waiting::{WaitFor, Waiter};
use control::reply::{Code, Created, Refusal};
use control::request::{SessionCreate, TunnelCreate, Wait, Wire};

impl Context<'_> {
    pub(super) fn begin_tunnels(&mut self, id: u64, create: TunnelCreate) -> Result<Work, Refusal> {
        check_count(create.count)?;
        version(create.version)?;
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

    pub(super) fn begin_sessions(
        &mut self,
        id: u64,
        create: SessionCreate,
    ) -> Result<Work, Refusal> {
        check_count(create.count)?;
        let tunnel = self.tunnel(create.tunnel, create.version)?;
        let ticket = self.client.open_ticket(id);
        Ok(Work::Sessions {
            create,
            tunnel,
            begun: 0,
            ticket,
        })
    }

    pub(super) fn tunnels(
        &mut self,
        create: TunnelCreate,
        mut begun: u32,
        ticket: Key,
        steps: &mut Steps,
    ) -> Option<Work> {
        let is_done = self.create(create.count, &mut begun, ticket, steps, |this, begun| {
            let from = create
                .from
                .map(|net| net.nth(create.skip.wrapping_add(begun.into())));
            if let Err(reason) = this.open_tunnel(&create, from, ticket) {
                this.failed(ticket, 0, &reason);
            }
        });
        (!is_done).then_some(Work::Tunnels {
            create,
            begun,
            ticket,
        })
    }

    /// Creates one after another until all `count` are started, `steps` are used up, or the client's buffer is full.
    /// Returns whether all are started.
    fn create(
        &mut self,
        count: u32,
        begun: &mut u32,
        ticket: Key,
        steps: &mut Steps,
        mut one: impl FnMut(&mut Self, u32),
    ) -> bool {
        while *begun < count && !self.client.is_full() && steps.next() {
            one(self, *begun);
            *begun += 1;
        }
        let is_done = *begun >= count;
        if is_done {
            self.client.all_begun(ticket);
        }
        is_done
    }

    /// Reports a tunnel or session that could not be created.
    fn failed(&mut self, ticket: Key, tunnel: u32, reason: &str) {
        let failed = Created {
            tunnel,
            up: Some(false),
            reason: Some(reason),
            ..Created::default()
        };
        self.client.report(ticket, failed);
    }

    fn open_tunnel(
        &mut self,
        create: &TunnelCreate,
        from: Option<IpAddr>,
        ticket: Key,
    ) -> Result<(), String> {
        let Core {
            edge,
            sockets,
            reactor,
            client,
            opened_for,
            now,
            ..
        } = &mut *self.core;
        let endpoint = edge.endpoint_mut().l2tp_mut();
        let version = version(create.version).map_err(|refusal| refusal.message)?;
        let route = sockets.originate(create.peer, from, reactor)?;
        let tunnel = match endpoint.open_tunnel(OpenTunnel { route, version }, *now) {
            Ok(tunnel) => tunnel,
            Err(error) => {
                sockets.close(route.socket, reactor);
                return Err(error.to_string());
            }
        };
        let mut session = None;
        let dials = client.is_some();
        if create.session {
            match endpoint.open_session(tunnel, Call::default(), *now) {
                Ok(key) => session = Some(key),
                Err(error) => {
                    endpoint.close_tunnel(tunnel, *now);
                    return Err(error.to_string());
                }
            }
        }
        if let (Some(session), Some(dialler)) = (session, client) {
            edge.dial(First(session), dialler.next(), *now);
        }
        let endpoint = edge.endpoint().l2tp();
        let id = endpoint.tunnel(tunnel).map_or(0, |tunnel| tunnel.id);
        let session_id = session
            .and_then(|session| endpoint.session(session))
            .map(|view| view.id);
        let wait_for = session.map_or(WaitFor::Tunnel(tunnel), |session| wait_for(session, dials));
        if session.is_some() {
            opened_for.insert(wait_for, tunnel);
        }
        self.started(create.wait, wait_for, ticket, id, session_id);
        Ok(())
    }

    pub(super) fn sessions(
        &mut self,
        create: SessionCreate,
        tunnel: TunnelKey,
        mut begun: u32,
        ticket: Key,
        steps: &mut Steps,
    ) -> Option<Work> {
        let is_done = self.create(create.count, &mut begun, ticket, steps, |this, _| {
            if let Err(reason) = this.open_session(&create, tunnel, ticket) {
                this.failed(ticket, create.tunnel, &reason);
            }
        });
        (!is_done).then_some(Work::Sessions {
            create,
            tunnel,
            begun,
            ticket,
        })
    }

    fn open_session(
        &mut self,
        create: &SessionCreate,
        tunnel: TunnelKey,
        ticket: Key,
    ) -> Result<(), String> {
        let Core {
            edge, client, now, ..
        } = &mut *self.core;
        let opened = edge
            .endpoint_mut()
            .l2tp_mut()
            .open_session(tunnel, call(create), *now);
        let session = opened.map_err(|error| error.to_string())?;
        let is_ppp = matches!(create.pseudowire, Wire::Ppp);
        let dialler = client.as_mut().filter(|_| is_ppp);
        let dials = dialler.is_some();
        if let Some(dialler) = dialler {
            edge.dial(First(session), dialler.next(), *now);
        }
        let id = edge.endpoint().l2tp().session(session).map(|view| view.id);
        let wait_for = wait_for(session, dials);
        self.started(create.wait, wait_for, ticket, create.tunnel, id);
        Ok(())
    }

    /// Replies at once, or records that the client waits.
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
}

/// Chooses the event to wait for. A session in which we are the client is up only once PPP is up.
fn wait_for(session: l2tp::SessionKey, dials: bool) -> WaitFor {
    if dials {
        WaitFor::Line(session)
    } else {
        WaitFor::Session(session)
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
