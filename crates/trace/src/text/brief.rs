//! The brief report: one line for each connection.

use super::{Names, letters, name_of};
use crate::connection::Connection;
use core::fmt::{self, Write};

/// Writes the name of a connection in the brief report, `host:port - host:port (a2b)`. [`brief`] pads it to the width
/// of the longest name.
///
/// # Errors
/// `out` cannot be written.
pub fn brief_name(
    out: &mut dyn Write,
    connection: &Connection,
    names: &dyn Names,
    pair: u64,
) -> fmt::Result {
    name_of(names, connection.a_end(), connection.b_end(), pair, out)
}

/// Writes the line of the brief report, and a warning below it if there are hardware duplicates.
///
/// `name` is from [`brief_name`], and `width` is the width of the longest name.
///
/// # Errors
/// `out` cannot be written.
pub fn brief(
    out: &mut dyn Write,
    connection: &Connection,
    name: &str,
    width: usize,
    pair: u64,
) -> fmt::Result {
    let (a, b) = (&connection.a, &connection.b);
    write!(
        out,
        "{:3}: {name:<width$} {:4}> {:4}<",
        connection.number, a.packets, b.packets
    )?;
    if connection.is_complete() {
        out.write_str("  (complete)")?;
    }
    if connection.is_reset() {
        out.write_str("  (reset)")?;
    }
    if a.packets == 0 || b.packets == 0 {
        out.write_str("  (unidirectional)")?;
    }
    out.write_char('\n')?;
    if a.hardware_duplicates == 0 && b.hardware_duplicates == 0 {
        return Ok(());
    }
    let (first, second) = letters(pair);
    for (from, to, direction) in [(&first, &second, a), (&second, &first, b)] {
        if direction.hardware_duplicates > 0 {
            writeln!(
                out,
                "    ** Warning, {from}2{to}: detected {} hardware duplicate(s) (same seq # and IP ID)",
                direction.hardware_duplicates
            )?;
        }
    }
    Ok(())
}
