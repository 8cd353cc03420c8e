//! An edge's paths: the changes that it sends them, and their counters.

use std::sync::Arc;

use filter::{Carry, FilterSet, Hits};

use crate::access::{Access, L2tp};
use crate::counters::Discard;
use crate::edge::Edge;
use crate::event::Event;
use crate::path::change::{Step, Table};
use crate::path::{Change, Counts, Filters, Logged, Path, PathCounts};

/// Changes the filters of all paths of an edge.
pub struct FiltersMut<'a, A: Access = L2tp>(&'a mut Edge<A>);

impl<A: Access> FiltersMut<'_, A> {
    /// Replaces the set of filters. Lines that stay keep their counters.
    pub fn replace(&mut self, set: FilterSet) {
        let filters = &self.0.path.filters;
        let change = FilterChange::new(set, filters.set(), filters.paths());
        self.apply(change);
    }

    /// Replaces the set of filters by one that was prepared elsewhere. Only counters are copied here. Returns the set
    /// before, whose memory takes a while to free.
    pub fn apply(&mut self, change: FilterChange) -> Arc<FilterSet> {
        let FilterChange { set, hits, carry } = change;
        let filters = &self.0.path.filters;
        let before = Arc::clone(filters.set());
        // The first path continues from the sum of all.
        if let Some(first) = hits.first() {
            filters.all_hits().for_each(|old| old.carry(&carry, first));
        }
        self.0.change(Step::Filters(set, hits));
        before
    }

    /// Sets whether logged packets are queued for [`Edge::poll_logged`].
    pub fn set_logs(&mut self, logs: bool) {
        self.0.change(Step::Logs(logs));
    }
}

/// A set of filters that is ready to replace another. Any thread can make it.
#[derive(Debug)]
pub struct FilterChange {
    set: Arc<FilterSet>,
    hits: Arc<[Hits]>,
    carry: Carry,
}

impl FilterChange {
    /// Prepares `set`, which came from [`FilterSet::after`], for an edge of so many paths whose set is `before`.
    #[must_use]
    pub fn new(set: FilterSet, before: &FilterSet, paths: usize) -> Self {
        Self {
            carry: Carry::new(before, &set),
            hits: (0..paths).map(|_| Hits::new(&set)).collect(),
            set: Arc::new(set),
        }
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
        let nat = self.nat_of(number);
        self.path.replica(number, &self.config, nat)
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
