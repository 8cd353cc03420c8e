//! GoBGP's file: an example in TOML and YAML, what is lost, and bytes that are no configuration.

mod common;

use proptest::prelude::*;
use tool_import::{Files, gobgp};

#[test]
fn an_example_becomes_the_expected_files_and_report() {
    common::golden("gobgp", &["gobgpd.toml"], gobgp::USUAL, gobgp::read);
}

#[test]
fn the_page_lists_every_setting() {
    common::documented("gobgpd.conf", gobgp::RULES);
}

/// The configuration without comments.
fn plain(text: &str) -> (String, String) {
    let (outputs, import) = common::import(
        &mut Files::of(&[("gobgpd.conf", text.as_bytes())]),
        gobgp::read,
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
fn yaml_becomes_the_same_as_toml() {
    let toml = "[global.config]\nas = 1\nrouter-id = \"192.0.2.1\"\n[[neighbors]]\n[neighbors.config]\nneighbor-address = \"192.0.2.7\"\npeer-as = 2\n";
    let yaml = "global:\n  config:\n    as: 1\n    router-id: 192.0.2.1\nneighbors:\n  - config:\n      neighbor-address: 192.0.2.7\n      peer-as: 2\n";
    assert_eq!(plain(toml).0, plain(yaml).0);
    assert!(plain(yaml).0.contains("remote_asn = 2"));
}

#[test]
fn where_a_policy_applies_the_direction_is_closed_whatever_the_default_is() {
    for policy in [
        "import-policy-list = [\"p\"]\ndefault-import-policy = \"accept-route\"",
        "default-import-policy = \"accept-route\"\nimport-policy-list = [\"p\"]",
    ] {
        let text = format!(
            "[global.config]\nas = 1\nrouter-id = \"192.0.2.1\"\n[global.apply-policy.config]\n{policy}\n"
        );
        let (config, _) = plain(&text);
        assert!(
            config.contains("import = \"deny\"") && config.contains("export = \"accept\""),
            "{config}"
        );
    }
}

#[test]
fn a_password_is_neither_in_the_report_nor_in_the_configuration() {
    for text in [
        "[global.config]\nas = 1\n[[neighbors]]\n[neighbors.config]\nneighbor-address = \"192.0.2.7\"\npeer-as = 2\nauth-password = \"hunter1\"\npasword = \"hunter2\"\n",
        "[global.config]\nauth-password = \"hunter1\nx\n",
        "global:\n  config:\n    as: 1\nhunter2\n  hunter3 hunter4\n",
    ] {
        let (config, report) = plain(text);
        assert!(
            !config.contains("hunter") && !report.contains("hunter"),
            "{config}{report}"
        );
    }
}

const WORDS: &[&str] = &[
    "global",
    "neighbors",
    "peer-groups",
    "config",
    "as",
    "peer-as",
    ":",
    ": ",
    ":\n",
    "\n",
    "\n  ",
    "\n    ",
    "- ",
    "[",
    "]",
    "[[",
    "]]",
    ".",
    " = ",
    "1",
    "\"192.0.2.7\"",
    "neighbor-address",
    "afi-safis",
    "afi-safi-name",
    "ipv4-unicast",
    "timers",
    "hold-time",
    "\"",
    "#",
    "{",
    "}",
    "-1",
    "true",
    "apply-policy",
    "import-policy-list",
    "peer-group",
    "dynamic-neighbors",
    "prefix",
    "10.0.0.0/8",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn the_result_of_any_file_passes_the_check(words in prop::collection::vec(prop::sample::select(WORDS), 0..80)) {
        let text = words.concat();
        plain(&text);
        plain(&format!("global:\n  config:\n    as: 1\n{text}"));
        plain(&format!("[global.config]\nas = 1\n[[neighbors]]\n[neighbors.config]\npeer-as = 2\n{text}"));
    }
}
