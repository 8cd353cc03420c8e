//! The public interface of a run: advance it, inspect it, inject events, and collect results.

use std::io;
use std::path::Path;
use std::sync::Arc;

use base::{Duration, Instant};
use bgp::Speaker;
use reactor::{HandlerStats, PollerKind, WaitStats, Waker};
use serde::{Deserialize, Serialize};
use settings::Faults;

use crate::event::Event;
use crate::observer::Observer;
use crate::results::{Notes, Results};
use crate::scenario::{ClockKind, Scenario};
use crate::world::{Tcp, World};

/// A running scenario.
///
/// It advances only when called, so its owner paces it: as fast as possible, or by a clock, with
/// [`Emulation::next_due`] and [`Emulation::run_until`].
pub struct Emulation {
    scenario: Arc<Scenario>,
    world: World,
    injected: Vec<Injection>,
    is_over: bool,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Emulated time since the start.
    pub now: Duration,
    /// The longest the run may take, in emulated time.
    pub run: Duration,
    /// Messages sent so far.
    pub messages: u64,
    /// UPDATEs among them.
    pub updates: u64,
    /// Session ends that are up; a session between two emulated routers has two.
    pub endpoints_up: u64,
    /// All session ends, up or not.
    pub endpoints: u64,
    /// Sessions that were lost, counted at each end.
    pub sessions_lost: u64,
    /// Steps of events that are still to come.
    pub steps_left: usize,
}

/// An event that was injected, as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Injection {
    /// Emulated time, in nanoseconds since the start.
    at_ns: u64,
    /// The event as it was written.
    event: String,
}

/// What is needed to repeat a run: the scenario with its seed, and each injected event with its
/// time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// The path of the scenario; files that it names are relative to it.
    file: String,
    /// The scenario.
    scenario: String,
    injected: Vec<Injection>,
    /// The emulated time of the recording, in nanoseconds since the start.
    until_ns: u64,
}

impl Recording {
    pub(crate) fn of(
        scenario: &Scenario,
        injected: &[(Duration, String)],
        until: Duration,
    ) -> Self {
        let injection = |(at, event): &(Duration, String)| Injection {
            at_ns: at.as_nanos(),
            event: event.clone(),
        };
        Self {
            file: scenario.file.clone(),
            scenario: scenario.text.clone(),
            injected: injected.iter().map(injection).collect(),
            until_ns: until.as_nanos(),
        }
    }

    /// The recording as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Document<'r> {
            schema: &'static str,
            #[serde(flatten)]
            recording: &'r Recording,
        }
        let document = Document {
            schema: "emulate.recording/1",
            recording: self,
        };
        serde_json::to_string_pretty(&document).expect("texts and numbers become JSON")
    }

    /// Reads what [`Recording::to_json`] wrote.
    ///
    /// # Errors
    /// The text is not a recording.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

/// Cost of one thread's loop.
#[derive(Clone, Debug)]
pub struct LoopStats {
    /// The poller it waits with.
    pub poller: PollerKind,
    /// Number of watched descriptors.
    pub watched: usize,
    /// Cost of waiting.
    pub waits: WaitStats,
    /// How its time was spent.
    pub handlers: Vec<HandlerStats>,
}

impl Emulation {
    /// The routers of `scenario` at the start: running, with no session yet.
    #[must_use]
    pub fn new(scenario: Scenario) -> Self {
        let scenario = Arc::new(scenario);
        Self {
            world: World::new(Arc::clone(&scenario)),
            scenario,
            injected: Vec::new(),
            is_over: false,
        }
    }

    /// Only the routers marked in `owned`, with sockets for their TCP links. `waker` ends a wait
    /// for these sockets.
    pub(crate) fn part(
        scenario: Arc<Scenario>,
        owned: Vec<bool>,
        waker: &Waker,
        poller: PollerKind,
    ) -> io::Result<Self> {
        let tcp = Tcp::open(scenario.topology.routers.len(), waker, poller)?;
        Ok(Self {
            world: World::part(Arc::clone(&scenario), Some(owned), Some(Box::new(tcp))),
            scenario,
            injected: Vec::new(),
            is_over: false,
        })
    }

    /// Sockets that could not be opened.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.world.faults.clone()
    }

    /// Number of watched descriptors.
    pub(crate) fn watched(&self) -> usize {
        self.world
            .tcp
            .as_ref()
            .map_or(0, |tcp| tcp.reactor.watched())
    }

    /// Waits for sockets; returns whether the waker ended the wait.
    pub(crate) fn wait(
        &mut self,
        deadline: Instant,
        gather: Option<Duration>,
        at: impl Fn(Instant) -> Duration,
    ) -> io::Result<bool> {
        if let (Some(span), Some(tcp)) = (gather, &mut self.world.tcp) {
            tcp.reactor.pause(span);
        }
        self.world.wait(deadline, |now| Instant::ZERO + at(now))
    }

    /// Time since the last UPDATE; none before all events are over, or while a session is down that
    /// should be up.
    pub(crate) fn quiet_since_events(&self) -> Option<Duration> {
        let is_over = self.world.is_over() && self.world.is_settled();
        is_over.then(|| self.world.quiet_for())
    }

    /// Injects an event that the caller has parsed and recorded.
    pub(crate) fn inject_event(&mut self, event: &Event) {
        self.world.observer.watch(&self.scenario.topology, event);
        self.world.look_again();
        self.world.schedule(event);
    }

    /// Cost of the event loop.
    pub(crate) fn loop_stats(&self) -> Option<LoopStats> {
        let reactor = &self.world.tcp.as_ref()?.reactor;
        Some(LoopStats {
            poller: reactor.poller(),
            watched: reactor.watched(),
            waits: reactor.wait_stats(),
            handlers: reactor.handler_stats().to_vec(),
        })
    }

    /// Observations of the run, taken at its end.
    pub(crate) fn take_notes(&mut self) -> Notes {
        self.world.count_received();
        let topology = &self.scenario.topology;
        let nothing = Observer::new(topology, &[], self.scenario.run);
        Notes {
            observer: std::mem::replace(&mut self.world.observer, nothing),
            totals: self.world.totals,
            end: self.world.now,
        }
    }

    /// Runs a recording again, up to the time at which it was taken.
    ///
    /// # Errors
    /// Every fault of the scenario or of an injected event, for example a file that no longer
    /// exists.
    pub fn replay(recording: &Recording) -> Result<Self, Faults> {
        let scenario = Scenario::load(&recording.scenario, &recording.file)?;
        if scenario.clock == ClockKind::Real {
            let words = "is real, and a run by the machine's clock cannot be repeated; run the scenario anew";
            return Err(Faults::whole(Path::new(&recording.file), "clock", words));
        }
        let mut emulation = Self::new(scenario);
        for injection in &recording.injected {
            emulation.run_until(Duration::from_nanos(injection.at_ns));
            emulation.inject(&injection.event)?;
        }
        emulation.run_until(Duration::from_nanos(recording.until_ns));
        Ok(emulation)
    }

    /// What is needed to repeat this run.
    #[must_use]
    pub fn recording(&self) -> Recording {
        Recording {
            file: self.scenario.file.clone(),
            scenario: self.scenario.text.clone(),
            injected: self.injected.clone(),
            until_ns: self.now().as_nanos(),
        }
    }

    /// The scenario.
    #[must_use]
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Emulated time since the start.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.world.now.since(Instant::ZERO)
    }

    /// Time of the next activity; none once the run is over.
    pub fn next_due(&mut self) -> Option<Duration> {
        if self.is_over {
            return None;
        }
        let next = self.world.next().map(|at| at.since(Instant::ZERO));
        Some(next.unwrap_or(self.scenario.run).min(self.scenario.run))
    }

    /// Advances through at most `turns` instants that have activity; returns whether there are
    /// more.
    pub fn step(&mut self, turns: usize) -> bool {
        self.go(turns, self.scenario.run)
    }

    /// Advances to the time `until`, or to the end of the run if that is earlier.
    pub fn run_until(&mut self, until: Duration) {
        let until = until.min(self.scenario.run);
        while !self.is_over && self.now() < until {
            self.go(usize::MAX, until);
        }
    }

    /// Advances to the end of the run.
    pub fn run(&mut self) {
        while self.step(usize::MAX) {}
    }

    fn go(&mut self, turns: usize, until: Duration) -> bool {
        let end = Instant::ZERO + until;
        for _ in 0..turns {
            if self.is_over {
                return false;
            }
            match self.world.next().filter(|at| *at <= end) {
                Some(at) => self.world.turn(at),
                None => {
                    self.world.now = end;
                    self.is_over = until == self.scenario.run;
                    return !self.is_over;
                }
            }
            let quiet = self.scenario.quiet;
            let is_quiet = |quiet| {
                let world = &self.world;
                world.is_over() && world.quiet_for() >= quiet && world.is_settled()
            };
            self.is_over = quiet.is_some_and(is_quiet);
        }
        !self.is_over
    }

    /// The progress of the run.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress {
            now: self.now(),
            run: self.scenario.run,
            messages: self.world.totals.messages,
            updates: self.world.observer.updates,
            endpoints_up: self.world.totals.endpoints_up,
            endpoints: 2 * self.scenario.topology.links.len() as u64,
            sessions_lost: self.world.totals.sessions_lost,
            steps_left: self.world.steps_left(),
        }
    }

    /// Injects an event that the scenario does not have. `text` is one `[[event]]` section without
    /// its heading; without `at_s` the event takes place now.
    ///
    /// # Errors
    /// Every fault of the section.
    pub fn inject(&mut self, text: &str) -> Result<Event, Faults> {
        let event = self.scenario.read_event(text, self.now())?;
        // All other activity of this instant comes first, so that a replay finds the same order.
        while !self.is_over && self.world.next().is_some_and(|at| at <= self.world.now) {
            self.go(1, self.scenario.run);
        }
        self.injected.push(Injection {
            at_ns: self.now().as_nanos(),
            event: text.to_owned(),
        });
        self.world.observer.watch(&self.scenario.topology, &event);
        self.world.look_again();
        self.world.schedule(&event);
        Ok(event)
    }

    /// The speaker of the router called `name`; none if there is no such router, or if it has
    /// failed.
    #[must_use]
    pub fn router(&self, name: &str) -> Option<&Speaker> {
        self.world.speaker(self.scenario.topology.find(name)?)
    }

    /// Like [`Emulation::router`], for [`Speaker::walk_sent`]. Changes to a speaker must go through
    /// [`Emulation::inject`], which records them.
    pub fn router_to_show(&mut self, name: &str) -> Option<&mut Speaker> {
        self.world.speaker_mut(self.scenario.topology.find(name)?)
    }

    /// Writes the routes of the router called `name` into `out` as an MRT table (RFC 6396). The
    /// table's timestamp is the emulated time in seconds.
    ///
    /// # Errors
    /// `out` cannot be written, or there is no such router.
    pub fn write_mrt(&self, name: &str, out: impl std::io::Write) -> std::io::Result<()> {
        let router = self.scenario.topology.find(name);
        let router = router.ok_or_else(|| std::io::Error::other(format!("no router {name}")))?;
        self.world.write_table(router, out)
    }

    /// The results so far.
    #[must_use]
    pub fn results(&self) -> Results {
        let world = &self.world;
        Results::new(&self.scenario, &world.observer, world.totals, world.now)
    }

    /// Ends the run and returns its results.
    #[must_use]
    pub fn finish(self) -> Results {
        self.results()
    }
}
