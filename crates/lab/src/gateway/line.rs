//! A box on the line: two ports, a queue for each direction, and the way's length behind the queue.

use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

use base::{Duration, Instant};
use qos::tree::Overhead;
use qos::{Discipline, Packet, Pool};
use reactor::namespace::Namespace;
use reactor::port::{BATCH, Frames, Port, PortError, PortOptions, Received};
use reactor::{Interest, PollerKind, Reactor, StoreKind, clock};
use wire::flow::Keys;

use super::model::Queues;
use super::tunnel;

/// Frames that wait or are on their way, of both directions.
const FRAMES_MAX: u32 = 16_384;
/// Largest packet on the wires.
const MTU: u32 = 1_500;
/// Octets of Ethernet's header.
const HEADER: usize = 14;
/// Longest sleep, after which the thread looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A box that runs on a thread of its own until it is dropped.
#[derive(Debug)]
pub(super) struct Line {
    stop: Arc<AtomicBool>,
    /// Whose packets go through a tunnel from here, as a number; 0 for nobody's.
    wrapped: Arc<AtomicU32>,
    thread: Option<JoinHandle<io::Result<io::Result<()>>>>,
}

impl Line {
    /// Starts one between two interfaces of `namespace`: `up` is asked for what comes from the first, `down` for what
    /// comes from the second. What leaves a queue arrives `delay` later.
    ///
    /// # Errors
    /// The ports cannot be opened.
    pub(super) fn start(
        namespace: &Namespace,
        (lan, wan): (&str, &str),
        queues: Queues,
        delay: Duration,
    ) -> io::Result<Self> {
        let options = PortOptions {
            recv_buffer_bytes: Some(4 << 20),
            bypass_queue: true,
            ..PortOptions::default()
        };
        let ports = namespace.run(|| -> Result<_, PortError> {
            Ok([Port::open(lan, &options)?, Port::open(wan, &options)?])
        })?;
        let ports = ports.map_err(|error| match error {
            PortError::Denied(_) => io::Error::new(io::ErrorKind::PermissionDenied, error),
            error => io::Error::other(error),
        })?;
        let stop = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stop);
        let wrapped = Arc::new(AtomicU32::new(0));
        let wraps = Arc::clone(&wrapped);
        let overhead = queues.overhead;
        let ways = [queues.up, queues.down].map(Way::new);
        let thread = namespace.spawn(lan, move || {
            let frames = Frames::new(FRAMES_MAX, MTU);
            Middle {
                ports,
                ways,
                frames,
                delay,
                overhead,
                wraps,
                received: Vec::new(),
            }
            .run(&stops)
        })?;
        Ok(Self {
            stop,
            wrapped,
            thread: Some(thread),
        })
    }

    /// Puts what the host with this address sends into a tunnel before it is queued. The end of the tunnel is any other
    /// box, where a packet in a tunnel is taken out behind the queue.
    pub(super) fn wrap(&self, host: Ipv4Addr) {
        self.wrapped.store(host.to_bits(), Ordering::Relaxed);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // What the thread failed with showed as loss.
            let _ = thread.join();
        }
    }
}

/// One direction.
#[derive(Debug)]
struct Way {
    queue: Box<dyn Discipline>,
    pool: Pool,
    /// Frames that have left the queue, by when they arrive.
    travelling: VecDeque<(Instant, u32)>,
}

impl Way {
    fn new(queue: Box<dyn Discipline>) -> Self {
        Self {
            queue,
            pool: Pool::new(FRAMES_MAX),
            travelling: VecDeque::new(),
        }
    }

    fn put(&mut self, frames: &mut Frames, handle: u32, overhead: Overhead, now: Instant) {
        let frame = frames.get(handle);
        let packet = frame.len().saturating_sub(HEADER);
        let packet = Packet {
            handle,
            length: overhead.on_line(u32::try_from(packet).unwrap_or(u32::MAX)),
            keys: Keys::read_frame(frame),
            arrived: now,
            ..Packet::default()
        };
        match self.pool.insert(packet) {
            Some(id) => {
                self.queue.enqueue(&mut self.pool, id, now);
            }
            None => frames.give_back(handle),
        }
        self.reclaim(frames);
    }

    /// Lets go what may go.
    fn serve(&mut self, frames: &mut Frames, now: Instant, delay: Duration) {
        while let Some(id) = self.queue.dequeue(&mut self.pool, now) {
            let packet = self.pool.take(id);
            if packet.marked {
                wire::ecn::mark_frame(frames.get_mut(packet.handle));
            }
            self.travelling.push_back((now + delay, packet.handle));
        }
        self.reclaim(frames);
    }

    fn reclaim(&mut self, frames: &mut Frames) {
        for (handle, _) in self.pool.discarded() {
            frames.give_back(handle);
        }
    }

    /// When there is something to do.
    fn next(&self, now: Instant) -> Option<Instant> {
        let arrival = self.travelling.front().map(|(at, _)| *at);
        arrival.into_iter().chain(self.queue.next_time(now)).min()
    }
}

#[derive(Debug)]
struct Middle {
    ports: [Port; 2],
    ways: [Way; 2],
    frames: Frames,
    delay: Duration,
    overhead: Overhead,
    wraps: Arc<AtomicU32>,
    received: Vec<Received>,
}

impl Middle {
    fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::default())?;
        for (number, port) in self.ports.iter().enumerate() {
            reactor
                .add(port, "port", number as u64, Interest::READ)
                .map_err(io::Error::other)?;
        }
        let mut now = clock::now();
        while !stop.load(Ordering::Relaxed) {
            let next = self.ways.iter().filter_map(|way| way.next(now)).min();
            let latest = now + LOOK_EVERY;
            now = reactor.wait(Some(next.map_or(latest, |at| at.min(latest))))?;
            while reactor.next_ready().is_some() {}
            self.turn(now).map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn turn(&mut self, now: Instant) -> Result<(), PortError> {
        for side in 0..2 {
            while self.receive(side, now)? == BATCH {}
            self.ways[side].serve(&mut self.frames, now, self.delay);
        }
        for side in 0..2 {
            let travelling = &mut self.ways[side].travelling;
            while let Some(&(at, handle)) = travelling.front()
                && at <= now
            {
                travelling.pop_front();
                if self.wraps.load(Ordering::Relaxed) == 0 {
                    tunnel::unwrap_frame(&mut self.frames, handle);
                }
                // What the wire does not take is lost.
                self.ports[1 - side].send(&self.frames, &[handle])?;
                self.frames.give_back(handle);
            }
        }
        Ok(())
    }

    fn receive(&mut self, side: usize, now: Instant) -> Result<usize, PortError> {
        self.received.clear();
        let count = self.ports[side].receive(&mut self.frames, &mut self.received)?;
        for received in self.received.drain(..) {
            // With all offloads off there is nothing to be cut.
            if let Received::Frame(handle) = received {
                let host = self.wraps.load(Ordering::Relaxed);
                if side == 0 && host != 0 {
                    tunnel::wrap_frame(&mut self.frames, handle, Ipv4Addr::from_bits(host));
                }
                self.ways[side].put(&mut self.frames, handle, self.overhead, now);
            }
        }
        Ok(count)
    }
}
