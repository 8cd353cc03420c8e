//! Reads the sections of the file, each with its keys. [`read`] calls all of them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::Duration;
use base::timer::TimerKind;
use l2tp::{ConfigIds, OutgoingCalls, PeerLookup, Pseudowire};
use reactor::{PollerKind, StoreKind};
use toml::de::DeTable;
use tracing::level_filters::LevelFilter;
use wire::l2tp::DigestType;

use super::peer::{self, PeerKeys};
use super::{
    Control, Event, Log, LogFormat, LogTo, Pppoe, Role, Settings, Sockets, Steer, Subscribers,
    audit, bgp, listen, pppoe, snmp, subscribers, tunnel,
};
use settings::{Faults, Notes, Record};
use settings::{Section, set};

const SECTIONS: &[&str] = &[
    "control",
    "lns",
    "lac",
    "pppoe",
    "bgp",
    "l2tp",
    "ppp",
    "pool",
    "prefix_pool",
    "ipv6",
    "users",
    "filter",
    "garden",
    "tunnel",
    "radius",
    "realm",
    "throttle",
    "queue",
    "client",
    "tun",
    "snmp",
    "nat",
    "event",
    "limits",
    "log",
    "audit",
];

/// Reads every section. Any fault that it reports makes the settings unusable.
pub(super) fn read(root: &DeTable<'_>, path: &Path, notes: &Notes<'_>) -> Option<Settings> {
    settings::only_sections(root, 0, SECTIONS, notes);
    let mut config = l2tp::Config::default();
    let control = control(root, notes);
    let mut keys: Vec<PeerKeys> = Vec::new();
    let shutdown_wait = shared(root, path, notes, &mut config, &mut keys);
    let (lns, lac) = roles(root, path, notes, &mut keys);
    peer::merge(&keys, &mut config, notes);
    config.accept = lns.is_some();
    let (event, shards_at) = event(root, notes, &mut config, [&lns, &lac]);
    limits(root, notes, &mut config);
    let log = log(root, notes);
    let audit = audit::read(root, path, notes);
    let bgp = bgp::read(root, path, notes);
    let snmp = snmp::read(root, notes);
    let pppoe = pppoe::read(root, notes, &config.host_name);
    let own: Vec<SocketAddr> = (lns.iter().flat_map(|lns| &lns.listen))
        .map(|listen| listen.addr)
        .collect();
    let served = pppoe.iter().flat_map(|pppoe| &pppoe.interfaces);
    let around = tunnel::Around {
        own: &own,
        interfaces: &served.map(|one| &*one.name).collect::<Vec<_>>(),
    };
    let mut subscribers = subscribers::read(root, path, notes, &config.host_name, around);
    subscribers.edge.paths = event.shards;
    if let Some(nat) = &subscribers.nat
        && let Err(why) = nat.check_for(event.shards)
    {
        notes.at(shards_at, "event.shards", why.to_string());
    }
    subscribers.edge.interfaces = interfaces(pppoe.as_ref(), &subscribers);
    subscribers.edge.by_session = event.steer == Steer::Session;
    subscribers.edge.tells_networks = bgp.as_ref().is_some_and(|bgp| bgp.announce.subscribers);
    if notes.is_empty()
        && let Err(fault) = config.validate()
    {
        notes.whole(format!("l2tp.{}", fault.key), fault.message);
    }
    Some(Settings {
        control: control?,
        lns,
        lac,
        l2tp: config,
        subscribers,
        pppoe,
        bgp,
        snmp,
        event,
        log,
        audit,
        shutdown_wait,
        advice: Faults::default(),
        record: Record::default(),
    })
}

/// The names of the PPPoE interfaces by their ports.
fn interfaces(pppoe: Option<&Pppoe>, subscribers: &Subscribers) -> Arc<[Box<str>]> {
    let all = super::pppoe_interfaces(pppoe, subscribers.client.as_ref());
    all.into_iter().map(|one| one.name.into()).collect()
}

fn control(root: &DeTable<'_>, notes: &Notes<'_>) -> Option<Control> {
    if !root.contains_key("control") {
        notes.whole(
            "control",
            "is missing; give [control] with socket = \"/run/headend.sock\"",
        );
        return None;
    }
    let mut section = Section::open(root, "control", notes);
    let remedy = "give the path of the control socket: socket = \"/run/headend.sock\"";
    section.require("socket", remedy);
    // sun_path holds 108 octets (unix(7)). Creating the socket needs a suffix to the name.
    let socket = section.sized("socket", 1..=99);
    let clients = section
        .integer("clients", 1..=1024, "connections")
        .map_or(64, |n| n.value);
    section.finish();
    Some(Control {
        socket: PathBuf::from(socket?.value),
        clients: clients as usize,
    })
}

fn roles(
    root: &DeTable<'_>,
    path: &Path,
    notes: &Notes<'_>,
    keys: &mut Vec<PeerKeys>,
) -> (Option<Role>, Option<Role>) {
    if !["lns", "lac", "pppoe", "client", "bgp"]
        .iter()
        .any(|name| root.contains_key(*name))
    {
        let message = "are all missing; give [lns] to accept tunnels, [lac] to originate them, [pppoe] to serve Ethernet \
                       interfaces, [bgp] to exchange routes, or several";
        notes.whole("lns, lac, pppoe, bgp", message);
    }
    let mut bound = Vec::new();
    for (name, default) in [("lns", &[][..]), ("lac", &["0.0.0.0:0", "[::]:0"][..])] {
        if !root.contains_key(name) {
            bound.push(None);
            continue;
        }
        let mut section = Section::open(root, name, notes);
        let own = listen::read(&mut section, default);
        let earlier: &[_] = bound
            .iter()
            .flatten()
            .next()
            .map_or(&[], |b: &listen::Bound| &b.addrs);
        listen::refuse_overlap(&own.addrs, earlier, &mut section);
        keys.push(peer::read(name, &mut section, path));
        section.finish();
        bound.push(Some(own));
    }
    let mut roles = bound
        .into_iter()
        .map(|bound| bound.map(listen::Bound::role));
    (roles.next().flatten(), roles.next().flatten())
}

/// Reads `[l2tp]`. Returns how long a shutdown waits.
fn shared(
    root: &DeTable<'_>,
    path: &Path,
    notes: &Notes<'_>,
    config: &mut l2tp::Config,
    keys: &mut Vec<PeerKeys>,
) -> Duration {
    let mut section = Section::open(root, "l2tp", notes);
    keys.push(peer::read("l2tp", &mut section, path));
    // RFC 2661 4.4.3: a name AVP holds at most 255 octets.
    if let Some(name) = section.sized("vendor_name", 0..=255) {
        config.vendor_name = name.value.to_owned();
    }
    if let Some(id) = section.integer("router_id", 0..=i64::from(u32::MAX), "") {
        config.router_id = id.value as u32;
    }
    retransmission(&mut section, config);
    set(section.seconds("hold_s", 0.0..=3600.0), &mut config.hold);
    set(
        section.seconds("setup_timeout_s", 1.0..=3600.0),
        &mut config.setup_timeout,
    );
    set(section.flag("tie_breaker"), &mut config.tie_breaker);
    methods(&mut section, config, notes);
    let mut wait = Duration::from_secs(5);
    set(section.seconds("shutdown_wait_s", 0.0..=60.0), &mut wait);
    section.finish();
    wait
}

/// Reads the keys that choose among methods, and the length of cookies.
fn methods(section: &mut Section, config: &mut l2tp::Config, notes: &Notes<'_>) {
    let config_ids = [
        ("off", ConfigIds::Off),
        ("first-free", ConfigIds::FirstFree),
        ("probe", ConfigIds::Probe),
    ];
    set(
        section.choice("config_ids", &config_ids),
        &mut config.config_ids,
    );
    let look_ups = [("hash", PeerLookup::Hash), ("list", PeerLookup::List)];
    set(
        section.choice("peer_lookup", &look_ups),
        &mut config.peer_lookup,
    );
    let calls = [
        ("refuse", OutgoingCalls::Refuse),
        ("answer", OutgoingCalls::Answer),
        ("ask", OutgoingCalls::Ask),
    ];
    set(
        section.choice("outgoing_calls", &calls),
        &mut config.outgoing_calls,
    );
    let digests = [
        ("hmac-md5", DigestType::HmacMd5),
        ("hmac-sha1", DigestType::HmacSha1),
    ];
    set(section.choice("digest", &digests), &mut config.digest);
    if let Some(cookie) = section.integer("cookie_bytes", 0..=8, "bytes") {
        if !matches!(cookie.value, 0 | 4 | 8) {
            let message = format!(
                "{} is not a cookie's length; it can be 0, 4 or 8",
                cookie.value
            );
            section.fault(cookie.at, "cookie_bytes", message);
        }
        config.cookie_len = cookie.value as u8;
    }
    let wires = [
        ("ppp", Pseudowire::Ppp),
        ("ethernet", Pseudowire::Ethernet),
        ("vlan", Pseudowire::Vlan),
    ];
    if let Some(list) = section.choices("pseudowires", &wires) {
        pseudowires(&list, section, notes);
    }
}

/// Checks the types of pseudowires. Calls of a type whose frames nothing here carries are refused, wherever it is
/// listed.
fn pseudowires(list: &[Pseudowire], section: &Section, notes: &Notes<'_>) {
    let at = section.place("pseudowires").unwrap_or(section.at());
    if !list.contains(&Pseudowire::Ppp) {
        let message = "has no type whose frames are carried; write pseudowires = [\"ppp\"]";
        section.fault(at, "pseudowires", message);
    } else if list.len() > 1 {
        let message = "\"ethernet\" and \"vlan\" have no effect: calls of these types are refused, because nothing \
                       carries their frames; write pseudowires = [\"ppp\"]";
        notes.advise(at, section.path("pseudowires"), message);
    }
}

fn retransmission(section: &mut Section, config: &mut l2tp::Config) {
    let first = section.seconds("retransmit_first_s", 0.05..=60.0);
    let cap = section.seconds("retransmit_cap_s", 0.05..=600.0);
    if let Some(cap) = &cap
        && cap.value < Duration::from_secs(8)
    {
        let message = "is below 8 seconds, which RFC 2661 5.8 forbids; it must be 8 to 600 seconds";
        section.fault(cap.at, "retransmit_cap_s", message);
    }
    set(first, &mut config.retransmit.first);
    set(cap, &mut config.retransmit.cap);
    if let Some(first) = first
        && first.value > config.retransmit.cap
    {
        let cap = config.retransmit.cap.as_secs_f64();
        let message = format!("is above retransmit_cap_s, which is {cap}; it must be that or less");
        section.fault(first.at, "retransmit_first_s", message);
    }
    if let Some(tries) = section.integer("retransmit_tries", 1..=255, "") {
        config.retransmit.tries = tries.value as u8;
    }
}

fn event(
    root: &DeTable<'_>,
    notes: &Notes<'_>,
    config: &mut l2tp::Config,
    [lns, lac]: [&Option<Role>; 2],
) -> (Event, usize) {
    let mut section = Section::open(root, "event", notes);
    let mut shards_at = section.at();
    let mut event = Event::default();
    let pollers = PollerKind::ALL.map(|kind| (kind.name(), kind));
    set(section.choice("poller", &pollers), &mut event.poller);
    let stores = StoreKind::ALL.map(|kind| (kind.name(), kind));
    set(
        section.choice("descriptors", &stores),
        &mut event.descriptors,
    );
    let timers = TimerKind::ALL.map(|kind| (kind.name(), kind));
    set(section.choice("timers", &timers), &mut config.timers);
    if let Some(tick) = section.integer("tick_ms", 1..=1000, "milliseconds") {
        config.tick = Duration::from_millis(tick.value as u64);
    }
    let buffer = 4096..=(1 << 30);
    if let Some(bytes) = section.integer("receive_buffer_bytes", buffer.clone(), "bytes") {
        event.receive_buffer_bytes = bytes.value as usize;
    }
    if let Some(bytes) = section.integer("send_buffer_bytes", buffer, "bytes") {
        event.send_buffer_bytes = bytes.value as usize;
    }
    if let Some(batch) = section.integer("batch", 1..=1024, "datagrams") {
        event.batch = batch.value as usize;
    }
    if let Some(slice) = section.integer("slice_ms", 1..=1_000, "milliseconds") {
        event.slice = Duration::from_millis(slice.value as u64);
    }
    if let Some(overrun) = section.integer("overrun_ms", 1..=60_000, "milliseconds") {
        event.overrun = Duration::from_millis(overrun.value as u64);
    }
    if let Some(hang) = section.integer("hang_ms", 0..=3_600_000, "milliseconds") {
        event.hang = Duration::from_millis(hang.value as u64);
        if (1..10).contains(&hang.value) {
            let message = "must be at least 10 milliseconds; 0 turns it off";
            section.fault(hang.at, "hang_ms", message);
        }
    }
    if let Some(shards) = section.integer("shards", 1..=64, "cores") {
        event.shards = shards.value as u16;
        shards_at = shards.at;
        for (role, name) in [(lns, "lns"), (lac, "lac")] {
            let sockets = role.as_ref().map(|role| role.sockets);
            if event.shards > 1 && sockets == Some(Sockets::PerTunnel) {
                let message = format!(
                    "more than 1 needs sockets that tunnels share, and [{name}] has sockets = \"per-tunnel\"; \
                     leave out one of the two"
                );
                section.fault(shards.at, "shards", message);
            }
        }
    }
    let steers = [("session", Steer::Session), ("peer", Steer::Peer)];
    set(section.choice("steer", &steers), &mut event.steer);
    section.finish();
    (event, shards_at)
}

fn limits(root: &DeTable<'_>, notes: &Notes<'_>, config: &mut l2tp::Config) {
    let mut section = Section::open(root, "limits", notes);
    let limits = &mut config.limits;
    let million = 1 << 20;
    if let Some(number) = section.integer("half_open_flood", 0..=million, "") {
        limits.half_open_flood = number.value as u32;
    }
    for (key, highest, limit) in [
        ("tunnels", million, &mut limits.tunnels),
        ("half_open", million, &mut limits.half_open),
        (
            "half_open_per_source",
            million,
            &mut limits.half_open_per_source,
        ),
        ("sessions", million, &mut limits.sessions),
        (
            "sessions_per_tunnel",
            65_535,
            &mut limits.sessions_per_tunnel,
        ),
        ("held", million, &mut limits.held),
        ("history", 65_536, &mut limits.history),
    ] {
        if let Some(number) = section.integer(key, 1..=highest, "") {
            *limit = number.value as u32;
        }
    }
    section.finish();
}

fn log(root: &DeTable<'_>, notes: &Notes<'_>) -> Log {
    let mut section = Section::open(root, "log", notes);
    let mut log = Log {
        level: LevelFilter::INFO,
        to: LogTo::Auto,
        format: LogFormat::Text,
    };
    let levels = [
        ("off", LevelFilter::OFF),
        ("error", LevelFilter::ERROR),
        ("warn", LevelFilter::WARN),
        ("info", LevelFilter::INFO),
        ("debug", LevelFilter::DEBUG),
        ("trace", LevelFilter::TRACE),
    ];
    set(section.choice("level", &levels), &mut log.level);
    let sinks = [
        ("auto", LogTo::Auto),
        ("stderr", LogTo::Stderr),
        ("journal", LogTo::Journal),
    ];
    set(section.choice("to", &sinks), &mut log.to);
    set(
        section.choice(
            "format",
            &[("text", LogFormat::Text), ("json", LogFormat::Json)],
        ),
        &mut log.format,
    );
    section.finish();
    log
}

impl Default for Event {
    fn default() -> Self {
        Self {
            poller: PollerKind::Epoll,
            descriptors: StoreKind::Slab,
            receive_buffer_bytes: 64 << 20,
            send_buffer_bytes: 4 << 20,
            batch: 64,
            slice: Duration::from_millis(2),
            overrun: Duration::from_millis(20),
            hang: Duration::from_secs(1),
            shards: 1,
            steer: Steer::Session,
        }
    }
}
