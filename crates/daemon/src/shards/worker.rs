//! The loop of a thread that carries packets. Start with [`Worker::run`].

use std::io;
use std::sync::atomic::Ordering::Release;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};

use base::{Instant, Route};
use edge::{Change, Path, Taken};
use reactor::{Interest, Reactor, Ready, RecvBatch, Waker};

use super::Stats;
use super::batch::Batch;
use crate::inside::Inside;
use crate::rest::Rest;
use crate::sockets::{Outside, Sockets};
use crate::source::Source;

/// Batches read from one socket in a turn before other sources get theirs.
const READS: usize = 8;

/// The parts of a [`Worker`].
pub(super) struct Parts {
    pub(super) path: Path,
    pub(super) sockets: Sockets,
    pub(super) inside: Inside,
    pub(super) reactor: Reactor,
    /// Datagrams read with one system call.
    pub(super) batch: usize,
    pub(super) changes: Receiver<Change>,
    /// Wakes this thread.
    pub(super) waker: Arc<Waker>,
    pub(super) batches: SyncSender<Batch>,
    /// Wakes the first thread.
    pub(super) first: Arc<Waker>,
    pub(super) stats: Arc<Mutex<Stats>>,
    /// Number of changes that the thread has applied.
    pub(super) applied: Arc<AtomicU64>,
    /// Set when a thread ends.
    pub(super) ended: Arc<AtomicBool>,
}

/// A thread that carries packets.
pub(super) struct Worker {
    parts: Parts,
    received: RecvBatch,
    left: Batch,
    /// A reply to a packet that was not forwarded, such as an ICMP error.
    composed: Vec<u8>,
    stats: Stats,
    now: Instant,
    rest: Rest,
    /// Datagrams received in this turn.
    came: u64,
    is_over: bool,
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
        Self {
            received: RecvBatch::new(parts.batch),
            parts,
            left: Batch::default(),
            composed: Vec::new(),
            stats: Stats::default(),
            now: Instant::ZERO,
            rest: Rest::new(),
            came: 0,
            is_over: false,
        }
    }

    /// Runs until the first thread ends it.
    pub(super) fn run(mut self) -> io::Result<()> {
        let parts = &self.parts;
        let _farewell = Farewell(Arc::clone(&parts.ended), Arc::clone(&parts.first));
        self.stats.thread = reactor::usage::this_thread();
        while !self.is_over {
            self.turn()?;
        }
        Ok(())
    }

    fn turn(&mut self) -> io::Result<()> {
        if let Some(span) = self.rest.span(self.now, None) {
            self.parts.reactor.pause(span);
        }
        let now = self.parts.reactor.wait(None)?;
        self.now = now;
        self.came = 0;
        let mut other_work = false;
        while let Some(ready) = self.parts.reactor.next_ready() {
            let source = Source::from_bits(ready.user);
            other_work |= !matches!(source, Source::Udp(_));
            match source {
                Source::Udp(number) => {
                    if ready.readiness.writable() {
                        let Parts {
                            sockets, reactor, ..
                        } = &mut self.parts;
                        sockets.writable(number, reactor);
                    }
                    if ready.readiness.readable() {
                        self.receive(number, ready, now)?;
                    }
                }
                Source::Tun(_) => self.forward(now)?,
                _ => self.change(),
            }
        }
        self.rest.note(now, self.came, other_work);
        self.parts.inside.flush();
        self.send();
        self.hand_over();
        Ok(())
    }

    /// Applies pending changes. If the first thread is gone, this one ends.
    fn change(&mut self) {
        let parts = &mut self.parts;
        parts.waker.clear();
        let mut taken = 0;
        loop {
            match parts.changes.try_recv() {
                Ok(change) => parts.path.apply(change),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.is_over = true;
                    break;
                }
            }
            taken += 1;
        }
        if taken > 0 {
            parts.applied.fetch_add(taken, Release);
            parts.first.wake();
        }
    }

    fn receive(&mut self, number: u32, ready: Ready, now: Instant) -> io::Result<()> {
        let Self {
            parts,
            received,
            left,
            stats,
            came,
            ..
        } = self;
        for _ in 0..READS {
            if let Err(error) = parts.sockets.receive(number, received) {
                // A socket that fails to read would stay ready, and the loop would never wait
                // again.
                tracing::error!(%error, socket = number, "a socket failed; it is not read any more");
                return parts.reactor.set_interest(ready.token, Interest::NONE);
            }
            *came += received.iter().count() as u64;
            for datagram in received.iter() {
                let route = Route {
                    peer: datagram.peer,
                    local: datagram.local,
                    socket: number,
                };
                let inside = &mut parts.inside;
                let taken = parts.path.receive(&route, datagram.bytes, now, inside);
                if taken == Taken::Left && !left.push_datagram(route, datagram.bytes) {
                    stats.dropped += 1;
                }
            }
            if !received.is_full() {
                parts.reactor.drained(ready.token);
                break;
            }
        }
        Ok(())
    }

    fn forward(&mut self, now: Instant) -> io::Result<()> {
        let Self {
            parts, left, stats, ..
        } = self;
        let Parts {
            path,
            sockets,
            inside,
            reactor,
            ..
        } = parts;
        inside.read(reactor, |octets, reactor| {
            let taken = path.forward(octets, now, &mut Outside { sockets, reactor });
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
            inside,
            reactor,
            ..
        } = &mut self.parts;
        while let Some(packet) = path.poll_inside() {
            edge::Inside::packet(inside, &packet);
            inside.flush();
        }
        loop {
            self.composed.clear();
            let Some(route) = path.poll_transmit(&mut self.composed) else {
                break;
            };
            if sockets.needs_room(route.socket) {
                sockets.make_room(route.socket, reactor);
            }
            if sockets.needs_room(route.socket) {
                sockets.dropped += 1;
            } else {
                sockets.push(route, &self.composed);
            }
        }
        if sockets.has_queued() {
            sockets.flush(reactor);
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
        stats.written = parts.inside.written();
        *parts.stats.lock().unwrap_or_else(PoisonError::into_inner) = *stats;
    }
}
