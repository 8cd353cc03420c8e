//! Large trees. The time that the kernel takes to add classes grows with the square of their number in one discipline: for
//! each new class, `tc_bind_tclass` (net/sched/sch_api.c) looks at the filters of all others. So above [`WHOLE_MAX`]
//! classes, the classes below one of the policy's own get an `htb` of their own, in place of the class's queue.
//!
//! The inner discipline has one class for all, with the ceiling of the class above, and the policy's classes below it. It
//! serves classes below their assured rate first, so assured rates hold if the class above has at least their sum; a class
//! that has less stays undivided. So does one whose classes differ in priority, because the outer discipline sees only
//! one.

use std::collections::{HashMap, HashSet};

use qos::htb::ClassOptions;
use qos::tree::HtbSpec;

use super::{Compiler, ROOT};
use crate::object::{Class, ClassKind, Handle, Object, Qdisc, QdiscKind};

/// The most classes of a tree that is one discipline.
const WHOLE_MAX: usize = 512;
/// The class of all in an inner discipline.
const ALL: u16 = 1;

/// The classes of inner disciplines.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Each class, and the class of the outer discipline that it is below.
    group_of: HashMap<u16, u16>,
    /// The priority of the classes of each inner discipline.
    priorities: HashMap<u16, u8>,
}

impl Groups {
    pub(super) fn of(spec: &HtbSpec) -> Self {
        let mut groups = Self::default();
        if spec.classes.len() <= WHOLE_MAX {
            return groups;
        }
        let link = spec.classes.iter().find(|class| class.parent.is_none());
        let link = link.map(|class| class.minor);
        let by_minor: HashMap<u16, &ClassOptions> = (spec.classes.iter())
            .map(|class| (class.minor, class))
            .collect();
        let leaves: HashSet<u16> = spec.leaves.iter().map(|(minor, _)| *minor).collect();
        // Sums of assured rates right below, and priorities of all queues below, by the class under the link.
        let mut sums: HashMap<u16, u64> = HashMap::new();
        let mut priorities: HashMap<u16, Option<u8>> = HashMap::new();
        for class in &spec.classes {
            let above =
                core::iter::successors(Some(class), |class| by_minor.get(&class.parent?).copied());
            let top = above.take_while(|class| Some(class.minor) != link).last();
            let Some(top) = top.filter(|top| top.minor != class.minor) else {
                continue;
            };
            groups.group_of.insert(class.minor, top.minor);
            if class.parent == Some(top.minor) {
                *sums.entry(top.minor).or_default() += class.rate_bps;
            }
            if leaves.contains(&class.minor) {
                let one = priorities.entry(top.minor).or_insert(Some(class.priority));
                *one = one.filter(|priority| *priority == class.priority);
            }
        }
        let is_divided = |group: &u16| {
            let rate_bps = by_minor.get(group).map_or(0, |class| class.rate_bps);
            let sum = sums.get(group).copied().unwrap_or(0);
            sum <= rate_bps && priorities.get(group).copied().flatten().is_some()
        };
        groups.group_of.retain(|_, group| is_divided(group));
        groups.priorities = (priorities.iter())
            .filter(|(group, _)| is_divided(group))
            .filter_map(|(group, priority)| Some((*group, (*priority)?)))
            .collect();
        groups
    }

    pub(super) fn is_empty(&self) -> bool {
        self.group_of.is_empty()
    }

    /// The number of a class of the policy.
    pub(super) fn handle(&self, minor: u16) -> Handle {
        let group = self.group_of.get(&minor).copied();
        Handle::new(group.unwrap_or(ROOT), minor)
    }

    /// The number of what is above a class of the policy.
    pub(super) fn above(&self, class: &ClassOptions) -> Handle {
        match (class.parent, self.group_of.get(&class.minor)) {
            (Some(parent), Some(group)) if parent == *group => Handle::new(parent, ALL),
            (Some(parent), _) => self.handle(parent),
            (None, _) => Handle::new(ROOT, 0),
        }
    }

    /// The priority of a class that has an inner discipline.
    pub(super) fn priority(&self, minor: u16) -> Option<u8> {
        self.priorities.get(&minor).copied()
    }
}

impl Compiler<'_> {
    /// The inner discipline of a class, with its class for all.
    pub(super) fn add_inner(&mut self, class: &ClassOptions, kind: &ClassKind) {
        let ClassKind::Htb {
            ceil,
            quantum,
            prio,
            ..
        } = *kind
        else {
            return;
        };
        let own = Handle::new(class.minor, 0);
        self.out.tree.push(Object::Qdisc(Qdisc {
            handle: own,
            parent: Handle::new(ROOT, class.minor),
            added: None,
            kind: QdiscKind::Htb { default: 0 },
            raw: None,
        }));
        self.out.tree.push(Object::Class(Class {
            handle: Handle::new(class.minor, ALL),
            parent: own,
            kind: ClassKind::Htb {
                rate: ceil,
                ceil,
                quantum,
                prio,
            },
        }));
    }
}
