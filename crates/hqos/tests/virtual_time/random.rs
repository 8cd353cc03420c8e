//! Random operations against a plain model: nothing is lost, duplicated or reordered within a flow.

use std::collections::{HashMap, VecDeque};

use crate::world::{Random, keys, node, options, plan, shape, template};
use base::{Duration, Instant};
use hqos::spec::{Depth, Fairness, Plan, Template};
use hqos::{Admission, Options, SubId, Tree};
use qos::Packet;

type FlowKey = (u32, u8, u16);

/// A tree, and a model of its packets.
struct Pair {
    tree: Tree,
    random: Random,
    now: Instant,
    ids: HashMap<u32, SubId>,
    flows: HashMap<FlowKey, VecDeque<u32>>,
    flow_of: HashMap<u32, FlowKey>,
    plan: Plan,
    next: u32,
    owners: u32,
    offered: u64,
    passed: u64,
    sent: u64,
    lost: u64,
}

fn plan_of(random: &mut Random) -> Plan {
    let fairness = [Fairness::Hosts, Fairness::Flows, Fairness::None];
    let templates = (0..3).map(|n| Template {
        fairness: fairness[random.below(3) as usize],
        depth: Depth {
            packets: 1 + random.below(40) as u32,
            octets: 1_514 + random.below(30_000) as u32,
        },
        ..template(&format!("t{n}"), 1 + random.below(5) as u32)
    });
    let templates = templates.collect();
    let rate = |random: &mut Random| random.below(3) * random.below(20_000_000);
    let nodes = (0..5u32).map(|n| {
        let parent = (n > 0 && random.below(4) > 0).then(|| random.below(n.into()) as u32);
        node(
            &format!("n{}", random.below(100) * 5 + u64::from(n)),
            parent,
            rate(random),
        )
    });
    let nodes = nodes.collect();
    plan(templates, nodes)
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let plan = plan_of(&mut random);
        let options = Options {
            packets_max: 20 + random.below(200) as u32,
            octets_max: 20_000 + random.below(100_000),
            ..options()
        };
        Self {
            tree: Tree::new(&plan, &options, Instant::ZERO).unwrap(),
            random,
            now: Instant::ZERO,
            ids: HashMap::new(),
            flows: HashMap::new(),
            flow_of: HashMap::new(),
            plan,
            next: 0,
            owners: 0,
            offered: 0,
            passed: 0,
            sent: 0,
            lost: 0,
        }
    }

    fn shape(&mut self) -> hqos::Shape {
        let random = &mut self.random;
        let bps = random.below(3) * random.below(10_000_000);
        let node = (random.below(4) > 0).then(|| random.below(5) as u32);
        shape(bps, random.below(3) as u16, node)
    }

    fn any(&mut self) -> Option<(u32, SubId)> {
        let mut all: Vec<_> = self.ids.iter().map(|(&owner, &id)| (owner, id)).collect();
        all.sort_by_key(|one| one.0);
        let at = self.random.below(all.len().max(1) as u64) as usize;
        all.get(at).copied()
    }

    fn step(&mut self) {
        match self.random.below(40) {
            0..=1 => {
                let shape = self.shape();
                self.owners += 1;
                let id = self.tree.add(&shape, self.owners, self.now).unwrap();
                self.ids.insert(self.owners, id);
            }
            2 => {
                if let Some((owner, id)) = self.any() {
                    self.tree.remove(id);
                    self.ids.remove(&owner);
                    self.clean();
                    assert!(self.flow_of.values().all(|flow| flow.0 != owner));
                }
            }
            3 => {
                let shape = self.shape();
                if let Some((_, id)) = self.any() {
                    assert!(self.tree.change(id, &shape, self.now));
                }
            }
            4 if self.random.below(5) == 0 => {
                self.plan = plan_of(&mut self.random);
                self.tree.set_plan(&self.plan, self.now).unwrap();
            }
            5..=28 => self.offer(),
            _ => {
                let most = self.random.below(20);
                self.pop(most);
                let wait = 1 << self.random.below(24);
                self.now += Duration::from_nanos(self.random.below(wait));
            }
        }
        let packets = self.flow_of.len() as u32;
        assert_eq!(self.tree.packets(), packets);
        assert_eq!(self.tree.next_deadline().is_some(), packets > 0);
        assert_eq!(
            self.offered,
            self.passed + self.sent + self.lost + u64::from(packets)
        );
    }

    fn offer(&mut self) {
        let Some((owner, id)) = self.any() else {
            return;
        };
        let octets = self.random.length();
        let (host, flow) = (self.random.below(3) as u8, self.random.below(4) as u16);
        self.offered += 1;
        let key = (owner, host, flow);
        match self.tree.admit(id, octets, self.now) {
            Admission::Pass => {
                let waiting = self.flows.get(&key).is_some_and(|all| !all.is_empty());
                assert!(!waiting, "a packet overtook others of its flow");
                self.passed += 1;
            }
            Admission::Queue => {
                self.next += 1;
                let packet = Packet {
                    handle: self.next,
                    length: octets,
                    keys: keys(host, flow),
                    ..Packet::default()
                };
                self.flows.entry(key).or_default().push_back(self.next);
                self.flow_of.insert(self.next, key);
                self.tree.push(id, packet, self.now);
                self.clean();
            }
            Admission::Drop => self.lost += 1,
        }
    }

    fn clean(&mut self) {
        for (handle, _) in self.tree.discarded() {
            let key = self.flow_of.remove(&handle).expect("it was queued");
            let flow = self.flows.get_mut(&key).expect("its flow has packets");
            flow.retain(|&one| one != handle);
            self.lost += 1;
        }
    }

    fn pop(&mut self, most: u64) {
        for _ in 0..most {
            let Some(sent) = self.tree.pop(self.now) else {
                break;
            };
            // Packets that CoDel dropped before this one.
            self.clean();
            let key = self.flow_of.remove(&sent.handle).expect("it was queued");
            assert_eq!(key.0, sent.owner);
            let flow = self.flows.get_mut(&key).expect("its flow has packets");
            assert_eq!(flow.pop_front(), Some(sent.handle), "reordered");
            self.sent += 1;
        }
        self.clean();
    }

    /// Lets all packets leave.
    fn finish(&mut self) {
        while let Some(at) = self.tree.next_deadline() {
            self.now = self.now.max(at);
            self.pop(1_000_000);
        }
        assert_eq!(self.offered, self.passed + self.sent + self.lost);
        assert_eq!(
            (self.tree.packets(), self.tree.octets(), self.tree.waiting()),
            (0, 0, 0)
        );
    }
}

#[test]
fn hundreds_of_random_runs_lose_duplicate_and_reorder_nothing() {
    for seed in 0..400 {
        let run = std::panic::catch_unwind(|| {
            let mut pair = Pair::new(seed);
            (0..2_000).for_each(|_| pair.step());
            pair.finish();
        });
        assert!(run.is_ok(), "seed {seed}");
    }
}
