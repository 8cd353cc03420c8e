//! Sends pings from a namespace, with the kernel's timestamps.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::{Duration, Instant};
use ping::{Experiment, Plan, Protocol, Reply, Sequence, StreamPlan};
use reactor::timed::{Family, TimedBatch, TimedOptions, TimedSocket};
use reactor::{Interest, PollerKind, Reactor, StoreKind, clock};
use wire::icmp::{Echo, Kind, Version};

pub(super) use super::model::Trips;
use super::stop::Stop;

/// One stream of pings.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// Its name.
    pub(super) name: String,
    /// The destination.
    pub(super) to: Ipv4Addr,
    /// TOS octet.
    pub(super) tos: u8,
    /// Bytes of data.
    pub(super) size: u16,
}

/// Destinations and timing of pings.
#[derive(Debug, Clone)]
pub(super) struct Pings {
    /// All destinations, pinged at the same time.
    pub(super) targets: Vec<Target>,
    /// Between two pings of one target.
    pub(super) interval: Duration,
    /// Pings of each.
    pub(super) count: u64,
    /// How long to wait for a reply.
    pub(super) wait: Duration,
}

/// Longest wait before checking whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Pings from the calling thread's namespace until all are sent or it is stopped. Returns the round
/// trips of each target.
///
/// # Errors
/// The kernel's error for a socket.
pub(super) fn run(pings: &Pings, stop: &Stop) -> io::Result<Vec<Trips>> {
    let streams = pings.targets.iter().map(|target| StreamPlan {
        name: target.name.clone(),
        host: target.to.to_string(),
        address: IpAddr::V4(target.to),
        protocol: Protocol::Icmp,
        tos: target.tos,
        size: target.size,
        interval: pings.interval,
        offset: Duration::ZERO,
        count: Some(pings.count),
    });
    let plan = Plan::spread(streams.collect(), pings.wait);
    plan.check().map_err(io::Error::other)?;
    let mut pinger = Pinger {
        reactor: Reactor::new(PollerKind::Epoll, StoreKind::default())?,
        experiment: Experiment::new(plan, clock::now()),
        lanes: Vec::new(),
        batch: TimedBatch::new(32, 2_048),
        times: Vec::new(),
    };
    for (number, target) in pings.targets.iter().enumerate() {
        let socket = TimedSocket::icmp(Family::V4, &TimedOptions::default())?;
        pinger
            .reactor
            .add(&socket, "ping", number as u64, Interest::READ)
            .map_err(io::Error::other)?;
        pinger.lanes.push(Lane {
            socket,
            to: SocketAddr::new(IpAddr::V4(target.to), 0),
            tos: target.tos,
            data: vec![0; usize::from(target.size)],
            sent: VecDeque::new(),
        });
    }
    pinger.run(stop)
}

struct Lane {
    socket: TimedSocket,
    to: SocketAddr,
    tos: u8,
    data: Vec<u8>,
    /// Pairs of the kernel's number of a packet and ours.
    sent: VecDeque<(u32, u64)>,
}

struct Pinger {
    reactor: Reactor,
    experiment: Experiment,
    lanes: Vec<Lane>,
    batch: TimedBatch,
    times: Vec<(u32, reactor::timed::Stamp)>,
}

impl Pinger {
    fn run(mut self, stop: &Stop) -> io::Result<Vec<Trips>> {
        let mut now = clock::now();
        let mut stopped = false;
        loop {
            if !stopped && stop.is_set() {
                stopped = true;
                self.experiment.stop();
            }
            self.send(now);
            self.collect()?;
            self.experiment.handle_timeout(now);
            if self.experiment.is_over() {
                break;
            }
            let look = now + LOOK_EVERY;
            let next = self.experiment.poll_timeout().unwrap_or(look);
            now = self.reactor.wait(Some(next.min(look)))?;
            while self.reactor.next_ready().is_some() {}
        }
        let outcome = self.experiment.finish(0, false);
        let trips = outcome.streams.iter().map(|stream| {
            let rows = stream.rows();
            rows.map(|row| {
                let rtt = row.sample.rtt().map(|rtt| rtt.as_secs_f64() * 1e3);
                (row.sent_ns as f64 / 1e9, rtt)
            })
            .collect()
        });
        Ok(trips.collect())
    }

    fn send(&mut self, now: Instant) {
        let mut message = Vec::new();
        while let Some(due) = self.experiment.pop_send(now) {
            let lane = &mut self.lanes[due.stream as usize];
            message.clear();
            Echo {
                kind: Kind::Request,
                identifier: lane.socket.identifier(),
                // ICMP carries the low 16 bits of the number.
                sequence: due.sequence as u16,
                data: &lane.data,
            }
            .emit(Version::V4, &mut message);
            match lane.socket.send(&message, lane.to, lane.tos) {
                Ok(sent) => lane.sent.push_back((sent.id, due.sequence)),
                Err(_) => self.experiment.failed(due.stream, due.sequence),
            }
        }
    }

    fn collect(&mut self) -> io::Result<()> {
        for (number, lane) in (0..).zip(&mut self.lanes) {
            lane.socket.send_times(&mut self.times)?;
            for (id, stamp) in self.times.drain(..) {
                if let Some(at) = lane.sent.iter().position(|sent| sent.0 == id) {
                    self.experiment.sent(number, lane.sent[at].1, stamp.at);
                    lane.sent.drain(..=at);
                }
            }
            // Errors appear as pings without a reply.
            lane.socket.errors().for_each(drop);
            loop {
                lane.socket.recv(&mut self.batch)?;
                for packet in self.batch.iter() {
                    let echo = Echo::parse(Version::V4, packet.bytes);
                    if let Ok(echo) = echo
                        && echo.kind == Kind::Reply
                        && echo.identifier == lane.socket.identifier()
                    {
                        let reply = Reply {
                            stream: number,
                            sequence: Sequence::Low(echo.sequence),
                            at: packet.arrived.at,
                            ttl: packet.hop_limit.unwrap_or(0),
                            tos: packet.traffic_class.unwrap_or(0),
                            far: None,
                        };
                        // The experiment counts a reply that belongs to no ping.
                        let _ = self.experiment.received(reply);
                    }
                }
                if !self.batch.is_full() {
                    break;
                }
            }
        }
        Ok(())
    }
}
