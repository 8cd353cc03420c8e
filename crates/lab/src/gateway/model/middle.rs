//! A router or modem between the hosts, with a queue for each direction.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use base::{Datagram, Duration, Instant, Machine, Route};
use qos::tree::{Overhead, Spec, SpecError, Tree};
use qos::{Discipline, Packet, Pool};
use wire::flow::Keys;

use super::packet;
use crate::gateway::treatment::Both;

/// Limit of queued packets in both directions together.
const PACKETS_MAX: u32 = 65_536;

/// One direction.
#[derive(Debug)]
struct Way {
    queue: Tree,
    pool: Pool,
    octets: Vec<Vec<u8>>,
    free: Vec<u32>,
}

impl Way {
    fn new(spec: &Spec, seed: u64) -> Result<Self, SpecError> {
        Ok(Self {
            queue: Tree::new(spec, seed, Instant::ZERO)?,
            pool: Pool::new(PACKETS_MAX),
            octets: Vec::new(),
            free: Vec::new(),
        })
    }

    fn put(&mut self, octets: &[u8], overhead: Overhead, now: Instant) {
        let handle = self.free.pop().unwrap_or_else(|| {
            self.octets.push(Vec::new());
            u32::try_from(self.octets.len() - 1).expect("fewer than the pool's limit")
        });
        self.octets[handle as usize] = octets.to_vec();
        let length = overhead.on_line(u32::try_from(octets.len()).unwrap_or(u32::MAX));
        let packet = Packet {
            handle,
            length,
            keys: Keys::read(octets),
            arrived: now,
            ..Packet::default()
        };
        match self.pool.insert(packet) {
            Some(id) => {
                self.queue.enqueue(&mut self.pool, id, now);
            }
            None => self.free.push(handle),
        }
        self.reclaim();
    }

    fn get(&mut self, now: Instant) -> Option<Vec<u8>> {
        let id = self.queue.dequeue(&mut self.pool, now);
        self.reclaim();
        let sent = self.pool.take(id?);
        self.free.push(sent.handle);
        let mut octets = std::mem::take(&mut self.octets[sent.handle as usize]);
        if sent.marked {
            packet::mark(&mut octets);
        }
        Some(octets)
    }

    fn reclaim(&mut self) {
        for (handle, _) in self.pool.discarded() {
            self.free.push(handle);
        }
    }
}

/// A box with a queue for each direction and a delay to the next box.
#[derive(Debug)]
pub(super) struct Middle {
    up: Way,
    down: Way,
    overhead: Overhead,
    /// The next node upstream.
    above: SocketAddr,
    /// The next node downstream for each host.
    below: BTreeMap<Ipv4Addr, SocketAddr>,
    delay: Duration,
    /// Packets that have left a queue and are in flight, by arrival time.
    travelling: VecDeque<(Instant, SocketAddr, Vec<u8>)>,
    /// When a queue is to be polled again.
    wake: Option<Instant>,
}

impl Middle {
    /// A box with these queues; `seed` is the seed of their hashes.
    pub(super) fn new(
        (queues, seed): (&Both, u64),
        above: SocketAddr,
        below: BTreeMap<Ipv4Addr, SocketAddr>,
    ) -> Result<Self, SpecError> {
        Ok(Self {
            up: Way::new(&queues.up, seed)?,
            down: Way::new(&queues.down, seed)?,
            overhead: queues.overhead,
            above,
            below,
            delay: Duration::ZERO,
            travelling: VecDeque::new(),
            wake: None,
        })
    }

    /// The same box with this delay to the next node upstream.
    pub(super) fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    fn serve(&mut self, now: Instant) {
        while let Some(octets) = self.up.get(now) {
            self.travelling
                .push_back((now + self.delay, self.above, octets));
        }
        while let Some(octets) = self.down.get(now) {
            let to = destination(&octets).and_then(|to| self.below.get(&to).copied());
            if let Some(to) = to {
                self.travelling.push_back((now + self.delay, to, octets));
            }
        }
        let next = |way: &Way| way.queue.next_time(now);
        self.wake = next(&self.up).into_iter().chain(next(&self.down)).min();
    }
}

fn destination(octets: &[u8]) -> Option<Ipv4Addr> {
    let &[a, b, c, d] = octets.get(16..20)? else {
        return None;
    };
    Some(Ipv4Addr::new(a, b, c, d))
}

impl Machine for Middle {
    type Input<'a> = Datagram<'a>;
    type Transmit = Route;
    type Event = ();
    type Discard = Infallible;

    fn handle(&mut self, input: Datagram<'_>, now: Instant) -> Result<(), Infallible> {
        let down = destination(input.bytes).is_some_and(|to| self.below.contains_key(&to));
        let way = if down { &mut self.down } else { &mut self.up };
        way.put(input.bytes, self.overhead, now);
        self.serve(now);
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.serve(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Route> {
        if self.travelling.front()?.0 > now {
            return None;
        }
        let (_, peer, octets) = self.travelling.pop_front()?;
        out.extend_from_slice(&octets);
        Some(Route {
            peer,
            local: None,
            socket: 0,
        })
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let arrival = self.travelling.front().map(|(at, ..)| (*at, "arrival"));
        let queue = self.wake.map(|at| (at, "queue"));
        arrival.into_iter().chain(queue).min()
    }
}
