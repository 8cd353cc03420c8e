//! Mappings: made, refreshed, timed out, removed (RFC 4787 REQ-1, REQ-5, REQ-6; RFC 5382 REQ-1, REQ-4, REQ-5; RFC 7857
//! sections 5 and 11).
//!
//! A mapping has one timer. A packet that refreshes it only writes the tick; when the timer fires, [`Nat::settle`] looks at
//! that tick, and arms it again if the mapping was in use. So an idle mapping costs one timer until it ends, and a busy one
//! a timer per time-out, however many packets it has.

use base::Instant;

use super::flow::Flow;
use super::{Nat, tick};
use crate::discard::Discard;
use crate::mapping::Mapping;
use crate::pool::{NONE, Protocol};
use crate::subscribers::SubscriberId;
use crate::tcp::State;

impl Nat {
    /// Ticks that a connection in this state may be idle.
    pub(super) fn tcp_ticks(&self, state: State) -> u32 {
        match state {
            State::Closed => 0,
            State::Init | State::ServerInit => self.ticks.opening,
            State::Established | State::ClientFin | State::ServerFin => self.ticks.established,
            State::BothFin | State::Trans => self.ticks.closing,
        }
    }

    /// The tick at which a mapping times out; `None` if it does not.
    #[inline]
    fn due(&self, mapping: &Mapping) -> Option<u32> {
        let span = match (mapping.protocol(), mapping.state) {
            (Protocol::Tcp, State::Closed) => return None,
            (Protocol::Tcp, state) => self.tcp_ticks(state),
            (Protocol::Udp | Protocol::Icmp, _) if mapping.is_static() => return None,
            (Protocol::Udp, _) => self.ticks.udp,
            (Protocol::Icmp, _) => self.ticks.icmp,
        };
        Some(mapping.last + span)
    }

    #[inline]
    pub(super) fn is_expired(&self, mapping: &Mapping, tick: u32) -> bool {
        mapping.is_held() || self.due(mapping).is_some_and(|due| due <= tick)
    }

    /// Arms a mapping's timer for its present state.
    pub(super) fn arm(&mut self, at: u32) {
        let mapping = self.mappings[at as usize];
        match self.due(&mapping) {
            Some(due) => self.timers.arm(at, due),
            None => self.timers.disarm(at),
        }
    }

    /// Makes a mapping for the source of a packet from a subscriber.
    pub(super) fn create(
        &mut self,
        id: SubscriberId,
        protocol: Protocol,
        (inside, inside_port): (u32, u16),
        now: Instant,
    ) -> Result<u32, Discard> {
        let limits = &self.config.limits;
        if self.pool.index_of(inside).is_some() {
            return Err(Discard::Source);
        }
        let subscriber = self.subscribers.get_mut(id).ok_or(Discard::Subscriber)?;
        let mut block = subscriber.block;
        if subscriber.mappings >= limits.mappings_per_subscriber {
            return Err(self.limited(id, Discard::SubscriberMappings, now));
        }
        if self.counters.mappings >= limits.mappings_max {
            return Err(Discard::MappingsFull);
        }
        if !subscriber.may_make(limits.new_per_second, now) {
            return Err(self.limited(id, Discard::SubscriberRate, now));
        }
        let random = match self.ahead.take_random() {
            Some(random) => random,
            None => (self.random() >> 32) as u32,
        };
        let mut found = None;
        while block != NONE && found.is_none() {
            let (address, number) = self.pool.layout.split(block);
            let (first, count) = self.pool.layout.ports_of(address, number);
            found = match self.pool.is_open(address) {
                true => self.pool.find_port(block, count, protocol, random),
                false => None,
            }
            .map(|place| (address, first, count, place));
            if found.is_none() {
                block = self.pool.block(block).next;
            }
        }
        let (address, first, count, place) = match found {
            Some(found) => found,
            None => {
                block = self.allocate(id, now)?;
                let (address, number) = self.pool.layout.split(block);
                let (first, count) = self.pool.layout.ports_of(address, number);
                let place = self.pool.find_port(block, count, protocol, random);
                (
                    address,
                    first,
                    count,
                    place.ok_or(Discard::SubscriberBlocks)?,
                )
            }
        };
        if let Some(subscriber) = self.subscribers.get_mut(id) {
            subscriber.mappings += 1;
        }
        let external = self.pool.external(address);
        let port = (u32::from(first) + place) as u16;
        let mapping = Mapping::new(protocol, (inside, inside_port), (external, port));
        Ok(self.insert(mapping, (block, count, place), tick(now)))
    }

    /// The block of a mapping, and its port's place there.
    pub(super) fn block_of(&self, mapping: &Mapping) -> (u32, u32) {
        let address = self.pool.index_of(mapping.external);
        let address = address.expect("external addresses stay known");
        let located = self.pool.locate(address, mapping.external_port);
        located.expect("a mapping's port is in a block")
    }

    /// Puts a mapping into all tables: block, ports of the block, and place there. The port is free, and there is room.
    pub(super) fn insert(
        &mut self,
        mapping: Mapping,
        (block, count, place): (u32, u32, u32),
        tick: u32,
    ) -> u32 {
        let mapping = Mapping {
            last: tick,
            ..mapping
        };
        let at = match self.free {
            NONE => {
                self.mappings.push(mapping);
                self.mappings.len() as u32 - 1
            }
            at => {
                self.free = core::mem::replace(&mut self.mappings[at as usize], mapping).sessions;
                at
            }
        };
        let protocol = mapping.protocol();
        let hash = self.hash(mapping.inside, mapping.inside_port, protocol);
        self.by_inside.insert(hash, at);
        self.pool.take_port(block, count, protocol, place, at);
        self.counters.mappings += 1;
        self.counters.mappings_made += 1;
        if let Some(due) = self.due(&mapping) {
            self.timers.arm(at, due);
        }
        at
    }

    /// Removes a mapping with its sessions; frees its port, and its block if it was the last one.
    pub(super) fn drop_mapping(&mut self, at: u32, now: Instant) {
        let mapping = self.mappings[at as usize];
        if !mapping.is_used() {
            return;
        }
        let mut session = mapping.sessions;
        while session != NONE {
            let next = self.sessions.get(session).next;
            self.sessions.remove(session);
            session = next;
        }
        let protocol = mapping.protocol();
        let hash = self.hash(mapping.inside, mapping.inside_port, protocol);
        self.by_inside.remove(hash, at);
        self.timers.disarm(at);
        if mapping.is_held() {
            self.held_ports -= 1;
        }
        self.mappings[at as usize] = Mapping::free(self.free);
        self.free = at;
        self.counters.mappings -= 1;
        let (block, place) = self.block_of(&mapping);
        self.pool.free_port(block, protocol, place);
        let owner = self.pool.block(block).owner;
        if let Some(subscriber) = self.subscribers.at_mut(owner) {
            subscriber.mappings -= 1;
            subscriber.is_told = false;
        }
        if mapping.is_static() {
            self.forgotten(protocol, mapping.external, mapping.external_port, now);
        }
        self.release(block, now);
    }

    /// Looks at a mapping whose timer fired, or that may have timed out. Returns whether it is still there.
    pub(super) fn settle(&mut self, at: u32, now: Instant) -> bool {
        let tick = tick(now);
        loop {
            let mapping = self.mappings[at as usize];
            let Some(due) = self.due(&mapping) else {
                return true;
            };
            if due > tick {
                self.arm(at);
                return true;
            }
            if mapping.protocol() != Protocol::Tcp {
                return self.settle_held(at, due, now);
            }
            if !self.next_connection(at) {
                if mapping.is_static() {
                    self.mappings[at as usize].state = State::Closed;
                    self.timers.disarm(at);
                    return true;
                }
                self.drop_mapping(at, now);
                return false;
            }
        }
    }

    /// Lets the port of a mapping that timed out wait (RFC 6888 REQ-8), or frees it. TCP ports are free at once, because
    /// the NAT follows connections (REQ-8a).
    fn settle_held(&mut self, at: u32, due: u32, now: Instant) -> bool {
        let until = due + self.ticks.hold;
        let is_held = self.mappings[at as usize].is_held();
        if self.ticks.hold > 0 && until > tick(now) {
            if is_held {
                self.timers.arm(at, until);
                return true;
            }
            if self.held_ports < self.config.limits.held_ports_max {
                self.held_ports += 1;
                self.mappings[at as usize].set_held(true);
                self.timers.arm(at, until);
                return true;
            }
            self.counters.unheld_ports += 1;
        }
        self.drop_mapping(at, now);
        false
    }

    /// Refreshes a mapping of UDP or ICMP. One whose port waits is in use again: only its own inside endpoint can do
    /// that, so no port changes hands.
    #[inline]
    pub(super) fn refresh(&mut self, at: u32, tick: u32) {
        let mapping = &mut self.mappings[at as usize];
        if mapping.last == tick {
            return;
        }
        mapping.last = tick;
        if mapping.is_held() {
            mapping.set_held(false);
            self.held_ports -= 1;
            self.arm(at);
        }
    }

    /// The mapping of a packet from inside, made if it may be.
    #[inline]
    pub(super) fn resolve_out(
        &mut self,
        id: SubscriberId,
        flow: &Flow,
        now: Instant,
    ) -> Result<u32, Discard> {
        let tick = tick(now);
        let found = self.find(flow.source, flow.source_port, flow.protocol);
        if flow.protocol == Protocol::Tcp {
            let remote = (flow.destination, flow.destination_port);
            return self.tcp_out(id, flow, found, remote, now);
        }
        let at = match found {
            Some(at) => at,
            None => {
                let source = (flow.source, flow.source_port);
                self.create(id, flow.protocol, source, now)?
            }
        };
        self.refresh(at, tick);
        self.note_remote(at, flow.destination);
        Ok(at)
    }

    /// The mapping of a packet to an external address, if it may pass.
    #[inline]
    pub(super) fn resolve_in(
        &mut self,
        address: u32,
        flow: &Flow,
        now: Instant,
    ) -> Result<u32, Discard> {
        let tick = tick(now);
        let found = self
            .pool
            .mapping(address, flow.destination_port, flow.protocol);
        let at = found.ok_or(Discard::NoMapping)?;
        let mapping = &self.mappings[at as usize];
        if self.is_expired(mapping, tick) && (mapping.is_held() || !self.settle(at, now)) {
            return Err(Discard::NoMapping);
        }
        let mapping = &self.mappings[at as usize];
        if mapping.is_held() {
            return Err(Discard::NoMapping);
        }
        if flow.protocol == Protocol::Tcp {
            self.tcp_in(at, flow, now)?;
            return Ok(at);
        }
        if !self.admits(at, flow.source) {
            return Err(Discard::Filtered);
        }
        if self.config.timeouts.inbound_refreshes {
            self.refresh(at, tick);
        }
        Ok(at)
    }
}
