//! Runs flows through a bottleneck on a virtual clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use qos::tree::SpecError;
use sim::Rng;
use wire::flow::Keys;

use crate::demand::Demand;
use crate::line::{Bottleneck, Line, Passing};
use crate::tap::{Flow, Tap};
use crate::tcp::{Ack, Receiver, Sender, Setup};

/// Events of one run. At a limit the run ends, and [`Outcome::is_cut`] says so.
const EVENTS_MAX: u64 = 400_000_000;

/// Bytes of headers before the IP packet.
const LINK_HEADER: u32 = 14;

/// Hosts take a random time for each ACK, up to a packet's time at the bottleneck and up to this. Without it, flows of
/// a drop-tail queue run in lockstep (Floyd and Jacobson 1992).
const JITTER_MAX: u64 = 500_000;
const FRAME_BITS: u64 = 1514 * 8;

/// Bytes of a burst that only a time ends.
const ENDLESS: u64 = 1 << 48;

/// Bytes of a frame of cross traffic.
const CROSS_FRAME: u32 = 1514;

/// A run.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// The flows.
    pub demands: &'a [Demand],
    /// The bottleneck.
    pub line: &'a Line,
    /// Traffic of others in the bottleneck, in bits per second.
    pub cross_bps: u64,
    /// The source of chance.
    pub seed: u64,
    /// When the run ends at the latest, in nanoseconds.
    pub until: u64,
}

/// The result of a run.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The flows as a tap at their senders sees them.
    pub flows: Vec<Flow>,
    /// The run ended before all flows did.
    pub is_cut: bool,
    /// Packets that the bottleneck dropped.
    pub dropped: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Write(u32),
    Line,
    Data(u32, u64),
    Acked(u32, u64, Option<u64>),
    Delayed(u32),
    Timer(u32),
    Stop(u32),
    Cross,
}

struct Peer<'a> {
    demand: &'a Demand,
    sender: Sender,
    receiver: Receiver,
    tap: Tap,
    burst: usize,
    written: u64,
    /// The next burst is scheduled.
    is_writing: bool,
    is_done: bool,
    /// The earliest timer event that is scheduled.
    timer: Option<u64>,
    delayed: Option<u64>,
    /// When its last ACK arrives.
    acked_at: u64,
}

struct World<'a> {
    peers: Vec<Peer<'a>>,
    line: Bottleneck,
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    line_at: Option<u64>,
    open: usize,
    cross: Option<(u64, Rng)>,
    jitter: u64,
    rng: Rng,
}

/// Runs the flows. The same [`Run`] gives the same result, bit for bit.
///
/// # Errors
/// The bottleneck's queue cannot be made.
pub fn run(run: &Run<'_>) -> Result<Outcome, SpecError> {
    let peers = run.demands.iter().map(Peer::new).collect::<Vec<_>>();
    let mut world = World {
        line: Bottleneck::new(run.line, run.seed)?,
        heap: BinaryHeap::new(),
        count: 0,
        line_at: None,
        open: run
            .demands
            .iter()
            .filter(|demand| !demand.bursts.is_empty())
            .count(),
        peers,
        cross: None,
        jitter: (FRAME_BITS * 1_000_000_000 / run.line.rate_bps.max(1)).min(JITTER_MAX),
        rng: Rng::stream(run.seed, &["hosts"]),
    };
    for (flow, demand) in run.demands.iter().enumerate() {
        match demand.bursts.first() {
            Some(&(pause, _)) => world.at(pause, Event::Write(flow as u32)),
            None => world.peers[flow].is_done = true,
        }
        if let Some(until) = demand.until {
            world.at(until, Event::Stop(flow as u32));
        }
    }
    if let Some(gap) = (u64::from(CROSS_FRAME) * 8_000_000_000).checked_div(run.cross_bps) {
        world.cross = Some((gap.max(1), Rng::stream(run.seed, &["cross"])));
        world.at(0, Event::Cross);
    }
    let mut is_cut = false;
    while world.open > 0 {
        let Some(Reverse((now, _, event))) = world.heap.pop() else {
            break;
        };
        if now > run.until || world.count > EVENTS_MAX {
            is_cut = true;
            break;
        }
        world.step(now, event);
    }
    Ok(Outcome {
        flows: world
            .peers
            .into_iter()
            .map(|peer| peer.tap.finish())
            .collect(),
        is_cut,
        dropped: world.line.dropped,
    })
}

impl<'a> Peer<'a> {
    fn new(demand: &'a Demand) -> Peer<'a> {
        let mut sender = Sender::new(Setup {
            algorithm: demand.algorithm,
            initial: demand.initial,
            mss: demand.mss,
        });
        sender.handshake(demand.base);
        sender.open(demand.window(0));
        let mut tap = Tap::new(demand.mss, demand.header);
        tap.handshake(demand.base, demand.base);
        Peer {
            demand,
            sender,
            receiver: Receiver::new(demand.ack_every),
            tap,
            burst: 0,
            written: 0,
            is_writing: false,
            is_done: false,
            timer: None,
            delayed: None,
            acked_at: 0,
        }
    }
}

impl World<'_> {
    fn at(&mut self, time: u64, event: Event) {
        self.count += 1;
        self.heap.push(Reverse((time, self.count, event)));
    }

    fn step(&mut self, now: u64, event: Event) {
        match event {
            Event::Write(flow) => {
                let peer = &mut self.peers[flow as usize];
                let Some(&(pause, bytes)) = peer.demand.bursts.get(peer.burst) else {
                    return;
                };
                peer.burst += 1;
                let is_endless = peer.demand.until.is_some_and(|until| now < until)
                    && peer.burst == peer.demand.bursts.len();
                peer.written += if is_endless { ENDLESS } else { bytes };
                peer.is_writing = false;
                peer.sender.write(peer.written, pause);
                self.send(flow, now);
            }
            Event::Line => {
                self.line_at = None;
                self.pump(now);
            }
            Event::Data(flow, segment) => {
                let ack = self.peers[flow as usize].receiver.receive(segment, now);
                self.answer(flow, ack, now);
            }
            Event::Acked(flow, next, sacked) => {
                let peer = &mut self.peers[flow as usize];
                let block = sacked.and_then(|segment| peer.sender.block(segment));
                peer.sender.acknowledge(Ack { next, sacked }, now);
                let to = peer.sender.acked();
                let window = peer.demand.window(to);
                peer.sender.open(to + window);
                peer.tap.ack(now, to, window, block.as_slice());
                self.send(flow, now);
                self.write_more(flow, now);
            }
            Event::Delayed(flow) => {
                let peer = &mut self.peers[flow as usize];
                peer.delayed = None;
                let ack = peer.receiver.expire(now);
                self.answer(flow, ack, now);
            }
            Event::Timer(flow) => {
                let peer = &mut self.peers[flow as usize];
                peer.timer = None;
                peer.sender.expire(now);
                self.send(flow, now);
            }
            Event::Stop(flow) => {
                let peer = &mut self.peers[flow as usize];
                peer.written = peer.sender.stop();
                peer.burst = peer.demand.bursts.len();
                self.write_more(flow, now);
            }
            Event::Cross => self.cross(now),
        }
    }

    /// Sends all that the window allows.
    fn send(&mut self, flow: u32, now: u64) {
        let peer = &mut self.peers[flow as usize];
        let mut any = false;
        while let Some(sent) = peer.sender.poll(now) {
            any = true;
            peer.tap.data(now, sent.start, sent.bytes);
            let passing = Passing {
                flow: Some(flow),
                segment: sent.segment,
                frame: sent.bytes + peer.demand.header,
                link_header: LINK_HEADER.min(peer.demand.header),
                keys: peer.demand.keys,
            };
            self.line.offer(passing, now);
        }
        if let Some(deadline) = peer.sender.deadline(now)
            && peer.timer.is_none_or(|timer| deadline < timer)
        {
            peer.timer = Some(deadline);
            self.at(deadline, Event::Timer(flow));
        }
        if any {
            self.pump(now);
        }
    }

    /// Lets the bottleneck send what may leave, and schedules the next look.
    fn pump(&mut self, now: u64) {
        while let Some((passing, done)) = self.line.poll(now) {
            if let Some(flow) = passing.flow {
                let half = self.peers[flow as usize].demand.base / 2;
                self.at(done + half, Event::Data(flow, passing.segment));
            }
        }
        if let Some(next) = self.line.next(now)
            && self.line_at.is_none_or(|at| next < at)
        {
            let next = next.max(now + 1);
            self.line_at = Some(next);
            self.at(next, Event::Line);
        }
    }

    /// Sends an ACK, or schedules a delayed one.
    fn answer(&mut self, flow: u32, ack: Option<Ack>, now: u64) {
        let peer = &mut self.peers[flow as usize];
        let base = peer.demand.base;
        if let Some(Ack { next, sacked }) = ack {
            let late = self.rng.below(self.jitter + 1);
            let at = (now + base - base / 2 + late).max(peer.acked_at + 1);
            peer.acked_at = at;
            self.at(at, Event::Acked(flow, next, sacked));
        } else if let Some(deadline) = peer.receiver.deadline()
            && peer.delayed.is_none()
        {
            peer.delayed = Some(deadline);
            self.at(deadline, Event::Delayed(flow));
        }
    }

    /// Schedules the application's next burst once all data is acknowledged.
    fn write_more(&mut self, flow: u32, now: u64) {
        let peer = &mut self.peers[flow as usize];
        if peer.sender.acked() < peer.written || peer.is_done {
            return;
        }
        match peer.demand.bursts.get(peer.burst) {
            Some(_) if peer.is_writing => {}
            Some(&(pause, _)) => {
                peer.is_writing = true;
                self.at(now + pause, Event::Write(flow));
            }
            None => {
                peer.is_done = true;
                self.open -= 1;
            }
        }
    }

    /// A packet of others arrives: on average at their rate, with gaps spread evenly.
    fn cross(&mut self, now: u64) {
        let Some((gap, rng)) = &mut self.cross else {
            return;
        };
        let next = now + gap.saturating_mul(rng.below(1_001)) / 500;
        self.line.offer(
            Passing {
                flow: None,
                segment: 0,
                frame: CROSS_FRAME,
                link_header: LINK_HEADER,
                keys: Keys::default(),
            },
            now,
        );
        self.pump(now);
        self.at(next.max(now + 1), Event::Cross);
    }
}
