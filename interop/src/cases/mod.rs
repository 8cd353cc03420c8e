//! The list of tests; each name states what the test shows.

mod accel_ppp;
mod analyser;
mod bgp;
mod bgp_edge;
mod bgp_ends;
mod bgp_hostile;
mod bgp_near;
mod bgp_refresh;
mod bgp_restart;
mod bgp_sessions;
mod bgp_tables;
mod bngblaster;
mod browser;
mod carried;
mod disconnect;
mod doctor;
mod edge_diff;
mod golac;
mod goldens;
mod home_gateway;
mod hostile;
mod imported;
mod imported_examples;
mod isp;
mod kernel_apply;
mod kernel_classifier;
mod kernel_diff;
mod kernel_explain;
mod kernel_graph;
mod kernel_nat;
mod kernel_ping;
mod kernel_queues;
mod kernel_restore;
mod kernel_tunnels;
mod kernel_twin;
mod killed;
mod l2tpns;
mod l2tpns_ppp;
mod many;
mod measure;
mod nat;
mod nat_router;
mod page;
mod policy;
mod pppd;
mod pppd_radius;
mod pppoe;
mod prometheus;
mod qos_run;
mod radius;
mod rate_changes;
mod realms;
mod secrets;
mod shaped;
mod snmp;
mod street;
mod switched;
mod top;
mod trace;
mod trace_live;
mod tunnel_attributes;
mod tunnel_keys;
mod version_3;
mod web;
mod why;
mod xl2tpd_lac;
mod xl2tpd_lns;

pub(crate) use why::judge_again;

use crate::runner::Bench;
use anyhow::{Context, Result};
use std::time::Duration;

/// A test.
pub(crate) struct Case {
    /// Unique.
    pub(crate) name: &'static str,
    /// Runs the test, which compares the peer's output with headend's.
    pub(crate) run: fn(&Bench<'_>) -> Result<()>,
    /// Whether no other test may use the cores meanwhile.
    pub(crate) is_alone: bool,
    /// What it needs that Debian has no package of.
    pub(crate) needs: Option<Needs>,
}

/// A peer that is there only if a flag of `cargo xtask interop` names a folder with its sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    AccelPpp,
    BngBlaster,
}

impl Needs {
    pub(crate) const fn flag(self) -> &'static str {
        match self {
            Self::AccelPpp => "--accel-ppp",
            Self::BngBlaster => "--bngblaster",
        }
    }
}

/// A test with a peer from a source folder.
const fn with(needs: Needs, name: &'static str, run: fn(&Bench<'_>) -> Result<()>) -> Case {
    Case {
        needs: Some(needs),
        ..case(name, run)
    }
}

const fn case(name: &'static str, run: fn(&Bench<'_>) -> Result<()>) -> Case {
    Case {
        name,
        run,
        is_alone: false,
        needs: None,
    }
}

/// A test that asserts rates or losses of traffic in real time.
const fn alone(name: &'static str, run: fn(&Bench<'_>) -> Result<()>) -> Case {
    Case {
        name,
        run,
        is_alone: true,
        needs: None,
    }
}

/// What `cargo xtask interop --measure` runs.
pub(crate) const MEASURES: &[Case] = &[
    alone("translation_beside_conntrack", measure::translation),
    alone(
        "pppoe_sessions_beside_pppd_and_accel_ppp",
        measure::sessions,
    ),
    alone("twins_of_sixty_paths", kernel_twin::measure),
    alone("why_says_what_slows_a_path", why::says_what_slows_a_path),
    alone("why_verdicts_on_many_paths", why::verdicts_on_many_paths),
];

/// Every test; the longest first, so that they do not run alone at the end. Tests that must run alone follow them.
pub(crate) const ALL: &[Case] = &[
    case("queues_serve_as_the_kernels_do", kernel_queues::serve_alike),
    case(
        "the_classifier_is_the_kernels",
        kernel_classifier::classify_alike,
    ),
    case(
        "kernel_nat_translates_each_packet_as_conntrack_does",
        kernel_nat::translates_alike,
    ),
    case(
        "kernel_diff_finds_the_packets_that_nftables_dropped",
        kernel_diff::finds_what_nftables_dropped,
    ),
    case(
        "kernel_diff_finds_the_packets_dropped_before_every_tunnel",
        kernel_tunnels::finds_drops_in_every_tunnel,
    ),
    case(
        "the_ebpf_program_gives_our_class_on_linux_6_1",
        kernel_explain::agrees_with_the_guest,
    ),
    case(
        "kernel_apply_makes_what_tc_lists",
        kernel_apply::applies_what_tc_lists,
    ),
    case(
        "kernel_apply_shares_by_host_behind_nat",
        nat_router::shares_by_host,
    ),
    case(
        "kernel_keys_part_a_ping_from_scp_in_a_tunnel",
        tunnel_keys::parts_a_ping_from_a_copy,
    ),
    case(
        "kernel_bufferbloat_falls_behind_a_nat_router",
        nat_router::lowers_the_delay,
    ),
    case(
        "kernel_remove_restores_what_tc_made",
        kernel_restore::restores_what_tc_made,
    ),
    case(
        "kernel_engines_are_compared_in_a_guest",
        home_gateway::compares_engines_in_a_guest,
    ),
    case(
        "kernel_guest_of_the_home_gateway_keeps_what_it_measured",
        home_gateway::keeps_what_a_stopped_guest_measured,
    ),
    case(
        "kernel_graph_draws_what_tc_prints",
        kernel_graph::draws_what_tc_prints,
    ),
    case(
        "kernel_ping_measures_what_the_wire_does",
        kernel_ping::measures_what_the_wire_does,
    ),
    case(
        "kernel_twin_keeps_its_promise",
        kernel_twin::keeps_its_promise,
    ),
    alone(
        "edge_diff_finds_what_was_dropped_in_a_tunnel",
        edge_diff::through_l2tp,
    ),
    alone(
        "edge_diff_finds_what_was_dropped_in_pppoe",
        edge_diff::through_pppoe,
    ),
    alone(
        "edge_diff_reads_both_sides_of_one_capture",
        edge_diff::of_one_capture,
    ),
    case("pppd_is_a_client_of_our_lns", pppd::is_our_client),
    case(
        "pppd_proves_itself_to_freeradius",
        pppd_radius::proves_itself,
    ),
    case(
        "a_realm_a_wait_and_the_audit_log",
        realms::realm_throttle_and_audit,
    ),
    case("pppoe_serves_the_kernels_hosts", pppoe::serves_the_kernel),
    case(
        "pppoe_serves_hosts_on_three_cores",
        pppoe::serves_on_three_cores,
    ),
    case("pppoe_sessions_are_handed_to_lnss", switched::hands_over),
    case(
        "tunnel_attributes_of_freeradius_choose_the_lns",
        tunnel_attributes::choose_the_lns,
    ),
    case(
        "tunnel_attributes_choose_the_lns_on_three_cores",
        tunnel_attributes::choose_the_lns_on_three_cores,
    ),
    case("pppoe_dials_rp_pppoe", pppoe::dials_rp_pppoe),
    with(
        Needs::AccelPpp,
        "accel_ppp_is_the_access_concentrator_of_our_client",
        accel_ppp::connects_our_client,
    ),
    with(
        Needs::AccelPpp,
        "accel_ppp_is_the_lns_behind_our_lac",
        accel_ppp::ends_our_calls,
    ),
    with(
        Needs::BngBlaster,
        "bngblaster_connects_sessions_to_our_pppoe",
        bngblaster::connects_sessions,
    ),
    with(
        Needs::BngBlaster,
        "bngblaster_is_the_lns_behind_our_lac",
        bngblaster::ends_our_calls,
    ),
    case("pppoe_hosts_get_ipv6", pppoe::hosts_get_ipv6),
    case("an_isp_in_an_evening", isp::in_an_evening),
    case("pppoe_client_gets_ipv6", pppoe::client_gets_ipv6),
    case(
        "thirty_clients_recover_after_the_lns_crashes",
        many::recover_after_a_crash,
    ),
    case(
        "thirty_clients_recover_after_they_crash",
        many::recover_after_their_crash,
    ),
    case(
        "thirty_clients_recover_after_the_lns_restarts",
        many::recover_after_a_restart,
    ),
    case("a_thousand_tunnels_of_one_xl2tpd", many::a_thousand_tunnels),
    case(
        "snmpwalk_lists_ten_thousand_tunnels",
        snmp::walks_ten_thousand_tunnels,
    ),
    case("snmpd_may_restart_or_misbehave", snmp::survives_its_masters),
    case(
        "snmp_leads_from_config_ids_to_tunnels",
        snmp::config_ids_lead_to_tunnels,
    ),
    case(
        "snmp_serves_a_context_by_tcp",
        snmp::serves_a_context_by_tcp,
    ),
    case("xl2tpd_calls_our_lns", xl2tpd_lac::without_a_secret),
    case(
        "xl2tpd_calls_our_lns_with_a_secret",
        xl2tpd_lac::with_a_secret,
    ),
    case("our_lac_calls_xl2tpd", xl2tpd_lns::without_a_secret),
    case(
        "our_lac_calls_xl2tpd_with_a_secret",
        xl2tpd_lns::with_a_secret,
    ),
    case("our_lac_calls_l2tpns", l2tpns::without_a_secret),
    case("our_lac_calls_l2tpns_with_a_secret", l2tpns::with_a_secret),
    case("bgp_routes_from_bird_to_frr", bgp_tables::from_bird_to_frr),
    case("bgp_routes_of_ours_to_bird", bgp_tables::from_us_to_bird),
    case("bgp_routes_of_ours_to_gobgp", bgp_tables::from_us_to_gobgp),
    case(
        "bgp_hostile_peers_cost_only_themselves",
        bgp_hostile::cost_only_themselves,
    ),
    case(
        "bgp_sessions_only_with_the_secret",
        bgp_near::only_with_the_secret,
    ),
    case("bgp_restarts_with_frr", bgp_restart::with_frr),
    case("bgp_restarts_with_bird", bgp_restart::with_bird),
    case("bgp_ends_with_frr", bgp_ends::with_frr),
    case("bgp_ends_with_bird", bgp_ends::with_bird),
    case("bgp_ends_with_gobgp", bgp_ends::with_gobgp),
    case("imported_from_frr", imported::from_frr),
    case("imported_from_bird", imported::from_bird),
    case("imported_from_xl2tpd", imported::from_xl2tpd),
    case("imported_from_gobgp", imported::from_gobgp),
    case(
        "imported_examples_of_packages",
        imported_examples::of_packages,
    ),
    case(
        "imported_examples_of_gobgp_pages",
        imported_examples::of_gobgp_pages,
    ),
    case("bgp_sessions_with_frr", bgp_sessions::with_frr),
    case("bgp_sessions_with_bird", bgp_sessions::with_bird),
    case("bgp_sessions_with_gobgp", bgp_sessions::with_gobgp),
    case("bgp_refresh_with_frr", bgp_refresh::with_frr),
    case("bgp_refresh_with_bird", bgp_refresh::with_bird),
    case("bgp_refresh_with_gobgp", bgp_refresh::with_gobgp),
    case(
        "bgp_sessions_only_from_the_link",
        bgp_near::only_from_the_link,
    ),
    case(
        "nat_shares_external_addresses",
        nat::shares_external_addresses,
    ),
    case(
        "nat_shares_external_addresses_on_two_cores",
        nat::shares_external_addresses_on_two_cores,
    ),
    case("nat_logs_port_blocks", nat::logs_port_blocks),
    case("nat_translates_active_ftp", nat::translates_active_ftp),
    case(
        "nat_bounds_a_flood_and_reloads",
        nat::bounds_a_flood_and_reloads,
    ),
    case(
        "nat_bounds_a_flood_and_reloads_on_two_cores",
        nat::bounds_a_flood_and_reloads_on_two_cores,
    ),
    case("bgp_announces_subscribers", bgp_edge::announces_subscribers),
    case("bgp_tells_the_kernel", bgp_edge::tells_the_kernel),
    case("go_l2tp_calls_our_lns", golac::calls_our_lns),
    case(
        "go_l2tp_calls_our_lns_over_ipv6",
        golac::calls_our_lns_over_ipv6,
    ),
    case(
        "our_lns_refuses_xl2tpd_with_another_secret",
        secrets::our_lns_refuses_xl2tpd,
    ),
    case(
        "our_lac_refuses_xl2tpd_with_another_secret",
        secrets::our_lac_refuses_xl2tpd,
    ),
    case(
        "our_lac_refuses_l2tpns_with_another_secret",
        secrets::our_lac_refuses_l2tpns,
    ),
    case("tshark_confirms_our_version_3_digests", version_3::decodes),
    case("top_shows_a_daemon_on_a_terminal", top::shows_a_daemon),
    case("top_gives_the_terminal_back", top::gives_the_terminal_back),
    case(
        "top_shows_ten_thousand_peers",
        top::shows_ten_thousand_peers,
    ),
    case(
        "doctor_asks_a_strict_freeradius",
        doctor::asks_a_strict_freeradius,
    ),
    case(
        "doctor_asks_an_open_freeradius",
        doctor::asks_an_open_freeradius,
    ),
    case(
        "a_page_zooms_toggles_and_reads_values",
        page::zooms_toggles_and_reads,
    ),
    case(
        "the_page_of_the_analyser_shows_what_trace_does",
        analyser::analyses_captures,
    ),
    case(
        "the_page_of_web_shows_what_show_does",
        web::shows_what_show_does,
    ),
    case(
        "a_hundred_thousand_subscribers_cost_the_page_little",
        web::costs_little_with_many_subscribers,
    ),
    case(
        "web_notices_a_vanished_viewer",
        web::notices_a_vanished_viewer,
    ),
    case(
        "the_page_of_web_shows_the_queues_of_a_shaper",
        web::shows_queues,
    ),
    case(
        "pages_fold_two_hundred_classes_of_a_shaper",
        web::folds_classes,
    ),
    alone(
        "a_street_of_200_lines_has_a_rate_halved_under_iperf3",
        street::halves_a_rate,
    ),
    alone(
        "qos_run_holds_iperf3_at_its_rate_both_ways",
        qos_run::holds_the_rate,
    ),
    alone(
        "qos_apply_changes_rates_under_iperf3",
        rate_changes::of_apply_under_load,
    ),
    alone(
        "session_set_changes_rates_under_iperf3",
        rate_changes::of_a_subscriber_under_load,
    ),
    case(
        "prometheus_scrapes_headend_web",
        prometheus::scrapes_headend_web,
    ),
    case(
        "qos_run_reloads_under_load_and_leaves_all_as_it_was",
        qos_run::reloads_and_restores,
    ),
    case(
        "qos_run_changes_its_rate_under_load",
        qos_run::changes_the_rate,
    ),
    case(
        "qos_run_shows_its_rates_in_a_page",
        qos_run::shows_rates_in_a_page,
    ),
    case(
        "a_row_of_the_home_gateway_is_measured",
        home_gateway::measures_a_row,
    ),
    case(
        "a_killed_home_gateway_leaves_nothing",
        home_gateway::leaves_nothing_when_killed,
    ),
    case(
        "a_stopped_home_gateway_keeps_what_it_measured",
        home_gateway::keeps_a_partial_row_when_stopped,
    ),
    case(
        "freeradius_decides_by_chap_and_gets_accounts",
        radius::decides_by_chap,
    ),
    case(
        "freeradius_decides_by_pap_and_gets_accounts",
        radius::decides_by_pap,
    ),
    case("freeradius_gives_rates_and_templates", radius::gives_rates),
    case(
        "freeradius_must_prove_its_replies",
        radius::must_prove_its_replies,
    ),
    case(
        "radclient_disconnects_one_of_two",
        disconnect::ends_one_of_two,
    ),
    case(
        "radclient_changes_a_connected_subscriber",
        policy::changes_a_connected_subscriber,
    ),
    case(
        "a_browser_in_a_garden_sees_the_portal",
        policy::shows_the_portal,
    ),
    case(
        "a_killed_lns_loses_no_old_record",
        killed::loses_no_record_that_is_older_than_the_bound,
    ),
    alone(
        "our_lac_and_lns_carry_iperf3_both_ways",
        carried::carries_iperf3,
    ),
    alone(
        "our_lac_and_lns_carry_iperf3_on_two_cores",
        carried::carries_iperf3_on_two_cores,
    ),
    alone(
        "trace_live_names_the_queue_and_its_sender",
        trace_live::names_the_queue_and_its_sender,
    ),
    alone(
        "trace_live_names_the_window_of_a_slow_reader",
        trace_live::names_the_window_of_a_slow_reader,
    ),
    alone(
        "trace_live_counts_what_the_kernel_drops",
        trace_live::counts_what_the_kernel_drops,
    ),
    case(
        "trace_live_ends_with_its_interface",
        trace_live::ends_with_its_interface,
    ),
    alone(
        "shaped_subscribers_of_two_links_are_on_two_cores",
        shaped::on_two_cores,
    ),
    case(
        "hostile_subscribers_reach_nobody_else",
        hostile::reach_nobody_else,
    ),
    case("floods_of_ppp_are_bounded", hostile::floods_are_bounded),
    case(
        "our_client_is_on_line_at_l2tpns_by_chap",
        l2tpns_ppp::by_chap,
    ),
    case("our_client_is_on_line_at_l2tpns_by_pap", l2tpns_ppp::by_pap),
    case("tshark_decodes_every_golden_message", goldens::decode),
    case(
        "every_stream_of_real_captures_is_as_tshark_sees_it",
        trace::agrees_with_tshark,
    ),
];

/// How long one exchange between two idle daemons may take.
const SOON: Duration = Duration::from_secs(15);

/// The number after `key` in a line of a peer's output.
fn number_after(line: &str, key: &str) -> Result<u64> {
    let rest = line
        .split_once(key)
        .map(|(_, rest)| rest.trim_start())
        .with_context(|| format!("{key} in {line:?}"))?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits
        .parse()
        .with_context(|| format!("a number after {key} in {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_in_a_peers_line() {
        let line = "Connection established to 10.9.0.2, 1701.  Local: 18824, Remote: 2 (ref=0/0).";
        assert_eq!(number_after(line, "Local:").unwrap(), 18824);
        assert_eq!(number_after(line, "Remote:").unwrap(), 2);
        assert!(number_after(line, "Serial:").is_err());
    }

    #[test]
    fn every_test_has_a_name_of_its_own() {
        let mut names: Vec<&str> = ALL.iter().map(|case| case.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
