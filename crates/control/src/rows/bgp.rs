//! Rows of BGP routers, peers and routes: of the daemon's router, and of each router of an emulation.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::Serialize;

row! {
    /// A router at a glance.
    #[derive(Serialize)]
    BgpSummary<'a> is "bgp.summary/1" as Block {
        /// BGP identifier.
        router_id: Ipv4Addr = [id text "BGP router identifier"],
        /// Local AS number.
        asn: u32 = [id "local AS number"],
        /// Peers, configured or dynamic.
        peers: usize = [gauge "peers"],
        /// Dynamic peers.
        dynamic: usize = [gauge "  dynamic peers"],
        /// Dynamic peers that are held back: stopped, or over `prefixes_max`.
        held: u32 = [gauge "  held back"],
        /// Established sessions.
        established: u32 = [gauge "  established"],
        /// Connections, established or being opened.
        connections: usize = [gauge],
        /// Refused connections, by reason.
        refused: BTreeMap<&'static str, u32> = [counter "connections refused"],
        /// Events that `show bgp events` has lost to later ones.
        events_lost: u64 = [counter "events lost"],
        /// Prefixes with a route, by family.
        prefixes: BTreeMap<&'static str, usize> = [gauge "prefixes"],
        /// After our restart: we still wait for peers' routes before we advertise ours.
        deferring: bool = [text],
    }
}

row! {
    /// A peer in a list.
    #[derive(Serialize)]
    BgpNeighbor<'a> is "bgp.neighbor/1" as Table {
        /// The peer's address.
        address: IpAddr = [id text "NEIGHBOR"],
        /// BGP version.
        version: u8 = [id "V"],
        /// The peer's AS number.
        asn: Option<u32> = [id "AS"],
        /// Messages received.
        messages_in: u64 = [counter "MSGRCVD"],
        /// Messages sent.
        messages_out: u64 = [counter "MSGSENT"],
        /// Time since the session was established, or since it ended; null: it was never established.
        since_s: Option<f64> = [gauge Seconds Since "UP/DOWN"],
        /// State of the session.
        state: &'a str = [text],
        /// The state, or the number of prefixes received if the session is established.
        state_or_prefixes: String = [gauge "STATE/PFXRCD"],
        /// Prefixes received.
        prefixes_in: u64 = [gauge],
        /// Prefixes sent.
        prefixes_out: u64 = [gauge "PFXSNT"],
        /// The peer's name in the configuration.
        name: Option<&'a str> = [text "DESC"],
    }
}

row! {
    /// Everything about a peer.
    #[derive(Serialize)]
    BgpNeighborDetail<'a> is "bgp.neighbor.detail/1" as Block {
        /// The peer's address.
        address: IpAddr = [id text "neighbor"],
        /// The peer's name in the configuration.
        name: Option<&'a str> = [text "  name"],
        /// `configured` or `dynamic`.
        origin: &'a str = [text "  origin"],
        /// The peer's AS number.
        asn: Option<u32> = [id "  remote AS"],
        /// Our AS number in this session.
        local_asn: Option<u32> = [id "  local AS"],
        /// The peer's BGP identifier.
        router_id: Option<Ipv4Addr> = [text "  router identifier"],
        /// State of the session.
        state: &'a str = [text "  state"],
        /// Whether the peer is started; false after `bgp stop`.
        is_started: bool = [text],
        /// Time since the session was established, or since it ended; null: it was never established.
        since_s: Option<f64> = [gauge Seconds Since "  up or down for"],
        /// Our address and port.
        local: Option<SocketAddr> = [text "  local end"],
        /// The peer's address and port.
        remote: Option<SocketAddr> = [text "  remote end"],
        /// Whether we opened the connection.
        outgoing: bool = [text],
        /// Negotiated hold time.
        hold_time_s: Option<u16> = [gauge Seconds Number "  hold time (s)"],
        /// Interval between KEEPALIVEs.
        keepalive_s: Option<u16> = [gauge Seconds Number "  keepalive interval (s)"],
        /// Time since the last message from the peer.
        heard_s_ago: Option<f64> = [gauge Seconds "  last message"],
        /// Time left until the hold timer expires.
        hold_left_s: Option<f64> = [gauge Seconds "  hold time left"],
        /// Time until the next connection attempt.
        next_try_s: Option<f64> = [gauge Seconds "  next attempt in"],
        /// Failed connection attempts since the last success.
        retries: u32 = [gauge "  failed attempts"],
        /// Families in use.
        families: Vec<&'static str> = [text "  families"],
        /// Capabilities that both sides advertised.
        capabilities: Vec<&'static str> = [text "  capabilities"],
        /// The peer's role (RFC 9234).
        role: Option<String> = [text "  peer's role"],
        /// The peer's restart time (RFC 4724).
        graceful_restart_s: Option<u16> = [gauge Seconds Number "  restart time (s)"],
        /// Time until the peer's stale routes are removed.
        stale_left_s: Option<f64> = [gauge Seconds "  stale routes expire in"],
        /// Prefixes received, by family.
        prefixes_in: BTreeMap<&'static str, u64> = [gauge "  prefixes received"],
        /// Prefixes sent, by family.
        prefixes_out: BTreeMap<&'static str, u64> = [gauge "  prefixes sent"],
        /// Messages received, by type.
        messages_in: BTreeMap<&'static str, u64> = [counter "  messages received"],
        /// Messages sent, by type.
        messages_out: BTreeMap<&'static str, u64> = [counter "  messages sent"],
        /// Sessions established so far.
        ups: u32 = [counter "  sessions established"],
        /// Connection collisions.
        collisions: u32 = [counter "  collisions"],
        /// Whether the peer is not reading at present.
        is_blocked: bool = [text "  peer not reading"],
        /// Why the last session ended.
        last_end: Option<String> = [text "  last end"],
        /// Malformed UPDATEs (RFC 7606).
        malformed: u64 = [counter "  malformed UPDATEs"],
        /// Time since the last malformed UPDATE.
        malformed_s_ago: Option<f64> = [gauge Seconds "    time since the last"],
        /// The fault of the last malformed UPDATE.
        malformed_because: Option<&'a str> = [text "    fault"],
        /// The last malformed UPDATE without its header, in hexadecimal.
        malformed_octets: Option<String> = [text "    octets"],
    }
}

row! {
    /// A route.
    #[derive(Serialize)]
    BgpRoute<'a> is "bgp.route/1" as Table {
        /// `*` usable, `>` best, `i` internal, `S` stale.
        status: String = [text ""],
        /// The prefix.
        prefix: String = [id text "NETWORK"],
        /// Next hop.
        next_hop: Option<IpAddr> = [text "NEXT HOP"],
        /// MULTI_EXIT_DISC.
        med: Option<u32> = [id "METRIC"],
        /// LOCAL_PREF.
        local_pref: Option<u32> = [id "LOCPRF"],
        /// AS_PATH.
        as_path: String = [text "PATH"],
        /// ORIGIN.
        origin: &'a str = [text "ORIGIN"],
        /// The peer that advertised the route; null: our own route.
        peer: Option<IpAddr> = [id text],
        /// Whether it is the best route of the prefix.
        best: bool = [text],
    }
}

row! {
    /// A route of one prefix, with everything about it.
    #[derive(Serialize)]
    BgpPath<'a> is "bgp.path/1" as Block {
        /// The prefix.
        prefix: String = [id text "prefix"],
        /// Whether it is the best route of the prefix.
        best: bool = [text "  best"],
        /// Why it is the best route, or is not.
        because: String = [text "  reason"],
        /// The peer that advertised the route; null: our own route.
        peer: Option<IpAddr> = [id text "  peer"],
        /// The peer's AS number.
        peer_asn: Option<u32> = [id "  peer's AS"],
        /// The peer's BGP identifier.
        peer_router_id: Option<Ipv4Addr> = [text "  peer's identifier"],
        /// Path identifier (RFC 7911).
        path_id: Option<u32> = [id "  path identifier"],
        /// Next hop.
        next_hop: Option<IpAddr> = [text "  next hop"],
        /// AS_PATH.
        as_path: String = [text "  AS path"],
        /// ORIGIN.
        origin: &'a str = [text "  origin"],
        /// MULTI_EXIT_DISC.
        med: Option<u32> = [id "  metric (MED)"],
        /// LOCAL_PREF.
        local_pref: Option<u32> = [id "  local preference"],
        /// Communities (RFC 1997).
        communities: Vec<String> = [text "  communities"],
        /// Extended communities (RFC 4360).
        ext_communities: Vec<String> = [text "  extended communities"],
        /// Large communities (RFC 8092).
        large_communities: Vec<String> = [text "  large communities"],
        /// Only to Customer (RFC 9234).
        otc: Option<u32> = [id "  only to customer"],
        /// Whether the peer restarts and has not yet sent the route again.
        stale: bool = [text "  stale"],
        /// Unrecognised attributes, by type code, in hexadecimal.
        unknown: BTreeMap<u8, String> = [text "  other attributes"],
    }
}

row! {
    /// The size of the tables.
    #[derive(Serialize)]
    BgpRib<'a> is "bgp.rib/1" as Block {
        /// Prefixes with a route, by family.
        prefixes: BTreeMap<&'static str, usize> = [gauge "prefixes"],
        /// Routes.
        routes: usize = [gauge "routes"],
        /// Distinct sets of attributes.
        attribute_sets: usize = [gauge "attribute sets"],
        /// Update groups.
        update_groups: usize = [gauge "update groups"],
        /// Counters of the tables, by name.
        counted: BTreeMap<&'static str, u64> = [counter "counters"],
        /// All memory of the tables.
        memory_bytes: usize = [gauge Bytes "memory"],
        /// Memory by part.
        memory: BTreeMap<&'static str, usize> = [gauge Bytes "  by part"],
        /// Networks that this daemon announces; null in an emulation.
        announced: Option<usize> = [gauge "announced networks"],
        /// Routes installed in the kernel; null without `install`.
        installed: Option<usize> = [gauge "routes in the kernel"],
        /// Routes that the kernel refused.
        install_refused: Option<u64> = [counter "  refused"],
    }
}

row! {
    /// Something that happened.
    #[derive(Serialize)]
    BgpEvent<'a> is "bgp.event/1" as Table {
        /// Time since the event.
        s_ago: f64 = [gauge Seconds "AGO"],
        /// The peer's address.
        peer: IpAddr = [id text "PEER"],
        /// `state`, `sent`, `received`, `ended`, `malformed` or `refused`.
        kind: &'a str = [text "KIND"],
        /// The event in words.
        what: String = [text "EVENT"],
    }
}

row! {
    /// The hold timer of an established session.
    #[derive(Serialize)]
    BgpHold<'a> is "bgp.hold/1" as Table {
        /// The peer's address.
        peer: IpAddr = [id text "PEER"],
        /// Negotiated hold time.
        hold_time_s: u16 = [gauge Seconds Number "HOLD TIME (S)"],
        /// Time since the last message from the peer.
        heard_s_ago: f64 = [gauge Seconds "LAST MESSAGE"],
        /// Time left until the hold timer expires.
        hold_left_s: f64 = [gauge Seconds "LEFT"],
    }
}
