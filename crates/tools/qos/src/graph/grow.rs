//! Builds the tree of disciplines and classes from tc's records.

use std::collections::{HashMap, HashSet};

use super::model::{Join, Kind, Tree, number};
use super::record::{Record, What};

/// Builds one tree per interface in `records`. Records that name no interface belong to `interface`.
pub(super) fn grow(records: &[Record], interface: &str) -> Tree {
    let mut tree = Tree::default();
    let mut names: Vec<&str> = Vec::new();
    // Filters of a shared block belong to no interface.
    for record in records.iter().filter(|record| record.block().is_none()) {
        let name = record.dev.as_deref().unwrap_or(interface);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        names.push(interface);
    }
    let mut blocks = Blocks::default();
    for (place, name) in names.iter().enumerate() {
        let is_own = |record: &&Record| match record.block() {
            // After the disciplines of all interfaces.
            Some(_) => place + 1 == names.len(),
            None => record.dev.as_deref().unwrap_or(interface) == *name,
        };
        let own: Vec<&Record> = records.iter().filter(is_own).collect();
        Grower::new(&mut tree, name, &mut blocks).grow(&own);
    }
    tree.title = format!("Queues of {}", names.join(", "));
    tree
}

/// Blocks of filters that several qdiscs share.
#[derive(Default)]
struct Blocks {
    nodes: HashMap<u32, usize>,
    /// What identifies the filters that have a node: tc prints them for each qdisc of the block.
    drawn: HashSet<(u32, String, String, u32, String)>,
}

impl Blocks {
    /// Whether a filter is drawn already; false for one that is in no block.
    fn has(&mut self, record: &Record) -> bool {
        let Some(block) = record.block() else {
            return false;
        };
        let (kind, place) = (record.kind.clone(), record.place.clone());
        !self
            .drawn
            .insert((block, kind, place, record.chain, record.handle.clone()))
    }
}

struct Grower<'t> {
    tree: &'t mut Tree,
    blocks: &'t mut Blocks,
    top: usize,
    /// Qdiscs by handle. A qdisc with handle "0:" is never a parent.
    qdiscs: HashMap<String, usize>,
    classes: HashMap<String, usize>,
    groups: HashMap<(usize, String), usize>,
    tables: HashMap<(usize, u32, String), usize>,
    devices: HashMap<String, usize>,
}

impl<'t> Grower<'t> {
    fn new(tree: &'t mut Tree, name: &str, blocks: &'t mut Blocks) -> Self {
        let top = tree.add(Kind::Interface, name, "");
        Self {
            tree,
            blocks,
            top,
            qdiscs: HashMap::new(),
            classes: HashMap::new(),
            groups: HashMap::new(),
            tables: HashMap::new(),
            devices: HashMap::new(),
        }
    }

    fn grow(mut self, records: &[&Record]) {
        let mut nodes = Vec::with_capacity(records.len());
        for record in records {
            let node = match record.what {
                What::Filter => None,
                what => Some(self.node(record, what)),
            };
            nodes.push(node);
        }
        for (record, node) in records.iter().zip(&nodes) {
            if let Some(node) = *node {
                let above = self.above(record, node);
                self.tree.join(above, node, Join::Holds);
                self.mark_default(record);
                self.share(record, node);
                self.tins(record, node);
            }
        }
        self.filters(records);
    }

    fn node(&mut self, record: &Record, what: What) -> usize {
        let (kind, title) = match what {
            What::Qdisc => (Kind::Qdisc, format!("{} {}", record.kind, record.handle)),
            What::Class => (Kind::Class, format!("{} {}", record.kind, record.handle)),
            What::Filter | What::Unknown => (Kind::Unknown, "not understood".to_owned()),
        };
        let node = self.tree.add(kind, title.trim(), &record.handle);
        self.fill(node, record);
        match what {
            What::Qdisc if record.handle != "0:" => {
                self.qdiscs.entry(record.handle.clone()).or_insert(node);
            }
            What::Class => {
                self.classes.entry(record.handle.clone()).or_insert(node);
            }
            _ => {}
        }
        node
    }

    /// Adds the shared blocks of a qdisc, or arrows to those that another qdisc has too.
    fn share(&mut self, record: &Record, node: usize) {
        for (side, number) in &record.blocks {
            let above = match record.kind.as_str() {
                "clsact" => self.group(node, side),
                _ => node,
            };
            match self.blocks.nodes.get(number) {
                Some(block) => self.tree.join(above, *block, Join::Asks),
                None => {
                    let block = self.tree.add(Kind::Group, format!("block {number}"), "");
                    self.tree.join(above, block, Join::Holds);
                    self.blocks.nodes.insert(*number, block);
                }
            }
        }
    }

    /// The node of a shared block.
    fn block(&mut self, number: u32) -> usize {
        if let Some(block) = self.blocks.nodes.get(&number) {
            return *block;
        }
        let block = self.tree.add(Kind::Group, format!("block {number}"), "");
        self.tree.join(self.top, block, Join::Holds);
        self.blocks.nodes.insert(number, block);
        block
    }

    /// Adds the tins of cake below it.
    fn tins(&mut self, record: &Record, cake: usize) {
        for tin in &record.tins {
            let node = self.tree.add(Kind::Tin, tin.name.clone(), "");
            self.tree.nodes[node].numbers = Some(tin.numbers);
            self.tree.join(cake, node, Join::Holds);
        }
    }

    fn fill(&mut self, node: usize, record: &Record) {
        let node = &mut self.tree.nodes[node];
        node.lines = record.lines.clone();
        node.numbers = record.numbers;
        let id = node.id;
        self.tree.name(id, record.name.as_deref());
    }

    /// The parent of `node`, which was made from `record`. It checks all ancestors, so the tree cannot contain a cycle.
    fn above(&self, record: &Record, node: usize) -> usize {
        let handle = record.parent.as_deref().unwrap_or(match record.what {
            // "class htb 1:1 root": the parent is the qdisc itself.
            What::Class => record.handle.as_str(),
            _ => "",
        });
        let major = handle.split(':').next().unwrap_or_default();
        let class = match (record.what, record.parent.is_some()) {
            (What::Class, false) => None,
            _ => self.classes.get(handle),
        };
        let qdisc = self.qdiscs.get(&format!("{major}:"));
        let above = class.or(qdisc).copied().unwrap_or(self.top);
        match above == node || self.is_below(above, node) {
            true => self.top,
            false => above,
        }
    }

    /// Whether `below` is a descendant of `node`.
    fn is_below(&self, below: usize, node: usize) -> bool {
        let mut at = below;
        while let Some(edge) = self
            .tree
            .edges
            .iter()
            .find(|edge| edge.to == at && edge.join == Join::Holds)
        {
            at = edge.from;
            if at == node {
                return true;
            }
        }
        false
    }

    fn mark_default(&mut self, record: &Record) {
        let default = match &record.default {
            Some(default) => default.clone(),
            // tc prints hfsc's options without keys.
            None if record.what == What::Qdisc && record.kind == "hfsc" => {
                let words = record.lines.iter().flat_map(|line| line.split(' '));
                let after = words.skip_while(|word| *word != "default").nth(1);
                after.unwrap_or_default().to_owned()
            }
            None => return,
        };
        let digits = default.strip_prefix("0x").unwrap_or(&default);
        let Ok(minor) = u32::from_str_radix(digits, 16) else {
            return;
        };
        if minor == 0 {
            return;
        }
        let major = record.handle.trim_end_matches(':');
        let named = format!("{major}:{minor:x}");
        if let Some(class) = self.classes.get(&named) {
            self.tree.nodes[*class].is_default = true;
        } else if let Some(qdisc) = self.qdiscs.get(&record.handle) {
            // If the default class is missing, HTB sends unclassified packets unshaped, and HFSC drops them.
            let note = format!("default {named}: there is no such class");
            self.tree.nodes[*qdisc].lines.push(note);
        }
    }

    fn filters(&mut self, records: &[&Record]) {
        let filters: Vec<&Record> = records
            .iter()
            .copied()
            .filter(|record| record.what == What::Filter)
            .collect();
        let mut nodes = Vec::new();
        for (at, record) in filters.iter().enumerate() {
            let is_followed = filters[at + 1..]
                .iter()
                .any(|other| is_same(record, other) && !other.is_announcement());
            if record.is_announcement() && is_followed || self.blocks.has(record) {
                continue;
            }
            let above = self.filter_parent(record);
            let mut title = format!("{} {}", record.kind, record.handle);
            title = format!("{} {}", title.trim(), record.place);
            let node = self.tree.add(Kind::Filter, title.trim(), &record.handle);
            self.fill(node, record);
            if record.kind == "u32" && record.handle.matches(':').count() == 1 {
                let key = (above, record.chain, record.handle.clone());
                self.tables.insert(key, node);
            }
            nodes.push((node, above, *record));
        }
        for (node, above, record) in nodes {
            let table = match record.handle.split(':').collect::<Vec<_>>().as_slice() {
                [table, _, rule] if record.kind == "u32" && !rule.is_empty() => {
                    self.table(above, record.chain, &format!("{table}:"))
                }
                _ => None,
            };
            let holder = table.unwrap_or(above);
            self.tree.join(holder, node, Join::Holds);
            self.arrows(node, above, record);
        }
    }

    fn table(&self, above: usize, chain: u32, handle: &str) -> Option<usize> {
        self.tables.get(&(above, chain, handle.to_owned())).copied()
    }

    fn arrows(&mut self, node: usize, above: usize, record: &Record) {
        if let Some(class) = &record.class {
            match self.classes.get(class.as_str()) {
                Some(class) => self.tree.join(node, *class, Join::Sends),
                None => self.tree.nodes[node].lines.push(format!("to {class}")),
            }
        }
        if let Some(link) = &record.link
            && let Some(table) = self.table(above, record.chain, link)
        {
            self.tree.join(node, table, Join::Asks);
        }
        if let Some(chain) = record.goto {
            // A goto leads to another chain of the same qdisc, class or clsact side.
            let parent = match record.chain {
                0 => above,
                _ => self.holder(above),
            };
            let group = self.group(parent, &format!("chain {chain}"));
            self.tree.join(node, group, Join::Asks);
        }
        for device in &record.devices {
            let to = match self.devices.get(device) {
                Some(to) => *to,
                None => {
                    let to = self
                        .tree
                        .add(Kind::Device, format!("to interface {device}"), "");
                    self.tree.join(node, to, Join::Holds);
                    self.devices.insert(device.clone(), to);
                    continue;
                }
            };
            self.tree.join(node, to, Join::Sends);
        }
    }

    fn holder(&self, node: usize) -> usize {
        let mut edges = self.tree.edges.iter();
        let edge = edges.find(|edge| edge.to == node && edge.join == Join::Holds);
        edge.map_or(self.top, |edge| edge.from)
    }

    /// The node that a filter is attached to: a qdisc, a class or a side of clsact, or the filter's chain there.
    fn filter_parent(&mut self, record: &Record) -> usize {
        let parent = record.parent.as_deref().unwrap_or_default();
        let hook = match parent {
            "ingress" | "ffff:fff2" => Some("ingress"),
            "egress" | "ffff:fff3" => Some("egress"),
            _ => None,
        };
        if let Some(number) = record.block() {
            let block = self.block(number);
            return match record.chain {
                0 => block,
                chain => self.group(block, &format!("chain {chain}")),
            };
        }
        let special = self.qdiscs.get("ffff:").copied().unwrap_or(self.top);
        let mut above = match hook {
            // An ingress qdisc has only one side.
            Some(_) if self.tree.nodes[special].title.starts_with("ingress") => special,
            Some(side) => self.group(special, side),
            None => {
                let major = parent.split(':').next().unwrap_or_default();
                let class = self
                    .classes
                    .get(parent)
                    .filter(|_| number(parent) & 0xffff != 0);
                let qdisc = self.qdiscs.get(&format!("{major}:"));
                class.or(qdisc).copied().unwrap_or(self.top)
            }
        };
        if record.chain != 0 {
            above = self.group(above, &format!("chain {}", record.chain));
        }
        above
    }

    fn group(&mut self, above: usize, name: &str) -> usize {
        if let Some(group) = self.groups.get(&(above, name.to_owned())) {
            return *group;
        }
        let group = self.tree.add(Kind::Group, name, "");
        self.tree.join(above, group, Join::Holds);
        self.groups.insert((above, name.to_owned()), group);
        group
    }
}

/// Whether both records describe the same filter instance.
fn is_same(one: &Record, other: &Record) -> bool {
    let key = |record: &'_ Record| {
        let Record {
            parent,
            kind,
            place,
            chain,
            ..
        } = record.clone();
        (parent, kind, place, chain)
    };
    key(one) == key(other)
}
