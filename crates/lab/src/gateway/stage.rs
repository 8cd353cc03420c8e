//! A topology with its line running, and who sends and listens on it. Everything ends by itself at a given time.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use reactor::clock;
use reactor::namespace::Namespace;
use reactor::port::offloads::OffloadsOff;

use super::line::Line;
use super::model::Queues;
use super::pinger::{self, Target};
use super::rows::{FLOOD_BPS, Load};
use super::topology::{FAR, MODEM, SHAPER, Topology};
use super::traffic::{Span, bulk, flood, stream};
use super::treatment::{Both, Link};
use super::tunnel;

/// First port of the bulk connections of A, and the port of B's.
const BULK_A: u16 = 2_200;
const BULK_B: u16 = 2_199;
const STREAM: u16 = 5_001;
const FLOOD: u16 = 5_009;

/// After the end, what is under way may still arrive, and connections may still be reset.
pub(super) const DRAIN: Duration = Duration::from_millis(700);

/// How the congestion is controlled that the experiment is about; where the kernel has another one too, it is not asked.
const CONTROL: &str = "cubic";

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel's word on namespaces, interfaces or sockets.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Disciplines that do not fit together.
    #[error(transparent)]
    Spec(#[from] qos::tree::SpecError),
}

type Job = JoinHandle<io::Result<io::Result<()>>>;

/// Namespaces, and shaper and modem between them.
#[derive(Debug)]
pub(super) struct Stage {
    // In the order in which they go.
    lines: [Line; 2],
    jobs: Vec<Job>,
    _offloads: Vec<OffloadsOff>,
    pub(super) topology: Topology,
    /// Octets that arrived of the load of A.
    pub(super) from_a: Arc<AtomicU64>,
    /// Octets that arrived of the bulk connection of B.
    pub(super) from_b: Arc<AtomicU64>,
}

impl Stage {
    /// Makes namespaces and starts the line, with `shaper` in the gateway.
    pub(super) fn new(link: &Link, shaper: &Both, seed: u64) -> Result<Self, Error> {
        let topology = Topology::new()?;
        let offloads = prepare(&topology)?;
        let now = clock::now();
        let start =
            |ports, queues: Queues, delay| Line::start(&topology.line, ports, queues, delay);
        let lines = [
            start(SHAPER, shaper.queues(seed, now)?, base::Duration::ZERO)?,
            start(MODEM, link.modem().queues(seed, now)?, link.delay())?,
        ];
        Ok(Self {
            lines,
            jobs: Vec::new(),
            _offloads: offloads,
            topology,
            from_a: Arc::default(),
            from_b: Arc::default(),
        })
    }

    fn job(
        &mut self,
        namespace: impl FnOnce(&Topology) -> &Namespace,
        work: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let job = namespace(&self.topology).spawn("traffic", work)?;
        self.jobs.push(job);
        Ok(())
    }

    /// Starts the load of A: `bulk` connections, or a flood.
    pub(super) fn load(
        &mut self,
        load: Load,
        bulk: usize,
        (begin, end): (Instant, Instant),
    ) -> io::Result<()> {
        match load {
            Load::None => Ok(()),
            Load::Bulk => (BULK_A..).take(bulk).try_for_each(|port| {
                let octets = Arc::clone(&self.from_a);
                self.connect(|topology| &topology.a, port, octets, (begin, end))
            }),
            Load::Flood => {
                let to = SocketAddr::from((FAR, FLOOD));
                let sink = self.topology.far.run(|| UdpSocket::bind(to))??;
                let octets = Arc::clone(&self.from_a);
                self.job(
                    |topology| &topology.far,
                    move || swallow(&sink, &octets, end),
                )?;
                let span = Span { to, begin, end };
                self.job(
                    |topology| &topology.a,
                    move || flood::send(span, FLOOD_BPS).map(drop),
                )
            }
        }
    }

    /// Makes a tunnel of what the host with this address sends, from the gateway through the line.
    pub(super) fn tunnel(&self, host: Ipv4Addr) {
        self.lines[0].wrap(host);
    }

    /// Starts pings of A, one to each target every `interval`.
    pub(super) fn ping_flood(
        &mut self,
        targets: Vec<Target>,
        interval: base::Duration,
        count: u64,
    ) -> io::Result<()> {
        let wait = base::Duration::from_millis(100);
        self.job(
            |topology| &topology.a,
            move || pinger::run(&targets, interval, count, wait).map(drop),
        )
    }

    /// Starts a bulk connection of B.
    pub(super) fn bulk_of_b(&mut self, span: (Instant, Instant)) -> io::Result<()> {
        let octets = Arc::clone(&self.from_b);
        self.connect(|topology| &topology.b, BULK_B, octets, span)
    }

    fn connect(
        &mut self,
        host: impl FnOnce(&Topology) -> &Namespace,
        port: u16,
        octets: Arc<AtomicU64>,
        (begin, end): (Instant, Instant),
    ) -> io::Result<()> {
        let to = SocketAddr::from((FAR, port));
        let listener = self.topology.far.run(|| TcpListener::bind(to))??;
        self.job(
            |topology| &topology.far,
            move || bulk::receive(&listener, &octets, end),
        )?;
        let span = Span { to, begin, end };
        self.job(host, move || bulk::send(span).map(drop))
    }

    /// The thin stream of B from `begin` to `end`; what came of it is there when the thread ends.
    pub(super) fn stream(
        &self,
        (begin, end): (Instant, Instant),
        wait: Duration,
    ) -> io::Result<JoinHandle<io::Result<io::Result<stream::Account>>>> {
        let to = SocketAddr::from((FAR, STREAM));
        let socket = self.topology.far.run(|| UdpSocket::bind(to))??;
        let receiver = self.topology.far.spawn("stream", move || {
            stream::receive(&socket, begin, end + wait)
        })?;
        let span = Span { to, begin, end };
        let sender = self
            .topology
            .b
            .spawn("stream", move || stream::send(span))?;
        self.topology.b.spawn("account", move || {
            let sent = join(sender)?;
            let mut account = join(receiver)?;
            account.sent = sent;
            Ok(account)
        })
    }

    /// Waits until everyone has ended and the line is empty; the first error of who sent or listened.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let jobs: Vec<Job> = self.jobs.drain(..).collect();
        let done = jobs.into_iter().map(join).collect::<Vec<_>>();
        // Connections that are cut off are reset through the line.
        std::thread::sleep(DRAIN);
        drop(self.lines);
        done.into_iter().collect()
    }
}

/// What a thread in a namespace returned.
pub(super) fn join<T>(thread: JoinHandle<io::Result<io::Result<T>>>) -> io::Result<T> {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        .and_then(|result| result)
}

/// Counts a flood's octets.
fn swallow(socket: &UdpSocket, octets: &AtomicU64, end: Instant) -> io::Result<()> {
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let mut buffer = [0; 2_048];
    while Instant::now() < end {
        if let Ok(length) = socket.recv(&mut buffer) {
            octets.fetch_add(length as u64, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Lets the wires carry what a line would: single packets with their checksums, and neighbours once known stay known.
fn prepare(topology: &Topology) -> io::Result<Vec<OffloadsOff>> {
    let Topology {
        a,
        b,
        gateway,
        line,
        far,
    } = topology;
    let interfaces: [(&Namespace, &[&str]); 5] = [
        (a, &["eth0"]),
        (b, &["eth0"]),
        (gateway, &["a0", "b0", "wan0"]),
        (line, &[SHAPER.0, SHAPER.1, MODEM.0, MODEM.1]),
        (far, &["eth0"]),
    ];
    // Room for a tunnel's header between shaper and modem.
    for name in [SHAPER.1, MODEM.0] {
        line.netlink()?
            .set_mtu(name, 1_500 + tunnel::HEADER as u32)?;
    }
    let mut offloads = Vec::new();
    for (namespace, names) in interfaces {
        for name in names {
            offloads.push(namespace.run(|| OffloadsOff::new(name))??);
        }
    }
    for host in [a, b, far] {
        optional(host.set("ipv4/tcp_congestion_control", CONTROL))?;
        // What a killed process leaves unsent is given up soon.
        optional(host.set("ipv4/tcp_orphan_retries", "1"))?;
    }
    // A question about a neighbour that a full line loses is not what is measured.
    for (namespace, name) in [(gateway, "wan0"), (far, "eth0")] {
        let setting = format!("ipv4/neigh/{name}/base_reachable_time_ms");
        optional(namespace.set(&setting, "3600000"))?;
    }
    Ok(offloads)
}

/// A setting that is well to have, where the kernel has it.
fn optional(set: io::Result<()>) -> io::Result<()> {
    match set {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            ) =>
        {
            Ok(())
        }
        set => set,
    }
}

/// Where the far side's page is served.
pub(super) fn web() -> SocketAddr {
    SocketAddr::from((FAR, 80))
}

/// The far side, for pings.
pub(super) const PINGED: Ipv4Addr = FAR;
