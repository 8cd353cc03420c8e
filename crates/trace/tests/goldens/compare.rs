//! Compares two reports value by value.

use std::collections::BTreeMap;

/// One value that differs from tcptrace's.
#[derive(Debug, Clone)]
pub(crate) struct Difference {
    pub(crate) capture: String,
    pub(crate) kind: String,
    /// The connection's number, 0 for what belongs to none.
    pub(crate) connection: u32,
    /// `a`, `b`, or `-` where there is no direction.
    pub(crate) direction: String,
    pub(crate) field: String,
    pub(crate) tcptrace: String,
    pub(crate) ours: String,
    /// The rule in `docs/trace-differences.md` that explains it.
    pub(crate) rule: String,
}

/// The value of a line that only one of two reports has.
const ABSENT: &str = "(absent)";

/// Text in every report of a file that could be read.
const SEEN: &str = " packets seen, ";

impl Difference {
    pub(crate) const HEAD: &str =
        "capture\toutput\tconnection\tdirection\tfield\ttcptrace\tours\trule";

    pub(crate) fn parse(line: &str) -> Difference {
        let cells: Vec<&str> = line.split('\t').collect();
        let &[
            capture,
            kind,
            connection,
            direction,
            field,
            tcptrace,
            ours,
            rule,
        ] = cells.as_slice()
        else {
            panic!("not eight columns: {line}");
        };
        Difference {
            capture: capture.into(),
            kind: kind.into(),
            connection: connection.parse().expect("a number"),
            direction: direction.into(),
            field: field.into(),
            tcptrace: tcptrace.into(),
            ours: ours.into(),
            rule: rule.into(),
        }
    }

    /// All but the rule.
    pub(crate) fn identity(&self) -> String {
        format!(
            "{}\t{}\t{}\t{}\t{}\t{}\t{}",
            self.capture,
            self.kind,
            self.connection,
            self.direction,
            self.field,
            self.tcptrace,
            self.ours
        )
    }
}

/// A value, and the text of its line up to the next value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cell {
    value: String,
    raw: String,
}

/// Where a value stands: connection, direction, field, and which of several fields of that name it is.
type Key = (u32, &'static str, String, u32);

/// All values of a report, in order.
fn cells(report: &str) -> Vec<(Key, Cell)> {
    let mut all = Vec::new();
    let mut connection = 0;
    let mut seen: BTreeMap<(u32, &str, String), u32> = BTreeMap::new();
    for line in report.lines() {
        if let Some(rest) = line
            .strip_prefix("TCP connection ")
            .or_else(|| line.strip_prefix("Packet "))
            && let Ok(number) = rest.trim_end_matches(':').parse()
        {
            connection = number;
        }
        for (direction, field, raw, value) in split(line) {
            let nth = seen
                .entry((connection, direction, field.clone()))
                .or_insert(0);
            *nth += 1;
            let key = (connection, direction, field, *nth);
            all.push((key, Cell { value, raw }));
        }
    }
    all
}

/// The values of one line: direction, field, the text that has to be equal if the value is, and the value.
fn split(line: &str) -> Vec<(&'static str, String, String, String)> {
    let value = |raw: &str| raw.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.starts_with("     ")
        && let Some((label, _)) = line[5..].split_once(':')
        && let Some(second) = line[6..].find(&format!("     {label}:"))
    {
        let (left, right) = line.split_at(6 + second);
        let after = 5 + label.len() + 1;
        return vec![
            ("a", label.into(), left.into(), value(&left[after..])),
            ("b", label.into(), right.into(), value(&right[after..])),
        ];
    }
    let (field, rest) = match line.split_once(':') {
        Some((field, rest)) if !rest.is_empty() => (field.trim(), rest),
        _ => (line.trim(), line),
    };
    vec![("-", field.into(), line.into(), value(rest))]
}

/// What differs between two reports: a value for each field that they have both, or a line that only one has.
///
/// Whatever is equal in value but not to the octet differs, too. What both have must be in the same order.
pub(crate) fn differences(capture: &str, kind: &str, golden: &str, ours: &str) -> Vec<Difference> {
    if !golden.contains(SEEN) {
        // tcptrace gave up at the file's beginning.
        return vec![Difference {
            capture: capture.into(),
            kind: kind.into(),
            connection: 0,
            direction: "-".into(),
            field: "whole report".into(),
            tcptrace: ABSENT.into(),
            ours: ours
                .lines()
                .find(|line| line.contains(SEEN))
                .unwrap_or(ABSENT)
                .into(),
            rule: String::new(),
        }];
    }
    let (golden, ours) = (cells(golden), cells(ours));
    let of_ours: BTreeMap<&Key, &Cell> = ours.iter().map(|(key, cell)| (key, cell)).collect();
    let of_golden: BTreeMap<&Key, &Cell> = golden.iter().map(|(key, cell)| (key, cell)).collect();
    let common = |keys: &[(Key, Cell)], other: &BTreeMap<&Key, &Cell>| -> Vec<Key> {
        let keys = keys.iter().map(|(key, _)| key);
        keys.filter(|key| other.contains_key(key))
            .cloned()
            .collect()
    };
    assert_eq!(
        common(&golden, &of_ours),
        common(&ours, &of_golden),
        "{capture}: the order of fields"
    );
    let mut found = Vec::new();
    let mut note = |key: &Key, tcptrace: &str, ours: &str| {
        let (connection, direction, field, _) = key.clone();
        found.push(Difference {
            capture: capture.into(),
            kind: kind.into(),
            connection,
            direction: direction.into(),
            field,
            tcptrace: tcptrace.into(),
            ours: ours.into(),
            rule: String::new(),
        });
    };
    for (key, cell) in &golden {
        match of_ours.get(key) {
            None => note(key, &cell.value, ABSENT),
            Some(other) if other.value != cell.value => note(key, &cell.value, &other.value),
            Some(other) if other.raw != cell.raw => note(key, cell.raw.trim(), other.raw.trim()),
            Some(_) => {}
        }
    }
    for (key, cell) in &ours {
        if !of_golden.contains_key(key) {
            note(key, ABSENT, &cell.value);
        }
    }
    found
}
