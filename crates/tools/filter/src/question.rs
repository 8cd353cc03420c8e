//! Parses the packet that `explain` is asked about.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use capfile::{Block, Reader};
use filter::{Direction, Names, parse_packet};
use wire::ip::{Header, HeaderError};
use wire::packet::{self, Packet};

/// Reads words (`in tcp 10.1.2.3:1234 > 192.0.2.1:80`), the bytes of an IP packet in hexadecimal,
/// or `FILE:N`, the n-th packet of a capture. Words may give the direction.
///
/// # Errors
/// The text is none of these, or is not an IP packet.
pub(super) fn read(text: &str, names: &Names) -> Result<(Option<Direction>, Header)> {
    if let Some((file, number)) = text.rsplit_once(':')
        && let Ok(number) = number.parse()
        && Path::new(file).is_file()
    {
        let octets = of_capture(Path::new(file), number)?;
        return Ok((None, header(octets).with_context(|| text.to_owned())?));
    }
    if let Some(octets) = hexadecimal(text) {
        return Ok((None, header(octets)?));
    }
    parse_packet(text, names).with_context(|| format!("'{text}'"))
}

/// The header of a packet that may be truncated, as in a capture that keeps only the first bytes.
fn header(mut octets: Vec<u8>) -> Result<Header> {
    let header = match Header::read(&octets) {
        Err(HeaderError::TotalLength(length)) if octets.len() < length as usize => {
            octets.resize(length as usize, 0);
            Header::read(&octets)
        }
        read => read,
    };
    header.context("no IP packet that is passed on")
}

/// Bytes from pairs of hex digits, optionally with spaces, colons or `0x`; `None` if the text is
/// something else.
fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let text = text.trim().strip_prefix("0x").unwrap_or(text);
    let digits: Vec<u8> = text
        .chars()
        .filter(|char| !char.is_whitespace() && *char != ':')
        .map(|char| Some(char.to_digit(16)? as u8))
        .collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    // An IP header has at least 20 bytes.
    (rest.is_empty() && pairs.len() >= 20)
        .then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

/// The innermost IP packet of the n-th packet of a capture, from 1.
fn of_capture(path: &Path, number: u64) -> Result<Vec<u8>> {
    ensure!(
        number > 0,
        "{}: packets are numbered from 1",
        path.display()
    );
    let name = || path.display().to_string();
    let file = File::open(path).with_context(name)?;
    let mut reader = Reader::new(file).with_context(name)?;
    let mut block = Block::new();
    let mut seen = 0;
    while reader.read_block(&mut block).with_context(name)? {
        let here = block.records().len() as u64;
        if number > seen + here {
            seen += here;
            continue;
        }
        let record = &block.records()[(number - seen - 1) as usize];
        let frame = block.bytes(record);
        let mut packet = Packet::new();
        if let Err(skip) = packet::decode(record.link, frame, record.length, &mut packet) {
            bail!("{}: packet {number}: {skip}", path.display());
        }
        return Ok(packet.network.to_vec());
    }
    bail!("{}: has {seen} packets, not {number}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_in_hexadecimal_are_a_packet() {
        let names = Names::well_known();
        let text = "45 00 00 28 00 00 40 00 40 06 00 00 0a 01 02 03 c0 00 02 01
            04d2 0050 00000001 00000000 5002 ffff 0000 0000";
        let (direction, packet) = read(text, &names).expect("a packet");
        assert_eq!(direction, None);
        let words = filter::describe(&packet, &names);
        assert_eq!(
            words,
            "tcp 10.1.2.3:1234 > 192.0.2.1:80(http) flags S length 40"
        );
        let (_, cut) = read(&text.replace("00 28", "05 dc"), &names).expect("a packet");
        assert_eq!(cut.total_length, 1500);
    }

    #[test]
    fn words_are_a_packet_with_its_direction() {
        let names = Names::well_known();
        let (direction, packet) = read("out udp 1.2.3.4:53 > 1.2.3.5:99", &names).expect("one");
        assert_eq!((direction, packet.source_port), (Some(Direction::Out), 53));
    }

    #[test]
    fn what_is_no_packet_is_named() {
        let names = Names::well_known();
        for text in ["", "nonsense", "tcp", &"55".repeat(30), "45:00"] {
            assert!(read(text, &names).is_err(), "{text}");
        }
    }
}
