//! The head of a report, before the connections.

use super::Elapsed;
use core::fmt::{self, Write};

/// Counts of the whole input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReportCounts {
    /// Packets with an IP header.
    pub packets: u64,
    /// TCP packets that were analysed.
    pub tcp: u64,
    /// UDP packets that were analysed; `None` if UDP was not.
    pub udp: Option<u64>,
    /// TCP connections.
    pub connections: u64,
    /// Packets too short for their header or options, in the capture or as sent.
    pub too_short: u64,
    /// Time from the first packet to the last, in nanoseconds.
    pub elapsed: i64,
    /// Files that were read.
    pub files: usize,
    /// Packets with a wrong checksum of IP, TCP and UDP; `None` if checksums were not verified.
    pub bad_checksums: Option<[u64; 3]>,
}

/// Style of the head.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// The brief report follows, not the long one.
    pub brief: bool,
    /// Separated values follow, so each line starts with `#`.
    pub values: bool,
    /// Packets that are too short have been reported, so the hint about it is left out.
    pub warned: bool,
}

impl Head {
    fn comment(self) -> &'static str {
        if self.values { "#" } else { "" }
    }
}

/// Writes the number of files, and an empty line. This is printed before the files are read.
///
/// # Errors
/// `out` cannot be written.
pub fn arguments(out: &mut dyn Write, files: &[&str], head: Head) -> fmt::Result {
    let count = files.len();
    writeln!(
        out,
        "{}{count} arg{} remaining, starting with '{}'\n",
        head.comment(),
        if count > 1 { "s" } else { "" },
        files.first().unwrap_or(&"")
    )
}

impl Head {
    /// Writes the head, after all files have been read.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn write(self, out: &mut dyn Write, counts: &ReportCounts) -> fmt::Result {
        self.totals(out, counts)?;
        let comment = self.comment();
        if counts.tcp == 0 {
            return writeln!(out, "{comment}no traced TCP packets");
        }
        writeln!(out, "{comment}TCP connection info:")?;
        if !self.brief {
            let count = counts.connections;
            let plural = if count == 1 { "" } else { "s" };
            writeln!(out, "{comment}{count} TCP connection{plural} traced:")?;
        }
        self.too_short(out, counts.too_short)
    }

    /// Writes only packets, time and checksums, for a report without connections.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn totals(self, out: &mut dyn Write, counts: &ReportCounts) -> fmt::Result {
        let comment = self.comment();
        write!(
            out,
            "{comment}{} packets seen, {} TCP packets traced",
            counts.packets, counts.tcp
        )?;
        if let Some(udp) = counts.udp {
            write!(out, ", {udp} UDP packets traced")?;
        }
        writeln!(
            out,
            "\n{comment}trace {} elapsed time: {}",
            if counts.files == 1 { "file" } else { "files" },
            Elapsed(counts.elapsed)
        )?;
        if let Some([ip, tcp, udp]) = counts.bad_checksums {
            writeln!(out, "{comment}bad IP checksums:  {ip}")?;
            writeln!(out, "{comment}bad TCP checksums: {tcp}")?;
            if counts.udp.is_some() {
                writeln!(out, "{comment}bad UDP checksums: {udp}")?;
            }
        }
        Ok(())
    }

    fn too_short(self, out: &mut dyn Write, count: u64) -> fmt::Result {
        if count == 0 {
            return Ok(());
        }
        let comment = self.comment();
        writeln!(
            out,
            "{comment}*** {count} packets were too short to process at some point"
        )?;
        if !self.warned {
            writeln!(out, "{comment}\t(use -w option to show details)")?;
        }
        Ok(())
    }
}

/// Writes the lines after the connections if there are no UDP flows.
///
/// # Errors
/// `out` cannot be written.
pub fn no_udp(out: &mut dyn Write) -> fmt::Result {
    writeln!(out, "no traced UDP packets")
}

/// Writes the head of the UDP flows (`-u`), after the connections.
///
/// # Errors
/// `out` cannot be written.
pub fn udp_head(out: &mut dyn Write, counts: &ReportCounts, flows: u64, head: Head) -> fmt::Result {
    if counts.tcp > 0 && !head.brief {
        writeln!(
            out,
            "\n============================================================"
        )?;
    }
    writeln!(out, "UDP connection info:")?;
    if !head.brief {
        let plural = if flows == 1 { "" } else { "s" };
        writeln!(out, "{flows} UDP connection{plural} traced:")?;
    }
    Head {
        values: false,
        ..head
    }
    .too_short(out, counts.too_short)
}
