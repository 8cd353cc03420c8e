//! Subscribers: who owns port blocks, and what limits apply.

use std::net::Ipv4Addr;

use base::Instant;

use crate::pool::NONE;

/// A subscriber that has joined. The ID of one that left matches no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SubscriberId {
    pub(crate) index: u32,
    generation: u32,
}

/// What a subscriber uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubscriberView {
    /// The caller's name for it.
    pub tag: u64,
    /// Its inside address.
    pub inside: Ipv4Addr,
    /// Its external address, once it has one.
    pub external: Option<Ipv4Addr>,
    /// Its blocks on demand.
    pub blocks: u16,
    /// Its mappings of all protocols.
    pub mappings: u32,
}

/// A subscriber's state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subscriber {
    pub(crate) tag: u64,
    pub(crate) inside: u32,
    /// The index of its external address (RFC 6888 REQ-2: "Paired").
    pub(crate) address: u32,
    /// Its newest block.
    pub(crate) block: u32,
    /// Blocks on demand.
    pub(crate) blocks: u16,
    /// Whether an event has reported a limit.
    pub(crate) is_told: bool,
    pub(crate) mappings: u32,
    /// When its allowance of new mappings is whole again, in nanoseconds.
    spent_until: u64,
}

impl Subscriber {
    pub(crate) fn new(tag: u64, inside: u32) -> Self {
        Self {
            tag,
            inside,
            address: NONE,
            block: NONE,
            blocks: 0,
            is_told: false,
            mappings: 0,
            spent_until: 0,
        }
    }

    /// Whether it may make another mapping now: a token bucket that fills in a second.
    pub(crate) fn may_make(&mut self, per_second: u32, now: Instant) -> bool {
        if per_second == 0 {
            return true;
        }
        let now = now.as_nanos();
        let each = 1_000_000_000 / u64::from(per_second);
        let until = self.spent_until.max(now) + each;
        if until > now.saturating_add(1_000_000_000) {
            return false;
        }
        self.spent_until = until;
        true
    }
}

#[derive(Debug)]
struct Place {
    generation: u32,
    /// The next free place, if this one is free.
    next: u32,
    subscriber: Option<Subscriber>,
}

/// All subscribers.
#[derive(Debug)]
pub(crate) struct Subscribers {
    places: Vec<Place>,
    free: u32,
    len: u32,
    max: u32,
}

impl Subscribers {
    pub(crate) fn new(max: u32) -> Self {
        Self {
            places: Vec::new(),
            free: NONE,
            len: 0,
            max,
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn insert(&mut self, subscriber: Subscriber) -> Option<SubscriberId> {
        if self.len == self.max {
            return None;
        }
        self.len += 1;
        if self.free == NONE {
            self.free = self.places.len() as u32;
            self.places.push(Place {
                generation: 0,
                next: NONE,
                subscriber: None,
            });
        }
        let index = self.free;
        let place = &mut self.places[index as usize];
        self.free = place.next;
        place.subscriber = Some(subscriber);
        Some(SubscriberId {
            index,
            generation: place.generation,
        })
    }

    pub(crate) fn get(&self, id: SubscriberId) -> Option<&Subscriber> {
        let place = self.places.get(id.index as usize)?;
        let subscriber = place.subscriber.as_ref();
        subscriber.filter(|_| place.generation == id.generation)
    }

    pub(crate) fn get_mut(&mut self, id: SubscriberId) -> Option<&mut Subscriber> {
        let place = self.places.get_mut(id.index as usize)?;
        let subscriber = place.subscriber.as_mut();
        subscriber.filter(|_| place.generation == id.generation)
    }

    /// The subscriber at or after a place, and the place after it.
    pub(crate) fn next(&self, cursor: u32) -> Option<(u32, &Subscriber)> {
        let rest = self.places.get(cursor as usize..)?.iter();
        let mut rest = rest.zip(cursor + 1..);
        rest.find_map(|(place, next)| Some((next, place.subscriber.as_ref()?)))
    }

    /// The owner of a block.
    pub(crate) fn at(&self, index: u32) -> Option<&Subscriber> {
        self.places.get(index as usize)?.subscriber.as_ref()
    }

    /// The owner of a block, to change.
    pub(crate) fn at_mut(&mut self, index: u32) -> Option<&mut Subscriber> {
        self.places.get_mut(index as usize)?.subscriber.as_mut()
    }

    pub(crate) fn remove(&mut self, id: SubscriberId) -> Option<Subscriber> {
        self.get(id)?;
        let place = &mut self.places[id.index as usize];
        place.generation = place.generation.wrapping_add(1);
        place.next = self.free;
        self.free = id.index;
        self.len -= 1;
        place.subscriber.take()
    }
}
