//! Folds: many siblings of the same kind get a node above them, which sums them up and names the worst. A page shows
//! such a node alone until it is opened.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::model::{Join, Kind, Numbers, Tree};
use crate::rates::{self, bits, octets};

/// Siblings of the same kind from which they are folded.
const FOLD_FROM: usize = 12;

/// A node of a tree: what it and everything below it counted.
#[derive(Debug, Clone, Copy, Default)]
struct Total {
    numbers: Numbers,
    drops_ps: f64,
}

/// Adds a node above each group of like siblings. The nodes of `tree` keep their ids.
pub(super) fn fold(tree: &mut Tree) {
    let children = tree.children();
    let order = parents_first(tree, &children);
    let likes = likes(tree, &children, &order);
    let totals = totals(tree, &children, &order);
    let mut folds: HashMap<usize, usize> = HashMap::new();
    for below in &children {
        let mut groups: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for id in below.iter().filter(|id| is_foldable(tree, **id)) {
            groups.entry(likes[*id]).or_default().push(*id);
        }
        let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
        groups.sort_by_key(|members| members[0]);
        for members in groups.iter().filter(|members| members.len() >= FOLD_FROM) {
            let fold = add(tree, members, &totals);
            folds.extend(members.iter().map(|member| (*member, fold)));
        }
    }
    let mut holders = BTreeMap::new();
    for edge in tree
        .edges
        .iter_mut()
        .filter(|edge| edge.join == Join::Holds)
    {
        if let Some(fold) = folds.get(&edge.to) {
            holders.insert(*fold, edge.from);
            edge.from = *fold;
        }
    }
    for (fold, holder) in holders {
        tree.join(holder, fold, Join::Holds);
    }
}

/// Whether a node may be in a fold. The default class is not: it is the one that people look for.
fn is_foldable(tree: &Tree, id: usize) -> bool {
    let node = &tree.nodes[id];
    !node.is_default && matches!(node.kind, Kind::Class | Kind::Filter | Kind::Qdisc)
}

fn parents_first(tree: &Tree, children: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(children.len());
    let mut open = tree.roots();
    while let Some(id) = open.pop() {
        order.push(id);
        open.extend(&children[id]);
    }
    order
}

/// A number that nodes of the same kind, with the same kinds below them, share.
fn likes(tree: &Tree, children: &[Vec<usize>], order: &[usize]) -> Vec<u64> {
    let mut likes = vec![0; tree.nodes.len()];
    for id in order.iter().rev() {
        let node = &tree.nodes[*id];
        let mut hasher = DefaultHasher::new();
        // The rules of a policy have no kind, and no handle.
        let word = match node.handle.is_empty() {
            true => "",
            false => node.word(),
        };
        (node.kind, word, node.numbers.is_some()).hash(&mut hasher);
        for child in &children[*id] {
            likes[*child].hash(&mut hasher);
        }
        likes[*id] = hasher.finish();
    }
    likes
}

/// What each node counted together with everything below it. A class may count what its queue counts too, or not.
fn totals(tree: &Tree, children: &[Vec<usize>], order: &[usize]) -> Vec<Total> {
    let mut totals = vec![Total::default(); tree.nodes.len()];
    for id in order.iter().rev() {
        let node = &tree.nodes[*id];
        let own = Total {
            numbers: Numbers {
                delays: None,
                ..node.numbers.unwrap_or_default()
            },
            drops_ps: node.rates.map_or(0.0, |rates| rates.drops_ps),
        };
        let below = children[*id].iter();
        // What filters did is no traffic of the class.
        let below = below.filter(|child| tree.nodes[**child].kind != Kind::Filter);
        let below = below.fold(Total::default(), |sum, child| sum.and(totals[*child]));
        totals[*id] = own.or(below);
    }
    totals
}

impl Total {
    fn each(self, other: Self, of: fn(u64, u64) -> u64, drops_ps: f64) -> Self {
        let (one, two) = (self.numbers, other.numbers);
        Self {
            numbers: Numbers {
                bytes: of(one.bytes, two.bytes),
                packets: of(one.packets, two.packets),
                drops: of(one.drops, two.drops),
                overlimits: of(one.overlimits, two.overlimits),
                backlog_bytes: of(one.backlog_bytes, two.backlog_bytes),
                backlog_packets: of(one.backlog_packets, two.backlog_packets),
                ecn_mark: of(one.ecn_mark, two.ecn_mark),
                delays: None,
            },
            drops_ps,
        }
    }

    fn and(self, other: Self) -> Self {
        self.each(other, u64::saturating_add, self.drops_ps + other.drops_ps)
    }

    fn or(self, other: Self) -> Self {
        self.each(other, u64::max, self.drops_ps.max(other.drops_ps))
    }
}

/// Adds the node above `members`, which nothing holds yet.
fn add(tree: &mut Tree, members: &[usize], totals: &[Total]) -> usize {
    let first = &tree.nodes[members[0]];
    let what = match first.kind {
        Kind::Filter if first.handle.is_empty() => "rules",
        Kind::Filter => "filters",
        Kind::Qdisc => "disciplines",
        _ => "classes",
    };
    let title = match what {
        "rules" => format!("{} rules", members.len()),
        _ => format!("{} {} {what}", members.len(), first.word()),
    };
    let name = |id: usize| {
        let node = &tree.nodes[id];
        match node.handle.is_empty() {
            true => node.name().unwrap_or(&node.title).to_owned(),
            false => node.handle.clone(),
        }
    };
    let last = members[members.len() - 1];
    let span = format!("{} to {}", name(members[0]), name(last));
    let has_numbers = members.iter().any(|id| tree.nodes[*id].numbers.is_some());
    let own_rates = members.iter().filter_map(|id| tree.nodes[*id].rates);
    let rates = own_rates.reduce(rates::sum).map(|mut sum| {
        sum.drops_ps = members.iter().map(|id| totals[*id].drops_ps).sum();
        sum
    });
    let sum = members
        .iter()
        .fold(Total::default(), |sum, id| sum.and(totals[*id]));
    let worst = worst(tree, members, totals);
    let fold = tree.add(Kind::Fold, title, "");
    let node = &mut tree.nodes[fold];
    node.lines.push(span);
    node.rates = rates;
    if has_numbers {
        node.numbers = Some(sum.numbers);
        node.worst = Some(worst);
    }
    fold
}

/// The member that drops most; without drops, the one with the longest queue; without a queue, the busiest.
fn worst(tree: &Tree, members: &[usize], totals: &[Total]) -> String {
    let most = |of: &dyn Fn(usize) -> f64| {
        let found = members
            .iter()
            .max_by(|one, two| of(**one).total_cmp(&of(**two)));
        found.copied().filter(|id| of(*id) > 0.0)
    };
    let numbers = |id: usize| totals[id].numbers;
    let handle = |id: usize| {
        let node = &tree.nodes[id];
        node.name().unwrap_or(&node.handle).to_owned()
    };
    if let Some(id) = most(&|id| totals[id].drops_ps) {
        let drops = rates::count(totals[id].drops_ps);
        return format!("worst {}: {drops} dropped/s", handle(id));
    }
    if let Some(id) = most(&|id| numbers(id).backlog_bytes as f64) {
        let backlog = octets(numbers(id).backlog_bytes);
        return format!("worst {}: {backlog} waiting", handle(id));
    }
    let has_rates = members.iter().any(|id| tree.nodes[*id].rates.is_some());
    if !has_rates && let Some(id) = most(&|id| numbers(id).drops as f64) {
        return format!("worst {}: {} dropped", handle(id), numbers(id).drops);
    }
    let bps = |id: usize| tree.nodes[id].rates.map_or(0, |rates| rates.bps);
    if let Some(id) = most(&|id| bps(id) as f64) {
        return format!("busiest {}: {}", handle(id), bits(bps(id)));
    }
    match most(&|id| numbers(id).bytes as f64) {
        Some(id) if !has_rates => format!("busiest {}: {}", handle(id), octets(numbers(id).bytes)),
        _ => "nothing waits, nothing is dropped".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{grow, record};

    /// 40 like classes, each with a queue; class 7 dropped most, class 9 has the longest queue.
    fn many(scale: u64) -> Tree {
        let mut text = String::from("qdisc htb 1: root\nclass htb 1:1 root prio 0 rate 9Mbit\n");
        for n in 10_u64..50 {
            let drops = if n == 17 { 5 * scale } else { 0 };
            let waiting = if n == 19 { 3_000 } else { 0 };
            text += &format!(
                "class htb 1:{n} parent 1:1 prio 0 rate {n}Kbit\n Sent {} bytes 9 pkt (dropped 0, overlimits 0 requeues 0)\n\
                 qdisc fq_codel {n}: parent 1:{n}\n Sent {} bytes 9 pkt (dropped {drops}, overlimits 0 requeues 0)\n \
                 backlog {waiting}b 2p requeues 0\n",
                n * 100 * scale,
                n * 100 * scale
            );
        }
        grow::grow(&record::read(&text, None), "eth0")
    }

    #[test]
    fn like_classes_become_one_node_with_their_sum_and_the_worst() {
        let mut tree = many(1);
        let count = tree.nodes.len();
        fold(&mut tree);
        assert_eq!(tree.nodes.len(), count + 1);
        let fold = &tree.nodes[count];
        assert_eq!(fold.title, "40 htb classes");
        assert_eq!(fold.lines, ["1:10 to 1:49"]);
        let numbers = fold.numbers.expect("sums");
        // The class and its queue count the same bytes; drops are counted by the queue alone.
        assert_eq!(numbers.bytes, (10..50).map(|n| n * 100).sum::<u64>());
        assert_eq!((numbers.drops, numbers.packets), (5, 360));
        assert_eq!(fold.worst.as_deref(), Some("worst 1:19: 3000 B waiting"));
        let children = tree.children();
        assert_eq!(children[fold.id].len(), 40);
        let held = tree.edges.iter().filter(|edge| edge.join == Join::Holds);
        assert_eq!(held.count() + 1, tree.nodes.len(), "one place each");
    }

    #[test]
    fn the_worst_is_the_one_that_drops_now() {
        let (before, mut now) = (many(1), many(3));
        now.since(&before, 2_000_000_000);
        fold(&mut now);
        let fold = now.nodes.last().expect("a fold");
        assert_eq!(fold.worst.as_deref(), Some("worst 1:17: 5.0 dropped/s"));
        let sum = (10..50).map(|n| n * 100 * 8).sum::<u64>();
        assert_eq!(fold.rates.expect("rates").bps, sum);
    }

    #[test]
    fn few_siblings_and_the_default_class_are_not_folded() {
        let mut text = String::from("qdisc htb 1: root default 0x1\n");
        for n in 1..=FOLD_FROM {
            text += &format!("class htb 1:{n:x} root prio 0\n");
        }
        let mut tree = grow::grow(&record::read(&text, None), "eth0");
        let before = tree.clone();
        fold(&mut tree);
        assert_eq!(tree, before);
    }
}
