//! Packets in both directions, and hairpinning (RFC 4787 REQ-9, RFC 5382 REQ-8).

use base::Instant;
use wire::ip::Header;
use wire::packet::Fragment;

use super::flow::{Content, Flow, header_length};
use super::{Direction, Nat, Verdict, tick};
use crate::discard::Discard;
use crate::pool::Protocol;
use crate::rewrite::{self, Side, Sum};
use crate::subscribers::SubscriberId;

impl Nat {
    /// Translates a packet from a subscriber, in place. `header` is that of `packet`, which has no padding. The caller has
    /// checked that the subscriber may use the source address.
    ///
    /// The headers of a super-packet are translated like any others, with [`Sum::Partial`].
    ///
    /// # Errors
    /// The packet is to be dropped; it is unchanged, and counted.
    #[inline]
    pub fn outbound(
        &mut self,
        subscriber: SubscriberId,
        header: &Header,
        packet: &mut [u8],
        sum: Sum,
        now: Instant,
    ) -> Result<Verdict, Discard> {
        match self.quick_out(subscriber, header, packet, sum, now) {
            Some(Ok(())) => {
                self.counters.outbound += 1;
                return Ok(Verdict::Translated);
            }
            Some(Err(why)) => {
                self.counters.discards[why as usize] += 1;
                return Err(why);
            }
            None => {}
        }
        self.outbound_any(subscriber, header, packet, sum, now)
    }

    fn outbound_any(
        &mut self,
        subscriber: SubscriberId,
        header: &Header,
        packet: &mut [u8],
        sum: Sum,
        now: Instant,
    ) -> Result<Verdict, Discard> {
        let result = match Content::of(header, packet) {
            _ if self.is_exempt(header) => Ok(Verdict::Untouched),
            Ok(Content::Flow { flow, is_reply }) => match is_reply {
                // A reply to a query from outside, which no mapping lets in.
                true => Err(Discard::NoMapping),
                false => self.flow_out(subscriber, flow, header, packet, sum, now),
            },
            Ok(Content::Error) => self.error_out(header, packet, now),
            Ok(Content::Later) => self.later(Direction::Out, header, packet, now),
            Err(why) => Err(why),
        };
        match result {
            Ok(Verdict::Translated) => self.counters.outbound += 1,
            Ok(Verdict::Hairpin) => self.counters.hairpinned += 1,
            Ok(Verdict::Untouched) => self.counters.untouched += 1,
            Ok(Verdict::Held) => {}
            Err(why) => self.counters.discards[why as usize] += 1,
        }
        result
    }

    /// Translates a packet to one of the external addresses, in place, as [`Nat::outbound`] does.
    ///
    /// # Errors
    /// The packet is to be dropped; it is unchanged, and counted.
    #[inline]
    pub fn inbound(
        &mut self,
        header: &Header,
        packet: &mut [u8],
        sum: Sum,
        now: Instant,
    ) -> Result<Verdict, Discard> {
        if self.quick_in(header, packet, sum, tick(now)) {
            self.counters.inbound += 1;
            return Ok(Verdict::Translated);
        }
        self.inbound_any(header, packet, sum, now)
    }

    fn inbound_any(
        &mut self,
        header: &Header,
        packet: &mut [u8],
        sum: Sum,
        now: Instant,
    ) -> Result<Verdict, Discard> {
        let result = match Content::of(header, packet) {
            Ok(Content::Flow { flow, is_reply }) => {
                self.flow_in(flow, is_reply, header, packet, sum, now)
            }
            Ok(Content::Error) => self.error_in(header, packet, now),
            Ok(Content::Later) => self.later(Direction::In, header, packet, now),
            Err(why) => Err(why),
        };
        match result {
            Ok(Verdict::Held) => {}
            Ok(_) => self.counters.inbound += 1,
            Err(why) => self.counters.discards[why as usize] += 1,
        }
        result
    }

    /// Whether this destination is not translated (RFC 6888 REQ-6).
    #[inline]
    pub(super) fn is_exempt(&self, header: &Header) -> bool {
        !self.config.exempt.is_empty() && header.version == 4 && {
            let (address, port) = (header.destination as u32, header.destination_port);
            let ports_known = header.upper == wire::ip::Upper::Ports;
            self.config.exempt.iter().any(|one| {
                let is_port = one
                    .ports
                    .is_none_or(|(first, last)| ports_known && (first..=last).contains(&port));
                one.addresses.position(address).is_some() && is_port
            })
        }
    }

    #[inline]
    fn flow_out(
        &mut self,
        subscriber: SubscriberId,
        flow: Flow,
        header: &Header,
        packet: &mut [u8],
        sum: Sum,
        now: Instant,
    ) -> Result<Verdict, Discard> {
        let hairpin = self.pool.index_of(flow.destination);
        if hairpin.is_some() && flow.protocol == Protocol::Icmp {
            // RFC 5508 REQ-7 asks for hairpinned queries of Basic NAT only; no mapping lets a query in.
            return Err(Discard::NoMapping);
        }
        if hairpin.is_some() && !self.config.hairpinning {
            return Err(Discard::Hairpinning);
        }
        let at = self.resolve_out(subscriber, &flow, now)?;
        let mapping = self.mappings[at as usize];
        let external = (mapping.external, mapping.external_port);
        let target = match hairpin {
            None => None,
            Some(_) if self.config.share.has_others() => {
                self.counters.hairpinned += 1;
                None
            }
            Some(address) => {
                let flow = Flow {
                    source: external.0,
                    source_port: external.1,
                    ..flow
                };
                let at = self.resolve_in(address, &flow, now)?;
                let target = self.mappings[at as usize];
                Some((target.inside, target.inside_port))
            }
        };
        let old = (flow.source, flow.destination, rewrite::word(packet, 4));
        self.renumber(header, packet, external.0, sum);
        set_endpoint(packet, flow.protocol, Side::Source, external, sum);
        if let Some(inside) = target {
            set_endpoint(packet, flow.protocol, Side::Destination, inside, sum);
        }
        if header.fragment == Fragment::First {
            let translation = super::pieces::Translation {
                source: Some(external.0),
                destination: target.map(|target| target.0),
                identification: rewrite::word(packet, 4),
            };
            let key = super::pieces::Key::new(Direction::Out, old, flow.protocol);
            self.note_first(key, translation, tick(now));
        }
        match target {
            Some(_) => Ok(Verdict::Hairpin),
            None => Ok(Verdict::Translated),
        }
    }

    #[inline]
    fn flow_in(
        &mut self,
        flow: Flow,
        is_reply: bool,
        header: &Header,
        packet: &mut [u8],
        sum: Sum,
        now: Instant,
    ) -> Result<Verdict, Discard> {
        let address = self.pool.index_of(flow.destination);
        let address = address.ok_or(Discard::NoMapping)?;
        if flow.protocol == Protocol::Icmp && !is_reply {
            return Err(Discard::NoMapping);
        }
        let at = self.resolve_in(address, &flow, now)?;
        let mapping = self.mappings[at as usize];
        let inside = (mapping.inside, mapping.inside_port);
        set_endpoint(packet, flow.protocol, Side::Destination, inside, sum);
        if flow.protocol == Protocol::Tcp && self.controls.has(flow.source_port) {
            self.inbound_ftp(header, packet, sum, now);
        }
        if header.fragment == Fragment::First {
            let translation = super::pieces::Translation {
                source: None,
                destination: Some(inside.0),
                identification: None,
            };
            let old = (flow.source, flow.destination, rewrite::word(packet, 4));
            let key = super::pieces::Key::new(Direction::In, old, flow.protocol);
            self.note_first(key, translation, tick(now));
        }
        Ok(Verdict::Translated)
    }

    /// Gives a datagram that is or may be fragmented a new identification, because several hosts now share its source
    /// address (RFC 6864 section 5.3.1, RFC 7857 section 10). An atomic datagram keeps its own.
    #[inline]
    fn renumber(&mut self, header: &Header, packet: &mut [u8], external: u32, sum: Sum) {
        if header.dont_fragment && header.fragment == Fragment::Whole {
            return;
        }
        let next = self.identification(external, header.destination as u32, sum);
        rewrite::identification(packet, next);
    }

    /// The next identification of datagrams between two hosts.
    #[inline]
    pub(super) fn identification(&mut self, external: u32, remote: u32, sum: Sum) -> u16 {
        // Of address, remote address and protocol, as the RFC wants it unique, 256 counters.
        let mixed = (external ^ remote).wrapping_mul(0x9e37_79b1) >> 24;
        let next = &mut self.identifications[mixed as usize];
        // A super-packet numbers up to 64 kB of segments from its own number on.
        *next = next.wrapping_add(if sum == Sum::Partial { 64 } else { 1 });
        self.config.share.identification(*next)
    }
}

#[inline]
fn set_endpoint(packet: &mut [u8], protocol: Protocol, side: Side, new: (u32, u16), sum: Sum) {
    let transport = header_length(packet);
    match protocol {
        Protocol::Tcp => rewrite::endpoint(packet, transport, false, side, new, sum),
        Protocol::Udp => rewrite::endpoint(packet, transport, true, side, new, sum),
        Protocol::Icmp => rewrite::query(packet, transport, side, new),
    }
}
