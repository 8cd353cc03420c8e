//! The rows of every `show`. Each carries its schema's name and version; a field
//! may be added to a version, and taking one away or changing it makes the next.
#![allow(
    missing_docs,
    reason = "docs/control-protocol.md describes each field of each row"
)]

mod bgp;
mod services;
mod subscribers;

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize, Serializer};

pub use bgp::*;
pub use services::*;
pub use subscribers::*;

/// A live tunnel, `tunnel/1`.
#[derive(Serialize)]
pub struct Tunnel<'a> {
    pub schema: &'a str,
    /// Ours.
    pub id: u32,
    /// The peer's; 0 until it is known.
    pub remote_id: u32,
    pub version: u8,
    #[serde(serialize_with = "text")]
    pub state: &'a dyn Display,
    /// `lac` if we originated it, else `lns`.
    pub role: &'a str,
    pub peer: SocketAddr,
    /// Our address, where it is known.
    pub local: Option<IpAddr>,
    /// The peer's Host Name.
    pub host_name: &'a str,
    pub config_id: Option<u32>,
    pub sessions: u32,
    pub age_s: f64,
    /// Since it was established.
    pub up_s: Option<f64>,
    /// The peer's receive window.
    pub window: u16,
    pub cwnd: u16,
    /// Sent and not acknowledged.
    pub outstanding: u16,
    pub rx: u32,
    pub tx: u32,
    pub retransmissions: u32,
    pub duplicates: u32,
}

/// A live session, `session/1`.
#[derive(Serialize)]
pub struct Session<'a> {
    pub schema: &'a str,
    pub id: u32,
    pub remote_id: u32,
    /// Our id of its tunnel.
    pub tunnel: u32,
    pub version: u8,
    #[serde(serialize_with = "text")]
    pub role: &'a dyn Display,
    #[serde(serialize_with = "text")]
    pub state: &'a dyn Display,
    pub pseudowire: &'a str,
    pub age_s: f64,
    pub up_s: Option<f64>,
    pub called_number: &'a str,
    /// Who is in it, where it ends here.
    pub subscriber: Option<&'a str>,
    /// How far that has come.
    pub phase: Option<&'a str>,
    pub address: Option<Ipv4Addr>,
    pub octets_in: Option<u64>,
    pub octets_out: Option<u64>,
}

/// A peer address, `peer/1`.
#[derive(Serialize)]
pub struct Peer<'a> {
    pub schema: &'a str,
    pub address: IpAddr,
    pub tunnels: u32,
    pub opened_total: u64,
}

/// A tunnel or session that ended, `ended/1`.
#[derive(Serialize)]
pub struct Ended<'a> {
    pub schema: &'a str,
    pub tunnel: u32,
    /// Absent if it is the tunnel that ended.
    pub session: Option<u32>,
    pub version: u8,
    pub peer: Option<SocketAddr>,
    pub ended_s_ago: f64,
    #[serde(serialize_with = "text")]
    pub reason: &'a dyn Display,
    pub result: Option<u16>,
    pub error: Option<u16>,
}

/// Something counted, `counter/1`.
#[derive(Serialize)]
pub struct Counter<'a> {
    pub schema: &'a str,
    #[serde(serialize_with = "text")]
    pub name: &'a dyn Display,
    pub value: u64,
}

/// A watched descriptor, `event.descriptor/1`.
#[derive(Serialize)]
pub struct Descriptor<'a> {
    pub schema: &'a str,
    pub fd: i32,
    pub owner: &'a str,
    #[serde(serialize_with = "text")]
    pub interest: &'a dyn Display,
    pub wakeups: u64,
}

/// All waits of the poller, `event.waits/1`.
#[derive(Serialize)]
pub struct Waits<'a> {
    pub schema: &'a str,
    pub poller: &'a str,
    pub descriptors: &'a str,
    pub watched: u64,
    pub waits: u64,
    pub empty: u64,
    pub ready: u64,
    pub stale: u64,
    pub refused: u64,
    pub ready_per_wait: f64,
    pub ready_to_watched: f64,
    pub waits_per_s: f64,
    pub waited_s: f64,
    pub busy_s: f64,
}

/// The timer store, `event.timers/1`.
#[derive(Serialize)]
pub struct Timers<'a> {
    pub schema: &'a str,
    pub store: &'a str,
    pub armed: u64,
    /// Until the next deadline; negative is overdue.
    pub next_ms: Option<f64>,
    pub next_timer: Option<&'a str>,
    pub fired: u64,
    pub late_mean_us: f64,
    pub late_p99_us: f64,
    pub late_max_us: f64,
}

/// A class of timer lateness, `event.lateness/1`.
#[derive(Serialize)]
pub struct LatenessClass<'a> {
    pub schema: &'a str,
    /// Not reached by any of the class; absent if it has no bound.
    pub below_us: Option<f64>,
    pub timers: u64,
}

/// A kind of work, `event.handler/1`.
#[derive(Serialize)]
pub struct Handler<'a> {
    pub schema: &'a str,
    pub name: &'a str,
    pub calls: u64,
    pub total_us: f64,
    pub mean_us: f64,
    pub longest_us: f64,
}

/// A core that packets pass on, `event.shard/1`. The first also does all else.
#[derive(Serialize)]
pub struct Shard<'a> {
    pub schema: &'a str,
    pub shard: usize,
    /// Its thread's number for the kernel.
    pub thread: i32,
    pub cpu_s: f64,
    pub packets_in: u64,
    pub packets_out: u64,
    pub discarded: u64,
    /// What was no packet, and left to the first: control messages, frames of links, numbered sessions.
    pub left: u64,
    /// Of those, what the first could not take.
    pub left_dropped: u64,
    pub icmp_errors: u64,
    pub not_logged: u64,
    pub udp_received: u64,
    pub udp_sent: u64,
    pub tun_read: u64,
    pub tun_written: u64,
}

/// A system call, `event.syscall/1`.
#[derive(Serialize)]
pub struct SysCall<'a> {
    pub schema: &'a str,
    pub name: &'a str,
    pub calls: u64,
}

/// What the process has used and holds, `server/1`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Server {
    pub schema: String,
    pub pid: u32,
    pub uptime_s: f64,
    pub user_us: u64,
    pub system_us: u64,
    pub rss_bytes: u64,
    pub rss_max_bytes: u64,
    /// The addresses that are bound.
    pub lns: Vec<SocketAddr>,
    pub lac: Vec<SocketAddr>,
    #[serde(default)]
    pub bgp: Vec<SocketAddr>,
    pub tunnels: u64,
    pub established: u64,
    pub opening: u64,
    pub closing: u64,
    pub held: u64,
    pub sessions: u64,
    pub sessions_established: u64,
    pub peers: u64,
    pub timers: u64,
    pub sockets: u64,
    pub clients: u64,
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
