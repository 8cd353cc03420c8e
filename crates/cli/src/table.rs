//! Tables that stream: the first rows set the widths of the columns, and each later row is written as it arrives.

use std::io::{self, Write};

use control::rows::RowType;
pub use control::rows::Shown;
use serde_json::Value;

/// Rows whose widths decide the widths of the columns.
const LOOK_AHEAD: usize = 64;

/// A column: its heading, the field of the row, how it is shown.
pub type Column = (&'static str, &'static str, Shown);

/// The columns that a type of row declares.
pub fn columns(row: &RowType) -> Vec<Column> {
    let shown = row.shown().into_iter();
    shown
        .filter_map(|field| Some((field.heading?, field.name, field.shown)))
        .collect()
}

/// A table that is being written.
pub struct Table {
    columns: Vec<Column>,
    waiting: Vec<Vec<String>>,
    widths: Option<Vec<usize>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: Vec<Column>) -> Self {
        Self {
            columns,
            waiting: Vec::new(),
            widths: None,
        }
    }

    /// Adds a row, and writes it if the widths are known.
    pub fn push(&mut self, row: &Value, out: &mut impl Write) -> io::Result<()> {
        let cells: Vec<String> = self
            .columns
            .iter()
            .map(|(_, field, shown)| show(&row[*field], *shown))
            .collect();
        if self.widths.is_some() {
            return self.write(&cells, out);
        }
        self.waiting.push(cells);
        if self.waiting.len() >= LOOK_AHEAD {
            self.settle(out)
        } else {
            Ok(())
        }
    }

    /// Writes the remaining rows; of a table without rows, the headings.
    pub fn finish(mut self, out: &mut impl Write) -> io::Result<()> {
        if self.widths.is_none() {
            self.settle(out)
        } else {
            Ok(())
        }
    }

    fn settle(&mut self, out: &mut impl Write) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let width = |i: usize, heading: &str| {
            let widest = waiting
                .iter()
                .map(|row| row[i].chars().count())
                .max()
                .unwrap_or(0);
            widest.max(heading.chars().count())
        };
        let widths = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, column)| width(i, column.0));
        self.widths = Some(widths.collect());
        let headings: Vec<String> = self.columns.iter().map(|column| column.0.into()).collect();
        self.write(&headings, out)?;
        waiting.iter().try_for_each(|row| self.write(row, out))
    }

    fn write(&self, cells: &[String], out: &mut impl Write) -> io::Result<()> {
        let widths = self.widths.as_deref().unwrap_or(&[]);
        let last = cells.len() - 1;
        for (i, ((cell, width), column)) in cells.iter().zip(widths).zip(&self.columns).enumerate()
        {
            match (column.2, i == last) {
                (Shown::Text, true) => writeln!(out, "{cell}")?,
                (Shown::Text, false) => write!(out, "{cell:<width$}  ")?,
                (_, true) => writeln!(out, "{cell:>width$}")?,
                (_, false) => write!(out, "{cell:>width$}  ")?,
            }
        }
        Ok(())
    }
}

/// Writes the fields of one row below one another.
pub fn block(columns: &[Column], row: &Value, out: &mut impl Write) -> io::Result<()> {
    let width = columns
        .iter()
        .map(|column| column.0.len())
        .max()
        .unwrap_or(0);
    for (heading, field, shown) in columns {
        writeln!(out, "{heading:<width$}  {}", show(&row[*field], *shown))?;
    }
    Ok(())
}

/// A value for a terminal; `-` if it is absent. Control characters, which a peer may have put into its names, are
/// escaped.
pub fn show(value: &Value, shown: Shown) -> String {
    match (shown, value) {
        (Shown::Since, Value::Null) => "never".into(),
        (_, Value::Null) => "-".into(),
        (_, Value::String(text)) if text.is_empty() => "-".into(),
        (_, Value::Array(list)) if list.is_empty() => "-".into(),
        (_, Value::String(text)) => text.escape_debug().to_string().replace("\\'", "'"),
        (_, Value::Array(list)) => {
            let items: Vec<String> = list.iter().map(|item| show(item, shown)).collect();
            items.join(" ")
        }
        (Shown::Age | Shown::Since, Value::Number(number)) => age(number.as_f64().unwrap_or(0.0)),
        (Shown::Tenths, Value::Number(number)) if number.is_f64() => {
            format!("{:.1}", number.as_f64().unwrap_or(0.0))
        }
        (Shown::Percent, Value::Number(number)) => {
            format!("{:.2} %", number.as_f64().unwrap_or(0.0) * 100.0)
        }
        (_, Value::Object(fields)) => {
            let shown = |(name, value): (&String, &Value)| {
                format!("{} {}", name.replace('_', " "), show(value, shown))
            };
            let all: Vec<String> = fields.iter().map(shown).collect();
            if all.is_empty() {
                "-".into()
            } else {
                all.join(", ")
            }
        }
        (_, Value::Bool(is_so)) => if *is_so { "yes" } else { "no" }.into(),
        (Shown::Bytes, Value::Number(number)) => bytes(number.as_f64().unwrap_or(0.0)),
        (Shown::Bits, Value::Number(number)) => bits(number.as_u64().unwrap_or(0)),
        (_, other) => other.to_string(),
    }
}

/// Bits per second as 20 Mbit/s.
pub fn bits(rate: u64) -> String {
    let (unit, name) = match rate {
        0..1_000 => return format!("{rate} bit/s"),
        1_000..1_000_000 => (1_000, "kbit/s"),
        1_000_000..1_000_000_000 => (1_000_000, "Mbit/s"),
        _ => (1_000_000_000, "Gbit/s"),
    };
    let thousandths = u128::from(rate) * 1_000 / unit;
    let text = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} {name}")
}

/// Seconds as 4.2s, 3m05s, 2h07m or 5d03h.
pub fn age(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        0..60 => format!("{seconds:.1}s"),
        60..3_600 => format!("{}m{:02}s", whole / 60, whole % 60),
        3_600..86_400 => format!("{}h{:02}m", whole / 3_600, whole % 3_600 / 60),
        _ => format!("{}d{:02}h", whole / 86_400, whole % 86_400 / 3_600),
    }
}

fn bytes(number: f64) -> String {
    if number < 10_240.0 {
        format!("{number:.0} B")
    } else if number < 10_485_760.0 {
        format!("{:.0} KiB", number / 1024.0)
    } else {
        format!("{:.1} MiB", number / 1_048_576.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const COLUMNS: &[Column] = &[
        ("ID", "id", Shown::Number),
        ("HOST", "host", Shown::Text),
        ("UP", "up", Shown::Age),
    ];

    fn drawn(rows: &[Value]) -> String {
        let mut out = Vec::new();
        let mut table = Table::new(COLUMNS.to_vec());
        rows.iter()
            .for_each(|row| table.push(row, &mut out).unwrap());
        table.finish(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_as_wide_as_the_first_rows_need() {
        let rows = [
            json!({"id": 7, "host": "lac", "up": 4.25}),
            json!({"id": 12345, "host": "a-long-name"}),
        ];
        assert_eq!(
            drawn(&rows),
            "   ID  HOST           UP\n    7  lac          4.2s\n12345  a-long-name     -\n"
        );
    }

    #[test]
    fn rows_are_written_before_the_last_is_known() {
        let mut out = Vec::new();
        let mut table = Table::new(COLUMNS.to_vec());
        for id in 0..LOOK_AHEAD + 1 {
            table
                .push(&json!({"id": id, "host": "x"}), &mut out)
                .unwrap();
        }
        let lines = out.iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(lines, LOOK_AHEAD + 2);
    }

    #[test]
    fn a_table_without_rows_has_its_headings() {
        assert_eq!(drawn(&[]), "ID  HOST  UP\n");
    }

    #[test]
    fn a_peers_name_cannot_steer_the_terminal() {
        let text = drawn(&[json!({"id": 1, "host": "a\u{1b}[2Jb"})]);
        assert!(
            !text.contains('\u{1b}') && text.contains("a\\u{1b}[2Jb"),
            "{text}"
        );
    }

    #[test]
    fn what_never_was_has_no_age() {
        assert_eq!(show(&Value::Null, Shown::Since), "never");
        assert_eq!(show(&json!(185.0), Shown::Since), "3m05s");
        assert_eq!(show(&Value::Null, Shown::Age), "-");
    }

    #[test]
    fn ages_and_sizes_have_the_unit_that_fits() {
        assert_eq!(
            [age(4.21), age(185.0), age(7620.0), age(442_800.0)],
            ["4.2s", "3m05s", "2h07m", "5d03h"]
        );
        assert_eq!(
            [bytes(512.0), bytes(20_480.0), bytes(1e8)],
            ["512 B", "20 KiB", "95.4 MiB"]
        );
    }
}
