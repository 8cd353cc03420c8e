//! Runs a scenario in real time: routers run on several threads, use TCP where their links ask for
//! it, and can peer with daemons outside of the emulation.
//!
//! The kernel limits the descriptors of a process, but a thread with a descriptor table of its own
//! has the same limit again. Routers are therefore spread over threads so that each thread has room
//! for its sockets. Routers connected by links in memory share a thread.
//!
//! Start with [`Fleet`].

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use base::{Duration, Instant};
use bgp::Speaker;
use reactor::{PollerKind, Waker, clock};
use settings::Faults;

use crate::emulation::{Emulation, LoopStats, Progress, Recording};
use crate::event::Event;
use crate::results::Results;
use crate::scenario::Scenario;
use crate::topology::{Topology, Transport};

/// Descriptors of a thread that are not available for connections.
const RESERVE: u64 = 300;
/// Number of TCP ends from which on a second core is used.
const ENDS_FOR_TWO: usize = 2_000;
/// Longest time for which a thread waits.
const LOOK: Duration = Duration::from_millis(50);
/// With many connections, the time for which input is gathered before it is read.
const GATHER: Duration = Duration::from_millis(4);
/// With many session endpoints in memory, the time for which due messages and timers are gathered.
/// A wait for each of them would cost more than the messages.
const PACE: Duration = Duration::from_millis(1);
/// Number of connections or endpoints that counts as many.
const MANY: usize = 256;

/// A function that a thread runs on its part.
type Request = Box<dyn FnOnce(&mut Part) + Send>;

/// The routers of one thread.
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

/// A run in real time.
pub struct Fleet {
    scenario: Arc<Scenario>,
    workers: Vec<Worker>,
    started: Instant,
    injected: Vec<(Duration, String)>,
}

impl Fleet {
    /// Starts the routers. The threads wait for sockets with `poller`.
    ///
    /// # Errors
    /// A socket that could not be opened, or routers that must share a thread and need more sockets
    /// than a thread may have.
    pub fn start(scenario: Scenario, poller: PollerKind) -> io::Result<Self> {
        let _ = reactor::limits::raise_descriptor_limit();
        let room = reactor::limits::descriptor_limit().saturating_sub(RESERVE) as usize;
        let parts = deal(&scenario.topology, room).map_err(io::Error::other)?;
        let scenario = Arc::new(Scenario {
            // The owner asks all parts together whether they are quiet.
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

    /// Number of threads that run routers.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.workers.len()
    }

    /// The time since the start.
    #[must_use]
    pub fn now(&self) -> Duration {
        clock::now().since(self.started).min(self.scenario.run)
    }

    /// The progress of the run.
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

    /// Whether the run is over: its time has passed, or all events have ended, every session that
    /// should be up is up, and no UPDATE was sent for `quiet`.
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

    /// Injects an event that the scenario does not have, as [`Emulation::inject`] does.
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

    /// Calls `look` with the speaker of a router and its time; none if there is no such router
    /// here, or if it failed.
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

    /// The routes of a router as an MRT table, as [`Emulation::write_mrt`] writes it.
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

    /// Costs of the threads' loops.
    #[must_use]
    pub fn loops(&self) -> Vec<LoopStats> {
        self.ask_all(|part| part.emulation.loop_stats())
            .into_iter()
            .flatten()
            .collect()
    }

    /// What is needed to run this again. In real time, the outcome will differ.
    #[must_use]
    pub fn recording(&self) -> Recording {
        Recording::of(&self.scenario, &self.injected, self.now())
    }

    /// Ends the run and returns its results.
    #[must_use]
    pub fn finish(mut self) -> Results {
        let scenario = Arc::clone(&self.scenario);
        let notes = self.ask_all(|part| {
            part.is_stopped = true;
            part.emulation.take_notes()
        });
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                // A thread that panicked returned no observations; the results lack them.
                let _ = thread.join();
            }
        }
        Results::of_parts(&scenario, notes)
    }

    /// Asks every part the same question. A part whose thread has ended does not answer.
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
            // The descriptor in this thread's table is freed with the table; the other one is the
            // owner's.
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
            // The caller may no longer be waiting.
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
        let gather = gather(&part.emulation);
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

/// How long a thread sleeps before it waits, so that each round has more to do.
fn gather(emulation: &Emulation) -> Option<Duration> {
    let endpoints = emulation.progress().endpoints_up;
    if emulation.watched() > MANY {
        Some(GATHER)
    } else {
        (endpoints > MANY as u64).then_some(PACE)
    }
}

/// Spreads the routers over threads, each with room for `room` sockets. Returns, for each thread,
/// which routers it runs.
///
/// # Errors
/// Routers connected by links in memory need more than one thread has.
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
        // They go to the emptiest thread that has room, or to a new one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_between_many_endpoints_in_memory_are_gathered_and_those_between_few_are_not() {
        let gathered = |routers: u32| {
            let text = format!("run_s = 9\n[topology]\nkind = \"mesh\"\nrouters = {routers}\n");
            let mut emulation = Emulation::new(Scenario::load(&text, "test.toml").unwrap());
            emulation.run();
            let up = emulation.progress().endpoints_up;
            assert_eq!(up, u64::from(routers * (routers - 1)));
            gather(&emulation)
        };
        assert_eq!(gathered(16), None);
        assert_eq!(gathered(17), Some(PACE));
    }
}
