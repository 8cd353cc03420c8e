//! FRR's files: an example, what is lost, and bytes that are no configuration.

mod common;
#[path = "common/lines.rs"]
mod lines;

use proptest::prelude::*;
use tool_import::{Files, frr};

#[test]
fn an_example_becomes_the_expected_files_and_report() {
    common::golden("frr", &["frr.conf"], frr::USUAL, frr::read);
}

#[test]
fn the_page_lists_every_command() {
    common::documented("frr.conf", frr::RULES[0]);
    common::documented("router bgp", frr::RULES[1]);
    common::documented("route-map", frr::RULES[2]);
}

/// The policies of the result: a line for each policy and term, without comments.
fn policies(text: &str) -> (String, String) {
    let main = format!(
        "router bgp 1\n bgp router-id 192.0.2.1\n neighbor 192.0.2.7 remote-as 2\n neighbor 192.0.2.7 route-map m in\n{text}"
    );
    let mut files = Files::of(&[("frr.conf", main.as_bytes())]);
    let (outputs, import) = common::import(&mut files, frr::read);
    let config = outputs[0]
        .text
        .reveal()
        .split("[[bgp.neighbor]]")
        .nth(1)
        .unwrap()
        .to_owned();
    let lines = config
        .lines()
        .map(|line| line.split("  #").next().unwrap().trim_end());
    (
        lines.collect::<Vec<_>>().join("\n"),
        import.report.to_string(),
    )
}

#[test]
fn a_term_that_permits_is_left_out_with_a_condition_that_is_lost() {
    let (config, report) =
        policies("route-map m permit 10\n match tag 7\n set metric 5\nroute-map m permit 20\n");
    assert!(!config.contains("set_med"), "{config}");
    assert_eq!(config.matches("then = \"accept\"").count(), 1, "{config}");
    assert!(
        report.contains("frr.conf:6: match: not supported"),
        "{report}"
    );
    assert!(
        report.contains("frr.conf:5: route-map NAME: not supported: a condition"),
        "{report}"
    );
}

#[test]
fn a_term_that_denies_keeps_denying_without_a_condition_that_is_lost() {
    let (config, _) = policies("route-map m deny 10\n match tag 7\nroute-map m permit 20\n");
    let (deny, accept) = (
        config.find("then = \"deny\"").unwrap(),
        config.find("then = \"accept\"").unwrap(),
    );
    assert!(deny < accept, "{config}");
}

#[test]
fn a_condition_that_headend_refuses_takes_its_term_with_it() {
    let list = "bgp community-list standard c permit 99999:1\n";
    let (config, report) = policies(&format!(
        "{list}route-map m permit 10\n match community c\nroute-map m permit 20\n match origin igp\n"
    ));
    assert!(!config.contains("community"), "{config}");
    assert_eq!(config.matches("[[bgp.policy.term]]").count(), 1, "{config}");
    assert!(
        report.contains("headend refuses the value of bgp.policy.term.community"),
        "{report}"
    );
}

#[test]
fn a_direction_with_two_filters_or_with_one_that_headend_lacks_is_closed() {
    for line in [
        "neighbor 192.0.2.7 prefix-list p in",
        "neighbor 192.0.2.7 filter-list p in",
        "neighbor 192.0.2.7 distribute-list p in",
    ] {
        let main = format!(
            "router bgp 1\n neighbor 192.0.2.7 remote-as 2\n neighbor 192.0.2.7 route-map m in\n {line}\nroute-map m permit 10\n"
        );
        let mut files = Files::of(&[("frr.conf", main.as_bytes())]);
        let (outputs, import) = common::import(&mut files, frr::read);
        assert!(
            outputs[0].text.reveal().contains("import = \"deny\""),
            "{}",
            outputs[0].text.reveal()
        );
        assert!(import.report.lost_count() > 0);
    }
}

#[test]
fn a_password_is_neither_in_the_report_nor_in_the_configuration() {
    let main = b"password hunter1\nenable password hunter2\nrouter bgp 1\n neighbor 192.0.2.7 remote-as 2\n neighbor 192.0.2.7 password hunter3\n nieghbor 192.0.2.7 password hunter4\n neighbor 192.0.2.7 passwrd hunter5\n";
    let (outputs, import) = common::import(&mut Files::of(&[("frr.conf", main)]), frr::read);
    for text in [outputs[0].text.reveal(), &import.report.to_string()] {
        assert!(!text.contains("hunter"), "{text}");
    }
    assert_eq!(outputs[1].text.reveal(), "hunter3\n");
}

const WORDS: &[&str] = &[
    "router bgp 1",
    "router bgp",
    "\n",
    "\n",
    "\n ",
    "neighbor 192.0.2.7",
    "neighbor g",
    "remote-as",
    "2",
    "peer-group",
    "g",
    "route-map m",
    "in",
    "out",
    "permit",
    "deny",
    "10",
    "match",
    "set",
    "community",
    "as-path",
    "prefix-list",
    "p",
    "ip prefix-list p",
    "10.0.0.0/8",
    "le",
    "ge",
    "any",
    "address-family ipv6",
    "activate",
    "no",
    "exit",
    "timers",
    "password",
    "local-preference",
    "bgp router-id 192.0.2.1",
    "network",
    "bgp listen range 10.0.0.0/8 peer-group g",
    "rpki",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_line_of_any_file_is_in_the_report_and_the_result_passes_the_check(
        main in prop::collection::vec(prop::sample::select(WORDS), 0..120),
    ) {
        let main = format!("router bgp 1\n{}", main.join(" "));
        let (_, import) = common::import(&mut Files::of(&[("frr.conf", main.as_bytes())]), frr::read);
        for number in lines::lines_that_count(&main, &['!', '#']) {
            let is_there = import.report.lines().iter().any(|line| line.place.line == number);
            prop_assert!(is_there, "line {number} of {main:?}\n{}", import.report);
        }
    }
}
