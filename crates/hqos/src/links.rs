//! Shared links and subscribers, with their tokens and their turns among siblings.
//!
//! A shared link and a subscriber are both a [`Link`]. A link is ready if it has something to send and its bucket is
//! not below zero; its parent's ring has exactly the ready ones. A link that has something to send but no tokens has a
//! timer. Any other link is in no ring and has no timer.
//!
//! Siblings take turns by deficit round robin. A link that runs out of tokens within its turn goes on with the rest of
//! the turn when it has tokens again.

use base::{Duration, Instant};
use qos::bucket::{BURST_MAX, Bucket, Tokens};

use crate::MTU;
use crate::flows::Queue;
use crate::pages::Pages;
use crate::ticks::{Ticks, Timer};

pub(crate) const NONE: u32 = u32::MAX;
/// The link above all others. It has no rate.
pub(crate) const ROOT: u32 = 0;
/// Timers fire at multiples of this. A bucket holds at least as much.
const TICK: Duration = Duration::from_micros(100);
/// The least burst in bytes: two packets.
const BURST_MIN: u64 = 3_200;

const IS_NODE: u8 = 1;
const IS_LIMITED: u8 = 2;
const IS_READY: u8 = 4;
const IS_SUBSCRIBER: u8 = 8;
const IS_ARMED: u8 = 16;

/// Cancelled timers that may remain in the wheel beside as many as count.
const STALE_MAX: usize = 1_024;

/// A shared link, or a subscriber with its queue: two cache lines, which the processor fetches together.
#[derive(Debug, Clone)]
#[repr(C, align(128))]
pub(crate) struct Link {
    bucket: Bucket,
    /// The tick of its timer, if it is armed.
    tick: u32,
    /// The most bytes that its queue has had since others were last compared with it.
    pub(crate) bound: u32,
    deficit: i32,
    /// The link above.
    pub(crate) parent: u32,
    /// Its neighbours in the parent's ring.
    previous: u32,
    next: u32,
    /// The first ready child of a shared link.
    inner: u32,
    weight: u16,
    flags: u8,
    /// The queue of a subscriber.
    pub(crate) queue: Queue,
}

const _: () = assert!(size_of::<Link>() == 128);

impl Default for Link {
    /// No link.
    fn default() -> Self {
        Self {
            bucket: Bucket::new(0, 0, 0, Instant::ZERO),
            tick: 0,
            bound: 0,
            deficit: 0,
            parent: NONE,
            previous: NONE,
            next: NONE,
            inner: NONE,
            weight: 0,
            flags: 0,
            queue: Queue::default(),
        }
    }
}

/// All links, in one slab, and the timers of those that wait for tokens.
pub(crate) struct Links {
    all: Pages<Link>,
    free: Vec<u32>,
    timers: Ticks,
    /// Links that wait for tokens.
    waiting: usize,
}

/// The rate, burst and weight of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// In bit/s; 0 means no limit.
    pub(crate) bps: u64,
    pub(crate) burst: Duration,
    pub(crate) weight: u32,
}

impl Terms {
    /// Bytes that a bucket holds.
    fn size(self) -> u32 {
        let burst = self.burst.as_nanos().max(TICK.as_nanos());
        let octets = u128::from(self.bps) * u128::from(burst) / 8_000_000_000;
        octets.clamp(BURST_MIN.into(), BURST_MAX.into()) as u32
    }
}

impl Links {
    /// The root alone.
    pub(crate) fn new(now: Instant) -> Self {
        let mut links = Self {
            all: Pages::new(),
            free: Vec::new(),
            timers: Ticks::new(TICK),
            waiting: 0,
        };
        let terms = Terms {
            bps: 0,
            burst: Duration::ZERO,
            weight: 1,
        };
        links.add(terms, NONE, None, now);
        links
    }

    /// Adds a subscriber with its queue, or a shared link.
    pub(crate) fn add(
        &mut self,
        terms: Terms,
        parent: u32,
        queue: Option<Queue>,
        now: Instant,
    ) -> u32 {
        let kind = match queue {
            Some(_) => IS_SUBSCRIBER,
            None => IS_NODE,
        };
        let link = Link {
            bucket: Bucket::new(terms.bps, terms.size(), i64::from(BURST_MAX), now),
            parent,
            weight: terms.weight as u16,
            flags: limited(terms.bps) | kind,
            queue: queue.unwrap_or_default(),
            ..Link::default()
        };
        match self.free.pop() {
            Some(index) => {
                self.all[index as usize] = link;
                index
            }
            None => {
                self.all.push(link);
                self.all.len() as u32 - 1
            }
        }
    }

    /// Removes a link that has nothing to send.
    pub(crate) fn remove(&mut self, index: u32) {
        self.disarm(index);
        self.all[index as usize].flags = 0;
        self.free.push(index);
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Link {
        &self.all[index as usize]
    }

    /// A subscriber; `None` if it was removed.
    #[inline]
    pub(crate) fn subscriber(&mut self, index: u32) -> Option<&mut Link> {
        let link = self.all.get_mut(index as usize)?;
        (link.flags & IS_SUBSCRIBER != 0).then_some(link)
    }

    /// The places of links: those below this number.
    pub(crate) fn places(&self) -> usize {
        self.all.len()
    }

    /// Changes rate and weight. [`Links::refresh`] must follow.
    pub(crate) fn change(&mut self, index: u32, terms: Terms, now: Instant) {
        let link = &mut self.all[index as usize];
        if link.flags & IS_LIMITED == 0 {
            link.bucket = Bucket::new(terms.bps, terms.size(), i64::from(BURST_MAX), now);
        } else {
            link.bucket.change(terms.bps, terms.size(), now);
        }
        link.weight = terms.weight as u16;
        link.flags = link.flags & !IS_LIMITED | limited(terms.bps);
        // The time at which it has tokens is another now.
        self.disarm(index);
    }

    /// Takes a link out of its parent's ring. [`Links::refresh`] must follow.
    pub(crate) fn move_to(&mut self, index: u32, parent: u32, now: Instant) {
        let before = self.all[index as usize].parent;
        if before == parent {
            return;
        }
        if self.all[index as usize].flags & IS_READY != 0 {
            self.take_out(index);
            self.refresh(before, false, now);
        }
        self.all[index as usize].parent = parent;
    }

    /// Whether a packet of a subscriber that has nothing queued may leave at once: no link is short of tokens, and no
    /// sibling is ready.
    #[inline]
    pub(crate) fn may_pass(&mut self, index: u32, now: Instant) -> bool {
        let mut at = index;
        loop {
            let link = &mut self.all[at as usize];
            if !link.has_tokens(now) {
                return false;
            }
            at = link.parent;
            if at == ROOT {
                return true;
            }
            if self.all[at as usize].inner != NONE {
                return false;
            }
        }
    }

    /// Takes tokens on all links of a packet that passes at once.
    #[inline]
    pub(crate) fn take(&mut self, index: u32, octets: u32) {
        let tokens = Tokens::of(octets);
        let mut at = index;
        while at != ROOT {
            let link = &mut self.all[at as usize];
            link.take(tokens);
            at = link.parent;
        }
    }

    /// The subscriber whose turn it is.
    #[inline]
    pub(crate) fn first(&mut self) -> Option<u32> {
        let mut at = ROOT;
        loop {
            let first = self.all[at as usize].inner;
            let link = self.all.get_mut(first as usize)?;
            if link.deficit <= 0 {
                link.deficit += link.quantum();
                self.all[at as usize].inner = link_next(&self.all, first);
                continue;
            }
            if link.flags & IS_NODE == 0 {
                return Some(first);
            }
            at = first;
        }
    }

    /// The subscriber whose turn is probably next: a guess that changes nothing.
    #[inline]
    pub(crate) fn guess(&self) -> Option<(u32, &Link)> {
        let mut at = ROOT;
        loop {
            let first = self.all[at as usize].inner;
            let link = self.all.get(first as usize)?;
            if link.flags & IS_NODE == 0 {
                // A link that has used its turn is followed by its neighbour.
                let next = if link.deficit > 0 { first } else { link.next };
                return Some((next, self.all.get(next as usize)?));
            }
            at = first;
        }
    }

    /// Charges a packet that a subscriber sent in its turn.
    #[inline]
    pub(crate) fn charge(&mut self, index: u32, octets: u32, has_more: bool, now: Instant) {
        let tokens = Tokens::of(octets);
        let mut at = index;
        let mut wants = has_more;
        while at != ROOT {
            let link = &mut self.all[at as usize];
            if link.has_tokens(now) {
                link.take(tokens);
            }
            link.deficit -= octets as i32;
            let parent = link.parent;
            self.settle(at, wants, now);
            wants = self.all[parent as usize].inner != NONE;
            at = parent;
        }
    }

    /// Adds a link to its parent's ring or removes it, as its packets and tokens demand, and all links above.
    #[inline]
    pub(crate) fn refresh(&mut self, index: u32, has_more: bool, now: Instant) {
        let mut at = index;
        let mut wants = match self.is_node(index) {
            true => self.all[index as usize].inner != NONE,
            false => has_more,
        };
        while at != ROOT {
            let parent = self.all[at as usize].parent;
            let had = self.all[parent as usize].inner != NONE;
            self.settle(at, wants, now);
            wants = self.all[parent as usize].inner != NONE;
            if wants == had {
                return;
            }
            at = parent;
        }
    }

    fn is_node(&self, index: u32) -> bool {
        self.all[index as usize].flags & IS_NODE != 0
    }

    /// The same for one link.
    #[inline]
    fn settle(&mut self, index: u32, wants: bool, now: Instant) {
        let link = &mut self.all[index as usize];
        let is_ready = wants && link.has_tokens(now);
        let was_ready = link.flags & IS_READY != 0;
        if is_ready && !was_ready {
            self.put_in(index);
        } else if was_ready && !is_ready {
            self.take_out(index);
            if !wants {
                // Its next turn is at the end of the ring.
                let link = &mut self.all[index as usize];
                link.deficit = link.deficit.min(0);
            }
        }
        if wants && !is_ready {
            self.arm(index);
        } else {
            self.disarm(index);
        }
    }

    #[inline]
    fn arm(&mut self, index: u32) {
        let link = &mut self.all[index as usize];
        if link.flags & IS_ARMED == 0 {
            link.flags |= IS_ARMED;
            link.tick = self.timers.insert(link.bucket.holds_at(0), index);
            self.waiting += 1;
        }
    }

    /// Cancels a link's timer, which stays in the wheel.
    #[inline]
    fn disarm(&mut self, index: u32) {
        let link = &mut self.all[index as usize];
        if link.flags & IS_ARMED == 0 {
            return;
        }
        link.flags &= !IS_ARMED;
        self.waiting -= 1;
        if self.timers.len() > 2 * self.waiting + STALE_MAX {
            let all = &self.all;
            self.timers
                .sweep(|timer| all[timer.link as usize].is_of(timer));
        }
    }

    /// Moves some timers that fire into `due`. `false` if there is none.
    #[inline]
    pub(crate) fn take_due(&mut self, now: Instant, due: &mut Vec<Timer>) -> bool {
        self.timers.take(now, due)
    }

    /// Ends a timer that fired. `false` if it was cancelled before. Otherwise [`Links::refresh`] must follow.
    #[inline]
    pub(crate) fn fired(&mut self, timer: Timer) -> bool {
        let link = &mut self.all[timer.link as usize];
        let counts = link.is_of(timer);
        if counts {
            link.flags &= !IS_ARMED;
            self.waiting -= 1;
        }
        counts
    }

    /// Whether a subscriber is ready.
    pub(crate) fn has_ready(&self) -> bool {
        self.all[ROOT as usize].inner != NONE
    }

    /// When the first waiting link has tokens.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match self.waiting {
            0 => None,
            _ => self.timers.next_deadline(),
        }
    }

    /// Links that wait for tokens.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Adds a link to its parent's ring: at the front if it has the rest of a turn, else at the end.
    fn put_in(&mut self, index: u32) {
        let link = &mut self.all[index as usize];
        link.flags |= IS_READY;
        let goes_on = link.deficit > 0;
        if !goes_on {
            link.deficit += link.quantum();
        }
        let parent = link.parent;
        let first = self.all[parent as usize].inner;
        if first == NONE {
            self.all[parent as usize].inner = index;
            let link = &mut self.all[index as usize];
            (link.previous, link.next) = (index, index);
            return;
        }
        let last = self.all[first as usize].previous;
        let link = &mut self.all[index as usize];
        (link.previous, link.next) = (last, first);
        self.all[last as usize].next = index;
        self.all[first as usize].previous = index;
        if goes_on {
            self.all[parent as usize].inner = index;
        }
    }

    fn take_out(&mut self, index: u32) {
        let link = &mut self.all[index as usize];
        link.flags &= !IS_READY;
        let (previous, next, parent) = (link.previous, link.next, link.parent);
        if next == index {
            self.all[parent as usize].inner = NONE;
            return;
        }
        self.all[previous as usize].next = next;
        self.all[next as usize].previous = previous;
        let parent = &mut self.all[parent as usize];
        if parent.inner == index {
            parent.inner = next;
        }
    }
}

fn link_next(all: &Pages<Link>, index: u32) -> u32 {
    all[index as usize].next
}

fn limited(bps: u64) -> u8 {
    if bps > 0 { IS_LIMITED } else { 0 }
}

impl Link {
    /// Whether a timer is the one that counts.
    #[inline]
    fn is_of(&self, timer: Timer) -> bool {
        self.flags & IS_ARMED != 0 && self.tick == timer.tick
    }

    #[inline]
    fn has_tokens(&mut self, now: Instant) -> bool {
        if self.flags & IS_LIMITED == 0 {
            return true;
        }
        self.bucket.fill(now);
        self.bucket.is_even()
    }

    #[inline]
    fn take(&mut self, tokens: Tokens) {
        if self.flags & IS_LIMITED != 0 {
            self.bucket.take(tokens);
        }
    }

    #[inline]
    fn quantum(&self) -> i32 {
        i32::from(self.weight) * MTU as i32
    }

    /// Its rate in bit/s; 0 means no limit.
    pub(crate) fn bps(&self) -> u64 {
        match self.flags & IS_LIMITED {
            0 => 0,
            _ => self.bucket.rate_bps(),
        }
    }
}
