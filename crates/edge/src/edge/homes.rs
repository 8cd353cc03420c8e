//! Which path has the queues of which subscribers.
//!
//! A topmost shared link with everything under it is a tree, and a tree is on one path, because only one core can know
//! what a link has sent. A shaped subscriber without a shared link is a tree of its own. A tree gets the path with the
//! fewest shaped subscribers when its first subscriber is shaped, and keeps that path as long as it has subscribers. Only
//! a change that joins trees, or that moves a subscriber to another tree, moves queues (`path::moves`).

use hashbrown::HashMap;
use hqos::spec::NodeId;
use hqos::{Plan, Shape};

/// Paths that have queues: the first ones.
const HOMES_MAX: u16 = 255;

/// The paths of all trees.
#[derive(Debug)]
pub(crate) struct Homes {
    /// Shaped subscribers on each path.
    loads: Vec<u32>,
    /// By topmost link.
    trees: HashMap<NodeId, Tree>,
}

#[derive(Clone, Copy, Debug)]
struct Tree {
    home: u8,
    subscribers: u32,
}

/// Queues that are on their way from one path to another.
#[derive(Debug)]
pub(crate) struct Move {
    /// The changes after which the next step is due.
    pub(super) after: u64,
    pub(super) from: u8,
    pub(super) to: u8,
    /// Places of subscribers, with the stays that end and the stays that start.
    pub(super) of: Vec<(u32, [u32; 2])>,
    pub(super) is_released: bool,
}

impl Homes {
    pub(super) fn new(paths: u16) -> Self {
        Self {
            loads: vec![0; usize::from(paths.clamp(1, HOMES_MAX))],
            trees: HashMap::new(),
        }
    }

    fn root(plan: &Plan, shape: &Shape) -> Option<NodeId> {
        let (root, _) = plan.above(shape.node?).last()?;
        Some(root)
    }

    /// The path with the fewest subscribers; of several the last, because the first one has other work.
    fn idlest(&self) -> u8 {
        let loads = self.loads.iter().enumerate().rev();
        loads
            .min_by_key(|(_, load)| **load)
            .map_or(0, |(path, _)| path as u8)
    }

    /// Chooses the path of a subscriber, which is on `current` now if it is shaped, and counts it there.
    pub(super) fn take(&mut self, plan: &Plan, shape: &Shape, current: Option<u8>) -> u8 {
        let root = Self::root(plan, shape);
        let tree = root.and_then(|root| self.trees.get(&root));
        let home = tree.map(|tree| tree.home);
        let home = home.or(current).unwrap_or_else(|| self.idlest());
        self.loads[usize::from(home)] += 1;
        if let Some(root) = root {
            let tree = self.trees.entry(root).or_insert(Tree {
                home,
                subscribers: 0,
            });
            tree.subscribers += 1;
        }
        home
    }

    /// No longer counts a subscriber.
    pub(super) fn give_back(&mut self, plan: &Plan, shape: &Shape, home: u8) {
        self.loads[usize::from(home)] -= 1;
        let Some(root) = Self::root(plan, shape) else {
            return;
        };
        if let Some(tree) = self.trees.get_mut(&root) {
            tree.subscribers -= 1;
            if tree.subscribers == 0 {
                self.trees.remove(&root);
            }
        }
    }

    /// Chooses all paths again, after a change of the plan. A tree gets the path that most of its subscribers are on.
    pub(super) fn settle<'a>(&mut self, plan: &Plan, all: impl Iterator<Item = (&'a Shape, u8)>) {
        let paths = self.loads.len();
        let mut trees: HashMap<NodeId, Vec<u32>> = HashMap::new();
        self.loads.fill(0);
        for (shape, home) in all {
            match Self::root(plan, shape) {
                None => self.loads[usize::from(home)] += 1,
                Some(root) => {
                    let on = trees.entry(root).or_insert_with(|| vec![0; paths]);
                    on[usize::from(home)] += 1;
                }
            }
        }
        self.trees.clear();
        for (root, on) in trees {
            let paths = on.iter().enumerate().rev();
            let (home, _) = paths.max_by_key(|(_, count)| **count).unwrap_or((0, &0));
            let subscribers: u32 = on.iter().sum();
            self.loads[home] += subscribers;
            let home = home as u8;
            self.trees.insert(root, Tree { home, subscribers });
        }
    }

    /// Counts a subscriber on another path than its tree's.
    pub(super) fn stays_behind(&mut self, tree: u8, on: u8) {
        self.loads[usize::from(tree)] -= 1;
        self.loads[usize::from(on)] += 1;
    }

    /// The path of a shape whose tree is known.
    pub(super) fn of(&self, plan: &Plan, shape: &Shape) -> Option<u8> {
        let root = Self::root(plan, shape)?;
        self.trees.get(&root).map(|tree| tree.home)
    }
}
