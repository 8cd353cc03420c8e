//! `headend qos import`: examples, every option, mistakes, and arbitrary files.

use std::path::Path;

use convert::{Fate, Rule};
use proptest::prelude::*;
use qos::policy::Policy;
use tool_qos::import::{Import, Source, cake, sqm, tc};

/// Finishes an import. Each option must be in the report, and the policy must pass the check.
fn finish(mut import: Import) -> (String, Import) {
    let report = &import.report;
    assert_eq!(report.lines().len(), import.options, "{report}");
    let text = import.finish().unwrap_or_else(|error| panic!("{error:#}"));
    Policy::parse(&text).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
    (text, import)
}

/// Compares what an example becomes, and its report, with `NAME.txt`; with `UPDATE` in the environment, writes it.
fn golden(name: &str, import: Import) {
    let (policy, import) = finish(import);
    let text = format!("{policy}\n==> report <==\n{}\n", import.report);
    let path = Path::new("tests/examples").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap();
    for (number, (line, known)) in (1..).zip(text.lines().zip(known.lines())) {
        assert_eq!(line, known, "{}:{number}", path.display());
    }
    assert_eq!(text.lines().count(), known.lines().count());
}

fn example(name: &str) -> Source {
    let bytes = std::fs::read(Path::new("tests/examples").join(name)).unwrap();
    Source::new(name, &bytes, b"#")
}

fn sqm_of(text: &str, interface: Option<&str>) -> (String, Import) {
    finish(sqm::read(
        &[Source::new("sqm", text.as_bytes(), b"#")],
        interface,
    ))
}

#[test]
fn a_cable_line_with_cake_becomes_the_expected_policy() {
    golden("cable", sqm::read(&[example("cable.uci")], None));
}

#[test]
fn a_section_is_selected_by_its_interface() {
    golden(
        "cable-lte",
        sqm::read(&[example("cable.uci")], Some("wwan1")),
    );
}

#[test]
fn a_dsl_line_with_three_classes_becomes_the_expected_policy() {
    golden("dsl", sqm::read(&[example("dsl.uci")], None));
}

#[test]
fn a_section_that_is_not_enabled_becomes_no_queue_unless_it_is_named() {
    golden("default", sqm::read(&[example("default.uci")], None));
    golden(
        "default-eth1",
        sqm::read(&[example("default.uci")], Some("eth1")),
    );
}

#[test]
fn the_commands_of_a_script_become_the_expected_policy() {
    golden("gateway", tc::read(&[example("gateway.sh")], &[], None));
}

/// tc of iproute2 6.1.0 printed the files on Linux 6.18: once as JSON, once as text with counters.
#[test]
fn what_tc_prints_becomes_the_expected_policy() {
    golden(
        "wan0-json",
        tc::read(&[example("wan0.json")], &[example("ifb9.json")], None),
    );
    golden(
        "wan0-show",
        tc::read(&[example("wan0.show")], &[example("ifb9.json")], None),
    );
}

#[test]
fn json_and_text_of_one_tree_become_the_same_policy() {
    let down = example("ifb9.json");
    let of = |name| tc::read(&[example(name)], std::slice::from_ref(&down), None);
    let [json, text] = ["wan0.json", "wan0.show"].map(|name| {
        let (policy, _) = finish(of(name));
        let bare = policy
            .lines()
            .map(|line| line.split("  #").next().unwrap_or_default().trim_end());
        bare.skip(2).map(str::to_owned).collect::<Vec<_>>()
    });
    assert_eq!(json, text);
}

/// The trees in testdata/tc, which tc printed: queues of every kind, several of them odd.
#[test]
fn every_tree_that_tc_printed_has_a_fate_for_each_option() {
    let folder = Path::new("../../../testdata/tc");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let name = path.display().to_string();
        let (_, import) = finish(tc::read(&[Source::new(&name, &bytes, b"#")], &[], None));
        assert!(!import.report.lines().is_empty(), "{name}");
    }
}

/// Compares a table of docs/qos-import.md with the code's list; with `UPDATE` in the environment, writes it.
fn documented(name: &str, rules: &[Rule]) {
    let path = "../../../docs/qos-import.md";
    let page = std::fs::read_to_string(path).unwrap();
    let start = format!("<!-- {name} -->\n");
    let (before, rest) = page
        .split_once(&start)
        .unwrap_or_else(|| panic!("{path} has no {start}"));
    let (table, after) = rest.split_once("\n\n").unwrap_or((rest.trim_end(), ""));
    let head = ["| option | becomes |", "|---|---|"].map(str::to_owned);
    let right: Vec<String> = head
        .into_iter()
        .chain(rules.iter().map(Rule::row))
        .collect();
    let right = right.join("\n");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, format!("{before}{start}{right}\n\n{after}")).unwrap();
        return;
    }
    assert_eq!(table, right, "{path}: write it with UPDATE=1");
}

#[test]
fn the_page_lists_every_option() {
    documented("sqm", sqm::RULES);
    documented("cake", &cake::rules());
}

/// Each option and each keyword with several values, in a section that is imported.
#[test]
fn each_option_has_a_fate_and_the_policy_passes_the_check() {
    for value in [
        "",
        "0",
        "1",
        "9999999999",
        "5ms",
        "auto",
        "ECN",
        "cake",
        "fq_codel",
        "atm",
        "-5",
        "é",
    ] {
        for script in ["simple.qos", "layer_cake.qos", "simplest.qos", "none"] {
            let options = sqm::RULES
                .iter()
                .filter(|rule| !matches!(rule.name, "enabled" | "script"));
            let lines: String = options
                .map(|rule| format!("option {} '{value}'\n", rule.name))
                .collect();
            let text = format!("config queue\noption enabled 1\noption script {script}\n{lines}");
            let (_, import) = sqm_of(&text, None);
            assert_eq!(import.report.lines().len(), sqm::RULES.len());
        }
    }
    for rule in cake::rules() {
        for value in ["", " 7", " 40ms", " x"] {
            let value = if rule.words == 0 { "" } else { value };
            let text = format!(
                "config queue\noption enabled 1\noption upload 9000\noption download 9000\noption qdisc cake\noption script piece_of_cake.qos\noption eqdisc_opts '{}{value}'\n",
                rule.name
            );
            let (_, import) = sqm_of(&text, None);
            let mut lines = import.report.lines().iter();
            let name = format!("eqdisc_opts {}", rule.name);
            let line = lines.find(|line| line.option == name).expect(&text);
            let right = [rule.fate, Fate::NotSupported, Fate::Unknown, Fate::Kept];
            assert!(right.contains(&line.fate), "{text}: {line:?}");
            let fixed = [Fate::NotSupported, Fate::NoEffect];
            assert!(
                !fixed.contains(&rule.fate) || line.fate == rule.fate,
                "{text}: {line:?}"
            );
        }
    }
}

#[test]
fn mistakes_are_named_by_line_option_and_what_would_be_right() {
    let section = "config queue\noption enabled 1\noption upload 9000\n";
    for (text, expected) in [
        (
            "option downlod 5\n",
            "sqm:4: downlod: syntax unknown: as an option of sqm, \"downlod\" is not known; did you mean \"download\"?",
        ),
        (
            "option download 5mbit\n",
            "sqm:4: download: syntax unknown: the value is no number of kbit/s",
        ),
        (
            "option download\n",
            "sqm:4: option: syntax unknown: an option has a name and one value; quote a value with spaces",
        ),
        (
            "option download '5\n",
            "sqm:4: ?: syntax unknown: the quotation mark is not closed; the rest of the file is one value",
        ),
        (
            "option qdisc cake\noption eqdisc_opts 'dual-srchots'\n",
            "sqm:5: eqdisc_opts dual-srchots: syntax unknown: as a keyword of cake, \"dual-srchots\" is not known; did you mean \"dual-srchost\"?",
        ),
        (
            "option etarget 99s\n",
            "sqm:4: etarget: not supported: headend refuses the value of shape.target: \"99s\" is out of range; it must be 100us to 1s",
        ),
        (
            "option script simpel.qos\n",
            "sqm:4: script: not supported: as a script of sqm, \"simpel.qos\" is not known; did you mean \"simple.qos\"?",
        ),
    ] {
        let (_, import) = sqm_of(&format!("{section}{text}"), None);
        let report = import.report.to_string();
        assert!(
            report.lines().any(|line| line == expected),
            "{expected}\n{report}"
        );
        assert!(import.report.lost_count() > 0);
    }
}

/// Words that such files are made of, so that random files are near real ones.
const UCI: &[&str] = &[
    "config queue\n",
    "config other x\n",
    "\n",
    "\noption ",
    "\nlist ",
    "option ",
    "'",
    "\"",
    "#",
    ";",
    "\\",
    "enabled 1\n",
    "interface eth1\n",
    "download ",
    "upload ",
    "9000",
    "0",
    "\n",
    " ",
    "script ",
    "simple.qos",
    "layer_cake.qos",
    "qdisc ",
    "cake",
    "fq_codel",
    "iqdisc_opts ",
    "eqdisc_opts ",
    "'diffserv4 nat overhead 44'",
    "'besteffort rtt 20ms'",
    "itarget ",
    "5ms",
    "elimit ",
    "100",
    "linklayer atm\n",
    "overhead 40\n",
    "\u{0}",
    "é",
    "\noption enabled 1\n",
    "\noption upload 800\n",
    "\noption download 8000\n",
    "squash_ingress 0\n",
];

/// Words of scripts and of what tc prints.
const TC: &[&str] = &[
    "tc qdisc add dev eth0 root handle 1: htb default 30\n",
    "tc class add dev eth0 parent 1: classid 1:1 htb rate 9mbit\n",
    "tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit",
    " ceil 4mbit",
    " prio 3",
    "\n",
    "tc class add dev eth0 parent 1:10 classid 1:11 htb rate 1mbit\n",
    "tc qdisc add dev eth0 parent 1:10 sfq perturb 10\n",
    "tc qdisc add dev eth0 parent 1:30 handle 30: fq_codel limit 7 target 5ms\n",
    "tc class add dev eth0 parent 1:1 classid 1:30 htb rate 1mbit\n",
    "tc filter add dev eth0 parent 1: protocol ip prio 1 u32",
    " match ip dport 22 0xffff",
    " match ip src 10.0.0.0/8",
    " match u32 0 0",
    " flowid 1:10\n",
    " flowid 1:11\n",
    " flowid 1:30\n",
    "tc filter add dev eth0 parent 1: protocol ip prio 2 flower dst_port 25 classid 1:10\n",
    "X=5\n",
    "$X",
    "${X",
    " \\\n",
    "tc qdisc add dev eth0 ingress\n",
    "tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0\n",
    "tc filter add dev eth0 parent ffff: u32 match u32 0 0 police rate 9mbit burst 9k drop flowid :1\n",
    "tc qdisc add dev ifb0 root tbf rate 5mbit burst 9k latency 9ms\n",
    "tc qdisc add dev ifb0 root cake bandwidth 5mbit nat overhead 40\n",
    "[{\"kind\":\"cake\",\"handle\":\"1:\",\"root\":true,\"options\":{\"bandwidth\":1250000,\"diffserv\":\"diffserv3\"}}]",
    "[{\"kind\":\"htb\",\"handle\":\"1:\",\"root\":true,\"options\":{\"default\":\"0x10\"}}",
    "{",
    "]",
    "\"",
    "class htb 1:1 root rate 1Mbit ceil 1Mbit\n",
    "class htb 1:10 parent 1:1 prio 0 rate 1Mbit ceil 1Mbit\n",
    "class htb 1:1 parent 1:10 rate 1Mbit\n",
    "filter parent 1: protocol ip pref 1 u32 chain 0 fh 800::800 flowid 1:10\n",
    "  match 00000016/0000ffff at 20\n",
    "\u{0}",
    "é",
    ";",
    "#",
    "tc qdisc add dev $Y root cake\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn the_fates_of_any_tree_add_up_and_the_policy_passes_the_check(
        up in prop::collection::vec(prop::sample::select(TC), 0..40),
        down in prop::collection::vec(prop::sample::select(TC), 0..10),
        raw in prop::collection::vec(any::<u8>(), 0..20),
        named in any::<bool>(),
    ) {
        let mut bytes = up.concat().into_bytes();
        bytes.extend(raw);
        let up = [Source::new("up", &bytes, b"#")];
        let down = [Source::new("down", down.concat().as_bytes(), b"#")];
        finish(tc::read(&up, &down, named.then_some("eth0")));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn the_fates_of_any_file_add_up_and_the_policy_passes_the_check(
        words in prop::collection::vec(prop::sample::select(UCI), 0..60),
        raw in prop::collection::vec(any::<u8>(), 0..20),
        named in any::<bool>(),
    ) {
        let mut bytes = words.concat().into_bytes();
        bytes.extend(raw);
        let source = Source::new("sqm", &bytes, b"#");
        finish(sqm::read(&[source], named.then_some("eth1")));
    }
}
