//! Tables of figures, as text, CSV and HTML.

use plot::escape;
use plot::number::grouped;
use serde::{Serialize, Serializer};

/// A column's name and unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// What the column holds.
    pub name: String,
    /// The unit of its figures; empty for a count or text.
    pub unit: String,
}

impl Column {
    /// `name (unit)`, or the name alone.
    fn heading(&self) -> String {
        if self.unit.is_empty() {
            self.name.clone()
        } else {
            format!("{} ({})", self.name, self.unit)
        }
    }
}

/// One entry of a table.
///
/// In JSON a text is a string, a number is a number as measured, and a missing
/// or infinite value is null.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A figure, with the number of decimals shown to people.
    Number {
        /// The figure as measured.
        value: f64,
        /// Decimals in text and HTML; files hold the unrounded figure.
        decimals: usize,
    },
    /// Not measured, or not published.
    Missing,
}

impl Cell {
    /// A figure shown with `decimals` decimals.
    pub const fn num(value: f64, decimals: usize) -> Self {
        Self::Number { value, decimals }
    }

    /// The entry as shown to people.
    pub fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number { value, decimals } => grouped(*value, *decimals),
            Self::Missing => "-".into(),
        }
    }

    /// The entry as a CSV field, quoted if RFC 4180 requires it.
    fn csv(&self) -> String {
        match self {
            Self::Text(text) => csv_field(text),
            Self::Number { value, .. } if value.is_finite() => value.to_string(),
            Self::Number { .. } | Self::Missing => String::new(),
        }
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Number { value, .. } if !value.is_finite() => serializer.serialize_none(),
            // Counts look like counts in JSON too.
            Self::Number { value, .. } if value.fract() == 0.0 && value.abs() < 9e15 => {
                serializer.serialize_i64(*value as i64)
            }
            Self::Number { value, .. } => serializer.serialize_f64(*value),
            Self::Missing => serializer.serialize_none(),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Self::num(count as f64, 0)
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        Self::num(count as f64, 0)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Self::Missing, Into::into)
    }
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// One entry per column; missing entries at the end of a row are shown as missing.
    pub cells: Vec<Cell>,
    /// Whether this is the bare loop of the same run, which is a lower bound.
    pub floor: bool,
}

/// A table with a title and headings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// What the table shows.
    pub title: String,
    /// The headings.
    pub columns: Vec<Column>,
    /// The figures.
    pub rows: Vec<Row>,
}

impl Table {
    /// An empty table whose columns are `(name, unit)`.
    pub fn new(title: impl Into<String>, columns: &[(&str, &str)]) -> Self {
        let column = |(name, unit): &(&str, &str)| Column {
            name: (*name).into(),
            unit: (*unit).into(),
        };
        Self {
            title: title.into(),
            columns: columns.iter().map(column).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(Row {
            cells: cells.into_iter().collect(),
            floor: false,
        });
    }

    /// Adds a row that is the floor: the bare loop of the same run.
    pub fn floor(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(Row {
            cells: cells.into_iter().collect(),
            floor: true,
        });
    }

    /// Row `row`'s entry in column `column` as shown.
    fn shown(&self, row: &Row, column: usize) -> String {
        row.cells.get(column).unwrap_or(&Cell::Missing).shown()
    }

    /// Whether a column holds figures, which are right-aligned.
    fn is_numeric(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|r| r.cells.get(column));
        cells.any(|c| matches!(c, Cell::Number { .. }))
            && !self
                .rows
                .iter()
                .any(|r| matches!(r.cells.get(column), Some(Cell::Text(_))))
    }

    fn has_floor(&self) -> bool {
        self.rows.iter().any(|r| r.floor)
    }

    /// The table with aligned columns; a floor row starts with `=`.
    pub fn to_text(&self) -> String {
        let headings: Vec<String> = self.columns.iter().map(Column::heading).collect();
        let mut widths: Vec<usize> = headings.iter().map(|h| h.chars().count()).collect();
        for row in &self.rows {
            for (i, width) in widths.iter_mut().enumerate() {
                *width = (*width).max(self.shown(row, i).chars().count());
            }
        }
        let line = |mark: &str, entries: &[String]| {
            let mut text = mark.to_owned();
            for (i, entry) in entries.iter().enumerate() {
                let pad = " ".repeat(widths[i] - entry.chars().count());
                let gap = if i == 0 { "" } else { "  " };
                let (before, after) = if self.is_numeric(i) {
                    (&*pad, "")
                } else {
                    ("", &*pad)
                };
                text.push_str(&format!("{gap}{before}{entry}{after}"));
            }
            format!("{}\n", text.trim_end())
        };
        let mut out = format!("{}\n{}", self.title, line("  ", &headings));
        let rule: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
        out.push_str(&line("  ", &rule));
        for row in &self.rows {
            let entries: Vec<String> = (0..widths.len()).map(|i| self.shown(row, i)).collect();
            out.push_str(&line(if row.floor { "= " } else { "  " }, &entries));
        }
        if self.has_floor() {
            out.push_str("  (= is the bare loop of the same run: the floor under the others)\n");
        }
        out
    }

    /// The table as CSV (RFC 4180), with a last column `floor` if any row is a floor.
    pub fn to_csv(&self) -> String {
        let floor = self.has_floor();
        let mut header: Vec<String> = self
            .columns
            .iter()
            .map(|c| csv_field(&c.heading()))
            .collect();
        header.extend(floor.then(|| "floor".into()));
        let mut out = header.join(",") + "\r\n";
        for row in &self.rows {
            let cells =
                (0..self.columns.len()).map(|i| row.cells.get(i).unwrap_or(&Cell::Missing).csv());
            let mut fields: Vec<String> = cells.collect();
            fields.extend(floor.then(|| if row.floor { "yes".into() } else { "no".into() }));
            out += &(fields.join(",") + "\r\n");
        }
        out
    }

    /// The table as an HTML `table` element; a floor row has the class `floor`.
    pub fn to_html(&self) -> String {
        let mut out = format!(
            "<table>\n<caption>{}</caption>\n<thead><tr>",
            escape(&self.title)
        );
        let class = |i: usize| {
            if self.is_numeric(i) {
                " class=\"n\""
            } else {
                ""
            }
        };
        for (i, column) in self.columns.iter().enumerate() {
            out += &format!(
                "<th scope=\"col\"{}>{}</th>",
                class(i),
                escape(&column.heading())
            );
        }
        out += "</tr></thead>\n<tbody>\n";
        for row in &self.rows {
            out += if row.floor {
                "<tr class=\"floor\">"
            } else {
                "<tr>"
            };
            for i in 0..self.columns.len() {
                out += &format!("<td{}>{}</td>", class(i), escape(&self.shown(row, i)));
            }
            out += "</tr>\n";
        }
        out += "</tbody></table>\n";
        if self.has_floor() {
            out += "<p class=\"small\">Marked rows are the bare loop of the same run: the floor under the others.</p>\n";
        }
        out
    }
}

fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}
