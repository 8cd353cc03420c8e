//! The last account of who ended: what passed on other cores until they had heard of it is in it.

use std::sync::Arc;

use crate::access::Access;
use crate::edge::Edge;
use crate::edge::account::Account;
use crate::history::Ended;
use crate::path::Meter;

/// A subscriber that ended.
pub(crate) struct Parting<A: Access> {
    /// It is over when every path has taken so many changes.
    after: u64,
    stop: Option<Account<A::Place>>,
    ended: Ended<A::Place, A::Reason>,
    meters: Arc<[Meter]>,
}

impl<A: Access> Edge<A> {
    /// Gives out the last account of a subscriber, and remembers it, when no path has a packet of it any more.
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

    /// Every other path has taken so many changes, of all that [`Edge::poll_change`] gave.
    pub fn applied(&mut self, changes: u64) {
        while self.parting.front().is_some_and(|one| one.after <= changes)
            && let Some(mut one) = self.parting.pop_front()
        {
            let traffic = Meter::sum(&one.meters);
            if let Some(stop) = &mut one.stop {
                stop.traffic = traffic;
            }
            one.ended.traffic = traffic;
            self.accounts.extend(one.stop);
            self.history.push(one.ended);
        }
    }

    /// Whether somebody's last account waits for other paths.
    #[must_use]
    pub fn is_parting(&self) -> bool {
        !self.parting.is_empty()
    }
}
