//! Which of several NATs ([`crate::Share`]) translates a packet to an external address.
//!
//! The port decides, or the port that an ICMP error quotes. Later fragments have no port: they go to the NAT that their
//! datagram's addresses and identification name. The NAT that translates the first fragment sends it a [`Fragmented`];
//! until then it keeps them as any NAT keeps fragments that arrive before their first one.

use std::net::Ipv4Addr;

use base::Instant;
use wire::ip::Header;
use wire::packet::Fragment;

use super::errors::quoted_source;
use super::flow::Content;
use super::pieces::{Key, Translation};
use super::{Direction, Nat, tick};
use crate::layout::Purpose;
use crate::pool::Protocol;
use crate::rewrite::word;
use crate::table::hash;

/// The NAT that translates a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// This one: no other one would do more with it.
    Here,
    /// The one with this number.
    Share(u16),
    /// The one that has the subscriber with this inside address; if there is none, this one.
    Inside(Ipv4Addr),
}

/// How the first fragment of a datagram was translated, for the NAT that has the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragmented {
    key: Key,
    inside: u32,
}

impl Nat {
    /// Which NAT translates a packet to an external address. `header` is that of `packet`.
    #[must_use]
    pub fn home(&self, header: &Header, packet: &[u8]) -> Home {
        if !self.config.share.has_others() {
            return Home::Here;
        }
        let (protocol, external, port) = match Content::of(header, packet) {
            Ok(Content::Flow { flow, .. }) => {
                (flow.protocol, flow.destination, flow.destination_port)
            }
            Ok(Content::Error) => match quoted_source(header, packet) {
                Some(quoted) => quoted,
                None => return Home::Here,
            },
            Ok(Content::Later) => {
                let key = Key::of(header, packet);
                return Home::Share(self.home_of(&key));
            }
            Err(_) => return Home::Here,
        };
        let Some(address) = self.pool.index_of(external) else {
            return Home::Here;
        };
        let inside = match self.pool.layout.purpose(address, port) {
            Purpose::Dynamic(number) => return Home::Share(number),
            Purpose::Low => {
                let mapping = self.pool.mapping(address, port, protocol);
                mapping.map(|at| self.mappings[at as usize].inside.into())
            }
            Purpose::Fixed => self.deterministic_inside(external.into(), port),
            Purpose::None => None,
        };
        inside.map_or(Home::Here, Home::Inside)
    }

    /// The NAT that has the later fragments of a datagram.
    fn home_of(&self, key: &Key) -> u16 {
        // Not secret: a flood to one NAT is possible with ports too.
        let mixed = u64::from(hash(
            [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03],
            key.ends(),
            key.rest(),
        ));
        let of = u64::from(self.config.share.of());
        ((mixed * of) >> 32) as u16
    }

    /// What another NAT has to know about a datagram whose first fragment [`Nat::inbound`] has translated: the number of that
    /// NAT, and a message for its [`Nat::note_fragmented`]; `None` if nothing. `before` is the header until then, `after` the
    /// packet now.
    #[must_use]
    pub fn fragmented(&self, before: &Header, after: &[u8]) -> Option<(u16, Fragmented)> {
        let share = self.config.share;
        if !share.has_others() || before.fragment != Fragment::First {
            return None;
        }
        let key = Key::of(before, after);
        let number = self.home_of(&key);
        let inside = after.get(16..20)?;
        let inside = u32::from_be_bytes(inside.try_into().ok()?);
        (number != share.number()).then_some((number, Fragmented { key, inside }))
    }

    /// Takes the translation of a datagram whose first fragment another NAT has translated. [`Nat::poll_released`] returns
    /// fragments that waited for it.
    pub fn note_fragmented(&mut self, fragmented: &Fragmented, now: Instant) {
        let translation = Translation {
            source: None,
            destination: Some(fragmented.inside),
            identification: None,
        };
        self.note_first(fragmented.key, translation, tick(now));
    }
}

impl Key {
    /// The key of a fragment to an external address. Its identification is not translated.
    fn of(header: &Header, packet: &[u8]) -> Self {
        let ends = (
            header.source as u32,
            header.destination as u32,
            word(packet, 4),
        );
        Self::new(Direction::In, ends, Protocol::of(header.protocol))
    }
}
