//! The rows of `headend qos show`, which `graph` draws too.

use super::spec::below;
use super::{Kept, Tree, added};
use crate::classifier::{Rule, name};
use crate::discipline::{Backlog, Discipline, Statistics};
use crate::registry::Spec;

/// A discipline or a class, as tc shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The discipline's kind, or that of the discipline whose class it is.
    pub kind: &'static str,
    /// Whether it is a class.
    pub is_class: bool,
    /// "1:" or "1:10".
    pub handle: String,
    /// The handle right above it. For a class: its parent class or its discipline. For a discipline: its class.
    /// `None` for the root.
    pub parent: Option<String>,
    /// Its options, as tc prints them.
    pub options: String,
    /// Its counters.
    pub statistics: Statistics,
    /// The backlog in it and below it.
    pub backlog: Backlog,
    /// Counters of its kind.
    pub details: Vec<(&'static str, i64)>,
    /// Its classifier's rules, in order, if it has classes.
    pub rules: Vec<Rule>,
}

impl Tree {
    /// Every discipline and class once, parents first.
    #[must_use]
    pub fn walk(&self) -> Vec<Node> {
        let mut nodes = Vec::new();
        let root = (&self.spec, self.root.as_ref());
        self.visit(
            root,
            "",
            None,
            &mut self.majors.iter(),
            &mut |node, place| {
                let mut node: Node = node;
                node.statistics = added(node.statistics, self.kept(place, node.kind));
                nodes.push(node);
            },
        );
        nodes
    }

    /// The counters of each place, including those from before changes.
    pub(super) fn counted(&self) -> Kept {
        let mut kept = self.kept.clone();
        let root = (&self.spec, self.root.as_ref());
        self.visit(
            root,
            "",
            None,
            &mut self.majors.iter(),
            &mut |node, place| {
                let sum = kept.entry((place.to_owned(), node.kind)).or_default();
                *sum = added(*sum, node.statistics);
            },
        );
        kept
    }

    fn visit(
        &self,
        (spec, discipline): (&Spec, &dyn Discipline),
        place: &str,
        parent: Option<String>,
        majors: &mut core::slice::Iter<'_, u16>,
        into: &mut dyn FnMut(Node, &str),
    ) {
        let kind = discipline.kind();
        let major = majors.next().copied().unwrap_or(0);
        let handle = format!("{major:x}:");
        let details = discipline.details();
        let node = Node {
            kind,
            is_class: false,
            handle: handle.clone(),
            parent,
            options: spec.plan().options(),
            statistics: discipline.statistics(),
            backlog: discipline.backlog(),
            details: details
                .into_iter()
                .map(|(name, value)| (name, i64::try_from(value).unwrap_or(i64::MAX)))
                .collect(),
            rules: spec.plan().rules(major),
        };
        into(node, place);
        let classes = discipline.classes();
        let has_classes = !classes.is_empty();
        for class in classes {
            let minor = class.name.rsplit(':').next().unwrap_or_default();
            let place = format!("{place}:{minor}");
            let node = Node {
                kind,
                is_class: true,
                handle: class.name,
                parent: Some(class.parent.unwrap_or_else(|| handle.clone())),
                options: class.options,
                statistics: class.statistics,
                backlog: class.backlog,
                details: class.details,
                rules: Vec::new(),
            };
            into(node, &place);
        }
        for (minor, spec, discipline) in below(spec, discipline) {
            let place = format!("{place}/{minor:x}");
            let class = name(major, minor);
            let parent = if has_classes { class } else { handle.clone() };
            self.visit((spec, discipline), &place, Some(parent), majors, into);
        }
    }
}
