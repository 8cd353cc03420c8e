//! Options of an analysis.

use std::hash::{BuildHasher, RandomState};

use crate::analyzer::{Config, IDLE, IDLE_CLOSED};
use crate::records::plan::Plan;

/// More threads than this would only wait for the reading of the file.
const THREADS_MAX: usize = 16;

/// Options of an analysis. The default is the whole capture, on as many threads as there are processors.
///
/// ```
/// let options = trace::Options {
///     memory: 256 << 20,
///     threads: Some(1),
///     ..trace::Options::default()
/// };
/// assert_eq!(options.workers(), 1);
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    /// Memory in bytes. Beyond it, finished connections move to a temporary file, except for 16 bytes each. Closed
    /// connections and then the least recently used open ones finish early. Blocks of the capture, some MiB for each
    /// thread, are not included. Default: 2 GiB.
    pub memory: u64,
    /// An idle connection finishes after this time, in nanoseconds of the capture. Default: [`IDLE`].
    pub idle_ns: i64,
    /// The same for a closed connection. Default: [`IDLE_CLOSED`].
    pub idle_closed_ns: i64,
    /// Number of the first IP packet to analyse, from 1.
    pub first_packet: u64,
    /// Number of the last IP packet to analyse.
    pub last_packet: u64,
    /// Analyse part K of N: flows whose hash is K modulo N. Several machines can share one capture this way; see
    /// [`crate::part`].
    pub part: Option<(u32, u32)>,
    /// Flows with the same addresses and ports in different tunnels are different connections. This runs on one thread.
    pub tunnels_apart: bool,
    /// Verify the checksums of IP, TCP and UDP, and skip packets with a wrong one. This runs on one thread.
    pub checksums: bool,
    /// Threads to analyse on, 16 at most. Default: one for each processor.
    pub threads: Option<usize>,
    /// Seed of the hash of flows. Default: 0 for a part, since all parts must agree, otherwise a
    /// random number, so that a hostile capture cannot make all flows collide.
    pub seed: Option<u64>,
    /// After a fault in a pcap or pcapng file, look for the next record. Default: true. Otherwise the fault ends the
    /// reading of the file.
    pub resync: bool,
    /// Note what else the packets show, such as TLS names, ECN and losses:
    /// [`Connection::details`](crate::Connection::details). This runs on one thread.
    pub details: bool,
    /// Width of columns over time in [`Connection::details`](crate::Connection::details), in nanoseconds; 0 for none.
    pub interval_ns: i64,
    /// Divide each sender's time into causes: [`Connection::why`](crate::Connection::why).
    pub why: bool,
    /// Note which connections have packets, for [`Analyzer::recent`](crate::Analyzer::recent).
    pub recent: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            memory: 2 << 30,
            idle_ns: IDLE,
            idle_closed_ns: IDLE_CLOSED,
            first_packet: 1,
            last_packet: u64::MAX,
            part: None,
            tunnels_apart: false,
            checksums: false,
            threads: None,
            seed: None,
            resync: true,
            details: false,
            interval_ns: 0,
            why: false,
            recent: false,
        }
    }
}

impl Options {
    /// How many threads to work on.
    #[must_use]
    pub fn workers(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads
            .unwrap_or_else(processors)
            .clamp(1, THREADS_MAX)
    }

    /// How many threads a capture can be analysed on. Packets are numbered and shown to an observer in order on one
    /// thread only.
    pub(super) fn threads(&self, live: bool) -> usize {
        let whole = self.first_packet <= 1 && self.last_packet == u64::MAX;
        // Sessions are paired, and the starts of streams read, in the order of the capture.
        let ordered = self.checksums || self.details || self.tunnels_apart;
        if live || !whole || ordered {
            return 1;
        }
        self.workers()
    }

    /// Bytes of finished connections to keep in memory, and of the list of all of them.
    pub(super) fn finished_memory(&self) -> u64 {
        self.memory / 4
    }

    /// Bytes for connections that have not finished. An eighth is left for the rest of the process.
    fn analyzer_memory(&self) -> u64 {
        self.memory / 8 * 5
    }

    pub(super) fn plan(&self) -> Plan {
        let seed = self.seed.unwrap_or_else(|| match self.part {
            Some(_) => 0,
            None => RandomState::new().hash_one(0),
        });
        Plan {
            config: Config {
                seed,
                idle: self.idle_ns,
                idle_closed: self.idle_closed_ns.min(self.idle_ns),
                memory: self.analyzer_memory(),
                why: self.why,
                details: self.details,
                interval: self.interval_ns,
                recent: self.recent,
                ..Config::default()
            },
            first: self.first_packet,
            last: self.last_packet,
            part: self.part.unwrap_or((0, 1)),
            realm: self.tunnels_apart,
            checksums: self.checksums,
        }
    }
}
