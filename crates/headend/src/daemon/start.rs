//! Opens everything the configuration names, then gives up all privileges.

use std::fs::File;
use std::io::Read;

use anyhow::{Context, Result};
use l2tp::Endpoint;
use reactor::{Interest, Reactor, Signals, clock};

use super::core::{Accounts, Core};
use super::events::Summary;
use super::input::Input;
use super::rest::Rest;
use super::server::Server;
use super::sockets::{End, Sockets};
use super::source::Source;
use super::turn::Daemon;
use crate::config::Settings;

/// Makes a daemon that is ready to run.
///
/// # Errors
/// What could not be opened, and where.
pub(super) fn start(settings: &Settings) -> Result<Daemon> {
    let signals = Signals::new().context("cannot take signals")?;
    if let Err(error) = reactor::limits::raise_descriptor_limit() {
        tracing::warn!(%error, "the limit on descriptors stays as it is");
    }
    let event = &settings.event;
    let mut reactor = Reactor::new(event.poller, event.descriptors)
        .with_context(|| format!("event.poller: this kernel has no {}", event.poller))?;
    let accounts = Accounts::open(&mut reactor);
    reactor.add(
        &signals,
        "signals",
        Source::Signals.to_bits(),
        Interest::READ,
    )?;
    let sockets = open_sockets(settings, &mut reactor)?;
    let server = Server::open(&settings.control, &mut reactor)
        .with_context(|| format!("control socket {}", settings.control.socket.display()))?;
    reactor::drop_capabilities().context("cannot give up privileges")?;

    let mut seed = [0; 32];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut seed))
        .context("no random numbers from /dev/urandom")?;
    let now = clock::now();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        pid = std::process::id(),
        control = %settings.control.socket.display(),
        poller = %event.poller,
        timers = %settings.l2tp.timers,
        "started"
    );
    let core = Core {
        reactor,
        endpoint: Endpoint::new(settings.l2tp.clone(), seed),
        sockets,
        now,
        started: now,
        stop_at: None,
        timers: settings.l2tp.timers,
    };
    Ok(Daemon {
        core,
        server,
        summary: Summary::default(),
        signals,
        input: Input::new(event.batch),
        rest: Rest::new(),
        composed: Vec::with_capacity(2048),
        accounts,
        shutdown_wait: settings.shutdown_wait,
    })
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
