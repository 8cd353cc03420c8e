//! What is printed before the connections.

use super::Elapsed;
use core::fmt::{self, Write};

/// Figures of the whole input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets seen: those with an IP header.
    pub packets: u64,
    /// TCP packets that were analysed.
    pub tcp: u64,
    /// UDP packets that were analysed; `None` unless that was asked for.
    pub udp: Option<u64>,
    /// TCP connections.
    pub connections: u64,
    /// Packets that were too short, in the capture or as sent, for their header or their options.
    pub too_short: u64,
    /// From the first packet to the last, in nanoseconds.
    pub elapsed: i64,
    /// Files that were read.
    pub files: usize,
    /// Packets whose IP, TCP and UDP checksums were wrong; `None` unless they were verified.
    pub bad_checksums: Option<[u64; 3]>,
}

/// How the head is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// One line a connection follows, not long reports.
    pub brief: bool,
    /// Separated values follow, so that each line gets `#` before it.
    pub values: bool,
    /// Each packet that was too short was told of as it came, so that the hint to ask for it is left out.
    pub warned: bool,
}

impl Head {
    fn comment(self) -> &'static str {
        if self.values { "#" } else { "" }
    }
}

/// Writes the line that counts the files to be read, and an empty one; before anything is read.
///
/// # Errors
/// Those of `out`.
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
    /// Writes what stands before the connections, once all is read.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(self, out: &mut dyn Write, counts: &Counts) -> fmt::Result {
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

    /// Writes packets, time and checksums alone: all there is where no connection is to be listed.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn totals(self, out: &mut dyn Write, counts: &Counts) -> fmt::Result {
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

/// Writes what follows the connections where there are no UDP flows.
///
/// # Errors
/// Those of `out`.
pub fn no_udp(out: &mut dyn Write) -> fmt::Result {
    writeln!(out, "no traced UDP packets")
}

/// Writes what stands before the UDP flows (`-u`), after the connections.
///
/// # Errors
/// Those of `out`.
pub fn udp_head(out: &mut dyn Write, counts: &Counts, flows: u64, head: Head) -> fmt::Result {
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
