//! Rows of routes and of who they come from: of the daemon's router, and of each of an emulation.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::Serialize;

/// A router at a glance, `bgp.summary/1`.
#[derive(Serialize)]
pub(crate) struct BgpSummary<'a> {
    pub(crate) schema: &'a str,
    pub(crate) router_id: Ipv4Addr,
    pub(crate) asn: u32,
    pub(crate) peers: usize,
    /// Peers that came by a network.
    pub(crate) dynamic: usize,
    pub(crate) established: u32,
    /// Connections, being made or up.
    pub(crate) connections: usize,
    /// Connections that nobody was found for.
    pub(crate) refused: BTreeMap<&'static str, u32>,
    /// Prefixes with a route, by family.
    pub(crate) prefixes: BTreeMap<&'static str, usize>,
    /// What we tell waits for peers' routes after a restart.
    pub(crate) deferring: bool,
}

/// A peer, `bgp.neighbor/1`.
#[derive(Serialize)]
pub(crate) struct BgpNeighbor<'a> {
    pub(crate) schema: &'a str,
    pub(crate) address: IpAddr,
    pub(crate) name: Option<&'a str>,
    pub(crate) version: u8,
    pub(crate) asn: Option<u32>,
    pub(crate) messages_in: u64,
    pub(crate) messages_out: u64,
    /// Since it is Established, or is not.
    pub(crate) since_s: f64,
    pub(crate) state: &'a str,
    /// The state, or how many prefixes came of one that is Established.
    pub(crate) state_or_prefixes: String,
    pub(crate) prefixes_in: u64,
    pub(crate) prefixes_out: u64,
}

/// All about a peer, `bgp.neighbor.detail/1`.
#[derive(Serialize)]
pub(crate) struct BgpNeighborDetail<'a> {
    pub(crate) schema: &'a str,
    pub(crate) address: IpAddr,
    pub(crate) name: Option<&'a str>,
    /// `configured`, or `dynamic`.
    pub(crate) origin: &'a str,
    pub(crate) asn: Option<u32>,
    pub(crate) local_asn: Option<u32>,
    pub(crate) router_id: Option<Ipv4Addr>,
    pub(crate) state: &'a str,
    pub(crate) is_started: bool,
    pub(crate) since_s: f64,
    pub(crate) local: Option<SocketAddr>,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) outgoing: bool,
    pub(crate) hold_time_s: Option<u16>,
    pub(crate) keepalive_s: Option<u16>,
    pub(crate) heard_s_ago: Option<f64>,
    /// How much of the hold time is left.
    pub(crate) hold_left_s: Option<f64>,
    pub(crate) next_try_s: Option<f64>,
    pub(crate) retries: u32,
    pub(crate) families: Vec<&'static str>,
    pub(crate) capabilities: Vec<&'static str>,
    pub(crate) role: Option<String>,
    pub(crate) graceful_restart_s: Option<u16>,
    pub(crate) stale_left_s: Option<f64>,
    pub(crate) prefixes_in: BTreeMap<&'static str, u64>,
    pub(crate) prefixes_out: BTreeMap<&'static str, u64>,
    pub(crate) messages_in: BTreeMap<&'static str, u64>,
    pub(crate) messages_out: BTreeMap<&'static str, u64>,
    /// Sessions that were Established.
    pub(crate) ups: u32,
    pub(crate) collisions: u32,
    /// It takes nothing at present.
    pub(crate) is_blocked: bool,
    pub(crate) last_end: Option<String>,
    /// Malformed UPDATEs (RFC 7606).
    pub(crate) malformed: u64,
    pub(crate) malformed_s_ago: Option<f64>,
    pub(crate) malformed_because: Option<&'a str>,
    /// The last of them without its header, in hexadecimal.
    pub(crate) malformed_octets: Option<String>,
}

/// A route, `bgp.route/1`.
#[derive(Serialize)]
pub(crate) struct BgpRoute<'a> {
    pub(crate) schema: &'a str,
    /// `*` valid, `>` best, `i` from within, `S` stale: as in the tables that operators know.
    pub(crate) status: String,
    pub(crate) prefix: String,
    pub(crate) next_hop: Option<IpAddr>,
    pub(crate) med: Option<u32>,
    pub(crate) local_pref: Option<u32>,
    pub(crate) as_path: String,
    pub(crate) origin: &'a str,
    /// Who it came from; none: our own.
    pub(crate) peer: Option<IpAddr>,
    pub(crate) best: bool,
}

/// A route of a prefix that was asked for, `bgp.path/1`.
#[derive(Serialize)]
pub(crate) struct BgpPath<'a> {
    pub(crate) schema: &'a str,
    pub(crate) prefix: String,
    pub(crate) best: bool,
    /// Why it is the best, or is not.
    pub(crate) because: String,
    pub(crate) peer: Option<IpAddr>,
    pub(crate) peer_asn: Option<u32>,
    pub(crate) peer_router_id: Option<Ipv4Addr>,
    pub(crate) path_id: Option<u32>,
    pub(crate) next_hop: Option<IpAddr>,
    pub(crate) as_path: String,
    pub(crate) origin: &'a str,
    pub(crate) med: Option<u32>,
    pub(crate) local_pref: Option<u32>,
    pub(crate) communities: Vec<String>,
    pub(crate) ext_communities: Vec<String>,
    pub(crate) large_communities: Vec<String>,
    pub(crate) otc: Option<u32>,
    pub(crate) stale: bool,
    /// Attributes that are not known here, by code, in hexadecimal.
    pub(crate) unknown: BTreeMap<u8, String>,
}

/// What the tables hold, `bgp.rib/1`.
#[derive(Serialize)]
pub(crate) struct BgpRib<'a> {
    pub(crate) schema: &'a str,
    pub(crate) prefixes: BTreeMap<&'static str, usize>,
    pub(crate) routes: usize,
    pub(crate) attribute_sets: usize,
    pub(crate) update_groups: usize,
    pub(crate) counted: BTreeMap<&'static str, u64>,
    /// Octets of memory, by what has them.
    pub(crate) memory: BTreeMap<&'static str, usize>,
    pub(crate) memory_bytes: usize,
    /// Networks that we announce.
    pub(crate) announced: Option<usize>,
    /// Routes in the kernel.
    pub(crate) installed: Option<usize>,
    pub(crate) install_refused: Option<u64>,
}

/// Something that happened, `bgp.event/1`.
#[derive(Serialize)]
pub(crate) struct BgpEvent<'a> {
    pub(crate) schema: &'a str,
    pub(crate) s_ago: f64,
    pub(crate) peer: IpAddr,
    pub(crate) kind: &'a str,
    pub(crate) what: String,
}

/// How near a session is to the end of its hold time, `bgp.hold/1`.
#[derive(Serialize)]
pub(crate) struct BgpHold<'a> {
    pub(crate) schema: &'a str,
    pub(crate) peer: IpAddr,
    pub(crate) hold_time_s: u16,
    pub(crate) heard_s_ago: f64,
    pub(crate) hold_left_s: f64,
}
