//! A host's DHCPv6 messages for a delegated prefix: Solicit, Advertise, Request and Reply (RFC 8415, section 18.2).

use core::net::Ipv6Addr;

use edge::v6::link_local;
use wire::dhcpv6::{ALL_SERVERS, CLIENT_PORT, Kind, Lease, Message, SERVER_PORT, Writer, code};
use wire::dhcpv6::{Association, Options};
use wire::{ndp, udp};

/// The hosts' one identity association.
const IAID: u32 = 1;

/// How far a host is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// It waits for a Router Advertisement.
    #[default]
    Idle,
    Soliciting,
    Requesting,
    /// It has a prefix.
    Bound,
}

/// What a server's message has for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer<'a> {
    pub(super) kind: Kind,
    pub(super) server: &'a [u8],
    pub(super) prefix: Lease,
}

/// Reads a message for a host: an Advertise or a Reply with a prefix.
pub(super) fn read(content: &[u8], host: u16) -> Option<Answer<'_>> {
    let message = Message::read(content).ok()?;
    let prefix = |options: Options<'_>| {
        let association = options.only(code::IA_PD).ok()??;
        Association::read(association)?.leases().next()
    };
    Some(Answer {
        kind: message.kind,
        server: message.options.only(code::SERVER_ID).ok()??,
        prefix: prefix(message.options)?,
    })
    .filter(|_| message.transaction == transaction(host))
}

fn transaction(host: u16) -> [u8; 3] {
    let [a, b] = host.to_be_bytes();
    [0x5e, a, b]
}

/// Appends a Solicit, or the Request that answers an Advertise, as an IPv6 packet of the host with this interface
/// identifier.
pub(super) fn write(host: u16, identifier: u64, offer: Option<&Answer<'_>>, out: &mut Vec<u8>) {
    let addresses: [Ipv6Addr; 2] = [link_local(identifier), ALL_SERVERS];
    ndp::write_packet(addresses, (udp::PROTOCOL, 6, 1), out, |out| {
        let start = out.len();
        for word in [CLIENT_PORT, SERVER_PORT, 0, 0] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        let kind = offer.map_or(Kind::Solicit, |_| Kind::Request);
        let mut message = Writer::new(kind, transaction(host), out);
        let mac = super::frames::host(host);
        message.option(code::CLIENT_ID, &[&[0, 3, 0, 1], &mac.0]);
        message.option(code::ELAPSED_TIME, &[&[0, 0]]);
        message.option(code::ORO, &[&code::DNS_SERVERS.to_be_bytes()]);
        if let Some(offer) = offer {
            message.option(code::SERVER_ID, &[offer.server]);
        }
        message.association(code::IA_PD, [IAID, 0, 0], |inner| {
            if let Some(offer) = offer {
                offer.prefix.write(inner);
            }
        });
        let length = (out.len() - start) as u16;
        out[start + 4..start + 6].copy_from_slice(&length.to_be_bytes());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_asks_for_the_prefix_that_it_was_offered() {
        let lease = Lease {
            address: "2001:db8:4000::".parse().unwrap(),
            length: Some(56),
            preferred_s: 10,
            valid_s: 20,
        };
        let mut advertise = Vec::new();
        let mut message = Writer::new(Kind::Advertise, transaction(7), &mut advertise);
        message.option(code::SERVER_ID, &[b"server"]);
        message.association(code::IA_PD, [IAID, 5, 8], |inner| lease.write(inner));
        let answer = read(&advertise, 7).unwrap();
        assert_eq!((answer.kind, answer.prefix), (Kind::Advertise, lease));
        assert_eq!(read(&advertise, 8), None, "another host's transaction");
        let mut packet = Vec::new();
        write(7, 1, Some(&answer), &mut packet);
        let request = Message::read(&packet[48..]).unwrap();
        assert_eq!(request.kind, Kind::Request);
        assert_eq!(
            request.options.only(code::SERVER_ID),
            Ok(Some(b"server".as_slice()))
        );
        assert_eq!(read(&packet[48..], 7).unwrap().prefix, lease);
    }
}
