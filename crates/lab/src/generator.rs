//! The load that benchmarks put on an L2TP network server: one LAC, driven from
//! this process, that opens tunnels from as many addresses as are asked for.
//!
//! It is the same machine as the daemon's, so what it sends is what a LAC sends,
//! retransmissions included; what it costs is booked on this process.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::{Datagram, Duration, Instant, Machine, Redacted, Route};
use l2tp::{Call, Config, Endpoint, Event, OpenTunnel, Retransmit, TunnelKey};
use reactor::{Interest, PollerKind, Reactor, RecvBatch, SendBatch, StoreKind, UdpOptions, UdpSocket};
use wire::l2tp::Version;

/// Datagrams that wait to be sent at most.
const QUEUE: usize = 32_768;

/// The load to make.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the server listens; tunnels are spread over them in turn.
    pub servers: Vec<SocketAddr>,
    /// Protocol version.
    pub version: Version,
    /// Source addresses: the first, and how many from there on. `None` is one
    /// address that the kernel chooses.
    pub sources: Option<(Ipv4Addr, u32)>,
    /// A session in each tunnel.
    pub sessions: bool,
    /// Secret for tunnel authentication.
    pub secret: Option<Vec<u8>>,
}

/// What became of a wave of tunnels.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Wave {
    /// Tunnels asked for.
    pub asked: u32,
    /// Tunnels that came up, with their session where one was asked for.
    pub up: u32,
    /// Tunnels that failed.
    pub failed: u32,
    /// Seconds until the last came up.
    pub seconds: f64,
    /// Our retransmissions meanwhile.
    pub retransmissions: u64,
    /// Tunnels up against time: seconds, tunnels.
    pub samples: Vec<(f64, u64)>,
}

/// A LAC in this process.
pub struct Generator {
    options: Options,
    endpoint: Endpoint,
    reactor: Reactor,
    socket: UdpSocket,
    received: RecvBatch,
    out: SendBatch,
    composed: Vec<u8>,
    tunnels: Vec<TunnelKey>,
    opened: u32,
    up: u32,
    failed: u32,
    /// HELLOs that were answered, or anything else that was acknowledged.
    datagrams: u64,
}

impl Generator {
    /// Opens the socket; nothing is sent yet.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn new(options: Options) -> io::Result<Self> {
        let config = Config {
            host_name: "load".into(),
            secret: options.secret.clone().map(Redacted::new),
            hello_interval: Duration::ZERO,
            retransmit: Retransmit { tries: 10, ..Config::default().retransmit },
            limits: l2tp::Limits { tunnels: 1 << 19, held: 1 << 18, ..Config::default().limits },
            hold: Duration::from_millis(10),
            ..Config::default()
        };
        let udp = UdpOptions {
            recv_buffer_bytes: Some(64 << 20),
            send_buffer_bytes: Some(8 << 20),
            gro: true,
            ..UdpOptions::default()
        };
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0).into(), &udp)?;
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab)?;
        reactor.add(&socket, "load", 0, Interest::READ)?;
        Ok(Self {
            endpoint: Endpoint::new(config, [7; 32]),
            reactor,
            socket,
            received: RecvBatch::new(64),
            out: SendBatch::new(QUEUE),
            composed: Vec::new(),
            tunnels: Vec::new(),
            opened: 0,
            up: 0,
            failed: 0,
            datagrams: 0,
            options,
        })
    }

    /// Tunnels that are up now.
    pub fn established(&self) -> u32 {
        self.endpoint.counts().established
    }

    /// Opens `count` tunnels, `window` at a time, and waits until each is up or
    /// failed, or `cap` has passed. A window of `count` is a storm.
    ///
    /// # Errors
    /// What the kernel said of the socket.
    pub fn open(&mut self, count: u32, window: u32, cap: Duration) -> io::Result<Wave> {
        let start = reactor::clock::now();
        let before = self.retransmissions();
        let (mut asked, up, failed) = (0, self.up, self.failed);
        let mut wave = Wave { asked: count, ..Wave::default() };
        let mut now = start;
        let step = (count / 200).max(1);
        loop {
            let done = self.up - up + self.failed - failed;
            while asked < count && asked - done < window {
                self.open_one(now)?;
                asked += 1;
                // What is due is sent in batches, not one by one.
                if asked % 64 == 0 {
                    self.send(now);
                }
            }
            self.send(now);
            let came = self.up - up;
            let last = wave.samples.last().map_or(0, |&(_, tunnels)| tunnels);
            if u64::from(came) >= last + u64::from(step) || (done == count && came > 0) {
                wave.samples.push((now.since(start).as_secs_f64(), u64::from(came)));
            }
            if done >= count || now.since(start) > cap {
                break;
            }
            now = self.turn(Some(start + cap + Duration::from_millis(1)))?;
        }
        wave.up = self.up - up;
        wave.failed = self.failed - failed;
        wave.seconds = now.since(start).as_secs_f64();
        wave.retransmissions = self.retransmissions() - before;
        Ok(wave)
    }

    fn open_one(&mut self, now: Instant) -> io::Result<()> {
        let n = self.opened;
        self.opened += 1;
        let local = self.options.sources.map(|(first, count)| {
            IpAddr::V4(Ipv4Addr::from(u32::from(first).wrapping_add(n % count.max(1))))
        });
        let server = self.options.servers[n as usize % self.options.servers.len()];
        let route = Route { peer: server, local, socket: 0 };
        let open = OpenTunnel { route, version: self.options.version };
        let tunnel = self.endpoint.open_tunnel(open, now).map_err(io::Error::other)?;
        if self.options.sessions {
            self.endpoint.open_session(tunnel, Call::default(), now).map_err(io::Error::other)?;
        }
        self.tunnels.push(tunnel);
        Ok(())
    }

    /// Sends HELLOs over the tunnels that are up, evenly spaced, `rate` in a
    /// second for `span`. Returns how many were sent and how many of those the
    /// server acknowledged.
    ///
    /// # Errors
    /// What the kernel said of the socket.
    pub fn hello(&mut self, rate: u32, span: Duration) -> io::Result<(u64, u64)> {
        let start = reactor::clock::now();
        let spacing_ns = 1_000_000_000 / u64::from(rate.max(1));
        let before = self.zlb_received();
        let (mut sent, mut at) = (0_u64, 0_usize);
        loop {
            let now = self.turn(Some(Instant::ZERO))?;
            let due = now.since(start).as_nanos().min(span.as_nanos()) / spacing_ns;
            while sent < due {
                let tunnel = self.tunnels[at % self.tunnels.len()];
                at += 1;
                self.endpoint.send_hello(tunnel);
                sent += 1;
                self.send(now);
            }
            if now.since(start) >= span + Duration::from_millis(100) {
                return Ok((sent, self.zlb_received() - before));
            }
        }
    }

    /// Answers whatever the server sends, for `span`. Returns the datagrams that
    /// came.
    ///
    /// # Errors
    /// What the kernel said of the socket.
    pub fn answer(&mut self, span: Duration) -> io::Result<u64> {
        let end = reactor::clock::now() + span;
        let before = self.datagrams;
        while self.turn(Some(end))? < end {}
        Ok(self.datagrams - before)
    }

    /// Closes every tunnel and waits until the server has acknowledged, or `cap`
    /// has passed. Returns whether all was acknowledged.
    ///
    /// # Errors
    /// What the kernel said of the socket.
    pub fn close(&mut self, cap: Duration) -> io::Result<bool> {
        let mut now = reactor::clock::now();
        let end = now + cap;
        for part in core::mem::take(&mut self.tunnels).chunks(64) {
            for &tunnel in part {
                self.endpoint.close_tunnel(tunnel, now);
            }
            self.send(now);
            now = self.turn(Some(now))?;
        }
        while now < end && !self.endpoint.is_quiet() {
            now = self.turn(Some(end))?;
        }
        Ok(self.endpoint.is_quiet())
    }

    /// One turn: waits for `deadline` at the most, takes what came, sends what is due.
    fn turn(&mut self, deadline: Option<Instant>) -> io::Result<Instant> {
        let timer = self.endpoint.poll_timeout().map(|(at, _)| at);
        let mut now = self.reactor.wait([deadline, timer].into_iter().flatten().min())?;
        while let Some(ready) = self.reactor.next_ready() {
            loop {
                self.socket.recv(&mut self.received)?;
                for datagram in self.received.iter() {
                    let route = Route { peer: datagram.peer, local: datagram.local, socket: 0 };
                    // What is ignored is counted by the endpoint.
                    let _ = self.endpoint.handle(Datagram { route, bytes: datagram.bytes }, now);
                    self.datagrams += 1;
                }
                if !self.received.is_full() {
                    self.reactor.drained(ready.token);
                    break;
                }
                self.send(now);
            }
            now = reactor::clock::now();
        }
        self.endpoint.handle_timeout(now);
        self.send(now);
        Ok(now)
    }

    fn send(&mut self, now: Instant) {
        loop {
            self.composed.clear();
            let Some(route) = self.endpoint.poll_transmit(now, &mut self.composed) else { break };
            self.out.push(&self.composed, route.peer, route.local);
            if self.out.is_full() {
                self.socket.send(&mut self.out);
            }
        }
        self.socket.send(&mut self.out);
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::TunnelUp { .. } if !self.options.sessions => self.up += 1,
                Event::SessionUp { .. } => self.up += 1,
                Event::TunnelDown { .. } => self.failed += 1,
                _ => {}
            }
        }
    }

    fn retransmissions(&self) -> u64 {
        self.counter("retransmissions")
    }

    fn zlb_received(&self) -> u64 {
        self.counter("zlb_received")
    }

    fn counter(&self, name: &str) -> u64 {
        let mut rows = self.endpoint.counters();
        rows.find(|(row, _)| row.to_string() == name).map_or(0, |(_, value)| value)
    }
}

/// The processor time of a process, of all its threads, from the scheduler's own
/// account in nanoseconds.
///
/// # Errors
/// The process is gone, or `/proc` is not to be read.
pub fn cpu_of(pid: u32) -> io::Result<Duration> {
    let mut total = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        let nanos = text.split_ascii_whitespace().next().and_then(|n| n.parse::<u64>().ok());
        total += nanos.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    }
    Ok(Duration::from_nanos(total))
}

/// The resident memory of a process in bytes.
///
/// # Errors
/// The process is gone, or `/proc` is not to be read.
pub fn resident_of(pid: u32) -> io::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm"))?;
    let pages = text.split_ascii_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok());
    pages.map(|pages| pages * 4096).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}
