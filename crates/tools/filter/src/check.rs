//! `headend filter check FILE`: reports faults in a file of filters, and advice.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use filter::{Direction, FilterSet, Remark, Remarks};
use serde_json::{Value, json};

use super::names;
use settings::text_of;

/// Report faults and unwise rules in a file of filters.
#[derive(Debug, clap::Args)]
pub(super) struct FilterCheckArgs {
    /// The file of filters
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints faults and advice in the form that compilers use. Exit status 0: the file can be used; 2:
/// it cannot.
pub(super) fn run(args: &FilterCheckArgs) -> Result<ExitCode> {
    let text = text_of(&args.file)?;
    let name = args.file.display();
    let (set, remarks) = match FilterSet::parse(&text, &names()) {
        Ok((set, advice)) => {
            let faults = Vec::new();
            (Some(set), Remarks { faults, advice })
        }
        Err(remarks) => (None, remarks),
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        let document = json!({
            "schema": "filter.check/1",
            "file": name.to_string(),
            "usable": set.is_some(),
            "faults": remarks.faults.iter().map(remark).collect::<Vec<_>>(),
            "advice": remarks.advice.iter().map(remark).collect::<Vec<_>>(),
            "filters": set.iter().flat_map(FilterSet::iter).map(|(_, one)| summary(one)).collect::<Vec<_>>(),
        });
        writeln!(out, "{document:#}")?;
    } else {
        for fault in &remarks.faults {
            eprintln!("{name}:{fault}");
        }
        for advice in &remarks.advice {
            eprintln!("{name}:{advice} (advice)");
        }
        for (_, filter) in set.iter().flat_map(FilterSet::iter) {
            let told = Direction::ALL.map(|direction| told(filter, direction));
            writeln!(out, "{}: {}", filter.name(), told.join(", "))?;
        }
        if set.is_some() {
            writeln!(out, "{name}: ok")?;
        }
    }
    Ok(match set {
        Some(_) => ExitCode::SUCCESS,
        None => ExitCode::from(2),
    })
}

/// A summary such as `in 3 rules, default deny`.
fn told(filter: &filter::Filter, direction: Direction) -> String {
    match default_of(filter, direction) {
        None => format!("{direction} not filtered"),
        Some(default) => {
            let rules = filter.rules(direction).len();
            let plural = if rules == 1 { "" } else { "s" };
            format!("{direction} {rules} rule{plural} then {default}")
        }
    }
}

/// The text of the last line of a direction, if it is filtered.
fn default_of(filter: &filter::Filter, direction: Direction) -> Option<&str> {
    let at = filter.rules(direction).len();
    let mut lines = filter.lines().filter(|line| line.direction == direction);
    filter.is_filtered(direction).then_some(())?;
    lines.nth(at).map(|line| line.text)
}

fn summary(filter: &filter::Filter) -> Value {
    let of = |direction| {
        default_of(filter, direction)
            .map(|default| json!({ "rules": filter.rules(direction).len(), "default": default }))
    };
    json!({
        "name": filter.name(),
        "line": filter.line(),
        "in": of(Direction::In),
        "out": of(Direction::Out),
        "octets": filter.octets(),
    })
}

fn remark(remark: &Remark) -> Value {
    json!({
        "line": remark.line,
        "column": remark.column,
        "word": remark.word,
        "message": remark.message,
        "right": remark.right,
    })
}
