//! IP headers.

use super::{Number, Print};
use core::fmt::{self, Write};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::checksum;
use wire::packet::Packet;

pub(super) fn ipv4(out: &mut dyn Write, packet: &Packet<'_>, print: &Print<'_>) -> fmt::Result {
    let Some(head) = packet.network.first_chunk::<20>() else {
        return Ok(());
    };
    let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    writeln!(out, "\tIP  VERS: 4")?;
    for (label, at) in [("Srce", 12), ("Dest", 16)] {
        let address = Ipv4Addr::new(head[at], head[at + 1], head[at + 2], head[at + 3]);
        write!(out, "\tIP  {label}: {address} ")?;
        named(out, |name| print.names.host(IpAddr::V4(address), name))?;
    }
    let protocol = match head[9] {
        1 => "(ICMP)",
        2 => "(IGMP)",
        6 => "(TCP)",
        8 => "(EGP)",
        17 => "(UDP)",
        _ => "",
    };
    writeln!(
        out,
        "\t    Type: {} {protocol}",
        Number(head[9].into(), print.hex)
    )?;
    let header_length = u16::from(head[0] & 0x0f) * 4;
    writeln!(out, "\t    HLEN: {header_length}")?;
    writeln!(out, "\t     TTL: {}", head[8])?;
    writeln!(out, "\t     LEN: {}", word(2))?;
    writeln!(out, "\t      ID: {}", word(4))?;
    write!(out, "\t   CKSUM: {:#06x}", word(10))?;
    super::verdict(out, print.checksums, checksum::ip_ok(packet.network))?;
    let place = word(6);
    write!(out, "\t  OFFSET: {place:#06x}")?;
    let (offset, more) = (place & 0x1fff, place & 0x2000 != 0);
    if offset != 0 || more {
        write!(
            out,
            " (frag: {} bytes at offset {} - {})",
            i32::from(word(2)) - i32::from(header_length),
            u32::from(offset) * 8,
            if more { "More Frags" } else { "Last Frag" }
        )?;
    }
    if place & 0x4000 != 0 {
        writeln!(out, "  Don't Fragment")?;
    }
    if header_length > 20 {
        let end = usize::from(header_length).min(packet.network.len());
        writeln!(out, "\t Options: {} bytes", header_length - 20)?;
        options(out, &packet.network[20..end])?;
    }
    out.write_char('\n')
}

/// A name in parentheses, unless it is a number, and the end of the line.
pub(super) fn named(
    out: &mut dyn Write,
    write_name: impl FnOnce(&mut dyn Write) -> fmt::Result,
) -> fmt::Result {
    let mut name = String::new();
    write_name(&mut name)?;
    if name.starts_with(|first: char| first.is_ascii_digit()) || name.contains("::") {
        name.clear();
    }
    match name.as_str() {
        "" => writeln!(out),
        name => writeln!(out, "({name})"),
    }
}

/// The options of an IPv4 header (RFC 791 3.1).
fn options(out: &mut dyn Write, mut octets: &[u8]) -> fmt::Result {
    while let [kind, rest @ ..] = octets {
        let length = match (kind, rest) {
            (0 | 1, _) => 1,
            (_, [length, ..]) => usize::from(*length),
            (_, []) => 0,
        };
        let Some(option) = octets.get(..length.max(1)).filter(|_| length > 0) else {
            return writeln!(out, "\t    IP option (truncated)");
        };
        let class = ["ctrl", "reserved1", "debug", "reserved3"][usize::from(kind >> 5 & 3)];
        writeln!(
            out,
            "\t    IP option {kind} (copy:{}  class:{class}  number:{})",
            if kind & 0x80 == 0 { 'N' } else { 'Y' },
            kind & 0x1f
        )?;
        let pointer = option.get(2).copied().unwrap_or(0);
        match kind {
            0 => writeln!(out, "\t      EOL")?,
            1 => writeln!(out, "\t      PADDING")?,
            0x44 => writeln!(out, "\t      Timestamps:  len: {length}  ptr:{pointer}")?,
            7 | 0x83 | 0x89 => {
                let name = match kind {
                    7 => "Record Route",
                    0x83 => "Loose source route",
                    _ => "Strict source route",
                };
                writeln!(out, "\t      {name}:  len: {length}  ptr:{pointer}")?;
                route(out, option, pointer)?;
            }
            _ => writeln!(out, "\t      Unknown Option {kind}, len: {length}")?,
        }
        if *kind == 0 {
            break;
        }
        octets = &octets[length..];
    }
    Ok(())
}

/// The addresses of a route, those up to the pointer.
fn route(out: &mut dyn Write, option: &[u8], pointer: u8) -> fmt::Result {
    let addresses = option.get(3..).unwrap_or(&[]).as_chunks::<4>().0;
    for ((number, at), address) in (1..).zip((4usize..).step_by(4)).zip(addresses) {
        if at < usize::from(pointer) {
            writeln!(out, "\t        {number}: {}", Ipv4Addr::from(*address))?;
        } else {
            writeln!(out, "\t        {number}: xxxxxxxxxxx")?;
        }
    }
    Ok(())
}

pub(super) fn ipv6(out: &mut dyn Write, packet: &Packet<'_>) -> fmt::Result {
    let Some((head, rest)) = packet.network.split_first_chunk::<40>() else {
        return Ok(());
    };
    let first = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    writeln!(out, "\tIP  Vers: {}", first >> 28)?;
    writeln!(out, "\tIP  Srce: {}", Ipv6Addr::from(packet.source))?;
    writeln!(out, "\tIP  Dest: {}", Ipv6Addr::from(packet.destination))?;
    writeln!(out, "\t   Class: {}", first >> 20 & 0xff)?;
    writeln!(out, "\t    Flow: {}", first & 0xf_ffff)?;
    writeln!(
        out,
        "\t    PLEN: {}",
        u16::from_be_bytes([head[4], head[5]])
    )?;
    writeln!(out, "\t    NXTH: {} ({})", head[6], header_name(head[6]))?;
    writeln!(out, "\t    HLIM: {}", head[7])?;
    let (mut next, mut rest) = (head[6], rest);
    while matches!(next, 0 | 43 | 60)
        && let [following, length, ..] = *rest
    {
        let name = header_name(next);
        writeln!(out, "\tIPv6 Extension Header Type {next} ({name})")?;
        next = following;
        rest = rest.get(usize::from(length) * 8 + 8..).unwrap_or(&[]);
    }
    Ok(())
}

fn header_name(kind: u8) -> &'static str {
    match kind {
        0 => "Hop by hop",
        6 => "TCP",
        17 => "UDP",
        43 => "Routing header",
        44 => "Fragment header",
        58 => "IPv6 ICMP",
        59 => "No next header",
        60 => "Destinations options",
        _ => "<unknown>",
    }
}
