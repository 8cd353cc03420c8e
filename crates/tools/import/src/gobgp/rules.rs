//! The settings of GoBGP, and what becomes of each. `neighbors` stands for `peer-groups` too.

use crate::report::Rule;

const POLICY: &str = "headend's policies have no such set, condition or action; a direction that needs it is `\"deny\"`";
const CLIENTS: &str = "GoBGP applies it to clients of a route server only, and headend is no route server; the direction is `\"deny\"`";
const LONG: &str = "headend has graceful restart (RFC 4724) only";

pub(super) const ALL: &[Rule] = &[
    Rule::lost("bmp-servers", 0, "headend has no BMP"),
    Rule::none("collector", 0, "headend writes no collector's database"),
    Rule::lost("defined-sets", 0, POLICY),
    Rule::key(
        "defined-sets.bgp-defined-sets.as-path-sets.as-path-list",
        0,
        "`as_path_contains`, `origin_as`, `neighbour_as`, `as_path` of a term",
    ),
    Rule::key(
        "defined-sets.bgp-defined-sets.as-path-sets.as-path-set-name",
        0,
        "the set's name",
    ),
    Rule::key(
        "defined-sets.bgp-defined-sets.community-sets.community-list",
        0,
        "`community` of a term",
    ),
    Rule::key(
        "defined-sets.bgp-defined-sets.community-sets.community-set-name",
        0,
        "the set's name",
    ),
    Rule::key(
        "defined-sets.bgp-defined-sets.ext-community-sets.ext-community-list",
        0,
        "`ext_community` of a term",
    ),
    Rule::key(
        "defined-sets.bgp-defined-sets.ext-community-sets.ext-community-set-name",
        0,
        "the set's name",
    ),
    Rule::key(
        "defined-sets.bgp-defined-sets.large-community-sets.large-community-list",
        0,
        "`large_community` of a term",
    ),
    Rule::key(
        "defined-sets.bgp-defined-sets.large-community-sets.large-community-set-name",
        0,
        "the set's name",
    ),
    Rule::key(
        "defined-sets.neighbor-sets.neighbor-info-list",
        0,
        "`neighbour` of a term, for import",
    ),
    Rule::key(
        "defined-sets.neighbor-sets.neighbor-set-name",
        0,
        "the set's name",
    ),
    Rule::key(
        "defined-sets.prefix-sets.prefix-list.ip-prefix",
        0,
        "`prefix` of a term",
    ),
    Rule::key(
        "defined-sets.prefix-sets.prefix-list.masklength-range",
        0,
        "`prefix` of a term",
    ),
    Rule::key(
        "defined-sets.prefix-sets.prefix-set-name",
        0,
        "the set's name",
    ),
    Rule::key(
        "dynamic-neighbors.config.peer-group",
        0,
        "the settings of the group",
    ),
    Rule::key("dynamic-neighbors.config.prefix", 0, "`bgp.dynamic.prefix`"),
    Rule::key(
        "global.apply-policy.config.export-policy-list",
        0,
        "`bgp.export`, a policy with the terms of all that are listed",
    ),
    Rule::key(
        "global.apply-policy.config.import-policy-list",
        0,
        "`bgp.import`, a policy with the terms of all that are listed",
    ),
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
        CLIENTS,
    ),
    Rule::lost(
        "neighbors.apply-policy.config.import-policy-list",
        0,
        CLIENTS,
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
    Rule::key("policy-definitions.name", 0, "the name that lists give"),
    Rule::key(
        "policy-definitions.statements.actions.bgp-actions.set-as-path-prepend.as",
        0,
        "`prepend`: the own AS only",
    ),
    Rule::key(
        "policy-definitions.statements.actions.bgp-actions.set-as-path-prepend.repeat-n",
        0,
        "`prepend`",
    ),
    Rule::key(
        "policy-definitions.statements.actions.bgp-actions.set-community.options",
        0,
        "`add_community`, `remove_community` or `set_community`",
    ),
    Rule::key(
        "policy-definitions.statements.actions.bgp-actions.set-community.set-community-method.communities-list",
        0,
        "`add_community`, `remove_community` or `set_community`",
    ),
    Rule::key(
        "policy-definitions.statements.actions.bgp-actions.set-ext-community.options",
        0,
        "`add_ext_community`, `remove_ext_community` or `set_ext_community`",
    ),
    Rule::key(
        "policy-definitions.statements.actions.bgp-actions.set-ext-community.set-ext-community-method.communities-list",
        0,
        "`add_ext_community`, `remove_ext_community` or `set_ext_community`",
    ),
    Rule::key(
        "policy-definitions.statements.actions.bgp-actions.set-large-community.options",
        0,
        "`add_large_community`, `remove_large_community` or `set_large_community`",
    ),
    Rule::key(
        "policy-definitions.statements.actions.bgp-actions.set-large-community.set-large-community-method.communities-list",
        0,
        "`add_large_community`, `remove_large_community` or `set_large_community`",
    ),
    Rule::key(
        "policy-definitions.statements.actions.bgp-actions.set-local-pref",
        0,
        "`set_local_pref`",
    ),
    Rule::key(
        "policy-definitions.statements.actions.bgp-actions.set-med",
        0,
        "`set_med`: a number without a sign",
    ),
    Rule::key(
        "policy-definitions.statements.actions.bgp-actions.set-next-hop",
        0,
        "`set_next_hop`: an address",
    ),
    Rule::key(
        "policy-definitions.statements.actions.route-disposition",
        0,
        "`then`; without it, `next`",
    ),
    Rule::key(
        "policy-definitions.statements.conditions.bgp-conditions.afi-safi-in-list",
        0,
        "`family`: one of the two",
    ),
    Rule::key(
        "policy-definitions.statements.conditions.bgp-conditions.as-path-length.operator",
        0,
        "`as_path_length`",
    ),
    Rule::key(
        "policy-definitions.statements.conditions.bgp-conditions.as-path-length.value",
        0,
        "`as_path_length`",
    ),
    Rule::key(
        "policy-definitions.statements.conditions.bgp-conditions.match-as-path-set.as-path-set",
        0,
        "`as_path_contains`, `origin_as`, `neighbour_as`, `as_path`",
    ),
    Rule::key(
        "policy-definitions.statements.conditions.bgp-conditions.match-as-path-set.match-set-options",
        0,
        "`any` only",
    ),
    Rule::key(
        "policy-definitions.statements.conditions.bgp-conditions.match-community-set.community-set",
        0,
        "`community`",
    ),
    Rule::key(
        "policy-definitions.statements.conditions.bgp-conditions.match-community-set.match-set-options",
        0,
        "`any` only",
    ),
    Rule::key(
        "policy-definitions.statements.conditions.bgp-conditions.match-ext-community-set.ext-community-set",
        0,
        "`ext_community`",
    ),
    Rule::key(
        "policy-definitions.statements.conditions.bgp-conditions.match-ext-community-set.match-set-options",
        0,
        "`any` only",
    ),
    Rule::key(
        "policy-definitions.statements.conditions.bgp-conditions.match-large-community-set.large-community-set",
        0,
        "`large_community`",
    ),
    Rule::key(
        "policy-definitions.statements.conditions.bgp-conditions.match-large-community-set.match-set-options",
        0,
        "`any` only",
    ),
    Rule::key(
        "policy-definitions.statements.conditions.bgp-conditions.route-type",
        0,
        "`neighbour`: `local` only",
    ),
    Rule::key(
        "policy-definitions.statements.conditions.bgp-conditions.rpki-validation-result",
        0,
        "`rpki`",
    ),
    Rule::key(
        "policy-definitions.statements.conditions.match-neighbor-set.match-set-options",
        0,
        "`any` only",
    ),
    Rule::key(
        "policy-definitions.statements.conditions.match-neighbor-set.neighbor-set",
        0,
        "`neighbour`, for import only",
    ),
    Rule::key(
        "policy-definitions.statements.conditions.match-prefix-set.match-set-options",
        0,
        "`any` only",
    ),
    Rule::key(
        "policy-definitions.statements.conditions.match-prefix-set.prefix-set",
        0,
        "`prefix`",
    ),
    Rule::key(
        "policy-definitions.statements.name",
        0,
        "headend's terms have no names",
    ),
    Rule::lost(
        "rpki-servers",
        0,
        "headend reads route origin authorisations from a file, `bgp.roas`",
    ),
    Rule::lost("vrfs", 0, "headend has one routing table"),
    Rule::key("zebra.config.enabled", 0, "`bgp.install`"),
    Rule::none("zebra", 0, "headend installs routes itself"),
];

/// The keys of a term that a policy may become.
pub(super) const TERM_KEYS: &[&str] = &[
    "bgp.policy.term.prefix",
    "bgp.policy.term.family",
    "bgp.policy.term.as_path_contains",
    "bgp.policy.term.origin_as",
    "bgp.policy.term.neighbour_as",
    "bgp.policy.term.as_path_length",
    "bgp.policy.term.as_path",
    "bgp.policy.term.community",
    "bgp.policy.term.ext_community",
    "bgp.policy.term.large_community",
    "bgp.policy.term.neighbour",
    "bgp.policy.term.rpki",
    "bgp.policy.term.set_local_pref",
    "bgp.policy.term.set_med",
    "bgp.policy.term.set_next_hop",
    "bgp.policy.term.prepend",
    "bgp.policy.term.set_community",
    "bgp.policy.term.add_community",
    "bgp.policy.term.remove_community",
    "bgp.policy.term.set_ext_community",
    "bgp.policy.term.add_ext_community",
    "bgp.policy.term.remove_ext_community",
    "bgp.policy.term.set_large_community",
    "bgp.policy.term.add_large_community",
    "bgp.policy.term.remove_large_community",
];
