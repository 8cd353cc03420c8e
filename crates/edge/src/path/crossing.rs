//! Sessions that are switched from one access to another: their frames get another header and leave.
//!
//! Nothing here looks into a frame but for its address and control bytes. A frame whose header differs from frame to
//! frame is left to the edge, because only its endpoint can count.
//!
//! Implements parts of RFC 2661, section 5.4 (frames with address and control), and RFC 2516, section 7 (without).

use std::sync::Arc;

use base::Instant;
use base::slab::Key;
use hashbrown::HashTable;

use super::entry::Meter;
use super::{Passed, Path};
use crate::access::{Encapsulation, HEADER_MAX};
use crate::counters::Discard;
use crate::key::SubscriberKey;

/// PPP's address and control bytes (RFC 1662, section 3.1).
pub(crate) const ADDRESS: [u8; 2] = [0xff, 0x03];

/// About a second: 2^30 ns.
const HEARD_SHIFT: u32 = 30;

/// One of the two sessions of a switched subscriber.
#[derive(Clone, Debug)]
struct Leg<E> {
    way: E,
    /// What precedes a frame to it: its header, and the address and control bytes if the other leg has none.
    head: [u8; HEADER_MAX + 2],
    head_length: u8,
    /// Whether frames to it lose their address and control bytes.
    strips: bool,
    /// When its last frame arrived, in units of 2^30 ns, modulo 2^16.
    heard: u16,
}

/// A switched subscriber: its own session first, then the one to the LNS.
#[derive(Clone, Debug)]
pub(crate) struct Crossing<E: Encapsulation> {
    key: Key,
    legs: [Leg<E>; 2],
    meters: Arc<[Meter]>,
}

impl<E: Encapsulation> Crossing<E> {
    /// Joins two sessions, each with the header before its frames.
    pub(crate) fn new(key: Key, ways: [(E, E::Header); 2], meters: Arc<[Meter]>) -> Self {
        let has_address = ways.each_ref().map(|(way, _)| E::has_address(&way.route()));
        let mut other = [has_address[1], has_address[0]].into_iter();
        let legs = ways.map(|(way, header)| {
            let own = E::has_address(&way.route());
            let from = other.next().unwrap_or(own);
            let header = header.as_ref();
            let mut head = [0; HEADER_MAX + 2];
            let mut length = header.len();
            head[..length].copy_from_slice(header);
            if own && !from {
                head[length..length + 2].copy_from_slice(&ADDRESS);
                length += 2;
            }
            Leg {
                way,
                head,
                head_length: length as u8,
                strips: from && !own,
                heard: 0,
            }
        });
        Self { key, legs, meters }
    }

    /// Whether the headers of both legs are fixed.
    pub(crate) fn is_fixed(&self) -> bool {
        self.legs.iter().all(|leg| leg.way.is_fixed())
    }
}

/// The switched subscribers of a path.
#[derive(Debug)]
pub(crate) struct Crossings<E: Encapsulation> {
    /// By the subscriber's index.
    all: Vec<Option<Box<Crossing<E>>>>,
    /// The index, doubled, and the number of the leg, by the ids of data messages.
    legs: HashTable<u32>,
}

impl<E: Encapsulation> Default for Crossings<E> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            legs: HashTable::new(),
        }
    }
}

impl<E: Encapsulation> Crossings<E> {
    pub(crate) fn get(&self, index: u32) -> Option<&Crossing<E>> {
        self.all.get(index as usize)?.as_deref()
    }

    /// How many subscribers are switched.
    pub(crate) fn len(&self) -> usize {
        self.legs.len() / 2
    }

    #[inline]
    fn leg(&self, place: u32) -> Option<&Leg<E>> {
        Some(&self.get(place >> 1)?.legs[(place & 1) as usize])
    }

    #[inline]
    fn find(&self, id: E::Id, route: &E::Route) -> Option<(u32, &E)> {
        let is_it = |&place: &u32| {
            let leg = self.leg(place);
            leg.is_some_and(|leg| leg.way.id() == id && leg.way.is_from(route))
        };
        let place = *self.legs.find(E::hash(id), is_it)?;
        Some((place, &self.leg(place)?.way))
    }

    pub(super) fn put(&mut self, index: u32, crossing: Box<Crossing<E>>) {
        self.take_out(index);
        let hashes = crossing.legs.each_ref().map(|leg| E::hash(leg.way.id()));
        let at = index as usize;
        if self.all.len() <= at {
            self.all.resize_with(at + 1, || None);
        }
        self.all[at] = Some(crossing);
        let Self { all, legs } = self;
        let hash_of = |&place: &u32| {
            let one = all[(place >> 1) as usize].as_deref();
            let one = one.expect("the table names only crossings");
            E::hash(one.legs[(place & 1) as usize].way.id())
        };
        for (leg, hash) in (0..).zip(hashes) {
            legs.insert_unique(hash, index << 1 | leg, hash_of);
        }
    }

    pub(super) fn take_out(&mut self, index: u32) {
        let Some(gone) = self.all.get_mut(index as usize).and_then(Option::take) else {
            return;
        };
        for (leg, one) in (0..).zip(&gone.legs) {
            let place = index << 1 | leg;
            let found = (self.legs).find_entry(E::hash(one.way.id()), |&at| at == place);
            if let Ok(found) = found {
                found.remove();
            }
        }
    }
}

impl<E: Encapsulation> Path<E> {
    /// Sends the frame of a switched session on. `false` if there is none, or the frame is for the edge.
    #[inline]
    pub(super) fn cross(&mut self, route: &E::Route, bytes: &[u8], now: Instant) -> bool {
        if self.crossings.legs.is_empty() {
            return false;
        }
        let found = E::locate(route, bytes, |id| self.crossings.find(id, route));
        let Some((place, frame)) = found else {
            return false;
        };
        let Some(Some(crossing)) = self.crossings.all.get_mut((place >> 1) as usize) else {
            return false;
        };
        if !crossing.is_fixed() {
            return false;
        }
        let second = ((now.as_nanos() >> HEARD_SHIFT) as u16).wrapping_add(1);
        let leg = &mut crossing.legs[(place & 1) as usize];
        if core::mem::replace(&mut leg.heard, second) != second {
            self.heard.push(leg.way.session());
        }
        let is_up = place & 1 == 0;
        let subscriber = SubscriberKey(crossing.key);
        if is_up && self.copies.is_on() {
            let passed = Passed::Outside(*route);
            self.copies.copy(subscriber, passed, false, [bytes, &[]]);
        }
        let to = &crossing.legs[usize::from(is_up)];
        let frame = match frame {
            [0xff, 0x03, rest @ ..] if to.strips => rest,
            frame => frame,
        };
        let (out, head) = (to.way.route(), &to.head[..usize::from(to.head_length)]);
        let (meter, counts) = (&crossing.meters[self.number], &self.counts[self.number]);
        let Some(datagram) = self.outgoing.push(out, head, frame) else {
            counts.discard(Discard::Backlog);
            meter.drop_one();
            return true;
        };
        E::complete(&out, datagram, 0);
        if is_up {
            meter.pass_in(frame.len());
            counts.pass_in(frame.len());
        } else {
            meter.pass_out(1, frame.len() as u64);
            counts.pass_out(frame.len() as u64);
            if self.copies.is_on() {
                let passed = Passed::Outside(out);
                self.copies.copy(subscriber, passed, true, [datagram, &[]]);
            }
        }
        true
    }

    /// Counts a frame that the edge sent on.
    pub(crate) fn count_crossed(&self, index: u32, is_up: bool, octets: usize) {
        if let Some(crossing) = self.crossings.get(index) {
            let meter = &crossing.meters[self.number];
            match is_up {
                true => meter.pass_in(octets),
                false => meter.pass_out(1, octets as u64),
            }
        }
    }
}
