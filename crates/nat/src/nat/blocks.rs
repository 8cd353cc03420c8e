//! Port blocks: whose, when allocated, when freed (RFC 4787 REQ-2; RFC 6888 REQ-2, REQ-8, REQ-11; RFC 7857
//! section 4; RFC 7422).

use base::Instant;

use super::{Nat, tick};
use crate::discard::Discard;
use crate::event::Event;
use crate::pool::NONE;
use crate::subscribers::SubscriberId;

impl Nat {
    /// Allocates another block to a subscriber.
    pub(super) fn allocate(&mut self, id: SubscriberId, now: Instant) -> Result<u32, Discard> {
        let subscriber = *self.subscribers.get(id).ok_or(Discard::Subscriber)?;
        if subscriber.blocks >= self.config.limits.blocks_per_subscriber {
            return Err(self.limited(id, Discard::SubscriberBlocks, now));
        }
        if self.events.len() >= self.config.limits.events_max as usize {
            return Err(Discard::LogBehind);
        }
        self.pool.warm(tick(now));
        let random = self.random();
        let own = (subscriber.address != NONE)
            .then(|| self.pool.allocate(Some(subscriber.address), random))
            .flatten();
        // Pairing binds a subscriber only while it has ports of its address.
        let has_open = subscriber.address != NONE && self.pool.is_open(subscriber.address);
        let is_bound = subscriber.block != NONE && has_open && !self.config.soft_pairing;
        let block = match own {
            Some(block) => block,
            None if is_bound => return Err(self.limited(id, Discard::AddressUsedUp, now)),
            None => match self.pool.allocate(None, random) {
                Some(block) => block,
                None => return Err(self.used_up(id, now)),
            },
        };
        let address = self.pool.address_of(block);
        let state = self.pool.block_mut(block);
        state.owner = id.index;
        state.next = subscriber.block;
        if let Some(subscriber) = self.subscribers.get_mut(id) {
            if subscriber.block == NONE || !has_open {
                subscriber.address = address;
            }
            subscriber.block = block;
            subscriber.blocks += 1;
        }
        self.is_pool_told = false;
        self.counters.blocks_allocated += 1;
        let event = Event::BlockAllocated(self.block(block, &subscriber), now);
        self.events.push_back(event);
        Ok(block)
    }

    /// Frees a block on demand without mappings.
    pub(super) fn release(&mut self, block: u32, now: Instant) {
        let state = self.pool.block(block);
        let (owner, next) = (state.owner, state.next);
        if owner == NONE || state.used > 0 || !self.pool.is_dynamic(block) {
            return;
        }
        if let Some(subscriber) = self.subscribers.at_mut(owner) {
            subscriber.blocks -= 1;
            let subscriber_now = *subscriber;
            if subscriber.block == block {
                subscriber.block = next;
            } else {
                let mut at = subscriber.block;
                while at != NONE && self.pool.block(at).next != block {
                    at = self.pool.block(at).next;
                }
                if at != NONE {
                    self.pool.block_mut(at).next = next;
                }
            }
            let event = Event::BlockFreed(self.block(block, &subscriber_now), now);
            self.events.push_back(event);
        }
        self.pool.cool(block, tick(now) + self.ticks.hold);
    }

    /// Reports once that a subscriber is at a limit.
    #[cold]
    pub(super) fn limited(&mut self, id: SubscriberId, why: Discard, now: Instant) -> Discard {
        let has_room = self.events.len() < self.config.limits.events_max as usize;
        if let Some(subscriber) = self.subscribers.get_mut(id)
            && !subscriber.is_told
            && has_room
        {
            subscriber.is_told = true;
            self.events.push_back(Event::SubscriberLimit {
                tag: subscriber.tag,
                inside: subscriber.inside.into(),
                why,
                at: now,
            });
        }
        why
    }

    /// Reports once that the pool is used up.
    #[cold]
    fn used_up(&mut self, id: SubscriberId, now: Instant) -> Discard {
        let has_room = self.events.len() < self.config.limits.events_max as usize;
        if let Some(subscriber) = self.subscribers.get(id)
            && !self.is_pool_told
            && has_room
        {
            self.is_pool_told = true;
            self.events.push_back(Event::PoolUsedUp {
                tag: subscriber.tag,
                inside: subscriber.inside.into(),
                at: now,
            });
        }
        Discard::PoolUsedUp
    }

    /// The external address and block that follow from an inside address, by RFC 7422's sequential algorithm (A = 0).
    pub(crate) fn share(&self, inside: u32) -> Option<(u32, u32)> {
        let position = self.config.deterministic.as_ref()?.position(inside)?;
        let layout = self.pool.layout;
        let address = (position / u64::from(layout.ratio())) as u32;
        let block = (position % u64::from(layout.ratio())) as u32 + 1;
        Some((address, address * layout.per_address + block))
    }
}
