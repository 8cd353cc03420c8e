//! Which module may use which, inside a crate of more than 5,000 lines.
//!
//! A crate's table lists its top-level modules in order. A module may use those before it; every other use is
//! listed in `besides`, with its reason. Uses are read from the paths in the source that start with `crate`,
//! `super` or `self`, outside `#[cfg(test)]`. A name that the crate's root re-exports counts as its module's.
//! The root's own uses are not checked, because it joins all modules.
//!
//! `cargo xtask arrows CRATE` prints the table of a crate, ready to paste into [`tables`].

mod scan;
mod tables;

use crate::sources::Source;
use scan::Arrow;
use std::collections::BTreeMap;
use tables::{Inside, TABLES};

/// A crate with more lines than this in `src` needs a table.
const LINES_MAX: usize = 5_000;

/// Checks every crate's module uses against its table, and that each large crate has one.
///
/// # Errors
/// One line for each use that a table does not allow, each crate without a table, and each outdated line of a
/// table.
pub(crate) fn check(sources: &[Source]) -> Result<String, Vec<String>> {
    let mut faults = Vec::new();
    let mut count = 0;
    let crates = crates(sources);
    for (krate, files) in &crates {
        let lines: usize = files.iter().map(|file| file.text.lines().count()).sum();
        match TABLES.iter().find(|table| table.krate == *krate) {
            Some(table) => {
                let arrows = scan::arrows(files);
                count += arrows.len();
                faults.extend(faults_of(table, &scan::modules(files), &arrows));
            }
            None if lines > LINES_MAX => faults.push(format!(
                "{krate} has {lines} lines and no table of its modules; `cargo xtask arrows {krate}` prints one for \
                 xtask/src/modules/tables.rs"
            )),
            None => {}
        }
    }
    for table in TABLES {
        if !crates.contains_key(table.krate) {
            faults.push(format!("tables.rs: there is no crate {}", table.krate));
        }
    }
    if faults.is_empty() {
        Ok(format!("{count} arrows inside {} crates", TABLES.len()))
    } else {
        Err(faults)
    }
}

/// Prints the table of a crate as it is now.
pub(crate) fn print(krate: &str, sources: &[Source]) -> bool {
    let crates = crates(sources);
    let Some(files) = crates.get(krate) else {
        let known: Vec<&str> = crates.into_keys().collect();
        eprintln!("there is no crate {krate}; there are: {}", known.join(", "));
        return false;
    };
    print!(
        "{}",
        table(krate, scan::modules(files), &scan::arrows(files))
    );
    true
}

/// The files below each crate's `src`, by the crate's directory without `crates/`.
fn crates(sources: &[Source]) -> BTreeMap<&str, Vec<&Source>> {
    let mut crates: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.path.ends_with(".rs")) {
        if let Some((directory, _)) = source.path.split_once("/src/") {
            let krate = directory.strip_prefix("crates/").unwrap_or(directory);
            crates.entry(krate).or_default().push(source);
        }
    }
    crates
}

fn faults_of(table: &Inside, modules: &[&str], arrows: &[Arrow<'_>]) -> Vec<String> {
    let krate = table.krate;
    let place = |module: &str| table.order.iter().position(|known| *known == module);
    let mut faults = Vec::new();
    for module in modules.iter().filter(|module| place(module).is_none()) {
        faults.push(format!("{krate}: module {module} is not in its table"));
    }
    for module in table
        .order
        .iter()
        .filter(|module| !modules.contains(module))
    {
        faults.push(format!(
            "{krate}: the table has a module {module}, the crate has not"
        ));
    }
    for arrow in arrows {
        let Arrow {
            from,
            to,
            path,
            line,
        } = arrow;
        let upwards = place(arrow.from) > place(arrow.to);
        let listed = table
            .besides
            .iter()
            .any(|(from, to, _)| (*from, *to) == (arrow.from, arrow.to));
        if !upwards && !listed {
            faults.push(format!(
                "{path}:{line}: {krate}::{from} -> {krate}::{to} is not allowed: {from} comes before {to} in the table"
            ));
        }
    }
    for (from, to, _) in table.besides {
        let is_there = arrows
            .iter()
            .any(|arrow| (arrow.from, arrow.to) == (*from, *to));
        if !is_there || place(from) > place(to) {
            faults.push(format!(
                "{krate}: the exception {from} -> {to} is not needed; remove it"
            ));
        }
    }
    faults
}

/// The source of a table: an order of the modules with few exceptions, and those exceptions, each of which
/// closes a cycle.
fn table(krate: &str, mut left: Vec<&str>, arrows: &[Arrow<'_>]) -> String {
    let mut order: Vec<&str> = Vec::new();
    let mut besides: Vec<&Arrow<'_>> = Vec::new();
    left.sort_unstable();
    while !left.is_empty() {
        let open = |module: &str| -> Vec<&Arrow<'_>> {
            arrows
                .iter()
                .filter(|arrow| arrow.from == module && left.contains(&arrow.to))
                .collect()
        };
        // Of the modules in a cycle, the one that most others wait for goes first, then the one with the fewest
        // exceptions.
        let waiting = |module: &str| {
            let users = arrows.iter().filter(|arrow| arrow.to == module);
            users.filter(|arrow| left.contains(&arrow.from)).count()
        };
        let next = left
            .iter()
            .copied()
            .min_by_key(|module| (open(module).len(), usize::MAX - waiting(module)))
            .unwrap_or_default();
        besides.extend(open(next));
        order.push(next);
        left.retain(|module| *module != next);
    }
    let mut text = format!("    Inside {{\n        krate: {krate:?},\n        order: &[\n");
    for module in order {
        text.push_str(&format!("            {module:?},\n"));
    }
    text.push_str("        ],\n        besides: &[");
    for arrow in &besides {
        text.push_str(&format!(
            "\n            // A circle: {}:{}\n            ({:?}, {:?}, \"WHY\"),",
            arrow.path, arrow.line, arrow.from, arrow.to
        ));
    }
    if !besides.is_empty() {
        text.push_str("\n        ");
    }
    text.push_str("],\n    },\n");
    text
}

#[cfg(test)]
mod tests;
