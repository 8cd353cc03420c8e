//! ICMP errors in both directions (RFC 5508 section 4, RFC 3022 section 4.3, RFC 7857 sections 7.1 and 12).
//!
//! An error is found by the packet that it quotes. Neither the error's mapping nor its connection is refreshed or ended by
//! it (RFC 4787 REQ-12, RFC 5382 REQ-10, RFC 5508 REQ-6), and the filter does not judge its source (RFC 4787 REQ-12a).

use base::Instant;
use wire::ip::Header;
use wire::packet::Fragment;
use wire::{icmp, tcp, udp};

use super::flow::{Kind, header_length};
use super::{Nat, Verdict, tick};
use crate::discard::Discard;
use crate::pool::Protocol;
use crate::rewrite::{self, Side, word};

/// The packet that an error quotes.
struct Quoted {
    protocol: Protocol,
    source: u32,
    destination: u32,
    source_port: u16,
    destination_port: u16,
    /// Octets of its IP header.
    length: usize,
}

/// Reads what an error quotes, after the checks of RFC 5508 REQ-3. The quoted transport checksum is not checked (REQ-3c),
/// so extensions behind the quote do not matter (REQ-3d).
fn quoted(header: &Header, packet: &[u8]) -> Result<Quoted, Discard> {
    if header.fragment != Fragment::Whole {
        return Err(Discard::Cut);
    }
    let message = packet.get(header_length(packet)..).unwrap_or_default();
    if wire::checksum::sum(message) != 0xffff {
        return Err(Discard::IcmpDamaged);
    }
    let quote = message.get(8..).ok_or(Discard::Cut)?;
    // REQ-3b: the transport header is behind the options.
    let length = header_length(quote);
    if wire::checksum::ip_ok(quote) != Some(true) {
        return Err(Discard::IcmpDamaged);
    }
    let transport = quote.get(length..).filter(|rest| rest.len() >= 8);
    let transport = transport.ok_or(Discard::Cut)?;
    let is_later = word(quote, 6).is_some_and(|field| field & 0x1fff != 0);
    let at = |at| word(transport, at).ok_or(Discard::Cut);
    let (protocol, source_port, destination_port) = match quote[9] {
        _ if is_later => return Err(Discard::NoMapping),
        tcp::PROTOCOL => (Protocol::Tcp, at(0)?, at(2)?),
        udp::PROTOCOL => (Protocol::Udp, at(0)?, at(2)?),
        icmp::PROTOCOL if matches!(Kind::of(transport[0]), Kind::Request | Kind::Reply) => {
            (Protocol::Icmp, at(4)?, at(4)?)
        }
        _ => return Err(Discard::NoMapping),
    };
    let address =
        |at: usize| u32::from_be_bytes([quote[at], quote[at + 1], quote[at + 2], quote[at + 3]]);
    Ok(Quoted {
        protocol,
        source: address(12),
        destination: address(16),
        source_port,
        destination_port,
        length,
    })
}

/// The endpoint that sent what an error quotes, if that can be read.
pub(super) fn quoted_source(header: &Header, packet: &[u8]) -> Option<(Protocol, u32, u16)> {
    let quoted = quoted(header, packet).ok()?;
    Some((quoted.protocol, quoted.source, quoted.source_port))
}

impl Nat {
    /// The mapping of an external endpoint that an error quotes.
    fn quoted_mapping(&self, external: u32, port: u16, quoted: &Quoted, tick: u32) -> Option<u32> {
        let address = self.pool.index_of(external)?;
        let at = self.pool.mapping(address, port, quoted.protocol)?;
        (!self.is_expired(&self.mappings[at as usize], tick)).then_some(at)
    }

    /// An error from outside: RFC 5508 REQ-4.
    pub(super) fn error_in(
        &mut self,
        header: &Header,
        packet: &mut [u8],
        now: Instant,
    ) -> Result<Verdict, Discard> {
        let quoted = quoted(header, packet)?;
        let found = self.quoted_mapping(quoted.source, quoted.source_port, &quoted, tick(now));
        // An error goes to the source of what it quotes (RFC 1812 section 4.3.2.4).
        if quoted.source != header.destination as u32 {
            return Err(Discard::NoMapping);
        }
        let mapping = self.mappings[found.ok_or(Discard::NoMapping)? as usize];
        let inside = (mapping.inside, mapping.inside_port);
        let icmp = header_length(packet);
        rewrite::quoted(
            packet,
            icmp,
            quoted.length,
            quoted.protocol,
            Side::Source,
            inside,
        );
        rewrite::address(packet, Side::Destination, mapping.inside);
        Ok(Verdict::Translated)
    }

    /// An error from inside: RFC 5508 REQ-5; towards another subscriber REQ-7.
    pub(super) fn error_out(
        &mut self,
        header: &Header,
        packet: &mut [u8],
        now: Instant,
    ) -> Result<Verdict, Discard> {
        let quoted = quoted(header, packet)?;
        let tick = tick(now);
        let found = self.find(quoted.destination, quoted.destination_port, quoted.protocol);
        let found = found.filter(|&at| !self.is_expired(&self.mappings[at as usize], tick));
        let mapping = self.mappings[found.ok_or(Discard::NoMapping)? as usize];
        if quoted.source != header.destination as u32 {
            return Err(Discard::NoMapping);
        }
        let target = match self.pool.index_of(quoted.source) {
            None => None,
            Some(_) if self.config.share.has_others() => {
                self.counters.hairpinned += 1;
                None
            }
            Some(_) => {
                let at = self.quoted_mapping(quoted.source, quoted.source_port, &quoted, tick);
                Some(self.mappings[at.ok_or(Discard::NoMapping)? as usize])
            }
        };
        let icmp = header_length(packet);
        let external = (mapping.external, mapping.external_port);
        let (inner, protocol) = (quoted.length, quoted.protocol);
        rewrite::quoted(packet, icmp, inner, protocol, Side::Destination, external);
        // REQ-5c: of a host the address of its mapping; of a router on the way one of ours, for which the same serves.
        rewrite::address(packet, Side::Source, mapping.external);
        let Some(target) = target else {
            return Ok(Verdict::Translated);
        };
        let inside = (target.inside, target.inside_port);
        rewrite::quoted(packet, icmp, inner, protocol, Side::Source, inside);
        rewrite::address(packet, Side::Destination, target.inside);
        Ok(Verdict::Hairpin)
    }
}
