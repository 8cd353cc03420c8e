//! An edge's paths: the changes that it sends them, and their counters.

use std::sync::Arc;

use filter::FilterSet;

use crate::access::{Access, Served};
use crate::counters::Discard;
use crate::edge::Edge;
use crate::event::Event;
use crate::path::change::{Step, Table};
use crate::path::{Change, Counts, Filters, Logged, Path, PathCounts};

/// Changes the filters of all paths of an edge.
pub struct FiltersMut<'a, A: Access = Served>(&'a mut Edge<A>);

impl<A: Access> FiltersMut<'_, A> {
    /// Replaces the set of filters. Lines that stay keep their counters.
    pub fn replace(&mut self, set: FilterSet) {
        let hits = self.0.path.filters.carried(&set);
        self.0.change(Step::Filters(Arc::new(set), hits));
    }

    /// Sets whether logged packets are queued for [`Edge::poll_logged`].
    pub fn set_logs(&mut self, logs: bool) {
        self.0.change(Step::Logs(logs));
    }
}

impl<A: Access> Edge<A> {
    /// The next ICMP error to the inside, as an IP packet, oldest first.
    pub fn poll_inside(&mut self) -> Option<Box<[u8]>> {
        self.path.poll_inside()
    }

    /// The filters.
    #[must_use]
    pub fn filters(&self) -> &Filters {
        &self.path.filters
    }

    /// The filters, for changes.
    pub fn filters_mut(&mut self) -> FiltersMut<'_, A> {
        FiltersMut(self)
    }

    /// The next packet that matched a rule with `log`, oldest first.
    pub fn poll_logged(&mut self) -> Option<Logged> {
        self.path.poll_logged()
    }

    /// The counters of each path, by its number.
    pub fn path_counts(&self) -> impl Iterator<Item = PathCounts> + '_ {
        self.path.all_counts().iter().map(Counts::view)
    }

    /// How many packets and frames were discarded for this reason.
    #[must_use]
    pub fn discarded(&self, why: Discard) -> u64 {
        let counts = self.path.all_counts().iter();
        counts.map(|counts| counts.discarded(why)).sum()
    }

    /// The next change for every path but the edge's own, oldest first. There are none unless
    /// [`crate::Config::paths`] is above one.
    pub fn poll_change(&mut self) -> Option<Change<A::Encapsulation>> {
        self.changes.pop_front()
    }

    /// A path of this edge for another core. Make it before any subscriber connects: it misses all earlier
    /// changes.
    #[must_use]
    pub fn replica(&self, number: usize) -> Path<A::Encapsulation> {
        self.path.replica(number, &self.config)
    }

    /// Applies a step to every path. `false` if it cannot be applied.
    pub(crate) fn change(&mut self, step: Step<A::Encapsulation>) -> bool {
        let copy = (self.config.paths > 1).then(|| Change(step.clone()));
        let network = (self.config.tells_networks)
            .then(|| network(&step))
            .flatten();
        let could = self.path.step(step);
        if could && let Some(event) = network {
            self.events.push_back(event);
        }
        if could && let Some(copy) = copy {
            self.tell(copy);
        }
        could
    }

    /// Queues a change for all other paths.
    pub(crate) fn tell(&mut self, change: Change<A::Encapsulation>) {
        self.changes.push_back(change);
        self.changed += 1;
    }
}

/// The event for an owner that announces networks.
fn network<A: Access>(step: &Step<A::Encapsulation>) -> Option<Event<A>> {
    let (address, length, leads) = match step {
        Step::Route(Table::Subscribers, address, length, _) => (*address, *length, true),
        Step::Unroute(Table::Subscribers, address, length, _) => (*address, *length, false),
        _ => return None,
    };
    Some(Event::Network {
        address,
        length,
        leads,
    })
}
