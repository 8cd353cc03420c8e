//! Pings from a namespace, with the kernel's time stamps.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::{Duration, Instant};
use ping::{Experiment, Plan, Protocol, Reply, Sequence, StreamPlan};
use reactor::timed::{Family, TimedBatch, TimedOptions, TimedSocket};
use reactor::{Interest, PollerKind, Reactor, StoreKind, clock};
use wire::icmp::{Echo, Kind, Version};

/// One stream of pings.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// What it is called.
    pub(super) name: String,
    /// Who is asked.
    pub(super) to: Ipv4Addr,
    /// TOS octet.
    pub(super) tos: u8,
    /// Octets of data.
    pub(super) size: u16,
}

/// Round trips in milliseconds by when they were sent in seconds; `None` for a ping without reply.
pub(super) type Trips = Vec<(f64, Option<f64>)>;

/// Pings each target every `interval`, `count` times, from the calling thread's namespace. A reply is waited for
/// `wait`. Returns the round trips of each.
///
/// # Errors
/// What the kernel said of the sockets.
pub(super) fn run(
    targets: &[Target],
    interval: Duration,
    count: u64,
    wait: Duration,
) -> io::Result<Vec<Trips>> {
    let streams = targets.iter().map(|target| StreamPlan {
        name: target.name.clone(),
        host: target.to.to_string(),
        address: IpAddr::V4(target.to),
        protocol: Protocol::Icmp,
        tos: target.tos,
        size: target.size,
        interval,
        offset: Duration::ZERO,
        count: Some(count),
    });
    let plan = Plan::spread(streams.collect(), wait);
    plan.check().map_err(io::Error::other)?;
    let mut pinger = Pinger {
        reactor: Reactor::new(PollerKind::Epoll, StoreKind::default())?,
        experiment: Experiment::new(plan, clock::now()),
        lanes: Vec::new(),
        batch: TimedBatch::new(32, 2_048),
        times: Vec::new(),
    };
    for (number, target) in targets.iter().enumerate() {
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
    pinger.run()
}

struct Lane {
    socket: TimedSocket,
    to: SocketAddr,
    tos: u8,
    data: Vec<u8>,
    /// The kernel's numbers of what was sent, and ours.
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
    fn run(mut self) -> io::Result<Vec<Trips>> {
        let mut now = clock::now();
        loop {
            self.send(now);
            self.collect()?;
            self.experiment.handle_timeout(now);
            if self.experiment.is_over() {
                break;
            }
            now = self.reactor.wait(self.experiment.poll_timeout())?;
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
                // ICMP has the lower half of the number.
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
            // Errors show as pings without reply.
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
                        // One that is nobody's is counted there.
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
