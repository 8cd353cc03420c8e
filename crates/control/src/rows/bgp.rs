//! Rows of routes and of who they come from: of the daemon's router, and of each of an emulation.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::Serialize;

/// A router at a glance, `bgp.summary/1`.
#[derive(Serialize)]
pub struct BgpSummary<'a> {
    pub schema: &'a str,
    pub router_id: Ipv4Addr,
    pub asn: u32,
    pub peers: usize,
    /// Peers that came by a network.
    pub dynamic: usize,
    pub established: u32,
    /// Connections, being made or up.
    pub connections: usize,
    /// Connections that nobody was found for.
    pub refused: BTreeMap<&'static str, u32>,
    /// Prefixes with a route, by family.
    pub prefixes: BTreeMap<&'static str, usize>,
    /// What we tell waits for peers' routes after a restart.
    pub deferring: bool,
}

/// A peer, `bgp.neighbor/1`.
#[derive(Serialize)]
pub struct BgpNeighbor<'a> {
    pub schema: &'a str,
    pub address: IpAddr,
    pub name: Option<&'a str>,
    pub version: u8,
    pub asn: Option<u32>,
    pub messages_in: u64,
    pub messages_out: u64,
    /// Since it is Established, or is not.
    pub since_s: f64,
    pub state: &'a str,
    /// The state, or how many prefixes came of one that is Established.
    pub state_or_prefixes: String,
    pub prefixes_in: u64,
    pub prefixes_out: u64,
}

/// All about a peer, `bgp.neighbor.detail/1`.
#[derive(Serialize)]
pub struct BgpNeighborDetail<'a> {
    pub schema: &'a str,
    pub address: IpAddr,
    pub name: Option<&'a str>,
    /// `configured`, or `dynamic`.
    pub origin: &'a str,
    pub asn: Option<u32>,
    pub local_asn: Option<u32>,
    pub router_id: Option<Ipv4Addr>,
    pub state: &'a str,
    pub is_started: bool,
    pub since_s: f64,
    pub local: Option<SocketAddr>,
    pub remote: Option<SocketAddr>,
    pub outgoing: bool,
    pub hold_time_s: Option<u16>,
    pub keepalive_s: Option<u16>,
    pub heard_s_ago: Option<f64>,
    /// How much of the hold time is left.
    pub hold_left_s: Option<f64>,
    pub next_try_s: Option<f64>,
    pub retries: u32,
    pub families: Vec<&'static str>,
    pub capabilities: Vec<&'static str>,
    pub role: Option<String>,
    pub graceful_restart_s: Option<u16>,
    pub stale_left_s: Option<f64>,
    pub prefixes_in: BTreeMap<&'static str, u64>,
    pub prefixes_out: BTreeMap<&'static str, u64>,
    pub messages_in: BTreeMap<&'static str, u64>,
    pub messages_out: BTreeMap<&'static str, u64>,
    /// Sessions that were Established.
    pub ups: u32,
    pub collisions: u32,
    /// It takes nothing at present.
    pub is_blocked: bool,
    pub last_end: Option<String>,
    /// Malformed UPDATEs (RFC 7606).
    pub malformed: u64,
    pub malformed_s_ago: Option<f64>,
    pub malformed_because: Option<&'a str>,
    /// The last of them without its header, in hexadecimal.
    pub malformed_octets: Option<String>,
}

/// A route, `bgp.route/1`.
#[derive(Serialize)]
pub struct BgpRoute<'a> {
    pub schema: &'a str,
    /// `*` valid, `>` best, `i` from within, `S` stale: as in the tables that operators know.
    pub status: String,
    pub prefix: String,
    pub next_hop: Option<IpAddr>,
    pub med: Option<u32>,
    pub local_pref: Option<u32>,
    pub as_path: String,
    pub origin: &'a str,
    /// Who it came from; none: our own.
    pub peer: Option<IpAddr>,
    pub best: bool,
}

/// A route of a prefix that was asked for, `bgp.path/1`.
#[derive(Serialize)]
pub struct BgpPath<'a> {
    pub schema: &'a str,
    pub prefix: String,
    pub best: bool,
    /// Why it is the best, or is not.
    pub because: String,
    pub peer: Option<IpAddr>,
    pub peer_asn: Option<u32>,
    pub peer_router_id: Option<Ipv4Addr>,
    pub path_id: Option<u32>,
    pub next_hop: Option<IpAddr>,
    pub as_path: String,
    pub origin: &'a str,
    pub med: Option<u32>,
    pub local_pref: Option<u32>,
    pub communities: Vec<String>,
    pub ext_communities: Vec<String>,
    pub large_communities: Vec<String>,
    pub otc: Option<u32>,
    pub stale: bool,
    /// Attributes that are not known here, by code, in hexadecimal.
    pub unknown: BTreeMap<u8, String>,
}

/// What the tables hold, `bgp.rib/1`.
#[derive(Serialize)]
pub struct BgpRib<'a> {
    pub schema: &'a str,
    pub prefixes: BTreeMap<&'static str, usize>,
    pub routes: usize,
    pub attribute_sets: usize,
    pub update_groups: usize,
    pub counted: BTreeMap<&'static str, u64>,
    /// Octets of memory, by what has them.
    pub memory: BTreeMap<&'static str, usize>,
    pub memory_bytes: usize,
    /// Networks that we announce.
    pub announced: Option<usize>,
    /// Routes in the kernel.
    pub installed: Option<usize>,
    pub install_refused: Option<u64>,
}

/// Something that happened, `bgp.event/1`.
#[derive(Serialize)]
pub struct BgpEvent<'a> {
    pub schema: &'a str,
    pub s_ago: f64,
    pub peer: IpAddr,
    pub kind: &'a str,
    pub what: String,
}

/// How near a session is to the end of its hold time, `bgp.hold/1`.
#[derive(Serialize)]
pub struct BgpHold<'a> {
    pub schema: &'a str,
    pub peer: IpAddr,
    pub hold_time_s: u16,
    pub heard_s_ago: f64,
    pub hold_left_s: f64,
}
