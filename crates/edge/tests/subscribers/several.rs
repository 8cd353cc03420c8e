//! Shaped subscribers on several paths, whose turns come in any order: rates of links, fairness, the order of each flow,
//! and every packet accounted for, while queues move and plans change.

use core::net::Ipv4Addr;
use std::collections::{HashMap, VecDeque};

use base::{Duration, Instant};
use edge::{Config, Discard, End, Handover, SubscriberKey};
use hqos::spec::{Depth, Node, NodeId, Rates, Template, TemplateId};
use hqos::{Plan, Shape};
use l2tp::Call;

use crate::cores::{Core, Dice};
use crate::packets::{FAR, udp};
use crate::stage::{Datagrams, LAC, Packets, Stage, from_tun, lns_config, pools, route};

/// UDP payload of each packet, and its length as an IP packet.
const PAYLOAD: usize = 972;
const LENGTH: usize = PAYLOAD + 28;

/// An edge with paths on other cores, and what left it.
struct Cores {
    stage: Stage,
    others: Vec<Core>,
    inboxes: Vec<VecDeque<Handover>>,
    told: u64,
    inside: Packets,
    outside: Datagrams,
    dice: Dice,
    refused: bool,
    /// Whether packets of a flow have no order: they arrive on different paths, or shapes are removed.
    anywhere: bool,
    /// Batches that wait for a path; a further one is refused.
    inbox_max: usize,
    /// The last number of each flow that arrived, and packets of each subscriber.
    last: HashMap<(Ipv4Addr, Ipv4Addr), u32>,
    arrived: HashMap<(Ipv4Addr, Ipv4Addr), Vec<(Instant, usize)>>,
    offered: u64,
    number: u32,
}

impl Cores {
    fn new(paths: u16, subscribers: usize, seed: u64) -> Self {
        let config = Config {
            paths,
            queue_packets_max: 1 << 16,
            ..lns_config()
        };
        let mut stage = Stage::with_pools(config, pools("10.0.0.1", "10.0.0.250"));
        let others = (1..paths).map(|number| Core {
            path: stage.lns.replica(number.into()),
            changes: VecDeque::new(),
            applied: 0,
            unreported: 0,
        });
        let others = others.collect();
        for n in 0..subscribers {
            // Some number their frames.
            let sequencing = n % 5 == 4;
            let call = Call {
                sequencing,
                ..Call::default()
            };
            stage.dial_call("alice", "sesame", call);
        }
        assert_eq!(stage.up.len(), subscribers);
        Self {
            stage,
            others,
            inboxes: (0..paths).map(|_| VecDeque::new()).collect(),
            told: 0,
            inside: Packets::default(),
            outside: Datagrams::default(),
            dice: Dice(seed),
            refused: false,
            anywhere: false,
            inbox_max: usize::MAX,
            last: HashMap::new(),
            arrived: HashMap::new(),
            offered: 0,
            number: 0,
        }
    }

    fn address(&self, n: usize) -> Ipv4Addr {
        let view = self.stage.lns.subscriber(self.stage.up[n]).unwrap();
        view.address.unwrap()
    }

    /// Passes batches into inboxes; those without room go back.
    fn pass(
        (inboxes, most): (&mut [VecDeque<Handover>], usize),
        batches: Vec<(usize, Handover)>,
        mut refuse: impl FnMut(usize, &Handover),
    ) {
        for (to, batch) in batches {
            match inboxes[to].len() < most {
                true => inboxes[to].push_back(batch),
                false => refuse(to, &batch),
            }
        }
    }

    /// A turn of the edge's owner.
    fn first_turn(&mut self) {
        let now = self.stage.now;
        let applied = self.others.iter().map(|core| core.applied).min();
        let edge = &mut self.stage.lns;
        while let Some(batch) = self.inboxes[0].pop_front() {
            edge.take_handover(&batch, now, &mut self.outside, &mut self.inside);
        }
        if let Some(applied) = applied {
            edge.applied(applied, now);
        }
        while edge.drain(now, &mut self.outside, &mut self.inside) {}
        let mut batches = Vec::new();
        edge.poll_handovers(&mut batches);
        let refused = &mut self.refused;
        Self::pass((&mut self.inboxes, self.inbox_max), batches, |to, batch| {
            *refused = true;
            edge.refuse_handover(to, batch);
        });
        while let Some(change) = edge.poll_change() {
            self.told += 1;
            for core in &mut self.others {
                core.changes.push_back(change.clone());
            }
        }
    }

    /// A turn of another path's owner. It may see only some of the changes.
    fn turn(&mut self, at: usize) {
        let changes = self.others[at].changes.len();
        let seen = self.dice.below(changes + 1).max(changes / 2);
        self.turn_until(at, seen);
    }

    fn turn_until(&mut self, at: usize, seen: usize) {
        let now = self.stage.now;
        let core = &mut self.others[at];
        while let Some(batch) = self.inboxes[at + 1].pop_front() {
            core.path
                .take_handover(&batch, now, &mut self.outside, &mut self.inside);
        }
        for change in core.changes.drain(..seen) {
            core.path.apply(change);
            core.unreported += 1;
        }
        core.path
            .retry_handovers(now, &mut self.outside, &mut self.inside);
        while core.path.drain(now, &mut self.outside, &mut self.inside) {}
        let mut batches = Vec::new();
        core.path.poll_handovers(&mut batches);
        let refused = &mut self.refused;
        Self::pass((&mut self.inboxes, self.inbox_max), batches, |to, batch| {
            *refused = true;
            core.path.refuse_handover(to, batch);
        });
        if !core.path.owes() {
            core.applied += core::mem::take(&mut core.unreported);
        }
    }

    /// Every core has a turn or none, in any order.
    fn turns(&mut self) {
        let all = self.others.len() + 1;
        for _ in 0..all {
            match self.dice.below(all + 1) {
                0 => self.first_turn(),
                one if one < all => self.turn(one - 1),
                _ => {}
            }
        }
        self.note();
    }

    /// Turns until nothing changes any more.
    fn settle(&mut self) {
        for _ in 0..12 {
            self.first_turn();
            for at in 0..self.others.len() {
                self.turn_until(at, self.others[at].changes.len());
            }
        }
        self.note();
        assert!(!self.stage.lns.is_moving());
    }

    /// Checks the order of what has left.
    fn note(&mut self) {
        let now = self.stage.now;
        for datagram in core::mem::take(&mut self.outside.sent) {
            // The packet ends each datagram.
            let packet = datagram[datagram.len() - LENGTH..].to_vec();
            self.inside.0.push(packet);
        }
        for packet in core::mem::take(&mut self.inside.0) {
            assert_eq!(packet.len(), LENGTH);
            let address =
                |at: usize| Ipv4Addr::from(<[u8; 4]>::try_from(&packet[at..at + 4]).unwrap());
            let flow = (address(12), address(16));
            let number = u32::from_be_bytes(packet[28..32].try_into().unwrap());
            let last = self.last.insert(flow, number);
            let in_order = last.is_none_or(|last| last < number);
            assert!(
                in_order || self.anywhere,
                "{flow:?}: {number} after {last:?}"
            );
            self.arrived.entry(flow).or_default().push((now, LENGTH));
        }
    }

    /// A packet of a subscriber that arrives on this path.
    fn offer(&mut self, n: usize, down: bool, at: usize) {
        let address = self.address(n);
        self.number += 1;
        let (from, to) = if down { (FAR, address) } else { (address, FAR) };
        let mut packet = udp(from, to, PAYLOAD, true);
        packet[28..32].copy_from_slice(&self.number.to_be_bytes());
        self.offered += 1;
        let now = self.stage.now;
        if down {
            let mut octets = from_tun(&packet);
            let taken = at.checked_sub(1).map(|at| {
                self.others[at]
                    .path
                    .forward(&mut octets, now, &mut self.outside)
            });
            if taken.is_none_or(|taken| taken == edge::Taken::Left) {
                self.stage.lns.forward(&mut octets, now, &mut self.outside);
            }
            return;
        }
        for datagram in self.stage.datagrams_up(&packet) {
            let taken = at.checked_sub(1).map(|at| {
                self.others[at]
                    .path
                    .receive(&route(LAC), &datagram, now, &mut self.inside)
            });
            if taken.is_none_or(|taken| taken == edge::Taken::Left) {
                self.stage
                    .lns
                    .receive(route(LAC), &datagram, now, &mut self.inside);
            }
        }
    }

    fn set(&mut self, n: usize, shape: Option<Shape>) {
        let (key, now) = (self.stage.up[n], self.stage.now);
        assert_eq!(self.stage.lns.set_shape(key, shape, now), Ok(true));
    }

    /// Ends a subscriber; another one dials in, which may get its place and its address.
    fn redial(&mut self, n: usize) {
        let (key, now) = (self.stage.up[n], self.stage.now);
        assert!(self.stage.lns.drop_subscriber(key, End::Administrator, now));
        self.stage.settle();
        self.stage.dial("alice", "sesame");
        self.stage.up[n] = self.stage.up.pop().unwrap();
    }

    fn home(&self, n: usize) -> Option<usize> {
        self.stage.lns.home(self.stage.up[n])
    }

    /// Bytes of one direction of these subscribers that arrived from one time to another.
    fn octets(&self, subscribers: &[usize], down: bool, from: Instant, to: Instant) -> u64 {
        let one = |&n: &usize| {
            let address = self.address(n);
            let flow = if down { (FAR, address) } else { (address, FAR) };
            let all = self.arrived.get(&flow).into_iter().flatten();
            all.filter(|(at, _)| (from..to).contains(at))
                .map(|(_, octets)| *octets as u64)
                .sum::<u64>()
        };
        subscribers.iter().map(one).sum()
    }

    /// Every packet that was offered has arrived, was counted as dropped, or is still queued.
    fn account(&mut self) {
        let arrived: usize = self.arrived.values().map(Vec::len).sum();
        let lns = &self.stage.lns;
        let dropped: u64 = Discard::all().map(|why| lns.discarded(why)).sum();
        let mut queued = 0;
        let keys = self.stage.up.clone();
        for key in keys {
            queued += self.queued(key);
        }
        assert_eq!(
            self.offered,
            arrived as u64 + dropped + queued,
            "{arrived} arrived, {dropped} dropped, {queued} queued"
        );
    }

    fn queued(&mut self, key: SubscriberKey) -> u64 {
        let Some(look) = self.stage.lns.look(key, 0) else {
            return 0;
        };
        self.settle();
        assert!(self.stage.lns.has_seen(&look));
        let views = look.take().expect("an answer");
        views.iter().map(|view| u64::from(view.packets)).sum()
    }
}

pub(crate) fn node(name: &str, parent: Option<u32>, bps: u64, weight: u32) -> Node {
    Node {
        name: name.to_owned(),
        parent: parent.map(NodeId),
        rates: Rates { down: bps, up: bps },
        weight,
    }
}

pub(crate) fn plan(nodes: Vec<Node>) -> Plan {
    let template = |name: &str, weight| Template {
        name: name.to_owned(),
        weight,
        depth: Depth {
            packets: 60,
            octets: 1 << 20,
        },
        // No packet is dropped for its delay, so that each queue stays full.
        target: Duration::from_secs(100),
        ..Template::default()
    };
    Plan {
        templates: vec![template("default", 1), template("double", 2)],
        nodes,
    }
}

fn shape(bps: u64, template: u16, node: Option<u32>) -> Shape {
    Shape {
        rates: Rates { down: bps, up: bps },
        template: TemplateId(template),
        node: node.map(NodeId),
    }
}

/// Jain's index.
fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}

/// Three links of 8 Mbit/s with four subscribers each, one of double weight; two more subscribers have no link.
fn three_links(paths: u16, seed: u64) -> Cores {
    let mut cores = Cores::new(paths, 14, seed);
    let nodes = ["a", "b", "c"].map(|name| node(name, None, 8_000_000, 1));
    let now = cores.stage.now;
    cores.stage.lns.set_plan(plan(nodes.to_vec()), now).unwrap();
    for n in 0..12 {
        let template = u16::from(n % 4 == 0);
        cores.set(n, Some(shape(0, template, Some(n as u32 / 4))));
    }
    (12..14).for_each(|n| cores.set(n, Some(shape(1_000_000, 0, None))));
    cores.settle();
    cores
}

/// Offers each subscriber more than its share for so many milliseconds. A flow arrives on one path.
fn load(cores: &mut Cores, ms: u64) {
    let paths = cores.others.len() + 1;
    for _ in 0..ms {
        for n in 0..14 {
            cores.offer(n, true, (n * 7) % paths);
            cores.offer(n, false, (n * 5 + 1) % paths);
        }
        for _ in 0..2 {
            cores.turns();
            cores.stage.now += Duration::from_micros(500);
        }
    }
}

#[test]
fn a_link_is_never_exceeded_and_is_shared_by_weight_on_any_number_of_paths() {
    for seed in 0..80 {
        let paths = 2 + (seed % 3) as u16;
        let mut cores = three_links(paths, seed);
        let homes: Vec<usize> = (0..12).map(|n| cores.home(n).unwrap()).collect();
        for tree in homes.chunks(4) {
            assert_eq!(tree, [tree[0]; 4], "{homes:?}");
        }
        let mut used = homes.clone();
        used.sort_unstable();
        used.dedup();
        assert_eq!(
            used.len(),
            usize::from(paths).min(3),
            "seed {seed}: {homes:?}"
        );
        load(&mut cores, 100);
        let start = cores.stage.now;
        load(&mut cores, 200);
        let end = cores.stage.now;
        cores.settle();
        for link in 0..3 {
            let all: Vec<usize> = (4 * link..4 * link + 4).collect();
            for down in [true, false] {
                let octets = cores.octets(&all, down, start, end) as f64;
                // 200 KB, and a burst of 5 ms.
                assert!((190e3..=206e3).contains(&octets), "seed {seed}: {octets}");
                let share = |&n: &usize| {
                    let weight = if n % 4 == 0 { 2.0 } else { 1.0 };
                    cores.octets(&[n], down, start, end) as f64 / weight
                };
                let shares: Vec<f64> = all.iter().map(share).collect();
                assert!(jain(&shares) >= 0.99, "seed {seed}: {shares:?}");
            }
        }
        for n in 12..14 {
            let octets = cores.octets(&[n], true, start, end) as f64;
            assert!((24e3..=27e3).contains(&octets), "seed {seed}: {octets}");
        }
        cores.account();
    }
}

#[test]
fn queues_that_move_lose_nothing_and_overtake_nothing() {
    let mut moved = 0;
    for seed in 0..120 {
        let paths = 2 + (seed % 3) as u16;
        let mut cores = three_links(paths, seed);
        for _ in 0..30 {
            load(&mut cores, 5);
            let n = cores.dice.below(14);
            let before = cores.home(n);
            let link = cores.dice.below(4) as u32;
            let bps = 500_000 * cores.dice.below(3) as u64;
            let node = (link < 3).then_some(link);
            cores.set(n, Some(shape(bps.max(100_000), 0, node)));
            moved += u32::from(cores.home(n) != before);
        }
        load(&mut cores, 20);
        cores.settle();
        assert!(!cores.refused);
        assert_eq!(
            cores.stage.lns.discarded(Discard::Handover),
            0,
            "seed {seed}"
        );
        assert_eq!(
            cores.stage.lns.discarded(Discard::NotOpen),
            0,
            "seed {seed}"
        );
        cores.account();
    }
    assert!(moved > 240, "{moved}");
}

#[test]
fn a_new_plan_that_joins_trees_brings_them_to_one_path() {
    for seed in 0..60 {
        let mut cores = three_links(2 + (seed % 3) as u16, seed);
        load(&mut cores, 30);
        let kept: Vec<u64> = (0..12).map(|n| cores.counted(n)).collect();
        let joined = vec![
            node("uplink", None, 10_000_000, 1),
            node("c", Some(0), 8_000_000, 1),
            node("b", Some(0), 8_000_000, 1),
            node("a", Some(0), 8_000_000, 1),
        ];
        let now = cores.stage.now;
        cores.stage.lns.set_plan(plan(joined), now).unwrap();
        load(&mut cores, 20);
        cores.settle();
        let homes: Vec<usize> = (0..12).map(|n| cores.home(n).unwrap()).collect();
        assert_eq!(homes, [homes[0]; 12], "seed {seed}");
        for (n, kept) in kept.into_iter().enumerate() {
            assert!(cores.counted(n) >= kept, "seed {seed}");
        }
        let start = cores.stage.now;
        load(&mut cores, 200);
        let end = cores.stage.now;
        let all: Vec<usize> = (0..12).collect();
        let octets = cores.octets(&all, true, start, end) as f64;
        assert!((243e3..=258e3).contains(&octets), "seed {seed}: {octets}");
        // Apart again: a tree keeps its path as long as it has subscribers.
        let now = cores.stage.now;
        let nodes = ["b", "a"].map(|name| node(name, None, 8_000_000, 1));
        cores.stage.lns.set_plan(plan(nodes.to_vec()), now).unwrap();
        load(&mut cores, 10);
        cores.settle();
        cores.account();
    }
}

impl Cores {
    /// Packets that a subscriber's queues have counted so far.
    fn counted(&mut self, n: usize) -> u64 {
        let key = self.stage.up[n];
        let look = self.stage.lns.look(key, 0).unwrap();
        self.settle();
        let views = look.take().expect("an answer");
        let one = |view: &hqos::View| view.counts.passed + view.counts.queued + view.counts.dropped;
        views.iter().map(one).sum()
    }
}

#[test]
fn a_path_that_is_behind_costs_counted_packets_and_no_queue() {
    const INBOX_MAX: usize = 8;
    for seed in 0..40 {
        let mut cores = three_links(3, seed);
        (cores.inbox_max, cores.anywhere) = (INBOX_MAX, true);
        for _ in 0..20 {
            // Only one path works for a while.
            let only = cores.dice.below(3);
            for _ in 0..2 * INBOX_MAX {
                (0..14).for_each(|n| cores.offer(n, true, only));
                match only {
                    0 => cores.first_turn(),
                    at => cores.turn(at - 1),
                }
                cores.note();
            }
            let n = cores.dice.below(12);
            let link = cores.dice.below(3) as u32;
            cores.set(n, Some(shape(0, 0, Some(link))));
            cores.stage.now += Duration::from_millis(1);
        }
        cores.settle();
        assert!(cores.refused, "seed {seed}");
        assert!(
            cores.stage.lns.discarded(Discard::Handover) > 0,
            "seed {seed}"
        );
        cores.account();
        // All queues work again.
        let start = cores.stage.now;
        load(&mut cores, 20);
        let end = cores.stage.now;
        for n in 0..14 {
            assert!(cores.octets(&[n], true, start, end) > 0, "seed {seed}: {n}");
        }
    }
}

#[test]
fn subscribers_that_end_or_lose_their_shape_while_queues_move_leave_nothing() {
    for seed in 0..80 {
        let mut cores = three_links(2 + (seed % 3) as u16, seed);
        // What is queued for a shape that is gone is discarded, by each path when it learns of that.
        cores.anywhere = true;
        for _ in 0..40 {
            load(&mut cores, 2);
            let n = cores.dice.below(14);
            let link = cores.dice.below(4) as u32;
            cores.set(n, Some(shape(200_000, 0, (link < 3).then_some(link))));
            match cores.dice.below(4) {
                0 => cores.set(n, None),
                1 => cores.redial(n),
                _ => {}
            }
            // Another one may move, or the same one again before its queues have arrived.
            let n = (n + cores.dice.below(2)) % 14;
            let link = cores.dice.below(3) as u32;
            cores.set(n, Some(shape(0, 1, Some(link))));
        }
        cores.settle();
        let lns = &cores.stage.lns;
        let paths = cores.others.len() + 1;
        let on_paths: u32 = (0..paths).map(|path| lns.queues_on(path)).sum();
        let shaped = (0..14).filter(|&n| cores.home(n).is_some()).count();
        assert_eq!(on_paths as usize, shaped, "seed {seed}");
        for n in 0..14 {
            let (key, home) = (cores.stage.up[n], cores.home(n));
            let look = cores.stage.lns.look(key, 0);
            cores.settle();
            let views = look.and_then(|look| look.take());
            assert_eq!(views.is_some(), home.is_some(), "seed {seed}: {n}");
        }
        let start = cores.stage.now;
        load(&mut cores, 50);
        let end = cores.stage.now;
        for n in 0..14 {
            for down in [true, false] {
                let octets = cores.octets(&[n], down, start, end);
                assert!(octets > 0, "seed {seed}: {n}");
            }
        }
    }
}
