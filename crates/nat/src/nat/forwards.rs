//! Port forwarding: mappings that an operator or a subscriber asks for, in the manner of PCP's MAP (RFC 6887 section 11; RFC
//! 6888 REQ-9). This is the operation alone; PCP's messages are left out.
//!
//! A forwarded port is a mapping without a time-out, which the filter lets everybody use. Ports below
//! [`crate::Config::port_first`] of any external address are for forwarding only; other ports can be forwarded out of the
//! subscriber's own blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use base::{Duration, Instant};

use super::{Nat, tick};
use crate::discard::Discard;
use crate::event::{Event, Forward};
use crate::mapping::Mapping;
use crate::pool::Protocol;
use crate::subscribers::SubscriberId;

/// Forwarded ports that exist at once.
const FORWARDS_MAX: usize = 65_536;

/// A wish to forward a port.
#[derive(Debug, Clone, Copy)]
pub struct ForwardRequest {
    /// TCP or UDP.
    pub protocol: Protocol,
    /// The inside address.
    pub inside: Ipv4Addr,
    /// The inside port.
    pub inside_port: u16,
    /// The external address and port; `None` for one of the subscriber's ports.
    pub external: Option<(Ipv4Addr, u16)>,
    /// Whose block has the port, if it is not below the blocks.
    pub subscriber: Option<SubscriberId>,
    /// How long it lasts without another request; `None` for one that stays.
    pub lifetime: Option<Duration>,
}

/// Why a port cannot be forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ForwardError {
    /// Only TCP and UDP have ports.
    #[error("only ports of TCP and UDP can be forwarded")]
    Protocol,
    /// Not an external address of this NAT.
    #[error("{0} is not an external address")]
    NotExternal(Ipv4Addr),
    /// The port is in a block that is not the subscriber's.
    #[error("port {0} is in a port block that is not the subscriber's")]
    NotOwned(u16),
    /// Another mapping has the external port.
    #[error("port {0} has another mapping")]
    InUse(u16),
    /// The inside endpoint is forwarded from another external port.
    #[error("the inside port is forwarded from {0}:{1}")]
    Forwarded(Ipv4Addr, u16),
    /// Neither an external port nor a subscriber is named.
    #[error("neither an external port nor a subscriber")]
    Nobody,
    /// The table is full.
    #[error("{FORWARDS_MAX} ports are forwarded, which is the most")]
    Full,
    /// No mapping could be made.
    #[error(transparent)]
    Shortage(#[from] Discard),
}

type Key = (u32, u16, Protocol);

/// All forwarded ports.
#[derive(Debug, Default)]
pub(crate) struct Forwards {
    all: BTreeMap<Key, Forward>,
    lapses: BTreeSet<(Instant, Key)>,
    /// By inside address, the external one of a port below the blocks, and how many such ports.
    anchors: BTreeMap<u32, (u32, u32)>,
}

impl Forwards {
    /// The index of the external address that a subscriber should have, because one of its ports is forwarded from it.
    pub(super) fn anchor(&self, inside: u32) -> Option<u32> {
        self.anchors.get(&inside).map(|&(address, _)| address)
    }

    pub(super) fn next_lapse(&self) -> Option<Instant> {
        self.lapses.first().map(|&(at, _)| at)
    }
}

impl Nat {
    /// Forwards a port, or renews a forwarding with the same ends.
    ///
    /// A mapping that the inside endpoint already has becomes the forwarding, if no other external port is asked for;
    /// otherwise it ends, because an inside endpoint has one external endpoint (RFC 4787 REQ-1).
    ///
    /// # Errors
    /// The reason; nothing changed.
    pub fn forward(
        &mut self,
        wish: &ForwardRequest,
        now: Instant,
    ) -> Result<Forward, ForwardError> {
        if wish.protocol == Protocol::Icmp {
            return Err(ForwardError::Protocol);
        }
        let inside = (wish.inside.to_bits(), wish.inside_port);
        if self.pool.index_of(inside.0).is_some() {
            return Err(Discard::Source.into());
        }
        let found = self.find(inside.0, inside.1, wish.protocol);
        let until = wish.lifetime.map(|span| now + span);
        if let Some(at) = found {
            let mapping = self.mappings[at as usize];
            let external = (Ipv4Addr::from(mapping.external), mapping.external_port);
            let is_same = wish.external.is_none_or(|wanted| wanted == external);
            match (mapping.is_static(), is_same) {
                (true, true) => return Ok(self.renew(&mapping, until)),
                (true, false) => return Err(ForwardError::Forwarded(external.0, external.1)),
                (false, true) => {
                    self.has_room()?;
                    return Ok(self.fix(at, until, now));
                }
                (false, false) => {}
            }
        }
        self.has_room()?;
        let at = match wish.external {
            Some(external) => self.place(wish, external, found, now)?,
            None => {
                let id = wish.subscriber.ok_or(ForwardError::Nobody)?;
                self.create(id, wish.protocol, inside, now)?
            }
        };
        Ok(self.fix(at, until, now))
    }

    /// Ends the forwarding of an external port. Returns what it was.
    pub fn unforward(
        &mut self,
        protocol: Protocol,
        external: Ipv4Addr,
        port: u16,
        now: Instant,
    ) -> Option<Forward> {
        let key = (external.to_bits(), port, protocol);
        let forward = *self.forwards.all.get(&key)?;
        let address = self.pool.index_of(key.0)?;
        let mapping = self.pool.mapping(address, port, protocol)?;
        self.drop_mapping(mapping, now);
        Some(forward)
    }

    /// Forwarded ports, in the order of their external addresses.
    pub fn forwards(&self) -> impl ExactSizeIterator<Item = &Forward> {
        self.forwards.all.values()
    }

    fn has_room(&self) -> Result<(), ForwardError> {
        if self.forwards.all.len() >= FORWARDS_MAX {
            return Err(ForwardError::Full);
        }
        match self.counters.mappings >= self.config.limits.mappings_max {
            true => Err(Discard::MappingsFull.into()),
            false => Ok(()),
        }
    }

    /// Makes a mapping with a certain external port.
    fn place(
        &mut self,
        wish: &ForwardRequest,
        (external, port): (Ipv4Addr, u16),
        old: Option<u32>,
        now: Instant,
    ) -> Result<u32, ForwardError> {
        let address = self.pool.index_of(external.to_bits());
        let address = address.ok_or(ForwardError::NotExternal(external))?;
        let located = self.pool.locate(address, port);
        let (block, place) = located.ok_or(ForwardError::NotOwned(port))?;
        let owner = self.pool.block(block).owner;
        let is_low = port < self.config.port_first;
        let is_own = wish
            .subscriber
            .is_some_and(|id| id.index == owner && self.subscribers.get(id).is_some());
        if !is_low && !is_own {
            return Err(ForwardError::NotOwned(port));
        }
        if self.pool.mapping(address, port, wish.protocol).is_some() {
            return Err(ForwardError::InUse(port));
        }
        if let Some(old) = old {
            self.drop_mapping(old, now);
            // With its last mapping the block itself may have gone.
            if self.pool.block(block).owner != owner {
                return Err(ForwardError::NotOwned(port));
            }
        }
        let inside = (wish.inside.to_bits(), wish.inside_port);
        if let Some(subscriber) = self.subscribers.at_mut(owner) {
            subscriber.mappings += 1;
        }
        let mapping = Mapping::new(wish.protocol, inside, (external.to_bits(), port));
        let (_, count) = self.pool.ports_of(block);
        let at = self.insert(mapping, (block, count, place), tick(now));
        if is_low {
            let anchor = self.forwards.anchors.entry(inside.0);
            anchor.or_insert((address, 0)).1 += 1;
        }
        Ok(at)
    }

    /// Makes a forwarding of a mapping.
    fn fix(&mut self, at: u32, until: Option<Instant>, now: Instant) -> Forward {
        self.refresh(at, tick(now));
        self.mappings[at as usize].set_static();
        self.arm(at);
        let mapping = self.mappings[at as usize];
        let (block, _) = self.block_of(&mapping);
        let owner = self.pool.block(block).owner;
        let tag = self.subscribers.at_mut(owner).map_or(0, |one| one.tag);
        let forward = Forward {
            protocol: mapping.protocol(),
            external: mapping.external.into(),
            external_port: mapping.external_port,
            inside: mapping.inside.into(),
            inside_port: mapping.inside_port,
            tag,
            until,
        };
        let key = (mapping.external, mapping.external_port, mapping.protocol());
        self.forwards.all.insert(key, forward);
        if let Some(until) = until {
            self.forwards.lapses.insert((until, key));
        }
        if self.reports(forward.external_port) {
            self.events.push_back(Event::ForwardAdded(forward, now));
        }
        forward
    }

    fn renew(&mut self, mapping: &Mapping, until: Option<Instant>) -> Forward {
        let key = (mapping.external, mapping.external_port, mapping.protocol());
        let forward = self.forwards.all.get_mut(&key);
        let forward = forward.expect("a static mapping is a forwarding");
        let before = core::mem::replace(&mut forward.until, until);
        let forward = *forward;
        if let Some(before) = before {
            self.forwards.lapses.remove(&(before, key));
        }
        if let Some(until) = until {
            self.forwards.lapses.insert((until, key));
        }
        forward
    }

    /// Ends forwardings whose lifetime is over.
    pub(super) fn lapse(&mut self, now: Instant) {
        while let Some(&(until, (external, port, protocol))) = self.forwards.lapses.first()
            && until <= now
        {
            self.unforward(protocol, external.into(), port, now);
            // Also if there was none, so that the loop ends.
            let key = (external, port, protocol);
            self.forwards.lapses.remove(&(until, key));
        }
    }

    /// Whether this NAT reports the forwarding of a port: of several NATs all forward ports below the blocks.
    fn reports(&self, port: u16) -> bool {
        port >= self.config.port_first || self.config.share.number() == 0
    }

    /// Forgets the forwarding of a mapping that ends.
    pub(super) fn forgotten(&mut self, protocol: Protocol, external: u32, port: u16, now: Instant) {
        let key = (external, port, protocol);
        let Some(forward) = self.forwards.all.remove(&key) else {
            return;
        };
        if let Some(until) = forward.until {
            self.forwards.lapses.remove(&(until, key));
        }
        let inside = forward.inside.to_bits();
        if port < self.config.port_first
            && let Some(anchor) = self.forwards.anchors.get_mut(&inside)
        {
            anchor.1 -= 1;
            if anchor.1 == 0 {
                self.forwards.anchors.remove(&inside);
            }
        }
        if self.reports(port) {
            self.events.push_back(Event::ForwardRemoved(forward, now));
        }
    }
}
