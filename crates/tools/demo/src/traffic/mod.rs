//! Traffic of some subscribers: from their addresses on the LAC's TUN device through tunnels to the
//! LNS's TUN device, and back. Senders and receivers are threads of the demo.

pub(crate) mod tcp;
mod udp;

use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::ends::End;
use super::place::Place;

/// Number of subscribers with traffic.
pub(super) const SUBSCRIBERS: usize = 16;

/// Time between the first byte and the measurement.
const SETTLE: Duration = Duration::from_millis(500);

/// The direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From subscribers.
    Up,
    /// To subscribers.
    Down,
}

impl Way {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// State that a load's threads share with the measuring thread.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// Bytes of payload received.
    octets: AtomicU64,
    /// Datagrams received.
    datagrams: AtomicU64,
    /// Datagrams lost.
    lost: AtomicU64,
}

impl Shared {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Results of one load.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) protocol: &'static str,
    pub(super) way: Way,
    pub(super) seconds: f64,
    /// Bytes of payload that arrived.
    pub(super) octets: u64,
    /// Datagrams that the LNS received and sent, including TCP acknowledgements.
    pub(super) packets: u64,
    /// Datagrams of the load that were lost.
    pub(super) lost: u64,
    pub(super) lns_cpu_us: u64,
    pub(super) lac_cpu_us: u64,
}

impl Row {
    pub(super) fn gbit_per_s(&self) -> f64 {
        self.octets as f64 * 8.0 / 1e9 / self.seconds
    }

    pub(super) fn packets_per_s(&self) -> f64 {
        self.packets as f64 / self.seconds
    }

    pub(super) fn lns_us_per_packet(&self) -> f64 {
        self.lns_cpu_us as f64 / self.packets.max(1) as f64
    }

    pub(super) fn gbit_per_lns_cpu_s(&self) -> f64 {
        self.octets as f64 * 8.0 / 1e3 / self.lns_cpu_us.max(1) as f64
    }
}

/// The namespaces of the loads, and the daemons whose costs are measured.
pub(super) struct Traffic<'a> {
    pub(super) place: &'a Place,
    pub(super) lns: &'a mut End,
    pub(super) lac: &'a mut End,
    /// Addresses of the subscribers.
    pub(super) addresses: Vec<Ipv4Addr>,
    /// How long each load is measured.
    pub(super) span: Duration,
}

impl Traffic<'_> {
    /// Runs the loads one after another; `begins` is called with the name of each.
    ///
    /// # Errors
    /// What could not be opened, or a daemon that does not answer.
    pub(super) fn run(&mut self, begins: &dyn Fn(&str)) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for way in [Way::Up, Way::Down] {
            begins(&format!("TCP {}", way.name()));
            rows.push(self.tcp(way).context("TCP through the tunnels")?);
        }
        for way in [Way::Up, Way::Down] {
            begins(&format!("UDP {}", way.name()));
            rows.push(self.udp(way).context("UDP through the tunnels")?);
        }
        Ok(rows)
    }

    /// Measures the running load.
    fn measure(&mut self, protocol: &'static str, way: Way, shared: &Shared) -> Result<Row> {
        std::thread::sleep(SETTLE);
        let before = self.sample(shared)?;
        std::thread::sleep(self.span);
        let after = self.sample(shared)?;
        Ok(Row {
            protocol,
            way,
            seconds: (after.at - before.at).as_secs_f64(),
            octets: after.octets - before.octets,
            packets: after.packets - before.packets,
            lost: after.lost - before.lost,
            lns_cpu_us: after.lns_cpu_us - before.lns_cpu_us,
            lac_cpu_us: after.lac_cpu_us - before.lac_cpu_us,
        })
    }

    fn sample(&mut self, shared: &Shared) -> Result<Sample> {
        let counters = self.lns.counters()?;
        let of = |name| counters.get(name).copied().unwrap_or(0);
        let (lns, lac) = (self.lns.stats()?, self.lac.stats()?);
        Ok(Sample {
            at: Instant::now(),
            octets: shared.octets.load(Ordering::Relaxed),
            lost: shared.lost.load(Ordering::Relaxed),
            packets: of("udp_received") + of("udp_sent"),
            lns_cpu_us: lns.user_us + lns.system_us,
            lac_cpu_us: lac.user_us + lac.system_us,
        })
    }
}

/// All counters at one moment.
struct Sample {
    at: Instant,
    octets: u64,
    lost: u64,
    packets: u64,
    lns_cpu_us: u64,
    lac_cpu_us: u64,
}

/// Runs `work` in a namespace, and separates its error from that of the thread.
fn within<T: Send>(
    namespace: &reactor::namespace::Namespace,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    namespace.run(work)?
}
