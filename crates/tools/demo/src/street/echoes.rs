//! A ping to the server in the internet from each line: by IPv4 through the translation, and by IPv6 from the delegated
//! prefix (RFC 792, RFC 4443). The identifier marks them as the demo's; the sequence number is the number of the line.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::Instant;
use wire::checksum;
use wire::icmp::{Echo, Kind, PROTOCOL, PROTOCOL_V6, Version};
use wire::ip::Header;
use wire::ndp;

use super::hosts::Line;
use super::place::{SERVER, SERVER_V6};

/// The identifier of the pings.
const IDENTIFIER: u16 = 0x5e10;
/// The payload: as many bytes as those of `ping`.
const PAYLOAD: [u8; 56] = [0x5e; 56];
/// Bytes of an IPv4 header without options.
const IPV4_HEADER: u8 = 20;
const HOP_LIMIT: u8 = 64;

/// A ping to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    line: u16,
    from: IpAddr,
}

impl Probe {
    /// Those of all lines: IPv4 from the address, IPv6 from the delegated prefix. The first is the last in the list.
    pub(super) fn of_all(lines: &[Line]) -> Vec<Self> {
        let mut all = Vec::new();
        for (number, line) in lines.iter().enumerate().rev() {
            let (v6, v4) = (line.home().map(Into::into), line.ipv4.map(Into::into));
            let from = v6.into_iter().chain(v4);
            let line = number as u16;
            all.extend(from.map(|from| Self { line, from }));
        }
        all
    }

    /// Appends the IP packet.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let echo = Echo {
            kind: Kind::Request,
            identifier: IDENTIFIER,
            sequence: self.line,
            data: &PAYLOAD,
        };
        match self.from {
            IpAddr::V4(from) => write_v4(from, SERVER, &echo, out),
            IpAddr::V6(from) => {
                let addresses: [Ipv6Addr; 2] = [from, SERVER_V6];
                ndp::write_packet(addresses, (PROTOCOL_V6, 2, HOP_LIMIT), out, |out| {
                    echo.emit(Version::V6, out);
                });
            }
        }
    }
}

fn write_v4(from: Ipv4Addr, to: Ipv4Addr, echo: &Echo<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    let length = u16::from(IPV4_HEADER) + 8 + PAYLOAD.len() as u16;
    let [a, b] = length.to_be_bytes();
    out.extend_from_slice(&[0x45, 0, a, b, 0, 0, 0x40, 0, HOP_LIMIT, PROTOCOL, 0, 0]);
    out.extend_from_slice(&from.octets());
    out.extend_from_slice(&to.octets());
    let sum = !checksum::sum(&out[start..]);
    out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
    echo.emit(Version::V4, out);
}

/// Whether a packet may be a reply to a ping.
pub(super) fn may_be(header: &Header) -> bool {
    matches!(header.protocol, PROTOCOL | PROTOCOL_V6)
}

/// When a line's ping was first sent, and how long its reply took.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    sent: Option<Instant>,
    rtt_ms: Option<f64>,
}

/// The pings of all lines, and their replies.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    /// By IP version, 4 and 6, and by line.
    flights: [Vec<Flight>; 2],
}

impl Echoes {
    /// A ping leaves.
    pub(super) fn sent(&mut self, probe: &Probe, now: Instant) {
        let flights = &mut self.flights[usize::from(probe.from.is_ipv6())];
        let line = usize::from(probe.line);
        if flights.len() <= line {
            flights.resize(line + 1, Flight::default());
        }
        flights[line].sent.get_or_insert(now);
    }

    /// Takes a packet if it is a reply to one of the pings.
    pub(super) fn take(&mut self, header: &Header, packet: &[u8], now: Instant) -> bool {
        let (version, protocol) = match header.version {
            4 => (Version::V4, PROTOCOL),
            _ => (Version::V6, PROTOCOL_V6),
        };
        let start = usize::from(header.header_length);
        if header.protocol != protocol || start >= packet.len() {
            return false;
        }
        let Ok(echo) = Echo::parse(version, &packet[start..]) else {
            return false;
        };
        if (echo.kind, echo.identifier) != (Kind::Reply, IDENTIFIER) {
            return false;
        }
        let flights = &mut self.flights[usize::from(version == Version::V6)];
        if let Some(flight) = flights.get_mut(usize::from(echo.sequence))
            && let Some(sent) = flight.sent
        {
            let rtt_ms = now.since(sent).as_secs_f64() * 1e3;
            flight.rtt_ms.get_or_insert(rtt_ms);
        }
        true
    }

    /// Number of lines that sent a ping and got the reply, by IPv4 and by IPv6.
    pub(super) fn answered(&self) -> [(usize, usize); 2] {
        self.flights.each_ref().map(|flights| {
            let sent = flights.iter().filter(|flight| flight.sent.is_some());
            let answered = flights.iter().filter(|flight| flight.rtt_ms.is_some());
            (sent.count(), answered.count())
        })
    }

    /// The median round trip in milliseconds, by IPv4 and by IPv6.
    pub(super) fn median_ms(&self) -> [Option<f64>; 2] {
        self.flights.each_ref().map(|flights| {
            let mut all: Vec<f64> = flights.iter().filter_map(|flight| flight.rtt_ms).collect();
            all.sort_by(f64::total_cmp);
            all.get(all.len() / 2).copied()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reply to a ping, as a host sends it.
    fn reply(request: &[u8]) -> Vec<u8> {
        let header = Header::read(request).unwrap();
        let version = if header.version == 4 {
            Version::V4
        } else {
            Version::V6
        };
        let start = usize::from(header.header_length);
        let echo = Echo::parse(version, &request[start..]).unwrap();
        let mut packet = request[..start].to_vec();
        let kind = Kind::Reply;
        Echo { kind, ..echo }.emit(version, &mut packet);
        packet
    }

    #[test]
    fn a_reply_counts_once_for_its_line_and_other_packets_are_left_alone() {
        let line = Line {
            ipv4: Some(Ipv4Addr::new(100, 64, 0, 9)),
            delegated: aaa::Prefix::new("2001:db8:4000::".parse().unwrap(), 56),
            ..Line::default()
        };
        let mut probes = Probe::of_all(&[Line::default(), line]);
        assert_eq!(probes.len(), 2);
        let mut echoes = Echoes::default();
        for probe in probes.drain(..).rev() {
            let mut request = Vec::new();
            probe.write(&mut request);
            let header = Header::read(&request).unwrap();
            assert_eq!(header.source_address(), probe.from);
            assert_ne!(checksum::ip_ok(&request), Some(false));
            echoes.sent(&probe, Instant::ZERO);
            assert!(!echoes.take(&header, &request, Instant::ZERO), "a request");
            let reply = reply(&request);
            let header = Header::read(&reply).unwrap();
            for _ in 0..2 {
                assert!(echoes.take(&header, &reply, Instant::ZERO));
            }
        }
        assert_eq!(echoes.answered(), [(1, 1); 2]);
        assert_eq!(echoes.median_ms(), [Some(0.0); 2]);
    }
}
