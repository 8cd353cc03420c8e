//! Gathers the facts about this host, each once. Nothing is changed: configured ports are bound for a moment and never
//! listened on. Packets go only to configured RADIUS servers and neighbours, and to peers of the command line.
//!
//! [`host`] calls all of it; threads ask servers and try paths, so that a silent host delays no other.

mod files;
mod path;
mod ports;
mod radius;
mod system;
mod unit;

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::host::{BgpFacts, Clock, Host};
use crate::wants::Wants;

/// Where facts come from that the command line may name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sources<'a> {
    /// The user that runs the daemon; by default the unit's, or else the caller.
    pub(crate) user: Option<&'a str>,
    /// The unit file; by default that of `headend.service` that starts this configuration.
    pub(crate) unit: Option<&'a Path>,
    pub(crate) config: Option<&'a Path>,
    /// Whether to send nothing.
    pub(crate) is_offline: bool,
}

/// All facts that the checks of `wants` need.
///
/// # Errors
/// The given user does not exist, or the given unit file cannot be read.
pub(crate) fn host(wants: &Wants, sources: Sources<'_>) -> anyhow::Result<Host> {
    let unit = match sources.unit {
        Some(path) => Some(unit::read(path)?),
        None => unit::find(sources.config),
    };
    let user = system::user(sources.user, unit.as_ref())?;
    let running = wants.control.as_deref().and_then(ports::daemon_behind);
    let files = wants.files.iter();
    let files = files.map(|(path, used)| files::fact(path, *used, wants, &user));
    let (servers, (paths, paths_left)) = match sources.is_offline {
        true => (Vec::new(), (Vec::new(), 0)),
        false => std::thread::scope(|scope| {
            let paths = scope.spawn(|| path::facts(wants));
            let servers = radius::ask_all(wants);
            (servers, paths.join().unwrap_or_default())
        }),
    };
    Ok(Host {
        binary: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("headend")),
        tun: system::tun(),
        modules: system::modules(),
        sysctls: system::sysctls(),
        descriptors: system::descriptors(unit.as_ref()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        interfaces: system::interfaces(),
        ethernet: system::ethernet(&wants.ethernet),
        ports: ports::facts(wants),
        running,
        clock: clock(),
        servers,
        files: files.collect(),
        paths,
        paths_left,
        bgp: bgp(wants),
        user,
        unit,
    })
}

fn clock() -> Clock {
    let discipline = reactor::probe::discipline().ok();
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Clock {
        is_synchronised: discipline.map(|read| read.is_synchronised),
        offset: discipline.map_or(std::time::Duration::ZERO, |read| {
            std::time::Duration::from_nanos(read.offset.as_nanos())
        }),
        unix_s: now.map_or(0, |now| now.as_secs()),
    }
}

fn bgp(wants: &Wants) -> BgpFacts {
    use reactor::tcp::{TcpListener, TcpOptions};
    let local = || TcpListener::listen(([127, 0, 0, 1], 0).into(), TcpOptions::default(), 1);
    let error = |needed: bool, work: &dyn Fn() -> io::Result<()>| match needed {
        true => work().err(),
        false => None,
    };
    let peer = (IpAddr::from([127, 0, 0, 1]), 32);
    let options = TcpOptions {
        ttl: Some(255),
        ttl_min: Some(255),
        ..TcpOptions::default()
    };
    BgpFacts {
        md5: error(wants.bgp_signs, &|| local()?.set_md5(peer, b"doctor")),
        gtsm: error(wants.bgp_gtsm, &|| local()?.set_options(options)),
    }
}
