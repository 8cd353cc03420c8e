//! A run by the machine's clock: routers on threads of their own, over TCP where their links say so, beside daemons
//! outside of the emulation.
//!
//! A process may have so many descriptors, a thread with a table of its own as many again: routers are dealt out to
//! threads so that each has room for its sockets. Routers with links in memory between them stay together.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use base::{Duration, Instant};
use bgp::Speaker;
use reactor::{HandlerStats, PollerKind, WaitStats, Waker, clock};
use settings::Faults;

use crate::emulation::{Emulation, Progress, Recording};
use crate::event::Event;
use crate::results::Results;
use crate::scenario::Scenario;
use crate::topology::{Topology, Transport};

/// Descriptors of a thread that are not for connections.
const RESERVE: u64 = 300;
/// Ends over TCP from which on a second core is used.
const ENDS_FOR_TWO: usize = 2_000;
/// A thread looks up at least so often.
const LOOK: Duration = Duration::from_millis(50);
/// Where many connections are served, what comes is gathered for so long before it is read.
const GATHER: Duration = Duration::from_millis(4);
/// Connections that are many.
const MANY: usize = 256;

/// What a thread is asked to do with its part.
type Request = Box<dyn FnOnce(&mut Part) + Send>;

/// Some of the routers.
pub(crate) struct Part {
    emulation: Emulation,
    is_stopped: bool,
}

/// A thread and its part of the routers.
struct Worker {
    requests: Sender<Request>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<io::Result<io::Result<()>>>>,
    is_here: Vec<bool>,
}

/// A run by the machine's clock.
pub struct Fleet {
    scenario: Arc<Scenario>,
    workers: Vec<Worker>,
    started: Instant,
    injected: Vec<(Duration, String)>,
}

/// What a thread's loop cost.
#[derive(Clone, Debug)]
pub struct LoopStats {
    /// What it waits with.
    pub poller: PollerKind,
    /// Descriptors that are watched.
    pub watched: usize,
    /// What waiting cost.
    pub waits: WaitStats,
    /// Where its time went.
    pub handlers: Vec<HandlerStats>,
}

impl Fleet {
    /// Starts the routers. With `poller` the threads wait for sockets.
    ///
    /// # Errors
    /// What could not be opened, or that routers which have to stay together have more sockets than a thread may have.
    pub fn start(scenario: Scenario, poller: PollerKind) -> io::Result<Self> {
        let _ = reactor::limits::raise_descriptor_limit();
        let room = reactor::limits::descriptor_limit().saturating_sub(RESERVE) as usize;
        let parts = deal(&scenario.topology, room).map_err(io::Error::other)?;
        let scenario = Arc::new(Scenario {
            // When it is quiet is asked of all parts together.
            quiet: None,
            ..scenario
        });
        let started = clock::now();
        let mut workers = Vec::with_capacity(parts.len());
        for is_here in parts {
            workers.push(Worker::start(&scenario, is_here, started, poller)?);
        }
        let fleet = Self {
            scenario,
            workers,
            started,
            injected: Vec::new(),
        };
        let faults: Vec<String> = fleet.ask_all(|part| part.emulation.faults()).concat();
        match faults.first() {
            None => Ok(fleet),
            Some(first) => Err(io::Error::other(first.clone())),
        }
    }

    /// The scenario.
    #[must_use]
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Threads that have routers.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.workers.len()
    }

    /// The time since the start.
    #[must_use]
    pub fn now(&self) -> Duration {
        clock::now().since(self.started).min(self.scenario.run)
    }

    /// How far the run is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let parts = self.ask_all(|part| part.emulation.progress());
        let sum = |of: fn(&Progress) -> u64| parts.iter().map(of).sum();
        Progress {
            now: self.now(),
            run: self.scenario.run,
            messages: sum(|part| part.messages),
            updates: sum(|part| part.updates),
            endpoints_up: sum(|part| part.endpoints_up),
            endpoints: 2 * self.scenario.topology.links.len() as u64,
            sessions_lost: sum(|part| part.sessions_lost),
            steps_left: parts.iter().map(|part| part.steps_left).max().unwrap_or(0),
        }
    }

    /// Whether the run is over: its time, or all events with nothing more to hear for `quiet`.
    #[must_use]
    pub fn is_over(&self, quiet: Option<Duration>) -> bool {
        let end = self.started + self.scenario.run;
        let parts = || self.ask_all(|part| part.emulation.quiet_since_events());
        let is_quiet = |quiet| {
            parts()
                .into_iter()
                .all(|part| part.is_some_and(|span| span >= quiet))
        };
        clock::now() >= end || quiet.is_some_and(is_quiet)
    }

    /// Lets an event happen that the scenario does not have; as [`Emulation::inject`].
    ///
    /// # Errors
    /// Every fault of the section.
    pub fn inject(&mut self, text: &str) -> Result<Event, Faults> {
        let event = self.scenario.read_event(text, self.now())?;
        self.injected.push((self.now(), text.to_owned()));
        let shared = Arc::new(event.clone());
        self.ask_all(move |part| part.emulation.inject_event(&shared));
        Ok(event)
    }

    /// What `look` finds in the speaker of a router and its time; none if there is no such router here, or it failed.
    pub fn with_router<R: Send + 'static>(
        &self,
        name: &str,
        look: impl FnOnce(&mut Speaker, Instant) -> R + Send + 'static,
    ) -> Option<R> {
        let router = self.scenario.topology.find(name)?;
        let has_it = |worker: &&Worker| worker.is_here[router as usize];
        let worker = self.workers.iter().find(has_it)?;
        let name = name.to_owned();
        let found = worker.ask(move |part| {
            let now = Instant::ZERO + part.emulation.now();
            part.emulation
                .router_to_show(&name)
                .map(|speaker| look(speaker, now))
        });
        found.flatten()
    }

    /// The routes of a router as an MRT table; as [`Emulation::write_mrt`].
    ///
    /// # Errors
    /// There is no such router here.
    pub fn mrt(&self, name: &str) -> io::Result<Vec<u8>> {
        let missing = || io::Error::other(format!("no router {name} here"));
        let router = self.scenario.topology.find(name).ok_or_else(missing)?;
        let has_it = |worker: &&Worker| worker.is_here[router as usize];
        let worker = self.workers.iter().find(has_it).ok_or_else(missing)?;
        let name = name.to_owned();
        let written = worker.ask(move |part| {
            let mut out = Vec::new();
            part.emulation.write_mrt(&name, &mut out).map(|()| out)
        });
        written.ok_or_else(missing)?
    }

    /// What the threads' loops cost.
    #[must_use]
    pub fn loops(&self) -> Vec<LoopStats> {
        self.ask_all(|part| part.emulation.loop_stats())
            .into_iter()
            .flatten()
            .collect()
    }

    /// What it takes to run this again: by the machine's clock that is not to come out the same.
    #[must_use]
    pub fn recording(&self) -> Recording {
        Recording::of(&self.scenario, &self.injected, self.now())
    }

    /// Ends the run, and says what it came to.
    #[must_use]
    pub fn finish(mut self) -> Results {
        let scenario = Arc::clone(&self.scenario);
        let notes = self.ask_all(|part| {
            part.is_stopped = true;
            part.emulation.take_notes()
        });
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                // A thread that has ended by a fault has told nothing: it is missed in what was noted.
                let _ = thread.join();
            }
        }
        Results::of_parts(&scenario, notes)
    }

    /// What every part says to the same question; one whose thread has ended says nothing.
    fn ask_all<R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Part) -> R + Clone + Send + 'static,
    ) -> Vec<R> {
        let asked: Vec<_> = self
            .workers
            .iter()
            .map(|worker| worker.begin(question.clone()))
            .collect();
        asked
            .into_iter()
            .filter_map(|answer| answer.recv().ok())
            .collect()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            drop(worker.begin(|part| part.is_stopped = true));
            if let Some(thread) = worker.thread.take() {
                let _ = thread.join();
            }
        }
    }
}

impl Worker {
    fn start(
        scenario: &Arc<Scenario>,
        is_here: Vec<bool>,
        started: Instant,
        poller: PollerKind,
    ) -> io::Result<Self> {
        let (requests, asked) = channel();
        let waker = Arc::new(Waker::new()?);
        let (scenario, woken, owned) = (Arc::clone(scenario), Arc::clone(&waker), is_here.clone());
        let thread = reactor::spawn_apart("routers", &[waker.as_fd()], move || {
            let opened = Emulation::part(scenario, owned, &woken, poller);
            let done = opened.and_then(|emulation| run(emulation, started, &woken, &asked));
            // The descriptor of this thread's table goes with the table; the other one is the owner's.
            std::mem::forget(woken);
            done
        })?;
        Ok(Self {
            requests,
            waker,
            thread: Some(thread),
            is_here,
        })
    }

    fn begin<R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Part) -> R + Send + 'static,
    ) -> Receiver<R> {
        let (answer, answered) = channel();
        let request: Request = Box::new(move |part| {
            // Who asked may not wait any more.
            let _ = answer.send(question(part));
        });
        let _ = self.requests.send(request);
        self.waker.wake();
        answered
    }

    fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Part) -> R + Send + 'static,
    ) -> Option<R> {
        self.begin(question).recv().ok()
    }
}

/// A thread's loop.
fn run(
    emulation: Emulation,
    started: Instant,
    waker: &Waker,
    asked: &Receiver<Request>,
) -> io::Result<()> {
    let mut part = Part {
        emulation,
        is_stopped: false,
    };
    while !part.is_stopped {
        let now = clock::now();
        let due = part
            .emulation
            .next_due()
            .map_or(LOOK, |due| (started + due).since(now).min(LOOK));
        let gather = (part.emulation.watched() > MANY).then_some(GATHER);
        let woken = part
            .emulation
            .wait(now + due, gather, |at| at.since(started))?;
        if woken {
            waker.clear();
        }
        while let Ok(request) = asked.try_recv() {
            request(&mut part);
        }
        part.emulation.run_until(clock::now().since(started));
    }
    Ok(())
}

/// Deals the routers out to threads that have room for so many sockets each: for each thread, who is there.
///
/// # Errors
/// Routers that are tied together by links in memory have more.
fn deal(topology: &Topology, room: usize) -> Result<Vec<Vec<bool>>, String> {
    let count = topology.routers.len();
    let mut parent: Vec<u32> = (0..count as u32).collect();
    let mut sockets = vec![1_usize; count];
    for link in &topology.links {
        if topology.settings_of(link).transport == Transport::Tcp {
            sockets[link.a as usize] += 1;
            sockets[link.b as usize] += 1;
        } else {
            let (a, b) = (root(&mut parent, link.a), root(&mut parent, link.b));
            parent[a as usize] = b;
        }
    }
    let mut groups: std::collections::BTreeMap<u32, (usize, Vec<u32>)> =
        std::collections::BTreeMap::new();
    for router in 0..count as u32 {
        let group = groups.entry(root(&mut parent, router)).or_default();
        group.0 += sockets[router as usize];
        group.1.push(router);
    }
    let all: usize = groups.values().map(|group| group.0).sum();
    if let Some((most, routers)) = groups.values().find(|group| group.0 > room) {
        let name = &topology.routers[routers[0] as usize].name;
        return Err(format!(
            "{} routers that are tied together by links in memory, {name} among them, have {most} sockets; a thread may \
             have {room}: give more of their links transport = \"tcp\", or raise the limit on descriptors",
            routers.len()
        ));
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = (all / ENDS_FOR_TWO + 1)
        .min(cores)
        .max(all.div_ceil(room))
        .min(groups.len());
    let mut threads = vec![(0_usize, vec![false; count]); wanted.max(1)];
    let mut groups: Vec<(usize, Vec<u32>)> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.0));
    for (size, routers) in groups {
        // The emptiest one has room, or a new one is made.
        let place = (0..threads.len())
            .min_by_key(|&at| threads[at].0)
            .unwrap_or(0);
        let place = if threads[place].0 + size > room {
            threads.push((0, vec![false; count]));
            threads.len() - 1
        } else {
            place
        };
        threads[place].0 += size;
        for router in routers {
            threads[place].1[router as usize] = true;
        }
    }
    Ok(threads.into_iter().map(|(_, is_here)| is_here).collect())
}

fn root(parent: &mut [u32], mut router: u32) -> u32 {
    while parent[router as usize] != router {
        let above = parent[parent[router as usize] as usize];
        parent[router as usize] = above;
        router = above;
    }
    router
}
