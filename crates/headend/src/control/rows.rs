//! The rows of every `show`. Each carries its schema's name and version; a field
//! may be added to a version, and taking one away or changing it makes the next.

mod bgp;
mod services;
mod subscribers;

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize, Serializer};

pub(crate) use bgp::*;
pub(crate) use services::*;
pub(crate) use subscribers::*;

/// A live tunnel, `tunnel/1`.
#[derive(Serialize)]
pub(crate) struct Tunnel<'a> {
    pub(crate) schema: &'a str,
    /// Ours.
    pub(crate) id: u32,
    /// The peer's; 0 until it is known.
    pub(crate) remote_id: u32,
    pub(crate) version: u8,
    #[serde(serialize_with = "text")]
    pub(crate) state: &'a dyn Display,
    /// `lac` if we originated it, else `lns`.
    pub(crate) role: &'a str,
    pub(crate) peer: SocketAddr,
    /// Our address, where it is known.
    pub(crate) local: Option<IpAddr>,
    /// The peer's Host Name.
    pub(crate) host_name: &'a str,
    pub(crate) config_id: Option<u32>,
    pub(crate) sessions: u32,
    pub(crate) age_s: f64,
    /// Since it was established.
    pub(crate) up_s: Option<f64>,
    /// The peer's receive window.
    pub(crate) window: u16,
    pub(crate) cwnd: u16,
    /// Sent and not acknowledged.
    pub(crate) outstanding: u16,
    pub(crate) rx: u32,
    pub(crate) tx: u32,
    pub(crate) retransmissions: u32,
    pub(crate) duplicates: u32,
}

/// A live session, `session/1`.
#[derive(Serialize)]
pub(crate) struct Session<'a> {
    pub(crate) schema: &'a str,
    pub(crate) id: u32,
    pub(crate) remote_id: u32,
    /// Our id of its tunnel.
    pub(crate) tunnel: u32,
    pub(crate) version: u8,
    #[serde(serialize_with = "text")]
    pub(crate) role: &'a dyn Display,
    #[serde(serialize_with = "text")]
    pub(crate) state: &'a dyn Display,
    pub(crate) pseudowire: &'a str,
    pub(crate) age_s: f64,
    pub(crate) up_s: Option<f64>,
    pub(crate) called_number: &'a str,
    /// Who is in it, where it ends here.
    pub(crate) subscriber: Option<&'a str>,
    /// How far that has come.
    pub(crate) phase: Option<&'a str>,
    pub(crate) address: Option<Ipv4Addr>,
    pub(crate) octets_in: Option<u64>,
    pub(crate) octets_out: Option<u64>,
}

/// A peer address, `peer/1`.
#[derive(Serialize)]
pub(crate) struct Peer<'a> {
    pub(crate) schema: &'a str,
    pub(crate) address: IpAddr,
    pub(crate) tunnels: u32,
    pub(crate) opened_total: u64,
}

/// A tunnel or session that ended, `ended/1`.
#[derive(Serialize)]
pub(crate) struct Ended<'a> {
    pub(crate) schema: &'a str,
    pub(crate) tunnel: u32,
    /// Absent if it is the tunnel that ended.
    pub(crate) session: Option<u32>,
    pub(crate) version: u8,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) ended_s_ago: f64,
    #[serde(serialize_with = "text")]
    pub(crate) reason: &'a dyn Display,
    pub(crate) result: Option<u16>,
    pub(crate) error: Option<u16>,
}

/// Something counted, `counter/1`.
#[derive(Serialize)]
pub(crate) struct Counter<'a> {
    pub(crate) schema: &'a str,
    #[serde(serialize_with = "text")]
    pub(crate) name: &'a dyn Display,
    pub(crate) value: u64,
}

/// A watched descriptor, `event.descriptor/1`.
#[derive(Serialize)]
pub(crate) struct Descriptor<'a> {
    pub(crate) schema: &'a str,
    pub(crate) fd: i32,
    pub(crate) owner: &'a str,
    #[serde(serialize_with = "text")]
    pub(crate) interest: &'a dyn Display,
    pub(crate) wakeups: u64,
}

/// All waits of the poller, `event.waits/1`.
#[derive(Serialize)]
pub(crate) struct Waits<'a> {
    pub(crate) schema: &'a str,
    pub(crate) poller: &'a str,
    pub(crate) descriptors: &'a str,
    pub(crate) watched: u64,
    pub(crate) waits: u64,
    pub(crate) empty: u64,
    pub(crate) ready: u64,
    pub(crate) stale: u64,
    pub(crate) refused: u64,
    pub(crate) ready_per_wait: f64,
    pub(crate) ready_to_watched: f64,
    pub(crate) waits_per_s: f64,
    pub(crate) waited_s: f64,
    pub(crate) busy_s: f64,
}

/// The timer store, `event.timers/1`.
#[derive(Serialize)]
pub(crate) struct Timers<'a> {
    pub(crate) schema: &'a str,
    pub(crate) store: &'a str,
    pub(crate) armed: u64,
    /// Until the next deadline; negative is overdue.
    pub(crate) next_ms: Option<f64>,
    pub(crate) next_timer: Option<&'a str>,
    pub(crate) fired: u64,
    pub(crate) late_mean_us: f64,
    pub(crate) late_p99_us: f64,
    pub(crate) late_max_us: f64,
}

/// A class of timer lateness, `event.lateness/1`.
#[derive(Serialize)]
pub(crate) struct LatenessClass<'a> {
    pub(crate) schema: &'a str,
    /// Not reached by any of the class; absent if it has no bound.
    pub(crate) below_us: Option<f64>,
    pub(crate) timers: u64,
}

/// A kind of work, `event.handler/1`.
#[derive(Serialize)]
pub(crate) struct Handler<'a> {
    pub(crate) schema: &'a str,
    pub(crate) name: &'a str,
    pub(crate) calls: u64,
    pub(crate) total_us: f64,
    pub(crate) mean_us: f64,
    pub(crate) longest_us: f64,
}

/// A core that packets pass on, `event.shard/1`. The first also does all else.
#[derive(Serialize)]
pub(crate) struct Shard<'a> {
    pub(crate) schema: &'a str,
    pub(crate) shard: usize,
    /// Its thread's number for the kernel.
    pub(crate) thread: i32,
    pub(crate) cpu_s: f64,
    pub(crate) packets_in: u64,
    pub(crate) packets_out: u64,
    pub(crate) discarded: u64,
    /// What was no packet, and left to the first: control messages, frames of links, numbered sessions.
    pub(crate) left: u64,
    /// Of those, what the first could not take.
    pub(crate) left_dropped: u64,
    pub(crate) icmp_errors: u64,
    pub(crate) not_logged: u64,
    pub(crate) udp_received: u64,
    pub(crate) udp_sent: u64,
    pub(crate) tun_read: u64,
    pub(crate) tun_written: u64,
}

/// A system call, `event.syscall/1`.
#[derive(Serialize)]
pub(crate) struct SysCall<'a> {
    pub(crate) schema: &'a str,
    pub(crate) name: &'a str,
    pub(crate) calls: u64,
}

/// What the process has used and holds, `server/1`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Server {
    pub(crate) schema: String,
    pub(crate) pid: u32,
    pub(crate) uptime_s: f64,
    pub(crate) user_us: u64,
    pub(crate) system_us: u64,
    pub(crate) rss_bytes: u64,
    pub(crate) rss_max_bytes: u64,
    /// The addresses that are bound.
    pub(crate) lns: Vec<SocketAddr>,
    pub(crate) lac: Vec<SocketAddr>,
    #[serde(default)]
    pub(crate) bgp: Vec<SocketAddr>,
    pub(crate) tunnels: u64,
    pub(crate) established: u64,
    pub(crate) opening: u64,
    pub(crate) closing: u64,
    pub(crate) held: u64,
    pub(crate) sessions: u64,
    pub(crate) sessions_established: u64,
    pub(crate) peers: u64,
    pub(crate) timers: u64,
    pub(crate) sockets: u64,
    pub(crate) clients: u64,
}

/// Writes what a value prints, without a copy of it.
fn text<S: Serializer>(value: &&dyn Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// The same of one that may not be there.
fn maybe_text<S: Serializer>(
    value: &Option<&dyn Display>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

/// The same of several.
fn texts<T: Display, S: Serializer>(values: &&[T], serializer: S) -> Result<S::Ok, S::Error> {
    struct Text<'a, T>(&'a T);
    impl<T: Display> Serialize for Text<'_, T> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self.0)
        }
    }
    serializer.collect_seq(values.iter().map(Text))
}
