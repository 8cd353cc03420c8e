//! A run of a scenario, from outside: going on, looking in, stepping in, and what comes out.

use std::io;
use std::path::Path;
use std::sync::Arc;

use base::{Duration, Instant};
use bgp::Speaker;
use reactor::{PollerKind, Waker};
use serde::{Deserialize, Serialize};
use settings::Faults;

use crate::event::Event;
use crate::observer::Observer;
use crate::real::LoopStats;
use crate::results::{Notes, Results};
use crate::scenario::{ClockKind, Scenario};
use crate::world::{Tcp, World};

/// A scenario that is being run.
///
/// It goes on only while it is told to, so whoever owns it paces it: as fast as it can, or by a clock, with
/// [`Emulation::next_due`] and [`Emulation::run_until`].
pub struct Emulation {
    scenario: Arc<Scenario>,
    world: World,
    injected: Vec<Injection>,
    is_over: bool,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The time in the emulation, since its start.
    pub now: Duration,
    /// How long it is at most.
    pub run: Duration,
    /// Messages sent so far.
    pub messages: u64,
    /// UPDATEs among them.
    pub updates: u64,
    /// Ends of sessions that are up.
    pub endpoints_up: u64,
    /// Ends of sessions that could be up.
    pub endpoints: u64,
    /// Sessions that were lost, each counted at both ends.
    pub sessions_lost: u64,
    /// Steps of events that were not taken yet.
    pub steps_left: usize,
}

/// An event that was injected, as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Injection {
    /// The time in the emulation, in nanoseconds since its start.
    at_ns: u64,
    /// The event as it was written.
    event: String,
}

/// What a run can be repeated from: the scenario, seed included, and what was injected when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// The file of the scenario, beside which the files that it names are looked for.
    file: String,
    /// The scenario.
    scenario: String,
    injected: Vec<Injection>,
    /// Where the recorded run was when the recording was taken, in nanoseconds since its start.
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
    /// Where the text is not that.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

impl Emulation {
    /// The routers of `scenario` at the start: switched on, no session yet.
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

    /// Those of the routers that are `owned`, with sockets for their links over TCP; `waker` ends a wait for them.
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

    /// What could not be opened.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.world.faults.clone()
    }

    /// Descriptors that are watched.
    pub(crate) fn watched(&self) -> usize {
        self.world
            .tcp
            .as_ref()
            .map_or(0, |tcp| tcp.reactor.watched())
    }

    /// Waits for sockets; says whether the waker ended it.
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

    /// How long nothing was heard, once all events are over.
    pub(crate) fn quiet_since_events(&self) -> Option<Duration> {
        self.world.is_over().then(|| self.world.quiet_for())
    }

    /// An event that somebody else reads and records.
    pub(crate) fn inject_event(&mut self, event: &Event) {
        self.world.observer.watch(&self.scenario.topology, event);
        self.world.look_again();
        self.world.schedule(event);
    }

    /// What the loop cost.
    pub(crate) fn loop_stats(&self) -> Option<LoopStats> {
        let reactor = &self.world.tcp.as_ref()?.reactor;
        Some(LoopStats {
            poller: reactor.poller(),
            watched: reactor.watched(),
            waits: reactor.wait_stats(),
            handlers: reactor.handler_stats().to_vec(),
        })
    }

    /// What was noted, at the end.
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

    /// Runs a recording again, up to where it was taken.
    ///
    /// # Errors
    /// Every fault of the scenario or of an injected event, as when a file that it names is not there any more.
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

    /// What it takes to run this again.
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

    /// The time in the emulation, since its start.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.world.now.since(Instant::ZERO)
    }

    /// When something happens next; none once the run is over.
    pub fn next_due(&mut self) -> Option<Duration> {
        if self.is_over {
            return None;
        }
        let next = self.world.next().map(|at| at.since(Instant::ZERO));
        Some(next.unwrap_or(self.scenario.run).min(self.scenario.run))
    }

    /// Goes through at most `turns` instants at which something happens; says whether there are more.
    pub fn step(&mut self, turns: usize) -> bool {
        self.go(turns, self.scenario.run)
    }

    /// Goes on until the time `until`, or the end of the run if that is earlier.
    pub fn run_until(&mut self, until: Duration) {
        let until = until.min(self.scenario.run);
        while !self.is_over && self.now() < until {
            self.go(usize::MAX, until);
        }
    }

    /// Goes on until the run is over.
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
            let is_quiet = |quiet| self.world.is_over() && self.world.quiet_for() >= quiet;
            self.is_over = quiet.is_some_and(is_quiet);
        }
        !self.is_over
    }

    /// How far the run is.
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

    /// Lets an event happen that the scenario does not have: `text` is one of its `[[event]]` sections without the
    /// heading; without `at_s` it happens now.
    ///
    /// # Errors
    /// Every fault of the section.
    pub fn inject(&mut self, text: &str) -> Result<Event, Faults> {
        let event = self.scenario.read_event(text, self.now())?;
        // What else is due at this instant comes before, so that a replay finds the same order.
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

    /// The speaker of the router called `name`; none if there is no such router, or it has failed.
    #[must_use]
    pub fn router(&self, name: &str) -> Option<&Speaker> {
        self.world.speaker(self.scenario.topology.find(name)?)
    }

    /// As [`Emulation::router`], for [`Speaker::walk_sent`]: what would change the speaker goes by
    /// [`Emulation::inject`], which is recorded.
    pub fn router_to_show(&mut self, name: &str) -> Option<&mut Speaker> {
        self.world.speaker_mut(self.scenario.topology.find(name)?)
    }

    /// Writes the routes that the router called `name` has into `out`, as an MRT table (RFC 6396) whose time is that of
    /// the emulation in seconds.
    ///
    /// # Errors
    /// Where it cannot be written, or there is no such router.
    pub fn write_mrt(&self, name: &str, out: impl std::io::Write) -> std::io::Result<()> {
        let router = self.scenario.topology.find(name);
        let router = router.ok_or_else(|| std::io::Error::other(format!("no router {name}")))?;
        self.world.write_table(router, out)
    }

    /// What the run has come to so far.
    #[must_use]
    pub fn results(&self) -> Results {
        let world = &self.world;
        Results::new(&self.scenario, &world.observer, world.totals, world.now)
    }

    /// Ends the run, and says what it came to.
    #[must_use]
    pub fn finish(self) -> Results {
        self.results()
    }
}
