//! Which path has the queues of which subscribers.
//!
//! A topmost shared link with everything under it is a tree, and a tree is on one path, because only one core can know
//! what a link has sent. A shaped subscriber without a shared link is a tree of its own: it gets the path on
//! which its packets arrive, if that is known and has few more subscribers than others. Any other tree gets the path with
//! the fewest shaped subscribers when its first subscriber is shaped, and keeps it as long as it has subscribers. Only a
//! change that joins trees, or that moves a subscriber to another tree, moves queues (`path::moves`).

use hashbrown::HashMap;
use hqos::spec::NodeId;
use hqos::{Plan, Shape};

/// Paths that have queues: the first ones.
const HOMES_MAX: u16 = 255;

/// Subscribers that a path may have more than another so that packets need not change cores.
const UNEVEN_MAX: u32 = 8;

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

/// The path with the fewest subscribers; of several the last, because the first one has other work.
fn idlest(loads: &[u32]) -> u8 {
    let loads = loads.iter().enumerate().rev();
    loads
        .min_by_key(|(_, load)| **load)
        .map_or(0, |(path, _)| path as u8)
}

/// The path on which a subscriber's packets arrive, unless it has far more subscribers than another; then, and if that path
/// is not known, the one with the fewest.
pub(super) fn near_or_idlest(loads: &[u32], near: Option<u8>) -> u8 {
    let least = loads.iter().min().copied().unwrap_or(0);
    let is_fair = |near: &u8| {
        let load = loads.get(usize::from(*near));
        load.is_some_and(|load| *load <= least + least / 4 + UNEVEN_MAX)
    };
    near.filter(is_fair).unwrap_or_else(|| idlest(loads))
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

    fn idlest(&self) -> u8 {
        idlest(&self.loads)
    }

    fn least(&self) -> u32 {
        self.loads.iter().min().copied().unwrap_or(0)
    }

    /// Chooses the path of a subscriber and counts it there. `before` is its shape and path until now, if it is shaped. Its
    /// packets arrive on the path `near`, if that is known.
    pub(super) fn take(
        &mut self,
        plan: &Plan,
        shape: &Shape,
        before: Option<(&Shape, u8)>,
        near: Option<u8>,
    ) -> u8 {
        let root = Self::root(plan, shape);
        let tree = root.and_then(|root| self.trees.get(&root));
        let home = match (tree, before) {
            (Some(tree), _) => tree.home,
            (None, Some((before, home)))
                if root.is_none()
                    || root == Self::root(plan, before)
                    || self.loads[usize::from(home)] <= self.least() =>
            {
                home
            }
            // The subscribers of a link arrive everywhere.
            (None, None) if root.is_none() => near_or_idlest(&self.loads, near),
            (None, _) => self.idlest(),
        };
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

    /// Shaped subscribers on a path.
    pub(super) fn load(&self, path: usize) -> u32 {
        self.loads.get(path).copied().unwrap_or(0)
    }

    /// The path of a shape whose tree is known.
    pub(super) fn of(&self, plan: &Plan, shape: &Shape) -> Option<u8> {
        let root = Self::root(plan, shape)?;
        self.trees.get(&root).map(|tree| tree.home)
    }
}
