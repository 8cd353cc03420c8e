//! The last accounting entry of a subscriber. It waits until every path has stopped forwarding the subscriber's
//! packets, so that it counts all of them.

use std::sync::Arc;

use base::Instant;

use crate::access::Access;
use crate::edge::Edge;
use crate::edge::account::Account;
use crate::history::Ended;
use crate::path::Meter;

/// A subscriber that ended and may still have packets on other paths.
pub(crate) struct Parting<A: Access> {
    /// Complete once every path has applied this many changes.
    after: u64,
    stop: Option<Account<A::Place>>,
    ended: Ended<A::Place, A::Reason>,
    meters: Arc<[Meter]>,
}

impl<A: Access> Edge<A> {
    /// Queues the last entry of a subscriber, and its history, once no path forwards its packets any more.
    pub(crate) fn part(
        &mut self,
        stop: Option<Account<A::Place>>,
        ended: Ended<A::Place, A::Reason>,
        meters: Option<Arc<[Meter]>>,
    ) {
        match meters.filter(|_| self.config.paths > 1 && !self.shutting_down) {
            Some(meters) => self.parting.push_back(Parting {
                after: self.changed,
                stop,
                ended,
                meters,
            }),
            None => {
                self.accounts.extend(stop);
                self.history.push(ended);
            }
        }
    }

    /// Every other path has applied this many changes, counted over all that [`Edge::poll_change`] returned.
    /// An owner that moves batches between paths ([`Edge::poll_handovers`]) has given this path's own to others before,
    /// and gives this path all that others had for it before.
    pub fn applied(&mut self, changes: u64, now: Instant) {
        if self.path.owes() {
            return;
        }
        self.applied = changes;
        self.go_on_moving(changes, now);
        self.settle_forwards(now);
        while self.parting.front().is_some_and(|one| one.after <= changes)
            && let Some(mut one) = self.parting.pop_front()
        {
            let traffic = Meter::sum(&one.meters);
            if let Some(stop) = &mut one.stop {
                stop.traffic = traffic;
                stop.queue = stop.queue.map(|_| Meter::losses(&one.meters));
            }
            one.ended.traffic = traffic;
            self.accounts.extend(one.stop);
            self.history.push(one.ended);
        }
    }

    /// Whether a last entry waits for other paths.
    #[must_use]
    pub fn is_parting(&self) -> bool {
        !self.parting.is_empty()
    }
}
