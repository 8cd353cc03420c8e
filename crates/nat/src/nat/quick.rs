//! The short way of nearly all packets: whole TCP and UDP packets without IP options, of a mapping that exists and that
//! they leave as it is, but for the time of its last packet. All others take the way in [`super::translate`], which does the
//! same for these too, as its tests show.

use base::Instant;
use wire::ip::{Header, Upper};
use wire::packet::Fragment;

use super::early::Key;
use super::{Direction, Nat, tick};
use crate::config::{Config, Filtering};
use crate::discard::Discard;
use crate::pool::{NONE, Protocol};
use crate::rewrite::{self, Side, Sum};
use crate::subscribers::SubscriberId;
use crate::tcp::{Event, State};

/// Whether no packet needs a look at exempt destinations, nor at remote addresses.
pub(super) fn is_plain(config: &Config) -> bool {
    config.exempt.is_empty() && config.filtering == Filtering::EndpointIndependent
}

/// The protocol of a packet that may take the short way.
#[inline]
fn protocol(header: &Header, packet: &[u8]) -> Option<Protocol> {
    // The header's length excludes options and an authentication header.
    let is_usual = header.version == 4
        && header.header_length == 20
        && header.fragment == Fragment::Whole
        && header.upper == Upper::Ports;
    match header.protocol {
        _ if !is_usual => None,
        wire::tcp::PROTOCOL if packet.len() >= 38 => Some(Protocol::Tcp),
        wire::udp::PROTOCOL if packet.len() >= 28 => Some(Protocol::Udp),
        _ => None,
    }
}

impl Nat {
    /// Translates a packet from a subscriber; `None` if it did nothing.
    #[inline]
    pub(super) fn quick_out(
        &mut self,
        subscriber: SubscriberId,
        header: &Header,
        packet: &mut [u8],
        sum: Sum,
        now: Instant,
    ) -> Option<Result<(), Discard>> {
        let protocol = protocol(header, packet)?;
        let tick = tick(now);
        let (source, destination) = (header.source as u32, header.destination as u32);
        if !self.is_plain || self.pool.index_of(destination).is_some() {
            return None;
        }
        let port = header.source_port;
        let ahead = self
            .ahead
            .take(Key::new(Direction::Out, protocol, source, port));
        let found = match self.mappings.get(ahead as usize) {
            Some(mapping) if mapping.is_of(source, port, protocol) => ahead,
            _ => match self.find_or_make(subscriber, header, protocol, now)? {
                Ok(found) => found,
                Err(why) => return Some(Err(why)),
            },
        };
        let mapping = self.mappings.get_mut(found as usize)?;
        let passes = match protocol {
            Protocol::Tcp => {
                mapping.state == State::Established
                    && mapping.last + self.ticks.established > tick
                    && (mapping.remote, mapping.remote_port)
                        == (destination, header.destination_port)
                    && Event::of(header.tcp_flags, true) == Event::Data
            }
            Protocol::Udp | Protocol::Icmp => !mapping.is_held(),
        };
        if !passes {
            return None;
        }
        if mapping.last != tick {
            mapping.last = tick;
        }
        let (external, sums) = ((mapping.external, mapping.external_port), mapping.sums);
        let identification = match header.dont_fragment {
            true => None,
            false => Some(self.identification(external.0, destination, sum)),
        };
        let is_udp = protocol == Protocol::Udp;
        rewrite::quick(
            packet,
            is_udp,
            Side::Source,
            external,
            sums,
            identification,
            sum,
        );
        Some(Ok(()))
    }

    /// The mapping of a packet that was not found ahead; a new one of UDP, whose first packet has no more to do than others.
    #[inline(never)]
    fn find_or_make(
        &mut self,
        subscriber: SubscriberId,
        header: &Header,
        protocol: Protocol,
        now: Instant,
    ) -> Option<Result<u32, Discard>> {
        let source = (header.source as u32, header.source_port);
        match self.find(source.0, source.1, protocol) {
            Some(found) => Some(Ok(found)),
            None if protocol == Protocol::Udp => {
                Some(self.create(subscriber, protocol, source, now))
            }
            None => None,
        }
    }

    /// Translates a packet to one of the external addresses. Returns whether it did; if not, nothing changed.
    #[inline]
    pub(super) fn quick_in(
        &mut self,
        header: &Header,
        packet: &mut [u8],
        sum: Sum,
        tick: u32,
    ) -> bool {
        let Some(protocol) = protocol(header, packet) else {
            return false;
        };
        if !self.is_plain {
            return false;
        }
        let (destination, port) = (header.destination as u32, header.destination_port);
        let ahead = self
            .ahead
            .take(Key::new(Direction::In, protocol, destination, port));
        let found = match self.mappings.get(ahead as usize) {
            Some(mapping) if mapping.is_at(destination, port, protocol) => ahead,
            _ => {
                let address = self.pool.index_of(destination);
                let found = address.and_then(|at| self.pool.mapping(at, port, protocol));
                found.unwrap_or(NONE)
            }
        };
        let Some(mapping) = self.mappings.get_mut(found as usize) else {
            return false;
        };
        let refreshes = match protocol {
            Protocol::Tcp => {
                let passes = mapping.state == State::Established
                    && mapping.last + self.ticks.established > tick
                    && (mapping.remote, mapping.remote_port)
                        == (header.source as u32, header.source_port)
                    && Event::of(header.tcp_flags, false) == Event::Data
                    && !self.controls.has(header.source_port);
                if !passes {
                    return false;
                }
                true
            }
            Protocol::Udp | Protocol::Icmp => {
                let is_expired = mapping.last + self.ticks.udp <= tick && !mapping.is_static();
                if is_expired || mapping.is_held() {
                    return false;
                }
                self.config.timeouts.inbound_refreshes
            }
        };
        if refreshes && mapping.last != tick {
            mapping.last = tick;
        }
        let inside = (mapping.inside, mapping.inside_port);
        let sums = mapping.sums.reversed();
        let is_udp = protocol == Protocol::Udp;
        rewrite::quick(packet, is_udp, Side::Destination, inside, sums, None, sum);
        true
    }
}
