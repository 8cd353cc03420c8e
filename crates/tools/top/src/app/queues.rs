//! The queues of a shaper: two readings, and the tree as lines.

use control::rows::{QosNode, QosRun, QosSums, QosWay};

use crate::list::{Cursor, Move};

/// A discipline or class as a line: how deep it is in the tree, and its rates.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) node: QosNode,
    pub(crate) depth: usize,
    pub(crate) rates: Option<Rates>,
}

/// Rates between two readings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    /// Bytes sent per second.
    pub(crate) octets: f64,
    pub(crate) packets: f64,
    pub(crate) drops: f64,
    pub(crate) marks: f64,
}

/// The queues of a shaper.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    pub(crate) run: Option<QosRun>,
    pub(crate) lines: Vec<Line>,
    /// The rates of all queues of a direction, `up` and `down`.
    pub(crate) ways: [Option<Rates>; 2],
    pub(crate) cursor: Cursor<(String, String)>,
    keys: Vec<(String, String)>,
}

impl Queues {
    /// Takes a reading.
    pub(super) fn take(&mut self, run: QosRun) {
        let before = self.run.take();
        // Another process, or one that loaded another policy, counts anew.
        let before = before.filter(|before| before.pid == run.pid && before.reloads == run.reloads);
        let span = before.as_ref().and_then(|before| {
            let span = run.taken_ns.checked_sub(before.taken_ns)?;
            (span > 0).then_some(span as f64 / 1e9)
        });
        let rates = |before: Option<&QosSums>, now: &QosSums| between(before?, now, span?);
        let ways = [
            |run: &QosRun| run.up.clone(),
            |run: &QosRun| run.down.clone(),
        ];
        self.lines.clear();
        for (i, way) in ways.into_iter().enumerate() {
            let now = way(&run);
            let known = before.as_ref().map(way);
            self.ways[i] = rates(known.as_ref().map(|known| &known.sums), &now.sums);
            for node in &now.nodes {
                let same = known.as_ref().and_then(|known| find(known, &node.handle));
                self.lines.push(Line {
                    depth: depth(&now, node),
                    rates: rates(same.map(|same| &same.sums), &node.sums),
                    node: node.clone(),
                });
            }
        }
        let key = |line: &Line| (line.node.way.clone(), line.node.handle.clone());
        self.keys = self.lines.iter().map(key).collect();
        self.cursor.settle(&self.keys);
        self.run = Some(run);
    }

    pub(crate) fn keys(&self) -> &[(String, String)] {
        &self.keys
    }

    pub(super) fn go(&mut self, to: Move) {
        self.cursor.go(to, &self.keys);
    }
}

fn find<'a>(way: &'a QosWay, handle: &str) -> Option<&'a QosNode> {
    way.nodes.iter().find(|node| node.handle == handle)
}

/// The number of ancestors. A parent that is not listed ends the walk, and so does a circle.
fn depth(way: &QosWay, node: &QosNode) -> usize {
    let mut depth = 0;
    let mut above = node.parent.as_deref();
    while let Some(parent) = above
        && let Some(found) = find(way, parent)
        && depth < 8
    {
        depth += 1;
        above = found.parent.as_deref();
    }
    depth
}

fn between(before: &QosSums, now: &QosSums, span: f64) -> Option<Rates> {
    let rate = |counter: fn(&QosSums) -> u64| {
        Some(counter(now).checked_sub(counter(before))? as f64 / span)
    };
    Some(Rates {
        octets: rate(|sums| sums.bytes)?,
        packets: rate(|sums| sums.packets)?,
        drops: rate(|sums| sums.drops)?,
        marks: rate(|sums| sums.ecn_mark)?,
    })
}
