//! HTB: a tree of classes, each with a guaranteed rate and a ceiling up to which it may borrow.
//!
//! As in tc-htb(8), a leaf within its own rate goes before one that borrows. A class lends the unused part of its
//! rate to the classes below that have used up theirs, by priority and then by deficit round robin. Two things differ
//! from Linux. No ceiling is ever exceeded, not even an inner class's: over any span of time `w` at most `ceil * w +
//! cburst` bytes leave below it, if no packet is longer than `mtu`. And inner classes take turns by their own quanta,
//! not by their number of leaves.
//!
//! A packet's cost grows with the height of the tree, not with the number of classes.

mod heap;
mod shape;
mod spec;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use base::Instant;
use wire::flow::Keys;

use crate::bucket::{BURST_MAX, Bucket};
use crate::discipline::{Backlog, Class, Classify, Discipline, Statistics};
use crate::packet::{Id, List, Pool, Reason};
use crate::units::{Octets, Rate};
use shape::{ClassPlan, HEIGHT_MAX, Node, PRIORITIES, Shape, TOP};

pub use spec::HtbSpec;

/// A class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassOptions {
    /// Its number: 0x10 is "1:10".
    pub minor: u16,
    /// The class that it borrows from; `None` right below the discipline.
    pub parent: Option<u16>,
    /// The guaranteed rate, in bits per second.
    pub rate_bps: u64,
    /// The ceiling, in bits per second.
    pub ceil_bps: u64,
    /// Bytes that may leave at once within the rate, including one packet: [`burst_of`].
    pub burst: u32,
    /// Bytes that may leave at once within the ceiling, including one packet.
    pub cburst: u32,
    /// Classes of priority 0 borrow before those of priority 7.
    pub priority: u8,
    /// Bytes that it sends in its turn when it borrows. `None` means a tenth of a second at its rate, from 1,000 to
    /// 200,000.
    pub quantum: Option<u32>,
}

/// Options of an [`Htb`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Number of the discipline, as in "1:".
    pub major: u16,
    /// Bytes on the line of the longest packet.
    pub mtu: u32,
    /// The classes.
    pub classes: Vec<ClassOptions>,
    /// The leaf of packets that no filter matches. `None`: they bypass all classes, unshaped.
    pub default: Option<u16>,
    /// Packets that may wait to bypass the classes.
    pub direct_limit: u32,
}

/// Why an [`Htb`] cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Two classes have the same number.
    #[error("there are two classes {0:x}")]
    Twice(u16),
    /// A class's parent does not exist.
    #[error("class {class:x} has the parent {parent:x}, which does not exist")]
    Parent {
        /// The class.
        class: u16,
        /// The parent that it names.
        parent: u16,
    },
    /// Classes are nested too deeply, or each is below the other.
    #[error("class {0:x} has more than {max} ancestors, or is its own ancestor", max = HEIGHT_MAX - 1)]
    Depth(u16),
    /// The default or a discipline names a class that is no leaf, or a leaf that has a discipline already.
    #[error("class {0:x} is no leaf, or has a discipline already")]
    NoLeaf(u16),
    /// A leaf has no discipline.
    #[error("class {0:x} is a leaf without a discipline")]
    NoDiscipline(u16),
    /// A priority above 7.
    #[error("class {0:x} has a priority above 7")]
    Priority(u16),
    /// The number 0 is the discipline's.
    #[error("class 0 is the discipline itself")]
    Zero,
}

/// The levels of a new [`Htb`]'s buckets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Levels {
    /// Full.
    #[default]
    Full,
    /// The levels that [`Discipline::levels`] returned for the discipline that this one replaces. Buckets of other
    /// classes start in debt, so that no ceiling is exceeded during the change.
    Kept(HashMap<u16, (i64, i64)>),
}

/// The burst in bytes with which a sender that wakes up a millisecond late still reaches the rate.
#[must_use]
pub fn burst_of(rate_bps: u64, mtu: u32) -> u32 {
    let millisecond = u32::try_from(rate_bps / 8_000).unwrap_or(BURST_MAX);
    millisecond.saturating_add(mtu).min(BURST_MAX)
}

#[derive(Debug)]
struct Leaf {
    class: u32,
    discipline: Box<dyn Discipline>,
    backlog: Backlog,
}

/// A hierarchy of token buckets.
#[derive(Debug)]
pub struct Htb {
    major: u16,
    /// Options of the classes, in the order of [`Shape`]'s nodes from 1 on.
    classes: Vec<ClassOptions>,
    shape: Shape,
    leaves: Vec<Leaf>,
    classifier: Option<Box<dyn Classify>>,
    /// The leaf of each minor.
    leaf_of: Vec<Option<u32>>,
    default: Option<u32>,
    direct: List,
    direct_limit: u32,
    direct_packets: u64,
    backlog: Backlog,
    own: Statistics,
}

impl Htb {
    /// A tree of classes and a discipline for each leaf. `classifier` chooses a packet's leaf by its minor; packets
    /// without a leaf go to the default.
    ///
    /// # Errors
    /// The classes, leaves and default do not fit together.
    pub fn new(
        options: &Options,
        leaves: Vec<(u16, Box<dyn Discipline>)>,
        classifier: Option<Box<dyn Classify>>,
        levels: &Levels,
        now: Instant,
    ) -> Result<Self, Error> {
        let classes = in_order(&options.classes)?;
        let places: HashMap<u16, u32> = (TOP + 1..)
            .zip(&classes)
            .map(|(place, class)| (class.minor, place))
            .collect();
        let plans = classes
            .iter()
            .map(|class| plan(class, options.mtu, levels, &places, now))
            .collect();
        let mut shape = Shape::new(plans, now);
        let own = attach(&mut shape, &places, leaves)?;
        let leaf_of = leaves_by_minor(&classes, &shape)?;
        let default = match options.default {
            Some(minor) => match leaf_of.get(usize::from(minor)) {
                Some(&Some(leaf)) => Some(leaf),
                _ => return Err(Error::NoLeaf(minor)),
            },
            None => None,
        };
        Ok(Self {
            major: options.major,
            classes,
            shape,
            leaves: own,
            classifier,
            leaf_of,
            default,
            direct: List::default(),
            direct_limit: options.direct_limit,
            direct_packets: 0,
            backlog: Backlog::default(),
            own: Statistics::default(),
        })
    }

    #[inline]
    fn leaf_of(&self, keys: &Keys) -> Option<u32> {
        let classifier = self.classifier.as_ref();
        let minor = classifier.and_then(|classifier| classifier.class(keys));
        minor
            .and_then(|minor| *self.leaf_of.get(usize::from(minor as u16))?)
            .or(self.default)
    }

    fn name(&self, minor: u16) -> String {
        format!("{:x}:{minor:x}", self.major)
    }

    /// Tells the shape whether packets wait in a leaf now.
    #[inline]
    fn look_at(&mut self, index: u32, now: Instant) {
        let waited = self.leaves[index as usize].backlog.packets > 0;
        let (class, waits) = self.count(index);
        if waits != waited || (waits && !self.shape.is_awake(class, now)) {
            let from = self.leaves[index as usize].discipline.next_time(now);
            self.shape.set_leaf(class, waits, from.unwrap_or(now), now);
        }
    }

    /// Updates the backlog of a leaf; returns its class and whether it has packets.
    #[inline]
    fn count(&mut self, index: u32) -> (u32, bool) {
        let leaf = &mut self.leaves[index as usize];
        let backlog = leaf.discipline.backlog();
        self.backlog.packets = self.backlog.packets + backlog.packets - leaf.backlog.packets;
        self.backlog.bytes = self.backlog.bytes + backlog.bytes - leaf.backlog.bytes;
        leaf.backlog = backlog;
        (leaf.class, backlog.packets > 0)
    }

    fn push_direct(&mut self, pool: &mut Pool, id: Id) {
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(pool.length(id));
        self.direct.push(pool, id);
    }

    fn pop_direct(&mut self, pool: &mut Pool) -> Option<Id> {
        let id = self.direct.pop(pool)?;
        let length = pool.length(id);
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(length);
        self.own.count_sent(length);
        self.direct_packets += 1;
        Some(id)
    }
}

impl Discipline for Htb {
    fn kind(&self) -> &'static str {
        "htb"
    }

    fn enqueue(&mut self, pool: &mut Pool, id: Id, now: Instant) -> bool {
        let Some(index) = self.leaf_of(pool.keys(id)) else {
            let fits = self.direct.packets() < self.direct_limit;
            if fits {
                self.push_direct(pool, id);
            } else {
                pool.discard(id, Reason::Unclassified);
                self.own.dropped += 1;
            }
            return fits;
        };
        let leaf = &mut self.leaves[index as usize];
        let taken = leaf.discipline.enqueue(pool, id, now);
        self.look_at(index, now);
        taken
    }

    fn restore(&mut self, pool: &mut Pool, id: Id, now: Instant) -> bool {
        let Some(index) = self.leaf_of(pool.keys(id)) else {
            self.push_direct(pool, id);
            return true;
        };
        let leaf = &mut self.leaves[index as usize];
        let taken = leaf.discipline.restore(pool, id, now);
        self.look_at(index, now);
        taken
    }

    fn dequeue(&mut self, pool: &mut Pool, now: Instant) -> Option<Id> {
        if !self.direct.is_empty() {
            return self.pop_direct(pool);
        }
        loop {
            let Some(class) = self.shape.pick(now) else {
                self.own.overlimits += u64::from(self.backlog.packets > 0);
                return None;
            };
            let index = self.shape.nodes[class as usize].leaf?;
            let leaf = &mut self.leaves[index as usize];
            let id = leaf.discipline.dequeue(pool, now);
            let from = leaf.discipline.next_time(now).unwrap_or(now);
            let (_, waits) = self.count(index);
            if let Some(id) = id {
                let length = pool.length(id);
                self.shape.sent(class, length, waits, from, now);
                self.own.count_sent(length);
                return Some(id);
            }
            // The leaf holds its packets back itself. If it claims that it does not, ask it again later all the same.
            let later = Instant::from_nanos(now.as_nanos().saturating_add(1));
            self.shape.set_leaf(class, waits, from.max(later), now);
        }
    }

    fn next_time(&self, now: Instant) -> Option<Instant> {
        if self.backlog.packets == 0 {
            None
        } else if self.direct.is_empty() {
            Some(self.shape.next_time(now))
        } else {
            Some(now)
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = self.own;
        for leaf in &self.leaves {
            let below = leaf.discipline.statistics();
            statistics.dropped += below.dropped;
            statistics.ecn_mark += below.ecn_mark;
        }
        statistics
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut Vec<Id>) {
        self.direct.drain(pool, into);
        self.backlog = Backlog::default();
        for leaf in &mut self.leaves {
            if leaf.backlog.packets > 0 {
                leaf.discipline.drain(pool, into);
                leaf.backlog = Backlog::default();
                self.shape.empty_leaf(leaf.class);
            }
        }
    }

    fn levels(&self, now: Instant) -> Vec<(u16, i64, i64)> {
        let nodes = self.shape.nodes[1..].iter().zip(&self.classes);
        let level = |(node, class): (&Node, &ClassOptions)| {
            let (rate, ceil) = (node.rate.octets_at(now), node.ceil.octets_at(now));
            (class.minor, rate, ceil)
        };
        nodes.map(level).collect()
    }

    fn classes(&self) -> Vec<Class> {
        let mut shown: Vec<Class> = self.classes.iter().map(|class| self.show(class)).collect();
        for (node, class) in self.shape.nodes[1..].iter().zip(&mut shown) {
            class.statistics.sent_packets = node.packets;
            class.statistics.sent_bytes = node.bytes;
            class.details = vec![
                ("lended", node.lent as i64),
                ("borrowed", node.borrowed as i64),
                ("tokens", node.rate.octets()),
                ("ctokens", node.ceil.octets()),
            ];
        }
        for leaf in &self.leaves {
            let below = leaf.discipline.statistics();
            let mut class = leaf.class;
            while class != TOP {
                let shown = &mut shown[class as usize - 1];
                shown.backlog.packets += leaf.backlog.packets;
                shown.backlog.bytes += leaf.backlog.bytes;
                shown.statistics.dropped += below.dropped;
                shown.statistics.ecn_mark += below.ecn_mark;
                class = self.shape.nodes[class as usize].parent;
            }
        }
        shown
    }

    fn children(&self) -> Vec<(String, &dyn Discipline)> {
        let child = |leaf: &'_ Leaf| self.name(self.classes[leaf.class as usize - 1].minor);
        let mut children: Vec<(String, &dyn Discipline)> = Vec::new();
        for leaf in &self.leaves {
            children.push((child(leaf), leaf.discipline.as_ref()));
        }
        children
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("direct_packets_stat", self.direct_packets),
            ("direct_qlen", self.direct.packets().into()),
        ]
    }
}

impl Htb {
    fn show(&self, class: &ClassOptions) -> Class {
        Class {
            name: self.name(class.minor),
            parent: class.parent.map(|parent| self.name(parent)),
            options: format!(
                "prio {} rate {} ceil {} burst {} cburst {}",
                class.priority,
                Rate(class.rate_bps),
                Rate(class.ceil_bps),
                Octets(class.burst.into()),
                Octets(class.cburst.into()),
            ),
            statistics: Statistics::default(),
            backlog: Backlog::default(),
            details: Vec::new(),
        }
    }
}

/// Attaches each discipline to its leaf.
fn attach(
    shape: &mut Shape,
    places: &HashMap<u16, u32>,
    leaves: Vec<(u16, Box<dyn Discipline>)>,
) -> Result<Vec<Leaf>, Error> {
    let mut own = Vec::new();
    for (minor, discipline) in leaves {
        let class = *places.get(&minor).ok_or(Error::NoLeaf(minor))?;
        let node = &mut shape.nodes[class as usize];
        if node.height > 0 || node.leaf.replace(own.len() as u32).is_some() {
            return Err(Error::NoLeaf(minor));
        }
        own.push(Leaf {
            class,
            discipline,
            backlog: Backlog::default(),
        });
    }
    Ok(own)
}

/// The leaf of each minor. Every class without classes below it must have one.
fn leaves_by_minor(classes: &[ClassOptions], shape: &Shape) -> Result<Vec<Option<u32>>, Error> {
    let mut leaf_of = Vec::new();
    for (class, node) in classes.iter().zip(&shape.nodes[1..]) {
        if node.height == 0 && node.leaf.is_none() {
            return Err(Error::NoDiscipline(class.minor));
        }
        let minor = usize::from(class.minor);
        leaf_of.resize(leaf_of.len().max(minor + 1), None);
        leaf_of[minor] = node.leaf;
    }
    Ok(leaf_of)
}

/// The classes, parents before children.
fn in_order(classes: &[ClassOptions]) -> Result<Vec<ClassOptions>, Error> {
    let mut parents = HashMap::new();
    for class in classes {
        if class.minor == 0 {
            return Err(Error::Zero);
        }
        if class.priority >= PRIORITIES {
            return Err(Error::Priority(class.minor));
        }
        if parents.insert(class.minor, class.parent).is_some() {
            return Err(Error::Twice(class.minor));
        }
    }
    let mut ordered = Vec::new();
    for class in classes {
        let mut above = 0;
        let mut child = class.minor;
        let mut next = class.parent;
        while let Some(parent) = next {
            let missing = Error::Parent {
                class: child,
                parent,
            };
            child = parent;
            next = *parents.get(&parent).ok_or(missing)?;
            above += 1;
            if above >= HEIGHT_MAX {
                return Err(Error::Depth(class.minor));
            }
        }
        ordered.push((above, *class));
    }
    ordered.sort_by_key(|(above, _)| *above);
    Ok(ordered.into_iter().map(|(_, class)| class).collect())
}

fn plan(
    class: &ClassOptions,
    mtu: u32,
    levels: &Levels,
    places: &HashMap<u16, u32>,
    now: Instant,
) -> ClassPlan {
    let debt = -i64::from(mtu);
    let (tokens, ctokens) = match levels {
        Levels::Full => (i64::MAX, i64::MAX),
        Levels::Kept(kept) => *kept.get(&class.minor).unwrap_or(&(debt, debt)),
    };
    // A packet may leave while nothing is owed, so the bucket is one packet smaller than the burst.
    let bucket =
        |rate_bps, burst: u32, level| Bucket::new(rate_bps, burst.saturating_sub(mtu), level, now);
    let tenth = u32::try_from(class.rate_bps / 80).unwrap_or(u32::MAX);
    let quantum = class.quantum.unwrap_or(tenth).clamp(1_000, 200_000);
    ClassPlan {
        parent: class.parent.map_or(TOP, |parent| places[&parent]),
        priority: class.priority,
        quantum,
        rate: bucket(class.rate_bps, class.burst, tokens),
        ceil: bucket(class.ceil_bps, class.cburst, ctokens),
    }
}
