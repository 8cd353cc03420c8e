//! Composes a stream's packets, and matches replies to their stream.

use std::fs::File;
use std::io::{self, Read};

use ping::experiment::Far;
use ping::probe::{Probe, Tag};
use ping::{Sequence, StreamPlan};
use reactor::timed::{ErrorSource, NetworkError};
use rustix::io::Errno;
use wire::icmp::{Echo, Kind, Version};

/// Random identifiers by which we recognise our own packets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nonces {
    icmp: u32,
    udp: u64,
}

/// The stream that a packet belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// A tagged packet's stream, with the responder's data if there is any.
    Stream(u32, Sequence, Option<Far>),
    /// The stream of a packet without room for a tag, found by its address.
    Untagged(Sequence),
}

impl Nonces {
    /// Draws random identifiers.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn new() -> io::Result<Self> {
        let random = random()?;
        Ok(Self {
            icmp: random as u32,
            udp: random,
        })
    }

    /// A UDP stream's session: unique per stream, so that the responder counts each stream separately.
    fn udp(self, stream: u32) -> u64 {
        self.udp.wrapping_add(u64::from(stream) << 32)
    }

    /// Appends an echo request.
    pub(super) fn echo(
        self,
        version: Version,
        identifier: u16,
        (stream, plan, sequence): (u32, &StreamPlan, u64),
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        scratch.clear();
        Tag::emit(self.icmp, stream, sequence, plan.size, scratch);
        let echo = Echo {
            kind: Kind::Request,
            identifier,
            sequence: sequence as u16,
            data: scratch,
        };
        echo.emit(version, out);
    }

    /// Appends a UDP probe.
    pub(super) fn probe(
        self,
        (stream, plan, sequence): (u32, &StreamPlan, u64),
        out: &mut Vec<u8>,
    ) {
        let probe = Probe {
            nonce: self.udp(stream),
            sequence,
            stream,
            reply: None,
        };
        probe.emit(plan.size, out);
    }

    /// The stream of an echo reply; `None` if the packet is not ours.
    pub(super) fn of_echo(self, version: Version, identifier: u16, octets: &[u8]) -> Option<Whose> {
        let echo = Echo::parse(version, octets).ok()?;
        (echo.kind == Kind::Reply).then_some(())?;
        self.of_data(&echo, identifier)
    }

    fn of_data(self, echo: &Echo<'_>, identifier: u16) -> Option<Whose> {
        if echo.identifier != identifier {
            return None;
        }
        let low = Sequence::Low(echo.sequence);
        match Tag::parse(echo.data) {
            None => Some(Whose::Untagged(low)),
            Some(tag) if tag.nonce == self.icmp => {
                let sequence = tag.sequence.map_or(low, Sequence::Full);
                Some(Whose::Stream(tag.stream, sequence, None))
            }
            Some(_) => None,
        }
    }

    /// The stream of a responder's reply; `None` if the packet is not ours.
    pub(super) fn of_reply(self, octets: &[u8], started_unix_ns: u64) -> Option<Whose> {
        let probe = Probe::parse(octets)?;
        let stamps = probe.reply?;
        if probe.nonce != self.udp(probe.stream) {
            return None;
        }
        let after = |unix_ns: u64| unix_ns.wrapping_sub(started_unix_ns).cast_signed();
        let far = Far {
            arrived_ns: after(stamps.arrived_ns),
            departed_ns: after(stamps.departed_ns),
            count: stamps.count,
        };
        let sequence = Sequence::Full(probe.sequence);
        Some(Whose::Stream(probe.stream, sequence, Some(far)))
    }

    /// The stream of the echo request that an ICMP error quotes.
    pub(super) fn of_quoted_echo(
        self,
        version: Version,
        identifier: u16,
        octets: &[u8],
    ) -> Option<Whose> {
        let echo = Echo::parse_quoted(version, octets).ok()?;
        self.of_data(&echo, identifier)
    }

    /// The stream of the probe that an ICMP error quotes.
    pub(super) fn of_quoted_probe(self, octets: &[u8]) -> Option<Whose> {
        let probe = Probe::parse(octets)?;
        let sequence = Sequence::Full(probe.sequence);
        (probe.nonce == self.udp(probe.stream)).then_some(Whose::Stream(
            probe.stream,
            sequence,
            None,
        ))
    }
}

/// 64 bits from the kernel.
///
/// # Errors
/// The kernel's error.
pub(super) fn random() -> io::Result<u64> {
    let mut octets = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut octets)?;
    Ok(u64::from_ne_bytes(octets))
}

/// The text of an error, in ping's words.
pub(super) fn explain(error: &NetworkError, six: bool) -> String {
    let mtu = error.info;
    let ErrorSource::Icmp { kind, code } = error.source else {
        return match Errno::from_io_error(&error.error()) {
            Some(Errno::MSGSIZE) => format!("message too long, mtu={mtu}"),
            _ => plain(&error.error()),
        };
    };
    let text = match (six, kind, code) {
        (false, 3, 0) => "Destination Net Unreachable",
        (false, 3, 1) => "Destination Host Unreachable",
        (false, 3, 2) => "Destination Protocol Unreachable",
        (false, 3, 3) => "Destination Port Unreachable",
        (false, 3, 4) => return format!("Frag needed and DF set (mtu = {mtu})"),
        (false, 3, 9) => "Destination Net Prohibited",
        (false, 3, 10) => "Destination Host Prohibited",
        (false, 3, 13) => "Packet filtered",
        (false, 11, 0) => "Time to live exceeded",
        (true, 1, 0) => "Destination unreachable: No route",
        (true, 1, 1) => "Destination unreachable: Administratively prohibited",
        (true, 1, 3) => "Destination unreachable: Address unreachable",
        (true, 1, 4) => "Destination unreachable: Port unreachable",
        (true, 2, _) => return format!("Packet too big: mtu={mtu}"),
        (true, 3, 0) => "Time exceeded: Hop limit",
        _ => return format!("ICMP type {kind} code {code}"),
    };
    text.to_owned()
}

/// An error's text without its number.
pub(super) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((text, _)) => text.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Duration;
    use ping::Protocol;

    fn plan(size: u16) -> StreamPlan {
        StreamPlan {
            name: "a".into(),
            host: "a".into(),
            address: std::net::IpAddr::from([127, 0, 0, 1]),
            protocol: Protocol::Icmp,
            tos: 0,
            size,
            interval: Duration::from_secs(1),
            offset: Duration::ZERO,
            count: None,
        }
    }

    fn reply_to(nonces: Nonces, size: u16, sequence: u64) -> Vec<u8> {
        let (mut scratch, mut request, mut reply) = (vec![], vec![], vec![]);
        let packet = (5, &plan(size), sequence);
        nonces.echo(Version::V4, 77, packet, &mut scratch, &mut request);
        let mut echo = Echo::parse(Version::V4, &request).unwrap();
        assert_eq!(
            (echo.sequence, echo.data.len()),
            (sequence as u16, size.into())
        );
        echo.kind = Kind::Reply;
        echo.emit(Version::V4, &mut reply);
        reply
    }

    #[test]
    fn echo_replies_find_their_stream_by_tag_or_by_address() {
        let nonces = Nonces { icmp: 1, udp: 2 };
        let whose = |size| {
            let reply = reply_to(nonces, size, 65_540);
            nonces.of_echo(Version::V4, 77, &reply)
        };
        let full = Whose::Stream(5, Sequence::Full(65_540), None);
        assert_eq!(whose(56), Some(full));
        let low = Whose::Stream(5, Sequence::Low(4), None);
        assert_eq!(whose(8), Some(low));
        assert_eq!(whose(0), Some(Whose::Untagged(Sequence::Low(4))));
    }

    #[test]
    fn requests_and_replies_of_others_are_nobody_s() {
        let nonces = Nonces { icmp: 1, udp: 2 };
        let others = Nonces { icmp: 9, udp: 9 };
        let reply = reply_to(others, 56, 1);
        assert_eq!(nonces.of_echo(Version::V4, 77, &reply), None);
        let reply = reply_to(nonces, 56, 1);
        assert_eq!(nonces.of_echo(Version::V4, 78, &reply), None);
        let mut probe = Vec::new();
        nonces.probe((5, &plan(48), 1), &mut probe);
        assert_eq!(nonces.of_reply(&probe, 0), None, "a request");
        let quoted = Whose::Stream(5, Sequence::Full(1), None);
        assert_eq!(nonces.of_quoted_probe(&probe), Some(quoted));
        assert_eq!(others.of_quoted_probe(&probe), None);
    }
}
