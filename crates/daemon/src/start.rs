//! Opens everything the configuration names, then drops all privileges.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::served::Edge;
use aaa::Pools;
use anyhow::{Context, Result};
use base::{Duration, Instant};
use edge::access::Served;
use filter::FilterSet;
use l2tp::Endpoint;
use reactor::{Interest, Reactor, Signals, clock};

use super::addresses::Addresses;
use super::audit;
use super::authority::{Authority, Radius, Rules};
use super::core::{Core, Handlers};
use super::dialler::Dialler;
use super::events::Summary;
use super::hangs::{self, Hangs};
use super::health::Health;
use super::history::History;
use super::input::Input;
use super::inside::Inside;
use super::log;
use super::notices::Notices;
use super::ports::Ports;
use super::rates::Rates;
use super::redial::Redial;
use super::reload;
use super::rest::Rest;
use super::routes::BgpService;
use super::running::Running;
use super::server::Server;
use super::shards::{self, Shards};
use super::show::past;
use super::snmp::Snmp;
use super::sockets::{End, Sockets};
use super::source::Source;
use super::supervisor::{self, Supervisor};
use super::translation::{self, Translation};
use super::turn::Daemon;
use super::waiting::OpenedFor;
use super::watchdog::Watchdog;
use crate::config::{Event, Settings};

/// Makes a daemon that is ready to run.
///
/// # Errors
/// A resource could not be opened; the error names it.
pub(super) fn start(settings: &Settings, config: &Path) -> Result<Daemon> {
    raise_limits();
    let event = &settings.event;
    let hang = Some(event.hang).filter(|hang| *hang > Duration::ZERO);
    let mut reactor = new_reactor(event, hang)?;
    let handlers = Handlers::open(&mut reactor);
    let signals = signals(&mut reactor)?;
    let sockets = open_sockets(settings, &mut reactor)?;
    let server = open_server(settings, &mut reactor)?;
    let authority = authority(settings, &mut reactor)?;
    let (inside, queues) = Inside::open(&settings.subscribers, &mut reactor).context("tun")?;
    let routes = routes(settings, &mut reactor)?;
    let interfaces = settings.pppoe_interfaces();
    let ports = Ports::open(&interfaces, event, 0).context("pppoe")?;
    let notices = notices(&inside, routes.as_deref(), &ports, &mut reactor)?;
    let seats = shards::seats(event, &sockets, &interfaces, queues).context("event.shards")?;
    let (edge, translation) = edge(settings)?;
    audit::start(settings.audit.as_ref())?;
    give_up_privileges(settings, &inside)?;
    let shards = shards(settings, &edge, &sockets, seats, &mut reactor)?;
    let now = log_start(settings);
    let running = running(settings, config, &mut reactor)?;
    let mut core = Core {
        reactor,
        edge,
        health: Health::default(),
        sockets,
        ports,
        notices,
        inside,
        shards,
        authority,
        routes,
        translation,
        names: crate::config::names(),
        client: settings.subscribers.client.clone().map(Dialler::new),
        redial: redial(settings),
        opened_for: OpenedFor::default(),
        now,
        started: now,
        stop_at: None,
        timers: settings.l2tp.timers,
        running,
        history: History::none(),
        rates: Rates::default(),
        supervisor: Supervisor::open(),
    };
    set_filters(settings, &mut core);
    core.bind_ports();
    core.history = history(&mut core);
    let hangs = hang.map(|limit| Hangs::start(core.reactor.pulse(), limit, hangs::log));
    let hangs = hangs.transpose().context("event.hang_ms")?;
    Ok(Daemon {
        core,
        server,
        summary: Summary::default(),
        signals,
        input: Input::new(event.batch, event.slice),
        rest: Rest::new(),
        composed: Vec::with_capacity(2048),
        handlers,
        span: event.slice,
        is_behind: false,
        snmp: snmp(settings, now),
        watchdog: Watchdog::new(hang),
        hangs,
        failure: None,
        waits_failed: 0,
    })
}

/// The SNMP agent, which connects in the first turn.
fn snmp(settings: &Settings, now: Instant) -> Option<Box<Snmp>> {
    let snmp = settings.snmp.as_ref()?;
    Some(Box::new(Snmp::new(snmp, settings.bgp.is_some(), now)))
}

/// Starts the packet threads.
fn shards(
    settings: &Settings,
    edge: &Edge,
    sockets: &Sockets,
    seats: Vec<shards::Seat>,
    reactor: &mut Reactor,
) -> Result<Shards> {
    let cookie = settings.l2tp.cookie_len;
    Shards::start(&settings.event, cookie, edge, sockets, seats, reactor).context("event.shards")
}

fn signals(reactor: &mut Reactor) -> Result<Signals> {
    let signals = Signals::new().context("cannot take signals")?;
    let source = Source::Signals.to_bits();
    reactor.add(&signals, "signals", source, Interest::READ)?;
    Ok(signals)
}

fn set_filters(settings: &Settings, core: &mut Core) {
    if let Some(file) = &settings.subscribers.filters {
        let set = FilterSet::clone(&file.set);
        core.edge.filters_mut().replace(set);
    }
    core.edge.filters_mut().set_logs(log::logs_packets());
}

/// The line that our PPPoE client dials.
fn redial(settings: &Settings) -> Redial {
    let client = settings.subscribers.client.as_ref();
    let Some(line) = client.and_then(|client| client.pppoe.clone()) else {
        return Redial::default();
    };
    let dial = pppoe::Dial {
        service_name: line.service,
        ac_name: line.ac_name,
        ..pppoe::Dial::default()
    };
    Redial::new(line.interface, line.vlans, dial)
}

/// Starts to record. Steps end with whole seconds of the clock on the wall.
fn history(core: &mut Core) -> History {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.map_or(0, |since| u64::from(since.subsec_nanos()));
    let left = Duration::from_nanos(1_000_000_000 - since);
    let (series, reading) = past::series(core);
    History::new(series, &reading, clock::now() + left)
}

fn new_reactor(event: &Event, hang: Option<Duration>) -> Result<Reactor> {
    let mut reactor = Reactor::new(event.poller, event.descriptors)
        .with_context(|| format!("event.poller: this kernel has no {}", event.poller))?;
    // A handler that hung is recorded when it returns, so that the log says so.
    reactor.set_overrun(hang.map_or(event.overrun, |hang| hang.min(event.overrun)));
    Ok(reactor)
}

fn running(settings: &Settings, config: &Path, reactor: &mut Reactor) -> Result<Running> {
    let running = Running::new(config, settings.clone()).context("cannot start")?;
    let source = Source::Loader.to_bits();
    reactor.add(running.loader.waker(), "reload", source, Interest::READ)?;
    Ok(running)
}

/// Notifications of the kernel, if anything is compared with what it has.
fn notices(
    inside: &Inside,
    routes: Option<&BgpService>,
    ports: &Ports,
    reactor: &mut Reactor,
) -> Result<Notices> {
    let learned = routes.and_then(BgpService::netlink_port).transpose()?;
    let clients = inside.clients.as_ref().map(Addresses::netlink_port);
    let own = Vec::from_iter(learned.into_iter().chain(clients.transpose()?));
    Ok(
        match inside.keeper.is_some() || ports.len() > 0 || !own.is_empty() {
            true => Notices::open(own, reactor).context("netlink")?,
            false => Notices::default(),
        },
    )
}

fn raise_limits() {
    if let Err(error) = reactor::limits::raise_descriptor_limit() {
        tracing::warn!(%error, "cannot raise the limit on descriptors");
    }
}

fn give_up_privileges(settings: &Settings, inside: &Inside) -> Result<()> {
    let bgp = settings.bgp.as_ref();
    let installs = bgp.is_some_and(|bgp| bgp.install.is_some());
    // Addresses and routes are compared with what is wanted while the daemon runs, and a lost device
    // is made again.
    let dropped = match inside.keeper.is_some() || installs {
        true => reactor::drop_capabilities_but_net_admin(),
        false => reactor::drop_capabilities(),
    };
    dropped.context("cannot give up privileges")
}

/// Logs the start, and returns its time.
fn log_start(settings: &Settings) -> Instant {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        pid = std::process::id(),
        control = %settings.control.socket.display(),
        poller = %settings.event.poller,
        timers = %settings.l2tp.timers,
        shards = settings.event.shards,
        "started"
    );
    clock::now()
}

fn authority(settings: &Settings, reactor: &mut Reactor) -> Result<Authority> {
    let users = settings.subscribers.users.as_ref();
    let users = users.map(|file| Arc::clone(&file.users));
    let radius = settings.subscribers.radius.as_ref();
    let radius = radius.map(|radius| Radius::open(radius, random()?, reactor, clock::now()));
    let subscribers = &settings.subscribers;
    let seed = u64::from_ne_bytes(random()?);
    let rules = Rules::new(Arc::clone(&subscribers.realms), subscribers.throttle, seed);
    Ok(Authority::new(users, radius.transpose()?, rules))
}

fn routes(settings: &Settings, reactor: &mut Reactor) -> Result<Option<Box<BgpService>>> {
    let Some(bgp) = &settings.bgp else {
        return Ok(None);
    };
    let pools = reload::announced_networks(&settings.subscribers);
    let routes = BgpService::open(bgp, pools, (random()?, settings.event.slice), reactor)?;
    Ok(Some(Box::new(routes)))
}

/// The edge, and the part of its translation of addresses that is not in it.
fn edge(settings: &Settings) -> Result<(Edge, Option<Box<Translation>>)> {
    let subscribers = &settings.subscribers;
    let l2tp = Endpoint::new(settings.l2tp.clone(), random()?);
    let config = settings.pppoe.as_ref().map(|pppoe| pppoe.config.clone());
    let pppoe = pppoe::Endpoint::new(config.unwrap_or_default(), random()?);
    let endpoint = Served::new(l2tp, pppoe);
    let own = vec![subscribers.edge.address];
    let pools = Pools::new(
        subscribers.pools.clone(),
        own,
        u64::from_ne_bytes(random()?),
    )
    .map_err(|faults| anyhow::anyhow!("pools: {}", faults[0]))?;
    let mut edge = Edge::new(subscribers.edge.clone(), endpoint, pools, random()?);
    let prefixes = subscribers.prefix_pools.clone();
    let loaded = edge.prefixes_mut().reload(prefixes);
    loaded.map_err(|faults| anyhow::anyhow!("prefix pools: {}", faults[0]))?;
    let nat = subscribers.nat.as_ref();
    let translation = translation::start(nat, &mut edge, random()?)?;
    Ok((edge, translation))
}

fn random<const N: usize>() -> Result<[u8; N]> {
    let mut octets = [0; N];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut octets))
        .context("no random numbers from /dev/urandom")?;
    Ok(octets)
}

fn open_server(settings: &Settings, reactor: &mut Reactor) -> Result<Server> {
    let inherited = supervisor::control_socket().context("LISTEN_FDS")?;
    Server::open(&settings.control, inherited, reactor)
        .with_context(|| format!("control socket {}", settings.control.socket.display()))
}

fn open_sockets(settings: &Settings, reactor: &mut Reactor) -> Result<Sockets> {
    let (lns, lac) = (settings.lns.as_ref(), settings.lac.as_ref());
    let mut sockets = Sockets::new(lns, lac);
    for (end, role) in [(End::Lns, lns), (End::Lac, lac)] {
        let Some(role) = role else { continue };
        let mut opened = 0;
        for listen in &role.listen {
            let is_open = sockets
                .open_shared(end, *listen, &settings.event, reactor)
                .with_context(|| format!("cannot listen on {}", listen.addr))?;
            opened += usize::from(is_open);
        }
        anyhow::ensure!(opened > 0, "no address of [lac] could be bound");
    }
    Ok(sockets)
}
