//! Reads the tins of the kernel's cake from tc's JSON or text. A tin is a queue of cake with its own priority.

use super::loose::Item;
use super::model::{Delays, Numbers};

/// More tins than the kernel has.
const TINS_MAX: usize = 8;

/// One tin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tin {
    /// "Best Effort".
    pub(super) name: String,
    pub(super) numbers: Numbers,
}

impl Tin {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            numbers: Numbers {
                delays: Some(Delays::default()),
                ..Numbers::default()
            },
        }
    }
}

/// The names that tc's text gives to the tins; its JSON has none.
fn names(count: usize) -> Vec<String> {
    let known: &[&str] = match count {
        3 => &["Bulk", "Best Effort", "Voice"],
        4 => &["Bulk", "Best Effort", "Video", "Voice"],
        _ => return (0..count).map(|tin| format!("Tin {tin}")).collect(),
    };
    known.iter().map(|&name| name.to_owned()).collect()
}

/// The tins of tc's JSON.
pub(super) fn of_json(items: &[Item]) -> Vec<Tin> {
    let items = &items[..items.len().min(TINS_MAX)];
    let tins = names(items.len()).into_iter().zip(items);
    tins.map(|(name, item)| {
        let number = |key| item.text(key).and_then(|text| text.parse().ok());
        let number = |key| number(key).unwrap_or(0);
        let mut tin = Tin::new(&name);
        tin.numbers = Numbers {
            bytes: number("sent_bytes"),
            packets: number("sent_packets"),
            drops: number("drops"),
            overlimits: 0,
            backlog_bytes: number("backlog_bytes"),
            backlog_packets: 0,
            ecn_mark: number("ecn_mark"),
            delays: Some(Delays {
                average_us: number("avg_delay_us"),
                peak_us: number("peak_delay_us"),
                sparse_us: number("base_delay_us"),
            }),
        };
        tin
    })
    .collect()
}

/// The tins that a line of tc's text names, if it is the head of their table.
pub(super) fn of_head(line: &str) -> Option<Vec<Tin>> {
    let cells = line.split("  ").map(str::trim);
    let cells: Vec<&str> = cells.filter(|cell| !cell.is_empty()).collect();
    let is_head = !cells.is_empty() && cells.len() <= TINS_MAX && cells == names(cells.len());
    is_head.then(|| cells.into_iter().map(Tin::new).collect())
}

/// Reads a line of the table below its head; returns whether it is one.
pub(super) fn read_row(words: &[&str], tins: &mut [Tin]) -> bool {
    let Some((key, cells)) = words.split_first() else {
        return false;
    };
    if tins.is_empty() || cells.len() != tins.len() {
        return false;
    }
    for (tin, cell) in tins.iter_mut().zip(cells) {
        let numbers = &mut tin.numbers;
        let delays = numbers.delays.get_or_insert_default();
        match *key {
            "pk_delay" => delays.peak_us = micros(cell),
            "av_delay" => delays.average_us = micros(cell),
            "sp_delay" => delays.sparse_us = micros(cell),
            "backlog" => numbers.backlog_bytes = octets(cell),
            "pkts" => numbers.packets = cell.parse().unwrap_or(0),
            "bytes" => numbers.bytes = cell.parse().unwrap_or(0),
            "drops" => numbers.drops = cell.parse().unwrap_or(0),
            "marks" => numbers.ecn_mark = cell.parse().unwrap_or(0),
            _ => {}
        }
    }
    true
}

/// "29.1ms", "5us" or "1.2s" in microseconds.
fn micros(cell: &str) -> u64 {
    scaled(cell, &[("us", 1.0), ("ms", 1e3), ("s", 1e6)])
}

/// "1514b", "3Kb" or "2Mb" in bytes.
fn octets(cell: &str) -> u64 {
    scaled(cell, &[("Kb", 1_024.0), ("Mb", 1_048_576.0), ("b", 1.0)])
}

/// A number with the first of these units that it ends in.
fn scaled(cell: &str, units: &[(&str, f64)]) -> u64 {
    let found = units.iter().find_map(|(unit, scale)| {
        let number: f64 = cell.strip_suffix(unit)?.parse().ok()?;
        Some((number * scale).round() as u64)
    });
    found.unwrap_or(0)
}
