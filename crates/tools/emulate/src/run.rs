//! A run at full speed or by the real clock, with a progress bar and clients of the control socket.

use std::path::Path;
use std::time::{Duration as Wall, Instant as Moment};

use anyhow::{Context, Result};
use base::Duration;
use emulate::{Emulation, Scenario};
use indicatif::{ProgressBar, ProgressStyle};
use reactor::{Interest, PollerKind, Reactor, Signals, StoreKind};

use super::control::{Desk, Rest};
use super::running::Running;
use ::control::service::{Service, Socket};

/// Instants that are processed before clients and signals are served.
const TURNS: usize = 256;
/// The longest time that clients and signals may have to wait.
const SLICE: Wall = Wall::from_millis(20);
/// How often a run by the real clock is checked.
const LOOK: Duration = Duration::from_millis(50);
/// Tags of watched descriptors; those of clients contain the tag.
const SIGNALS: u64 = 0;
const CLIENTS: u64 = 1 << 32;

/// Serves clients and signals and draws the progress bar during a run.
struct Outside {
    reactor: Reactor,
    signals: Signals,
    service: Option<Service<Rest>>,
    bar: ProgressBar,
    started: Moment,
    is_stopped: bool,
}

/// Runs the scenario to its end, or until a signal stops it.
pub(super) fn run(
    scenario: Scenario,
    poller: PollerKind,
    control: Option<&Path>,
) -> Result<Running> {
    // Before any thread starts: threads started earlier would not have the signals blocked.
    let mut outside = Outside::open(control)?;
    let mut running = Running::start(scenario, poller).context("cannot start")?;
    let mut more = true;
    while more && !outside.is_stopped {
        more = match &mut running {
            Running::Virtual(emulation) => hurry(emulation),
            Running::Real { fleet, quiet } => !fleet.is_over(*quiet),
        };
        let patience = match running {
            Running::Virtual(_) => Duration::ZERO,
            Running::Real { .. } => LOOK,
        };
        outside.look(&mut running, patience)?;
    }
    outside.bar.finish_and_clear();
    Ok(running)
}

/// Runs at full speed for one time slice.
fn hurry(emulation: &mut Emulation) -> bool {
    let end = Moment::now() + SLICE;
    let mut more = true;
    while more && Moment::now() < end {
        more = emulation.step(TURNS);
    }
    more
}

impl Outside {
    fn open(control: Option<&Path>) -> Result<Self> {
        let signals = Signals::new()?;
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::default())?;
        reactor.add(&signals, "signals", SIGNALS, Interest::READ)?;
        let service = match control {
            Some(path) => Some(Service::new(Socket::listen(path)?, CLIENTS, &mut reactor)?),
            None => None,
        };
        Ok(Self {
            reactor,
            signals,
            service,
            bar: bar(),
            started: Moment::now(),
            is_stopped: false,
        })
    }

    /// Serves clients and signals for this time, and updates the progress bar.
    fn look(&mut self, running: &mut Running, patience: Duration) -> Result<()> {
        let end = reactor::clock::now() + patience;
        self.reactor
            .wait(Some(end))
            .context("the event loop failed")?;
        self.serve(running)?;
        self.tell(running);
        Ok(())
    }

    fn serve(&mut self, running: &mut Running) -> Result<()> {
        while let Some(ready) = self.reactor.next_ready() {
            if ready.user == SIGNALS {
                while self.signals.next_signal()?.is_some() {
                    self.is_stopped = true;
                }
            } else if let Some(service) = &mut self.service {
                let mut desk = Desk {
                    running,
                    started: self.started,
                };
                service.ready(ready, &mut self.reactor, &mut desk);
            }
        }
        Ok(())
    }

    fn tell(&self, running: &Running) {
        if self.bar.is_hidden() {
            return;
        }
        let progress = running.progress();
        let elapsed = self.started.elapsed().as_secs_f64();
        let rate = progress.now.as_secs_f64() / elapsed.max(1e-9);
        self.bar.set_length(progress.run.as_millis());
        self.bar.set_position(progress.now.as_millis());
        self.bar.set_message(format!(
            "{:.1} s of {:.0} s, {rate:.1} x real time; {} of {} session endpoints up, {} messages",
            progress.now.as_secs_f64(),
            progress.run.as_secs_f64(),
            progress.endpoints_up,
            progress.endpoints,
            progress.messages,
        ));
    }
}

/// Writes a line to standard error, if that is a terminal.
fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("emulate {bar:20} {wide_msg}") {
        bar.set_style(style);
    }
    bar
}
