//! Writes pcap.

use std::io::{self, Write};

use wire::link::LinkType;

use crate::format::{MAGIC_MICROS, MAGIC_NANOS, PCAP_HEADER_LEN};

/// Resolution of the time stamps of a pcap file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// Microseconds, which every reader knows; the rest of a time is cut off.
    Micros,
    /// Nanoseconds.
    Nanos,
}

/// The snapshot length that a written file announces.
const SNAPLEN: u32 = 262_144;

/// Writes a pcap file (version 2.4, little-endian), a record at a time: give it a buffered writer.
#[derive(Debug)]
pub struct PcapWriter<W> {
    out: W,
    resolution: Resolution,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the file's header.
    ///
    /// # Errors
    /// The header cannot be written.
    pub fn new(mut out: W, link: LinkType, resolution: Resolution) -> io::Result<Self> {
        let magic = match resolution {
            Resolution::Micros => MAGIC_MICROS,
            Resolution::Nanos => MAGIC_NANOS,
        };
        let mut header = [0; PCAP_HEADER_LEN];
        header[..4].copy_from_slice(&magic.to_le_bytes());
        header[4..6].copy_from_slice(&2u16.to_le_bytes());
        header[6..8].copy_from_slice(&4u16.to_le_bytes());
        // Time zone and accuracy, 4 octets each, are 0.
        header[16..20].copy_from_slice(&SNAPLEN.to_le_bytes());
        header[20..].copy_from_slice(&u32::from(link.0).to_le_bytes());
        out.write_all(&header)?;
        Ok(PcapWriter { out, resolution })
    }

    /// Writes a packet: its capture time in ns since 1970, its length, and its captured bytes.
    ///
    /// # Errors
    /// It cannot be written, or pcap cannot represent it: captured before 1970 or after 2106
    /// ([`InvalidInput`](io::ErrorKind::InvalidInput)), or longer than 262,144 octets, which
    /// readers refuse.
    pub fn write(&mut self, time_ns: i64, length: u32, octets: &[u8]) -> io::Result<()> {
        let seconds = u32::try_from(time_ns.div_euclid(1_000_000_000))
            .map_err(|_| invalid("the time is before 1970 or after 2106"))?;
        let captured = u32::try_from(octets.len())
            .ok()
            .filter(|&captured| captured <= SNAPLEN)
            .ok_or_else(|| invalid("the packet is longer than 262,144 octets"))?;
        let nanos = time_ns.rem_euclid(1_000_000_000) as u32;
        let fraction = match self.resolution {
            Resolution::Micros => nanos / 1000,
            Resolution::Nanos => nanos,
        };
        let mut header = [0; 16];
        for (field, value) in header
            .chunks_exact_mut(4)
            .zip([seconds, fraction, captured, length])
        {
            field.copy_from_slice(&value.to_le_bytes());
        }
        self.out.write_all(&header)?;
        self.out.write_all(octets)
    }

    /// Flushes the writer.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Returns the writer, which may still have to be flushed.
    pub fn into_inner(self) -> W {
        self.out
    }
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}
