//! State that the loop shares with everything it serves: the reactor, the endpoint, the sockets,
//! and the accounts of the loop's time.

use std::io;

use crate::served::Edge;
use base::Instant;
use reactor::netlink::Notice;
use reactor::{HandlerId, Reactor};

use super::authority::Authority;
use super::dialler::Dialler;
use super::health::Health;
use super::history::History;
use super::inside::Inside;
use super::notices::Notices;
use super::ports::Ports;
use super::rates::Rates;
use super::redial::Redial;
use super::routes::BgpService;
use super::running::Running;
use super::shards::Shards;
use super::sockets::Sockets;
use super::source::Source;
use super::supervisor::{Facts, Supervisor};
use super::translation::Translation;
use super::waiting::OpenedFor;

/// The accounts of the loop's time, one for each kind of work.
pub(super) struct Handlers {
    pub(super) read: HandlerId,
    pub(super) port_read: HandlerId,
    pub(super) port_input: HandlerId,
    pub(super) input: HandlerId,
    pub(super) timers: HandlerId,
    pub(super) control: HandlerId,
    pub(super) output: HandlerId,
    pub(super) write: HandlerId,
    pub(super) events: HandlerId,
    pub(super) tun_read: HandlerId,
    pub(super) tun_write: HandlerId,
    pub(super) queues: HandlerId,
    pub(super) authority: HandlerId,
    pub(super) radius: HandlerId,
    pub(super) addresses: HandlerId,
    pub(super) shards: HandlerId,
    pub(super) signals: HandlerId,
    pub(super) bgp: HandlerId,
    pub(super) reload: HandlerId,
    pub(super) netlink: HandlerId,
    pub(super) mend: HandlerId,
    pub(super) translation: HandlerId,
    pub(super) history: HandlerId,
    pub(super) snmp: HandlerId,
}

impl Handlers {
    /// The handler of a source that is ready.
    pub(super) fn of(&self, source: Source) -> HandlerId {
        match source {
            Source::Udp(_) => self.read,
            Source::Port(_) => self.port_read,
            Source::Tun(_) => self.tun_read,
            Source::Shards => self.shards,
            Source::Radius(_) | Source::Disconnect => self.radius,
            Source::Bgp => self.bgp,
            Source::Kernel => self.netlink,
            Source::Loader => self.reload,
            Source::Snmp => self.snmp,
            Source::Store => self.mend,
            Source::Listener | Source::Client(_) => self.control,
            Source::Signals => self.signals,
        }
    }

    pub(super) fn open(reactor: &mut Reactor) -> Self {
        Self {
            read: reactor.handler("udp read"),
            port_read: reactor.handler("pppoe read"),
            port_input: reactor.handler("pppoe input"),
            input: reactor.handler("l2tp input"),
            timers: reactor.handler("l2tp timers"),
            control: reactor.handler("control"),
            output: reactor.handler("l2tp output"),
            write: reactor.handler("udp write"),
            events: reactor.handler("events"),
            tun_read: reactor.handler("tun to tunnels"),
            tun_write: reactor.handler("tun write"),
            queues: reactor.handler("queues"),
            authority: reactor.handler("authentication"),
            radius: reactor.handler("radius"),
            addresses: reactor.handler("addresses of clients"),
            shards: reactor.handler("left by other cores"),
            signals: reactor.handler("signals"),
            // The name that the speaker books its reading on.
            bgp: reactor.handler("bgp read"),
            reload: reactor.handler("reload"),
            netlink: reactor.handler("netlink"),
            mend: reactor.handler("sources"),
            translation: reactor.handler("nat log"),
            history: reactor.handler("history"),
            snmp: reactor.handler("snmp"),
        }
    }
}

/// The state that control clients act on.
pub(super) struct Core {
    pub(super) reactor: Reactor,
    pub(super) edge: Edge,
    /// The sources that have failed.
    pub(super) health: Health,
    pub(super) sockets: Sockets,
    /// The interfaces of PPPoE.
    pub(super) ports: Ports,
    /// Notifications of the kernel.
    pub(super) notices: Notices,
    pub(super) inside: Inside,
    /// The additional packet threads.
    pub(super) shards: Shards,
    pub(super) authority: Authority,
    /// The BGP speaker.
    pub(super) routes: Option<Box<BgpService>>,
    /// The translation of addresses, beside the edge.
    pub(super) translation: Option<Box<Translation>>,
    /// Names of protocols and services, read once at start.
    pub(super) names: filter::Names,
    /// User name and password of sessions that we open as a client.
    pub(super) client: Option<Dialler>,
    /// The PPPoE session in which we are the client.
    pub(super) redial: Redial,
    /// Tunnels that were opened for one session.
    pub(super) opened_for: OpenedFor,
    /// The time at which the turn started.
    pub(super) now: Instant,
    pub(super) started: Instant,
    /// The latest time of the shutdown; set once a signal requested it.
    pub(super) stop_at: Option<Instant>,
    pub(super) timers: base::timer::TimerKind,
    /// The configuration in force.
    pub(super) running: Running,
    /// What was recorded of the last day.
    pub(super) history: History,
    /// What lists of subscribers by rate have read.
    pub(super) rates: Rates,
    /// The service manager that started this process.
    pub(super) supervisor: Supervisor,
}

impl Core {
    /// Reads notifications of the kernel.
    pub(super) fn take_notices(&mut self) -> io::Result<()> {
        for notice in self.notices.read()?.to_vec() {
            self.notice(&notice);
        }
        Ok(())
    }

    /// Passes a notification to all that compare what they want with what the kernel has.
    pub(super) fn notice(&mut self, notice: &Notice) {
        if matches!(
            notice,
            Notice::Link(_) | Notice::LinkGone(_) | Notice::Overflow
        ) {
            self.ports.doubt();
        }
        if let Some(keeper) = &mut self.inside.keeper {
            keeper.notice(notice, self.now);
        }
        if let Some(clients) = &mut self.inside.clients {
            clients.notice(notice, self.now);
        }
        if let Some(routes) = &mut self.routes {
            routes.notice(notice, self.now);
        }
    }

    /// The state that the service manager shows.
    fn facts(&self) -> Facts {
        let subscribers = self.edge.counts().subscribers;
        Facts {
            subscribers: u32::try_from(subscribers).unwrap_or(u32::MAX),
            peers: self.routes.as_ref().map(|routes| routes.established()),
            stops_within: self.stop_at.map(|at| at.since(self.now)),
        }
    }

    /// Reports to the service manager that everything is open.
    pub(super) fn report_ready(&mut self) {
        let facts = self.facts();
        self.supervisor.ready(facts, self.now);
    }

    /// Reports to the service manager, at the end of a turn.
    pub(super) fn report(&mut self) {
        if self.supervisor.is_there() {
            let facts = self.facts();
            self.supervisor.turn(facts, self.now);
        }
    }

    /// Closes the tunnels that were opened for a session that failed; returns whether there were any.
    pub(super) fn close_failed(&mut self) -> bool {
        let mut any = false;
        while let Some(tunnel) = self.opened_for.next_failed() {
            let endpoint = self.edge.endpoint_mut().l2tp_mut();
            any |= endpoint.close_tunnel_of_failed(tunnel, self.now);
        }
        any
    }
}
