//! The queues of all subscribers in one direction. Start with [`Tree::admit`].

use core::hint::black_box;
use core::num::NonZeroU32;

use base::{Duration, Instant};
use qos::codel::Parameters;
use qos::codel::control::{Law, Store, Tally, Turn};
use qos::fattest::Fattest;
use qos::tree::Overhead;
use qos::{Packet, Reason};

use crate::Direction;
use crate::flows::{Flows, HostView, Queue};
use crate::leaf::{Counts, Leaf};
use crate::links::{Links, NONE, ROOT, Terms};
use crate::packets::Packets;
use crate::pages::Pages;
use crate::spec::{Depth, Fairness, Fault, NodeId, Plan, Shape, Template, TemplateId};
use crate::ticks::{CHUNK, Timer};

/// Packets that leave before the next links are put back into the schedule.
const WAKE_EVERY: u32 = 8;

/// Names a subscriber in a tree, from [`Tree::add`] to [`Tree::remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubId(NonZeroU32);

impl SubId {
    /// The subscriber's link.
    #[inline]
    pub(crate) fn link(self) -> u32 {
        self.0.get()
    }
}

/// The limits of a tree.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The direction of its packets.
    pub direction: Direction,
    /// Packets that may be queued in all. At the limit, the subscriber with the most bytes loses packets first.
    pub packets_max: u32,
    /// Bytes on the line that may be queued in all.
    pub octets_max: u64,
    /// Subscribers in it.
    pub subscribers_max: u32,
    /// A secret: a sender that does not know it cannot choose flows that collide.
    pub seed: u64,
}

/// What is to be done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Admission {
    /// Send it now. Its tokens are taken.
    Pass,
    /// Store it, and pass it to [`Tree::push`].
    Queue,
    /// It is longer than the whole queue may be, and counted.
    Drop,
}

/// A packet that leaves its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The caller's name for its bytes.
    pub handle: u32,
    /// The caller's name for its subscriber.
    pub owner: u32,
    /// Whether to mark it "congestion experienced".
    pub marked: bool,
}

/// A template, with what packets need computed.
#[derive(Debug)]
pub(crate) struct Style {
    pub(crate) name: String,
    law: Law,
    depth: Depth,
    fairness: Fairness,
    overhead: Overhead,
    burst: Duration,
    weight: u32,
}

/// A shared link of the plan.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) link: u32,
}

/// The queues of all subscribers in one direction.
pub struct Tree {
    pub(crate) options: Options,
    pub(crate) styles: Vec<Style>,
    /// By [`NodeId`].
    pub(crate) nodes: Vec<Shared>,
    pub(crate) links: Links,
    /// By link; those of shared links are not used.
    leaves: Pages<Leaf>,
    subscribers: u32,
    flows: Flows,
    pool: Packets,
    fattest: Fattest,
    /// Places in `fattest`.
    places: usize,
    octets: u64,
    /// Subscribers added so far, modulo 2^32.
    added: u32,
    /// Packets that left since links were last put back into the schedule.
    since_wake: u32,
    /// Timers that fired.
    due: Vec<Timer>,
}

/// A subscriber's queue, for views.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The rate in bit/s; 0 means no limit.
    pub bps: u64,
    /// The template's name.
    pub template: String,
    /// The names of the shared links, from the nearest to the topmost.
    pub nodes: Vec<String>,
    /// Queued packets.
    pub packets: u32,
    /// Their bytes on the line.
    pub octets: u32,
    /// Packets since the subscriber was added.
    pub counts: Counts,
    /// The delay that half of the packets that waited did not exceed.
    pub p50: Option<Duration>,
    /// The same for 99 of 100.
    pub p99: Option<Duration>,
    /// Hosts with queued packets.
    pub hosts: Vec<HostView>,
}

impl Style {
    pub(crate) fn new(template: &Template) -> Self {
        let parameters = Parameters {
            target: template.target,
            interval: template.interval,
            ecn: template.ecn,
            ..Parameters::default()
        };
        Self {
            name: template.name.clone(),
            law: Law::new(&parameters),
            depth: template.depth,
            fairness: template.fairness,
            overhead: template.overhead,
            burst: template.burst,
            weight: template.weight,
        }
    }

    pub(crate) fn terms(&self, bps: u64) -> Terms {
        Terms {
            bps,
            burst: self.burst,
            weight: self.weight,
        }
    }
}

impl Tree {
    /// A tree without subscribers.
    ///
    /// # Errors
    /// The plan has a fault.
    pub fn new(plan: &Plan, options: &Options, now: Instant) -> Result<Self, Fault> {
        let mut tree = Self {
            options: *options,
            styles: Vec::new(),
            nodes: Vec::new(),
            links: Links::new(now),
            leaves: Pages::new(),
            subscribers: 0,
            flows: Flows::new(options.direction, options.packets_max, options.seed),
            pool: Packets::new(),
            fattest: Fattest::new(0),
            places: 0,
            octets: 0,
            added: 0,
            since_wake: 0,
            due: Vec::with_capacity(CHUNK),
        };
        tree.set_plan(plan, now)?;
        Ok(tree)
    }

    /// Adds a subscriber that the caller names `owner`. `None` if the tree is full or the plan lacks what the shape
    /// names.
    pub fn add(&mut self, shape: &Shape, owner: u32, now: Instant) -> Option<SubId> {
        let style = self.styles.get(usize::from(shape.template.0))?;
        let terms = style.terms(self.options.direction.of(shape.rates));
        let parent = self.parent_of(shape.node)?;
        if self.subscribers >= self.options.subscribers_max {
            return None;
        }
        self.subscribers += 1;
        self.added = self.added.wrapping_add(1);
        let queue = Queue::new(self.added, owner, shape.template.0);
        let link = self.links.add(terms, parent, Some(queue), now);
        while self.leaves.len() <= link as usize {
            self.leaves.push(Leaf::default());
        }
        self.leaves[link as usize] = Leaf::default();
        self.grow();
        NonZeroU32::new(link).map(SubId)
    }

    /// Makes room in `fattest` for all leaves.
    fn grow(&mut self) {
        if self.leaves.len() <= self.places {
            return;
        }
        // Seldom: it walks over all subscribers.
        self.places = self.leaves.len() * 2;
        self.fattest = Fattest::new(self.places);
        for index in 0..self.leaves.len() {
            if let Some(link) = self.links.subscriber(index as u32) {
                link.bound = link.queue.octets;
                self.fattest.raise(index, link.bound);
            }
        }
    }

    pub(crate) fn parent_of(&self, node: Option<NodeId>) -> Option<u32> {
        match node {
            None => Some(ROOT),
            Some(id) => self.nodes.get(id.0 as usize).map(|node| node.link),
        }
    }

    /// Removes a subscriber. Its packets are discarded.
    pub fn remove(&mut self, id: SubId) {
        let Some(link) = self.links.subscriber(id.link()) else {
            return;
        };
        self.octets -= u64::from(link.queue.octets);
        self.flows.clear(&mut link.queue, &mut self.pool);
        // No time passes: the links above are as they were.
        self.links.refresh(id.link(), false, Instant::ZERO);
        self.links.remove(id.link());
        self.subscribers -= 1;
    }

    /// Decides about a packet of `octets` IP bytes.
    #[inline]
    pub fn admit(&mut self, id: SubId, octets: u32, now: Instant) -> Admission {
        let Some(link) = self.links.subscriber(id.link()) else {
            return Admission::Drop;
        };
        let style = &self.styles[usize::from(link.queue.template)];
        let length = style.overhead.on_line(octets);
        let is_empty = link.queue.packets == 0;
        let counts = &mut self.leaves[id.link() as usize].counts;
        if is_empty && self.links.may_pass(id.link(), now) {
            self.links.take(id.link(), length);
            counts.passed += 1;
            counts.octets += u64::from(length);
            return Admission::Pass;
        }
        if length > style.depth.octets {
            counts.dropped += 1;
            return Admission::Drop;
        }
        Admission::Queue
    }

    /// Queues a packet that [`Tree::admit`] decided to queue. Its length is that of its IP bytes. At a limit, packets
    /// are discarded, perhaps this one: see [`Tree::discarded`].
    #[inline]
    pub fn push(&mut self, id: SubId, packet: Packet, now: Instant) {
        let packet = Packet {
            arrived: now,
            ..packet
        };
        self.enqueue(id.link(), packet, now);
    }

    fn enqueue(&mut self, index: u32, mut packet: Packet, now: Instant) {
        if self.pool.len() >= self.options.packets_max {
            self.discard_fattest(index, now);
        }
        if self.pool.len() >= self.options.packets_max {
            return;
        }
        let Some(link) = self.links.subscriber(index) else {
            return;
        };
        let queue = &mut link.queue;
        let style = &self.styles[usize::from(queue.template)];
        packet.length = style.overhead.on_line(packet.length);
        let was_empty = queue.packets == 0;
        let (fairness, pool) = (style.fairness, &mut self.pool);
        if self.flows.push(queue, fairness, pool, &packet).is_none() {
            return;
        }
        self.octets += u64::from(packet.length);
        while queue.packets > style.depth.packets || queue.octets > style.depth.octets {
            let Some(lost) = self.flows.discard_one(queue, &mut self.pool) else {
                break;
            };
            self.leaves[index as usize].counts.dropped += 1;
            self.octets -= u64::from(lost);
        }
        if queue.packets > 1 && queue.octets > link.bound {
            link.bound = queue.octets;
            self.fattest.raise(index as usize, queue.octets);
        }
        let has_packets = queue.packets > 0;
        if was_empty {
            self.links.refresh(index, has_packets, now);
        }
        while self.octets > self.options.octets_max && self.discard_fattest(index, now) {}
    }

    /// Discards a packet of the subscriber with the most bytes. If no queue has had two packets, the packet is any
    /// subscriber's whose turn it is, or of `other`.
    fn discard_fattest(&mut self, other: u32, now: Instant) -> bool {
        let links = &mut self.links;
        let octets = |index: usize| match links.subscriber(index as u32) {
            Some(link) => {
                link.bound = link.bound.min(link.queue.octets);
                link.queue.octets
            }
            None => 0,
        };
        let found = self.fattest.find(octets).map(|index| index as u32);
        self.discard_of(found.unwrap_or(other), now)
            || self
                .links
                .first()
                .is_some_and(|first| self.discard_of(first, now))
    }

    fn discard_of(&mut self, index: u32, now: Instant) -> bool {
        let Some(link) = self.links.subscriber(index) else {
            return false;
        };
        let Some(lost) = self.flows.discard_one(&mut link.queue, &mut self.pool) else {
            return false;
        };
        let is_empty = link.queue.packets == 0;
        self.leaves[index as usize].counts.dropped += 1;
        self.octets -= u64::from(lost);
        if is_empty {
            self.links.refresh(index, false, now);
        }
        true
    }

    /// The next packet that may leave. It leaves its queue.
    pub fn pop(&mut self, now: Instant) -> Option<Sent> {
        if self.since_wake == 0 {
            self.wake(now);
        }
        self.since_wake = (self.since_wake + 1) % WAKE_EVERY;
        loop {
            let Some(index) = self.links.first() else {
                if !self.wake(now) {
                    self.since_wake = 0;
                    return None;
                }
                continue;
            };
            let Some(link) = self.links.subscriber(index) else {
                debug_assert!(
                    false,
                    "only subscribers and shared links are in the schedule"
                );
                self.links.refresh(index, false, now);
                continue;
            };
            let queue = &mut link.queue;
            let law = &self.styles[usize::from(queue.template)].law;
            let mut tally = Tally::default();
            let before = queue.octets;
            let mut turn = Turn {
                law,
                tally: &mut tally,
                pool: &mut self.pool,
                now,
            };
            let taken = self.flows.take(queue, &mut turn);
            self.octets -= u64::from(before - queue.octets);
            let has_more = queue.packets > 0;
            let owner = queue.owner;
            let leaf = &mut self.leaves[index as usize];
            leaf.counts.dropped += tally.dropped;
            leaf.counts.marked += tally.ecn_mark;
            let Some(place) = taken else {
                self.links.refresh(index, has_more, now);
                continue;
            };
            let length = self.pool.length(place);
            leaf.delays.add(now.since(self.pool.arrived(place)));
            leaf.counts.queued += 1;
            leaf.counts.octets += u64::from(length);
            self.links.charge(index, length, has_more, now);
            let (handle, marked) = self.pool.release_sent(place);
            self.touch_next();
            return Some(Sent {
                handle,
                owner,
                marked,
            });
        }
    }

    /// Puts links whose timers are due back into the schedule, a few at a time, so that no packet waits for thousands.
    /// `false` if none is due.
    fn wake(&mut self, now: Instant) -> bool {
        let mut due = core::mem::take(&mut self.due);
        due.clear();
        let is_any = self.links.take_due(now, &mut due);
        self.touch_all(due.iter().map(|timer| timer.link));
        for &timer in &due {
            if self.links.fired(timer) {
                // Only a link with packets has a timer.
                self.links.refresh(timer.link, true, now);
            }
        }
        self.due = due;
        is_any
    }

    /// Reads what the next packets of these subscribers need, so that it is in the cache when they are queued and when
    /// they leave. Call it with some tens of subscribers ahead of [`Tree::admit`]: the processor then loads for all of
    /// them at once, while a packet alone waits for memory several times.
    #[inline]
    pub fn touch(&self, ids: impl Iterator<Item = SubId> + Clone) {
        self.touch_all(ids.map(SubId::link));
    }

    #[inline]
    fn touch_all(&self, links: impl Iterator<Item = u32> + Clone) {
        let mut sum = 0;
        for index in links.clone() {
            let link = self.links.get(index);
            sum ^= link.parent ^ link.queue.packets ^ self.leaves[index as usize].touch();
        }
        black_box(sum);
        for index in links.clone() {
            let queue = &self.links.get(index).queue;
            sum ^= self.flows.touch(queue, &self.pool);
        }
        black_box(sum);
        for index in links {
            let queue = &self.links.get(index).queue;
            sum ^= self.flows.touch_packet(queue, &self.pool);
        }
        black_box(sum);
    }

    /// Reads what the next packet needs, so that it is in the cache then. The processor goes on meanwhile.
    #[inline]
    fn touch_next(&self) {
        if let Some((index, link)) = self.links.guess() {
            black_box(link.queue.packets);
            if let Some(leaf) = self.leaves.get(index as usize) {
                black_box(leaf.counts.queued);
            }
        }
    }

    /// The handles of the packets that were discarded since the last call, with the reasons.
    pub fn discarded(&mut self) -> std::vec::Drain<'_, (u32, Reason)> {
        self.pool.discarded()
    }

    /// When to call [`Tree::pop`] again; [`Instant::ZERO`] if a packet may leave now. `None` if nothing is queued.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        match self.links.has_ready() {
            true => Some(Instant::ZERO),
            false => self.links.next_deadline(),
        }
    }

    /// Queued packets of all subscribers.
    #[must_use]
    pub fn packets(&self) -> u32 {
        self.pool.len()
    }

    /// Their bytes on the line.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.octets
    }

    /// Subscribers and shared links that wait for tokens.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.links.waiting()
    }

    /// Subscribers in it.
    #[must_use]
    pub fn subscribers(&self) -> usize {
        self.subscribers as usize
    }

    /// A subscriber's queue, with up to `hosts_max` of its hosts. `address` returns the address of the host of a queued
    /// packet by its handle.
    #[must_use]
    pub fn view(
        &self,
        id: SubId,
        hosts_max: usize,
        address: impl Fn(u32) -> [u8; 16],
    ) -> Option<View> {
        let link = self.links.get(id.link());
        let leaf = self.leaves.get(id.link() as usize)?;
        let queue = &link.queue;
        let mut nodes = Vec::new();
        let mut at = link.parent;
        while at != ROOT && at != NONE {
            let name = self.nodes.iter().find(|node| node.link == at);
            nodes.extend(name.map(|node| node.name.clone()));
            at = self.links.get(at).parent;
        }
        Some(View {
            bps: link.bps(),
            template: self.styles[usize::from(queue.template)].name.clone(),
            nodes,
            packets: queue.packets,
            octets: queue.octets,
            counts: leaf.counts,
            p50: leaf.delays.percentile(0.5),
            p99: leaf.delays.percentile(0.99),
            hosts: self.flows.hosts(queue, &self.pool, address, hosts_max),
        })
    }

    pub(crate) fn style(&self, id: TemplateId) -> Option<&Style> {
        self.styles.get(usize::from(id.0))
    }
}
