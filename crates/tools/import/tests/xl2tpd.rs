//! xl2tpd's files: an example, what is lost, and bytes that are no configuration.

mod common;
#[path = "common/lines.rs"]
mod lines;

use proptest::prelude::*;
use tool_import::{Fate, Files, xl2tpd};

#[test]
fn an_example_becomes_the_expected_files_and_report() {
    let main = &["etc/xl2tpd/xl2tpd.conf"];
    common::golden("xl2tpd", main, xl2tpd::USUAL, xl2tpd::read);
}

#[test]
fn the_page_lists_every_option() {
    common::documented("xl2tpd.conf", xl2tpd::RULES[0]);
    common::documented("pppd", xl2tpd::RULES[1]);
}

/// Every option of xl2tpd.conf in each section, with a value.
#[test]
fn each_option_is_in_the_report_and_the_result_passes_the_check() {
    for section in ["global", "lns default", "lac x"] {
        for value in ["yes", "no", "7", "192.0.2.1", ""] {
            let options = xl2tpd::RULES[0].iter();
            let lines: String = options
                .map(|rule| format!("{} = {value}\n", rule.name))
                .collect();
            let text = format!("[lns a]\n[{section}]\n{lines}");
            let mut files = Files::of(&[("xl2tpd.conf", text.as_bytes())]);
            let (_, import) = common::import(&mut files, xl2tpd::read);
            for number in 3..3 + xl2tpd::RULES[0].len() {
                let mut lines = import.report.lines().iter();
                assert!(
                    lines.any(|line| line.place.line == number),
                    "{number}: {text}"
                );
            }
        }
    }
}

#[test]
fn each_option_of_pppd_is_in_the_report_and_the_result_passes_the_check() {
    let included = |rule: &&tool_import::Rule| !matches!(rule.name, "file" | "call");
    for (section, value) in [
        ("lns", "7"),
        ("lns", "\"a b\""),
        ("lac", "7"),
        ("lac", "99999999999"),
    ] {
        let main = format!("[{section} a]\npppoptfile = options\n");
        let options = xl2tpd::RULES[1].iter().filter(included);
        let line = |rule: &tool_import::Rule| {
            format!(
                "{} {}\n",
                rule.name,
                if rule.words == 0 { "" } else { value }
            )
        };
        let text: String = options.map(line).collect();
        let mut files = Files::of(&[
            ("xl2tpd.conf", main.as_bytes()),
            ("options", text.as_bytes()),
        ]);
        let (_, import) = common::import(&mut files, xl2tpd::read);
        for number in 1..=text.lines().count() {
            let mut lines = import.report.lines().iter();
            let is_there =
                lines.any(|line| &*line.place.file == "options" && line.place.line == number);
            assert!(is_there, "{number}: {text}\n{}", import.report);
        }
    }
}

#[test]
fn no_secret_is_in_the_report_or_in_the_configuration() {
    let main = b"[lns default]\npppoptfile = o\nchallenge = yes\n[lac x]\nname = us\npppoptfile = o\nhunter1 hunter2\nhunter3 = hunter4\n";
    let options =
        b"password hunter5\npasword hunter6\nuser us hunter7\nplugin-password=hunter8 hunter9\n";
    let users = b"ann lns hunter10 *\nbob hunter11\ncarl \"hunter12\nus * hunter13\ndan * @hunter14 hunter15\n";
    let tunnels = b"* * hunter16\nhunter17\na b hunter18 hunter19\n* * hunter20\n";
    let mut files = Files::of(&[
        ("xl2tpd.conf", main),
        ("o", options),
        ("chap-secrets", users),
        ("l2tp-secrets", tunnels),
    ]);
    let (outputs, import) = common::import(&mut files, xl2tpd::read);
    let shown = [
        import.report.to_string(),
        import.report.json("xl2tpd", &[]).to_string(),
        outputs[0].text.reveal().clone(),
    ];
    for text in shown {
        let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        // The third is where the name of an option belongs.
        for secret in (1..=20).filter(|number| *number != 3) {
            assert!(
                !words.contains(&&*format!("hunter{secret}")),
                "hunter{secret} in {text}"
            );
        }
    }
}

#[test]
fn what_is_not_a_value_is_named_by_its_line() {
    for (text, expected) in [
        (
            "[lns default]\nip range = home-office\n",
            "xl2tpd.conf:2: ip range: not supported: not an IPv4 address or two with a dash between; headend looks up no names",
        ),
        (
            "[lns default]\nchallenge = maybe\n",
            "xl2tpd.conf:2: challenge: syntax unknown: the value is neither yes nor no",
        ),
        (
            "[lns default]\nhostnam = x\n",
            "xl2tpd.conf:2: hostnam: syntax unknown: not an option; did you mean hostname?",
        ),
        (
            "[lns default]\ntunnel rws = 99999999\n",
            "xl2tpd.conf:2: tunnel rws: not supported: headend refuses the value of l2tp.receive_window: 99999999 is out of range; it must be 1 to 65535 messages",
        ),
        (
            "[lns default]\nlocal ip = 10.0.0.1\n[lns x]\nlocal ip = 10.0.0.2\n",
            "xl2tpd.conf:4: local ip: not supported: headend has one ppp.address, that of xl2tpd.conf:2",
        ),
        (
            "[lns default]\npppoptfile = /etc/ppp/none\n",
            "xl2tpd.conf:2: pppoptfile: not supported: the file was not found; give it on the command line",
        ),
        (
            "[lns\nx",
            "xl2tpd.conf:1: [: syntax unknown: the section's header has no ]",
        ),
    ] {
        let mut files = Files::of(&[("xl2tpd.conf", text.as_bytes())]);
        let (_, import) = common::import(&mut files, xl2tpd::read);
        let report = import.report.to_string();
        assert!(
            report.lines().any(|line| line == expected),
            "{expected}\n{report}"
        );
        assert!(import.report.lost_count() > 0);
    }
}

#[test]
fn a_file_that_includes_itself_is_read_once() {
    let files = [
        (
            "xl2tpd.conf",
            &b"[lns default]\nip range = 10.0.0.1\npppoptfile = a\n"[..],
        ),
        ("a", b"file b\n"),
        ("b", b"file a\nmru 1400\n"),
    ];
    let (_, import) = common::import(&mut Files::of(&files), xl2tpd::read);
    let keys = import
        .report
        .lines()
        .iter()
        .filter(|line| line.fate == Fate::Key && line.option == "mru");
    assert_eq!(keys.count(), 1);
}

/// Words that these files are made of, so that random files are near real ones.
const WORDS: &[&str] = &[
    "[global]",
    "[lns default]",
    "[lac x]",
    "\n",
    "\n",
    "\n",
    " = ",
    "yes",
    "no",
    "10.0.0.1",
    "-",
    "10.0.0.9",
    "\"",
    "#",
    ";",
    "\\",
    "*",
    "mru",
    "1400",
    "name",
    "lns",
    "user",
    "\u{0}",
    "pppoptfile",
    "o",
    "ms-dns",
    "password",
    "ip range",
    "hidden bit",
    "challenge",
    "require chap",
    "refuse pap",
    "noauth",
    "auth",
    "{n}",
    "local ip",
    "file",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_line_of_any_file_is_in_the_report_and_the_result_passes_the_check(
        main in prop::collection::vec(prop::sample::select(WORDS), 0..60),
        options in prop::collection::vec(prop::sample::select(WORDS), 0..60),
        raw in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let main = main.concat();
        let options = options.join(" ");
        let files = [("xl2tpd.conf", main.as_bytes()), ("o", options.as_bytes()), ("chap-secrets", options.as_bytes()), ("l2tp-secrets", &raw)];
        let (_, import) = common::import(&mut Files::of(&files), xl2tpd::read);
        for number in lines::lines_that_count(&main, &[';', '#']) {
            let is_there = import.report.lines().iter().any(|line| &*line.place.file == "xl2tpd.conf" && line.place.line == number);
            prop_assert!(is_there, "line {number} of {main:?}\n{}", import.report);
        }
    }
}
