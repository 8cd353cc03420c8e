//! The load that benchmarks put on an L2TP network server: one LAC in this process that opens
//! tunnels from any number of addresses.
//!
//! It uses the daemon's own L2TP endpoint, so it sends what a LAC sends, including retransmissions.
//! Its processor time is that of this process.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::{Datagram, Duration, Instant, Machine, Redacted, Route};
use l2tp::{Call, Config, Endpoint, Event, OpenTunnel, Retransmit, TunnelKey};
use reactor::{
    Interest, PollerKind, Reactor, RecvBatch, SendBatch, StoreKind, UdpOptions, UdpSocket,
};
use wire::l2tp::Version;

/// Limit of datagrams waiting to be sent.
const QUEUE: usize = 32_768;

/// Settings of the load.
#[derive(Clone, Debug)]
pub struct Options {
    /// Addresses of the server; tunnels use them in turn.
    pub servers: Vec<SocketAddr>,
    /// Protocol version.
    pub version: Version,
    /// Source addresses: the first, and their number. `None` means one address chosen by the
    /// kernel.
    pub sources: Option<(Ipv4Addr, u32)>,
    /// Whether to open a session in each tunnel.
    pub sessions: bool,
    /// Secret for tunnel authentication.
    pub secret: Option<Vec<u8>>,
}

/// Results of a wave of tunnels.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Wave {
    /// Tunnels requested.
    pub asked: u32,
    /// Tunnels up at our end, each with its session if one was requested.
    pub up: u32,
    /// Tunnels that failed.
    pub failed: u32,
    /// Seconds until the last came up.
    pub seconds: f64,
    /// Our retransmissions during the wave.
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
    /// Number of datagrams received.
    datagrams: u64,
    sizes: Sizes,
}

/// Bytes of UDP payload in the first and the latest datagram of each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Sent first: the SCCRQ.
    pub first_sent: usize,
    /// Sent last: the SCCCN of a tunnel that has just come up, or a HELLO.
    pub last_sent: usize,
    /// Received first: the SCCRP.
    pub first_received: usize,
    /// Received last: the acknowledgement of either.
    pub last_received: usize,
}

impl Sizes {
    fn sent(&mut self, bytes: usize) {
        if self.first_sent == 0 {
            self.first_sent = bytes;
        }
        self.last_sent = bytes;
    }

    fn received(&mut self, bytes: usize) {
        if self.first_received == 0 {
            self.first_received = bytes;
        }
        self.last_received = bytes;
    }
}

impl Generator {
    /// Opens the socket; sends nothing yet.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new(options: Options) -> io::Result<Self> {
        let config = Config {
            host_name: "load".into(),
            secret: options.secret.clone().map(Redacted::new),
            hello_interval: Duration::ZERO,
            retransmit: Retransmit {
                tries: 10,
                ..Config::default().retransmit
            },
            limits: l2tp::Limits {
                tunnels: 1 << 19,
                held: 1 << 18,
                ..Config::default().limits
            },
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
            sizes: Sizes::default(),
            options,
        })
    }

    /// The socket's port, with the unspecified address.
    pub fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr()
    }

    /// Sizes of the datagrams.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Tunnels that are up now.
    pub fn established(&self) -> u32 {
        self.endpoint.counts().established
    }

    /// Opens `count` tunnels, `window` at a time, and waits until each is up or has failed, or
    /// until `cap` has passed. A window of `count` is a storm.
    ///
    /// # Errors
    /// The kernel's error for the socket.
    pub fn open(&mut self, count: u32, window: u32, cap: Duration) -> io::Result<Wave> {
        let start = reactor::clock::now();
        let before = self.retransmissions();
        let (mut asked, up, failed) = (0, self.up, self.failed);
        let mut wave = Wave {
            asked: count,
            ..Wave::default()
        };
        let mut now = start;
        let step = (count / 200).max(1);
        loop {
            let done = self.up - up + self.failed - failed;
            while asked < count && asked - done < window {
                self.open_one(now)?;
                asked += 1;
                // Sending in batches is cheaper than one by one.
                if asked % 64 == 0 {
                    self.send(now);
                }
            }
            self.send(now);
            let came = self.up - up;
            let last = wave.samples.last().map_or(0, |&(_, tunnels)| tunnels);
            if u64::from(came) >= last + u64::from(step) || (done == count && came > 0) {
                wave.samples
                    .push((now.since(start).as_secs_f64(), u64::from(came)));
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
            IpAddr::V4(Ipv4Addr::from(
                u32::from(first).wrapping_add(n % count.max(1)),
            ))
        });
        // Each server address has tunnel ids of its own, as if each had a socket.
        let server = n as usize % self.options.servers.len();
        let route = Route {
            peer: self.options.servers[server],
            local,
            socket: server as u32,
        };
        let open = OpenTunnel {
            route,
            version: self.options.version,
        };
        let tunnel = self
            .endpoint
            .open_tunnel(open, now)
            .map_err(io::Error::other)?;
        if self.options.sessions {
            self.endpoint
                .open_session(tunnel, Call::default(), now)
                .map_err(io::Error::other)?;
        }
        self.tunnels.push(tunnel);
        Ok(())
    }

    /// Sends HELLOs over the established tunnels, evenly spaced, `rate` per second for `span`.
    /// Returns how many were sent and how many of those the server acknowledged.
    ///
    /// # Errors
    /// The kernel's error for the socket.
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

    /// Answers messages of the server for `span`. Returns the number of datagrams received.
    ///
    /// # Errors
    /// The kernel's error for the socket.
    pub fn answer(&mut self, span: Duration) -> io::Result<u64> {
        let end = reactor::clock::now() + span;
        let before = self.datagrams;
        while self.turn(Some(end))? < end {}
        Ok(self.datagrams - before)
    }

    /// Closes every tunnel and waits until the server has acknowledged, or `cap` has passed.
    /// Returns whether all was acknowledged.
    ///
    /// # Errors
    /// The kernel's error for the socket.
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

    /// One turn: waits until `deadline` at most, reads input, sends what is due.
    fn turn(&mut self, deadline: Option<Instant>) -> io::Result<Instant> {
        let timer = self.endpoint.poll_timeout().map(|(at, _)| at);
        let mut now = self
            .reactor
            .wait([deadline, timer].into_iter().flatten().min())?;
        while let Some(ready) = self.reactor.next_ready() {
            loop {
                self.socket.recv(&mut self.received)?;
                for datagram in self.received.iter() {
                    self.sizes.received(datagram.bytes.len());
                    let servers = &self.options.servers;
                    let server = servers.iter().position(|&server| server == datagram.peer);
                    let route = Route {
                        peer: datagram.peer,
                        local: datagram.local,
                        socket: server.unwrap_or(0) as u32,
                    };
                    // The endpoint counts ignored messages itself.
                    let _ = self.endpoint.handle(
                        Datagram {
                            route,
                            bytes: datagram.bytes,
                        },
                        now,
                    );
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
            let Some(route) = self.endpoint.poll_transmit(now, &mut self.composed) else {
                break;
            };
            self.sizes.sent(self.composed.len());
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

    /// Number of retransmissions so far.
    pub fn retransmissions(&self) -> u64 {
        self.counter("retransmissions")
    }

    fn zlb_received(&self) -> u64 {
        self.counter("zlb_received")
    }

    fn counter(&self, name: &str) -> u64 {
        let mut rows = self.endpoint.counters();
        rows.find(|(row, _)| row.to_string() == name)
            .map_or(0, |(_, value)| value)
    }
}

/// The processor time of a process, over all its threads, from the scheduler's counters in
/// nanoseconds.
///
/// # Errors
/// The process is gone, or `/proc` cannot be read.
pub fn cpu_of(pid: u32) -> io::Result<Duration> {
    let mut total = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        let nanos = text
            .split_ascii_whitespace()
            .next()
            .and_then(|n| n.parse::<u64>().ok());
        total += nanos.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    }
    Ok(Duration::from_nanos(total))
}

/// The resident memory of a process in bytes, counted page by page.
///
/// # Errors
/// The process is gone, or `/proc` cannot be read.
pub fn resident_of(pid: u32) -> io::Result<u64> {
    // The figure in `status` and `statm` may lag by some hundred kilobytes, since each core counts
    // separately.
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    number_after(&text, "Rss:")
        .map(|kib| kib * 1024)
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// The number of voluntary context switches of a process's first thread so far, which are its
/// waits.
///
/// # Errors
/// The process is gone, or `/proc` cannot be read.
pub fn waits_of(pid: u32) -> io::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    number_after(&text, "voluntary_ctxt_switches:")
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// Datagrams that the kernel has dropped because the receive buffer of the IPv4 socket at `address`
/// was full, as counted in `pid`'s network namespace.
///
/// # Errors
/// There is no such socket, or `/proc` cannot be read.
pub fn drops_of(pid: u32, address: SocketAddr) -> io::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/net/udp"))?;
    drops_in(&text, address).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The number after `key` at the start of a line.
fn number_after(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

/// The last column of the socket's line (proc_net_udp(5)).
fn drops_in(text: &str, address: SocketAddr) -> Option<u64> {
    let IpAddr::V4(ip) = address.ip() else {
        return None;
    };
    // The address is written in the processor's byte order.
    let ip = u32::from_ne_bytes(ip.octets());
    let wanted = format!("{ip:08X}:{:04X}", address.port());
    let line = text
        .lines()
        .find(|line| line.split_ascii_whitespace().nth(1) == Some(&wanted))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_s_drops_are_found_by_its_address() {
        let text = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n  \
                    100: 00000000:06A5 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 10 2 0 4\n  \
                    101: 0100007F:06A5 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 11 2 0 17\n";
        let socket = |text: &str| text.parse().unwrap();
        #[cfg(target_endian = "little")]
        assert_eq!(drops_in(text, socket("127.0.0.1:1701")), Some(17));
        assert_eq!(drops_in(text, socket("0.0.0.0:1701")), Some(4));
        assert_eq!(drops_in(text, socket("0.0.0.0:1702")), None);
    }

    #[test]
    fn this_process_s_accounts_can_be_read() {
        let pid = std::process::id();
        assert!(cpu_of(pid).unwrap() > Duration::ZERO);
        assert!(resident_of(pid).unwrap() > 100_000);
        assert!(waits_of(pid).is_ok());
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(drops_of(pid, socket.local_addr().unwrap()).unwrap(), 0);
    }

    #[test]
    fn the_first_and_the_latest_sizes_are_kept() {
        let mut sizes = Sizes::default();
        for bytes in [100, 60, 20] {
            sizes.sent(bytes);
        }
        sizes.received(90);
        let Sizes {
            first_sent,
            last_sent,
            first_received,
            last_received,
        } = sizes;
        assert_eq!(
            [first_sent, last_sent, first_received, last_received],
            [100, 20, 90, 90]
        );
    }
}
