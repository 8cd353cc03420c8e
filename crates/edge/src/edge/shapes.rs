//! Queues of subscribers: their shapes, the plan of templates and shared links, the path that each is on.

use std::sync::Arc;

use base::Instant;
use hqos::{Fault, Plan, Shape, View};

use super::homes::Move;
use crate::access::{Access, Encapsulation};
use crate::edge::Edge;
use crate::key::SubscriberKey;
use crate::path::change::{Release, Shaping, Step};
use crate::path::look::Look;
use crate::path::{Handover, Inside, Outside};

/// The queues of a shaped subscriber.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shaped {
    shape: Shape,
    /// The path that they are on, or move to.
    pub(super) home: u8,
    /// Numbers the stay on that path.
    stay: u32,
    /// Whether they are moving there.
    moves: bool,
    /// A shape on another path, to be set once they are there.
    next: Option<Shape>,
}

impl<A: Access> Edge<A> {
    /// Templates and shared links of queues.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.path.plan
    }

    /// Changes templates and shared links. Those with the same names go on, and no packet is lost. A subscriber whose
    /// template is gone gets the first one, and a subscriber whose shared link is gone has none. With several paths, a
    /// tree whose subscribers are on different paths now is moved to one of them.
    ///
    /// # Errors
    /// The plan has a fault; then nothing changes.
    pub fn set_plan(&mut self, plan: Plan, now: Instant) -> Result<(), Fault> {
        plan.check()?;
        let before = Arc::clone(&self.path.plan);
        self.change(Step::Plan(Arc::new(plan), now));
        let plan = Arc::clone(&self.path.plan);
        for shaped in self.shaped.values_mut() {
            for shape in core::iter::once(&mut shaped.shape).chain(&mut shaped.next) {
                let template = before.templates.get(usize::from(shape.template.0));
                let template = template.and_then(|old| plan.template(&old.name));
                shape.template = template.unwrap_or_default();
                let node = shape.node.and_then(|id| before.nodes.get(id.0 as usize));
                shape.node = node.and_then(|old| plan.node(&old.name));
            }
        }
        self.settle_homes(now);
        Ok(())
    }

    /// Moves the queues of trees that a new plan has joined.
    fn settle_homes(&mut self, now: Instant) {
        if self.config.paths <= 1 {
            return;
        }
        let plan = Arc::clone(&self.path.plan);
        let all = self.shaped.values().map(|one| (&one.shape, one.home));
        self.homes.settle(&plan, all);
        let mut wrong: Vec<(u8, u8, u32)> = Vec::new();
        for (&index, one) in &mut self.shaped {
            let homes = &mut self.homes;
            let home = homes.of(&plan, &one.shape).unwrap_or(one.home);
            if home == one.home {
                continue;
            }
            if one.moves {
                one.next = Some(one.next.unwrap_or(one.shape));
                homes.stays_behind(home, one.home);
                continue;
            }
            wrong.push((one.home, home, index));
        }
        wrong.sort_unstable();
        for group in wrong.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let of = group.iter().map(|&(_, to, index)| {
                let shaped = self.shaped[&index];
                (index, self.begin_move(index, shaped.shape, to, now))
            });
            let of = of.collect();
            let (from, to, _) = group[0];
            self.push_move(from, to, of);
        }
    }

    /// A subscriber's shape; `None` if it has none or does not exist.
    #[must_use]
    pub fn shape(&self, subscriber: SubscriberKey) -> Option<Shape> {
        self.subscribers.get(subscriber.0)?;
        let shaped = self.shaped.get(&subscriber.0.index)?;
        Some(shaped.next.unwrap_or(shaped.shape))
    }

    /// The path that has a subscriber's queues; `None` if it has no shape or does not exist.
    #[must_use]
    pub fn home(&self, subscriber: SubscriberKey) -> Option<usize> {
        self.subscribers.get(subscriber.0)?;
        let shaped = self.shaped.get(&subscriber.0.index)?;
        Some(shaped.home.into())
    }

    /// How many subscribers have their queues on a path.
    #[must_use]
    pub fn queues_on(&self, path: usize) -> u32 {
        self.homes.load(path)
    }

    /// Sets or changes a subscriber's shape: no packet is lost. Without a shape, its packets pass without queues; those
    /// that are queued are discarded. Returns `false` if there is no such subscriber.
    ///
    /// A rate above that of a link is accepted: the link limits it. [`Plan::check_shape`] refuses such a rate.
    ///
    /// # Errors
    /// The plan has no such template or link, or the table of queues is full; then nothing changes.
    pub fn set_shape(
        &mut self,
        subscriber: SubscriberKey,
        shape: Option<Shape>,
        now: Instant,
    ) -> Result<bool, Fault> {
        if let Some(shape) = &shape {
            self.path.plan.check_ids(shape)?;
        }
        if self.subscribers.get(subscriber.0).is_none() {
            return Ok(false);
        }
        let index = subscriber.0.index;
        match (self.shaped.get(&index).copied(), shape) {
            (Some(shaped), Some(shape)) => {
                self.reshape(index, shaped, shape, now);
                return Ok(true);
            }
            (Some(_), None) => self.forget_shape(index),
            (None, Some(shape)) => {
                if self.shaped.len() >= self.config.subscribers_max as usize {
                    return Err(Fault::Full);
                }
                let plan = Arc::clone(&self.path.plan);
                let home = self.homes.take(&plan, &shape, None, self.near(index));
                let shaped = Shaped {
                    shape,
                    home,
                    stay: self.next_stay(),
                    moves: false,
                    next: None,
                };
                self.shaped.insert(index, shaped);
                self.shape_path(index, now);
            }
            (None, None) => return Ok(true),
        }
        // Its entry says whether it has queues.
        self.publish(index);
        Ok(true)
    }

    /// Changes the shape of a subscriber with queues, and moves them if the shape is on another path.
    fn reshape(&mut self, index: u32, shaped: Shaped, shape: Shape, now: Instant) {
        let plan = Arc::clone(&self.path.plan);
        self.homes.give_back(&plan, &shaped.shape, shaped.home);
        let before = (&shaped.shape, shaped.home);
        let home = self.homes.take(&plan, &shape, Some(before), None);
        if home != shaped.home && !shaped.moves {
            let stays = self.begin_move(index, shape, home, now);
            self.push_move(shaped.home, home, vec![(index, stays)]);
            return;
        }
        let (shape, next) = match home == shaped.home {
            true => (shape, None),
            false => {
                // Until the queues have moved, they keep their shape.
                self.homes.give_back(&plan, &shape, home);
                self.homes.take(&plan, &shaped.shape, Some(before), None);
                (shaped.shape, Some(shape))
            }
        };
        self.shaped.insert(
            index,
            Shaped {
                shape,
                next,
                ..shaped
            },
        );
        self.shape_path(index, now);
    }

    /// The path on which the data messages of a subscriber arrive, if that is known.
    pub(super) fn near(&self, index: u32) -> Option<u8> {
        let paths = u32::from(self.config.paths);
        if paths <= 1 || !self.config.by_session {
            return None;
        }
        let session = self.subscribers.at(index)?.session;
        let (way, _) = self.endpoint.encapsulation(session)?;
        // Numbered frames are the edge's own path's.
        match way.is_fixed() {
            true => u8::try_from(A::Encapsulation::spread(way.id())? % paths).ok(),
            false => Some(0),
        }
    }

    fn next_stay(&mut self) -> u32 {
        self.stays = self.stays.wrapping_add(1);
        self.stays
    }

    /// Gives a subscriber's shape to its path.
    fn shape_path(&mut self, index: u32, now: Instant) {
        let Some(shaped) = self.shaped.get(&index) else {
            return;
        };
        let shaping = Shaping {
            place: index,
            generation: self
                .subscribers
                .at(index)
                .map_or(0, |one| one.key.generation),
            shape: shaped.shape,
            home: shaped.home,
            stay: shaped.stay,
            moves: shaped.moves,
            seed: self.queue_seed,
            now,
        };
        self.change(Step::Shape(Box::new(shaping)));
    }

    /// Directs a subscriber's packets to another path. Returns the stays that end and start; [`Self::push_move`] must
    /// follow.
    fn begin_move(&mut self, index: u32, shape: Shape, home: u8, now: Instant) -> [u32; 2] {
        let stay = self.next_stay();
        let Some(shaped) = self.shaped.get_mut(&index) else {
            return [stay; 2];
        };
        let before = core::mem::replace(&mut shaped.stay, stay);
        (shaped.shape, shaped.home) = (shape, home);
        (shaped.moves, shaped.next) = (true, None);
        self.shape_path(index, now);
        self.publish(index);
        [before, stay]
    }

    fn push_move(&mut self, from: u8, to: u8, of: Vec<(u32, [u32; 2])>) {
        self.moves.push_back(Move {
            after: self.changed,
            from,
            to,
            of,
            is_released: false,
        });
    }

    /// Goes on with the moves whose last step all other paths have applied.
    pub(super) fn go_on_moving(&mut self, changes: u64, now: Instant) {
        while self.moves.front().is_some_and(|one| one.after <= changes)
            && let Some(mut one) = self.moves.pop_front()
        {
            if !one.is_released {
                let release = Release {
                    from: one.from,
                    to: one.to,
                    of: one
                        .of
                        .iter()
                        .map(|&(index, [stay, _])| (index, stay))
                        .collect(),
                };
                self.change(Step::Release(Arc::new(release)));
                (one.after, one.is_released) = (self.changed, true);
                self.moves.push_back(one);
                continue;
            }
            for (index, [_, stay]) in one.of {
                self.moved(index, stay, now);
            }
        }
    }

    /// A subscriber's queues have moved.
    fn moved(&mut self, index: u32, stay: u32, now: Instant) {
        let shaped = self.shaped.get_mut(&index);
        let Some(shaped) = shaped.filter(|shaped| shaped.stay == stay) else {
            return;
        };
        shaped.moves = false;
        if let Some(next) = shaped.next.take() {
            let shaped = *shaped;
            self.reshape(index, shaped, next, now);
        }
    }

    /// Whether queues are on their way from one path to another.
    #[must_use]
    pub fn is_moving(&self) -> bool {
        !self.moves.is_empty()
    }

    /// Sets the shape that a subscriber was admitted with. A shape that cannot be set is ignored.
    pub(super) fn set_first_shape(
        &mut self,
        subscriber: SubscriberKey,
        shape: Option<Shape>,
        now: Instant,
    ) {
        if shape.is_some() {
            let _ = self.set_shape(subscriber, shape, now);
        }
    }

    /// Removes a subscriber's queues with their packets.
    pub(super) fn forget_shape(&mut self, index: u32) {
        if let Some(shaped) = self.shaped.remove(&index) {
            let plan = Arc::clone(&self.path.plan);
            self.homes.give_back(&plan, &shaped.shape, shaped.home);
            self.change(Step::Unshape(index));
        }
    }

    /// A subscriber's queues down and up, each with up to `hosts_max` hosts; `None` if it has no shape, or if another path
    /// has them ([`Edge::look`]).
    #[must_use]
    pub fn queue(&self, subscriber: SubscriberKey, hosts_max: usize) -> Option<[View; 2]> {
        self.subscribers.get(subscriber.0)?;
        let queues = self.path.queues.as_ref()?;
        queues.view(subscriber.0.index, hosts_max)
    }

    /// Asks for a subscriber's queues, each with up to `hosts_max` hosts, whichever path has them. `None` if the
    /// subscriber has no shape or does not exist.
    pub fn look(&mut self, subscriber: SubscriberKey, hosts_max: usize) -> Option<Look> {
        self.shape(subscriber)?;
        let after = self.changed + 1;
        let look = Look::new(subscriber.0.index, hosts_max, after);
        self.change(Step::Look(look.clone()));
        Some(look)
    }

    /// Whether all paths have seen a question. If it has no answer then, the queues were on their way between two paths,
    /// or are gone.
    #[must_use]
    pub fn has_seen(&self, look: &Look) -> bool {
        self.config.paths <= 1 || look.after <= self.applied
    }

    /// Adds the batches of packets for queues on other paths to `out`, each with the number of its path. Each must reach
    /// its path before any change that [`Edge::poll_change`] returns later.
    pub fn poll_handovers(&mut self, out: &mut Vec<(usize, Handover)>) {
        self.path.poll_handovers(out);
    }

    /// Whether queues that moved wait for room on another path.
    #[must_use]
    pub fn owes(&self) -> bool {
        self.path.owes()
    }

    /// Takes back a batch for which a path has no room.
    pub fn refuse_handover(&mut self, path: usize, batch: &Handover) {
        self.path.refuse_handover(path, batch);
    }

    /// Takes the packets that another path handed over.
    pub fn take_handover(
        &mut self,
        batch: &Handover,
        now: Instant,
        outside: &mut impl Outside<A::Route>,
        inside: &mut impl Inside,
    ) {
        let endpoint = Some(&mut self.endpoint);
        self.path.take_by(batch, now, endpoint, outside, inside);
    }

    /// Loads the queues and the address mappings of the subscribers that sent these datagrams into the cache, for up to 64 at
    /// once. Call it with received datagrams before [`Edge::receive`].
    pub fn touch<'a, I: Iterator<Item = (A::Route, &'a [u8])>>(
        &mut self,
        datagrams: impl Fn() -> I,
    ) {
        self.path.touch(datagrams);
    }

    /// Sends the queued packets that may leave, a few hundred at most. Returns whether more may leave now.
    pub fn drain(
        &mut self,
        now: Instant,
        outside: &mut impl Outside<A::Route>,
        inside: &mut impl Inside,
    ) -> bool {
        let endpoint = Some(&mut self.endpoint);
        self.path.drain_by(now, endpoint, outside, inside)
    }

    /// When to call [`Edge::drain`] next; [`Instant::ZERO`] means now. `None` if no packet is queued.
    #[inline]
    #[must_use]
    pub fn next_drain(&self) -> Option<Instant> {
        self.path.queues.as_ref()?.next_deadline()
    }
}
