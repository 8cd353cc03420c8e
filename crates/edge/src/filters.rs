//! Which packets may pass: the filters by Filter-Id, and what they counted.

use std::collections::VecDeque;

use filter::{Direction, FilterId, FilterSet, Hits};
use wire::ip::Header;

use crate::edge::Edge;
use crate::subscriber::SubscriberKey;

/// Packets to be logged that may wait; more are counted only.
const LOGGED_MAX: usize = 1_024;

/// A packet that a rule wants logged. Text is made of it by who writes it down.
#[derive(Clone, Copy, Debug)]
pub struct Logged {
    /// Whose packet.
    pub subscriber: SubscriberKey,
    /// Its header.
    pub header: Header,
    /// Which way it went.
    pub direction: Direction,
    /// The filter and its line.
    pub filter: FilterId,
    /// The place of the line.
    pub rule: u32,
    /// Whether it went on.
    pub accepted: bool,
}

/// The filters of an edge.
#[derive(Debug, Default)]
pub struct Filters {
    set: FilterSet,
    hits: Hits,
    /// Whether somebody writes down what rules want logged.
    logs: bool,
    logged: VecDeque<Logged>,
    /// Packets that were to be logged, and were not.
    pub(crate) not_logged: u64,
}

impl Filters {
    /// The set.
    #[must_use]
    pub fn set(&self) -> &FilterSet {
        &self.set
    }

    /// What its lines counted.
    #[must_use]
    pub fn hits(&self) -> &Hits {
        &self.hits
    }

    /// Filters by another set from now on; lines that stay go on counting.
    pub fn replace(&mut self, set: FilterSet) {
        self.hits = self.hits.carried(&self.set, &set);
        self.set = set;
    }

    /// Whether somebody takes what [`Edge::poll_logged`] gives; otherwise nothing is kept for it.
    pub fn set_logs(&mut self, logs: bool) {
        self.logs = logs;
    }

    /// Whether a packet may pass.
    #[inline]
    pub(crate) fn pass(
        &mut self,
        id: FilterId,
        subscriber: SubscriberKey,
        header: &Header,
        direction: Direction,
    ) -> bool {
        let Some(filter) = self.set.get(id) else {
            return false;
        };
        if !filter.is_filtered(direction) {
            return true;
        }
        let verdict = filter.matches(header, direction);
        self.hits.count(filter, verdict);
        if verdict.log && self.logs {
            self.log(Logged {
                subscriber,
                header: *header,
                direction,
                filter: id,
                rule: verdict.rule,
                accepted: verdict.accept,
            });
        }
        verdict.accept
    }

    #[cold]
    fn log(&mut self, logged: Logged) {
        if self.logged.len() >= LOGGED_MAX {
            self.not_logged += 1;
        } else {
            self.logged.push_back(logged);
        }
    }
}

impl Edge {
    /// The filters.
    #[must_use]
    pub fn filters(&self) -> &Filters {
        &self.filters
    }

    /// The filters, to be replaced.
    pub fn filters_mut(&mut self) -> &mut Filters {
        &mut self.filters
    }

    /// The next packet that a rule wants logged, oldest first.
    pub fn poll_logged(&mut self) -> Option<Logged> {
        self.filters.logged.pop_front()
    }
}
