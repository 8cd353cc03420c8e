//! BIRD's file: an example, what is lost, and bytes that are no configuration.

mod common;

use proptest::prelude::*;
use tool_import::{Files, bird};

#[test]
fn an_example_becomes_the_expected_files_and_report() {
    common::golden("bird", &["bird.conf"], bird::USUAL, bird::read);
}

#[test]
fn the_page_lists_every_statement() {
    common::documented("bird.conf", bird::RULES[0]);
    common::documented("protocol bgp", bird::RULES[1]);
    common::documented("channel", bird::RULES[2]);
}

/// The lines of the result without comments, and the report, with this body of a filter.
fn filter(body: &str) -> (String, String) {
    let main = format!(
        "filter f {{ {body} }}\nprotocol bgp p {{ local as 1; neighbor 192.0.2.7 as 2; ipv4 {{ import filter f; }}; }}\n"
    );
    let (outputs, import) = common::import(
        &mut Files::of(&[("bird.conf", main.as_bytes())]),
        bird::read,
    );
    let lines = outputs[0]
        .text
        .reveal()
        .lines()
        .map(|line| line.split("  #").next().unwrap().trim_end());
    (
        lines.collect::<Vec<_>>().join("\n"),
        import.report.to_string(),
    )
}

#[test]
fn a_filter_without_a_counterpart_closes_the_direction() {
    for body in [
        "if bgp_path ~ my_function() then accept; reject;",
        "if net ~ [ 10.0.0.0/8- ] then accept;",
        "if bgp_med > 7 then accept;",
        "if net = 10.0.0.0/8 then bgp_med = 7; else accept;",
        "case bgp_med { 1: accept; }",
        "if ! (1,2) ~ bgp_community then accept;",
    ] {
        let (config, report) = filter(body);
        assert!(config.contains("import = \"deny\""), "{body}\n{config}");
        assert!(
            !config.contains("accept") && report.contains("the filter has no counterpart"),
            "{body}\n{report}"
        );
    }
}

#[test]
fn branches_become_terms_in_order() {
    let (config, _) = filter(
        "if bgp_path.len < 3 && bgp_path.last = 7 then { bgp_med = 1; } if net = 10.1.2.3/8 then accept; else { bgp_local_pref = 5; reject; }",
    );
    let terms: Vec<&str> = config
        .split("[[bgp.policy.term]]")
        .skip(1)
        .map(str::trim)
        .collect();
    assert_eq!(
        terms,
        [
            "as_path_length = \"<= 2\"\norigin_as = 7\nset_med = 1\nthen = \"next\"",
            "prefix = [\"10.0.0.0/8\"]\nthen = \"accept\"",
            "set_local_pref = 5\nthen = \"next\"",
            "then = \"deny\"",
        ]
    );
}

#[test]
fn a_password_is_neither_in_the_report_nor_in_the_configuration() {
    let main = b"protocol bgp p { local as 1; neighbor 192.0.2.7 as 2; password \"hunter1\"; pasword \"hunter2\"; ipv4; }\n";
    let (outputs, import) = common::import(&mut Files::of(&[("bird.conf", main)]), bird::read);
    for text in [outputs[0].text.reveal(), &import.report.to_string()] {
        assert!(!text.contains("hunter"), "{text}");
    }
    assert_eq!(outputs[1].text.reveal(), "hunter1\n");
}

const WORDS: &[&str] = &[
    "protocol bgp p {",
    "}",
    ";",
    ";\n",
    "{",
    "local as 1;",
    "neighbor 192.0.2.7 as 2;",
    "ipv4 {",
    "ipv6 {",
    "import",
    "export",
    "all",
    "none",
    "filter f",
    "where",
    "source",
    "=",
    "~",
    "[",
    "]",
    "(",
    ")",
    "RTS_BGP",
    "if",
    "then",
    "else",
    "accept",
    "reject",
    "net",
    "10.0.0.0/8",
    "+",
    ",",
    "template bgp t {",
    "from t",
    "define A =",
    "A",
    "\"",
    "/*",
    "*/",
    "#",
    "hold time",
    "3",
    "protocol static {",
    "route 10.0.0.0/8 blackhole",
    "protocol kernel {",
    "router id 192.0.2.1;",
    "\n",
];

#[test]
fn included_files_are_read_in_place_and_cycles_are_named() {
    let main = b"router id 192.0.2.1;\ninclude \"peers/*.conf\";\ninclude \"none.conf\";\ninclude \"peers/[ab].conf\";\n";
    let filter =
        b"filter own { if net ~ [ 10.0.0.0/8 ] then accept; reject; }\ninclude \"bird.bird\";\n";
    let peer = b"protocol bgp x {\n local as 64500;\n neighbor 192.0.2.7 as 64501;\n ipv4 { import filter own; export none; };\n}\n";
    let files = [
        ("bird.bird", &main[..]),
        ("a.conf", &filter[..]),
        ("b.conf", &peer[..]),
    ];
    let (outputs, import) = common::import(&mut Files::of(&files), bird::read);
    let (text, report) = (outputs[0].text.reveal(), import.report.to_string());
    assert!(
        text.contains("remote_asn = 64501") && text.contains("# a.conf:1"),
        "{text}"
    );
    // Each file is read once, although it is on the command line too.
    assert_eq!(text.matches("[[bgp.neighbor]]").count(), 1, "{text}");
    for line in [
        "bird.bird:2: include: kept: the statements of a.conf, b.conf",
        "bird.bird:3: include: not supported: the file was not found; give it on the command line",
        "bird.bird:4: include: not supported: headend import follows the wildcards * and ? in the last part only",
        "a.conf:2: include: not supported: the files include each other: bird.bird, a.conf, bird.bird",
    ] {
        assert!(
            report.lines().any(|other| other == line),
            "{line}\n{report}"
        );
    }
}

#[test]
fn included_files_are_found_below_the_folder_of_the_first_one() {
    let folder = std::env::temp_dir().join(format!("headend-import-bird-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("conf.d")).unwrap();
    let main = folder.join("main.conf");
    std::fs::write(&main, "router id 192.0.2.1;\ninclude \"conf.d/*.conf\";\n").unwrap();
    for (name, asn) in [("2.conf", 64502), ("1.conf", 64501), ("3.old", 64503)] {
        let text = format!(
            "protocol bgp p{asn} {{ local as 64500; neighbor 192.0.2.{} as {asn}; ipv4; }}\n",
            asn - 64500
        );
        std::fs::write(folder.join("conf.d").join(name), text).unwrap();
    }
    let mut files = Files::open(&[main], bird::USUAL).unwrap();
    let (outputs, _) = common::import(&mut files, bird::read);
    std::fs::remove_dir_all(&folder).unwrap();
    let numbers: Vec<&str> = outputs[0]
        .text
        .reveal()
        .lines()
        .filter_map(|line| line.strip_prefix("remote_asn = "))
        .map(|rest| rest.split(' ').next().unwrap())
        .collect();
    assert_eq!(numbers, ["64501", "64502"]);
}

#[test]
fn a_list_of_debug_words_needs_no_semicolon() {
    let text = "router id 192.0.2.1;\nprotocol bgp x { debug { states, events }; local as 64500; neighbor 192.0.2.7 as 64501; ipv4; }\n";
    let (_, import) = common::import(
        &mut Files::of(&[("bird.conf", text.as_bytes())]),
        bird::read,
    );
    assert_eq!(import.report.lost_count(), 0, "{}", import.report);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn the_result_of_any_file_passes_the_check_and_every_statement_is_in_the_report(
        main in prop::collection::vec(prop::sample::select(WORDS), 0..120),
    ) {
        let main = format!("protocol bgp p {{ local as 1; neighbor 192.0.2.7 as 2; ipv4 {{ import all; }}; }}\n{}", main.join(" "));
        let (_, import) = common::import(&mut Files::of(&[("bird.conf", main.as_bytes())]), bird::read);
        prop_assert!(!import.report.lines().is_empty());
    }
}
