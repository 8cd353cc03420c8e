//! TCP and UDP headers.

use super::network::named;
use super::{Print, Printed, verdict};
use core::fmt::{self, Write};
use wire::checksum;
use wire::packet::Packet;
use wire::tcp::{Options, Tcp};
use wire::udp::Udp;

pub(super) fn tcp(out: &mut dyn Write, printed: &Printed<'_>, print: &Print<'_>) -> fmt::Result {
    let packet = printed.packet;
    let Ok(tcp) = Tcp::parse(packet) else {
        return Ok(());
    };
    let [own, other] = printed.bases;
    let sequence = |value, base| Sequence {
        value,
        base,
        hex: print.hex,
    };
    ports(out, "TCP", tcp.source_port, tcp.destination_port, print)?;
    flags(out, tcp.flags.0)?;
    writeln!(out, "\t     SEQ: {}", sequence(tcp.sequence, own))?;
    writeln!(out, "\t     ACK: {}", sequence(tcp.acknowledgment, other))?;
    writeln!(out, "\t     WIN: {}", tcp.window)?;
    let header = usize::from(tcp.header_length);
    let captured = packet.transport.len();
    write!(out, "\t    HLEN: {header}")?;
    if captured < header {
        write!(out, " (only {captured} bytes in dump file)")?;
    }
    let reserved = packet.transport.get(12).map_or(0, |octet| octet & 0x0f);
    out.write_char('\n')?;
    if reserved != 0 {
        writeln!(
            out,
            "\t    MBZ: {reserved:#03x} (these are supposed to be zero!)"
        )?;
    }
    write!(out, "\t   CKSUM: {:#06x}", tcp.checksum)?;
    verdict(out, print.checksums, checksum::tcp_ok(packet))?;
    let length = tcp.payload_length;
    write!(out, "\t    DLEN: {length}")?;
    if tcp.payload.len() < length as usize {
        only(out, tcp.payload.len(), "in dump file")?;
    }
    out.write_char('\n')?;
    if header > 20 {
        write!(out, "\t    OPTS: {} bytes", header - 20)?;
        let octets = packet.transport.get(20..header.min(captured));
        let octets = octets.unwrap_or(&[]);
        if octets.len() < header - 20 {
            only(out, octets.len(), "in file")?;
        }
        out.write_char('\t')?;
        options(out, &tcp.options, octets, |value| sequence(value, other))?;
        out.write_char('\n')?;
    }
    if length > 0 {
        writeln!(out, "\t    data: {length} bytes")?;
    }
    Ok(())
}

/// How much of something was captured.
fn only(out: &mut dyn Write, captured: usize, place: &str) -> fmt::Result {
    match (captured, place) {
        (0, _) => out.write_str(" (none of it in dump file)"),
        (_, "in file") => write!(out, " ({captured} bytes in file)"),
        _ => write!(out, " (only {captured} bytes {place})"),
    }
}

/// A sequence number, relative to the first one or as it is.
struct Sequence {
    value: u32,
    base: Option<u32>,
    hex: bool,
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.wrapping_sub(self.base.unwrap_or(0));
        if self.hex {
            write!(f, "{value:#010x}")?;
        } else {
            write!(f, "{value}")?;
        }
        f.write_str(if self.base.is_some() { "(R)" } else { "" })
    }
}

fn ports(
    out: &mut dyn Write,
    protocol: &str,
    source: u16,
    destination: u16,
    print: &Print<'_>,
) -> fmt::Result {
    write!(out, "\t{protocol} SPRT: {source} ")?;
    named(out, |name| print.names.port(source, name))?;
    write!(out, "\t    DPRT: {destination} ")?;
    named(out, |name| print.names.port(destination, name))
}

fn flags(out: &mut dyn Write, flags: u16) -> fmt::Result {
    out.write_str("\t     FLG: ")?;
    for (bit, set, unset) in [
        (0x40, '?', ' '),
        (0x80, '?', ' '),
        (0x20, 'U', '-'),
        (0x10, 'A', '-'),
        (0x08, 'P', '-'),
        (0x04, 'R', '-'),
        (0x02, 'S', '-'),
        (0x01, 'F', '-'),
    ] {
        out.write_char(if flags & bit != 0 { set } else { unset })?;
    }
    writeln!(out, " ({:#04x})", flags & 0xff)
}

/// Options, those that are known first.
fn options(
    out: &mut dyn Write,
    options: &Options,
    octets: &[u8],
    sequence: impl Fn(u32) -> Sequence,
) -> fmt::Result {
    if let Some(mss) = options.mss {
        write!(out, " MSS({mss})")?;
    }
    if let Some(scale) = options.window_scale {
        write!(out, " WS({scale})")?;
    }
    if let Some((value, echo)) = options.timestamps {
        write!(out, " TS({value},{echo})")?;
    }
    if options.sack_permitted {
        write!(out, " SACKREQ")?;
    }
    let blocks = options.sack();
    if !blocks.is_empty() {
        write!(out, " SACKS({})", blocks.len())?;
        for &(left, right) in blocks {
            write!(out, "[{}-{}]", sequence(left), sequence(right))?;
        }
    }
    others(out, octets)
}

/// Options that are historical or not interpreted here (RFC 1072, RFC 1644).
fn others(out: &mut dyn Write, mut octets: &[u8]) -> fmt::Result {
    while let [kind, rest @ ..] = octets {
        let length = match (kind, rest) {
            (0, _) | (2.., []) => return Ok(()),
            (1, _) => 1,
            (_, [length, ..]) => usize::from(*length),
        };
        let Some(option) = octets.get(..length).filter(|_| length > 0) else {
            return Ok(());
        };
        let name = match kind {
            1..=5 | 8 => None,
            6 => Some("ECHO"),
            7 => Some("ECHOREPL"),
            11 => Some("CC"),
            12 => Some("CCNEW"),
            13 => Some("CCECHO"),
            _ => Some(""),
        };
        match (name, option) {
            (None, _) => {}
            (Some(name), [_, _, value @ ..]) if !name.is_empty() && value.len() == 4 => {
                let value = value
                    .iter()
                    .fold(0, |sum, octet| sum << 8 | u32::from(*octet));
                write!(out, " {name}({value})")?;
            }
            _ => write!(out, " UNKN(op:{kind},len:{length})")?,
        }
        octets = &octets[length..];
    }
    Ok(())
}

pub(super) fn udp(out: &mut dyn Write, packet: &Packet<'_>, print: &Print<'_>) -> fmt::Result {
    let Ok(udp) = Udp::parse(packet) else {
        return Ok(());
    };
    ports(out, "UDP", udp.source_port, udp.destination_port, print)?;
    write!(out, "\t  UCKSUM: {:#06x}", udp.checksum)?;
    // Over IPv4 a sender may leave it out.
    let absent = udp.checksum == 0 && packet.version == 4;
    let right = if absent {
        Some(true)
    } else {
        checksum::udp_ok(packet)
    };
    verdict(out, print.checksums, right)?;
    write!(out, "\t    DLEN: {}", udp.length)?;
    let captured = udp.payload.len();
    if captured < udp.payload_length as usize {
        write!(out, " (only {captured} bytes in dump file)")?;
    }
    out.write_char('\n')
}
