//! Which classes may send, and in which order. This half of HTB handles no packets.
//!
//! A class makes its parent one of two offers for the packets below it. *Green*: a class up to this one pays from a
//! rate that is not used up; the key is the payer's height and the priority, and the lowest key goes first. *Yellow*:
//! no class has paid yet, and an ancestor may lend. A class at its ceiling offers nothing, so the classes below it
//! never exceed that ceiling. Each class has a ring of children for each green key and each yellow priority, and
//! serves it by deficit round robin. A change below travels up only as far as it changes an offer, so an idle class
//! costs nothing.

use base::Instant;

use super::heap::Heap;
use crate::bucket::{Bucket, Tokens};

/// Levels of classes in a tree.
pub(super) const HEIGHT_MAX: u8 = 8;
/// Priorities, 0 first.
pub(super) const PRIORITIES: u8 = 8;
/// The discipline itself, above all classes.
pub(super) const TOP: u32 = 0;
const NONE: u32 = u32::MAX;
const YELLOW: u32 = 64;

/// Whether a class may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Within its own rate.
    Can,
    /// Above its rate: it may send if an ancestor lends.
    May,
    /// At its ceiling: it may not send now.
    Cannot,
}

/// An offer: green keys (the payer's height times 8, plus the priority) and yellow priorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Offer {
    green: u64,
    yellow: u8,
}

/// A class as a node of the tree.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) parent: u32,
    pub(super) height: u8,
    pub(super) priority: u8,
    pub(super) quantum: u32,
    /// Its index among the leaves, if it is one.
    pub(super) leaf: Option<u32>,
    pub(super) rate: Bucket,
    pub(super) ceil: Bucket,
    /// Packets and bytes that left, packets that this class paid for, and packets that an ancestor paid for.
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) lent: u64,
    pub(super) borrowed: u64,
    /// The leaf's discipline returns no packet before this time.
    asleep_until: u64,
    inward: Offer,
    outward: Offer,
    /// The inward offer of which `outward` was made, if it stays so while the class is within its rate;
    /// [`Offer::NONE`] if time may change it.
    steady: Offer,
    /// Its first index in `links` and in `rings`.
    links: u32,
    rings: u32,
}

/// A class's place in one ring of its parent. A class that goes idle keeps its place until its turn comes, so a quick
/// return loses nothing. A class that returns later continues the turn that was cut short.
#[derive(Debug, Clone, Copy)]
struct Link {
    previous: u32,
    /// [`NONE`] when it is in no ring.
    next: u32,
    class: u32,
    is_there: bool,
    deficit: i64,
}

/// Members in the order of their turns.
#[derive(Debug, Clone, Copy)]
struct Ring {
    /// The member whose turn it is.
    first: u32,
    /// Number of members.
    members: u32,
}

/// What [`Shape::new`] needs to know of a class.
#[derive(Debug)]
pub(super) struct ClassPlan {
    pub(super) parent: u32,
    pub(super) priority: u8,
    pub(super) quantum: u32,
    pub(super) rate: Bucket,
    pub(super) ceil: Bucket,
}

/// The tree of classes.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) nodes: Vec<Node>,
    links: Vec<Link>,
    rings: Vec<Ring>,
    /// When to update a class's mode; may be earlier than needed.
    events: Heap,
    /// Links from the top to the leaf that was picked last.
    path: [u32; HEIGHT_MAX as usize + 1],
    path_length: usize,
    /// The height of the class that pays for the last pick.
    payer: u8,
    /// The leaf that was picked last, if it still has its turn: no offer changed since, and no turn on the path ended.
    picked: Option<u32>,
}

impl Shape {
    /// A tree of `plans`, which get the indices from 1 on, parents before children. Heights are at most
    /// [`HEIGHT_MAX`].
    pub(super) fn new(plans: Vec<ClassPlan>, now: Instant) -> Self {
        let full = Bucket::new(u64::MAX, 0, 0, now);
        let mut nodes = vec![Node::new(ClassPlan {
            parent: NONE,
            priority: 0,
            quantum: 1,
            rate: full,
            ceil: full,
        })];
        nodes.extend(plans.into_iter().map(Node::new));
        for index in (1..nodes.len()).rev() {
            let (parent, height) = (nodes[index].parent as usize, nodes[index].height);
            nodes[parent].height = nodes[parent].height.max(height + 1);
        }
        let (mut links, mut rings) = (Vec::new(), Vec::new());
        for (class, node) in (0..).zip(&mut nodes) {
            node.links = links.len() as u32;
            node.rings = rings.len() as u32;
            let height = usize::from(node.height);
            let (places, lists) = match height {
                0 => (2, 0),
                height => ((height + 2) * 8, (height + 1) * 8),
            };
            let link = Link {
                previous: NONE,
                next: NONE,
                class,
                is_there: false,
                deficit: node.quantum.into(),
            };
            let ring = Ring {
                first: NONE,
                members: 0,
            };
            links.resize(links.len() + places, link);
            rings.resize(rings.len() + lists, ring);
        }
        let events = Heap::new(nodes.len());
        Self {
            nodes,
            links,
            rings,
            events,
            path: [NONE; HEIGHT_MAX as usize + 1],
            path_length: 0,
            payer: 0,
            picked: None,
        }
    }

    /// Records whether the leaf `class` has packets, and from when on it returns them.
    pub(super) fn set_leaf(&mut self, class: u32, waits: bool, from: Instant, now: Instant) {
        let node = &mut self.nodes[class as usize];
        node.inward.yellow = u8::from(waits) << node.priority;
        node.asleep_until = from.as_nanos();
        self.settle(class, now);
    }

    /// Records that the leaf `class` is empty.
    pub(super) fn empty_leaf(&mut self, class: u32) {
        self.nodes[class as usize].inward.yellow = 0;
        // Use Instant::ZERO: only this leaf changes, so no other deadline needs recomputing.
        self.settle(class, Instant::ZERO);
    }

    /// Whether a leaf has packets that it returns at `now`.
    pub(super) fn is_awake(&self, class: u32, now: Instant) -> bool {
        let node = &self.nodes[class as usize];
        node.inward.yellow != 0 && node.asleep_until <= now.as_nanos()
    }

    /// The leaf that sends next, if one may. If it sends, call [`Shape::sent`].
    #[inline]
    pub(super) fn pick(&mut self, now: Instant) -> Option<u32> {
        while self.events.is_due(now.as_nanos())
            && let Some(class) = self.events.pop(now.as_nanos())
        {
            self.settle(class, now);
        }
        if self.picked.is_none() {
            self.picked = self.walk();
        }
        let picked = self.picked;
        debug_assert!(picked == self.walk());
        picked
    }

    /// The leaf whose turn it is; notes the path to it.
    fn walk(&mut self) -> Option<u32> {
        let green = self.nodes[TOP as usize].inward.green;
        if green == 0 {
            return None;
        }
        let key = green.trailing_zeros();
        let mut class = TOP;
        self.payer = (key / 8) as u8;
        self.path_length = 0;
        loop {
            let node = &self.nodes[class as usize];
            if node.height == 0 {
                return Some(class);
            }
            let ring = if node.height > self.payer {
                node.ring(key)
            } else {
                node.ring(YELLOW + key % 8)
            };
            let link = self.turn(ring);
            self.path[self.path_length] = link;
            self.path_length += 1;
            class = self.links[link as usize].class;
        }
    }

    /// Charges a packet to the leaf that was picked last. `waits` says whether it has more, and `from` when it
    /// returns them.
    pub(super) fn sent(
        &mut self,
        leaf: u32,
        length: u32,
        waits: bool,
        from: Instant,
        now: Instant,
    ) {
        for &link in &self.path[..self.path_length] {
            let link = &mut self.links[link as usize];
            link.deficit -= i64::from(length);
            if link.deficit <= 0 {
                self.picked = None;
            }
        }
        let payer = self.payer;
        let node = &mut self.nodes[leaf as usize];
        node.inward.yellow = u8::from(waits) << node.priority;
        node.asleep_until = from.as_nanos();
        let tokens = Tokens::of(length);
        let mut class = leaf;
        while class != TOP {
            let node = &mut self.nodes[class as usize];
            node.packets += 1;
            node.bytes += u64::from(length);
            node.ceil.fill(now);
            node.ceil.take(tokens);
            if node.height < payer {
                node.borrowed += 1;
            } else {
                node.lent += u64::from(node.height == payer && payer > 0);
                node.rate.fill(now);
                node.rate.take(tokens);
            }
            let (parent, is_steady) = (node.parent, node.is_steady(now));
            if !is_steady {
                self.settle_one(class, now);
            }
            debug_assert!(!is_steady || !self.settle_one(class, now));
            class = parent;
        }
    }

    /// Updates the offers of `class` and its ancestors, as far as they change.
    fn settle(&mut self, mut class: u32, now: Instant) {
        while class != TOP && self.settle_one(class, now) {
            class = self.nodes[class as usize].parent;
        }
    }

    /// The earliest time at which a packet may leave, if none may at `now`.
    pub(super) fn next_time(&self, now: Instant) -> Instant {
        if self.nodes[TOP as usize].inward.green != 0 {
            return now;
        }
        Instant::from_nanos(self.events.least(|class| self.sends_at(class)))
    }

    /// When a packet below `class` may leave, as far as classes up to `class` decide it.
    fn sends_at(&self, mut class: u32) -> u64 {
        const NEVER: u64 = u64::MAX;
        let inward = self.nodes[class as usize].inward;
        let mut green = if inward.green == 0 { NEVER } else { 0 };
        let mut yellow = if inward.yellow == 0 { NEVER } else { 0 };
        while class != TOP {
            let node = &self.nodes[class as usize];
            let open = node.opens_at();
            yellow = yellow.max(open);
            let paid = yellow.max(node.rate.holds_at(0).as_nanos());
            green = green.max(open).min(paid);
            class = node.parent;
        }
        green
    }

    /// Updates the mode of `class`, makes its offer to the parent, and returns whether that offer changed.
    fn settle_one(&mut self, class: u32, now: Instant) -> bool {
        let node = &mut self.nodes[class as usize];
        let mut offer = Offer::default();
        node.steady = node.inward;
        if node.inward != Offer::default() {
            let mode = node.mode(now);
            if mode != Mode::Can {
                node.steady = Offer::NONE;
            }
            match mode {
                Mode::Cannot => self.events.lower(class, node.opens_at()),
                Mode::May => {
                    offer = node.inward;
                    if offer.yellow != 0 {
                        self.events.lower(class, node.rate.holds_at(0).as_nanos());
                    }
                    if node.parent == TOP {
                        offer.yellow = 0;
                    }
                }
                Mode::Can => {
                    offer.green =
                        node.inward.green | u64::from(node.inward.yellow) << (node.height * 8);
                }
            }
        }
        let before = node.outward;
        if before == offer {
            return false;
        }
        node.outward = offer;
        self.tell(class, before, offer);
        true
    }

    /// Puts `class` into its parent's rings of `offer`, and removes it from the rings that only `before` had.
    fn tell(&mut self, class: u32, before: Offer, offer: Offer) {
        self.picked = None;
        let parent = self.nodes[class as usize].parent;
        for (was, is, first) in [
            (before.green, offer.green, 0),
            (before.yellow.into(), offer.yellow.into(), YELLOW),
        ] {
            for key in bits(was & !is) {
                self.leave(class, parent, first + key);
            }
        }
        for (was, is, first) in [
            (before.green, offer.green, 0),
            (before.yellow.into(), offer.yellow.into(), YELLOW),
        ] {
            for key in bits(is & !was) {
                self.join(class, parent, first + key);
            }
        }
    }

    fn join(&mut self, class: u32, parent: u32, key: u32) {
        let index = self.nodes[class as usize].link(key);
        let parent = &mut self.nodes[parent as usize];
        let ring = &mut self.rings[parent.ring(key)];
        parent.inward.set(key, true);
        ring.members += 1;
        let link = &mut self.links[index as usize];
        link.is_there = true;
        if link.next != NONE {
            return;
        }
        let goes_on = link.deficit < i64::from(self.nodes[class as usize].quantum);
        let first = ring.first;
        if first == NONE || goes_on {
            ring.first = index;
        }
        let (next, previous) = match first {
            NONE => (index, index),
            first => (first, self.links[first as usize].previous),
        };
        self.links[index as usize].next = next;
        self.links[index as usize].previous = previous;
        self.links[previous as usize].next = index;
        self.links[next as usize].previous = index;
    }

    fn leave(&mut self, class: u32, parent: u32, key: u32) {
        let link = self.nodes[class as usize].link(key);
        self.links[link as usize].is_there = false;
        let parent = &mut self.nodes[parent as usize];
        let ring = &mut self.rings[parent.ring(key)];
        ring.members -= 1;
        if ring.members == 0 {
            parent.inward.set(key, false);
        }
    }

    /// The class whose turn it is in a ring with members.
    fn turn(&mut self, ring: usize) -> u32 {
        let mut index = self.rings[ring].first;
        loop {
            let link = &mut self.links[index as usize];
            let Link { previous, next, .. } = *link;
            if link.is_there && link.deficit > 0 {
                self.rings[ring].first = index;
                return index;
            }
            if link.deficit <= 0 {
                link.deficit += i64::from(self.nodes[link.class as usize].quantum);
            }
            if !link.is_there {
                link.next = NONE;
                self.links[previous as usize].next = next;
                self.links[next as usize].previous = previous;
            }
            index = next;
        }
    }
}

impl Node {
    fn new(plan: ClassPlan) -> Self {
        Self {
            parent: plan.parent,
            height: 0,
            priority: plan.priority,
            quantum: plan.quantum,
            leaf: None,
            rate: plan.rate,
            ceil: plan.ceil,
            packets: 0,
            bytes: 0,
            lent: 0,
            borrowed: 0,
            asleep_until: 0,
            inward: Offer::default(),
            outward: Offer::default(),
            steady: Offer::NONE,
            links: 0,
            rings: 0,
        }
    }

    fn mode(&mut self, now: Instant) -> Mode {
        self.ceil.fill(now);
        if !self.ceil.is_even() || self.asleep_until > now.as_nanos() {
            return Mode::Cannot;
        }
        self.rate.fill(now);
        if self.rate.is_even() {
            Mode::Can
        } else {
            Mode::May
        }
    }

    /// Whether its outward offer is what [`Shape::settle_one`] would make it. The buckets are full up to `now`, or were
    /// even before.
    #[inline]
    fn is_steady(&self, now: Instant) -> bool {
        self.steady == self.inward
            && self.ceil.is_even()
            && self.rate.is_even()
            && self.asleep_until <= now.as_nanos()
    }

    /// When it can make its parent an offer, green or yellow.
    fn opens_at(&self) -> u64 {
        self.ceil.holds_at(0).as_nanos().max(self.asleep_until)
    }

    /// Its link in the parent's ring of `key`. A leaf has one priority, so two links.
    fn link(&self, key: u32) -> u32 {
        match self.height {
            0 => self.links + u32::from(key >= YELLOW),
            height => self.links + place(key, u32::from(height) + 1),
        }
    }

    /// Its own ring of `key`.
    fn ring(&self, key: u32) -> usize {
        (self.rings + place(key, self.height.into())) as usize
    }
}

impl Offer {
    /// An offer that no class has: the keys of those below it are of heights below the seven that a class can have.
    const NONE: Self = Self {
        green: u64::MAX,
        yellow: u8::MAX,
    };

    fn set(&mut self, key: u32, on: bool) {
        if key < YELLOW {
            self.green = self.green & !(1 << key) | u64::from(on) << key;
        } else {
            let bit = 1 << (key - YELLOW);
            self.yellow = self.yellow & !bit | if on { bit } else { 0 };
        }
    }
}

/// Green keys of `heights` heights come first, yellow ones after them.
fn place(key: u32, heights: u32) -> u32 {
    if key < YELLOW {
        key
    } else {
        key - YELLOW + heights * 8
    }
}

fn bits(mut mask: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let bit = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (bit < 64).then_some(bit)
    })
}
