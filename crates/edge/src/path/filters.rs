//! Packet filters by Filter-Id, and their counters.

use std::collections::VecDeque;
use std::sync::Arc;

use filter::{Direction, Filter, FilterId, FilterSet, Hits};
use wire::ip::Header;

use super::{Counts, Path};
use crate::access::Encapsulation;
use crate::key::SubscriberKey;

/// Limit on queued log entries; further ones are only counted.
const LOGGED_MAX: usize = 1_024;

/// A packet that matched a rule with `log`. The owner formats the text.
#[derive(Clone, Copy, Debug)]
pub struct Logged {
    /// The subscriber.
    pub subscriber: SubscriberKey,
    /// Its header.
    pub header: Header,
    /// Its direction.
    pub direction: Direction,
    /// The filter.
    pub filter: FilterId,
    /// The index of the rule.
    pub rule: u32,
    /// Whether it was accepted.
    pub accepted: bool,
}

/// The filters of a path.
#[derive(Debug)]
pub struct Filters {
    set: Arc<FilterSet>,
    /// Hits of the set's lines, by path; this path's are at `number`.
    hits: Arc<[Hits]>,
    number: usize,
    /// Whether packets are queued for the log.
    logs: bool,
    logged: VecDeque<Logged>,
}

impl Filters {
    pub(super) fn new(paths: usize) -> Self {
        Self {
            set: Arc::default(),
            hits: (0..paths).map(|_| Hits::default()).collect(),
            number: 0,
            logs: false,
            logged: VecDeque::new(),
        }
    }

    pub(super) fn replica(&self, number: usize) -> Self {
        Self {
            set: Arc::clone(&self.set),
            hits: Arc::clone(&self.hits),
            number,
            logs: self.logs,
            logged: VecDeque::new(),
        }
    }

    /// The set.
    #[must_use]
    pub fn set(&self) -> &Arc<FilterSet> {
        &self.set
    }

    /// How many packets matched a line of a filter, on all paths.
    #[must_use]
    pub fn hits(&self, filter: &Filter, rule: u32) -> u64 {
        self.hits.iter().map(|hits| hits.of(filter, rule)).sum()
    }

    /// Number of paths, each with hits of its own.
    #[must_use]
    pub fn paths(&self) -> usize {
        self.hits.len()
    }

    /// The hits of each path.
    pub(crate) fn all_hits(&self) -> impl Iterator<Item = &Hits> {
        self.hits.iter()
    }

    pub(super) fn set_to(&mut self, set: Arc<FilterSet>, hits: Arc<[Hits]>) {
        (self.set, self.hits) = (set, hits);
    }

    pub(super) fn log(&mut self, logs: bool) {
        self.logs = logs;
    }

    /// Whether a packet may pass.
    #[inline]
    pub(super) fn pass(
        &mut self,
        id: FilterId,
        subscriber: SubscriberKey,
        header: &Header,
        direction: Direction,
        counts: &Counts,
    ) -> bool {
        let Some(filter) = self.set.get(id) else {
            return false;
        };
        if !filter.is_filtered(direction) {
            return true;
        }
        let verdict = filter.matches(header, direction);
        if let Some(hits) = self.hits.get(self.number) {
            hits.count(filter, verdict);
        }
        if verdict.log && self.logs {
            let logged = Logged {
                subscriber,
                header: *header,
                direction,
                filter: id,
                rule: verdict.rule,
                accepted: verdict.accept,
            };
            self.note(logged, counts);
        }
        verdict.accept
    }

    #[cold]
    fn note(&mut self, logged: Logged, counts: &Counts) {
        if self.logged.len() >= LOGGED_MAX {
            counts.miss_log();
        } else {
            self.logged.push_back(logged);
        }
    }
}

impl<E: Encapsulation> Path<E> {
    /// The next packet that matched a rule with `log`, oldest first.
    pub fn poll_logged(&mut self) -> Option<Logged> {
        self.filters.logged.pop_front()
    }
}
