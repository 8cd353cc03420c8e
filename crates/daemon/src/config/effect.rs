//! When a changed key of the configuration file applies after a reload.
//!
//! One table lists every key. A key applies at once, or only to tunnels and sessions that start
//! after the reload, or only after a restart of the daemon. If a section appears or disappears, its
//! keys apply no sooner than the section itself. Start reading at [`of`].

use settings::{Difference, Key};

/// When a new value of a key applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effect {
    /// At once.
    Now,
    /// To tunnels and sessions that start after the reload.
    New,
    /// At the next start of the daemon.
    Restart,
}

use Effect::{New, Now, Restart};

/// Keys of these sections, and when they apply. The section "" has the sections themselves as its keys.
type Row = (&'static [&'static str], Effect, &'static [&'static str]);

const PEER: &[&str] = &["l2tp", "lns", "lac"];
const BGP_PEER: &[&str] = &["bgp", "bgp.neighbor", "bgp.dynamic"];
const TERM: &[&str] = &["bgp.policy.term"];

const TABLE: &[Row] = &[
    (
        &[""],
        Now,
        &[
            "pool",
            "prefix_pool",
            "ipv6",
            "users",
            "filter",
            "garden",
            "realm",
            "throttle",
            "tunnel",
            "queue",
            "l2tp",
            "event",
            "limits",
            "log",
        ],
    ),
    (
        &[""],
        Restart,
        &[
            "control", "lns", "lac", "pppoe", "bgp", "ppp", "radius", "client", "tun", "snmp",
            "nat", "audit",
        ],
    ),
    (&["control"], Now, &["clients"]),
    (&["control"], Restart, &["socket"]),
    (
        &["pppoe"],
        Now,
        &[
            "ac_name",
            "services",
            "any_service",
            "max_payload",
            "pado_delay",
            "blacklist",
            "cookie_lifetime_s",
            "setup_timeout_s",
            "sessions",
            "sessions_per_mac",
            "sessions_per_line",
            "over_sessions_per_mac",
            "half_open",
            "padr_per_s",
            "padr_per_mac_per_s",
            "padi_per_s",
            "padi_per_mac_per_s",
            "padi_per_vlan_per_s",
            "delayed_pados",
            "unknown_padt_per_s",
        ],
    ),
    (&["pppoe"], Restart, &["interface"]),
    (&["pppoe.interface"], Now, &["vlans", "ac_name", "services"]),
    (&["pppoe.interface"], Restart, &["name"]),
    (&["lns", "lac"], Now, &["listen"]),
    (&["lns", "lac"], Restart, &["sockets"]),
    (PEER, Now, &["hello_interval_s", "idle_tunnel_s", "hide"]),
    (
        PEER,
        New,
        &["host_name", "versions", "secret", "secret_file"],
    ),
    (PEER, Restart, &["receive_window"]),
    (
        &["l2tp"],
        Now,
        &[
            "retransmit_first_s",
            "retransmit_cap_s",
            "retransmit_tries",
            "hold_s",
            "shutdown_wait_s",
            "outgoing_calls",
        ],
    ),
    (
        &["l2tp"],
        New,
        &[
            "vendor_name",
            "router_id",
            "setup_timeout_s",
            "tie_breaker",
            "pseudowires",
        ],
    ),
    (
        &["l2tp"],
        Restart,
        &["config_ids", "peer_lookup", "digest", "cookie_bytes"],
    ),
    (
        &["event"],
        Restart,
        &[
            "poller",
            "descriptors",
            "timers",
            "tick_ms",
            "receive_buffer_bytes",
            "slice_ms",
            "overrun_ms",
            "hang_ms",
            "send_buffer_bytes",
            "batch",
            "shards",
            "steer",
        ],
    ),
    (
        &["limits"],
        Now,
        &[
            "half_open_flood",
            "tunnels",
            "half_open",
            "half_open_per_source",
            "sessions",
            "sessions_per_tunnel",
            "held",
            "history",
        ],
    ),
    (&["audit"], Now, &["file", "rotate_mb", "keep"]),
    (&["log"], Now, &["level"]),
    (&["log"], Restart, &["to", "format"]),
    (
        &["ppp"],
        Now,
        &[
            "restart_s",
            "configure_tries",
            "terminate_tries",
            "failure_tries",
            "echo_interval_s",
            "echo_tries",
            "rechallenge_interval_s",
            "idle_timeout_s",
            "interim_interval_s",
            "interim_on_change",
            "isolate",
        ],
    ),
    (
        &["ppp"],
        New,
        &[
            "authenticate",
            "name",
            "mru",
            "compress_headers",
            "ipv6",
            "dns",
            "path_mtu",
            "authentication_timeout_s",
            "setup_timeout_s",
            "session_timeout_s",
        ],
    ),
    (
        &["ppp"],
        Restart,
        &["address", "address_v6", "clamp_mss", "subscribers"],
    ),
    (
        &["prefix_pool"],
        Now,
        &["name", "ranges", "length", "excluded", "sticky"],
    ),
    (
        &["ipv6"],
        Now,
        &[
            "dhcp",
            "dns",
            "search",
            "advertise_interval_s",
            "router_lifetime_s",
            "valid_s",
            "preferred_s",
            "preference",
            "rapid_commit",
            "interim_on_change",
        ],
    ),
    (
        &["ipv6"],
        New,
        &["advertise", "link_pool", "delegated_pool", "address_pool"],
    ),
    (
        &["pool"],
        Now,
        &["name", "ranges", "excluded", "skip_ends", "sticky", "queue"],
    ),
    (
        &["pool", "queue.default", "queue.template", "queue.line"],
        Now,
        &["rate_down", "rate_up"],
    ),
    (&["pool", "queue.default", "queue.line"], Now, &["link"]),
    (&["queue.default", "queue.line"], Now, &["template"]),
    (
        &["queue"],
        Now,
        &["strict", "default", "template", "link", "line"],
    ),
    (
        &["queue.template"],
        Now,
        &[
            "name",
            "weight",
            "fairness",
            "depth_packets",
            "depth",
            "target",
            "interval",
            "burst",
            "ecn",
            "overhead",
        ],
    ),
    (
        &["queue.link"],
        Now,
        &["name", "parent", "down", "up", "weight"],
    ),
    (
        &["queue.line"],
        Now,
        &["name", "local", "peer", "host_name"],
    ),
    (&["users", "filter"], Now, &["file"]),
    (&["filter"], New, &["default"]),
    (
        &["realm"],
        Now,
        &[
            "name",
            "strip",
            "servers",
            "authenticate",
            "pool",
            "filter",
            "isolate",
        ],
    ),
    (
        &["throttle"],
        Now,
        &["failures", "delay_s", "delay_max_s", "forget_s"],
    ),
    (&["garden"], Now, &["name", "filter", "portal", "dns"]),
    (
        &["tunnel"],
        New,
        &[
            "name",
            "lns",
            "backup",
            "secret",
            "secret_file",
            "host_name",
            "peer_name",
            "from",
            "realms",
            "line",
        ],
    ),
    (
        &["tunnel.line"],
        New,
        &["interface", "vlans", "local", "peer", "host_name"],
    ),
    (
        &["radius"],
        Now,
        &[
            "acct_delay_time",
            "disconnect",
            "server",
            "client",
            "accounting_queue",
            "vendor_id",
        ],
    ),
    (
        &["radius"],
        Restart,
        &["nas_identifier", "nas_address", "accounting_store"],
    ),
    (
        &["radius.server"],
        Now,
        &[
            "authentication",
            "accounting",
            "name",
            "timeout_s",
            "transmissions",
            "dead_after",
            "dead_time_s",
            "sockets",
        ],
    ),
    (
        &["radius.server", "radius.client"],
        Now,
        &["secret", "secret_file", "require_message_authenticator"],
    ),
    (
        &["radius.client"],
        Now,
        &["address", "require_event_timestamp"],
    ),
    (
        &["client"],
        New,
        &["name", "secret", "secret_file", "networks"],
    ),
    (
        &["client"],
        Restart,
        &[
            "addresses",
            "default_route",
            "default_route_metric",
            "prefix",
            "prefix_interface",
            "pppoe",
            "pppoe_vlan",
            "pppoe_service",
            "pppoe_ac",
        ],
    ),
    (&["snmp"], Restart, &["agentx", "context"]),
    (&["tun"], Restart, &["name", "mtu", "routes", "offloads"]),
    (
        &["nat"],
        Now,
        &[
            "inside",
            "external",
            "blocks_per_subscriber",
            "mappings_per_subscriber",
            "new_mappings_per_s",
            "sessions_per_mapping",
            "filtering",
            "hairpinning",
            "soft_pairing",
            "exempt",
            "ftp",
            "udp_timeout_s",
            "icmp_timeout_s",
            "tcp_timeout_s",
            "tcp_opening_timeout_s",
            "tcp_closing_timeout_s",
            "hold_s",
            "inbound_refreshes",
            "forward",
            "log",
        ],
    ),
    (
        &["nat"],
        Restart,
        &[
            "mode",
            "dynamic_factor",
            "first_port",
            "block_ports",
            "mappings",
            "sessions",
        ],
    ),
    (&["nat.forward"], Now, &["protocol", "external", "inside"]),
    (
        &["nat.log"],
        Now,
        &["days", "ipfix", "ipfix_domain", "syslog"],
    ),
    (&["nat.log"], Restart, &["store"]),
    (
        &["bgp"],
        Now,
        &[
            "asn",
            "router_id",
            "cluster_id",
            "dynamic_max",
            "events_max",
            "shutdown_wait_s",
            "networks",
            "announce",
            "aggregates",
            "roas",
            "neighbor",
            "dynamic",
            "policy",
        ],
    ),
    (
        &["bgp"],
        Restart,
        &[
            "listen",
            "restarted",
            "install",
            "install_table",
            "install_metric",
        ],
    ),
    (
        BGP_PEER,
        Now,
        &[
            "hold_time_s",
            "keepalive_s",
            "send_hold_s",
            "connect_retry_s",
            "idle_hold_s",
            "idle_hold_max_s",
            "advertisement_interval_s",
            "delay_open_s",
            "passive",
            "enabled",
            "refresh",
            "extended_messages",
            "role",
            "role_strict",
            "enforce_first_as",
            "collision_detect_established",
            "route_reflector_client",
            "damp_oscillations",
            "local_asn",
            "allow_own_asn",
            "families",
            "add_path_receive",
            "add_path_send",
            "add_path_count",
            "next_hop_self",
            "next_hop_unchanged",
            "import",
            "export",
            "graceful_restart",
            "restart_time_s",
            "stale_time_s",
            "preserve_forwarding",
            "secret",
            "secret_file",
            "ttl",
            "ttl_security_hops",
            "prefixes_max",
            "prefixes_restart_s",
        ],
    ),
    (
        &["bgp.neighbor"],
        Now,
        &["address", "local_address", "remote_asn", "port", "name"],
    ),
    (
        &["bgp.dynamic"],
        Now,
        &["prefix", "remote_asn", "peers_max"],
    ),
    (&["bgp.policy"], Now, &["name", "term"]),
    (
        TERM,
        Now,
        &[
            "prefix",
            "as_path",
            "community",
            "ext_community",
            "large_community",
            "neighbour",
            "as_path_contains",
            "origin_as",
            "neighbour_as",
            "origin",
            "rpki",
            "family",
            "as_path_length",
        ],
    ),
    (
        TERM,
        Now,
        &[
            "set_local_pref",
            "set_med",
            "remove_med",
            "set_origin",
            "set_next_hop",
            "prepend",
            "set_community",
            "set_ext_community",
            "set_large_community",
            "add_community",
            "remove_community",
            "add_ext_community",
            "remove_ext_community",
            "add_large_community",
            "remove_large_community",
            "then",
        ],
    ),
];

/// When a difference applies. `all` are the differences of the same two readings.
pub(crate) fn of(difference: &Difference, all: &[Difference]) -> Effect {
    let own = of_key(&difference.key.section(), &difference.key.key);
    let sections = all.iter().filter(|one| {
        let appears = one.old.is_none() || one.new.is_none();
        one.key.place.is_empty() && appears && is_within(&difference.key, &one.key.key)
    });
    let of_section = |one: &Difference| of_key("", &one.key.key);
    sections.map(of_section).max().unwrap_or(Now).max(own)
}

/// Whether a key is in the section `name` or in one below it.
fn is_within(key: &Key, name: &str) -> bool {
    let section = key.section();
    let rest = section.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// When a key applies. A key that the table misses needs a restart; a test finds it.
fn of_key(section: &str, key: &str) -> Effect {
    let rows = TABLE.iter();
    let mut found =
        rows.filter(|(sections, _, keys)| sections.contains(&section) && keys.contains(&key));
    found.next().map_or(Restart, |(_, effect, _)| *effect)
}

#[cfg(test)]
mod tests;
