//! The choice of columns that JSON, Parquet and separated values have.

use std::fmt::Write as _;
use std::sync::LazyLock;

use strsim::osa_distance;

use super::{Get, Placed, rows};
use crate::Connection;

/// The chosen columns, and `,"name":` for each, so that each name is quoted only once.
pub struct Table {
    /// The columns, in order.
    pub columns: Vec<&'static Placed>,
    pub(crate) keys: Vec<String>,
}

/// Every column but those of details.
pub static PLAIN: LazyLock<Table> = LazyLock::new(|| Table::of(super::ALL.iter().collect()));

/// Every column.
pub static DETAILED: LazyLock<Table> =
    LazyLock::new(|| Table::of(super::ALL.iter().chain(super::DETAILS.iter()).collect()));

/// Columns that a wrong name is compared with in a message.
const NEAR_MAX: usize = 5;

impl Table {
    fn of(columns: Vec<&'static Placed>) -> Table {
        let keys = columns
            .iter()
            .map(|placed| format!(",\"{}\":", placed.name));
        Table {
            keys: keys.collect(),
            columns,
        }
    }

    /// The columns of a list of names, in its order.
    ///
    /// # Errors
    /// No column has a name, or a name is there twice.
    pub fn parse(list: &str) -> Result<Table, String> {
        let mut chosen: Vec<&'static Placed> = Vec::new();
        let names = list.split(|c: char| c == ',' || c.is_whitespace());
        for name in names.filter(|name| !name.is_empty()) {
            let placed = DETAILED.columns.iter().find(|placed| placed.name == name);
            let placed = placed.ok_or_else(|| unknown(name))?;
            if chosen.iter().any(|other| other.name == name) {
                return Err(format!("the column {name} is there twice"));
            }
            chosen.push(placed);
        }
        match chosen.is_empty() {
            true => {
                Err("write names of columns, separated by commas (docs/trace-columns.md)".into())
            }
            false => Ok(Table::of(chosen)),
        }
    }

    /// Whether a column needs the analysis to note details.
    #[must_use]
    pub fn needs_details(&self) -> bool {
        let detail = |placed: &&Placed| {
            let details = super::DETAILS.iter();
            // The identifier follows from addresses and ports.
            placed.name != "community_id"
                && details.into_iter().any(|other| other.name == placed.name)
        };
        self.columns.iter().copied().any(|placed| detail(&placed))
    }

    /// Appends the names as a line of separated values.
    pub fn header(&self, out: &mut String, separator: &str) {
        for (at, placed) in self.columns.iter().enumerate() {
            out.push_str(if at > 0 { separator } else { "" });
            out.push_str(&placed.name);
        }
        out.push('\n');
    }

    /// Appends a connection as a line of separated values. An absent value is empty. Text that has the separator, a quote
    /// or a line break is quoted (RFC 4180).
    pub fn line(&self, out: &mut String, connection: &Connection, end: i64, separator: &str) {
        let rows = rows(connection, end);
        for (at, placed) in self.columns.iter().enumerate() {
            out.push_str(if at > 0 { separator } else { "" });
            let row = &rows[placed.side];
            // Formatting into a String cannot fail.
            let _ = match placed.column.get {
                Get::Count(get) => write!(out, "{}", get(row)),
                Get::Maybe(get) => get(row).map_or(Ok(()), |value| write!(out, "{value}")),
                Get::Moment(get) => write!(out, "{}", get(row)),
                Get::Span(get) | Get::Time(get) => {
                    get(row).map_or(Ok(()), |value| write!(out, "{value}"))
                }
                Get::Real(get) => get(row).map_or(Ok(()), |value| write!(out, "{value:?}")),
                Get::Flag(get) => write!(out, "{}", get(row)),
                Get::Name(get) => quoted(out, &get(row), separator),
                Get::Text(get) => get(row).map_or(Ok(()), |value| quoted(out, &value, separator)),
            };
        }
        out.push('\n');
    }
}

fn quoted(out: &mut String, text: &str, separator: &str) -> std::fmt::Result {
    if text.contains(separator) || text.contains(['"', '\n', '\r']) {
        return write!(out, "\"{}\"", text.replace('"', "\"\""));
    }
    out.write_str(text)
}

/// The message for an unknown name, with those that are near.
fn unknown(name: &str) -> String {
    let lower = name.to_ascii_lowercase().replace('-', "_");
    let mut near: Vec<(usize, &str)> = (DETAILED.columns.iter())
        .filter_map(|placed| {
            let known = placed.name.as_str();
            let rest = known.trim_start_matches("a2b_").trim_start_matches("b2a_");
            let contains = lower.len() > 2 && known.contains(&lower);
            let far = osa_distance(&lower, known).min(osa_distance(&lower, rest) + 1);
            let is_near = contains || far <= 1 + lower.len() / 4;
            is_near.then_some((if contains { 0 } else { far }, known))
        })
        .collect();
    near.sort_unstable();
    let near: Vec<&str> = near
        .into_iter()
        .map(|(_, name)| name)
        .take(NEAR_MAX)
        .collect();
    match near.is_empty() {
        true => format!("no column is called '{name}' (docs/trace-columns.md lists them)"),
        false => format!("no column is called '{name}'; near are {}", near.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_in_the_order_of_the_list_and_unknown_ones_name_near_ones() {
        let table = Table::parse("a2b_rtt_min_ns,connection b_port").unwrap();
        let mut text = String::new();
        table.header(&mut text, ",");
        assert_eq!(text, "a2b_rtt_min_ns,connection,b_port\n");
        let wrong = |list| Table::parse(list).err().unwrap();
        assert!(
            wrong("a2b_rtt_mni_ns").contains("near are a2b_rtt_min_ns"),
            "{}",
            wrong("a2b_rtt_mni_ns")
        );
        assert!(wrong("server_name").contains("near are tls_server_name"));
        assert!(wrong("zzzzzzzzzzzz").contains("docs/trace-columns.md"));
        assert!(wrong("connection,connection").contains("twice"));
        assert!(wrong(" ,").contains("write names"));
    }

    #[test]
    fn only_columns_of_details_need_them() {
        assert!(
            !Table::parse("connection,community_id")
                .unwrap()
                .needs_details()
        );
        assert!(
            Table::parse("connection,a2b_ttl_min")
                .unwrap()
                .needs_details()
        );
    }

    #[test]
    fn an_absent_value_is_empty_and_text_with_the_separator_is_quoted() {
        let table = Table::parse("connection,a2b_rtt_min_ns,complete,a_address").unwrap();
        let mut text = String::new();
        table.line(&mut text, &Connection::default(), 0, ":");
        assert_eq!(text, "0::false:\"::\"\n");
    }
}
