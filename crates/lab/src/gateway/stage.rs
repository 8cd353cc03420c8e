//! A running topology with its line, senders and receivers. Each sender and receiver ends by itself
//! at a given time; measurements also end when stopped.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use reactor::namespace::Namespace;
use reactor::port::offloads::OffloadsOff;
use reactor::urgency;
use shaper::{EngineError, Way};

use super::bridge::Bridge;
use super::engine::Engine;
use super::pinger::{self, Pings};
use super::rows::{FLOOD_BPS, Load};
use super::stop::Stop;
use super::topology::{FAR, MODEM, SHAPER, Topology};
use super::traffic::{Span, bulk, flood, stream};
use super::treatment::{Both, Link};
use super::tunnel;

/// First port of A's bulk connections, and the port of B's.
const BULK_A: u16 = 2_200;
const BULK_B: u16 = 2_199;
const STREAM: u16 = 5_001;
const FLOOD: u16 = 5_009;

/// Time after the end for packets in flight, and for connections to be reset.
pub(super) const DRAIN: Duration = Duration::from_millis(700);

/// The congestion control of the experiment, whatever the kernel's default is.
const CONTROL: &str = "cubic";

/// Errors of a run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel's error for namespaces, interfaces or sockets.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The engine could not be set up.
    #[error("engine {engine}: {error}")]
    SetUp {
        /// The engine's name.
        engine: &'static str,
        /// The reason.
        error: io::Error,
    },
    /// Disciplines that cannot be combined.
    #[error(transparent)]
    Spec(#[from] qos::tree::SpecError),
    /// A box on the line could not be started, or it ended.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// It was stopped before anything was measured.
    #[error("stopped before anything was measured")]
    Stopped,
}

/// A thread in a namespace.
pub(super) type Job = JoinHandle<io::Result<io::Result<()>>>;

/// The namespaces, with shaper and modem between them.
#[derive(Debug)]
pub(super) struct Stage {
    // In the order in which they are ended.
    boxes: [Bridge; 2],
    jobs: Vec<Job>,
    _offloads: Vec<OffloadsOff>,
    pub(super) topology: Topology,
    /// Bytes received of A's load.
    pub(super) from_a: Arc<AtomicU64>,
    /// Bytes received of B's bulk connection.
    pub(super) from_b: Arc<AtomicU64>,
    stop: Stop,
    /// Ends all senders and receivers of this stage.
    pub(super) over: Stop,
}

impl Stage {
    /// Makes the namespaces and starts the line, with `shaper` in the gateway. If `tunnelled`, all
    /// of B's packets go through a tunnel that starts before the shaper's queue and ends at the far
    /// end of the line.
    pub(super) fn new(
        link: &Link,
        (shaper, seed): (&Both, u64),
        tunnelled: bool,
        stop: &Stop,
    ) -> Result<Self, Error> {
        let topology = Topology::new()?;
        let offloads = prepare(&topology)?;
        let line = &topology.line;
        let shaper = Bridge::start(
            line,
            SHAPER,
            (shaper, seed),
            base::Duration::ZERO,
            |engine| {
                if tunnelled {
                    engine.rewrite_entering(Way::Up, tunnel::wrapped_frame);
                }
            },
        )?;
        let modem = (&link.modem(), seed);
        let modem = Bridge::start(line, MODEM, modem, link.delay(), |engine| {
            if tunnelled {
                engine.rewrite_leaving(Way::Up, tunnel::unwrapped_frame);
            }
        })?;
        Ok(Self {
            boxes: [shaper, modem],
            jobs: Vec::new(),
            _offloads: offloads,
            topology,
            from_a: Arc::default(),
            from_b: Arc::default(),
            stop: stop.clone(),
            over: Stop::default(),
        })
    }

    /// Sets up the kernel's queues in the gateway.
    pub(super) fn set_up(&self, engine: &Engine) -> Result<(), Error> {
        let done = engine.set_up(&self.topology.gateway);
        done.map(drop).map_err(|error| Error::SetUp {
            engine: engine.name(),
            error,
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

    /// Starts A's load: `bulk` connections, or a flood.
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
                let over = self.over.clone();
                self.job(
                    |topology| &topology.far,
                    move || swallow(&sink, &octets, end, &over),
                )?;
                let span = Span { to, begin, end };
                let over = self.over.clone();
                self.job(
                    |topology| &topology.a,
                    move || flood::send(span, FLOOD_BPS, &over).map(drop),
                )
            }
        }
    }

    /// Starts A's pings.
    pub(super) fn ping_flood(&mut self, pings: Pings) -> io::Result<()> {
        let stop = self.stop.clone();
        self.job(
            |topology| &topology.a,
            move || pinger::run(&pings, &stop).map(drop),
        )
    }

    /// Starts B's pings; the thread returns the round trips of each target.
    pub(super) fn pings(
        &self,
        pings: Pings,
    ) -> io::Result<JoinHandle<io::Result<io::Result<Vec<pinger::Trips>>>>> {
        let stop = self.stop.clone();
        self.topology.b.spawn("ping", move || {
            urgency::hasten(true);
            pinger::run(&pings, &stop)
        })
    }

    /// Starts B's bulk connection.
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
        let over = self.over.clone();
        self.job(
            |topology| &topology.far,
            move || bulk::receive(&listener, &octets, end, &over),
        )?;
        let span = Span { to, begin, end };
        let over = self.over.clone();
        self.job(host, move || bulk::send(span, &over).map(drop))
    }

    /// Starts B's thin stream from `begin` to `end`; `wait` later the thread returns its
    /// statistics.
    pub(super) fn stream(
        &self,
        (begin, end): (Instant, Instant),
        wait: Duration,
    ) -> io::Result<JoinHandle<io::Result<io::Result<stream::Account>>>> {
        let to = SocketAddr::from((FAR, STREAM));
        let socket = self.topology.far.run(|| UdpSocket::bind(to))??;
        let over = Stop::default();
        let receiver = self.topology.far.spawn("stream", {
            let over = over.clone();
            move || {
                urgency::hasten(true);
                stream::receive(&socket, begin, &over)
            }
        })?;
        let (b, stop) = (&self.topology.b, self.stop.clone());
        b.spawn("stream", move || {
            urgency::hasten(true);
            let sent = stream::send(Span { to, begin, end }, &stop);
            std::thread::sleep(wait);
            over.set();
            let account = join(receiver)?;
            Ok(stream::Account {
                sent: sent?,
                ..account
            })
        })
    }

    /// Waits until all senders and receivers have ended and the line is empty. Returns the first
    /// error of any of them. After a stop it does not wait: they end by themselves, or with the
    /// process.
    pub(super) fn finish(self) -> Result<(), Error> {
        let mut done = Ok(());
        if !self.stop.is_set() {
            let each = self.jobs.into_iter().map(join);
            done = each.fold(done, |done, job| done.and(job));
            // Connections that are cut off send resets through the line.
            std::thread::sleep(DRAIN);
        }
        for one in self.boxes {
            one.end()?;
        }
        Ok(done?)
    }
}

/// The return value of a thread in a namespace.
pub(super) fn join<T>(thread: JoinHandle<io::Result<io::Result<T>>>) -> io::Result<T> {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        .and_then(|result| result)
}

/// Counts a flood's bytes.
fn swallow(socket: &UdpSocket, octets: &AtomicU64, end: Instant, over: &Stop) -> io::Result<()> {
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let mut buffer = [0; 2_048];
    while Instant::now() < end && !over.is_set() {
        if let Ok(length) = socket.recv(&mut buffer) {
            octets.fetch_add(length as u64, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Turns off offloads, so that the wires carry single packets with checksums as a line does.
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
        // Unsent data of a killed process is dropped early.
        optional(host.set("ipv4/tcp_orphan_retries", "1"))?;
    }
    Ok(offloads)
}

/// Ignores the failure of a setting that the kernel may lack.
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

/// The address of the web server.
pub(super) fn web() -> SocketAddr {
    SocketAddr::from((FAR, 80))
}
