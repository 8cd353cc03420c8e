//! An edge's paths: what it tells them, and what they counted.

use std::sync::Arc;

use filter::FilterSet;

use crate::access::{Access, Served};
use crate::counters::Discard;
use crate::edge::Edge;
use crate::event::Event;
use crate::path::change::{Step, Table};
use crate::path::{Change, Counts, Filters, Logged, Path, PathCounts};

/// The filters of all of an edge's paths, to be changed.
pub struct FiltersMut<'a, A: Access = Served>(&'a mut Edge<A>);

impl<A: Access> FiltersMut<'_, A> {
    /// Filters by another set from now on; lines that stay go on counting.
    pub fn replace(&mut self, set: FilterSet) {
        let hits = self.0.path.filters.carried(&set);
        self.0.change(Step::Filters(Arc::new(set), hits));
    }

    /// Whether somebody takes what [`Edge::poll_logged`] gives; otherwise nothing is kept for it.
    pub fn set_logs(&mut self, logs: bool) {
        self.0.change(Step::Logs(logs));
    }
}

impl<A: Access> Edge<A> {
    /// The next ICMP error for the inside, an IP packet, oldest first.
    pub fn poll_inside(&mut self) -> Option<Box<[u8]>> {
        self.path.poll_inside()
    }

    /// The filters.
    #[must_use]
    pub fn filters(&self) -> &Filters {
        &self.path.filters
    }

    /// The filters, to be replaced.
    pub fn filters_mut(&mut self) -> FiltersMut<'_, A> {
        FiltersMut(self)
    }

    /// The next packet that a rule wants logged, oldest first.
    pub fn poll_logged(&mut self) -> Option<Logged> {
        self.path.poll_logged()
    }

    /// What passed by each path, by its number.
    pub fn path_counts(&self) -> impl Iterator<Item = PathCounts> + '_ {
        self.path.all_counts().iter().map(Counts::view)
    }

    /// How many packets and frames were discarded for this reason.
    #[must_use]
    pub fn discarded(&self, why: Discard) -> u64 {
        let counts = self.path.all_counts().iter();
        counts.map(|counts| counts.discarded(why)).sum()
    }

    /// The next step for every path but the edge's own, oldest first; there is none unless
    /// [`crate::Config::paths`] is more than one.
    pub fn poll_change(&mut self) -> Option<Change<A::Encapsulation>> {
        self.changes.pop_front()
    }

    /// A path of this edge for another core, to be made before anybody is on line: it has none of the changes before.
    #[must_use]
    pub fn replica(&self, number: usize) -> Path<A::Encapsulation> {
        self.path.replica(number, &self.config)
    }

    /// Has every path take a step; `false`: it cannot be taken.
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

    /// Has every other path take a step.
    pub(crate) fn tell(&mut self, change: Change<A::Encapsulation>) {
        self.changes.push_back(change);
        self.changed += 1;
    }
}

/// What an owner is told who wants to know where networks lead.
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
