//! The event loop: it first sends packets that are due, then records transmit times and replies, then waits.
//!
//! It waits for an absolute time with nanosecond precision (`epoll_pwait2`), without timer slack and, if permitted, as
//! a real-time thread. Other threads write text and charts.

use std::collections::HashSet;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};
use base::{Duration, Instant};
use ping::{Experiment, Live, Outcome, text};
use reactor::timed::{NetworkError, Outgoing, Sent, Stamp, TimedBatch};
use reactor::urgency::hasten;
use reactor::{Interest, PollerKind, Reactor, StoreKind, clock};

use super::collect::{REQUESTS, SIGNALS, STOP, Wishes};
use super::hi::{Task, View as Shown};
use super::packets::{Nonces, plain};
use super::paper::Paper;
use super::screen::{RECENT_MAX, Screen};
use super::sockets::{Lane, Lanes};

/// Maximum packets per call.
const BATCH: usize = 64;
/// Space for a received packet's headers, including an IP header's options.
const HEADERS: usize = 128;
/// The live view is refreshed for every stream once within this time.
const VIEW_PERIOD: Duration = Duration::from_millis(100);
/// From opening the sockets to the first packet, so that threads can start.
const AHEAD: Duration = Duration::from_millis(2);
/// Maximum packets per second for a real-time loop, so that it uses at most a fifth of a processor.
const REAL_TIME_RATE_MAX: u64 = 20_000;
/// How often in a row the wait may fail.
const WAITS_FAILED_MAX: u32 = 64;
/// Pause after a call that failed, so that a socket that keeps failing does not take the whole processor.
pub(super) const PAUSE: Duration = Duration::from_millis(1);
/// A running experiment with its sockets.
pub(super) struct Engine<'a> {
    pub(super) task: &'a Task,
    pub(super) experiment: Experiment,
    pub(super) reactor: Reactor,
    pub(super) wishes: Wishes,
    pub(super) lanes: Lanes,
    pub(super) nonces: Nonces,
    pub(super) paper: Paper,
    pub(super) screen: Option<Screen>,
    pub(super) started_unix_ns: u64,
    pub(super) started: Instant,
    stops_at: Option<Instant>,
    pub(super) stopped: bool,
    /// Taken out while its entries are processed.
    pub(super) batch: Option<TimedBatch>,
    pub(super) scratch: Scratch,
    /// Failed waits in a row.
    waits_failed: u32,
    /// Errors already reported; each is reported once per stream.
    told: HashSet<(u32, String)>,
}

/// Reused buffers.
#[derive(Default)]
pub(super) struct Scratch {
    data: Vec<u8>,
    octets: Vec<u8>,
    /// A packet due in this turn: its lane, stream and number, and where its bytes end.
    due: Vec<(u32, u32, u64, usize)>,
    results: Vec<std::io::Result<Sent>>,
    pub(super) times: Vec<(u32, Stamp)>,
    pub(super) errors: Vec<NetworkError>,
    pub(super) ready: Vec<u32>,
}

impl<'a> Engine<'a> {
    /// Opens the sockets; sends nothing yet.
    ///
    /// # Errors
    /// A permission or an interface is missing.
    pub(super) fn new(task: &'a Task, wishes: Wishes, paper: Paper) -> Result<Engine<'a>> {
        // Request only the privileges that are needed; opening the sockets reports a missing one.
        let _ = reactor::limits::raise_descriptor_limit();
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::default())?;
        match &wishes {
            Wishes::User { signals, requests } => {
                reactor.add(signals, "signals", SIGNALS, Interest::READ)?;
                reactor.add(requests, "requests", REQUESTS, Interest::READ)?;
            }
            Wishes::Command(tap) => {
                reactor.add(&tap.stop, "stop", STOP, Interest::READ)?;
            }
        }
        let lanes = Lanes::open(task)?;
        for (number, lane) in lanes.lanes.iter().enumerate() {
            reactor
                .add(&lane.socket, "stream", number as u64, Interest::READ)
                .context("too many streams")?;
        }
        let largest = task.plan.streams.iter().map(|stream| stream.size).max();
        let slot = usize::from(largest.unwrap_or(0)) + HEADERS;
        let start = clock::now() + AHEAD;
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix_ns = unix.map_or(0, |unix| unix.as_nanos() as u64);
        Ok(Engine {
            task,
            experiment: Experiment::new(task.plan.clone(), start),
            reactor,
            wishes,
            lanes,
            nonces: Nonces::new().context("no random numbers")?,
            paper,
            screen: None,
            started_unix_ns: unix_ns + AHEAD.as_nanos(),
            started: start,
            stops_at: task.deadline.map(|deadline| start + deadline),
            stopped: false,
            batch: Some(TimedBatch::new(BATCH, slot)),
            scratch: Scratch::default(),
            waits_failed: 0,
            told: HashSet::new(),
        })
    }

    /// Prints each stream's first line, or starts the live view.
    ///
    /// # Errors
    /// The view's thread cannot be started.
    pub(super) fn open(&mut self) -> Result<()> {
        match self.task.view {
            Shown::Live => self.screen = Some(Screen::start(&self.task.plan)?),
            Shown::Text | Shown::Quiet => {
                for stream in &self.task.plan.streams {
                    self.paper.line(&text::opening(stream));
                }
            }
            Shown::Csv | Shown::Json => {}
        }
        Ok(())
    }

    /// Sends and receives until all streams have finished, or a signal or the deadline ends the run. A call that fails
    /// is reported once and made again.
    ///
    /// # Errors
    /// The error that prevented continuing.
    pub(super) fn run(&mut self) -> Result<()> {
        hasten(self.task.plan.rate_pps() <= REAL_TIME_RATE_MAX);
        let mut now = clock::now();
        let mut view = View::new(self.task.plan.streams.len(), now);
        loop {
            self.send(now)?;
            self.collect();
            self.experiment.handle_timeout(now);
            if self.stops_at.is_some_and(|stops_at| stops_at <= now) {
                self.stops_at = None;
                self.experiment.stop();
            }
            if self.experiment.is_over() {
                break;
            }
            let ends = [self.experiment.poll_timeout(), self.stops_at];
            let mut deadline = ends.into_iter().flatten().min();
            if let Some(screen) = &self.screen {
                view.refresh(&mut self.experiment, screen, now);
                deadline = Some(deadline.map_or(view.next, |at| at.min(view.next)));
            }
            now = self.wait(deadline)?;
        }
        // Read the transmit times that the kernel has reported for the last packets.
        for lane in 0..self.lanes.lanes.len() {
            self.collect_lane(lane);
        }
        if let Some(screen) = &self.screen {
            view.refresh_all(&mut self.experiment, screen, clock::now());
        }
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Instant>) -> Result<Instant> {
        let error = match self.reactor.wait(deadline) {
            Ok(now) => {
                self.waits_failed = 0;
                return Ok(now);
            }
            Err(error) => error,
        };
        self.waits_failed += 1;
        if self.waits_failed > WAITS_FAILED_MAX {
            return Err(error.into());
        }
        self.reactor.pause(PAUSE);
        // If that fails too, so does the next wait.
        let _ = self.reactor.reopen();
        Ok(clock::now())
    }

    /// The outcome, and the paper with all lines printed. The live view stays on the screen.
    pub(super) fn finish(self) -> (Outcome, Paper) {
        drop(self.screen);
        let outcome = self.experiment.finish(self.started_unix_ns, self.stopped);
        (outcome, self.paper)
    }

    /// Sends due packets in batches. After a delay, it reads replies between two batches.
    fn send(&mut self, now: Instant) -> Result<()> {
        if self.fill(now) { self.flush() } else { Ok(()) }
    }

    /// Composes one batch of due packets. Returns `false` if none is due.
    fn fill(&mut self, now: Instant) -> bool {
        let scratch = &mut self.scratch;
        scratch.due.clear();
        scratch.octets.clear();
        while scratch.due.len() < BATCH
            && let Some(due) = self.experiment.pop_send(now)
        {
            let lane = self.lanes.of_stream[due.stream as usize];
            let plan = &self.task.plan.streams[due.stream as usize];
            let packet = (due.stream, plan, due.sequence);
            let Lane {
                socket, version, ..
            } = &self.lanes.lanes[lane as usize];
            match version {
                Some(version) => self.nonces.echo(
                    *version,
                    socket.identifier(),
                    packet,
                    &mut scratch.data,
                    &mut scratch.octets,
                ),
                None => self.nonces.probe(packet, &mut scratch.octets),
            }
            let end = scratch.octets.len();
            scratch.due.push((lane, due.stream, due.sequence, end));
        }
        !scratch.due.is_empty()
    }

    /// Sends the composed packets; consecutive packets of one socket go out in one call.
    fn flush(&mut self) -> Result<()> {
        let Scratch {
            octets,
            due,
            results,
            ..
        } = &mut self.scratch;
        let mut begin = 0;
        let mut packets = Vec::with_capacity(due.len());
        for &(lane, stream, sequence, end) in due.iter() {
            let packet = Outgoing {
                bytes: &octets[begin..end],
                to: self.task.to[stream as usize],
                from: None,
                traffic_class: self.task.plan.streams[stream as usize].tos,
            };
            packets.push((lane, stream, sequence, packet));
            begin = end;
        }
        let mut fault = None;
        let mut troubles = Vec::new();
        for group in packets.chunk_by(|one, other| one.0 == other.0) {
            let number = group[0].0 as usize;
            let outgoing: Vec<Outgoing<'_>> = group.iter().map(|packet| packet.3).collect();
            results.clear();
            let socket = &mut self.lanes.lanes[number].socket;
            socket.send_many(&outgoing, results);
            let blocked = || Err(std::io::ErrorKind::WouldBlock.into());
            let results = results.drain(..).chain(std::iter::repeat_with(blocked));
            for (&(_, stream, sequence, _), result) in group.iter().zip(results) {
                match result {
                    Ok(sent) => {
                        let lane = &mut self.lanes.lanes[number];
                        lane.await_time(sent.id, stream, sequence);
                    }
                    Err(error) => {
                        self.experiment.failed(stream, sequence);
                        if let Some(gone) = self.lanes.vanished(stream) {
                            fault = fault.or(Some(anyhow!("the interface {gone} has vanished")));
                        } else {
                            troubles.push((stream, plain(&error)));
                        }
                    }
                }
            }
        }
        for (stream, line) in troubles {
            self.tell(stream, &line);
        }
        fault.map_or(Ok(()), Err)
    }

    /// Reports a local error once: in the live view, or on standard error.
    pub(super) fn tell(&mut self, stream: u32, trouble: &str) {
        if !self.told.insert((stream, trouble.to_owned())) {
            return;
        }
        let name = &self.task.plan.streams[stream as usize].name;
        match (&self.screen, &self.wishes) {
            (Some(screen), _) => screen.note(stream, trouble),
            (None, Wishes::Command(tap)) => tap.note(format!("{name}: {trouble}")),
            (None, Wishes::User { .. }) => eprintln!("headend ping: {name}: {trouble}"),
        }
    }
}

/// Updates a few streams of the live view per turn, so that the updates do not delay packets.
struct View {
    streams: usize,
    cursor: usize,
    next: Instant,
    live: Live,
}

impl View {
    fn new(streams: usize, now: Instant) -> View {
        View {
            streams,
            cursor: 0,
            next: now,
            live: Live::default(),
        }
    }

    fn refresh(&mut self, experiment: &mut Experiment, screen: &Screen, now: Instant) {
        if now < self.next {
            return;
        }
        let turns = self.streams.clamp(1, 20);
        for _ in 0..self.streams.div_ceil(turns) {
            self.show(experiment, screen, now);
        }
        self.next = now + Duration::from_nanos(VIEW_PERIOD.as_nanos() / turns as u64);
    }

    fn refresh_all(&mut self, experiment: &mut Experiment, screen: &Screen, now: Instant) {
        for _ in 0..self.streams {
            self.show(experiment, screen, now);
        }
    }

    fn show(&mut self, experiment: &mut Experiment, screen: &Screen, now: Instant) {
        let stream = self.cursor;
        experiment.live(stream as u32, now, RECENT_MAX, &mut self.live);
        screen.update(stream, &mut self.live);
        self.cursor = (stream + 1) % self.streams;
    }
}

#[cfg(test)]
mod faulty;
