//! Sessions that are switched from one access to another: their frames get another header and leave.
//!
//! Nothing here looks into a frame but for its address and control bytes. A frame whose header differs from frame to
//! frame is left to the edge, because only its endpoint can count.
//!
//! Implements parts of RFC 2661, section 5.4 (frames with address and control), and RFC 2516, section 7 (without).

use core::hint::black_box;
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

/// One of the two sessions of a switched subscriber, with all that its frames need: they leave by the other one.
#[derive(Clone, Debug)]
struct Leg<E: Encapsulation> {
    way: E,
    /// When its last frame arrived, in units of 2^30 ns, modulo 2^16.
    heard: u16,
    /// Whether its frames lose their address and control bytes.
    strips: bool,
    /// What replaces the header of its frames: the other session's, and address and control bytes if this one has none.
    head: [u8; HEADER_MAX + 2],
    head_length: u8,
    /// Where they go.
    to: E::Route,
}

/// A switched subscriber: its own session first, then the one to the LNS.
#[derive(Clone, Debug)]
pub(crate) struct Crossing<E: Encapsulation> {
    key: Key,
    legs: [Leg<E>; 2],
    /// Whether the headers of both legs are fixed.
    is_fixed: bool,
    meters: Arc<[Meter]>,
}

impl<E: Encapsulation> Leg<E> {
    /// Frames that arrive by `way` leave by the other session, after its header.
    fn new(way: E, other: &E, header: &E::Header) -> Self {
        let to = other.route();
        let [has, wants] = [way.route(), to].map(|route| E::has_address(&route));
        let header = header.as_ref();
        let mut head = [0; HEADER_MAX + 2];
        let mut length = header.len();
        head[..length].copy_from_slice(header);
        if wants && !has {
            head[length..length + 2].copy_from_slice(&ADDRESS);
            length += 2;
        }
        Self {
            way,
            heard: 0,
            strips: has && !wants,
            head,
            head_length: length as u8,
            to,
        }
    }
}

impl<E: Encapsulation> Crossing<E> {
    /// Joins two sessions, each with the header before its frames.
    pub(crate) fn new(key: Key, ways: [(E, E::Header); 2], meters: Arc<[Meter]>) -> Self {
        let [near, far] = ways;
        let legs = [
            Leg::new(near.0.clone(), &far.0, &far.1),
            Leg::new(far.0, &near.0, &near.1),
        ];
        Self {
            key,
            is_fixed: legs.iter().all(|leg| leg.way.is_fixed()),
            legs,
            meters,
        }
    }

    /// Whether the headers of both legs are fixed.
    pub(crate) fn is_fixed(&self) -> bool {
        self.is_fixed
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

    /// The half of a switched session that has this id.
    #[inline]
    pub(super) fn find(&self, id: E::Id, route: &E::Route) -> Option<(u32, &E)> {
        let is_it = |&place: &u32| {
            let leg = self.leg(place);
            leg.is_some_and(|leg| leg.way.id() == id && leg.way.is_from(route))
        };
        let place = *self.legs.find(E::hash(id), is_it)?;
        Some((place, &self.leg(place)?.way))
    }

    /// Reads what the next frames of these legs need, so that it is in the cache then. The processor waits for all of them
    /// at once, while a frame alone waits for memory several times.
    pub(super) fn touch(&self, places: impl Iterator<Item = u32> + Clone, path: usize) {
        let crossings = |place: u32| Some((self.get(place >> 1)?, (place & 1) as usize));
        let mut sum = 0;
        for (crossing, at) in places.clone().filter_map(crossings) {
            let leg = &crossing.legs[at];
            sum ^= leg.heard ^ u16::from(leg.head_length) ^ u16::from(crossing.is_fixed);
        }
        black_box(sum);
        let mut sum = 0;
        for (crossing, _) in places.filter_map(crossings) {
            sum ^= crossing.meters[path].touch();
        }
        black_box(sum);
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
    /// Sends the frame of a switched session on, whose half is at `place`. `false` if it is for the edge.
    #[inline]
    pub(super) fn cross(
        &mut self,
        place: u32,
        route: &E::Route,
        frame: &[u8],
        bytes: &[u8],
        now: Instant,
    ) -> bool {
        let Some(Some(crossing)) = self.crossings.all.get_mut((place >> 1) as usize) else {
            return false;
        };
        if !crossing.is_fixed {
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
        let frame = match frame {
            [0xff, 0x03, rest @ ..] if leg.strips => rest,
            frame => frame,
        };
        let (out, head) = (leg.to, &leg.head[..usize::from(leg.head_length)]);
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
