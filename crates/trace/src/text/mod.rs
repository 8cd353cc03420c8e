//! Prints the statistics of this crate as tcptrace does, with the same labels, columns and units, so that scripts for
//! one can read the other. `docs/trace-differences.md` explains where the values differ.
//!
//! Everything is written into a buffer of the caller. This module reads no clock, file or name server. [`Names`] turns
//! addresses and ports into text, and a [`jiff::tz::TimeZone`] turns times into local time.
//!
//! The output of tcptrace 6.6.7 is the only specification.

mod brief;
mod digits;
mod flow;
mod head;
mod long;
mod packet;
mod sheet;
mod time;
mod values;

pub use crate::span::span;
pub use brief::{brief, brief_name};
pub use flow::{flow_brief, flow_long, flow_name};
pub use head::{Head, ReportCounts, arguments, no_udp, udp_head};
pub use long::{LongOptions, long};
pub use packet::{Frame, Print, Printed, packet};
pub use time::{Elapsed, LocalTime, zone_without_rule};
pub use values::{values, values_header};

use core::fmt::{self, Write};
use core::net::IpAddr;

/// Turns addresses and ports into text.
pub trait Names {
    /// Writes a host's name, or its address.
    ///
    /// # Errors
    /// `out` cannot be written.
    fn host(&self, address: IpAddr, out: &mut dyn Write) -> fmt::Result;

    /// Writes a TCP or UDP port's name, or its number.
    ///
    /// # Errors
    /// `out` cannot be written.
    fn port(&self, port: u16, out: &mut dyn Write) -> fmt::Result;
}

/// Prints addresses and ports as numbers (`-n`).
#[derive(Debug, Clone, Copy, Default)]
pub struct Numeric;

impl Names for Numeric {
    fn host(&self, address: IpAddr, out: &mut dyn Write) -> fmt::Result {
        write!(out, "{address}")
    }

    fn port(&self, port: u16, out: &mut dyn Write) -> fmt::Result {
        write!(out, "{port}")
    }
}

/// What the report of a connection or flow needs in addition to the statistics.
#[derive(Clone, Copy)]
pub struct About<'a> {
    /// Names of hosts and ports.
    pub names: &'a dyn Names,
    /// Local time.
    pub zone: &'a jiff::tz::TimeZone,
    /// The number of its pair of letters, from 1. Connections and, if they are reported, UDP flows get their letters in
    /// the order of their first packets.
    pub pair: u64,
    /// The file its first packet is in.
    pub file: &'a str,
    /// Time of the capture's last packet, in nanoseconds since 1970. The silence of an open connection lasts until
    /// then.
    pub end: i64,
}

/// The letters of both ends: `a` and `b` for pair 1, `c` and `d` for pair 2, and `aa` and `ab` after `z`.
///
/// Pair 0 does not exist, and gets the letters of pair 1.
#[must_use]
pub fn letters(pair: u64) -> (String, String) {
    let first = u128::from(pair.saturating_sub(1)) * 2;
    (letter(first), letter(first + 1))
}

/// The letters of one end, counted from 0: numbers to the base of 26 without a zero.
fn letter(mut index: u128) -> String {
    let mut reversed = String::new();
    loop {
        reversed.push(char::from(b'a' + (index % 26) as u8));
        index /= 26;
        if index == 0 {
            break;
        }
        index -= 1;
    }
    reversed.chars().rev().collect()
}

/// Writes host and port of one end.
fn endpoint(out: &mut dyn Write, names: &dyn Names, end: (IpAddr, u16)) -> fmt::Result {
    names.host(end.0, out)?;
    out.write_char(':')?;
    names.port(end.1, out)
}

/// Both ends and their letters: `host:port - host:port (a2b)`.
fn name_of(
    names: &dyn Names,
    a: (IpAddr, u16),
    b: (IpAddr, u16),
    pair: u64,
    out: &mut dyn Write,
) -> fmt::Result {
    endpoint(out, names, a)?;
    out.write_str(" - ")?;
    endpoint(out, names, b)?;
    let (a, b) = letters(pair);
    write!(out, " ({a}2{b})")
}

/// The two lines that name the hosts at the head of a long report.
fn hosts(
    out: &mut dyn Write,
    about: &About<'_>,
    a: (IpAddr, u16),
    b: (IpAddr, u16),
) -> fmt::Result {
    let (first, second) = letters(about.pair);
    for (letters, end) in [(first, a), (second, b)] {
        write!(out, "\thost {:<4}      ", letters + ":")?;
        endpoint(out, about.names, end)?;
        out.write_char('\n')?;
    }
    Ok(())
}

/// The line above the two columns of a long report.
fn column_heads(out: &mut dyn Write, pair: u64) -> fmt::Result {
    let (a, b) = letters(pair);
    writeln!(out, "   {a}->{b}:\t\t\t      {b}->{a}:")
}

#[cfg(test)]
mod tests;
