//! What an operator decides about subscribers' queues: rates, templates, shared links. Values without state.

use std::collections::HashSet;

use base::Duration;
use qos::tree::Overhead;

/// Most templates in a [`Plan`].
pub const TEMPLATES_MAX: usize = 1_024;
/// Most shared links in a [`Plan`].
pub const NODES_MAX: usize = 65_536;
/// Most shared links above one another.
pub const DEPTH_MAX: usize = 8;
/// Largest weight of a template or a shared link.
pub const WEIGHT_MAX: u32 = 1_000;
/// Highest rate in bit/s: 1 Tbit/s.
pub const RATE_MAX: u64 = 1_000_000_000_000;

/// The rates of a subscriber, in bit/s on the line ([`Template::overhead`] counts). 0 means no limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Rates {
    /// To the subscriber.
    pub down: u64,
    /// From the subscriber.
    pub up: u64,
}

/// A template's index in [`Plan::templates`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct TemplateId(pub u16);

/// A shared link's index in [`Plan::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// Among whom a subscriber's bandwidth is shared equally.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Fairness {
    /// Among the hosts behind the subscriber, then among the flows of each host.
    #[default]
    Hosts,
    /// Among all flows, whatever their hosts.
    Flows,
    /// One queue for everything.
    None,
}

/// How long a subscriber's queue may get, in each direction. At the limit, the longest flow of the host with the most
/// queued bytes loses its first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Depth {
    /// Packets; at least 1.
    pub packets: u32,
    /// Bytes on the line.
    pub octets: u32,
}

/// How subscribers' queues work. A template has no rate, so subscribers of different rates share one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Its name in the configuration, RADIUS attributes and views; unique.
    pub name: String,
    /// The subscriber's share of a full shared link, relative to its siblings: 1 to [`WEIGHT_MAX`]. In each turn it may
    /// send 1,514 bytes times its weight.
    pub weight: u32,
    /// Limits of the queue in each direction.
    pub depth: Depth,
    /// Among whom the bandwidth is shared.
    pub fairness: Fairness,
    /// CoDel: the standing delay that is acceptable (RFC 8289, section 4.3).
    pub target: Duration,
    /// CoDel: how long the delay may stay above the target (RFC 8289, section 4.2).
    pub interval: Duration,
    /// Whether ECN-capable packets are marked instead of dropped (RFC 3168).
    pub ecn: bool,
    /// The bytes that the subscriber's line adds to each IP packet. They count towards all rates.
    pub overhead: Overhead,
    /// Bursts: a subscriber that was silent may send this long at its rate at once, but at least 3,200 bytes.
    pub burst: Duration,
}

impl Default for Template {
    /// RFC 8289's delays, marks, fair hosts, 1,000 packets or 4 MiB, bursts of 5 ms, IP bytes only.
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            weight: 1,
            depth: Depth {
                packets: 1_000,
                octets: 4 << 20,
            },
            fairness: Fairness::Hosts,
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn: true,
            overhead: Overhead::default(),
            burst: Duration::from_millis(5),
        }
    }
}

/// A link that subscribers share: an access node, its uplink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name in the configuration, RADIUS attributes and views; unique.
    pub name: String,
    /// The link that this one is reached by; `None` for a topmost link.
    pub parent: Option<NodeId>,
    /// Its capacity in bit/s; 0 means no limit.
    pub rates: Rates,
    /// Its share of a full parent, relative to its siblings: 1 to [`WEIGHT_MAX`].
    pub weight: u32,
}

/// What a subscriber's queues are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Its own rates.
    pub rates: Rates,
    /// How its queues work.
    pub template: TemplateId,
    /// The shared link that it is reached by, if any.
    pub node: Option<NodeId>,
}

/// All templates and shared links. Ids are indices in its lists.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Plan {
    /// The templates.
    pub templates: Vec<Template>,
    /// The shared links, in any order.
    pub nodes: Vec<Node>,
}

/// Why a [`Plan`] or a [`Shape`] is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Too many templates.
    #[error("{0} templates; at most {TEMPLATES_MAX} are possible")]
    Templates(usize),
    /// Too many links.
    #[error("{0} links; at most {NODES_MAX} are possible")]
    Nodes(usize),
    /// A name is used twice, among templates or among links.
    #[error("the name {0:?} is used twice")]
    Twice(String),
    /// A weight out of range.
    #[error("{name:?}: a weight of {weight} is not between 1 and {WEIGHT_MAX}")]
    Weight {
        /// The template or link.
        name: String,
        /// Its weight.
        weight: u32,
    },
    /// A rate out of range.
    #[error("{name:?}: a rate of {bps} bit/s is above {RATE_MAX}")]
    Rate {
        /// The link; empty for a subscriber.
        name: String,
        /// The rate in bit/s.
        bps: u64,
    },
    /// A queue without room.
    #[error("template {0:?}: a queue needs room for at least 1 packet and 1,514 bytes")]
    Depth(String),
    /// A link's parent is not in the list.
    #[error("link {0:?}: its parent is not in the plan")]
    Parent(String),
    /// A link is its own ancestor, or has too many ancestors.
    #[error("link {0:?} is below itself, or has more than {DEPTH_MAX} links above it")]
    Depths(String),
    /// A shape names a template that does not exist.
    #[error("the plan has no template {}", .0.0)]
    NoTemplate(TemplateId),
    /// A shape names a link that does not exist.
    #[error("the plan has no link {}", .0.0)]
    NoNode(NodeId),
    /// As many subscribers have queues as may.
    #[error("the table of subscribers with queues is full")]
    Full,
    /// A subscriber's rate is above that of a link above it.
    #[error("{bps} bit/s {direction} exceed the {limit} bit/s of the link {node:?}")]
    Exceeds {
        /// The rate in bit/s.
        bps: u64,
        /// `down` or `up`.
        direction: &'static str,
        /// The link.
        node: String,
        /// Its rate in bit/s.
        limit: u64,
    },
}

impl Plan {
    /// The template with this name.
    #[must_use]
    pub fn template(&self, name: &str) -> Option<TemplateId> {
        let found = self.templates.iter().position(|one| one.name == name)?;
        Some(TemplateId(found as u16))
    }

    /// The shared link with this name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<NodeId> {
        let found = self.nodes.iter().position(|one| one.name == name)?;
        Some(NodeId(found as u32))
    }

    /// The links from this one to the topmost. Call [`Plan::check`] first: at most [`DEPTH_MAX`] + 1 are returned.
    pub fn above(&self, node: NodeId) -> impl Iterator<Item = (NodeId, &Node)> {
        let mut next = Some(node);
        let all = core::iter::from_fn(move || {
            let id = next?;
            let node = self.nodes.get(id.0 as usize)?;
            next = node.parent;
            Some((id, node))
        });
        all.take(DEPTH_MAX + 1)
    }

    /// Whether the plan can be used.
    ///
    /// # Errors
    /// The first fault in it.
    pub fn check(&self) -> Result<(), Fault> {
        if self.templates.len() > TEMPLATES_MAX {
            return Err(Fault::Templates(self.templates.len()));
        }
        if self.nodes.len() > NODES_MAX {
            return Err(Fault::Nodes(self.nodes.len()));
        }
        unique(self.templates.iter().map(|one| &one.name))?;
        unique(self.nodes.iter().map(|one| &one.name))?;
        for one in &self.templates {
            weight(&one.name, one.weight)?;
            if one.depth.packets == 0 || one.depth.octets < 1_514 {
                return Err(Fault::Depth(one.name.clone()));
            }
        }
        self.nodes.iter().try_for_each(|node| self.check_node(node))
    }

    fn check_node(&self, node: &Node) -> Result<(), Fault> {
        weight(&node.name, node.weight)?;
        node.rates.check(&node.name)?;
        let Some(parent) = node.parent else {
            return Ok(());
        };
        if self.nodes.get(parent.0 as usize).is_none() {
            return Err(Fault::Parent(node.name.clone()));
        }
        match self.above(parent).count() {
            0..=DEPTH_MAX => Ok(()),
            _ => Err(Fault::Depths(node.name.clone())),
        }
    }

    /// Whether a subscriber can have this shape: the ids exist, and its rates are not above those of its links.
    ///
    /// # Errors
    /// What is wrong, with the link's name and rate.
    pub fn check_shape(&self, shape: &Shape) -> Result<(), Fault> {
        self.check_ids(shape)?;
        let Some(id) = shape.node else {
            return Ok(());
        };
        for (_, node) in self.above(id) {
            let both = [
                ("down", shape.rates.down, node.rates.down),
                ("up", shape.rates.up, node.rates.up),
            ];
            for (direction, bps, limit) in both {
                if limit > 0 && bps > limit {
                    let node = node.name.clone();
                    return Err(Fault::Exceeds {
                        bps,
                        direction,
                        node,
                        limit,
                    });
                }
            }
        }
        Ok(())
    }

    /// Whether the ids of a shape exist and its rates are in range. Its rates may be above those of its links, which
    /// limit them.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_ids(&self, shape: &Shape) -> Result<(), Fault> {
        if self.templates.get(usize::from(shape.template.0)).is_none() {
            return Err(Fault::NoTemplate(shape.template));
        }
        shape.rates.check("")?;
        match shape.node {
            Some(id) if self.nodes.get(id.0 as usize).is_none() => Err(Fault::NoNode(id)),
            _ => Ok(()),
        }
    }
}

impl Rates {
    fn check(self, name: &str) -> Result<(), Fault> {
        let bps = self.down.max(self.up);
        let name = name.to_owned();
        (bps <= RATE_MAX)
            .then_some(())
            .ok_or(Fault::Rate { name, bps })
    }
}

fn weight(name: &str, weight: u32) -> Result<(), Fault> {
    let name = name.to_owned();
    (1..=WEIGHT_MAX)
        .contains(&weight)
        .then_some(())
        .ok_or(Fault::Weight { name, weight })
}

fn unique<'a>(mut names: impl Iterator<Item = &'a String>) -> Result<(), Fault> {
    let mut seen = HashSet::new();
    match names.find(|name| !seen.insert(*name)) {
        Some(name) => Err(Fault::Twice(name.clone())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, parent: Option<u32>, bps: u64) -> Node {
        Node {
            name: name.to_owned(),
            parent: parent.map(NodeId),
            rates: Rates { down: bps, up: bps },
            weight: 1,
        }
    }

    #[test]
    fn a_rate_above_that_of_a_link_names_the_link() {
        let plan = Plan {
            templates: vec![Template::default()],
            nodes: vec![node("olt-1", Some(1), 0), node("uplink", None, 1_000)],
        };
        plan.check().unwrap();
        let shape = |down, up| Shape {
            rates: Rates { down, up },
            template: TemplateId(0),
            node: plan.node("olt-1"),
        };
        plan.check_shape(&shape(1_000, 0)).unwrap();
        let fault = plan.check_shape(&shape(1_000, 1_001)).unwrap_err();
        assert_eq!(
            fault.to_string(),
            "1001 bit/s up exceed the 1000 bit/s of the link \"uplink\""
        );
    }

    #[test]
    fn a_link_below_itself_and_a_parent_that_is_missing_are_refused() {
        let nodes = vec![node("a", Some(1), 0), node("b", Some(0), 0)];
        let plan = |nodes| Plan {
            templates: Vec::new(),
            nodes,
        };
        assert_eq!(plan(nodes).check(), Err(Fault::Depths("a".into())));
        let nodes = vec![node("a", Some(1), 0)];
        assert_eq!(plan(nodes).check(), Err(Fault::Parent("a".into())));
        let nodes = vec![node("a", None, 0), node("a", None, 0)];
        assert_eq!(plan(nodes).check(), Err(Fault::Twice("a".into())));
    }
}
