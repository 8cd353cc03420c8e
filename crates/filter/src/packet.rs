//! A packet as text: `tcp 10.1.2.3:1234 > 192.0.2.1:80 flags S length 60`, `icmp 10.1.2.3 > 192.0.2.1 icmp-type
//! 8/0`, `udp [2001:db8::1]:53 > [2001:db8::2]:4711`, `udp 10.1.2.3 > 192.0.2.1 fragment 1480`. Log lines and
//! an operator's questions use this form.

use std::fmt::Write;
use std::net::IpAddr;

use wire::ip::{self, Header, Upper};
use wire::packet::Fragment;
use wire::{icmp, tcp};

use crate::text::{FLAGS, Remark, Word, Wrong, flag_bits, icmp_type, meant, number, words, wrong};
use crate::{Direction, Names};

/// Why a text is not a packet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {}: {}: {}; {}", .0.column, .0.word, .0.message, .0.right)]
pub struct PacketError(Remark);

/// A packet as text, with the names of protocols and services. Call it only when the text is needed.
#[must_use]
pub fn describe(packet: &Header, names: &Names) -> String {
    let mut text = String::with_capacity(96);
    // Writing to a string cannot fail.
    let _ = write_packet(&mut text, packet, names);
    text
}

fn write_packet(text: &mut String, packet: &Header, names: &Names) -> std::fmt::Result {
    match names.protocol_name(packet.protocol) {
        Some(name) => text.push_str(name),
        None => write!(text, "{}", packet.protocol)?,
    }
    let ends = [
        (packet.source_address(), packet.source_port),
        (packet.destination_address(), packet.destination_port),
    ];
    for (index, (address, port)) in ends.into_iter().enumerate() {
        text.push_str([" ", " > "][index]);
        match address {
            _ if packet.upper != Upper::Ports => write!(text, "{address}")?,
            IpAddr::V4(address) => write!(text, "{address}:{port}")?,
            IpAddr::V6(address) => write!(text, "[{address}]:{port}")?,
        }
        if packet.upper == Upper::Ports
            && let Some(name) = names.service_name(packet.protocol, port)
        {
            write!(text, "({name})")?;
        }
    }
    if packet.upper == Upper::Ports && packet.protocol == tcp::PROTOCOL {
        text.push_str(" flags ");
        push_flags(text, packet.tcp_flags);
    }
    if let Some((kind, code)) = packet.icmp() {
        write!(text, " icmp-type {kind}/{code}")?;
    }
    if packet.upper == Upper::Cut {
        text.push_str(" cut");
    }
    match packet.fragment {
        Fragment::Whole => {}
        Fragment::First => text.push_str(" fragment 0"),
        Fragment::Later => write!(text, " fragment {}", packet.fragment_offset)?,
    }
    write!(text, " length {}", packet.total_length)
}

/// Letters of TCP flags; `-` if none is set.
pub(crate) fn push_flags(text: &mut String, flags: u8) {
    let set = FLAGS.chars().enumerate();
    text.extend(set.filter_map(|(at, letter)| (flags >> at & 1 == 1).then_some(letter)));
    if flags == 0 {
        text.push('-');
    }
}

/// Parses a packet in the form that [`describe`] writes, optionally preceded by its direction. Omitted values
/// are 0, and omitted TCP flags are `S`.
///
/// # Errors
/// The wrong word, and what would be right.
pub fn parse_packet(text: &str, names: &Names) -> Result<(Option<Direction>, Header), PacketError> {
    read(text, names).map_err(|wrong| PacketError(wrong.at(1)))
}

/// The expected form.
const FORM: &str = "[in|out] PROTOCOL SOURCE[:PORT] > DESTINATION[:PORT] [flags S] [icmp-type 8/0] [fragment 1480]";

fn read(text: &str, names: &Names) -> Result<(Option<Direction>, Header), Wrong> {
    let words = words(text);
    let mut rest = words.iter();
    let end = Word {
        text: text.trim().to_owned(),
        column: 1,
    };
    let mut next = || {
        rest.next()
            .ok_or_else(|| wrong(&end, "ends too early", FORM))
    };
    let mut word = next()?;
    let direction = Direction::ALL
        .into_iter()
        .find(|one| one.word() == word.text);
    if direction.is_some() {
        word = next()?;
    }
    let protocol = word
        .text
        .parse()
        .ok()
        .or_else(|| names.protocol(&word.text));
    let protocol = protocol.ok_or_else(|| {
        let right = meant(&word.text, &names.protocols(), FORM);
        wrong(word, "is no protocol", right)
    })?;
    let source_word = next()?;
    let (source, source_port) = end_of(source_word)?;
    let mut destination_word = next()?;
    if destination_word.text == ">" {
        destination_word = next()?;
    }
    let (destination, destination_port) = end_of(destination_word)?;
    if source.is_ipv4() != destination.is_ipv4() {
        return Err(wrong(
            destination_word,
            "is of another IP version",
            "two addresses of one version",
        ));
    }
    if !ip::has_ports(protocol) && source_port.or(destination_port).is_some() {
        return Err(wrong(word, "has no ports", "addresses alone"));
    }
    let mut packet = empty(source, destination, protocol);
    packet.source_port = source_port.unwrap_or(0);
    packet.destination_port = destination_port.unwrap_or(0);
    options(rest.as_slice(), &mut packet)?;
    let has_both = source_port.is_some() && destination_port.is_some();
    if packet.fragment != Fragment::Later && packet.upper == Upper::Ports && !has_both {
        let right = "ADDRESS:PORT, with an IPv6 address in brackets";
        return Err(wrong(word, "has ports", right));
    }
    Ok((direction, without_unread(packet)))
}

/// The options after the addresses: words with one value each, except `cut`.
fn options(mut rest: &[Word], packet: &mut Header) -> Result<(), Wrong> {
    while let [word, behind @ ..] = rest {
        let value = match behind {
            _ if word.text == "cut" => word,
            [value, ..] => value,
            [] => return Err(wrong(word, "says nothing", FORM)),
        };
        option(word, value, packet)?;
        rest = behind.get(usize::from(word.text != "cut")..).unwrap_or(&[]);
    }
    Ok(())
}

/// Clears the values that parsing the packet's bytes could not have produced.
fn without_unread(mut packet: Header) -> Header {
    if packet.fragment == Fragment::Later {
        packet.upper = Upper::Unread;
    }
    if packet.upper != Upper::Ports {
        (packet.source_port, packet.tcp_flags) = (0, 0);
    }
    if matches!(packet.upper, Upper::Unread | Upper::Cut) {
        packet.destination_port = 0;
    }
    packet
}

fn option(word: &Word, value: &Word, packet: &mut Header) -> Result<(), Wrong> {
    match word.text.as_str() {
        "flags" if packet.protocol == tcp::PROTOCOL => {
            let letters = if value.text == "-" { "" } else { &value.text };
            packet.tcp_flags = flag_bits(letters)
                .ok_or_else(|| wrong(value, "are no TCP flags", format!("letters of {FLAGS}")))?;
        }
        "icmp-type" if packet.upper == Upper::Icmp => {
            packet.destination_port = icmp_type(value, packet.protocol)?;
        }
        "fragment" => {
            let offset: Option<u16> = value.text.parse().ok().filter(|offset| offset % 8 == 0);
            packet.fragment_offset = offset.ok_or_else(|| {
                let right = "the octets in front of it, a multiple of 8";
                wrong(value, "is no fragment's offset", right)
            })?;
            packet.fragment = match packet.fragment_offset {
                0 => Fragment::First,
                _ => Fragment::Later,
            };
        }
        "length" => {
            let length = value
                .text
                .parse()
                .ok()
                .filter(|length: &u32| *length <= 65_575);
            packet.total_length =
                length.ok_or_else(|| wrong(value, "is no length", "octets up to 65575"))?;
        }
        "cut" if packet.upper != Upper::Unread => packet.upper = Upper::Cut,
        other => {
            let known = ["flags", "icmp-type", "fragment", "length", "cut"];
            let or = "flags (of tcp), icmp-type (of icmp), fragment, length or cut";
            return Err(wrong(
                word,
                "does not belong here",
                meant(other, &known, or),
            ));
        }
    }
    Ok(())
}

/// `ADDRESS`, `ADDRESS:PORT`, `[ADDRESS]:PORT`, optionally followed by a name in parentheses.
fn end_of(word: &Word) -> Result<(IpAddr, Option<u16>), Wrong> {
    let text = word.text.as_str();
    let text = text.split_once('(').map_or(text, |(text, _)| text);
    if let Ok(address) = text.parse() {
        return Ok((address, None));
    }
    let address: Option<std::net::SocketAddr> = text.parse().ok();
    match address {
        Some(end) => Ok((end.ip(), Some(end.port()))),
        None => {
            let right = "ADDRESS, ADDRESS:PORT, or [IPV6-ADDRESS]:PORT";
            Err(wrong(word, "is no address", right))
        }
    }
}

/// A packet with only these values known.
fn empty(source: IpAddr, destination: IpAddr, protocol: u8) -> Header {
    let (version, header_length) = if source.is_ipv4() { (4, 20) } else { (6, 40) };
    let upper = match protocol {
        icmp::PROTOCOL | icmp::PROTOCOL_V6 => Upper::Icmp,
        _ if ip::has_ports(protocol) => Upper::Ports,
        _ => Upper::Unread,
    };
    Header {
        source: number(source),
        destination: number(destination),
        total_length: 0,
        header_length,
        source_port: 0,
        destination_port: 0,
        fragment_offset: 0,
        version,
        protocol,
        traffic_class: 0,
        hop_limit: 64,
        tcp_flags: if protocol == tcp::PROTOCOL { 2 } else { 0 },
        fragment: Fragment::Whole,
        upper,
        dont_fragment: version == 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(text: &str) {
        let names = Names::well_known();
        let (direction, packet) = parse_packet(text, &names).expect(text);
        let direction = direction.map_or("", Direction::word);
        let again = format!("{direction} {}", describe(&packet, &names));
        assert_eq!(again.trim(), text);
    }

    #[test]
    fn what_is_described_is_read_again() {
        there_and_back("in tcp 10.1.2.3:1234 > 192.0.2.1:80(http) flags SA length 60");
        there_and_back("tcp 10.1.2.3:1234 > 192.0.2.1:81 flags - length 60");
        there_and_back("udp [2001:db8::1]:53(domain) > [2001:db8::2]:4711 fragment 0 length 1500");
        there_and_back("out udp 10.1.2.3 > 192.0.2.1 fragment 1480 length 99");
        there_and_back("icmp 10.1.2.3 > 192.0.2.1 icmp-type 3/4 length 56");
        there_and_back("icmp6 2001:db8::1 > 2001:db8::2 icmp-type 128/0 length 56");
        there_and_back("gre 10.1.2.3 > 192.0.2.1 length 0");
        there_and_back("200 10.1.2.3 > 192.0.2.1 length 0");
        there_and_back("in tcp 10.1.2.3 > 192.0.2.1 cut fragment 0 length 28");
    }

    #[test]
    fn what_is_no_packet_says_what_would_be_right() {
        let names = Names::well_known();
        let fault = |text| parse_packet(text, &names).expect_err(text).to_string();
        assert!(fault("").contains("PROTOCOL SOURCE"));
        assert!(fault("in tpc 1.2.3.4:1 > 1.2.3.5:2").contains("did you mean tcp?"));
        assert!(fault("tcp 1.2.3.4 > 1.2.3.5").contains("has ports"));
        assert!(fault("gre 1.2.3.4:5 > 1.2.3.5").contains("has no ports"));
        assert!(fault("tcp 1.2.3.4:1 > [::1]:2").contains("another IP version"));
        assert!(fault("tcp 1.2.3.4:1 > 1.2.3.5:2 flag S").contains("did you mean flags?"));
        assert!(fault("tcp 1.2.3.4:1 > 1.2.3.5:2 flags X").contains("letters of"));
        assert!(fault("udp 1.2.3.4:1 > 1.2.3.5:2 fragment 9").contains("multiple of 8"));
        assert!(fault("udp 1.2.3.4:1 > 1.2.3.5:2 length").contains("says nothing"));
    }
}
