//! The variables and commands of l2tpns, and what becomes of each.

use crate::report::Rule;

const CLUSTER: &str = "headend has no cluster; let two servers announce their pools by BGP";
const DHCPV6: &str = "the import leaves it out: `[ipv6]` has keys for it";
const FORWARD: &str = "headend forwards no sessions to other LNSs";
const JOURNAL: &str = "headend logs to the journal or standard error";
const NO_POOL: &str = "headend reads packets in batches: see `event.batch`";
const PPPOE: &str = "headend's subscribers come from L2TP tunnels, not from PPPoE";
const RATE: &str = "headend limits no subscriber's rate";

/// What `set VARIABLE VALUE` sets.
pub(super) const VARIABLES: &[Rule] = &[
    Rule::lost(
        "account_all_origin",
        1,
        "headend writes no files of usage; use RADIUS accounting",
    )
    .unless("no"),
    Rule::lost(
        "accounting_dir",
        1,
        "headend writes no files of usage; use RADIUS accounting",
    ),
    Rule::lost(
        "allow_duplicate_users",
        1,
        "headend ends no session when its user opens another; users.toml has `sessions`",
    )
    .unless("yes"),
    Rule::lost(
        "auth_tunnel_change_addr_src",
        1,
        "a tunnel keeps the address of its peer",
    )
    .unless("no"),
    Rule::key(
        "bind_address",
        1,
        "`lns.listen`; also `ppp.address`, without `peer_address` and `iftun_address`",
    ),
    Rule::lost("bind_address_remotelns", 1, FORWARD),
    Rule::key(
        "bind_multi_address",
        1,
        "`lns.listen`, in place of `bind_address`",
    ),
    Rule::lost("bind_portremotelns", 1, FORWARD),
    Rule::none(
        "cli_bind_address",
        1,
        "headend has no telnet command line; its control socket is a file",
    ),
    Rule::lost("cluster_address", 1, CLUSTER),
    Rule::lost("cluster_hb_interval", 1, CLUSTER),
    Rule::lost("cluster_hb_timeout", 1, CLUSTER),
    Rule::lost("cluster_interface", 1, CLUSTER),
    Rule::lost("cluster_master_min_adv", 1, CLUSTER),
    Rule::lost("cluster_mcast_ttl", 1, CLUSTER),
    Rule::lost("cluster_port", 1, CLUSTER),
    Rule::key("debug", 1, "`log.level`"),
    Rule::lost("default_ipv6_domain_list", 1, DHCPV6),
    Rule::lost("dhcp6_preferred_lifetime", 1, DHCPV6),
    Rule::lost("dhcp6_server_duid", 1, DHCPV6),
    Rule::lost("dhcp6_valid_lifetime", 1, DHCPV6),
    Rule::kept("disable_lac_func", 1, "headend is a LAC only with `[lac]`"),
    Rule::lost(
        "disable_no_spoof",
        1,
        "headend always drops packets whose source is not the subscriber's",
    )
    .unless("no"),
    Rule::key(
        "disable_sending_hello",
        1,
        "with `yes`, `l2tp.hello_interval_s = 0`",
    ),
    Rule::lost("dns6_lifetime", 1, DHCPV6),
    Rule::lost(
        "dump_speed",
        1,
        "see `headend show subscribers` and `headend top`",
    )
    .unless("no"),
    Rule::key("echo_timeout", 1, "`ppp.echo_interval_s`, at least 10"),
    Rule::kept(
        "guest_account",
        1,
        "headend allows several sessions of every user",
    ),
    Rule::key("hostname", 1, "`l2tp.host_name`, `ppp.name`"),
    Rule::lost("icmp_rate", 1, "headend's limit of ICMP errors is fixed").unless("0"),
    Rule::key(
        "idle_echo_timeout",
        1,
        "`ppp.echo_tries`: this time divided by `echo_timeout`",
    ),
    Rule::key("iftun_address", 1, "`ppp.address`, without `peer_address`"),
    Rule::key(
        "ipv6_prefix",
        1,
        "`ppp.ipv6`; the prefix itself is not imported: give a `[[prefix_pool]]`, or prefixes in users.toml or RADIUS",
    ),
    Rule::lost(
        "kill_timedout_sessions",
        1,
        "with a Session-Timeout of 0, headend sets no limit; let the RADIUS server reject the user",
    )
    .unless("no"),
    Rule::key("l2tp_mtu", 1, "`ppp.mru`, 38 less; `ppp.path_mtu`"),
    Rule::key("l2tp_secret", 1, "`l2tp.secret_file`"),
    Rule::lost(
        "lock_pages",
        1,
        "headend locks no memory; turn the host's swap off",
    )
    .unless("no"),
    Rule::none("log_file", 1, JOURNAL),
    Rule::key(
        "multi_hostname",
        1,
        "`l2tp.host_name`, `ppp.name`: the first name",
    ),
    Rule::none("multi_read_count", 1, NO_POOL),
    Rule::key("nexthop6_address", 1, "`set_next_hop` in a policy for IPv6"),
    Rule::key("nexthop_address", 1, "`set_next_hop` in a policy for IPv4"),
    Rule::none("no_throttle_local_IP", 1, RATE),
    Rule::lost("packet_limit", 1, RATE).unless("0"),
    Rule::key("peer_address", 1, "`ppp.address`"),
    Rule::none(
        "pid_file",
        1,
        "headend writes no process id; see `headend show server`",
    ),
    Rule::key(
        "ppp_keepalive",
        1,
        "with `no`, `ppp.echo_interval_s = 10`; `yes` is not supported: headend sends Echo-Requests also while data arrives",
    ),
    Rule::key("ppp_max_configure", 1, "`ppp.configure_tries`"),
    Rule::key("ppp_max_failure", 1, "`ppp.failure_tries`"),
    Rule::key("ppp_restart_time", 1, "`ppp.restart_s`"),
    Rule::lost("pppoe_ac_name", 1, PPPOE),
    Rule::lost("pppoe_if_to_bind", 1, PPPOE),
    Rule::lost("pppoe_only_equal_svc_name", 1, PPPOE),
    Rule::lost("pppoe_service_name", 1, PPPOE),
    Rule::key("primary_dns", 1, "`ppp.dns`"),
    Rule::lost("primary_ipv6_dns", 1, DHCPV6),
    Rule::key("primary_radius", 1, "`radius.server.authentication`"),
    Rule::key(
        "primary_radius_port",
        1,
        "`radius.server.authentication`; the next port for accounting",
    ),
    Rule::key("radius_accounting", 1, "`radius.server.accounting`"),
    Rule::key("radius_authtypes", 1, "`ppp.authenticate`"),
    Rule::lost(
        "radius_bind_max",
        1,
        "the kernel chooses the ports of requests",
    ),
    Rule::lost(
        "radius_bind_min",
        1,
        "the kernel chooses the ports of requests",
    ),
    Rule::key("radius_dae_port", 1, "`radius.disconnect`"),
    Rule::key("radius_interim", 1, "`ppp.interim_interval_s`"),
    Rule::key("radius_secret", 1, "`radius.server.secret_file`"),
    Rule::none(
        "random_device",
        1,
        "headend takes random numbers from the kernel",
    ),
    Rule::lost(
        "scheduler_fifo",
        1,
        "set CPUSchedulingPolicy=fifo in the service",
    )
    .unless("no"),
    Rule::key("secondary_dns", 1, "`ppp.dns`"),
    Rule::lost("secondary_ipv6_dns", 1, DHCPV6),
    Rule::key("secondary_radius", 1, "`radius.server.authentication`"),
    Rule::key(
        "secondary_radius_port",
        1,
        "`radius.server.authentication`; the next port for accounting",
    ),
    Rule::lost(
        "send_garp",
        1,
        "headend gives the host no address to listen on and announces none",
    )
    .unless("no"),
    Rule::none("throttle_buckets", 1, RATE),
    Rule::lost("throttle_speed", 1, RATE).unless("0"),
    Rule::key("tundevicename", 1, "`tun.name`"),
];

/// The other commands. A word in capitals stands for any word.
pub(super) const COMMANDS: &[Rule] = &[
    Rule::key("deny", 0, "a rule of the filter"),
    Rule::kept("end", 0, "the end of a block"),
    Rule::kept("exit", 0, "the end of a block"),
    Rule::key(
        "ip access-list extended",
        1,
        "`filter.file`: filters `NAME.in` and `NAME.out`",
    ),
    Rule::key(
        "ip access-list standard",
        1,
        "`filter.file`: filters `NAME.in` and `NAME.out`",
    ),
    Rule::lost("load plugin", 1, "headend has no plugins"),
    Rule::lost(
        "load plugin autosnoop",
        0,
        "use `headend capture`; headend forwards no copies to a third party",
    ),
    Rule::lost("load plugin autothrottle", 0, RATE),
    Rule::lost(
        "load plugin garden",
        0,
        "headend has no walled garden; let the RADIUS server assign a pool and a filter",
    ),
    Rule::kept(
        "load plugin sessionctl",
        0,
        "`headend session drop` ends a session",
    ),
    Rule::lost(
        "load plugin setrxspeed",
        0,
        "headend reports the connect speeds that the LAC gives",
    ),
    Rule::lost(
        "load plugin snoopctl",
        0,
        "use `headend capture`; headend forwards no copies to a third party",
    ),
    Rule::lost(
        "load plugin stripdomain",
        0,
        "headend keeps the whole name; strip the domain in the RADIUS server",
    ),
    Rule::lost("load plugin throttlectl", 0, RATE),
    Rule::key(
        "neighbour PEER remote-as",
        1,
        "`bgp.neighbor.address`, `remote_asn`",
    ),
    Rule::key("neighbour PEER timers", 2, "`keepalive_s`, `hold_time_s`"),
    Rule::key("neighbour PEER update-source", 1, "`local_address`"),
    Rule::key("no ip access-list", 2, "removes the list"),
    Rule::key("no neighbour", 1, "removes the neighbour"),
    Rule::key("permit", 0, "a rule of the filter"),
    Rule::kept("quit", 0, "the end of the file"),
    Rule::kept("remove plugin", 1, "headend has no plugins"),
    Rule::key("router bgp", 1, "`bgp.asn`"),
    Rule::lost("setforward", 4, FORWARD),
];
