//! Golden files: what an example becomes, and its report.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use tool_import::{Files, Import, Output, Rule, finish};

/// Imports the files, and returns what is written and the report.
pub(crate) fn import(files: &mut Files, read: fn(&mut Files) -> Import) -> (Vec<Output>, Import) {
    let mut import = read(files);
    let outputs = finish(&mut import).unwrap_or_else(|error| panic!("{error:#}"));
    (outputs, import)
}

/// Compares the result of an example with `expected.txt` in its folder; with `UPDATE` in the environment, writes it.
pub(crate) fn golden(folder: &str, files: &[&str], usual: &[&str], read: fn(&mut Files) -> Import) {
    let folder = Path::new("tests/examples").join(folder);
    let paths: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
    let (outputs, import) = import(&mut Files::open(&paths, usual).unwrap(), read);
    let mut text = String::new();
    for output in &outputs {
        writeln!(text, "==> {} <==\n{}", output.name, output.text.reveal()).unwrap();
    }
    writeln!(text, "==> report <==\n{}", import.report).unwrap();
    let expected = folder.join("expected.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&expected, &text).unwrap();
    }
    let known = std::fs::read_to_string(&expected).unwrap();
    for (number, (line, known)) in (1..).zip(text.lines().zip(known.lines())) {
        assert_eq!(line, known, "{}:{number}", expected.display());
    }
    assert_eq!(text.lines().count(), known.lines().count());
}

/// Compares the tables of docs/import.md between `<!-- NAME -->` and the next blank line with the code's list; with
/// `UPDATE` in the environment, writes them.
pub(crate) fn documented(name: &str, rules: &[Rule]) {
    let path = "../../../docs/import.md";
    let page = std::fs::read_to_string(path).unwrap();
    let start = format!("<!-- {name} -->\n");
    let (before, rest) = page
        .split_once(&start)
        .unwrap_or_else(|| panic!("{path} has no {start}"));
    let (table, after) = rest.split_once("\n\n").unwrap_or((rest.trim_end(), ""));
    let rows = rules.iter().map(Rule::row);
    let right: Vec<String> = ["| option | becomes |", "|---|---|"]
        .map(str::to_owned)
        .into_iter()
        .chain(rows)
        .collect();
    let right = right.join("\n");
    if std::env::var_os("UPDATE").is_some() {
        let after = if after.is_empty() {
            "\n".to_owned()
        } else {
            format!("\n\n{after}")
        };
        std::fs::write(path, format!("{before}{start}{right}{after}")).unwrap();
        return;
    }
    for (row, expected) in table.lines().zip(right.lines()) {
        assert_eq!(row, expected, "{path}: write it with UPDATE=1");
    }
    assert_eq!(
        table.lines().count(),
        right.lines().count(),
        "{path}: {name}"
    );
    let mut names: Vec<&str> = rules.iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rules.len(), "an option is listed twice");
}
