//! One packet, header by header (`-p` and `-P`).
//!
//! The headers are those of the innermost IP packet. As in tcptrace, frames of links other than Ethernet, and frames
//! with a tunnel, have zero addresses. The payload is not printed.

mod network;
mod transport;

use super::{LocalTime, Names};
use core::fmt::{self, Write};
use wire::link::LinkType;
use wire::packet::Packet;

/// How packets are printed.
#[derive(Clone, Copy)]
pub struct Print<'a> {
    /// Names of hosts and ports, printed after their numbers.
    pub names: &'a dyn Names,
    /// Local time.
    pub zone: &'a jiff::tz::TimeZone,
    /// Numbers other than counts in hexadecimal (`-X`, tcptrace's default) instead of decimal (`-D`).
    pub hex: bool,
    /// Verify checksums (`--checksum`).
    pub checksums: bool,
}

/// A packet to print.
#[derive(Clone, Copy)]
pub struct Printed<'a> {
    /// Its number.
    pub number: u64,
    /// When it was captured, in nanoseconds since 1970.
    pub time: i64,
    /// Its frame; `None` to print only the IP packet, as `-P` does.
    pub frame: Option<Frame<'a>>,
    /// The decoded headers.
    pub packet: &'a Packet<'a>,
    /// Initial sequence numbers of its sender and receiver, to print sequence numbers relative to (`--print_seq_zero`).
    pub bases: [Option<u32>; 2],
}

/// A frame as captured.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Its link type.
    pub link: LinkType,
    /// Its captured bytes.
    pub octets: &'a [u8],
    /// Its length as sent, in bytes.
    pub length: u32,
}

/// Writes all lines of a packet.
///
/// # Errors
/// `out` cannot be written.
pub fn packet(out: &mut dyn Write, printed: &Printed<'_>, print: &Print<'_>) -> fmt::Result {
    writeln!(out, "Packet {}", printed.number)?;
    let packet = printed.packet;
    match printed.frame {
        None => writeln!(out, "\tSaved Length: {}", packet.network.len())?,
        Some(frame) if frame.length as usize == frame.octets.len() => {
            writeln!(out, "\tPacket Length: {}", frame.length)?;
        }
        Some(frame) => writeln!(
            out,
            "\tPacket Length: {} (saved length {})",
            frame.length,
            frame.octets.len()
        )?,
    }
    let time = LocalTime {
        time: printed.time,
        zone: print.zone,
    };
    writeln!(out, "\tCollected: {time}")?;
    if let Some(frame) = printed.frame {
        ethernet(out, &frame, packet, print.hex)?;
    }
    match packet.version {
        4 => network::ipv4(out, packet, print)?,
        _ => network::ipv6(out, packet)?,
    }
    transport::tcp(out, printed, print)?;
    transport::udp(out, packet, print)
}

/// The frame's addresses and the type of its innermost packet.
fn ethernet(out: &mut dyn Write, frame: &Frame<'_>, packet: &Packet<'_>, hex: bool) -> fmt::Result {
    let plain = frame.link == LinkType::ETHERNET && packet.layers.is_empty();
    let addresses = match frame.octets.first_chunk::<12>() {
        Some(addresses) if plain => *addresses,
        _ => [0; 12],
    };
    let (destination, source) = addresses.split_at(6);
    for (label, address) in [("Srce", source), ("Dest", destination)] {
        write!(out, "\tETH {label}:")?;
        for (octet, separator) in address.iter().zip([' ', ':', ':', ':', ':', ':']) {
            write!(out, "{separator}{octet:02x}")?;
        }
        out.write_char('\n')?;
    }
    let (kind, name) = match packet.version {
        4 => (0x800, "IP"),
        _ => (0x86dd, "IPv6"),
    };
    writeln!(out, "\t    Type: {} ({name})", Number(kind, hex))
}

/// A number in hexadecimal, or in decimal.
struct Number(u32, bool);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.1 {
            write!(f, "{:#x}", self.0)
        } else {
            write!(f, "{}", self.0)
        }
    }
}

/// The result for a checksum: nothing unless verification was requested, and unknown if the capture
/// lacks some of the data.
fn verdict(out: &mut dyn Write, verify: bool, right: Option<bool>) -> fmt::Result {
    out.write_str(match right {
        _ if !verify => "\n",
        Some(true) => " (CORRECT)\n",
        Some(false) => " (WRONG)\n",
        None => " (too short to verify)\n",
    })
}

#[cfg(test)]
mod tests;
