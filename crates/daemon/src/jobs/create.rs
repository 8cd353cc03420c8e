//! Creates tunnels and sessions by the thousand: a bounded number in each turn, and no more in
//! progress than one client's share.

use std::net::IpAddr;

use base::slab::Key;
use l2tp::{Call, Direction, OpenTunnel, Pseudowire, TunnelKey};

use super::{Context, Work, check_count, version};
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

    pub(super) fn tunnels(
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
                .map(|net| net.nth(create.skip.wrapping_add(begun.into())));
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
            edge,
            sockets,
            reactor,
            client,
            now,
            ..
        } = &mut *self.core;
        let endpoint = edge.endpoint_mut();
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
            edge.dial(session, dialler.next(), *now);
        }
        let endpoint = edge.endpoint();
        let id = endpoint.tunnel(tunnel).map_or(0, |tunnel| tunnel.id);
        let session_id = session
            .and_then(|session| endpoint.session(session))
            .map(|view| view.id);
        let wait_for = session.map_or(WaitFor::Tunnel(tunnel), |session| wait_for(session, dials));
        self.started(create.wait, wait_for, ticket, id, session_id);
        Ok(())
    }

    pub(super) fn sessions(
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
            let Core {
                edge, client, now, ..
            } = &mut *self.core;
            match edge.endpoint_mut().open_session(tunnel, call, *now) {
                Ok(session) => {
                    let dials = client.is_some() && matches!(create.pseudowire, Wire::Ppp);
                    if let Some(dialler) = client
                        .as_mut()
                        .filter(|_| matches!(create.pseudowire, Wire::Ppp))
                    {
                        edge.dial(session, dialler.next(), *now);
                    }
                    let id = edge.endpoint().session(session).map(|view| view.id);
                    self.started(
                        create.wait,
                        wait_for(session, dials),
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
