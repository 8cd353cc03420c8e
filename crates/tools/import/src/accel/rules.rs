//! The options of accel-ppp.conf, and what becomes of each. A name is that of the section and of the option; lines
//! without an option have a word in capitals.

use crate::report::Rule;

const AUTH: &str = "headend authenticates by CHAP (MD5), MS-CHAPv2, PAP and EAP";
const CLI: &str = "headend has no telnet command line; its control socket is a file";
const COMPRESSION: &str = "headend negotiates no compression or encryption";
const CONNLIMIT: &str =
    "headend has `limits.half_open_per_source` for L2TP and rates per host for PPPoE";
const DICTIONARY: &str = "headend's attributes are built in";
const IFNAME: &str = "headend has one device for all subscribers, `tun.name`";
const IPOE: &str = "headend serves PPPoE and L2TP";
const JOURNAL: &str = "headend logs to the journal or standard error";
const BACKUP: &str = "headend restores no sessions after its end";
const METRICS: &str = "`headend web` serves metrics at `/metrics`";
const ORPHANS: &str = "subscribers keep their addresses when pools change";
const POOLS: &str = "the users file or the RADIUS server names a subscriber's pool; without a name it is the first one";
const POOLS6: &str = "the users file or the RADIUS server names a subscriber's pool; without a name it is that of `[ipv6]`";
const SCRIPT: &str = "headend runs no scripts";
const SHAPER: &str = "headend shapes in its own queues: see `[[queue.template]]`";
const SHAPER_ATTRIBUTES: &str = "docs/radius.md lists the attributes of rates";
const TUNNEL: &str = "headend has neither PPTP nor SSTP";
const VERBOSE: &str = "`log.level` decides what is logged";

/// The options of each section.
pub(super) const OPTIONS: &[Rule] = &[
    Rule::none("accel-dp socket", 1, "for accel-ppp's own data path"),
    Rule::key(
        "auth any-login",
        1,
        "with `1`, `ppp.authenticate = \"nobody\"`",
    ),
    Rule::key("auth challenge-name", 1, "`ppp.name`"),
    Rule::key("auth interval", 1, "`ppp.rechallenge_interval_s`"),
    Rule::lost(
        "auth max-failure",
        1,
        "headend ends a link whose login failed; `[throttle]` makes names and lines wait",
    ),
    Rule::key(
        "auth noauth",
        1,
        "with `1`, `ppp.authenticate = \"nobody\"`",
    ),
    Rule::key(
        "auth timeout",
        1,
        "`ppp.authentication_timeout_s`, which is that of the whole login",
    ),
    Rule::key(
        "chap-secrets chap-secrets",
        1,
        "`users.file`, from the file's lines",
    ),
    Rule::lost(
        "chap-secrets encrypted",
        1,
        "users.toml holds passwords in clear text; encrypted ones cannot be carried over",
    )
    .unless("0"),
    Rule::key("chap-secrets gw-ip-address", 1, "`ppp.address`"),
    Rule::lost(
        "chap-secrets username-hash",
        1,
        "users.toml holds names in clear text; hashed ones cannot be carried over",
    ),
    Rule::none("cli history-file", 1, CLI),
    Rule::none("cli password", 1, CLI),
    Rule::none("cli prompt", 1, CLI),
    Rule::none(
        "cli sessions-columns",
        1,
        "`headend show subscribers` has columns of its own",
    ),
    Rule::none("cli tcp", 1, CLI),
    Rule::none("cli telnet", 1, CLI),
    Rule::none("cli verbose", 1, CLI),
    Rule::lost(
        "client-ip-range RANGE",
        0,
        "headend accepts every peer that reaches its port; limit the senders with a packet filter of the host",
    ),
    Rule::kept(
        "client-ip-range disable",
        0,
        "headend accepts every peer that reaches its port",
    ),
    Rule::lost(
        "common check-ip",
        1,
        "headend never leases an address twice; it does not look at other devices",
    )
    .unless("0"),
    Rule::lost(
        "common max-starting",
        1,
        "headend has `limits.half_open` and `pppoe.half_open`",
    )
    .unless("0"),
    Rule::key("common max-sessions", 1, "`ppp.subscribers`"),
    Rule::none(
        "common netns-run-dir",
        1,
        "headend uses one network namespace",
    ),
    Rule::none("common nl-rcv-buffer", 1, IFNAME),
    Rule::none("common nl-snd-buffer", 1, IFNAME),
    Rule::none(
        "common seq-file",
        1,
        "headend makes session ids from its start and a counter",
    ),
    Rule::key("common session-timeout", 1, "`ppp.session_timeout_s`"),
    Rule::none("common sid-case", 1, "headend's session ids are lower case"),
    Rule::none(
        "common sid-source",
        1,
        "headend makes session ids from its start and a counter",
    ),
    Rule::lost(
        "common single-session",
        1,
        "users.toml has `sessions`; with RADIUS, let the server decide",
    ),
    Rule::lost(
        "common single-session-ignore-case",
        1,
        "headend compares names byte by byte",
    )
    .unless("0"),
    Rule::lost("connlimit burst", 1, CONNLIMIT),
    Rule::lost("connlimit limit", 1, CONNLIMIT),
    Rule::lost("connlimit timeout", 1, CONNLIMIT),
    Rule::none("core log-debug", 1, JOURNAL),
    Rule::none("core log-error", 1, JOURNAL),
    Rule::none(
        "core thread-count",
        1,
        "headend has `event.shards`, 1 by default",
    ),
    Rule::key("dns dns1", 1, "`ppp.dns`"),
    Rule::key("dns dns2", 1, "`ppp.dns`"),
    Rule::lost(
        "ip-pool attr",
        1,
        "a RADIUS server names a pool by Framed-Pool",
    )
    .unless("Framed-Pool"),
    Rule::none("ip-pool gw", 1, "accel-ppp ignores it as well"),
    Rule::key("ip-pool gw-ip-address", 1, "`ppp.address`"),
    Rule::key(
        "ip-pool RANGE",
        0,
        "`pool.ranges`; ranges with the same name are one pool",
    ),
    Rule::lost("ip-pool reload-orphan", 1, ORPHANS).unless("keep"),
    Rule::lost(
        "ip-pool shuffle",
        1,
        "headend leases addresses in its own order",
    )
    .unless("0"),
    Rule::key("ip-pool tunnel", 1, "`pool.ranges`, as a range"),
    Rule::lost(
        "ip-pool vendor",
        1,
        "a RADIUS server names a pool by Framed-Pool",
    ),
    Rule::lost("ipv6-dhcp aftr-gw", 1, "headend names no AFTR (DS-Lite)"),
    Rule::key("ipv6-dhcp pref-lifetime", 1, "`ipv6.preferred_s`"),
    Rule::lost(
        "ipv6-dhcp route-via-gw",
        1,
        "headend routes delegated prefixes to its own device",
    )
    .unless("0"),
    Rule::lost(
        "ipv6-dhcp server-id",
        1,
        "headend makes its DUID from `ppp.address`",
    ),
    Rule::key("ipv6-dhcp valid-lifetime", 1, "`ipv6.valid_s`"),
    Rule::none("ipv6-dhcp verbose", 1, VERBOSE),
    Rule::key("ipv6-dns ADDRESS", 0, "`ipv6.dns`, at most three"),
    Rule::key("ipv6-dns dns", 1, "`ipv6.dns`, at most three"),
    Rule::key("ipv6-dns dnssl", 1, "`ipv6.search`"),
    Rule::none(
        "ipv6-dns lifetime",
        1,
        "headend's lifetime is that of the router",
    ),
    Rule::lost(
        "ipv6-nd AdvAutonomousFlag",
        1,
        "headend always sets it for the link's prefix",
    )
    .unless("1"),
    Rule::none("ipv6-nd AdvCurHopLimit", 1, "headend advertises 64"),
    Rule::key("ipv6-nd AdvDefaultLifetime", 1, "`ipv6.router_lifetime_s`"),
    Rule::lost(
        "ipv6-nd AdvLinkMTU",
        1,
        "headend advertises the MTU of the link",
    ),
    Rule::lost(
        "ipv6-nd AdvManagedFlag",
        1,
        "headend sets it if it leases addresses",
    ),
    Rule::lost(
        "ipv6-nd AdvOtherConfigFlag",
        1,
        "headend sets it with `ipv6.dhcp`",
    ),
    Rule::lost(
        "ipv6-nd AdvPreferredLifetime",
        1,
        "headend has one preferred lifetime, `ipv6.preferred_s`",
    ),
    Rule::lost("ipv6-nd AdvOnLinkFlag", 1, "headend decides by the prefix"),
    Rule::none("ipv6-nd AdvReachableTime", 1, "the link has one neighbour"),
    Rule::none("ipv6-nd AdvRetransTimer", 1, "the link has one neighbour"),
    Rule::lost(
        "ipv6-nd AdvValidLifetime",
        1,
        "headend has one valid lifetime, `ipv6.valid_s`",
    ),
    Rule::key(
        "ipv6-nd MaxRtrAdvInterval",
        1,
        "`ipv6.advertise_interval_s`",
    ),
    Rule::none(
        "ipv6-nd MaxInitialRtrAdvCount",
        1,
        "headend advertises at once and on request",
    ),
    Rule::none(
        "ipv6-nd MaxInitialRtrAdvInterval",
        1,
        "headend advertises at once and on request",
    ),
    Rule::none(
        "ipv6-nd MinRtrAdvInterval",
        1,
        "it follows from `ipv6.advertise_interval_s`",
    ),
    Rule::none("ipv6-nd verbose", 1, VERBOSE),
    Rule::lost(
        "ipv6-pool attr-prefix",
        1,
        "docs/radius.md lists the attributes of pools",
    ),
    Rule::lost(
        "ipv6-pool attr-address",
        1,
        "docs/radius.md lists the attributes of pools",
    ),
    Rule::key(
        "ipv6-pool delegate",
        1,
        "`prefix_pool.ranges`, `ipv6.delegated_pool`",
    ),
    Rule::lost(
        "ipv6-pool gw-ip6-address",
        1,
        "headend has one address for all subscribers, `ppp.address_v6`",
    ),
    Rule::key(
        "ipv6-pool PREFIX",
        0,
        "`prefix_pool.ranges`, `ipv6.link_pool`",
    ),
    Rule::lost("ipv6-pool reload-orphan", 1, ORPHANS).unless("keep"),
    Rule::lost(
        "ipv6-pool vendor",
        1,
        "docs/radius.md lists the attributes of pools",
    ),
    Rule::lost(
        "l2tp avp_permissive",
        1,
        "headend refuses unknown mandatory attributes, as RFC 2661 requires",
    )
    .unless("0"),
    Rule::key("l2tp bind", 1, "`lns.listen`"),
    Rule::lost(
        "l2tp dataseq",
        1,
        "headend numbers data if the LAC requires it",
    )
    .unless("allow"),
    Rule::none("l2tp dictionary", 1, DICTIONARY),
    Rule::lost(
        "l2tp dir300_quirk",
        1,
        "headend works around no fault of that router",
    )
    .unless("0"),
    Rule::key("l2tp hello-interval", 1, "`l2tp.hello_interval_s`"),
    Rule::key("l2tp hide-avps", 1, "`l2tp.hide`; needs `secret`"),
    Rule::key("l2tp host-name", 1, "`l2tp.host_name`"),
    Rule::lost("l2tp ifname", 1, IFNAME),
    Rule::lost("l2tp ip-pool", 1, POOLS),
    Rule::lost("l2tp ipv6-pool", 1, POOLS6),
    Rule::lost("l2tp ipv6-pool-delegate", 1, POOLS6),
    Rule::lost("l2tp mppe", 1, COMPRESSION).unless("deny"),
    Rule::key("l2tp port", 1, "`lns.listen`"),
    Rule::key(
        "l2tp ppp-max-mtu",
        1,
        "`ppp.mru`, if `[ppp] mru` is larger and there is no PPPoE",
    ),
    Rule::key("l2tp recv-window", 1, "`l2tp.receive_window`"),
    Rule::lost(
        "l2tp reorder-timeout",
        1,
        "headend drops late numbered data",
    )
    .unless("0"),
    Rule::key("l2tp retransmit", 1, "`l2tp.retransmit_tries`"),
    Rule::key("l2tp rtimeout", 1, "`l2tp.retransmit_first_s`"),
    Rule::key("l2tp rtimeout-cap", 1, "`l2tp.retransmit_cap_s`"),
    Rule::key("l2tp secret", 1, "`l2tp.secret_file`"),
    Rule::key("l2tp session-timeout", 1, "`ppp.session_timeout_s`"),
    Rule::key("l2tp timeout", 1, "`l2tp.setup_timeout_s`"),
    Rule::lost(
        "l2tp use-ephemeral-ports",
        1,
        "headend answers from the port that it listens on",
    )
    .unless("0"),
    Rule::none("l2tp verbose", 1, VERBOSE),
    Rule::none("log color", 1, JOURNAL),
    Rule::none("log copy", 1, JOURNAL),
    Rule::key("log level", 1, "`log.level`"),
    Rule::none("log log-debug", 1, JOURNAL),
    Rule::none("log log-emerg", 1, JOURNAL),
    Rule::none("log log-fail-file", 1, JOURNAL),
    Rule::none("log log-file", 1, JOURNAL),
    Rule::none("log log-tcp", 1, JOURNAL),
    Rule::none("log per-session", 1, JOURNAL),
    Rule::none("log per-session-dir", 1, JOURNAL),
    Rule::none("log per-user-dir", 1, JOURNAL),
    Rule::none("log syslog", 1, JOURNAL),
    Rule::none("log-pgsql connect-inteval", 1, JOURNAL),
    Rule::none("log-pgsql conninfo", 1, JOURNAL),
    Rule::none("log-pgsql log-query", 1, JOURNAL),
    Rule::none("log-pgsql log-table", 1, JOURNAL),
    Rule::lost(
        "ppp accomp",
        1,
        "headend has one key for both compressions, that of `pcomp`",
    )
    .unless("deny"),
    Rule::lost("ppp ccp", 1, COMPRESSION).unless("0"),
    Rule::none("ppp ccp-max-configure", 1, COMPRESSION),
    Rule::lost(
        "ppp check-ip",
        1,
        "headend never leases an address twice; it does not look at other devices",
    )
    .unless("0"),
    Rule::lost("ppp ipv4", 1, "headend negotiates IPv4 on every link").unless("allow"),
    Rule::key("ppp ipv6", 1, "`ppp.ipv6`"),
    Rule::kept(
        "ppp ipv6-accept-peer-intf-id",
        1,
        "headend takes the identifier that the peer proposes",
    ),
    Rule::lost(
        "ppp ipv6-intf-id",
        1,
        "headend chooses its interface identifiers",
    ),
    Rule::lost(
        "ppp ipv6-peer-intf-id",
        1,
        "the peers choose their interface identifiers",
    ),
    Rule::key(
        "ppp lcp-echo-failure",
        1,
        "`ppp.echo_tries`, one more: accel-ppp ends a link after the next one",
    ),
    Rule::key("ppp lcp-echo-interval", 1, "`ppp.echo_interval_s`"),
    Rule::key(
        "ppp lcp-echo-timeout",
        1,
        "`ppp.echo_tries`, by the interval; headend sends Echo-Requests to active peers too",
    ),
    Rule::key("ppp max-configure", 1, "`ppp.configure_tries`"),
    Rule::key("ppp max-failure", 1, "`ppp.failure_tries`"),
    Rule::key("ppp max-mtu", 1, "`ppp.mru`, if `mru` is larger"),
    Rule::key("ppp max-terminate", 1, "`ppp.terminate_tries`"),
    Rule::lost("ppp min-mtu", 1, "headend accepts any MRU of a peer"),
    Rule::lost("ppp mppe", 1, COMPRESSION).unless("deny"),
    Rule::key("ppp mru", 1, "`ppp.mru`"),
    Rule::key("ppp mtu", 1, "`tun.mtu`"),
    Rule::key("ppp pcomp", 1, "`ppp.compress_headers`"),
    Rule::none("ppp sid-case", 1, "headend's session ids are lower case"),
    Rule::lost(
        "ppp single-session",
        1,
        "users.toml has `sessions`; with RADIUS, let the server decide",
    ),
    Rule::key("ppp timeout", 1, "`ppp.restart_s`"),
    Rule::none(
        "ppp unit-cache",
        1,
        "headend has one device for all subscribers",
    ),
    Rule::none(
        "ppp unit-preallocate",
        1,
        "headend has one device for all subscribers",
    ),
    Rule::none("ppp verbose", 1, VERBOSE),
    Rule::none("pppd-compat fork-limit", 1, SCRIPT),
    Rule::lost("pppd-compat ip-change", 1, SCRIPT),
    Rule::lost("pppd-compat ip-down", 1, SCRIPT),
    Rule::lost("pppd-compat ip-pre-up", 1, SCRIPT),
    Rule::lost("pppd-compat ip-up", 1, SCRIPT),
    Rule::lost("pppd-compat radattr-prefix", 1, SCRIPT),
    Rule::none("pppd-compat verbose", 1, SCRIPT),
    Rule::key("pppoe AC-Name", 1, "as `ac-name`"),
    Rule::key("pppoe PADO-Delay", 1, "as `pado-delay`"),
    Rule::key("pppoe Service-Name", 1, "as `service-name`"),
    Rule::key("pppoe ac-name", 1, "`pppoe.ac_name`"),
    Rule::key(
        "pppoe accept-any-service",
        1,
        "with `1`, `pppoe.services = []`",
    ),
    Rule::key("pppoe accept-blank-service", 1, "`pppoe.any_service`"),
    Rule::none(
        "pppoe called-sid",
        1,
        "headend's Called-Station-Id is fixed",
    ),
    Rule::key("pppoe cookie-timeout", 1, "`pppoe.cookie_lifetime_s`"),
    Rule::lost("pppoe ifname", 1, IFNAME),
    Rule::none(
        "pppoe ifname-in-sid",
        1,
        "headend's Called-Station-Id is fixed",
    ),
    Rule::key(
        "pppoe interface",
        1,
        "`pppoe.interface.name`; regular expressions are not supported",
    ),
    Rule::lost("pppoe ip-pool", 1, POOLS),
    Rule::lost("pppoe ipv6-pool", 1, POOLS6),
    Rule::lost("pppoe ipv6-pool-delegate", 1, POOLS6),
    Rule::lost(
        "pppoe mac-filter",
        1,
        "give denied hosts with `pppoe.blacklist`",
    ),
    Rule::lost("pppoe mppe", 1, COMPRESSION).unless("deny"),
    Rule::key("pppoe padi-limit", 1, "`pppoe.padi_per_s`"),
    Rule::key("pppoe pado-delay", 1, "`pppoe.pado_delay`"),
    Rule::key("pppoe service-name", 1, "`pppoe.services`"),
    Rule::key("pppoe session-timeout", 1, "`ppp.session_timeout_s`"),
    Rule::none(
        "pppoe sid-uppercase",
        1,
        "headend's session ids are lower case",
    ),
    Rule::lost("pppoe tr101", 1, "headend always reads line tags").unless("1"),
    Rule::none("pppoe verbose", 1, VERBOSE),
    Rule::key("pppoe vlan-mon", 1, "`pppoe.interface.vlans`"),
    Rule::none(
        "pppoe vlan-name",
        1,
        "headend makes no interfaces for VLANs",
    ),
    Rule::none(
        "pppoe vlan-timeout",
        1,
        "headend makes no interfaces for VLANs",
    ),
    Rule::lost(
        "radius acct-delay-start",
        1,
        "headend sends the start of a session at once",
    )
    .unless("0"),
    Rule::key("radius acct-delay-time", 1, "`radius.acct_delay_time`"),
    Rule::lost(
        "radius acct-interim-jitter",
        1,
        "headend spreads interim records by itself",
    )
    .unless("0"),
    Rule::key(
        "radius acct-interim-interval",
        1,
        "`ppp.interim_interval_s`",
    ),
    Rule::lost(
        "radius acct-on",
        1,
        "headend does not count sessions per start at the server",
    )
    .unless("0"),
    Rule::key("radius acct-server", 1, "`radius.server.accounting`"),
    Rule::lost(
        "radius acct-timeout",
        1,
        "headend stores records until a server acknowledges them",
    )
    .unless("0"),
    Rule::lost(
        "radius attr-tunnel-type",
        1,
        "headend's attributes of the tunnel are fixed",
    ),
    Rule::key("radius auth-server", 1, "`radius.server.authentication`"),
    Rule::lost(
        "radius bind",
        1,
        "the kernel chooses the address of requests",
    ),
    Rule::kept(
        "radius blast-protection",
        1,
        "headend always sends Message-Authenticator in Access-Requests",
    ),
    Rule::key(
        "radius dae-allowed",
        1,
        "`radius.client` for each address that is not a server's; headend ignores all other senders",
    ),
    Rule::key(
        "radius dae-server",
        1,
        "`radius.disconnect`; its secret is that of the server",
    ),
    Rule::lost("radius default-realm", 1, "headend sends names as they are"),
    Rule::none("radius dictionary", 1, DICTIONARY),
    Rule::lost(
        "radius dm_coa_secret",
        1,
        "an old option; give `dae-server` with a secret",
    ),
    Rule::key("radius fail-time", 1, "as `fail-timeout`"),
    Rule::key(
        "radius fail-timeout",
        1,
        "`radius.server.dead_time_s` of servers without an own one; headend always has such a time",
    ),
    Rule::lost(
        "radius framed-route-strict",
        1,
        "docs/radius.md describes Framed-Route",
    )
    .unless("0"),
    Rule::key("radius gw-ip-address", 1, "`ppp.address`"),
    Rule::none("radius interim-verbose", 1, VERBOSE),
    Rule::key(
        "radius max-fail",
        1,
        "`radius.server.dead_after` of servers without an own one",
    ),
    Rule::key("radius max-try", 1, "`radius.server.transmissions`"),
    Rule::key("radius nas-identifier", 1, "`radius.nas_identifier`"),
    Rule::key("radius nas-ip-address", 1, "`radius.nas_address`"),
    Rule::kept(
        "radius nas-port-id-in-req",
        1,
        "headend always sends NAS-Port-Id",
    ),
    Rule::key(
        "radius server",
        1,
        "`radius.server.authentication`, `accounting`, `secret_file`, `dead_after`, `dead_time_s`",
    ),
    Rule::none("radius req-limit", 1, "headend limits requests by itself"),
    Rule::lost(
        "radius require-nas-identification",
        1,
        "headend does not compare the NAS-Identifier of CoA-Requests with its own",
    )
    .unless("0"),
    Rule::lost(
        "radius sid-in-auth",
        1,
        "headend always sends Acct-Session-Id in Access-Requests",
    )
    .unless("1"),
    Rule::lost("radius strip-realm", 1, "headend sends names as they are").unless("0"),
    Rule::key("radius timeout", 1, "`radius.server.timeout_s`"),
    Rule::none("radius verbose", 1, VERBOSE),
    Rule::lost("shaper attr", 1, SHAPER_ATTRIBUTES),
    Rule::lost("shaper attr-down", 1, SHAPER_ATTRIBUTES),
    Rule::lost("shaper attr-up", 1, SHAPER_ATTRIBUTES),
    Rule::none("shaper burst-factor", 1, SHAPER),
    Rule::none("shaper cburst", 1, SHAPER),
    Rule::none("shaper down-burst-factor", 1, SHAPER),
    Rule::none("shaper down-limiter", 1, SHAPER),
    Rule::lost(
        "shaper fwmark",
        1,
        "headend has no marks of the host's firewall",
    ),
    Rule::none("shaper ifb", 1, SHAPER),
    Rule::none("shaper latency", 1, SHAPER),
    Rule::none("shaper leaf-qdisc", 1, SHAPER),
    Rule::none("shaper moderate-quantum", 1, SHAPER),
    Rule::none("shaper mpu", 1, SHAPER),
    Rule::none("shaper mtu", 1, SHAPER),
    Rule::none("shaper quantum", 1, SHAPER),
    Rule::none("shaper r2q", 1, SHAPER),
    Rule::key(
        "shaper rate-limit",
        1,
        "`queue.default.rate_down`, `rate_up`, in kbit/s: DOWN/UP",
    ),
    Rule::lost(
        "shaper rate-multiplier",
        1,
        "headend takes rates as they are",
    )
    .unless("1"),
    Rule::lost(
        "shaper time-range",
        1,
        "headend changes rates on CoA and `headend session set`",
    ),
    Rule::none("shaper up-burst-factor", 1, SHAPER),
    Rule::none("shaper up-limiter", 1, SHAPER),
    Rule::lost("shaper vendor", 1, SHAPER_ATTRIBUTES),
    Rule::none("shaper verbose", 1, VERBOSE),
    Rule::none(
        "snmp agent-name",
        1,
        "headend's objects need no name of the agent",
    ),
    Rule::lost("snmp master", 1, "headend is a subagent of `snmpd`").unless("0"),
    Rule::none(
        "snmp oid-prefix",
        1,
        "headend's objects have the names of the RFCs",
    ),
    Rule::lost("wins wins1", 1, "headend assigns no NetBIOS name servers"),
    Rule::lost("wins wins2", 1, "headend assigns no NetBIOS name servers"),
];

/// Sections of which no option is carried over. The name stands for every option.
pub(super) const SECTIONS: &[Rule] = &[
    Rule::lost("backup", 0, BACKUP),
    Rule::lost("ipoe", 0, IPOE),
    Rule::none("metrics", 0, METRICS),
    Rule::lost("pptp", 0, TUNNEL),
    Rule::lost("sstp", 0, TUNNEL),
    Rule::none("vlan-mon", 0, "headend makes no interfaces for VLANs"),
];

/// The lines of `[modules]`.
pub(super) const MODULES: &[Rule] = &[
    Rule::key("auth_chap_md5", 0, "`ppp.authenticate`"),
    Rule::lost("auth_mschap_v1", 0, AUTH),
    Rule::key("auth_mschap_v2", 0, "`ppp.authenticate`"),
    Rule::key("auth_pap", 0, "`ppp.authenticate`"),
    Rule::key("chap-secrets", 0, "`users.file`"),
    Rule::lost("connlimit", 0, CONNLIMIT),
    Rule::lost("ipoe", 0, IPOE),
    Rule::kept("ippool", 0, "`[[pool]]` is built in"),
    Rule::kept("ipv6_dhcp", 0, "`[ipv6]` is built in"),
    Rule::kept("ipv6_nd", 0, "`[ipv6]` is built in"),
    Rule::kept("ipv6pool", 0, "`[[prefix_pool]]` is built in"),
    Rule::key("l2tp", 0, "`lns.listen`"),
    Rule::none("log_file", 0, JOURNAL),
    Rule::none("log_pgsql", 0, JOURNAL),
    Rule::none("log_syslog", 0, JOURNAL),
    Rule::none("log_tcp", 0, JOURNAL),
    Rule::none(
        "logwtmp",
        0,
        "headend writes no wtmp; `headend show subscribers --ended` lists sessions",
    ),
    Rule::none("metrics", 0, METRICS),
    Rule::key("net-snmp", 0, "`snmp.agentx`"),
    Rule::lost("pppd_compat", 0, SCRIPT),
    Rule::kept("pppoe", 0, "`[pppoe]` is made of the section's interfaces"),
    Rule::lost("pptp", 0, TUNNEL),
    Rule::kept("radius", 0, "`[radius]` is made of the section's servers"),
    Rule::none("shaper", 0, SHAPER),
    Rule::none("sigchld", 0, SCRIPT),
    Rule::lost("sstp", 0, TUNNEL),
    Rule::none("vlan-mon", 0, "headend makes no interfaces for VLANs"),
];

/// The module that a section belongs to, if it has an effect only with that module.
pub(super) const OF_MODULE: &[(&str, &str)] = &[
    ("chap-secrets", "chap-secrets"),
    ("connlimit", "connlimit"),
    ("ip-pool", "ippool"),
    ("ipoe", "ipoe"),
    ("ipv6-dhcp", "ipv6_dhcp"),
    ("ipv6-nd", "ipv6_nd"),
    ("ipv6-pool", "ipv6pool"),
    ("l2tp", "l2tp"),
    ("log-pgsql", "log_pgsql"),
    ("pppd-compat", "pppd_compat"),
    ("pppoe", "pppoe"),
    ("pptp", "pptp"),
    ("radius", "radius"),
    ("shaper", "shaper"),
    ("snmp", "net-snmp"),
    ("sstp", "sstp"),
];
