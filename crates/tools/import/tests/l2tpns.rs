//! l2tpns's files: an example, what is lost, filters, and bytes that are no configuration.

mod common;
#[path = "common/lines.rs"]
mod lines;

use proptest::prelude::*;
use tool_import::{Fate, Files, Import, Output, l2tpns};

#[test]
fn an_example_becomes_the_expected_files_and_report() {
    let main = &["etc/l2tpns/startup-config"];
    common::golden("l2tpns", main, l2tpns::USUAL, l2tpns::read);
}

#[test]
fn the_page_lists_every_option() {
    common::documented("startup-config variables", l2tpns::RULES[0]);
    common::documented("startup-config commands", l2tpns::RULES[1]);
}

fn import(text: &str) -> (Vec<Output>, Import) {
    let mut files = Files::of(&[("startup-config", text.as_bytes())]);
    common::import(&mut files, l2tpns::read)
}

#[test]
fn each_variable_is_in_the_report_and_the_result_passes_the_check() {
    let values = [
        "yes",
        "no",
        "0",
        "7",
        "192.0.2.1",
        "2001:db8::1",
        "\"\"",
        "x",
    ];
    for value in values.into_iter().chain(["99999999999"]) {
        let variables = l2tpns::RULES[0].iter();
        let text: String = variables
            .map(|rule| format!("set {} {value}\n", rule.name))
            .collect();
        let text = format!("router bgp 64500\n{text}");
        let (_, import) = import(&text);
        for number in 1..=text.lines().count() {
            let mut lines = import.report.lines().iter();
            let is_there = lines.any(|line| line.place.line == number);
            assert!(is_there, "{number}: {text}\n{}", import.report);
        }
    }
}

#[test]
fn what_is_not_a_value_is_named_by_its_line() {
    for (text, expected) in [
        (
            "set bind_adress 192.0.2.1\n",
            "startup-config:1: bind_adress: syntax unknown: not a variable; did you mean bind_address?",
        ),
        (
            "set debug loud\n",
            "startup-config:1: debug: syntax unknown: the value is not a number",
        ),
        (
            "set radius_authtypes eap\n",
            "startup-config:1: radius_authtypes: syntax unknown: the methods are chap and pap",
        ),
        (
            "set primary_radius 192.0.2.1\n",
            "startup-config:1: primary_radius: not supported: headend needs a RADIUS server and its secret for this",
        ),
        (
            "ip access-list extended a\npermit icmp any any\n",
            "startup-config:2: permit: syntax unknown: the protocol is not ip, tcp or udp; l2tpns ignores it",
        ),
        (
            "router bgp 64500\nneighbour core remote-as 64500\n",
            "startup-config:2: neighbour PEER remote-as: not supported: not an address; headend looks up no names",
        ),
        (
            "permit any\n",
            "startup-config:1: permit: no effect: not in an access list; l2tpns ignores it",
        ),
        (
            "quit\nset debug 3\n",
            "startup-config:2: ?: no effect: l2tpns reads nothing after quit",
        ),
    ] {
        let report = import(text).1.report.to_string();
        assert!(
            report.lines().any(|line| line == expected),
            "{expected}\n{report}"
        );
    }
}

/// The rules of a filter in the result.
fn rules(text: &str, name: &str) -> Vec<String> {
    let (outputs, import) = import(text);
    let file = outputs.iter().find(|file| file.name == "filters.txt");
    let text = file
        .unwrap_or_else(|| panic!("{}", import.report))
        .text
        .reveal()
        .clone();
    let rules = text
        .split_once(&format!("filter {name}\n"))
        .unwrap()
        .1
        .lines();
    let rules = rules.take_while(|line| !line.starts_with("filter"));
    let rules = rules.filter_map(|line| line.strip_prefix("    "));
    let rules = rules.map(|rule| rule.split("  #").next().unwrap().to_owned());
    rules.collect()
}

#[test]
fn access_lists_become_filters() {
    for (rule, expected) in [
        ("permit ip any any", &["accept ip4 from any to any"][..]),
        (
            "deny tcp any any eq 25",
            &["deny tcp from any to any port 25"],
        ),
        (
            "permit udp host 192.0.2.1 range 5 9 any gt 1023",
            &["accept udp from 192.0.2.1/32 port 5-9 to any port 1024-65535"],
        ),
        (
            "permit udp any any neq 53",
            &["accept udp from any to any port 0-52,54-65535"],
        ),
        (
            "permit ip 10.1.2.3 0.0.0.255 10.0.0.0 0.2.0.0",
            &["accept ip4 from 10.1.2.0/24 to 10.0.0.0/32,10.2.0.0/32"],
        ),
        (
            "permit tcp any any established",
            &[
                "accept tcp from any to any flags A/AS",
                "accept tcp from any to any flags R/RS",
            ],
        ),
        (
            "deny tcp any any match-all +syn -ack",
            &["deny tcp from any to any flags S/SA"],
        ),
        (
            "deny tcp any any match-any +fin -ack",
            &[
                "deny tcp from any to any flags F/F",
                "deny tcp from any to any flags /A",
            ],
        ),
        (
            "deny ip any any frag",
            &["deny ip4 from any to any fragment"],
        ),
        ("permit udp any any gt 65535", &[]),
        // Wildcards that are no networks: a permission is left out, a denial is widened.
        ("permit ip 10.0.0.1 255.0.255.0 any", &[]),
        (
            "deny ip 10.0.0.1 255.0.255.0 any",
            &["deny ip4 from any to any"],
        ),
    ] {
        let text = format!("ip access-list extended a\n{rule}\n");
        for direction in ["a.in", "a.out"] {
            let found = rules(&text, direction);
            let (first, rest) = found.split_first().unwrap();
            assert_eq!(first, "accept ip6");
            let middle = &rest[..rest.iter().position(|rule| rule == "default deny").unwrap()];
            assert_eq!(middle, expected, "{rule}");
        }
    }
    let text = "ip access-list standard b\npermit 192.0.2.7\npermit 10.0.0.0 0.0.0.255\n";
    assert_eq!(
        rules(text, "b.in")[1..3],
        [
            "accept ip4 from 192.0.2.7/32 to any",
            "accept ip4 from 10.0.0.0/24 to any"
        ]
    );
}

#[test]
fn no_secret_is_in_the_report_or_in_the_configuration() {
    let main = b"set l2tp_secret hunter1\nset radius_secret \"hunter2\"\nset primary_radius 192.0.2.1\nsetforward a 192.0.2.2 1701 hunter3\nset l2tp_secret hunter4\nsett radius_secret hunter5\nset radius_secret hunter6 hunter7\nneighbour 192.0.2.1 password hunter8\n";
    let users = b"admin:hunter9\nhunter10\n";
    let mut files = Files::of(&[("startup-config", main), ("users", users)]);
    let (outputs, import) = common::import(&mut files, l2tpns::read);
    let secrets = outputs.iter().filter(|file| file.name.ends_with(".secret"));
    assert_eq!(secrets.count(), 2);
    for text in [
        import.report.to_string(),
        import.report.json("l2tpns", &[]).to_string(),
        outputs[0].text.reveal().clone(),
    ] {
        assert!(!text.contains("hunter"), "{text}");
    }
}

#[test]
fn a_value_that_is_set_twice_counts_once() {
    let (outputs, import) = import("set l2tp_mtu 1400\nset l2tp_mtu 1492\n");
    let text = outputs[0].text.reveal();
    assert!(text.contains("path_mtu = 1492"), "{text}");
    let fates: Vec<Fate> = import.report.lines().iter().map(|line| line.fate).collect();
    assert_eq!(fates, [Fate::NoEffect, Fate::Key]);
}

/// Words that these files are made of, so that random files are near real ones.
const WORDS: &[&str] = &[
    "\nset ",
    "\nset ",
    "\nip access-list extended a\n",
    "\nip access-list standard b\n",
    "\npermit ",
    "\ndeny ",
    "\nrouter bgp 64500\n",
    "\nneighbour 192.0.2.1 ",
    "\nno ",
    "\n",
    "debug ",
    "l2tp_secret ",
    "radius_secret ",
    "primary_radius ",
    "radius_accounting ",
    "bind_address ",
    "ipv6_prefix ",
    "nexthop_address ",
    "echo_timeout ",
    "tcp ",
    "udp ",
    "ip ",
    "any ",
    "host ",
    "192.0.2.9 ",
    "0.0.255.0 ",
    "255.255.255.255 ",
    "eq ",
    "range ",
    "1 ",
    "65535 ",
    "0 ",
    "match-any ",
    "match-all ",
    "+syn ",
    "-ack ",
    "+ack ",
    "established ",
    "fragments ",
    "remote-as ",
    "timers ",
    "update-source ",
    "\"",
    "'",
    "#",
    "!",
    "\\",
    "yes ",
    "quit\n",
    "exit\n",
    "\u{0}",
    "access-list ",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_line_of_any_file_is_in_the_report_and_the_result_passes_the_check(
        main in prop::collection::vec(prop::sample::select(WORDS), 0..80),
        raw in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let main = main.concat();
        let files = [("startup-config", main.as_bytes()), ("ip_pool", &raw)];
        let (_, import) = common::import(&mut Files::of(&files), l2tpns::read);
        for number in lines::lines_that_count(&main, &['!', '#']) {
            let is_there = import.report.lines().iter().any(|line| &*line.place.file == "startup-config" && line.place.line == number);
            prop_assert!(is_there, "line {number} of {main:?}\n{}", import.report);
        }
    }
}
