//! Messages in flight between routers in memory.
//!
//! Links of equal delay share a ring: a message sent now is due after all those sent before, so no
//! sorting is needed. A KEEPALIVE in flight is only an address. Links with jitter or a rate use the
//! calendar.

use std::collections::VecDeque;

use base::{Duration, Instant};
use bgp::ConnId;

use super::calendar::Calendar;

/// A message in flight to one end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parcel {
    /// The receiving router.
    pub(super) router: u32,
    /// Its contents.
    pub(super) what: What,
    /// The receiver's connection; for [`What::Dial`], the dialler's.
    pub(super) conn: ConnId,
}

/// The contents of a message in flight.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// A KEEPALIVE (19 bytes) to an end that is up.
    Keepalive,
    /// A KEEPALIVE to an end that may not be up.
    First,
    /// The bytes kept under this number.
    Octets(u32),
    /// A request for a connection over the link with this number.
    Dial(u32),
    /// The request was accepted.
    Granted,
    /// The request was refused.
    Refused,
    /// The other end closed the connection.
    Closed,
    /// Nothing: the receiver no longer exists.
    Nothing,
}

/// How a message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane(u16);

impl Lane {
    /// Every message is lost.
    pub(super) const LOST: Self = Self(u16::MAX);
    /// Every message has an arrival time of its own.
    pub(super) const SINGLE: Self = Self(u16::MAX - 1);
}

/// Messages of links with one delay, in the order in which they are due.
struct Ring {
    delay: Duration,
    /// Messages of the same time, together.
    batches: VecDeque<(Instant, Vec<Parcel>)>,
}

/// Limit of empty lists kept for reuse, and limit of their capacity.
const SPARE_MAX: usize = 1_024;
const SPARE_PARCELS_MAX: usize = 256;

/// All messages in flight.
pub(super) struct Post {
    rings: Vec<Ring>,
    /// Empty lists for new batches.
    spare: Vec<Vec<Parcel>>,
    single: Calendar<Parcel>,
    kept: Vec<Kept>,
    free: Vec<u32>,
    /// The last number assigned.
    last: u32,
}

/// Bytes in flight, with the number of messages that share them: an UPDATE that a router sends to
/// all its neighbours is kept once.
struct Kept {
    octets: Box<[u8]>,
    parcels: u32,
}

impl Post {
    pub(super) fn new() -> Self {
        Self {
            rings: Vec::new(),
            spare: Vec::new(),
            single: Calendar::new(),
            kept: Vec::new(),
            free: Vec::new(),
            last: 0,
        }
    }

    /// The lane of links with that delay, without jitter or rate.
    pub(super) fn lane(&mut self, delay: Duration) -> Lane {
        let found = self.rings.iter().position(|ring| ring.delay == delay);
        let index = found.unwrap_or_else(|| {
            self.rings.push(Ring {
                delay,
                batches: VecDeque::new(),
            });
            self.rings.len() - 1
        });
        // A scenario has fewer kinds of links than a `u16` can count, and each has one delay.
        Lane(index as u16)
    }

    /// Sends a message over a lane of one delay.
    #[inline]
    pub(super) fn send(&mut self, lane: Lane, now: Instant, parcel: Parcel) {
        let Some(ring) = self.rings.get_mut(usize::from(lane.0)) else {
            return self.discard(parcel.what);
        };
        let at = now + ring.delay;
        match ring.batches.back_mut() {
            Some((last, parcels)) if *last == at => parcels.push(parcel),
            Some(_) | None => {
                let mut parcels = self.spare.pop().unwrap_or_default();
                parcels.push(parcel);
                ring.batches.push_back((at, parcels));
            }
        }
    }

    /// Sends a message that has an arrival time of its own.
    pub(super) fn send_at(&mut self, at: Instant, parcel: Parcel) {
        self.single.add(at, parcel);
    }

    /// Keeps bytes for one message; the number identifies them until they are taken.
    pub(super) fn keep(&mut self, octets: &[u8]) -> u32 {
        if let Some(last) = self.kept.get_mut(self.last as usize)
            && last.parcels > 0
            && *last.octets == *octets
        {
            last.parcels += 1;
            return self.last;
        }
        let kept = Kept {
            octets: octets.into(),
            parcels: 1,
        };
        self.last = self.free.pop().unwrap_or(self.kept.len() as u32);
        match self.kept.get_mut(self.last as usize) {
            Some(place) => *place = kept,
            None => self.kept.push(kept),
        }
        self.last
    }

    /// Takes the bytes kept under `number` for one message. They must be [given
    /// back](Self::give_back) afterwards.
    pub(super) fn take_octets(&mut self, number: u32) -> Box<[u8]> {
        std::mem::take(&mut self.kept[number as usize].octets)
    }

    /// Gives back taken bytes, since other messages may share them.
    pub(super) fn give_back(&mut self, number: u32, octets: Box<[u8]>) {
        let kept = &mut self.kept[number as usize];
        kept.parcels -= 1;
        if kept.parcels > 0 {
            kept.octets = octets;
        } else {
            self.free.push(number);
        }
    }

    /// Whether a message other than a KEEPALIVE between ends that are up is in flight.
    pub(super) fn has_octets(&self) -> bool {
        self.free.len() < self.kept.len()
    }

    /// Arrival time of the next message.
    pub(super) fn next(&mut self) -> Option<Instant> {
        let rings = self.rings.iter();
        let first = rings
            .filter_map(|ring| ring.batches.front())
            .map(|(at, _)| *at);
        first.chain(self.single.next()).min()
    }

    /// Takes all messages due at `now` in exchange for `due`, which is empty.
    pub(super) fn take(&mut self, now: Instant, due: &mut Vec<Parcel>) {
        for ring in &mut self.rings {
            while ring.batches.front().is_some_and(|(at, _)| *at <= now)
                && let Some((_, mut parcels)) = ring.batches.pop_front()
            {
                if due.is_empty() {
                    std::mem::swap(due, &mut parcels);
                } else {
                    due.append(&mut parcels);
                }
                if self.spare.len() < SPARE_MAX && parcels.capacity() <= SPARE_PARCELS_MAX {
                    self.spare.push(parcels);
                }
            }
        }
        while let Some(parcel) = self.single.take(now) {
            due.push(parcel);
        }
    }

    /// Voids all messages in flight to `router`.
    pub(super) fn forget(&mut self, router: u32) {
        let mut gone = Vec::new();
        let mut clear = |parcel: &mut Parcel| {
            if parcel.router == router {
                if let What::Octets(number) = parcel.what {
                    gone.push(number);
                }
                parcel.what = What::Nothing;
            }
        };
        self.rings
            .iter_mut()
            .flat_map(|ring| &mut ring.batches)
            .flat_map(|(_, parcels)| parcels)
            .for_each(&mut clear);
        self.single.change(&mut clear);
        for number in gone {
            self.discard(What::Octets(number));
        }
    }

    /// Releases the bytes of a message that is not delivered.
    pub(super) fn discard(&mut self, what: What) {
        if let What::Octets(number) = what {
            let octets = self.take_octets(number);
            self.give_back(number, octets);
        }
    }
}
