//! tcptrace's regression captures through reader, decoder, analyser and report, against what tcptrace 6.6.7's authors
//! keep as its expected output: equal to the octet, but for the differences listed in `testdata/trace/differences.tsv`.
//!
//! A difference that is not listed fails, and so does one that is listed and does not occur. The list and its rules
//! are explained in `docs/trace-differences.md`.

#[path = "goldens/compare.rs"]
mod compare;
#[path = "goldens/report.rs"]
mod report;

use compare::{Difference, differences};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/trace")
}

fn listed() -> Vec<Difference> {
    let path = testdata().join("differences.tsv");
    let text = std::fs::read_to_string(path).expect("the list of differences is there");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(Difference::HEAD));
    lines.map(Difference::parse).collect()
}

/// The list as the table that the documentation has of it.
fn table() -> String {
    let mut table = String::from(
        "| capture | output | connection | end | field | tcptrace | headend | rule |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for one in listed() {
        let identity = one.identity().replace('\t', " | ");
        table += &format!("| {identity} | {} |\n", one.rule);
    }
    table
}

#[test]
fn the_documentation_has_the_list_and_a_rule_for_each_of_its_lines() {
    let path = testdata().join("../../docs/trace-differences.md");
    let text = std::fs::read_to_string(path).expect("the documentation is there");
    let (rules, _) = text
        .split_once("\n## The list\n")
        .expect("its last part is the list");
    assert!(
        text.ends_with(&table()),
        "the list in the documentation is another"
    );
    for one in listed() {
        let heading = format!("\n### {}\n", one.rule);
        assert!(rules.contains(&heading), "no rule is called {:?}", one.rule);
    }
}

/// The captures, by name.
fn captures() -> Vec<String> {
    let folder = std::fs::read_dir(testdata().join("tcptrace")).expect("the captures are there");
    let mut names: Vec<String> = folder
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".gz"))
        .collect();
    names.sort();
    names
}

/// Everything that differs, of one kind of output.
fn found(kind: &str, ours: impl Fn(&Path, &str) -> String) -> Vec<Difference> {
    let mut all = Vec::new();
    for name in captures() {
        let path = testdata().join("tcptrace").join(&name);
        let golden = std::fs::read_to_string(testdata().join(format!("tcptrace/{name}.{kind}")))
            .expect("each capture has its expected output");
        all.extend(differences(&name, kind, &golden, &ours(&path, &name)));
    }
    all
}

/// Compares the differences found with those listed.
fn check(kind: &str, found: &[Difference]) {
    let listed = listed();
    let expected: BTreeSet<_> = listed
        .iter()
        .filter(|one| one.kind == kind)
        .map(Difference::identity)
        .collect();
    let found: BTreeSet<_> = found.iter().map(Difference::identity).collect();
    let new: Vec<&str> = found.difference(&expected).map(String::as_str).collect();
    let gone: Vec<&str> = expected.difference(&found).map(String::as_str).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "not listed:\n{}\nlisted, but not so:\n{}",
        new.join("\n"),
        gone.join("\n")
    );
}

#[test]
fn long_reports_differ_from_tcptraces_as_listed() {
    check("long", &found("long", report::long));
}

#[test]
fn brief_reports_differ_from_tcptraces_as_listed() {
    check("short", &found("short", report::short));
}

#[test]
fn printed_packets_differ_from_tcptraces_as_listed() {
    check("packets", &found("packets", report::packets));
}
