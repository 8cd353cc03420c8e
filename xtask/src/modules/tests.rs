use super::*;

fn source(path: &str, text: &str) -> Source {
    Source {
        path: format!("crates/a/src/{path}"),
        text: text.to_owned(),
    }
}

fn found(files: &[Source]) -> Vec<(String, String)> {
    let files: Vec<&Source> = files.iter().collect();
    scan::arrows(&files)
        .into_iter()
        .map(|arrow| (arrow.from.to_owned(), arrow.to.to_owned()))
        .collect()
}

fn arrow(from: &str, to: &str) -> (String, String) {
    (from.to_owned(), to.to_owned())
}

const ROOT: &str = "mod low; pub mod high; mod top; #[cfg(test)] mod tests; pub use low::{Low, deep::Deep as Other};";

#[test]
fn every_form_of_a_path_is_an_arrow() {
    for text in [
        "use crate::low::Low;",
        "use crate::{x, low::{self, Low}};",
        "use super::low;",
        "fn f() { crate::low::f::<u8>() }",
        "use crate::Low;",
        "fn f() -> crate::Other {}",
        "mod inner { use super::super::low::*; }",
    ] {
        let files = [source("lib.rs", ROOT), source("high.rs", text)];
        assert_eq!(found(&files), [arrow("high", "low")], "{text}");
    }
}

#[test]
fn a_module_s_own_parts_and_tests_are_none() {
    for text in [
        "use super::Low; use self::part; use super::other::low;",
        "#[cfg(test)] mod tests { use crate::low::Low; }",
        "#[cfg(test)] use crate::low::Low;",
        "// crate::low::Low\nconst A: &str = \"crate::low::Low\";",
    ] {
        let files = [source("lib.rs", ROOT), source("high/part.rs", text)];
        assert_eq!(found(&files), [], "{text}");
    }
    let files = [
        source("lib.rs", ROOT),
        source("high/mod.rs", "#[cfg(test)]\nmod tests;"),
        source("high/tests/more.rs", "use crate::low;"),
        source("tests.rs", "use crate::low;"),
    ];
    assert_eq!(found(&files), []);
}

const TABLE: Inside = Inside {
    krate: "a",
    order: &["low", "high", "top"],
    besides: &[],
};

fn faults(table: &Inside, files: &[Source]) -> Vec<String> {
    let files: Vec<&Source> = files.iter().collect();
    faults_of(table, &scan::modules(&files), &scan::arrows(&files))
}

#[test]
fn only_arrows_to_earlier_modules_or_exceptions_pass() {
    let up = [source("lib.rs", ROOT), source("top.rs", "use crate::low;")];
    assert_eq!(faults(&TABLE, &up), [""; 0]);
    let down = [
        source("lib.rs", ROOT),
        source("low.rs", "\nuse crate::top;"),
    ];
    assert_eq!(
        faults(&TABLE, &down),
        [
            "crates/a/src/low.rs:2: a::low -> a::top is not allowed: low comes before top in the table"
        ]
    );
    let with = Inside {
        besides: &[("low", "top", "a test")],
        ..TABLE
    };
    assert_eq!(faults(&with, &down), [""; 0]);
    assert_eq!(
        faults(&with, &up).len(),
        1,
        "an exception that nothing needs"
    );
}

#[test]
fn a_table_that_is_not_the_crate_s_fails() {
    let files = [source("lib.rs", "mod low; mod high; mod more;")];
    assert_eq!(
        faults(&TABLE, &files).len(),
        2,
        "{:?}",
        faults(&TABLE, &files)
    );
}

#[test]
fn a_printed_table_marks_what_closes_a_circle() {
    let files = [
        source("lib.rs", ROOT),
        source("low.rs", "use crate::high::High;"),
        source("high.rs", "use crate::low::Low;"),
        source("top.rs", "use crate::{high, low};"),
    ];
    let files: Vec<&Source> = files.iter().collect();
    let text = table("a", scan::modules(&files), &scan::arrows(&files));
    assert_eq!(text.matches("A circle").count(), 1, "{text}");
}
