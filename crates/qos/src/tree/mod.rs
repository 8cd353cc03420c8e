//! A tree of disciplines, made from plain data and replaced under load.
//!
//! [`Tree::change`] neither loses nor reorders packets: it takes all out and puts them back in the order of their
//! arrival, without applying limits. Packets above a new, smaller limit leave as their turn comes. A shaper that
//! stays in its place keeps its tokens or debt; other shapers start empty. So over the change no more leaves than the
//! greater of both rates and bursts allows. Counters are kept by place and kind.

mod overhead;
mod show;
mod spec;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use base::Instant;

use crate::discipline::{Backlog, Class, Discipline, Statistics};
use crate::packet::{Id, Pool};

pub use crate::classifier::{Classifier, Rule};
pub use crate::registry::{DrrClass, DrrSpec, HtbSpec, PrioSpec, Spec, TbfSpec};
pub use overhead::Overhead;
pub use show::Node;
pub use spec::SpecError;

/// Counters of each place and kind before the last change.
type Kept = HashMap<(String, &'static str), Statistics>;

/// Nested disciplines.
#[derive(Debug)]
pub struct Tree {
    spec: Spec,
    /// Major numbers of the disciplines, parents first.
    majors: Vec<u16>,
    root: Box<dyn Discipline>,
    seed: u64,
    kept: Kept,
}

impl Tree {
    /// The tree of `spec`, empty, with full buckets. `seed` chooses the hash functions.
    ///
    /// # Errors
    /// Parts of the spec do not fit together.
    pub fn new(spec: &Spec, seed: u64, now: Instant) -> Result<Self, SpecError> {
        let majors = spec::majors(spec)?;
        let mut maker = spec::Maker {
            majors: majors.iter(),
            seed,
            now,
            is_change: false,
        };
        let root = maker.make(spec, None)?;
        Ok(Self {
            spec: spec.clone(),
            majors,
            root,
            seed,
            kept: Kept::new(),
        })
    }

    /// The spec of the tree.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Replaces the tree by that of `spec`, with all waiting packets.
    ///
    /// # Errors
    /// As [`Tree::new`]; the tree is unchanged then.
    pub fn change(&mut self, spec: &Spec, pool: &mut Pool, now: Instant) -> Result<(), SpecError> {
        let majors = spec::majors(spec)?;
        let mut maker = spec::Maker {
            majors: majors.iter(),
            seed: self.seed,
            now,
            is_change: true,
        };
        let mut root = maker.make(spec, Some((&self.spec, self.root.as_ref())))?;
        self.kept = self.counted();
        let mut waiting = Vec::new();
        self.root.drain(pool, &mut waiting);
        waiting.sort_unstable_by_key(|&id| pool.sequence(id));
        for id in waiting {
            root.restore(pool, id, now);
        }
        self.root = root;
        self.spec = spec.clone();
        self.majors = majors;
        Ok(())
    }

    fn kept(&self, place: &str, kind: &'static str) -> Statistics {
        let kept = self.kept.get(&(place.to_owned(), kind));
        kept.copied().unwrap_or_default()
    }
}

impl Discipline for Tree {
    fn kind(&self) -> &'static str {
        self.root.kind()
    }

    fn enqueue(&mut self, pool: &mut Pool, id: Id, now: Instant) -> bool {
        self.root.enqueue(pool, id, now)
    }

    fn dequeue(&mut self, pool: &mut Pool, now: Instant) -> Option<Id> {
        self.root.dequeue(pool, now)
    }

    fn next_time(&self, now: Instant) -> Option<Instant> {
        self.root.next_time(now)
    }

    fn backlog(&self) -> Backlog {
        self.root.backlog()
    }

    /// Since the tree was made, over all its root disciplines.
    fn statistics(&self) -> Statistics {
        let mut sum = self.root.statistics();
        for ((place, _), kept) in &self.kept {
            if place.is_empty() {
                sum = added(sum, *kept);
            }
        }
        sum
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut Vec<Id>) {
        self.root.drain(pool, into);
    }

    fn restore(&mut self, pool: &mut Pool, id: Id, now: Instant) -> bool {
        self.root.restore(pool, id, now)
    }

    fn classes(&self) -> Vec<Class> {
        self.root.classes()
    }

    fn children(&self) -> Vec<(String, &dyn Discipline)> {
        self.root.children()
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        self.root.details()
    }
}

fn added(a: Statistics, b: Statistics) -> Statistics {
    Statistics {
        sent_bytes: a.sent_bytes + b.sent_bytes,
        sent_packets: a.sent_packets + b.sent_packets,
        dropped: a.dropped + b.dropped,
        overlimits: a.overlimits + b.overlimits,
        ecn_mark: a.ecn_mark + b.ecn_mark,
    }
}
