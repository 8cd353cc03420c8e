//! The commands of FRR's BGP, and what becomes of each. A word in capitals stands for any word.

use crate::report::Rule;

const NO_BGP: &str = "not part of BGP; keep it in FRR, the kernel or the host's own configuration";
const BEST: &str = "headend's decision process is that of RFC 4271, 9.1.2.2";
const TIMING: &str = "headend schedules its own work";
const CAPABILITY: &str = "headend does not implement this capability";
const SINGLE: &str = "headend has one routing table";
const NO_CONDITION: &str = "headend's policies have no such condition; a term that permits is left out, a term that denies denies more";
const NO_ACTION: &str = "headend's policies have no such action";

/// Commands outside of blocks.
pub(super) const TOP: &[Rule] = &[
    Rule::none(
        "access-list",
        0,
        "used by `distribute-list`, which headend does not have",
    ),
    Rule::none("agentx", 0, NO_BGP),
    Rule::none("banner", 0, NO_BGP),
    Rule::key(
        "bgp as-path access-list NAME",
        0,
        "`bgp.policy.term.as_path` and its kin, where a route-map uses it",
    ),
    Rule::key(
        "bgp community-list",
        0,
        "`bgp.policy.term.community`, where a route-map uses it",
    ),
    Rule::key(
        "bgp large-community-list",
        0,
        "`bgp.policy.term.large_community`, where a route-map uses it",
    ),
    Rule::none("debug", 0, NO_BGP),
    Rule::none("domainname", 0, NO_BGP),
    Rule::none("enable", 0, NO_BGP),
    Rule::kept("end", 0, "the end of the file"),
    Rule::kept("exit", 0, "the end of a block"),
    Rule::none(
        "frr defaults",
        0,
        "headend has one set of defaults: see configuration.md",
    ),
    Rule::none("frr version", 0, NO_BGP),
    Rule::none("hostname", 0, NO_BGP),
    Rule::none("interface", 0, NO_BGP),
    Rule::key(
        "ip as-path access-list NAME",
        0,
        "see `bgp as-path access-list`",
    ),
    Rule::none("ip forwarding", 0, NO_BGP),
    Rule::none("ip nht", 0, NO_BGP),
    Rule::key(
        "ip prefix-list NAME",
        0,
        "`bgp.policy.term.prefix`, where a neighbour or a route-map uses it",
    ),
    Rule::none("ip route", 0, NO_BGP),
    Rule::none("ip router-id", 0, "give `bgp router-id`"),
    Rule::none(
        "ipv6 access-list",
        0,
        "used by `distribute-list`, which headend does not have",
    ),
    Rule::none("ipv6 forwarding", 0, NO_BGP),
    Rule::none("ipv6 nht", 0, NO_BGP),
    Rule::key(
        "ipv6 prefix-list NAME",
        0,
        "`bgp.policy.term.prefix`, where a neighbour or a route-map uses it",
    ),
    Rule::none("ipv6 route", 0, NO_BGP),
    Rule::none("key", 0, NO_BGP),
    Rule::none("line", 0, NO_BGP),
    Rule::none("log", 0, "headend logs to the journal or standard error"),
    Rule::none("nexthop-group", 0, NO_BGP),
    Rule::none("password", 0, NO_BGP),
    Rule::none("pbr-map", 0, NO_BGP),
    Rule::key(
        "route-map NAME",
        0,
        "`bgp.policy`, with a term for each entry",
    ),
    Rule::key("router bgp", 0, "`bgp.asn`"),
    Rule::none("router", 0, NO_BGP),
    Rule::lost(
        "rpki",
        0,
        "headend reads route origin authorisations from a file, `bgp.roas`",
    ),
    Rule::none("service", 0, NO_BGP),
    Rule::none("username", 0, NO_BGP),
    Rule::none("vni", 0, SINGLE),
    Rule::none("vrf", 0, SINGLE),
    Rule::none("zebra", 0, NO_BGP),
];

/// Commands in `router bgp` and its address families.
pub(super) const BGP: &[Rule] = &[
    Rule::key(
        "address-family",
        0,
        "`ipv4 unicast` and `ipv6 unicast` only",
    ),
    Rule::lost(
        "aggregate-address",
        0,
        "`bgp.aggregates` is for subscribers' addresses; list the network in `bgp.networks`",
    ),
    Rule::lost("bgp always-compare-med", 0, BEST),
    Rule::lost("bgp bestpath", 0, BEST),
    Rule::lost(
        "bgp client-to-client reflection",
        0,
        "a headend with clients reflects between them",
    ),
    Rule::key("bgp cluster-id", 1, "`bgp.cluster_id`"),
    Rule::none("bgp coalesce-time", 0, TIMING),
    Rule::lost(
        "bgp conditional-advertisement",
        0,
        "headend has no conditional advertisement",
    ),
    Rule::lost("bgp confederation", 0, "headend has no confederations"),
    Rule::lost("bgp dampening", 0, "headend does not damp routes"),
    Rule::kept(
        "bgp default ipv4-unicast",
        0,
        "`bgp.families` is `[\"ipv4\"]` by default",
    ),
    Rule::lost("bgp default", 0, "set it at the neighbour"),
    Rule::lost("bgp deterministic-med", 0, BEST),
    Rule::lost(
        "bgp disable-ebgp-connected-route-check",
        0,
        "headend leaves the check to the kernel's route to the peer",
    ),
    Rule::kept("bgp ebgp-requires-policy", 0, "headend follows RFC 8212"),
    Rule::kept(
        "bgp fast-external-failover",
        0,
        "the kernel ends the connection; the hold timer ends the session",
    ),
    Rule::key("bgp graceful-restart", 0, "`bgp.graceful_restart`"),
    Rule::key(
        "bgp graceful-restart preserve-fw-state",
        0,
        "`bgp.preserve_forwarding`",
    ),
    Rule::key(
        "bgp graceful-restart restart-time",
        1,
        "`bgp.restart_time_s`",
    ),
    Rule::key(
        "bgp graceful-restart stalepath-time",
        1,
        "`bgp.stale_time_s`",
    ),
    Rule::key(
        "bgp graceful-restart-disable",
        0,
        "`bgp.graceful_restart = false`",
    ),
    Rule::lost(
        "bgp graceful-restart rib-stale-time",
        0,
        "the kernel's stale routes stay for `restart_time_s`",
    ),
    Rule::lost(
        "bgp graceful-restart select-defer-time",
        0,
        "headend waits for its peers as RFC 4724 4.1 says",
    ),
    Rule::lost(
        "bgp graceful-shutdown",
        0,
        "headend does not add GRACEFUL_SHUTDOWN; add the community in an export policy",
    ),
    Rule::key("bgp listen limit", 1, "`bgp.dynamic_max`"),
    Rule::key(
        "bgp listen range",
        3,
        "`bgp.dynamic`, with the settings of the group",
    ),
    Rule::kept("bgp log-neighbor-changes", 0, "headend logs them"),
    Rule::lost("bgp max-med", 0, BEST),
    Rule::lost(
        "bgp minimum-holdtime",
        0,
        "headend takes the hold time that the peer offers, from 3 s",
    ),
    Rule::lost(
        "bgp network import-check",
        0,
        "headend announces `bgp.networks` without a check of the kernel's routes",
    ),
    Rule::key("bgp router-id", 1, "`bgp.router_id`"),
    Rule::lost(
        "bgp route-reflector",
        0,
        "headend's policies do not change reflected routes' next hops",
    ),
    Rule::kept(
        "bgp session-dscp",
        0,
        "headend marks its packets as FRR does by default",
    ),
    Rule::lost(
        "bgp suppress-fib-pending",
        0,
        "headend announces a route before the kernel has it",
    ),
    Rule::none("bgp update-delay", 0, TIMING),
    Rule::lost("bgp", 0, "headend has no such option"),
    Rule::lost(
        "distance",
        0,
        "the metric of routes in the kernel is `bgp.install_metric`",
    ),
    Rule::kept("exit-address-family", 0, "the end of a block"),
    Rule::kept("exit", 0, "the end of a block"),
    Rule::lost(
        "maximum-paths",
        0,
        "headend installs one path for each prefix",
    ),
    Rule::key("neighbor PEER activate", 0, "`bgp.neighbor.families`"),
    Rule::lost(
        "neighbor PEER addpath-tx-bestpath-per-AS",
        0,
        "see `add_path_send` and `add_path_count`",
    ),
    Rule::key(
        "neighbor PEER addpath-tx-all-paths",
        0,
        "`bgp.neighbor.add_path_send`",
    ),
    Rule::lost(
        "neighbor PEER advertise-map",
        0,
        "headend has no conditional advertisement",
    ),
    Rule::key(
        "neighbor PEER advertisement-interval",
        1,
        "`bgp.neighbor.advertisement_interval_s`",
    ),
    Rule::key(
        "neighbor PEER allowas-in",
        1,
        "`bgp.neighbor.allow_own_asn`, 3 by default",
    ),
    Rule::lost("neighbor PEER as-override", 0, NO_ACTION),
    Rule::key(
        "neighbor PEER attribute-unchanged next-hop",
        0,
        "`bgp.neighbor.next_hop_unchanged`",
    ),
    Rule::lost(
        "neighbor PEER attribute-unchanged",
        0,
        "headend keeps the next hop only: `attribute-unchanged next-hop`",
    ),
    Rule::lost(
        "neighbor PEER bfd",
        0,
        "headend has no BFD; lower `hold_time_s`",
    ),
    Rule::lost("neighbor PEER capability", 0, CAPABILITY),
    Rule::lost(
        "neighbor PEER default-originate",
        0,
        "add the default route to `bgp.networks`",
    ),
    Rule::key("neighbor PEER delayopen", 1, "`bgp.neighbor.delay_open_s`"),
    Rule::key("neighbor PEER description", 0, "`bgp.neighbor.name`"),
    Rule::none(
        "neighbor PEER disable-addpath-rx",
        0,
        "`add_path_receive` is off by default",
    ),
    Rule::kept(
        "neighbor PEER disable-connected-check",
        0,
        "headend has no such check",
    ),
    Rule::lost(
        "neighbor PEER distribute-list",
        0,
        "use a prefix list; until then, the direction is `\"deny\"`",
    ),
    Rule::lost(
        "neighbor PEER dont-capability-negotiate",
        0,
        "headend always sends its capabilities",
    ),
    Rule::key(
        "neighbor PEER ebgp-multihop",
        1,
        "`bgp.neighbor.ttl`, 255 by default",
    ),
    Rule::kept(
        "neighbor PEER enforce-first-as",
        0,
        "`enforce_first_as` is on by default",
    ),
    Rule::lost(
        "neighbor PEER filter-list",
        0,
        "use a route-map; until then, the direction is `\"deny\"`",
    ),
    Rule::key(
        "neighbor PEER graceful-restart",
        0,
        "`bgp.neighbor.graceful_restart`",
    ),
    Rule::kept(
        "neighbor PEER graceful-restart-helper",
        0,
        "headend keeps the routes of a peer that restarts",
    ),
    Rule::key(
        "neighbor PEER graceful-restart-disable",
        0,
        "`bgp.neighbor.graceful_restart = false`",
    ),
    Rule::lost(
        "neighbor PEER interface",
        0,
        "headend has no sessions by interface; give the peer's address",
    ),
    Rule::key("neighbor PEER local-as", 1, "`bgp.neighbor.local_asn`"),
    Rule::key(
        "neighbor PEER local-role",
        1,
        "`bgp.neighbor.role`, `bgp.neighbor.role_strict`",
    ),
    Rule::key(
        "neighbor PEER maximum-prefix",
        1,
        "`bgp.neighbor.prefixes_max`, `bgp.neighbor.prefixes_restart_s`",
    ),
    Rule::lost(
        "neighbor PEER maximum-prefix-out",
        0,
        "headend does not limit what it announces",
    ),
    Rule::key(
        "neighbor PEER next-hop-self",
        0,
        "`bgp.neighbor.next_hop_self`",
    ),
    Rule::lost("neighbor PEER override-capability", 0, CAPABILITY),
    Rule::key("neighbor PEER passive", 0, "`bgp.neighbor.passive`"),
    Rule::key("neighbor PEER password", 1, "`bgp.neighbor.secret_file`"),
    Rule::key("neighbor PEER peer-group", 0, "the settings of the group"),
    Rule::key("neighbor PEER port", 1, "`bgp.neighbor.port`"),
    Rule::key(
        "neighbor PEER prefix-list NAME",
        1,
        "`bgp.neighbor.import`, `bgp.neighbor.export`; not together with a route-map",
    ),
    Rule::key("neighbor PEER remote-as", 1, "`bgp.neighbor.remote_asn`"),
    Rule::lost("neighbor PEER remove-private-AS", 0, NO_ACTION),
    Rule::key(
        "neighbor PEER route-map NAME",
        1,
        "`bgp.neighbor.import`, `bgp.neighbor.export`",
    ),
    Rule::key(
        "neighbor PEER route-reflector-client",
        0,
        "`bgp.neighbor.route_reflector_client`",
    ),
    Rule::lost(
        "neighbor PEER route-server-client",
        0,
        "headend adds its AS to the path; see `role` and `next_hop_unchanged`",
    ),
    Rule::kept(
        "neighbor PEER send-community",
        0,
        "headend sends all communities; an export policy can remove them",
    ),
    Rule::none(
        "neighbor PEER sender-as-path-loop-detection",
        0,
        "the peer refuses such routes itself",
    ),
    Rule::key(
        "neighbor PEER shutdown",
        0,
        "`bgp.neighbor.enabled = false`",
    ),
    Rule::kept(
        "neighbor PEER soft-reconfiguration",
        0,
        "headend applies new policies to the routes that it has",
    ),
    Rule::none(
        "neighbor PEER solo",
        0,
        "headend groups peers with equal settings itself",
    ),
    Rule::lost("neighbor PEER strict-capability-match", 0, CAPABILITY),
    Rule::lost(
        "neighbor PEER tcp-mss",
        0,
        "the kernel chooses the segment size",
    ),
    Rule::key(
        "neighbor PEER timers",
        2,
        "`bgp.neighbor.keepalive_s`, `bgp.neighbor.hold_time_s`",
    ),
    Rule::key(
        "neighbor PEER timers connect",
        1,
        "`bgp.neighbor.connect_retry_s`",
    ),
    Rule::key(
        "neighbor PEER ttl-security hops",
        1,
        "`bgp.neighbor.ttl_security_hops`",
    ),
    Rule::lost("neighbor PEER unsuppress-map", 0, NO_ACTION),
    Rule::key(
        "neighbor PEER update-source",
        1,
        "`bgp.neighbor.local_address`, if it is an address",
    ),
    Rule::kept("neighbor PEER version", 0, "BGP-4"),
    Rule::lost("neighbor PEER weight", 0, BEST),
    Rule::lost("neighbor PEER", 0, "headend has no such option"),
    Rule::key("network", 1, "`bgp.networks`"),
    Rule::key(
        "no bgp default ipv4-unicast",
        0,
        "`bgp.neighbor.families`, from `activate` alone",
    ),
    Rule::key(
        "no bgp ebgp-requires-policy",
        0,
        "`bgp.import = \"accept\"`, `bgp.export = \"accept\"`",
    ),
    Rule::kept(
        "no bgp network import-check",
        0,
        "headend announces `bgp.networks` without a check of the kernel's routes",
    ),
    Rule::key("no neighbor PEER activate", 0, "`bgp.neighbor.families`"),
    Rule::lost(
        "no neighbor PEER send-community",
        0,
        "headend sends all communities; remove them with an export policy",
    ),
    Rule::kept("no synchronization", 0, "headend has no synchronization"),
    Rule::kept("no auto-summary", 0, "headend does not summarise"),
    Rule::none("read-quanta", 0, TIMING),
    Rule::lost(
        "redistribute",
        0,
        "list the networks in `bgp.networks`; subscribers' are `bgp.announce`",
    ),
    Rule::lost("segment-routing", 0, CAPABILITY),
    Rule::lost("table-map", 0, "headend installs routes as they are"),
    Rule::key("timers bgp", 2, "`bgp.keepalive_s`, `bgp.hold_time_s`"),
    Rule::none("update-delay", 0, TIMING),
    Rule::none("write-quanta", 0, TIMING),
];

/// Commands in a route-map.
pub(super) const MAP: &[Rule] = &[
    Rule::lost("call", 0, NO_CONDITION),
    Rule::lost(
        "continue",
        0,
        "headend's policies end at the first term that permits or denies",
    ),
    Rule::none("description", 0, "a comment"),
    Rule::kept("exit", 0, "the end of a block"),
    Rule::key(
        "match as-path",
        1,
        "`bgp.policy.term.as_path_contains`, `origin_as`, `neighbour_as` or `as_path_length`, for simple expressions",
    ),
    Rule::key(
        "match community",
        1,
        "`bgp.policy.term.community`, if each entry permits one community",
    ),
    Rule::key(
        "match ip address prefix-list",
        1,
        "`bgp.policy.term.prefix`, if no entry denies",
    ),
    Rule::key(
        "match ipv6 address prefix-list",
        1,
        "`bgp.policy.term.prefix`, if no entry denies",
    ),
    Rule::key(
        "match large-community",
        1,
        "`bgp.policy.term.large_community`, if each entry permits one community",
    ),
    Rule::key("match origin", 1, "`bgp.policy.term.origin`"),
    Rule::key("match peer", 1, "`bgp.policy.term.neighbour`"),
    Rule::lost("match", 0, NO_CONDITION),
    Rule::lost(
        "on-match",
        0,
        "headend's policies end at the first term that permits or denies",
    ),
    Rule::key(
        "set as-path prepend",
        1,
        "`bgp.policy.term.prepend`, if it repeats our own AS",
    ),
    Rule::key(
        "set community",
        1,
        "`bgp.policy.term.set_community`; with `additive`, `add_community`",
    ),
    Rule::key(
        "set extcommunity rt",
        1,
        "`bgp.policy.term.set_ext_community`",
    ),
    Rule::key(
        "set ip next-hop",
        1,
        "`bgp.policy.term.set_next_hop`, if it is an address",
    ),
    Rule::key(
        "set ipv6 next-hop global",
        1,
        "`bgp.policy.term.set_next_hop`",
    ),
    Rule::key(
        "set large-community",
        1,
        "`bgp.policy.term.set_large_community`; with `additive`, `add_large_community`",
    ),
    Rule::key(
        "set local-preference",
        1,
        "`bgp.policy.term.set_local_pref`, if it is a number",
    ),
    Rule::key(
        "set metric",
        1,
        "`bgp.policy.term.set_med`, if it is a number",
    ),
    Rule::key("set origin", 1, "`bgp.policy.term.set_origin`"),
    Rule::lost("set", 0, NO_ACTION),
];
