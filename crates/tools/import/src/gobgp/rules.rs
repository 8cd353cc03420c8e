//! The settings of GoBGP, and what becomes of each. `neighbors` stands for `peer-groups` too.

use crate::report::Rule;

const POLICY: &str = "headend import does not translate GoBGP's policies; where one applies, the direction is `\"deny\"`";
const CLOSED: &str =
    "headend import does not translate GoBGP's policies; the direction is `\"deny\"`";
const LONG: &str = "headend has graceful restart (RFC 4724) only";

pub(super) const ALL: &[Rule] = &[
    Rule::lost("bmp-servers", 0, "headend has no BMP"),
    Rule::none("collector", 0, "headend writes no collector's database"),
    Rule::lost("defined-sets", 0, POLICY),
    Rule::key(
        "dynamic-neighbors.config.peer-group",
        0,
        "the settings of the group",
    ),
    Rule::key("dynamic-neighbors.config.prefix", 0, "`bgp.dynamic.prefix`"),
    Rule::lost("global.apply-policy.config.export-policy-list", 0, CLOSED),
    Rule::lost("global.apply-policy.config.import-policy-list", 0, CLOSED),
    Rule::key(
        "global.apply-policy.config.default-export-policy",
        0,
        "`bgp.export`",
    ),
    Rule::key(
        "global.apply-policy.config.default-import-policy",
        0,
        "`bgp.import`",
    ),
    Rule::key("global.config.as", 0, "`bgp.asn`"),
    Rule::key("global.config.local-address-list", 0, "`bgp.listen`"),
    Rule::key("global.config.port", 0, "`bgp.listen`; -1 gives `[]`"),
    Rule::key("global.config.router-id", 0, "`bgp.router_id`"),
    Rule::lost("global", 0, "headend has no such setting"),
    Rule::none("mrt-dump", 0, "use `headend capture`"),
    Rule::key(
        "neighbors.add-paths.config.receive",
        0,
        "`add_path_receive`, for all families of the neighbour",
    ),
    Rule::key(
        "neighbors.add-paths.config.send-max",
        0,
        "`add_path_send`, `add_path_count`",
    ),
    Rule::key(
        "neighbors.afi-safis.add-paths.config.receive",
        0,
        "`add_path_receive`, for all families of the neighbour",
    ),
    Rule::key(
        "neighbors.afi-safis.add-paths.config.send-max",
        0,
        "`add_path_send`, `add_path_count`",
    ),
    Rule::key(
        "neighbors.afi-safis.config.afi-safi-name",
        0,
        "`families`: `ipv4-unicast` and `ipv6-unicast`",
    ),
    Rule::lost("neighbors.afi-safis.long-lived-graceful-restart", 0, LONG),
    Rule::kept(
        "neighbors.afi-safis.mp-graceful-restart",
        0,
        "headend's graceful restart is for all families",
    ),
    Rule::key(
        "neighbors.afi-safis.prefix-limit.config.max-prefixes",
        0,
        "`prefixes_max`",
    ),
    Rule::lost(
        "neighbors.afi-safis.prefix-limit.config",
        0,
        "headend ends the session at its limit, without a warning before",
    ),
    Rule::key(
        "neighbors.apply-policy.config.default-export-policy",
        0,
        "`export`",
    ),
    Rule::key(
        "neighbors.apply-policy.config.default-import-policy",
        0,
        "`import`",
    ),
    Rule::lost(
        "neighbors.apply-policy.config.export-policy-list",
        0,
        CLOSED,
    ),
    Rule::lost(
        "neighbors.apply-policy.config.import-policy-list",
        0,
        CLOSED,
    ),
    Rule::lost("neighbors.apply-policy", 0, "headend is no route server"),
    Rule::key(
        "neighbors.as-path-options.config.allow-own-as",
        0,
        "`allow_own_asn`",
    ),
    Rule::lost(
        "neighbors.as-path-options.config.replace-peer-as",
        0,
        "headend's policies have no such action",
    )
    .unless("false"),
    Rule::key("neighbors.config.admin-down", 0, "`enabled`"),
    Rule::key("neighbors.config.auth-password", 0, "`secret_file`"),
    Rule::key("neighbors.config.description", 0, "`name`"),
    Rule::key("neighbors.config.local-as", 0, "`local_asn`"),
    Rule::key("neighbors.config.neighbor-address", 0, "`address`"),
    Rule::lost(
        "neighbors.config.neighbor-interface",
        0,
        "headend has no sessions by interface",
    ),
    Rule::key("neighbors.config.peer-as", 0, "`remote_asn`"),
    Rule::key(
        "neighbors.config.peer-group",
        0,
        "the settings of the group",
    ),
    Rule::key(
        "neighbors.config.peer-group-name",
        0,
        "the name that neighbours give",
    ),
    Rule::none(
        "neighbors.config.peer-type",
        0,
        "it follows from the AS numbers",
    ),
    Rule::lost(
        "neighbors.config.remove-private-as",
        0,
        "headend's policies have no such action",
    ),
    Rule::kept(
        "neighbors.config.send-community",
        0,
        "headend sends all communities",
    ),
    Rule::key(
        "neighbors.ebgp-multihop.config.enabled",
        0,
        "with `multihop-ttl`, `ttl`",
    ),
    Rule::key("neighbors.ebgp-multihop.config.multihop-ttl", 0, "`ttl`"),
    Rule::none(
        "neighbors.graceful-restart.config.deferral-time",
        0,
        "see `bgp.restarted`",
    ),
    Rule::key(
        "neighbors.graceful-restart.config.enabled",
        0,
        "`graceful_restart`",
    ),
    Rule::kept(
        "neighbors.graceful-restart.config.helper-only",
        0,
        "headend keeps the routes of a peer that restarts",
    ),
    Rule::lost(
        "neighbors.graceful-restart.config.long-lived-enabled",
        0,
        LONG,
    )
    .unless("false"),
    Rule::lost(
        "neighbors.graceful-restart.config.notification-enabled",
        0,
        "a NOTIFICATION ends the peer's routes (RFC 8538 is not implemented)",
    )
    .unless("false"),
    Rule::key(
        "neighbors.graceful-restart.config.restart-time",
        0,
        "`restart_time_s`",
    ),
    Rule::key(
        "neighbors.route-reflector.config.route-reflector-client",
        0,
        "`route_reflector_client`",
    ),
    Rule::key(
        "neighbors.route-reflector.config.route-reflector-cluster-id",
        0,
        "`bgp.cluster_id`",
    ),
    Rule::lost(
        "neighbors.route-server",
        0,
        "headend adds its AS to the path; see `role` and `next_hop_unchanged`",
    ),
    Rule::key(
        "neighbors.timers.config.connect-retry",
        0,
        "`connect_retry_s`",
    ),
    Rule::key("neighbors.timers.config.hold-time", 0, "`hold_time_s`"),
    Rule::key(
        "neighbors.timers.config.idle-hold-time-after-reset",
        0,
        "`idle_hold_s`",
    ),
    Rule::key(
        "neighbors.timers.config.keepalive-interval",
        0,
        "`keepalive_s`",
    ),
    Rule::key(
        "neighbors.timers.config.minimum-advertisement-interval",
        0,
        "`advertisement_interval_s`",
    ),
    Rule::lost(
        "neighbors.transport.config.bind-interface",
        0,
        "headend takes a source address, not an interface",
    ),
    Rule::key(
        "neighbors.transport.config.local-address",
        0,
        "`local_address`",
    ),
    Rule::key("neighbors.transport.config.passive-mode", 0, "`passive`"),
    Rule::key("neighbors.transport.config.remote-port", 0, "`port`"),
    Rule::lost(
        "neighbors.transport.config.tcp-mss",
        0,
        "the kernel chooses the segment size",
    ),
    Rule::key("neighbors.transport.config.ttl", 0, "`ttl`"),
    Rule::key(
        "neighbors.ttl-security.config.enabled",
        0,
        "with `ttl-min`, `ttl_security_hops`",
    ),
    Rule::key(
        "neighbors.ttl-security.config.ttl-min",
        0,
        "`ttl_security_hops`",
    ),
    Rule::lost("neighbors", 0, "headend has no such setting"),
    Rule::lost("policy-definitions", 0, POLICY),
    Rule::lost(
        "rpki-servers",
        0,
        "headend reads route origin authorisations from a file, `bgp.roas`",
    ),
    Rule::lost("vrfs", 0, "headend has one routing table"),
    Rule::key("zebra.config.enabled", 0, "`bgp.install`"),
    Rule::none("zebra", 0, "headend installs routes itself"),
];
