//! Packets, plans and a loop in virtual time.

use std::collections::HashMap;

use base::{Duration, Instant};
use hqos::spec::{Node, NodeId, Plan, Rates, Shape, Template, TemplateId};
use hqos::{Admission, Direction, Options, SubId, Tree, View};
use qos::Packet;
use wire::flow::Keys;

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A third each of 64, 576 and 1,500 bytes.
    pub(crate) fn length(&mut self) -> u32 {
        [64, 576, 1_500][self.below(3) as usize]
    }
}

pub(crate) fn options() -> Options {
    Options {
        direction: Direction::Down,
        packets_max: 100_000,
        octets_max: 256 << 20,
        subscribers_max: 1_000_000,
        seed: 7,
    }
}

pub(crate) fn node(name: &str, parent: Option<u32>, down: u64) -> Node {
    Node {
        name: name.to_owned(),
        parent: parent.map(NodeId),
        rates: Rates { down, up: down },
        weight: 1,
    }
}

pub(crate) fn template(name: &str, weight: u32) -> Template {
    Template {
        name: name.to_owned(),
        weight,
        ..Template::default()
    }
}

pub(crate) fn shape(down: u64, template: u16, node: Option<u32>) -> Shape {
    Shape {
        rates: Rates { down, up: down },
        template: TemplateId(template),
        node: node.map(NodeId),
    }
}

pub(crate) fn plan(templates: Vec<Template>, nodes: Vec<Node>) -> Plan {
    Plan { templates, nodes }
}

pub(crate) fn keys(host: u8, flow: u16) -> Keys {
    let mut keys = Keys::default();
    keys.outer.source = [9; 16];
    keys.outer.destination = [host.wrapping_add(1); 16];
    keys.outer.source_port = flow;
    keys.outer.protocol = 17;
    keys
}

/// A tree, its clock, and what it sent.
pub(crate) struct World {
    pub(crate) tree: Tree,
    pub(crate) now: Instant,
    /// Sent packets: when, owner, bytes, host and flow.
    pub(crate) sent: Vec<(Instant, u32, u32, (u8, u16))>,
    /// The queued packets by handle: bytes, host and flow.
    queued: HashMap<u32, (u32, (u8, u16))>,
    next: u32,
    pub(crate) lost: u64,
}

impl World {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            tree: Tree::new(plan, &options(), Instant::ZERO).unwrap(),
            now: Instant::ZERO,
            sent: Vec::new(),
            queued: HashMap::new(),
            next: 0,
            lost: 0,
        }
    }

    pub(crate) fn offer(&mut self, id: SubId, owner: u32, octets: u32, flow: (u8, u16)) {
        match self.tree.admit(id, octets, self.now) {
            Admission::Pass => self.sent.push((self.now, owner, octets, flow)),
            Admission::Queue => {
                self.next += 1;
                let packet = Packet {
                    handle: self.next,
                    length: octets,
                    keys: keys(flow.0, flow.1),
                    ..Packet::default()
                };
                self.queued.insert(self.next, (octets, flow));
                self.tree.push(id, packet, self.now);
                self.clean();
            }
            Admission::Drop => self.lost += 1,
        }
    }

    fn clean(&mut self) {
        for (handle, _) in self.tree.discarded() {
            self.queued
                .remove(&handle)
                .expect("it was queued, and is lost once");
            self.lost += 1;
        }
    }

    pub(crate) fn drain(&mut self) {
        while let Some(sent) = self.tree.pop(self.now) {
            let (octets, flow) = self.queued.remove(&sent.handle).expect("it was queued");
            self.sent.push((self.now, sent.owner, octets, flow));
        }
        self.clean();
    }

    pub(crate) fn view(&self, id: SubId, hosts_max: usize) -> Option<View> {
        self.tree.view(id, hosts_max, |handle| {
            let (_, (host, flow)) = self.queued[&handle];
            keys(host, flow).outer.destination
        })
    }

    pub(crate) fn queued(&self) -> usize {
        self.queued.len()
    }

    /// Runs for a time. `feed` is called every `step` and offers packets.
    pub(crate) fn run(&mut self, time: Duration, step: Duration, mut feed: impl FnMut(&mut Self)) {
        let end = self.now + time;
        let mut next_feed = self.now;
        while self.now < end {
            if self.now >= next_feed {
                feed(self);
                next_feed = self.now + step;
            }
            self.drain();
            let wake = self.tree.next_deadline().unwrap_or(end);
            self.now = wake.min(next_feed).min(end).max(self.now);
        }
    }

    /// Bytes per owner.
    pub(crate) fn octets(&self, owners: usize) -> Vec<u64> {
        let mut sums = vec![0; owners];
        for &(_, owner, octets, _) in &self.sent {
            sums[owner as usize] += u64::from(octets);
        }
        sums
    }
}

/// Jain's index: 1 if all are equal.
pub(crate) fn jain(values: &[u64]) -> f64 {
    let sum: f64 = values.iter().map(|&value| value as f64).sum();
    let squares: f64 = values.iter().map(|&value| (value as f64).powi(2)).sum();
    sum * sum / (values.len() as f64 * squares)
}
