//! Carries out control requests, a bounded number of steps at a time. `create` opens tunnels and
//! sessions, `nat` forwards ports, `subscribers` finds and disconnects subscribers, `policy` changes
//! one, `reloads` reads the configuration again. Start with [`Job::work`].

mod create;
mod nat;
mod policy;
mod reloads;
mod subscribers;

use base::slab::Key;
use bgp::Speaker;
use edge::SubscriberKey;
use l2tp::TunnelKey;
use wire::l2tp::Version;

use super::capture::Captures;
use super::client::{self, Steps};
use super::core::Core;
use super::show::{self, HistoryShow, Show, Sorted, What, Worst};
use super::source::Source;
use super::waiting::Waiters;
use control::reply::{self, Code, Refusal};
use control::request::{Do, Request, SessionCreate, SessionName, TunnelCreate, TunnelDelete};
use nat::NatWork;
use peering::show::BgpShow;
use reloads::Reloaded;

/// A request and its progress.
pub(super) struct Job {
    id: u64,
    /// The verb.
    name: &'static str,
    what: Work,
}

enum Work {
    /// Not started.
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
    Drop {
        keys: Vec<SubscriberKey>,
        rows: u64,
    },
    Show(Show),
    Reloaded(Box<Reloaded>),
    /// The translations of all threads have to answer.
    Nat(NatWork),
}

/// The state that a step uses.
struct Context<'a> {
    key: Key,
    client: &'a mut Client,
    core: &'a mut Core,
    waiters: &'a mut Waiters,
    captures: &'a mut Captures,
}

impl From<Request> for Job {
    fn from(request: Request) -> Self {
        Self {
            id: request.id,
            name: request.what.name(),
            what: Work::Request(request.what),
        }
    }
}

/// A control client with its jobs.
pub(super) type Client = client::Client<Job>;

impl Job {
    /// Does up to `steps` steps and subtracts those it did. Returns the job if it is not finished.
    pub(super) fn work(
        self,
        steps: &mut Steps,
        key: Key,
        client: &mut Client,
        core: &mut Core,
        (waiters, captures): (&mut Waiters, &mut Captures),
        clients: usize,
    ) -> Option<Self> {
        let Self { id, name, .. } = self;
        let work = Source::Client(key.index).work();
        core.reactor.carry_out(work, name);
        let mut context = Context {
            key,
            client,
            core,
            waiters,
            captures,
        };
        let next = match self.what {
            Work::Request(request) => {
                steps.next();
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
            Work::Drop { keys, rows } => context.drop_subscribers(id, keys, rows, steps),
            // Nobody reads the rows.
            Work::Show(_) if context.client.is_deaf() => None,
            Work::Show(show) => {
                let Context { client, core, .. } = context;
                show.work(id, client, core, steps).map(Work::Show)
            }
            Work::Reloaded(rows) => context.reloaded(id, rows, steps),
            Work::Nat(work) => context.nat_answered(id, work, steps),
        };
        next.map(|what| Self { id, name, what })
    }
}

impl Context<'_> {
    /// Starts a request: does it at once, or returns the work left.
    // long: one short arm for each verb
    fn begin(&mut self, id: u64, request: Do, clients: usize) -> Result<Option<Work>, Refusal> {
        let show = |what| Ok(Some(Work::Show(Show::new(what))));
        match request {
            Do::TunnelCreate(create) => self.begin_tunnels(id, create).map(Some),
            Do::TunnelDelete(delete) => self.delete(id, delete),
            Do::SessionCreate(create) => self.begin_sessions(id, create).map(Some),
            Do::SessionDelete(name) => self.delete_session(id, name),
            Do::SessionAnswer(name) => self.answer(id, name),
            Do::SessionDrop(who) => self.begin_drop(&who).map(Some),
            Do::SessionSet(set) => self.set_session(id, &set),
            Do::CaptureSubscriber(wanted) => self.capture(id, &wanted),
            Do::CaptureStop(stop) => self.stop_capture(id, stop.capture),
            Do::ShowTunnels(_) => show(What::Tunnels),
            Do::ShowSessions(_) => show(What::Sessions),
            Do::ShowPeers(_) => show(What::Peers),
            Do::ShowEndedTunnels(_) => show(What::EndedTunnels),
            Do::ShowEndedSessions(_) => show(What::EndedSessions),
            Do::ShowSubscribers(filter) => show(match Sorted::new(&filter)? {
                Some(sorted) => What::Sorted(Box::new(sorted)),
                None => What::Subscribers(filter),
            }),
            Do::ShowWorst(wanted) => show(What::Worst(Worst::new(&wanted)?)),
            Do::ShowSubscriber(request) => show(self.subscriber(&request)?),
            Do::ShowEndedSubscribers(_) => show(What::EndedSubscribers {
                name: None,
                left: u32::MAX,
            }),
            Do::ShowKernel(_) => show(What::Kernel),
            Do::ShowPppoe(_) => show(What::Pppoe),
            Do::ShowNat(_) => {
                self.nat()?;
                show(What::Nat(show::NatTotals::default()))
            }
            Do::ShowNatSubscribers(_) => {
                self.nat()?;
                show(What::NatSubscribers(show::NatSubscribers::default()))
            }
            Do::ShowNatForwards(_) => {
                self.nat()?;
                show(What::NatForwards(show::NatForwards::default()))
            }
            Do::NatWho(port) => self.nat_who(port),
            Do::NatForwardAdd(wish) => self.nat_forward(wish),
            Do::NatForwardDelete(name) => self.nat_unforward(name),
            Do::ShowNow(_) => show(What::Now),
            Do::ShowHistory(wanted) => show(What::History(HistoryShow::new(wanted)?)),
            Do::ShowPools(_) => show(What::Pools),
            Do::ShowRadius(_) => show(What::Radius),
            Do::ShowFilters(_) => show(What::Filters),
            Do::ShowQueue(who) => show(self.queue(&who)?),
            Do::ShowFilter(filter) => show(self.filter(filter.name)?),
            Do::ShowBgpSummary(whose) => {
                self.speaker(whose.router.as_deref())?;
                show(What::Bgp(Some(BgpShow::Summary)))
            }
            Do::ShowBgpRib(whose) => {
                self.speaker(whose.router.as_deref())?;
                show(What::Bgp(Some(BgpShow::Rib)))
            }
            Do::ShowBgpNeighbors(asked) => {
                let speaker = self.speaker(asked.router.as_deref())?;
                show(What::Bgp(Some(BgpShow::neighbors(&asked, speaker)?)))
            }
            Do::ShowBgpEvents(asked) => {
                let now = self.core.now;
                let speaker = self.speaker(asked.router.as_deref())?;
                show(What::Bgp(Some(BgpShow::events(&asked, speaker, now)?)))
            }
            Do::ShowBgpRoute(asked) => {
                let speaker = self.speaker(asked.router.as_deref())?;
                show(What::Bgp(Some(BgpShow::routes(&asked, speaker)?)))
            }
            Do::BgpPeer(asked) => {
                let now = self.core.now;
                let speaker = self.speaker(asked.router.as_deref())?;
                let peers = peering::show::act(speaker, &asked, now)?;
                reply::done(self.client.out(), id, Some(peers));
                Ok(None)
            }
            Do::ShowCounters(_) => show(What::Counters),
            Do::ShowEventPoll(_) => show(What::Waits),
            Do::ShowEventTimers(whose) => {
                if whose.router.is_some() {
                    self.speaker(whose.router.as_deref())?;
                }
                show(What::Timers)
            }
            Do::ShowEventCpu(_) => show(What::Cpu),
            Do::ShowEventShards(_) => show(What::Shards),
            Do::ServerStats(_) => show(What::Server { clients }),
            Do::Reload(asked) => self.reload(id, asked),
            Do::Confirm(_) => self.confirm(id),
        }
    }

    fn speaker(&mut self, router: Option<&str>) -> Result<&mut Speaker, Refusal> {
        if let Some(router) = router {
            let message = format!("no router is called \"{router}\" here: a daemon has one only");
            return Err(Refusal::new(Code::NotFound, message));
        }
        match &mut self.core.routes {
            Some(routes) => {
                routes.touch();
                Ok(&mut routes.speaker)
            }
            None => {
                let message = "this daemon speaks no BGP: its configuration has no [bgp]";
                Err(Refusal::new(Code::Refused, message))
            }
        }
    }

    fn delete(&mut self, id: u64, delete: TunnelDelete) -> Result<Option<Work>, Refusal> {
        let tunnel = match (delete.tunnel, delete.all) {
            (Some(tunnel), false) => tunnel,
            (None, true) => {
                let (cursor, closed) = (0, 0);
                return Ok(Some(Work::DeleteAll { cursor, closed }));
            }
            (None, false) | (Some(_), true) => {
                let message = "name a tunnel, or say \"all\":true";
                return Err(Refusal::new(Code::BadRequest, message));
            }
        };
        let key = self.tunnel(tunnel, delete.version)?;
        let closed = self
            .core
            .edge
            .endpoint_mut()
            .l2tp_mut()
            .close_tunnel(key, self.core.now);
        reply::done(self.client.out(), id, Some(closed.into()));
        Ok(None)
    }

    fn delete_session(&mut self, id: u64, name: SessionName) -> Result<Option<Work>, Refusal> {
        let session = self.session(name)?;
        let closed = self
            .core
            .edge
            .endpoint_mut()
            .l2tp_mut()
            .close_session(session, self.core.now);
        reply::done(self.client.out(), id, Some(closed.into()));
        Ok(None)
    }

    /// Answers a call that the peer wants to be placed.
    fn answer(&mut self, id: u64, name: SessionName) -> Result<Option<Work>, Refusal> {
        let number = name.session;
        let session = self.session(name)?;
        if !self
            .core
            .edge
            .endpoint_mut()
            .l2tp_mut()
            .answer_call(session)
        {
            let message = format!("session {number} does not wait for an answer");
            return Err(Refusal::new(Code::Refused, message));
        }
        reply::done(self.client.out(), id, None);
        Ok(None)
    }

    fn delete_all(
        &mut self,
        id: u64,
        mut cursor: u32,
        mut closed: u64,
        steps: &mut Steps,
    ) -> Option<Work> {
        let Core { edge, now, .. } = &mut *self.core;
        let endpoint = edge.endpoint_mut().l2tp_mut();
        while steps.next() {
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

    fn tunnel(&self, id: u32, number: Option<u8>) -> Result<TunnelKey, Refusal> {
        let version = number.map(version).transpose()?;
        let found = self.core.edge.endpoint().l2tp().find_tunnel(id, version);
        found.ok_or_else(|| Refusal::new(Code::NotFound, format!("there is no tunnel {id}")))
    }

    fn session(&self, name: SessionName) -> Result<l2tp::SessionKey, Refusal> {
        let tunnel = self.tunnel(name.tunnel, name.version)?;
        self.core
            .edge
            .endpoint()
            .l2tp()
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

fn version(number: u8) -> Result<Version, Refusal> {
    match number {
        2 => Ok(Version::V2),
        3 => Ok(Version::V3),
        _ => Err(Refusal::new(Code::BadRequest, "version must be 2 or 3")),
    }
}
