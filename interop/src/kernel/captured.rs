//! Reads tcpdump's captures from a guest: IP packets with timestamps in nanoseconds.

use anyhow::{Context, Result, ensure};
use std::path::Path;

/// The magic number of a capture file in this machine's byte order with nanoseconds
/// (`--time-stamp-precision=nano`).
const NANOSECONDS: [u8; 4] = 0xa1b2_3c4d_u32.to_le_bytes();

/// Bytes before the first packet, before each packet, and of Ethernet's header.
const FILE: usize = 24;
const RECORD: usize = 16;
const ETHERNET: usize = 14;

/// An IP packet on a wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) at_ns: u64,
    /// TOS octet or traffic class.
    pub(crate) traffic_class: u8,
    /// The length in the IP header, in bytes, including that header.
    pub(crate) length: usize,
    pub(crate) protocol: u8,
    /// The bytes from the transport header on.
    pub(crate) content: Vec<u8>,
}

/// An ICMP or ICMPv6 echo packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Echo {
    Request(u16),
    Reply(u16),
}

impl Seen {
    fn read(at_ns: u64, packet: &[u8]) -> Option<Seen> {
        let word = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
        let (traffic_class, length, protocol, header) = match packet.first()? >> 4 {
            4 => {
                let header = usize::from(packet[0] & 15) * 4;
                (*packet.get(1)?, word(2)?.into(), *packet.get(9)?, header)
            }
            6 => {
                let class = (word(0)? >> 4) as u8;
                (class, 40 + usize::from(word(4)?), *packet.get(6)?, 40)
            }
            _ => return None,
        };
        Some(Seen {
            at_ns,
            traffic_class,
            length,
            protocol,
            content: packet.get(header..)?.to_vec(),
        })
    }

    /// The kind of echo packet, with its sequence number.
    pub(crate) fn echo(&self) -> Option<Echo> {
        let sequence = u16::from_be_bytes([*self.content.get(6)?, *self.content.get(7)?]);
        match (self.protocol, self.content[0]) {
            (1, 8) | (58, 128) => Some(Echo::Request(sequence)),
            (1, 0) | (58, 129) => Some(Echo::Reply(sequence)),
            _ => None,
        }
    }

    /// UDP's destination port.
    pub(crate) fn udp_to(&self) -> Option<u16> {
        let port = u16::from_be_bytes([*self.content.get(2)?, *self.content.get(3)?]);
        (self.protocol == 17).then_some(port)
    }
}

/// Every IP packet in a capture file, in the order of the file.
///
/// # Errors
/// The file is missing, of another format, or truncated.
pub(crate) fn read(path: &Path) -> Result<Vec<Seen>> {
    let octets = std::fs::read(path).with_context(|| path.display().to_string())?;
    parse(&octets).with_context(|| path.display().to_string())
}

fn parse(octets: &[u8]) -> Result<Vec<Seen>> {
    ensure!(
        octets.starts_with(&NANOSECONDS),
        "no capture in nanoseconds"
    );
    let mut rest = octets.get(FILE..).context("cut short")?;
    let mut packets = Vec::new();
    while !rest.is_empty() {
        let word = |at: usize| -> Result<u64> {
            let octets = rest.get(at..at + 4).context("cut short")?;
            Ok(u32::from_le_bytes(octets.try_into()?).into())
        };
        let at_ns = word(0)? * 1_000_000_000 + word(4)?;
        let end = RECORD + usize::try_from(word(8)?)?;
        let frame = rest.get(RECORD..end).context("cut short")?;
        packets.extend(Seen::read(at_ns, frame.get(ETHERNET..).unwrap_or_default()));
        rest = &rest[end..];
    }
    Ok(packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(frames: &[Vec<u8>]) -> Vec<u8> {
        let mut file = vec![0; FILE];
        file[..4].copy_from_slice(&NANOSECONDS);
        for frame in frames {
            let length = u32::try_from(frame.len()).unwrap();
            for word in [7, 8, length, length] {
                file.extend_from_slice(&word.to_le_bytes());
            }
            file.extend_from_slice(frame);
        }
        file
    }

    #[test]
    fn packets_of_both_families_are_read() {
        let four = "450000240000000040010000 0a000001 0a000002 0800000000010003 0000000000000000";
        let six = "6b8000000008 3a40 \
                   fd000000000000000000000000000001 fd000000000000000000000000000002 8100000000010004";
        let frames = [four, six].map(|text| {
            let digits: Vec<u8> = text.bytes().filter(|digit| *digit != b' ').collect();
            let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
            let packet = digits.chunks(2).map(|pair| octet(pair).unwrap());
            [0; ETHERNET].into_iter().chain(packet).collect()
        });
        let seen = parse(&file(&frames)).unwrap();
        assert_eq!(seen[0].at_ns, 7_000_000_008);
        assert_eq!((seen[0].traffic_class, seen[0].length), (0, 36));
        assert_eq!(seen[0].echo(), Some(Echo::Request(3)));
        assert_eq!((seen[1].traffic_class, seen[1].length), (0xb8, 48));
        assert_eq!(seen[1].echo(), Some(Echo::Reply(4)));
        assert_eq!(seen[1].udp_to(), None);
    }

    #[test]
    fn a_file_that_is_cut_short_is_refused() {
        let whole = file(&[vec![0; 40]]);
        assert!(parse(&whole).is_ok());
        for end in (0..whole.len()).filter(|end| *end != FILE) {
            assert!(parse(&whole[..end]).is_err(), "{end}");
        }
    }
}
