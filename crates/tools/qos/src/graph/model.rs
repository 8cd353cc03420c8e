//! The drawing as data: nodes, the lines between parents and children, and the arrows of packets and filters.

use std::collections::HashMap;

use serde::Serialize;

use control::rows::QosRates;

use crate::rates::{self, Counted, octets};

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// An interface, or one direction of a policy.
    Interface,
    /// A queue discipline.
    Qdisc,
    /// A class of a discipline.
    Class,
    /// A tin of cake: its queue for one priority.
    Tin,
    /// A rule, or a table of rules.
    Filter,
    /// A chain of filters, or the side of clsact that the filters are attached to.
    Group,
    /// An interface that a filter sends packets to.
    Device,
    /// Input that could not be parsed, unchanged.
    Unknown,
    /// A group of like nodes; only pages have it.
    Fold,
}

/// A node's traffic counters, under the names of `tc -s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(super) struct Numbers {
    pub(super) bytes: u64,
    pub(super) packets: u64,
    pub(super) drops: u64,
    pub(super) overlimits: u64,
    pub(super) backlog_bytes: u64,
    pub(super) backlog_packets: u64,
    pub(super) ecn_mark: u64,
    /// How long packets waited; only tins of cake have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) delays: Option<Delays>,
}

/// How long packets waited in a tin of cake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(super) struct Delays {
    pub(super) average_us: u64,
    pub(super) peak_us: u64,
    /// The average of flows that send little.
    pub(super) sparse_us: u64,
}

impl Delays {
    fn words(self) -> String {
        let [average, peak, sparse] = [self.average_us, self.peak_us, self.sparse_us].map(delay);
        format!("delay {average}, peak {peak}, sparse {sparse}")
    }
}

/// A delay with its unit.
fn delay(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} us"),
        1_000..1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        _ => format!("{:.1} s", us as f64 / 1e6),
    }
}

/// One box.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Node {
    pub(super) id: usize,
    pub(super) kind: Kind,
    /// "htb 1:".
    pub(super) title: String,
    /// "1:", "1:10", "800::800"; empty if tc prints none.
    pub(super) handle: String,
    /// Options and actions, one per line.
    pub(super) lines: Vec<String>,
    /// Whether this is the default class, for packets that no filter matches.
    pub(super) is_default: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) numbers: Option<Numbers>,
    /// The rates of the counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rates: Option<QosRates>,
    /// For a fold: the node that is worst off, in words.
    #[serde(skip)]
    pub(super) worst: Option<String>,
}

/// The relation between two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Join {
    /// The first is the parent of the second. These edges form a tree.
    Holds,
    /// The first sends packets to the second, which is a class, a chain or an interface.
    Sends,
    /// The first looks up the rules of the second, which is a hash table.
    Asks,
}

/// One line between two boxes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) join: Join,
}

/// Nodes and edges. Each node has exactly one parent, except the root of each tree.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(super) struct Tree {
    pub(super) title: String,
    /// Whether to reserve space for the rates of the last minutes.
    #[serde(skip)]
    pub(super) has_past: bool,
    /// Whether to reserve space for rates, even if none is known yet.
    #[serde(skip)]
    pub(super) has_rates: bool,
    /// A note on the rates.
    #[serde(skip)]
    pub(super) state: String,
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
}

/// Disciplines of the kernel that list flows as classes and that headend does not implement.
const KERNEL_FLOW_CLASSES: [&str; 3] = ["cake", "fq_pie", "sfb"];

/// Whether tc lists the flows of this discipline as its classes.
pub(super) fn has_flow_classes(kind: &str) -> bool {
    let picture = qos::registry::picture(kind);
    KERNEL_FLOW_CLASSES.contains(&kind) || picture.is_some_and(|picture| picture.has_flow_classes)
}

impl Node {
    /// The kind of a discipline, class or filter: "htb".
    pub(super) fn word(&self) -> &str {
        self.title.split(' ').next().unwrap_or_default()
    }

    /// The policy's name, if [`Tree::name`] gave it one.
    pub(super) fn name(&self) -> Option<&str> {
        let quoted = self.lines.first()?.strip_prefix('\u{201c}')?;
        quoted.strip_suffix('\u{201d}')
    }

    /// The counters as lines that later readings replace in place: always the same number of them for a node.
    pub(super) fn slots(&self) -> Vec<String> {
        let mut slots = match self.numbers {
            Some(numbers) => numbers.slots(self.kind),
            None => Vec::new(),
        };
        slots.extend(self.worst.clone());
        slots
    }

    /// Whether a page shows the rates of the last minutes in the node's box.
    pub(super) fn has_past(&self) -> bool {
        self.numbers.is_some() && matches!(self.kind, Kind::Class | Kind::Tin | Kind::Fold)
    }

    /// Whether tc counts the packets that this node sent. It does not for flows.
    fn counts_sent(&self) -> bool {
        self.kind != Kind::Class || !has_flow_classes(self.word())
    }
}

impl Tree {
    pub(super) fn add(&mut self, kind: Kind, title: impl Into<String>, handle: &str) -> usize {
        let id = self.nodes.len();
        self.nodes.push(Node {
            id,
            kind,
            title: title.into(),
            handle: handle.to_owned(),
            lines: Vec::new(),
            is_default: false,
            numbers: None,
            rates: None,
            worst: None,
        });
        id
    }

    /// Puts the policy's name for a node before its other lines.
    pub(super) fn name(&mut self, id: usize, name: Option<&str>) {
        if let Some(name) = name {
            self.nodes[id]
                .lines
                .insert(0, format!("\u{201c}{name}\u{201d}"));
        }
    }

    pub(super) fn join(&mut self, from: usize, to: usize, join: Join) {
        self.edges.push(Edge { from, to, join });
    }

    /// The nodes without a parent, in order.
    pub(super) fn roots(&self) -> Vec<usize> {
        let mut is_held = vec![false; self.nodes.len()];
        for edge in self.edges.iter().filter(|edge| edge.join == Join::Holds) {
            is_held[edge.to] = true;
        }
        (0..self.nodes.len()).filter(|id| !is_held[*id]).collect()
    }

    /// The children of each node: filters first, then by handle.
    pub(super) fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for edge in self.edges.iter().filter(|edge| edge.join == Join::Holds) {
            children[edge.from].push(edge.to);
        }
        for below in &mut children {
            below.sort_by_key(|id| {
                let node = &self.nodes[*id];
                match node.kind {
                    Kind::Group | Kind::Filter => (0, 0, *id),
                    Kind::Fold => (1, u32::MAX, *id),
                    Kind::Class => (1, number(&node.handle), *id),
                    // In the order of tc's table.
                    Kind::Tin => (1, 0, *id),
                    Kind::Qdisc => (2, number(&node.handle), *id),
                    _ => (3, 0, *id),
                }
            });
        }
        children
    }

    /// Fills in the rates since `before`, `span_ns` earlier, for the nodes that are at the same place in both trees.
    pub(super) fn since(&mut self, before: &Self, span_ns: u64) {
        self.has_rates = true;
        self.state = format!("rates over {:.2} s", span_ns as f64 / 1e9);
        let mut former = HashMap::new();
        for (place, node) in before.places().into_iter().zip(&before.nodes) {
            former.entry(place).or_insert(node);
        }
        for (place, id) in self.places().into_iter().zip(0..) {
            let node: &mut Node = &mut self.nodes[id];
            let before = former.get(&place).and_then(|node| node.numbers);
            if let (Some(before), Some(now)) = (before, node.numbers)
                && node.counts_sent()
            {
                node.rates = rates::between(before.counted(), now.counted(), span_ns);
            }
        }
        self.sum_up();
    }

    /// Sums an interface's outgoing traffic over its top-level queues; incoming traffic is counted separately.
    fn sum_up(&mut self) {
        for (id, below) in self.children().into_iter().enumerate() {
            if self.nodes[id].kind == Kind::Interface {
                let nodes = below.iter().map(|below| &self.nodes[*below]);
                let leaving = nodes.filter(|node| !node.handle.starts_with("ffff:"));
                let rates = leaving.filter_map(|node| node.rates);
                self.nodes[id].rates = rates.reduce(rates::sum);
            }
        }
    }

    /// A key that identifies each node: its title, its parent's title, and its index among nodes of the same title.
    fn places(&self) -> Vec<(String, usize)> {
        let mut above = vec![None; self.nodes.len()];
        for edge in self.edges.iter().filter(|edge| edge.join == Join::Holds) {
            above[edge.to] = Some(edge.from);
        }
        let mut seen: HashMap<String, usize> = HashMap::new();
        let named = self.nodes.iter().map(|node| {
            let holder = above[node.id].map_or("", |holder: usize| &self.nodes[holder].title);
            let name = format!("{:?} {holder} / {}", node.kind, node.title);
            let count = seen.entry(name.clone()).or_insert(0);
            *count += 1;
            (name, *count)
        });
        named.collect()
    }

    /// The targets of each node's packets.
    pub(super) fn targets(&self) -> HashMap<usize, Vec<(usize, Join)>> {
        let mut targets: HashMap<usize, Vec<(usize, Join)>> = HashMap::new();
        for edge in self.edges.iter().filter(|edge| edge.join != Join::Holds) {
            targets
                .entry(edge.from)
                .or_default()
                .push((edge.to, edge.join));
        }
        targets
    }
}

/// A handle "MAJOR:MINOR" as a number, for sorting.
pub(super) fn number(handle: &str) -> u32 {
    let (major, minor) = handle.split_once(':').unwrap_or((handle, ""));
    let part = |text: &str| u32::from_str_radix(text, 16).unwrap_or(0) & 0xffff;
    part(major) << 16 | part(minor)
}

impl Numbers {
    fn counted(&self) -> Counted {
        Counted {
            bytes: self.bytes,
            packets: self.packets,
            drops: self.drops,
            marks: self.ecn_mark,
        }
    }

    /// The same counters in lines of their own.
    fn slots(&self, kind: Kind) -> Vec<String> {
        let sent = format!("sent {} p, {}", self.packets, octets(self.bytes));
        let (drops, overlimits) = (self.drops, self.overlimits);
        if kind == Kind::Filter {
            // An action has no queue.
            return vec![
                sent,
                format!("dropped {drops}"),
                format!("overlimits {overlimits}"),
            ];
        }
        let mut slots = vec![
            sent,
            format!("dropped {drops} \u{b7} ecn_mark {}", self.ecn_mark),
        ];
        let waiting = octets(self.backlog_bytes);
        match self.delays {
            Some(delays) => {
                let [average, peak, sparse] =
                    [delays.average_us, delays.peak_us, delays.sparse_us].map(delay);
                slots.push(format!("delay {average}, peak {peak}"));
                slots.push(format!("sparse {sparse} \u{b7} backlog {waiting}"));
            }
            None => slots.push(format!("backlog {} p, {waiting}", self.backlog_packets)),
        }
        slots
    }

    /// "2 packets, 140 octets, 1 dropped"; `None` if all counters are 0.
    pub(super) fn words(&self) -> Option<String> {
        if *self == Self::default() {
            return None;
        }
        let mut words = vec![format!("sent {} p, {}", self.packets, octets(self.bytes))];
        let is_tin = self.delays.is_some();
        if self.drops > 0 || is_tin {
            words.push(format!("dropped {}", self.drops));
        }
        if self.overlimits > 0 {
            words.push(format!("overlimits {}", self.overlimits));
        }
        if self.ecn_mark > 0 || is_tin {
            words.push(format!("ecn_mark {}", self.ecn_mark));
        }
        words.extend(self.delays.map(Delays::words));
        if is_tin && self.backlog_bytes > 0 {
            words.push(format!("backlog {}", octets(self.backlog_bytes)));
        } else if self.backlog_packets > 0 || self.backlog_bytes > 0 {
            let (packets, bytes) = (self.backlog_packets, octets(self.backlog_bytes));
            words.push(format!("backlog {packets} p, {bytes}"));
        }
        Some(words.join(" · "))
    }
}
