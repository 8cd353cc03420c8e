//! The changes that turn one tree into another, in an order that the kernel accepts.
//!
//! Objects that are the same in both trees stay as they are, and classes with another rate keep their counters. Start
//! with [`changes`].

use std::collections::{BTreeMap, BTreeSet};

use crate::encode::{Message, Verb};
use crate::object::{
    Action, Class, ClassKind, Filter, FilterKind, Handle, Object, Qdisc, QdiscKind, Tree,
};

/// The deepest nesting; a longer chain of parents is a loop.
const DEPTH_MAX: usize = 64;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What to do.
    pub verb: Verb,
    /// With which object.
    pub object: Object,
}

impl Change {
    /// The request for the interface with this index. A filter with an eBPF program needs a descriptor of that program.
    #[must_use]
    pub fn message(&self, index: u32, program: Option<i32>) -> Message {
        self.object.message(self.verb, index, program)
    }
}

/// The changes that make `want` of `now`: deletions, children first, then additions, parents first.
#[must_use]
pub fn changes(now: &Tree, want: &Tree) -> Vec<Change> {
    let is_kept = match (now.root(), want.root()) {
        (Some(now), Some(want)) => now.handle == want.handle && is_changeable(now, want),
        _ => false,
    };
    let mut out = Vec::new();
    let mut now = now.clone();
    if let Some(root) = now.root().filter(|_| !is_kept).cloned() {
        push(&mut out, Verb::Delete, Object::Qdisc(root));
        now = now.arriving();
    }
    let difference = Difference::of(&now, want);
    difference.deletions(&mut out);
    difference.additions(&mut out);
    out
}

fn push(out: &mut Vec<Change>, verb: Verb, object: Object) {
    out.push(Change { verb, object });
}

/// Whether the kernel can give the discipline these options while it is in use.
fn is_changeable(now: &Qdisc, want: &Qdisc) -> bool {
    if now.is_like(want) {
        return true;
    }
    let stab = |qdisc: &Qdisc| qdisc.raw.as_ref().and_then(|raw| raw.stab.clone());
    now.parent == want.parent
        && now.added == want.added
        && (want.raw.is_none() || stab(now) == stab(want))
        && match (&now.kind, &want.kind) {
            (QdiscKind::Pfifo { .. }, QdiscKind::Pfifo { .. })
            | (QdiscKind::Bfifo { .. }, QdiscKind::Bfifo { .. })
            | (QdiscKind::Codel(_), QdiscKind::Codel(_))
            | (QdiscKind::Cake(_), QdiscKind::Cake(_)) => true,
            (QdiscKind::FqCodel(now), QdiscKind::FqCodel(want)) => now.flows == want.flows,
            _ => false,
        }
}

/// Where filters are tried: their parent, chain and priority.
type Priority = (Handle, u32, u16);

fn priority(filter: &Filter) -> Priority {
    (filter.parent, filter.chain, filter.priority)
}

fn grouped(tree: &Tree) -> BTreeMap<Priority, Vec<&Filter>> {
    let mut groups: BTreeMap<Priority, Vec<&Filter>> = BTreeMap::new();
    for filter in &tree.filters {
        groups.entry(priority(filter)).or_default().push(filter);
    }
    groups
}

/// Whether it is a table of `u32`: it has a number, and no filter in it.
fn is_table(filter: &Filter) -> bool {
    matches!(&filter.kind, FilterKind::Other { kind, .. } if kind == "u32")
        && filter.handle & 0xf_ffff == 0
        && filter.handle != 0
}

/// Objects by number, and those that have to go.
struct Difference<'t> {
    now: &'t Tree,
    want: &'t Tree,
    qdiscs: [BTreeMap<Handle, &'t Qdisc>; 2],
    classes: [BTreeMap<Handle, &'t Class>; 2],
    /// Several filters may have the same priority; `u32` has tables of them.
    filters: [BTreeMap<Priority, Vec<&'t Filter>>; 2],
    /// Disciplines and classes that are deleted, alone or with what is above them.
    doomed: BTreeSet<Handle>,
    /// Wanted classes with classes below them.
    inner: BTreeSet<Handle>,
}

impl<'t> Difference<'t> {
    fn of(now: &'t Tree, want: &'t Tree) -> Self {
        let both = [now, want];
        let mut difference = Self {
            now,
            want,
            qdiscs: both.map(|tree| tree.qdiscs.iter().map(|one| (one.handle, one)).collect()),
            classes: both.map(|tree| tree.classes.iter().map(|one| (one.handle, one)).collect()),
            filters: both.map(grouped),
            doomed: BTreeSet::new(),
            inner: want.classes.iter().map(|class| class.parent).collect(),
        };
        difference.condemn();
        difference
    }

    /// The object right above one of `tree` (0: now, 1: wanted). Some kinds have classes that are not listed, like `prio`
    /// and `tbf`; the discipline itself is above their queues.
    fn above(&self, tree: usize, handle: Handle) -> Option<Handle> {
        let parent = match self.classes[tree].get(&handle) {
            Some(class) => class.parent,
            None => self.qdiscs[tree].get(&handle)?.parent,
        };
        let is_outside = parent.major() == Handle::INGRESS.major();
        let is_listed = is_outside || self.classes[tree].contains_key(&parent);
        Some(match is_listed {
            true => parent,
            false => Handle::new(parent.major(), 0),
        })
    }

    fn depth(&self, tree: usize, handle: Handle) -> usize {
        let above = core::iter::successors(Some(handle), |&handle| self.above(tree, handle));
        above.take(DEPTH_MAX).count()
    }

    fn condemn(&mut self) {
        let mut places: Vec<(usize, Handle)> = (self.now.qdiscs.iter().map(|one| one.handle))
            .chain(self.now.classes.iter().map(|one| one.handle))
            .map(|handle| (self.depth(0, handle), handle))
            .collect();
        places.sort_unstable();
        for (_, handle) in places {
            let stays = match self.classes[0].get(&handle) {
                Some(now) => self.classes[1].get(&handle).is_some_and(|want| {
                    now.parent == want.parent && now.kind.name() == want.kind.name()
                }),
                None => self.qdiscs[1]
                    .get(&handle)
                    .is_some_and(|want| is_changeable(self.qdiscs[0][&handle], want)),
            };
            let is_lost = self
                .above(0, handle)
                .is_some_and(|above| self.doomed.contains(&above));
            if !stays || is_lost {
                self.doomed.insert(handle);
            }
        }
    }

    /// Whether all filters of a priority are in both trees, and so are their classes.
    fn is_kept(&self, place: &Priority) -> bool {
        match [0, 1].map(|tree| self.filters[tree].get(place)) {
            [Some(now), Some(want)] => {
                let mut pairs = now.iter().zip(want);
                now.len() == want.len()
                    && pairs.all(|(now, want)| now.is_like(want) && self.has_place(now))
            }
            _ => false,
        }
    }

    /// Whether a filter's class and discipline stay.
    fn has_place(&self, filter: &Filter) -> bool {
        let class_stays = match &filter.kind {
            FilterKind::U32 {
                action: Action::Class(class),
                ..
            } => !self.doomed.contains(class),
            FilterKind::Flow { base, .. } => !self.doomed.contains(&Handle::new(base.major(), 0)),
            _ => true,
        };
        class_stays && !self.doomed.contains(&self.home(filter))
    }

    /// Whether a filter gets another program in its place, so that no packet is without a class meanwhile.
    fn is_replaced(&self, place: &Priority) -> bool {
        let program = |tree: usize| match self.filters[tree].get(place).map(Vec::as_slice) {
            Some([filter]) if matches!(filter.kind, FilterKind::Bpf(_)) => Some(*filter),
            _ => None,
        };
        let numbers = |filter: &Filter| (filter.protocol, filter.handle);
        match [0, 1].map(program) {
            [Some(now), Some(want)] => {
                numbers(now) == numbers(want) && !self.doomed.contains(&self.home(now))
            }
            _ => false,
        }
    }

    /// The discipline or class that a filter belongs to.
    fn home(&self, filter: &Filter) -> Handle {
        match filter.parent.major() {
            0xffff => Handle::INGRESS,
            _ => filter.parent,
        }
    }

    fn deletions(&self, out: &mut Vec<Change>) {
        for (place, filters) in &self.filters[0] {
            let stays = self.is_kept(place) || self.is_replaced(place);
            // One request deletes all filters of a priority.
            if let Some(filter) = filters.first().filter(|_| !stays)
                && !self.doomed.contains(&self.home(filter))
            {
                push(out, Verb::Delete, Object::Filter((*filter).clone()));
            }
        }
        let mut doomed: Vec<(usize, Handle)> = (self.doomed.iter())
            .map(|&handle| (self.depth(0, handle), handle))
            .collect();
        doomed.sort_unstable();
        for (_, handle) in doomed.into_iter().rev() {
            if let Some(class) = self.classes[0].get(&handle) {
                // A class goes with its discipline.
                if !self.doomed.contains(&Handle::new(handle.major(), 0)) {
                    push(out, Verb::Delete, Object::Class((*class).clone()));
                }
            } else if let Some(qdisc) = self.qdiscs[0].get(&handle)
                && !self
                    .above(0, handle)
                    .is_some_and(|above| self.doomed.contains(&above))
            {
                push(out, Verb::Delete, Object::Qdisc((*qdisc).clone()));
            }
        }
    }

    fn additions(&self, out: &mut Vec<Change>) {
        let mut added: Vec<(usize, Change)> = Vec::new();
        for qdisc in &self.want.qdiscs {
            let now = self.qdiscs[0].get(&qdisc.handle);
            let is_same = now.is_some_and(|now| now.is_like(qdisc));
            if let Some(verb) = self.verb(qdisc.handle, is_same) {
                let object = Object::Qdisc(qdisc.clone());
                added.push((self.depth(1, qdisc.handle), Change { verb, object }));
            }
        }
        for class in &self.want.classes {
            let now = self.classes[0].get(&class.handle);
            let is_same = now.is_some_and(|now| self.is_same(now, class));
            if let Some(verb) = self.verb(class.handle, is_same) {
                let object = Object::Class(class.clone());
                added.push((self.depth(1, class.handle), Change { verb, object }));
            }
        }
        added.sort_by_key(|(depth, _)| *depth);
        out.extend(added.into_iter().map(|(_, change)| change));
        let filters = self.want.filters.iter();
        let mut missing: Vec<&Filter> = filters
            .filter(|one| !self.is_kept(&priority(one)))
            .collect();
        // Filters may lead to any table of `u32`.
        missing.sort_by_key(|filter| !is_table(filter));
        for filter in missing {
            let verb = match self.is_replaced(&priority(filter)) {
                true => Verb::Change,
                false => Verb::Add,
            };
            push(out, verb, Object::Filter(filter.clone()));
        }
    }

    /// Whether a class needs no change. The kernel ignores turn and priority of a class with classes below it, and
    /// keeps those that it had before.
    fn is_same(&self, now: &Class, want: &Class) -> bool {
        let mut now = now.clone();
        if let (
            ClassKind::Htb { quantum, prio, .. },
            ClassKind::Htb {
                quantum: wanted,
                prio: wanted_prio,
                ..
            },
        ) = (&mut now.kind, &want.kind)
            && self.inner.contains(&want.handle)
        {
            (*quantum, *prio) = (*wanted, *wanted_prio);
        }
        now == *want
    }

    /// What makes a discipline or class the wanted one; `None` if it is the wanted one already.
    fn verb(&self, handle: Handle, is_same: bool) -> Option<Verb> {
        let is_there =
            self.qdiscs[0].contains_key(&handle) || self.classes[0].contains_key(&handle);
        match is_there && !self.doomed.contains(&handle) {
            true if is_same => None,
            true => Some(Verb::Change),
            false => Some(Verb::Add),
        }
    }
}
