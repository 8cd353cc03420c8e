//! A tree of disciplines, made from plain data and changed under load.
//!
//! [`Tree::change`] loses no packet and overtakes none: all are taken out and put back in the order in which they came,
//! and no limit counts while that is done; what is above a new, smaller limit leaves as its turn comes. What a bucket
//! holds, or owes, is kept where a shaper of the same kind stays in its place, and else it starts empty: over the change
//! too no more leaves than the greater of both rates and bursts allows. Statistics are kept by place and kind.

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

/// What was counted in a place before the last change, by kind.
type Kept = HashMap<(String, &'static str), Statistics>;

/// Disciplines, nested.
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
    /// The tree of `spec`, empty, its buckets full. `seed` chooses what is hashed where.
    ///
    /// # Errors
    /// When parts of it do not fit together.
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

    /// What it is made from.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Becomes the tree of `spec` with all packets that wait in it.
    ///
    /// # Errors
    /// As [`Tree::new`]; nothing has changed then.
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

    /// Since the tree was made: of all roots that it had.
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
