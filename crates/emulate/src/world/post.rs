//! Octets under way between routers in memory.
//!
//! Links of equal delay share a ring: what is sent now is due after all that was sent before, so nothing is sorted. A
//! KEEPALIVE under way is an address and nothing else. Links with jitter or a rate go through the calendar.

use std::collections::VecDeque;

use base::{Duration, Instant};
use bgp::ConnId;

use super::calendar::Calendar;

/// Something under way to a connection's end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parcel {
    /// The router that it goes to.
    pub(super) router: u32,
    /// What it is.
    pub(super) what: What,
    /// The connection there; of a [`What::Dial`], the one at the dialler.
    pub(super) conn: ConnId,
}

/// What is under way.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// The nineteen octets of a KEEPALIVE, to an end that is up.
    Keepalive,
    /// The same to an end that may not be.
    First,
    /// The octets kept under this number.
    Octets(u32),
    /// A request for a connection over the link with this number.
    Dial(u32),
    /// It was granted.
    Granted,
    /// It was refused.
    Refused,
    /// The other end is gone.
    Closed,
    /// Nothing: who it went to is no more.
    Nothing,
}

/// Which way a parcel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane(u16);

impl Lane {
    /// Where everything is lost.
    pub(super) const LOST: Self = Self(u16::MAX);
    /// Where each parcel has a time of its own.
    pub(super) const SINGLE: Self = Self(u16::MAX - 1);
}

/// Parcels of links with one delay, in the order in which they are due.
struct Ring {
    delay: Duration,
    /// Those of one time together.
    batches: VecDeque<(Instant, Vec<Parcel>)>,
}

/// Empty lists whose room is kept, and the most parcels that one of them has room for.
const SPARE_MAX: usize = 1_024;
const SPARE_PARCELS_MAX: usize = 256;

/// All that is under way.
pub(super) struct Post {
    rings: Vec<Ring>,
    /// Empty lists, for new batches.
    spare: Vec<Vec<Parcel>>,
    single: Calendar<Parcel>,
    kept: Vec<Kept>,
    free: Vec<u32>,
    /// The number that was given last.
    last: u32,
}

/// Octets under way, and how many parcels they are in: what a router tells all its neighbours is kept once.
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
        // A scenario has fewer kinds of links than that, and each has one delay.
        Lane(index as u16)
    }

    /// Sends a parcel over a lane of one delay.
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

    /// Sends a parcel that is due at a time of its own.
    pub(super) fn send_at(&mut self, at: Instant, parcel: Parcel) {
        self.single.add(at, parcel);
    }

    /// Keeps octets for one parcel; the number names them until they are taken.
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

    /// Takes the octets kept under `number` out for one parcel, to be [given back](Self::give_back) after that.
    pub(super) fn take_octets(&mut self, number: u32) -> Box<[u8]> {
        std::mem::take(&mut self.kept[number as usize].octets)
    }

    /// Gives back what was taken: other parcels may have the same octets.
    pub(super) fn give_back(&mut self, number: u32, octets: Box<[u8]>) {
        let kept = &mut self.kept[number as usize];
        kept.parcels -= 1;
        if kept.parcels > 0 {
            kept.octets = octets;
        } else {
            self.free.push(number);
        }
    }

    /// When the next parcel is due.
    pub(super) fn next(&mut self) -> Option<Instant> {
        let rings = self.rings.iter();
        let first = rings
            .filter_map(|ring| ring.batches.front())
            .map(|(at, _)| *at);
        first.chain(self.single.next()).min()
    }

    /// Takes all that is due at `now`, in the place of `due`, which is empty.
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

    /// Makes nothing of all that is under way to `router`.
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

    /// Gives back what something holds that goes nowhere.
    pub(super) fn discard(&mut self, what: What) {
        if let What::Octets(number) = what {
            let octets = self.take_octets(number);
            self.give_back(number, octets);
        }
    }
}
