//! One interface to a run in virtual time and to a run in real time.

use std::io;

use base::{Duration, Instant};
use bgp::Speaker;
use emulate::{
    ClockKind, Emulation, Event, Fleet, LoopStats, Progress, Recording, Results, Scenario,
};
use reactor::PollerKind;

/// A run in progress.
pub(super) enum Running {
    Virtual(Box<Emulation>),
    Real {
        fleet: Fleet,
        /// The run stops once no UPDATE was sent for this long.
        quiet: Option<Duration>,
    },
}

impl Running {
    /// Starts a scenario with the clock that it names.
    pub(super) fn start(scenario: Scenario, poller: PollerKind) -> io::Result<Self> {
        Ok(match scenario.clock {
            ClockKind::Virtual => Self::Virtual(Box::new(Emulation::new(scenario))),
            ClockKind::Real => Self::Real {
                quiet: scenario.quiet,
                fleet: Fleet::start(scenario, poller)?,
            },
        })
    }

    pub(super) fn scenario(&self) -> &Scenario {
        match self {
            Self::Virtual(emulation) => emulation.scenario(),
            Self::Real { fleet, .. } => fleet.scenario(),
        }
    }

    pub(super) fn progress(&self) -> Progress {
        match self {
            Self::Virtual(emulation) => emulation.progress(),
            Self::Real { fleet, .. } => fleet.progress(),
        }
    }

    pub(super) fn inject(&mut self, text: &str) -> Result<Event, settings::Faults> {
        match self {
            Self::Virtual(emulation) => emulation.inject(text),
            Self::Real { fleet, .. } => fleet.inject(text),
        }
    }

    /// The result of `look` for the speaker of a router; `None` if there is no such router, or it has failed.
    pub(super) fn with_router<R: Send + 'static>(
        &mut self,
        name: &str,
        look: impl FnOnce(&mut Speaker, Instant) -> R + Send + 'static,
    ) -> Option<R> {
        match self {
            Self::Virtual(emulation) => {
                let now = Instant::ZERO + emulation.now();
                emulation
                    .router_to_show(name)
                    .map(|speaker| look(speaker, now))
            }
            Self::Real { fleet, .. } => fleet.with_router(name, look),
        }
    }

    /// The cost of the event loops of threads that have sockets.
    pub(super) fn loops(&self) -> Vec<LoopStats> {
        match self {
            Self::Virtual(_) => Vec::new(),
            Self::Real { fleet, .. } => fleet.loops(),
        }
    }

    pub(super) fn recording(&self) -> Recording {
        match self {
            Self::Virtual(emulation) => emulation.recording(),
            Self::Real { fleet, .. } => fleet.recording(),
        }
    }

    /// The routes of a router as MRT.
    pub(super) fn mrt(&self, name: &str) -> io::Result<Vec<u8>> {
        match self {
            Self::Virtual(emulation) => {
                let mut out = Vec::new();
                emulation.write_mrt(name, &mut out)?;
                Ok(out)
            }
            Self::Real { fleet, .. } => fleet.mrt(name),
        }
    }

    pub(super) fn finish(self) -> Results {
        match self {
            Self::Virtual(emulation) => emulation.finish(),
            Self::Real { fleet, .. } => fleet.finish(),
        }
    }
}
