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

/// A configuration with one prefix set, one policy with these statements, and the policy in a list.
fn with_policy(direction: &str, sets: &str, statements: &str) -> (String, String) {
    plain(&format!(
        "[global.config]\nas = 64500\nrouter-id = \"192.0.2.1\"\n[global.apply-policy.config]\n\
         {direction}-policy-list = [\"p\"]\ndefault-{direction}-policy = \"reject-route\"\n{sets}\n\
         [[policy-definitions]]\nname = \"p\"\n{statements}"
    ))
}

/// The terms of the only policy, without their headers.
fn terms(config: &str) -> Vec<String> {
    let all = config.split("[[bgp.policy.term]]\n").skip(1);
    all.map(|term| term.trim().replace('\n', "; ")).collect()
}

/// A set of each kind.
const SETS: &str = r#"
[[defined-sets.prefix-sets]]
prefix-set-name = "ps"
[[defined-sets.prefix-sets.prefix-list]]
ip-prefix = "10.0.0.0/8"
masklength-range = "21..24"
[[defined-sets.prefix-sets.prefix-list]]
ip-prefix = "192.0.2.0/24"
[[defined-sets.neighbor-sets]]
neighbor-set-name = "ns"
neighbor-info-list = ["192.0.2.7", "10.0.0.0/24"]
[[defined-sets.bgp-defined-sets.community-sets]]
community-set-name = "cs"
community-list = ["65100:10", "^65101:20$", "^65102:.*$"]
[[defined-sets.bgp-defined-sets.as-path-sets]]
as-path-set-name = "as"
as-path-list = ["_65100_", "_65101_"]
"#;

/// Three statements with all kinds of conditions and actions.
const STATEMENTS: &str = r#"
[[policy-definitions.statements]]
name = "one"
[policy-definitions.statements.conditions.match-prefix-set]
prefix-set = "ps"
match-set-options = "any"
[policy-definitions.statements.conditions.match-neighbor-set]
neighbor-set = "ns"
[policy-definitions.statements.actions]
route-disposition = "reject-route"
[[policy-definitions.statements]]
[policy-definitions.statements.conditions.bgp-conditions.match-community-set]
community-set = "cs"
[policy-definitions.statements.conditions.bgp-conditions.match-as-path-set]
as-path-set = "as"
[policy-definitions.statements.conditions.bgp-conditions.as-path-length]
operator = "le"
value = 4
[policy-definitions.statements.actions.bgp-actions]
set-med = "70"
set-local-pref = 110
set-next-hop = "192.0.2.9"
[policy-definitions.statements.actions.bgp-actions.set-as-path-prepend]
as = "64500"
repeat-n = 3
[policy-definitions.statements.actions.bgp-actions.set-community]
options = "ADD"
[policy-definitions.statements.actions.bgp-actions.set-community.set-community-method]
communities-list = ["65100:30"]
[[policy-definitions.statements]]
[policy-definitions.statements.actions]
route-disposition = "accept-route"
[policy-definitions.statements.actions.bgp-actions.set-large-community]
options = "remove"
[policy-definitions.statements.actions.bgp-actions.set-large-community.set-large-community-method]
communities-list = ["65100:1:2"]
"#;

#[test]
fn statements_become_terms() {
    let (config, report) = with_policy("import", SETS, STATEMENTS);
    assert_eq!(
        terms(&config),
        [
            "neighbour = [\"192.0.2.7\", \"10.0.0.0/24\"]; prefix = [\"10.0.0.0/8 ge 21 le 24\", \"192.0.2.0/24\"]; then = \"deny\"",
            "as_path_contains = [65100, 65101]; community = [\"65100:10\", \"65101:20\", \"65102:*\"]; prepend = 3; add_community = [\"65100:30\"]; set_local_pref = 110; set_med = 70; set_next_hop = \"192.0.2.9\"; as_path_length = \"<= 4\"; then = \"next\"",
            "remove_large_community = [\"65100:1:2\"]; then = \"accept\"",
            "then = \"deny\"",
        ],
        "{report}"
    );
    assert!(config.contains("import = \"gobgp import\""), "{config}");
    assert!(
        report.contains(" 0 not supported, 0 syntax unknown"),
        "{report}"
    );
}

#[test]
fn what_cannot_be_translated_closes_the_direction_and_is_named() {
    let sets = r#"
[[defined-sets.bgp-defined-sets.community-sets]]
community-set-name = "cs"
community-list = ["^65100:[12]0$"]
[[defined-sets.neighbor-sets]]
neighbor-set-name = "ns"
neighbor-info-list = ["192.0.2.7"]
[[defined-sets.prefix-sets]]
prefix-set-name = "ps"
[[defined-sets.prefix-sets.prefix-list]]
ip-prefix = "10.0.0.0/8"
"#;
    for (direction, statement, why) in [
        (
            "import",
            "conditions.bgp-conditions.match-community-set]\ncommunity-set = \"cs\"",
            "headend's policies have no regular expressions",
        ),
        (
            "export",
            "conditions.match-neighbor-set]\nneighbor-set = \"ns\"",
            "for export, headend's policies match the peer that sent the route",
        ),
        (
            "import",
            "conditions.match-prefix-set]\nprefix-set = \"ps\"\nmatch-set-options = \"invert\"",
            "headend's policies have `any` only, not `all` or `invert`",
        ),
        (
            "import",
            "conditions.match-prefix-set]\nprefix-set = \"none\"",
            "there is no such set",
        ),
        (
            "export",
            "actions.bgp-actions]\nset-med = \"+10\"",
            "headend's policies set this value, they do not add to it",
        ),
        (
            "export",
            "actions.bgp-actions.set-as-path-prepend]\nas = \"last-as\"\nrepeat-n = 2",
            "headend prepends its own AS only",
        ),
        (
            "import",
            "conditions.bgp-conditions]\ncommunity-count = { operator = \"eq\", value = 3 }",
            "headend's policies have no such condition or action",
        ),
    ] {
        let statement = format!(
            "[[policy-definitions.statements]]\nname = \"s\"\n[policy-definitions.statements.{statement}\n"
        );
        let (config, report) = with_policy(direction, sets, &statement);
        assert!(
            config.contains(&format!("{direction} = \"deny\"")),
            "{config}"
        );
        assert!(!config.contains("[[bgp.policy]]"), "{config}");
        let list =
            format!("{direction}-policy-list: not supported: {why}; the direction is `deny`");
        assert!(report.contains(&list), "{report}");
        assert!(
            report.contains(&format!("not supported: {why}\n")),
            "{report}"
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
    "\n[[policy-definitions]]\nname = \"p\"\n",
    "\n[[policy-definitions.statements]]\n",
    "\n[policy-definitions.statements.actions]\nroute-disposition = \"accept-route\"\n",
    "\n[policy-definitions.statements.actions.bgp-actions]\nset-med = 7\n",
    "\n[policy-definitions.statements.conditions.match-prefix-set]\nprefix-set = \"s\"\n",
    "\n[[defined-sets.prefix-sets]]\nprefix-set-name = \"s\"\n",
    "\n[[defined-sets.prefix-sets.prefix-list]]\nip-prefix = \"10.0.0.0/8\"\n",
    "masklength-range = \"9..8\"\n",
    "\n[global.apply-policy.config]\nexport-policy-list = [\"p\"]\n",
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
