//! The statements of BIRD's configuration, and what becomes of each. A word in capitals stands for any word.

use crate::report::Rule;

const NO_BGP: &str = "not part of BGP";
const SINGLE: &str = "headend has one routing table";
const BEST: &str = "headend's decision process is that of RFC 4271, 9.1.2.2";
const OTHER: &str = "headend does not implement this protocol; keep it in BIRD";
const ONE_FAMILY: &str = "the channels that headend has are `ipv4` and `ipv6`";

/// Statements outside of blocks.
pub(super) const TOP: &[Rule] = &[
    Rule::none("debug", 0, NO_BGP),
    Rule::none("cli", 0, NO_BGP),
    Rule::key("define", 0, "where it is used"),
    Rule::key(
        "filter NAME",
        0,
        "`bgp.policy`, if each statement has a counterpart",
    ),
    Rule::lost("function", 0, "headend's policies have no functions"),
    Rule::lost("graceful restart", 0, "see `bgp.restarted`"),
    Rule::key(
        "include",
        0,
        "the statements of the files; outside of blocks only",
    ),
    Rule::kept("ipv4 table master4", 0, SINGLE),
    Rule::lost("ipv4 table", 0, SINGLE),
    Rule::kept("ipv6 table master6", 0, SINGLE),
    Rule::lost("ipv6 table", 0, SINGLE),
    Rule::none("log", 0, "headend logs to the journal or standard error"),
    Rule::none("mrtdump", 0, "use `headend capture`"),
    Rule::key("protocol bgp", 0, "`bgp.neighbor` or `bgp.dynamic`"),
    Rule::none("protocol device", 0, NO_BGP),
    Rule::none(
        "protocol direct",
        0,
        "headend does not announce the host's networks; list them in `bgp.networks`",
    ),
    Rule::key("protocol kernel", 0, "`bgp.install`"),
    Rule::key("protocol static", 0, "`bgp.networks`"),
    Rule::lost("protocol", 0, OTHER),
    Rule::lost(
        "roa4 table",
        0,
        "headend reads route origin authorisations from a file, `bgp.roas`",
    ),
    Rule::lost(
        "roa6 table",
        0,
        "headend reads route origin authorisations from a file, `bgp.roas`",
    ),
    Rule::key("router id", 1, "`bgp.router_id`"),
    Rule::key(
        "template bgp",
        0,
        "the settings of the protocols that name it",
    ),
    Rule::lost("template", 0, OTHER),
    Rule::none("timeformat", 0, NO_BGP),
    Rule::none("watchdog", 0, "see `event.hang_ms`"),
];

/// Statements in `protocol bgp` and in a template.
pub(super) const BGP: &[Rule] = &[
    Rule::none("advertise hostname", 0, NO_BGP),
    Rule::lost(
        "advertise ipv4",
        0,
        "headend advertises the families of its channels",
    ),
    Rule::lost(
        "allow bgp_local_pref",
        0,
        "headend ignores LOCAL_PREF of external peers (RFC 4271 5.1.5)",
    ),
    Rule::key("allow local as", 0, "`allow_own_asn`, 1 by default"),
    Rule::lost("bfd", 0, "headend has no BFD; lower `hold_time_s`"),
    Rule::lost("capabilities", 0, "headend always sends its capabilities"),
    Rule::lost("check link", 0, "headend leaves links to the kernel"),
    Rule::lost("confederation", 0, "headend has no confederations"),
    Rule::key("connect delay time", 1, "`idle_hold_s`"),
    Rule::key("connect retry time", 1, "`connect_retry_s`"),
    Rule::none("debug", 0, NO_BGP),
    Rule::lost(
        "default bgp_local_pref",
        0,
        "set it with `set_local_pref` in a policy",
    ),
    Rule::lost("default bgp_med", 0, "set it with `set_med` in a policy"),
    Rule::key("description", 1, "`name`"),
    Rule::lost("deterministic med", 0, BEST),
    Rule::kept(
        "direct",
        0,
        "headend leaves the path to the kernel's route to the peer",
    ),
    Rule::key("disabled", 0, "`enabled = false`"),
    Rule::lost(
        "dynamic name",
        0,
        "headend names dynamic peers by their address",
    ),
    Rule::kept(
        "enable as4",
        0,
        "headend always sends AS numbers of four bytes",
    )
    .unless("on"),
    Rule::key("enable extended messages", 0, "`extended_messages`"),
    Rule::key("enable route refresh", 0, "`refresh`"),
    Rule::key("enforce first as", 0, "`enforce_first_as`"),
    Rule::lost("error forget time", 0, "see `idle_hold_max_s`"),
    Rule::lost("error wait time", 0, "see `idle_hold_s`, `idle_hold_max_s`"),
    Rule::key("graceful restart time", 1, "`restart_time_s`"),
    Rule::key("graceful restart", 0, "`graceful_restart`"),
    Rule::key("hold time", 1, "`hold_time_s`"),
    Rule::lost("interface", 0, "headend has no sessions by interface"),
    Rule::lost(
        "interpret communities",
        0,
        "deny well-known communities with a policy",
    ),
    Rule::key("ipv4", 0, "`families`, and the channel's keys"),
    Rule::lost("ipv4 multicast", 0, ONE_FAMILY),
    Rule::key("ipv6", 0, "`families`, and the channel's keys"),
    Rule::lost("ipv6 multicast", 0, ONE_FAMILY),
    Rule::lost("flow4", 0, ONE_FAMILY),
    Rule::lost("flow6", 0, ONE_FAMILY),
    Rule::lost("vpn4", 0, ONE_FAMILY),
    Rule::lost("vpn6", 0, ONE_FAMILY),
    Rule::key("keepalive time", 1, "`keepalive_s`"),
    Rule::lost("keepalive scale factor", 0, "see `keepalive_s`"),
    Rule::key("local", 0, "`bgp.asn` or `local_asn`, and `local_address`"),
    Rule::key("local role", 1, "`role`"),
    Rule::lost(
        "long lived graceful restart",
        0,
        "headend has graceful restart (RFC 4724) only",
    ),
    Rule::lost("med metric", 0, BEST),
    Rule::key("multihop", 0, "`ttl`"),
    Rule::key("neighbor", 0, "`address` or `prefix`, `port`, `remote_asn`"),
    Rule::key("passive", 0, "`passive`"),
    Rule::key("password", 1, "`secret_file`"),
    Rule::lost("path metric", 0, BEST),
    Rule::lost("prefer older", 0, BEST),
    Rule::key("require roles", 0, "`role_strict`"),
    Rule::key("rr client", 0, "`route_reflector_client`"),
    Rule::key("rr cluster id", 1, "`bgp.cluster_id`"),
    Rule::lost(
        "rs client",
        0,
        "headend adds its AS to the path; see `role` and `next_hop_unchanged`",
    ),
    Rule::key("source address", 1, "`local_address`"),
    Rule::lost(
        "startup hold time",
        0,
        "headend's hold time before the OPEN is that of RFC 4271",
    ),
    Rule::none("strict bind", 0, "see `bgp.listen`"),
    Rule::key("ttl security", 0, "`ttl_security_hops`"),
    Rule::lost("vrf", 0, SINGLE),
];

/// Statements in a channel.
pub(super) const CHANNEL: &[Rule] = &[
    Rule::key("add paths", 0, "`add_path_receive`, `add_path_send`"),
    Rule::lost("cost", 0, BEST),
    Rule::key(
        "export",
        0,
        "`export`: `all`, `none`, or a filter that has a counterpart",
    ),
    Rule::lost(
        "export limit",
        0,
        "headend does not limit what it announces",
    ),
    Rule::lost(
        "extended next hop",
        0,
        "headend does not implement this capability",
    ),
    Rule::lost("gateway", 0, "headend resolves next hops in the kernel"),
    Rule::none("graceful restart", 0, "the peer's setting applies"),
    Rule::none("igp table", 0, SINGLE),
    Rule::key(
        "import",
        0,
        "`import`: `all`, `none`, or a filter that has a counterpart",
    ),
    Rule::kept(
        "import keep filtered",
        0,
        "headend keeps routes that a policy denies",
    ),
    Rule::key("import limit", 1, "`prefixes_max`"),
    Rule::kept(
        "import table",
        0,
        "headend keeps the routes that it receives",
    ),
    Rule::none(
        "mandatory",
        0,
        "a session without the family is of no use to its peer",
    ),
    Rule::none(
        "missing lladdr",
        0,
        "headend sends the address that the kernel gives",
    ),
    Rule::key(
        "next hop address",
        1,
        "`set_next_hop` in the policy of `export`",
    ),
    Rule::key("next hop keep", 0, "`next_hop_unchanged`"),
    Rule::key("next hop self", 0, "`next_hop_self`"),
    Rule::lost("preference", 0, BEST),
    Rule::key("receive limit", 1, "`prefixes_max`"),
    Rule::lost("secondary", 0, "headend announces the best route only"),
    Rule::lost("table", 0, SINGLE),
    Rule::lost("validate", 0, BEST),
];
