//! The routers and the messages between them, in virtual time.
//!
//! Time jumps to whatever is due next: messages in flight (`post`), routers that asked for a
//! wake-up (`calendar`), steps of events. All messages of one instant are delivered before any
//! router replies, so that the outcome depends on the routers' order as little as possible.
//!
//! Most traffic is KEEPALIVEs between two ends that are up. Such a message takes 16 bytes and
//! touches only the hot record of its sender and a list of its receiver.
//!
//! Start with `World::turn`. `act` carries out steps, `links` and `dial` connect routers, `tcp` has
//! the sockets of links over TCP, `repair` knows which sessions are still to come up.

mod act;
mod calendar;
mod dial;
mod links;
mod post;
mod repair;
mod routes;
mod settings;
mod steps;
mod table;
mod tcp;

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use base::{Duration, Instant};
use bgp::{ConnId, Event as SpeakerEvent, Speaker};
use sim::Rng;
use wire::bgp::KEEPALIVE;

use self::settings::Kinds;
use crate::event::Event;
use crate::observer::Observer;
use crate::results::Totals;
use crate::scenario::Scenario;
use calendar::Calendar;
use links::{End, Lines};
use post::{Parcel, Post, What};
use repair::Sessions;
use steps::Timed;
pub(crate) use tcp::Tcp;

/// Units of work that a router does at a time, until it has none left.
const BUDGET: usize = 4_096;
/// Messages and connections whose memory is prefetched together: about as many cache misses as a
/// processor keeps outstanding.
const AHEAD: usize = 32;
/// Bytes taken from a connection at a time.
const FILL_MAX: usize = 65_536;

/// One router with its connections.
struct Node {
    /// None while the router has failed.
    speaker: Option<Box<Speaker>>,
    /// Connections by index.
    ends: Vec<End>,
    /// Number of its sessions that are up.
    up: u32,
}

/// All mutable state of a run.
pub(crate) struct World {
    pub(crate) now: Instant,
    nodes: Vec<Node>,
    /// When each router asked to be woken.
    wakes: Vec<Instant>,
    /// How often each router was started.
    starts: Vec<u32>,
    alarms: Calendar<u32>,
    post: Post,
    steps: Calendar<Timed>,
    steps_left: usize,
    scenario: Arc<Scenario>,
    lines: Lines,
    sessions: Sessions,
    kinds: Kinds,
    by_address: HashMap<Ipv4Addr, u32>,
    pub(crate) observer: Observer,
    pub(crate) totals: Totals,
    /// Sockets, if any link uses TCP.
    pub(crate) tcp: Option<Box<Tcp>>,
    /// Which routers run here; all of them if none.
    owned: Option<Vec<bool>>,
    /// Sockets that could not be opened.
    pub(crate) faults: Vec<String>,
    rng: Rng,
    /// Routers that have something to send at this instant, and a flag for each router that is
    /// listed.
    awake: Vec<u32>,
    is_awake: Vec<bool>,
    due: Vec<Parcel>,
    ready: Vec<ConnId>,
    keepalives: Vec<ConnId>,
    buffer: Vec<u8>,
}

impl World {
    /// The routers of `scenario` before their first instant.
    pub(crate) fn new(scenario: Arc<Scenario>) -> Self {
        Self::part(scenario, None, None)
    }

    /// Only the routers marked in `owned`, with sockets for TCP links.
    pub(crate) fn part(
        scenario: Arc<Scenario>,
        owned: Option<Vec<bool>>,
        tcp: Option<Box<Tcp>>,
    ) -> Self {
        let topology = &scenario.topology;
        let routers = topology.routers.len();
        let addresses = topology.routers.iter().zip(0..);
        let mut post = Post::new();
        let lines = Lines::new(topology, &mut post, scenario.seed);
        let mut world = Self {
            now: Instant::ZERO,
            nodes: Vec::with_capacity(routers),
            wakes: vec![Instant::FAR_FUTURE; routers],
            starts: vec![0; routers],
            alarms: Calendar::new(),
            post,
            steps: Calendar::new(),
            steps_left: 0,
            lines,
            sessions: Sessions::new(topology),
            kinds: Kinds::new(&scenario),
            by_address: addresses
                .map(|(router, index)| (router.address, index))
                .collect(),
            observer: Observer::new(topology, &scenario.events, scenario.run),
            totals: Totals::default(),
            tcp,
            owned,
            faults: Vec::new(),
            rng: Rng::stream(scenario.seed, &["world"]),
            awake: Vec::new(),
            is_awake: vec![false; routers],
            due: Vec::new(),
            ready: Vec::new(),
            keepalives: Vec::new(),
            buffer: Vec::new(),
            scenario: Arc::clone(&scenario),
        };
        for _ in 0..routers {
            world.nodes.push(Node {
                speaker: None,
                ends: Vec::new(),
                up: 0,
            });
        }
        for event in &scenario.events {
            world.schedule(event);
        }
        for router in 0..routers as u32 {
            world.set_runs(router, true);
            world.switch_on(router);
        }
        world.lose_sessions_later();
        world.answer();
        world
    }

    /// Schedules the steps of an event.
    pub(crate) fn schedule(&mut self, event: &Event) {
        let scenario = Arc::clone(&self.scenario);
        let topology = &scenario.topology;
        let record = self.observer.record(event.label(topology), event.kind());
        let ends = event.ends().then(|| {
            let label = format!("{} (end)", event.label(topology));
            self.observer.record(label, event.kind())
        });
        let steps = event.steps(record, ends.unwrap_or(record), topology, &mut self.rng);
        self.steps_left += steps.len();
        for timed in steps {
            self.steps.add(Instant::ZERO + timed.at, timed);
        }
    }

    /// Time of the next activity.
    pub(crate) fn next(&mut self) -> Option<Instant> {
        let times = [self.post.next(), self.alarms.next(), self.steps.next()];
        times.into_iter().flatten().min()
    }

    /// Whether all steps of events were taken.
    pub(crate) fn is_over(&self) -> bool {
        self.steps_left == 0
    }

    /// Steps of events that are still to come.
    pub(crate) fn steps_left(&self) -> usize {
        self.steps_left
    }

    /// Does everything that is due at `now`, which is the time from [`World::next`] or an earlier
    /// one.
    pub(crate) fn turn(&mut self, now: Instant) {
        self.now = now;
        while let Some(timed) = self.steps.take(now) {
            self.take_step(timed);
        }
        let mut due = std::mem::take(&mut self.due);
        self.post.take(now, &mut due);
        for parcels in due.chunks(AHEAD) {
            let touched = parcels.iter().map(|parcel| {
                let node = &self.nodes[parcel.router as usize];
                node.speaker.as_ref().map_or(0, |speaker| speaker.touch())
            });
            read_ahead(touched);
            for parcel in parcels {
                self.deliver(*parcel);
            }
        }
        due.clear();
        self.due = due;
        while let Some(router) = self.alarms.take(now) {
            if self.wakes[router as usize] <= now {
                self.wakes[router as usize] = Instant::FAR_FUTURE;
                self.wake_up(router);
                self.wake(router);
            }
        }
        self.answer();
    }

    /// Fires the timers of a router. If all its links are in memory, single KEEPALIVEs bypass its
    /// queues.
    fn wake_up(&mut self, router: u32) {
        let now = self.now;
        let sockets = self.tcp.as_ref().filter(|tcp| tcp.serves(router));
        let drained = sockets.map(|tcp| tcp.drained);
        let Some(speaker) = &mut self.nodes[router as usize].speaker else {
            return;
        };
        speaker.drained(drained.unwrap_or(now));
        if drained.is_some() {
            speaker.handle_timeout(now);
        } else {
            speaker.handle_timeout_apart(&mut self.keepalives, now);
        }
        speaker.drained(drained.unwrap_or(now));
        self.send_keepalives(router);
    }

    #[inline]
    fn deliver(&mut self, parcel: Parcel) {
        if let What::Keepalive = parcel.what {
            // Both ends are up, so a KEEPALIVE only restarts the hold timer.
            if let Some(speaker) = &mut self.nodes[parcel.router as usize].speaker {
                speaker.receive_keepalive(parcel.conn, self.now);
            }
            return;
        }
        self.deliver_slowly(parcel);
    }

    /// Delivers everything except a KEEPALIVE between ends that are up.
    #[cold]
    fn deliver_slowly(&mut self, parcel: Parcel) {
        let (router, now) = (parcel.router, self.now);
        match parcel.what {
            What::Octets(number) => {
                let octets = self.post.take_octets(number);
                if let Some(speaker) = &mut self.nodes[router as usize].speaker {
                    self.observer.received(router, updates_in(&octets));
                    // The speaker counts ignored messages itself.
                    let _ = speaker.receive(parcel.conn, &octets, now);
                    self.wake(router);
                }
                self.post.give_back(number, octets);
            }
            What::First => {
                if let Some(speaker) = &mut self.nodes[router as usize].speaker {
                    let _ = speaker.receive(parcel.conn, &KEEPALIVE, now);
                    self.wake(router);
                }
            }
            What::Dial(link) => self.dialled(link, parcel),
            What::Granted => self.granted(parcel),
            What::Refused => {
                if let Some(speaker) = &mut self.nodes[router as usize].speaker {
                    speaker.connect_failed(parcel.conn, now);
                    self.wake(router);
                }
            }
            What::Closed => {
                if let Some(speaker) = &mut self.nodes[router as usize].speaker {
                    speaker.closed(parcel.conn, now);
                    self.wake(router);
                }
            }
            What::Keepalive | What::Nothing => {}
        }
    }

    /// Notes that a router has something to send.
    fn wake(&mut self, router: u32) {
        if !std::mem::replace(&mut self.is_awake[router as usize], true) {
            self.awake.push(router);
        }
    }

    /// Lets every noted router send.
    fn answer(&mut self) {
        let mut awake = std::mem::take(&mut self.awake);
        for router in awake.drain(..) {
            self.is_awake[router as usize] = false;
            let Some(mut speaker) = self.nodes[router as usize].speaker.take() else {
                continue;
            };
            self.drain(router, &mut speaker);
            self.look(router, &mut speaker);
            if let Some((at, _)) = speaker.poll_timeout() {
                self.wake_at(router, at);
            }
            self.nodes[router as usize].speaker = Some(speaker);
        }
        // A reply arrives at a later instant, so it wakes no router at this one.
        debug_assert!(self.awake.is_empty());
        self.awake = awake;
    }

    fn wake_at(&mut self, router: u32, at: Instant) {
        let wake = &mut self.wakes[router as usize];
        if at < *wake {
            // A deadline that has passed is due at once; time must not go backwards.
            *wake = at.max(self.now);
            self.alarms.add(*wake, router);
        }
    }

    /// Takes all messages and events from a router until its work is done.
    fn drain(&mut self, router: u32, speaker: &mut Speaker) {
        if let Some(tcp) = self.tcp.as_ref().filter(|tcp| tcp.serves(router)) {
            speaker.drained(tcp.drained);
            self.write_more(router, speaker);
        }
        loop {
            let more = speaker.work(BUDGET, self.now);
            self.send_ready(router, speaker);
            let mut quiet = true;
            while let Some(event) = speaker.poll_event() {
                quiet = false;
                let left = match self.tcp {
                    None => Some(event),
                    Some(_) => self.act_on_tcp(router, speaker, event),
                };
                if let Some(event) = left {
                    self.happened(router, speaker, event);
                }
            }
            if !more && quiet {
                return;
            }
        }
    }

    /// Sends everything that is ready.
    #[inline]
    fn send_ready(&mut self, router: u32, speaker: &mut Speaker) {
        let mut ready = std::mem::take(&mut self.ready);
        loop {
            ready.extend(std::iter::from_fn(|| speaker.poll_ready()).take(AHEAD));
            if ready.is_empty() {
                break;
            }
            let ends = &self.nodes[router as usize].ends;
            let places = ready
                .iter()
                .filter_map(|conn| ends.get(conn.index() as usize));
            read_ahead(places.map(|end| end.peer));
            for conn in ready.drain(..) {
                self.send_all(router, speaker, conn);
            }
        }
        self.ready = ready;
    }

    /// Sends everything that a connection has.
    #[inline]
    fn send_all(&mut self, router: u32, speaker: &mut Speaker, conn: ConnId) {
        if self.is_over_tcp(router, conn) {
            return self.write_tcp(router, speaker, conn);
        }
        loop {
            self.buffer.clear();
            let more = speaker.fill(conn, &mut self.buffer, FILL_MAX, self.now);
            if self.buffer.len() == KEEPALIVE.len() && self.buffer[18] == KEEPALIVE[18] {
                self.totals.messages += 1;
                self.send_keepalive(router, conn);
            } else if !self.buffer.is_empty() {
                let octets = std::mem::take(&mut self.buffer);
                self.send_octets(router, conn, &octets);
                self.buffer = octets;
            }
            if !more {
                return;
            }
        }
    }

    /// Sends KEEPALIVEs on connections that have nothing else to send.
    fn send_keepalives(&mut self, router: u32) {
        let mut keepalives = std::mem::take(&mut self.keepalives);
        self.totals.messages += keepalives.len() as u64;
        for conns in keepalives.chunks(AHEAD) {
            let ends = &self.nodes[router as usize].ends;
            let places = conns
                .iter()
                .filter_map(|conn| ends.get(conn.index() as usize));
            read_ahead(places.map(|end| end.peer));
            for conn in conns {
                self.send_keepalive(router, *conn);
            }
        }
        keepalives.clear();
        self.keepalives = keepalives;
    }

    fn send_octets(&mut self, router: u32, conn: ConnId, octets: &[u8]) {
        let (messages, updates) = count(octets);
        self.totals.messages += u64::from(messages);
        self.observer.sent(router, updates, self.now);
        let number = self.post.keep(octets);
        self.send(router, conn, What::Octets(number), octets.len());
    }

    /// Does what a speaker asks of its owner.
    fn happened(&mut self, router: u32, speaker: &Speaker, event: SpeakerEvent) {
        match event {
            SpeakerEvent::Connect { conn, remote, .. } => {
                self.dial(router, conn, remote.ip());
            }
            SpeakerEvent::Close { conn, last } => {
                if !last.is_empty() {
                    self.send_octets(router, conn, &last);
                }
                self.hang_up(router, conn);
            }
            SpeakerEvent::Up { peer, conn } => {
                self.nodes[router as usize].up += 1;
                self.totals.endpoints_up += 1;
                self.came_up(router, conn);
                let link = self.link_of(router, speaker, (peer, conn));
                self.set_session(router, link, true);
            }
            SpeakerEvent::Down { remote, .. } => {
                self.set_session(router, self.link_to(router, remote), false);
                self.nodes[router as usize].up -= 1;
                self.totals.endpoints_up -= 1;
                self.totals.sessions_lost += 1;
            }
            SpeakerEvent::Malformed { .. } => self.totals.malformed += 1,
            SpeakerEvent::Forgotten { .. } => {}
        }
    }

    /// The speaker of a router, unless it has failed.
    pub(crate) fn speaker(&self, router: u32) -> Option<&Speaker> {
        self.nodes[router as usize].speaker.as_deref()
    }

    /// Mutable, because a speaker builds what it advertises to a peer only when that is inspected.
    pub(crate) fn speaker_mut(&mut self, router: u32) -> Option<&mut Speaker> {
        self.nodes[router as usize].speaker.as_deref_mut()
    }

    /// Time since the last UPDATE.
    pub(crate) fn quiet_for(&self) -> Duration {
        self.observer.quiet_for(self.now)
    }
}

/// Reads all values with nothing in between, so that the processor waits for their memory only
/// once.
#[inline]
fn read_ahead(values: impl Iterator<Item = u32>) {
    std::hint::black_box(values.fold(0, u32::wrapping_add));
}

/// Number of messages in `octets`, which holds only complete ones, and of UPDATEs among them.
fn count(mut octets: &[u8]) -> (u32, u32) {
    let (mut messages, mut updates) = (0, 0);
    while let [.., kind] = octets.get(..19).unwrap_or_default() {
        messages += 1;
        updates += u32::from(*kind == 2);
        let length = usize::from(u16::from_be_bytes([octets[16], octets[17]]));
        octets = octets.get(length.max(19)..).unwrap_or_default();
    }
    (messages, updates)
}

fn updates_in(octets: &[u8]) -> u32 {
    count(octets).1
}
