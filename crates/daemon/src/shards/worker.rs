//! The loop of a thread that carries packets. Start with [`Worker::run`].

use crate::ports::Ports;
use edge::access::Either::{First, Second};
use std::io;
use std::sync::atomic::Ordering::Release;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};

use crate::served::Path;
use base::{Duration, Instant, Route};
use edge::{Handover, Taken};
use reactor::faults::Heir;
use reactor::{Interest, Reactor, Ready, RecvBatch, Waker, clock};

use super::batch::{Batch, NAT_EVENTS_MAX};
use super::doors::{Doors, Inbox};
use super::{Order, Stats};
use crate::health::{Health, Outcome};
use crate::inside::Inside;
use crate::rest::Rest;
use crate::sockets::{Outside, Sockets};
use crate::source::Source;

/// Batches read from one socket in a turn before other sources get theirs.
const READS: usize = 8;
/// How often in a row the wait for descriptors may fail before the thread ends, and the daemon with it.
const WAITS_FAILED_MAX: u32 = 8;
/// Calls of [`Path::drain`] in a turn before other sources get theirs.
const DRAINS: usize = 8;
/// Wait before queues that moved, or what the first thread had no room for, are handed over again.
const OWED: Duration = Duration::from_millis(1);
/// Pause after a failed wait.
const PAUSE: Duration = Duration::from_millis(10);

/// The parts of a [`Worker`].
pub(super) struct Parts {
    pub(super) path: Path,
    pub(super) sockets: Sockets,
    pub(super) ports: Ports,
    pub(super) inside: Inside,
    pub(super) reactor: Reactor,
    /// Datagrams read with one system call.
    pub(super) batch: usize,
    pub(super) orders: Receiver<Order>,
    /// Wakes this thread.
    pub(super) waker: Arc<Waker>,
    pub(super) batches: SyncSender<Batch>,
    /// Packets for queues on other threads, and for queues on this one.
    pub(super) doors: Doors,
    pub(super) inbox: Inbox,
    /// Wakes the first thread.
    pub(super) first: Arc<Waker>,
    pub(super) stats: Arc<Mutex<Stats>>,
    /// Number of changes that the thread has applied.
    pub(super) applied: Arc<AtomicU64>,
    /// Set to the number of the device, plus one, when a thread loses its queue of the TUN device.
    pub(super) lost: Arc<AtomicU64>,
    /// Set when a thread ends.
    pub(super) ended: Arc<AtomicBool>,
}

/// A thread that carries packets.
pub(super) struct Worker {
    parts: Parts,
    received: RecvBatch,
    left: Batch,
    parcels: Vec<(usize, Handover)>,
    /// Changes applied in this turn.
    applied: u64,
    /// A reply to a packet that was not forwarded, such as an ICMP error.
    composed: Vec<u8>,
    stats: Stats,
    now: Instant,
    rest: Rest,
    /// Datagrams received in this turn.
    came: u64,
    is_over: bool,
    /// How often the TUN device of this thread's queue was made again.
    made: u64,
    /// The sources of this thread that have failed.
    health: Health,
    /// Failed waits in a row.
    waits_failed: u32,
}

/// Notifies the first thread when this one ends, for any reason.
struct Farewell(Arc<AtomicBool>, Arc<Waker>);

impl Drop for Farewell {
    fn drop(&mut self) {
        self.0.store(true, Release);
        self.1.wake();
    }
}

impl Worker {
    pub(super) fn new(parts: Parts) -> Self {
        let mut worker = Self {
            received: RecvBatch::new(parts.batch),
            parts,
            left: Batch::default(),
            parcels: Vec::new(),
            applied: 0,
            composed: Vec::new(),
            stats: Stats::default(),
            now: Instant::ZERO,
            rest: Rest::new(),
            came: 0,
            is_over: false,
            made: 0,
            health: Health::default(),
            waits_failed: 0,
        };
        for number in 0..worker.parts.ports.len() as u32 {
            let bound = worker.parts.ports.bind(number, &mut worker.parts.reactor);
            if let Err(error) = bound {
                let name = || format!("pppoe interface {number}");
                let source = Source::Port(number);
                worker.health.lost(source, name, &error, Instant::ZERO);
            }
        }
        worker
    }

    /// Runs until the first thread ends it, by that thread's plan of faults if a test has one.
    pub(super) fn run(mut self, heir: Heir) -> io::Result<()> {
        heir.take();
        let parts = &self.parts;
        let _farewell = Farewell(Arc::clone(&parts.ended), Arc::clone(&parts.first));
        self.stats.thread = reactor::usage::this_thread();
        while !self.is_over {
            self.turn()?;
        }
        Ok(())
    }

    fn turn(&mut self) -> io::Result<()> {
        if let Some(span) = self.rest.span(self.now, self.deadline()) {
            self.parts.reactor.pause(span);
        }
        let now = self.wait()?;
        self.now = now;
        self.came = 0;
        let mut other_work = false;
        while let Some(ready) = self.parts.reactor.next_ready() {
            let source = Source::from_bits(ready.user);
            other_work |= !matches!(source, Source::Udp(_) | Source::Port(_));
            match source {
                Source::Udp(number) => {
                    if ready.readiness.writable() {
                        let Parts {
                            sockets, reactor, ..
                        } = &mut self.parts;
                        sockets.writable(number, reactor);
                    }
                    if ready.readiness.readable() {
                        let outcome = self.receive(number, ready, now);
                        self.note(source, ready, outcome);
                    }
                }
                Source::Port(number) => {
                    if ready.readiness.writable() {
                        let Parts { ports, reactor, .. } = &mut self.parts;
                        ports.writable(number, reactor);
                    }
                    if ready.readiness.readable() {
                        let outcome = self.receive_frames(number, ready, now);
                        self.note(source, ready, outcome);
                    }
                }
                Source::Tun(_) => {
                    let outcome = self.forward(now).into();
                    self.note(source, ready, outcome);
                }
                _ => self.change(),
            }
        }
        self.mend();
        let path = &mut self.parts.path;
        if path.poll_timeout().is_some_and(|(at, _)| at <= now) {
            path.handle_timeout(now);
        }
        self.drain();
        self.rest.note(now, self.came, other_work);
        self.parts.inside.flush();
        self.send();
        self.pass_on();
        self.hand_over();
        Ok(())
    }

    /// When the next wait has to end.
    fn deadline(&self) -> Option<Instant> {
        let Parts {
            path,
            sockets,
            ports,
            ..
        } = &self.parts;
        // Queued packets wait for blocked sockets, which wake this thread when they are writable.
        let is_blocked = sockets.is_blocked() || ports.is_blocked();
        let queues = path.next_deadline().filter(|_| !is_blocked);
        // What the first thread had no room for is passed on again.
        let is_owing = path.owes() || !self.left.is_empty();
        let owed = is_owing.then(|| self.now + OWED);
        let nat = path.poll_timeout().map(|(at, _)| at);
        [self.health.due(), queues, owed, nat]
            .into_iter()
            .flatten()
            .min()
    }

    /// Waits for the next turn. After a failure the turn goes on without any descriptors, with a new
    /// poller.
    fn wait(&mut self) -> io::Result<Instant> {
        let due = self.deadline();
        let reactor = &mut self.parts.reactor;
        let error = match reactor.wait(due) {
            Ok(now) => {
                self.waits_failed = 0;
                return Ok(now);
            }
            Err(error) => error,
        };
        self.waits_failed += 1;
        if self.waits_failed >= WAITS_FAILED_MAX {
            return Err(error);
        }
        reactor.pause(PAUSE);
        let reopened = reactor.reopen();
        tracing::warn!(%error, reopened = reopened.is_ok(), "a packet thread's wait for descriptors failed");
        // Orders that arrived meanwhile must not wait for a poller that cannot be opened.
        self.change();
        Ok(clock::now())
    }

    /// Records what became of a source. The first thread makes a lost device again.
    fn note(&mut self, source: Source, ready: Ready, outcome: Outcome) {
        let (parts, health) = (&mut self.parts, &mut self.health);
        let name = || format!("{} of a packet thread", ready.owner);
        let error = match outcome {
            Outcome::Again => return,
            Outcome::Rest(error) => {
                health.rests((source, ready.token), name, &error, self.now);
                let silenced = parts.reactor.set_interest(ready.token, Interest::NONE);
                let Err(error) = silenced else { return };
                error
            }
            Outcome::Lost(error) => error,
        };
        health.lost(source, name, &error, self.now);
        match source {
            Source::Udp(number) => parts.sockets.lose(number, &mut parts.reactor),
            Source::Port(number) => parts.ports.lose(number, &mut parts.reactor),
            _ => {
                parts.inside.lose(&mut parts.reactor);
                parts.lost.store(self.made + 1, Release);
                parts.first.wake();
            }
        }
    }

    /// Tries the sources that are due.
    fn mend(&mut self) {
        let parts = &mut self.parts;
        if let Some((number, error)) = parts.sockets.take_failed() {
            parts.sockets.lose(number, &mut parts.reactor);
            let name = || "udp of a packet thread".to_owned();
            self.health
                .lost(Source::Udp(number), name, &error, self.now);
        }
        if let Some((number, error)) = parts.ports.take_failed() {
            parts.ports.lose(number, &mut parts.reactor);
            let name = || format!("pppoe interface {number} of a packet thread");
            self.health
                .lost(Source::Port(number), name, &error, self.now);
        }
        while let Some((source, _, token)) = self.health.next_due(self.now) {
            let mended = match (token, source) {
                (Some(token), Source::Udp(number)) => {
                    let interest = parts.sockets.interest(number);
                    parts.reactor.set_interest(token, interest)
                }
                (Some(token), _) => parts.reactor.set_interest(token, Interest::READ),
                (None, Source::Udp(number)) => parts.sockets.reopen(number, &mut parts.reactor),
                (None, Source::Port(number)) => parts.ports.bind(number, &mut parts.reactor),
                // The first thread gives this one another queue.
                (None, _) => Err(io::Error::other("the device is not there yet")),
            };
            match mended {
                Ok(()) => self.health.works(source, self.now),
                Err(error) => self.health.still_lost(source, &error, self.now),
            }
        }
    }

    /// Takes the packets for this thread's queues, then applies pending changes: what was handed over before a change is
    /// taken before it. If the first thread is gone, this one ends.
    fn change(&mut self) {
        self.parts.waker.clear();
        let mut orders = Vec::new();
        loop {
            match self.parts.orders.try_recv() {
                Ok(order) => orders.push(order),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.is_over = true;
                    break;
                }
            }
        }
        let (parts, now) = (&mut self.parts, self.now);
        let Parts {
            path,
            sockets,
            ports,
            inside,
            reactor,
            inbox,
            ..
        } = parts;
        inbox.take(!orders.is_empty(), |batch| {
            path.take_handover(
                batch,
                now,
                &mut Outside {
                    sockets,
                    ports,
                    reactor,
                },
                inside,
            );
        });
        for order in orders {
            self.obey(order);
        }
        let Parts {
            path,
            sockets,
            ports,
            inside,
            reactor,
            ..
        } = &mut self.parts;
        path.retry_handovers(
            now,
            &mut Outside {
                sockets,
                ports,
                reactor,
            },
            inside,
        );
    }

    fn obey(&mut self, order: Order) {
        let parts = &mut self.parts;
        match order {
            Order::Change(change) => {
                parts.path.apply(change);
                self.applied += 1;
            }
            Order::Port(number) => {
                let source = Source::Port(number);
                match parts.ports.bind(number, &mut parts.reactor) {
                    Ok(()) => self.health.works(source, self.now),
                    Err(error) => {
                        parts.ports.lose(number, &mut parts.reactor);
                        let name = || format!("pppoe interface {number} of a packet thread");
                        self.health.lost(source, name, &error, self.now);
                    }
                }
            }
            Order::Queue(queue, made) => {
                let source = Source::Tun(0);
                self.made = made;
                match parts.inside.put(queue, &mut parts.reactor) {
                    Ok(()) => self.health.works(source, self.now),
                    Err(error) => {
                        let error = io::Error::other(format!("{error:#}"));
                        self.health.still_lost(source, &error, self.now);
                    }
                }
            }
        }
    }

    /// Sends queued packets that may leave.
    fn drain(&mut self) {
        let now = self.now;
        let Parts {
            path,
            sockets,
            ports,
            inside,
            reactor,
            ..
        } = &mut self.parts;
        let is_due = |path: &Path| path.next_deadline().is_some_and(|at| at <= now);
        let mut left = DRAINS;
        while left > 0 && is_due(path) && !sockets.is_blocked() && !ports.is_blocked() {
            path.drain(
                now,
                &mut Outside {
                    sockets,
                    ports,
                    reactor,
                },
                inside,
            );
            left -= 1;
        }
    }

    fn receive(&mut self, number: u32, ready: Ready, now: Instant) -> Outcome {
        let Self {
            parts,
            received,
            left,
            stats,
            came,
            ..
        } = self;
        for _ in 0..READS {
            match parts.sockets.receive(number, received) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return error.into(),
            }
            *came += received.iter().count() as u64;
            let datagrams = || {
                received.iter().map(|datagram| {
                    let route = Route {
                        peer: datagram.peer,
                        local: datagram.local,
                        socket: number,
                    };
                    (First(route), datagram.bytes)
                })
            };
            parts.path.touch(datagrams);
            for (route, bytes) in datagrams() {
                let inside = &mut parts.inside;
                let taken = parts.path.receive(&route, bytes, now, inside);
                if taken == Taken::Left && !left.push_datagram(route, bytes) {
                    stats.dropped += 1;
                }
            }
            if !received.is_full() {
                parts.reactor.drained(ready.token);
                break;
            }
        }
        Outcome::Again
    }

    /// Reads the frames of a PPPoE interface whose session ids are this thread's.
    fn receive_frames(&mut self, number: u32, ready: Ready, now: Instant) -> Outcome {
        let Self {
            parts,
            left,
            stats,
            came,
            ..
        } = self;
        for _ in 0..READS {
            let has_more = match parts.ports.receive(number) {
                Ok(has_more) => has_more,
                Err(error) => return Outcome::Lost(error),
            };
            let (path, inside) = (&mut parts.path, &mut parts.inside);
            path.touch(|| parts.ports.ahead(number));
            *came += parts.ports.each(number, |route, packet| {
                let route = Second(route);
                let taken = path.receive(&route, packet, now, inside);
                if taken == Taken::Left && !left.push_datagram(route, packet) {
                    stats.dropped += 1;
                }
            });
            if !has_more {
                parts.reactor.drained(ready.token);
                break;
            }
        }
        Outcome::Again
    }

    fn forward(&mut self, now: Instant) -> io::Result<()> {
        let Self {
            parts, left, stats, ..
        } = self;
        let Parts {
            path,
            sockets,
            ports,
            inside,
            reactor,
            ..
        } = parts;
        inside.read(reactor, |octets, reactor| {
            let taken = path.forward(
                octets,
                now,
                &mut Outside {
                    sockets,
                    ports,
                    reactor,
                },
            );
            if taken == Taken::Left && !left.push_packet(octets) {
                stats.dropped += 1;
            }
        })?;
        Ok(())
    }

    /// Sends ICMP errors to the inside and datagrams to peers.
    fn send(&mut self) {
        let Parts {
            path,
            sockets,
            ports,
            inside,
            reactor,
            ..
        } = &mut self.parts;
        while let Some(packet) = path.poll_inside() {
            edge::Inside::packet(inside, &packet);
            inside.flush();
        }
        path.pour(&mut Outside {
            sockets,
            ports,
            reactor,
        });
        if sockets.has_queued() {
            sockets.flush(reactor);
        }
        if ports.has_queued() {
            ports.flush(reactor);
        }
    }

    /// Passes packets for queues on other threads on. Then the changes of this turn count as applied.
    fn pass_on(&mut self) {
        let Parts { path, doors, .. } = &mut self.parts;
        path.poll_handovers(&mut self.parcels);
        doors.pass(&mut self.parcels, |to, batch| {
            path.refuse_handover(to, batch)
        });
        if self.applied > 0 && !path.owes() {
            let applied = core::mem::take(&mut self.applied);
            self.parts.applied.fetch_add(applied, Release);
            self.parts.first.wake();
        }
    }

    /// Passes everything that this thread does not handle to the first thread.
    fn hand_over(&mut self) {
        let Self {
            parts,
            left,
            composed,
            stats,
            ..
        } = self;
        let path = &mut parts.path;
        left.heard.extend(core::iter::from_fn(|| path.poll_heard()));
        left.logged
            .extend(core::iter::from_fn(|| path.poll_logged()));
        left.lost.extend(core::iter::from_fn(|| path.poll_lost()));
        // Beyond this they wait in the translation, which then allocates no block.
        let room = NAT_EVENTS_MAX.saturating_sub(left.nat.len());
        left.nat
            .extend(core::iter::from_fn(|| path.poll_nat_event()).take(room));
        loop {
            composed.clear();
            let Some(tapped) = path.poll_tapped(composed) else {
                break;
            };
            left.push_tapped(tapped, composed);
        }
        if !left.is_empty() {
            match parts.batches.try_send(core::mem::take(left)) {
                Ok(()) => parts.first.wake(),
                Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => {
                    stats.dropped += batch.len();
                    *left = batch.remains();
                }
            }
        }
        stats.udp = parts.sockets.stats();
        stats.send_dropped = parts.sockets.dropped;
        stats.nowhere = parts.inside.nowhere;
        stats.faults = self.health.faults();
        stats.written = parts.inside.written();
        *parts.stats.lock().unwrap_or_else(PoisonError::into_inner) = *stats;
    }
}
