use super::*;
use crate::cargo::Metadata;

fn sources() -> Vec<Source> {
    let source = |path: &str, text: &str| Source {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    vec![
        source("crates/l2tp/src/lib.rs", "//! RFC 2661\npub mod tunnel;"),
        source(
            "crates/l2tp/src/tunnel.rs",
            "//! RFCs 2661 and 3931\npub struct Tunnel;\nmod tests { fn helper() {} #[test]\nfn a_hello_is_acked() {} }",
        ),
        source(
            "crates/l2tp/tests/behaviours.rs",
            "#[test]\nfn a_storm_comes_up() {}",
        ),
    ]
}

fn members() -> Vec<Member> {
    vec![Member {
        name: "l2tp".to_owned(),
        package: "l2tp".to_owned(),
        directory: "/tree/crates/l2tp".into(),
        uses: Vec::new(),
    }]
}

fn faults(table_row: &str) -> Vec<String> {
    let text = format!("| section | implemented in | tested by |\n|---|---|---|\n{table_row}\n");
    let (members, sources) = (members(), sources());
    let tree = Tree::new(Path::new("/tree"), &members, &sources);
    rows(&text)
        .iter()
        .flat_map(|row| tree.faults_of(row, "2661").collect::<Vec<_>>())
        .collect()
}

#[test]
fn names_that_are_there_pass() {
    for row in [
        "| 5.5 | `crates/l2tp/src/tunnel.rs` | `l2tp::tunnel::tests::a_hello_is_acked` |",
        "| 5.5 | `tunnel.rs`, `l2tp::tunnel` | `l2tp::behaviours::a_storm_comes_up` |",
        "| 5.5 | `l2tp::tunnel::Tunnel` | `behaviours.rs::a_storm_comes_up` |",
        "| 5.5 | `l2tp::Tunnel` | `l2tp::a_storm_comes_up`, `tests/behaviours.rs::a_storm_comes_up` |",
        "| RFC 3931, 4.1 | `l2tp::tunnel::Tunnel` | `behaviours.rs::a_storm_comes_up` |",
        "| 9 | left out | IPsec is the host's |",
    ] {
        assert_eq!(faults(row), Vec::<String>::new(), "{row}");
    }
}

#[test]
fn names_that_are_not_there_fail() {
    for row in [
        "| 1 | | `l2tp::tunnel::tests::a_hello` |",
        "| 1 | | `l2tp::session::a_hello_is_acked` |",
        "| 1 | | `ppp::tunnel::a_hello_is_acked` |",
        "| 1 | | `behaviours.rs::a_hello_is_acked` |",
        "| 1 | | `nowhere.rs::a_hello_is_acked` |",
        "| 1 | | `a_hello_is_acked` |",
        "| 1 | | `l2tp::tunnel::tests::helper` |",
        "| RFC 3932 | `l2tp::tunnel::Tunnel` | `l2tp::a_hello_is_acked` |",
        "| RFC 1661 | `tunnel.rs` | `l2tp::a_hello_is_acked` |",
        "| 1 | `session.rs` | `l2tp::a_hello_is_acked` |",
        "| 1 | `l2tp::tunnel::Session` | `l2tp::a_hello_is_acked` |",
    ] {
        assert_eq!(faults(row).len(), 1, "{row}: {:?}", faults(row));
    }
}

#[test]
fn a_row_without_a_test_says_why() {
    assert_eq!(faults("| 4.1 | `tunnel.rs` | |").len(), 1);
    assert_eq!(
        faults("| 4.1 | `tunnel.rs` | no behaviour: terminology |").len(),
        0
    );
}

#[test]
fn only_tables_with_the_columns_are_read() {
    let text = "| a | b |\n|---|---|\n| `x` | `y` |\n\n| section | what | implemented in | tested by |\n|-|-|-|-|\n| 1 | w | i | t |";
    let rows = rows(text);
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0].line, rows[0].implemented_in, rows[0].tested_by),
        (7, "i", "t")
    );
}

#[test]
fn the_pages_of_this_tree_name_only_what_is_there() {
    let metadata = Metadata::read().unwrap();
    let sources = crate::sources::read(&metadata.root).unwrap();
    check(&metadata.root, &metadata.members(), &sources).unwrap();
}

#[test]
fn only_a_crate_with_code_in_its_documentation_has_examples() {
    let found = |text: &str| {
        let sources = vec![Source {
            path: "crates/l2tp/src/lib.rs".to_owned(),
            text: text.to_owned(),
        }];
        crates_with_examples(&members(), Path::new("/tree"), &sources).len()
    };
    assert_eq!(found("/// ```\n/// f();\n/// ```\nfn f() {}"), 1);
    assert_eq!(found("//! ```no_run\n//! f();\n//! ```\n"), 1);
    assert_eq!(found("/// ```text\n/// f()\n/// ```\nfn f() {}"), 0);
    assert_eq!(found("// ```\n// f();\n// ```\nfn f() {}"), 0);
}
