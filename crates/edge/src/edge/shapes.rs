//! Queues of subscribers: their shapes, the plan of templates and shared links, and what waits.

use base::Instant;
use hqos::{Fault, Plan, Shape, SubId, View};

use crate::access::Access;
use crate::edge::Edge;
use crate::key::SubscriberKey;
use crate::path::{Inside, Outside, Queues};

/// The queues of a shaped subscriber.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shaped {
    shape: Shape,
    pub(super) queue: SubId,
}

impl<A: Access> Edge<A> {
    /// Templates and shared links of queues.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Changes templates and shared links. Those with the same names go on, and no packet is lost. A subscriber whose
    /// template is gone gets the first one, and a subscriber whose shared link is gone has none.
    ///
    /// # Errors
    /// The plan has a fault; then nothing changes.
    pub fn set_plan(&mut self, plan: Plan, now: Instant) -> Result<(), Fault> {
        plan.check()?;
        if let Some(queues) = &mut self.path.queues {
            queues.set_plan(&plan, now)?;
        }
        let before = core::mem::replace(&mut self.plan, plan);
        let plan = &self.plan;
        for shaped in self.shaped.values_mut() {
            let shape = &mut shaped.shape;
            let template = before.templates.get(usize::from(shape.template.0));
            let template = template.and_then(|old| plan.template(&old.name));
            shape.template = template.unwrap_or_default();
            let node = shape.node.and_then(|id| before.nodes.get(id.0 as usize));
            shape.node = node.and_then(|old| plan.node(&old.name));
        }
        Ok(())
    }

    /// A subscriber's shape; `None` if it has none or does not exist.
    #[must_use]
    pub fn shape(&self, subscriber: SubscriberKey) -> Option<Shape> {
        self.subscribers.get(subscriber.0)?;
        self.shaped
            .get(&subscriber.0.index)
            .map(|shaped| shaped.shape)
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
            self.plan.check_ids(shape)?;
        }
        if self.subscribers.get(subscriber.0).is_none() {
            return Ok(false);
        }
        if shape.is_some() && self.path.queues.is_none() {
            let seed = self.random.u64();
            let queues = Queues::new(&self.plan, &self.config, seed, now)?;
            self.path.queues = Some(Box::new(queues));
        }
        let index = subscriber.0.index;
        let Some(queues) = &mut self.path.queues else {
            return Ok(true);
        };
        match (self.shaped.get_mut(&index), shape) {
            (Some(shaped), Some(shape)) => {
                queues.change(shaped.queue, &shape, now);
                shaped.shape = shape;
                return Ok(true);
            }
            (Some(_), None) => self.forget_shape(index),
            (None, Some(shape)) => {
                let queue = queues.add(&shape, index, now).ok_or(Fault::Full)?;
                self.shaped.insert(index, Shaped { shape, queue });
            }
            (None, None) => return Ok(true),
        }
        // Its entry says whether it has queues.
        self.publish(index);
        Ok(true)
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
        let shaped = self.shaped.remove(&index);
        if let (Some(shaped), Some(queues)) = (shaped, &mut self.path.queues) {
            queues.remove(shaped.queue);
        }
    }

    /// A subscriber's queues down and up, each with up to `hosts_max` hosts; `None` if it has no shape.
    #[must_use]
    pub fn queue(&self, subscriber: SubscriberKey, hosts_max: usize) -> Option<[View; 2]> {
        self.subscribers.get(subscriber.0)?;
        let shaped = self.shaped.get(&subscriber.0.index)?;
        self.path.queues.as_ref()?.view(shaped.queue, hosts_max)
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
