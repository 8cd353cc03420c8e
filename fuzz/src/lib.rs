//! Fuzz targets that run on a stable toolchain: each passes bytes to one decoder or one core, and asserts
//! invariants that hold for any bytes.
//!
//! A run mutates the committed corpus, `corpus/TARGET/`, with a seeded [`mutate::Mutator`]. It has no coverage
//! feedback; `cargo xtask fuzz TARGET` runs the same targets in libFuzzer, which has (`fuzz/coverage`).
//! `cargo run --release -p fuzz -- TARGET` runs until its time is up or an assertion fails; the ordinary tests
//! replay the corpora and some thousands of mutations of each.
//!
//! A new target is a module in [`targets`], a row in [`TARGETS`] and a few
//! small files in `corpus/`.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod mutate;
pub mod targets;

/// A target's name and its function, which returns, or panics if an invariant does not hold.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name, which is also that of its corpus directory.
    pub name: &'static str,
    /// Runs one input.
    pub run: fn(&[u8]),
    /// The longest useful input, in octets.
    pub len_max: usize,
    /// Whether an input takes a millisecond or more without optimisation, so that the ordinary tests run fewer of them:
    /// it compiles filters, decompresses files, or runs a whole endpoint or edge with its peers.
    pub is_slow: bool,
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "aaa_pools",
        run: targets::aaa_pools::target,
        len_max: 1200,
        is_slow: false,
    },
    Target {
        name: "aaa_users",
        run: targets::aaa_users::target,
        len_max: 2000,
        is_slow: false,
    },
    Target {
        name: "agentx_session",
        run: targets::agentx_session::target,
        len_max: 800,
        is_slow: false,
    },
    Target {
        name: "bgp_live",
        run: targets::bgp_live::target,
        len_max: 1500,
        is_slow: true,
    },
    Target {
        name: "bgp_message",
        run: targets::bgp_message::target,
        len_max: 600,
        is_slow: false,
    },
    Target {
        name: "host_files",
        run: targets::host_files::target,
        len_max: 3000,
        is_slow: false,
    },
    Target {
        name: "import_accel",
        run: targets::import::target_accel,
        len_max: 3000,
        is_slow: true,
    },
    Target {
        name: "import_bird",
        run: targets::import::target_bird,
        len_max: 4000,
        is_slow: true,
    },
    Target {
        name: "import_frr",
        run: targets::import::target_frr,
        len_max: 4000,
        is_slow: true,
    },
    Target {
        name: "import_gobgp",
        run: targets::import::target_gobgp,
        len_max: 4000,
        is_slow: true,
    },
    Target {
        name: "import_l2tpns",
        run: targets::import::target_l2tpns,
        len_max: 4000,
        is_slow: true,
    },
    Target {
        name: "import_sqm",
        run: targets::import::target_sqm,
        len_max: 3000,
        is_slow: true,
    },
    Target {
        name: "import_tc",
        run: targets::import::target_tc,
        len_max: 5000,
        is_slow: true,
    },
    Target {
        name: "import_xl2tpd",
        run: targets::import::target_xl2tpd,
        len_max: 2000,
        is_slow: true,
    },
    Target {
        name: "l2tp_header",
        run: targets::l2tp_header::target,
        len_max: 256,
        is_slow: false,
    },
    Target {
        name: "l2tp_message_v2",
        run: targets::l2tp_message::target_v2,
        len_max: 1500,
        is_slow: false,
    },
    Target {
        name: "l2tp_message_v3",
        run: targets::l2tp_message::target_v3,
        len_max: 1500,
        is_slow: false,
    },
    Target {
        name: "l2tp_unhide",
        run: targets::l2tp_unhide::target,
        len_max: 1500,
        is_slow: false,
    },
    Target {
        name: "ipfix_message",
        run: targets::ipfix_message::target,
        len_max: 400,
        is_slow: false,
    },
    Target {
        name: "l2tp_digest",
        run: targets::l2tp_digest::target,
        len_max: 600,
        is_slow: false,
    },
    Target {
        name: "lns_live",
        run: targets::lns_live::target,
        len_max: 1500,
        is_slow: true,
    },
    Target {
        name: "capfile_pcap",
        run: targets::capfile_formats::target_pcap,
        len_max: 2000,
        is_slow: false,
    },
    Target {
        name: "capfile_pcapng",
        run: targets::capfile_formats::target_pcapng,
        len_max: 2000,
        is_slow: false,
    },
    Target {
        name: "capfile_snoop",
        run: targets::capfile_formats::target_snoop,
        len_max: 2000,
        is_slow: false,
    },
    Target {
        name: "capfile_erf",
        run: targets::capfile_formats::target_erf,
        len_max: 2000,
        is_slow: false,
    },
    Target {
        name: "capfile_tsh",
        run: targets::capfile_formats::target_tsh,
        len_max: 2000,
        is_slow: false,
    },
    Target {
        name: "capfile_etherpeek",
        run: targets::capfile_formats::target_etherpeek,
        len_max: 2000,
        is_slow: false,
    },
    Target {
        name: "bloat_files",
        run: targets::bloat_files::target,
        len_max: 4_000,
        is_slow: true,
    },
    Target {
        name: "capfile_compressed",
        run: targets::capfile_compressed::target,
        len_max: 1000,
        is_slow: false,
    },
    Target {
        name: "edge_live",
        run: targets::edge_live::target,
        len_max: 1500,
        is_slow: true,
    },
    Target {
        name: "mrt",
        run: targets::mrt::target,
        len_max: 1000,
        is_slow: true,
    },
    Target {
        name: "nat_packets",
        run: targets::nat_packets::target,
        len_max: 1200,
        is_slow: false,
    },
    Target {
        name: "packet_decode",
        run: targets::packet_decode::target,
        len_max: 512,
        is_slow: false,
    },
    Target {
        name: "tls_hello",
        run: targets::tls_hello::target,
        len_max: 600,
        is_slow: false,
    },
    Target {
        name: "quic_packet",
        run: targets::quic_packet::target,
        len_max: 1500,
        is_slow: false,
    },
    Target {
        name: "packet_tcp",
        run: targets::packet_tcp::target,
        len_max: 128,
        is_slow: false,
    },
    Target {
        name: "ip_header",
        run: targets::ip_header::target,
        len_max: 200,
        is_slow: false,
    },
    Target {
        name: "filter_rules",
        run: targets::filter_rules::target,
        len_max: 1_200,
        is_slow: true,
    },
    Target {
        name: "flow_keys",
        run: targets::flow_keys::target,
        len_max: 300,
        is_slow: false,
    },
    Target {
        name: "forward_join",
        run: targets::forward_join::target,
        len_max: 2000,
        is_slow: false,
    },
    Target {
        name: "forward_packet",
        run: targets::forward_packet::target,
        len_max: 2000,
        is_slow: false,
    },
    Target {
        name: "forward_portal",
        run: targets::forward_portal::target,
        len_max: 1500,
        is_slow: false,
    },
    Target {
        name: "forward_split",
        run: targets::forward_split::target,
        len_max: 1000,
        is_slow: false,
    },
    Target {
        name: "classify_packet",
        run: targets::classify_packet::target,
        len_max: 300,
        is_slow: false,
    },
    Target {
        name: "classify_text",
        run: targets::classify_text::target,
        len_max: 64,
        is_slow: false,
    },
    Target {
        name: "aaa_prefixes",
        run: targets::aaa_prefixes::target,
        len_max: 300,
        is_slow: false,
    },
    Target {
        name: "ndp_host",
        run: targets::ndp_host::target,
        len_max: 600,
        is_slow: false,
    },
    Target {
        name: "ndp_message",
        run: targets::ndp_message::target,
        len_max: 300,
        is_slow: false,
    },
    Target {
        name: "dhcpv6_client",
        run: targets::dhcpv6_client::target,
        len_max: 1200,
        is_slow: false,
    },
    Target {
        name: "dhcpv6_server",
        run: targets::dhcpv6_server::target,
        len_max: 600,
        is_slow: false,
    },
    Target {
        name: "ping_echo",
        run: targets::ping_echo::target,
        len_max: 200,
        is_slow: false,
    },
    Target {
        name: "ping_file",
        run: targets::ping_file::target,
        len_max: 3000,
        is_slow: false,
    },
    Target {
        name: "ping_load",
        run: targets::ping_load::target,
        len_max: 80,
        is_slow: false,
    },
    Target {
        name: "ping_probe",
        run: targets::ping_probe::target,
        len_max: 200,
        is_slow: false,
    },
    Target {
        name: "ppp_frame",
        run: targets::ppp_frame::target,
        len_max: 200,
        is_slow: false,
    },
    Target {
        name: "ppp_link",
        run: targets::ppp_link::target,
        len_max: 600,
        is_slow: false,
    },
    Target {
        name: "ppp_snapshot",
        run: targets::ppp_snapshot::target,
        len_max: 800,
        is_slow: false,
    },
    Target {
        name: "pppoe_client_live",
        run: targets::pppoe_live::target_client,
        len_max: 1500,
        is_slow: false,
    },
    Target {
        name: "pppoe_packet",
        run: targets::pppoe_packet::target,
        len_max: 600,
        is_slow: false,
    },
    Target {
        name: "pppoe_server_live",
        run: targets::pppoe_live::target_server,
        len_max: 1500,
        is_slow: false,
    },
    Target {
        name: "radius_client",
        run: targets::radius_client::target,
        len_max: 1200,
        is_slow: false,
    },
    Target {
        name: "radius_dynauth",
        run: targets::radius_dynauth::target,
        len_max: 1200,
        is_slow: false,
    },
    Target {
        name: "radius_tunnels",
        run: targets::radius_tunnels::target,
        len_max: 1200,
        is_slow: false,
    },
    Target {
        name: "tc_message",
        run: targets::tc_message::target,
        len_max: 1500,
        is_slow: false,
    },
    Target {
        name: "paths_match",
        run: targets::paths_match::target,
        len_max: 1200,
        is_slow: true,
    },
    Target {
        name: "trace_analyzer",
        run: targets::trace_analyzer::target,
        len_max: 1200,
        is_slow: true,
    },
    Target {
        name: "trace_capture",
        run: targets::trace_capture::target,
        len_max: 3000,
        is_slow: false,
    },
    Target {
        name: "spread_lots",
        run: targets::spread_lots::target,
        len_max: 1500,
        is_slow: true,
    },
    Target {
        name: "trace_thaw",
        run: targets::trace_thaw::target,
        len_max: 600,
        is_slow: false,
    },
    Target {
        name: "twin_tap",
        run: targets::twin_tap::target,
        len_max: 4000,
        is_slow: false,
    },
    Target {
        name: "web_reply",
        run: targets::web::target_reply,
        len_max: 1000,
        is_slow: false,
    },
    Target {
        name: "web_request",
        run: targets::web::target_request,
        len_max: 1000,
        is_slow: false,
    },
];

impl Target {
    /// The target of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Target> {
        TARGETS.iter().find(|target| target.name == name)
    }
}
