//! A tree in virtual time, and an account of each of its packets.

use std::collections::{BTreeMap, HashMap};

use base::{Duration, Instant};
use qos::tree::{Spec, Tree};
use qos::{Discipline, Packet, Pool};
use wire::flow::{Flow, Keys};

use crate::trees::MTU;
use crate::way::{Gate, Way};

/// One byte at one bit per second, in billionths of a bit.
const OCTET: i128 = 8_000_000_000;

/// A waiting packet.
#[derive(Debug, Clone)]
struct Waiting {
    packet: Packet,
    way: Way,
}

/// A token bucket as its definition has it, and the span with the highest output.
#[derive(Debug, Clone)]
struct Bucket {
    level: i128,
    at: Instant,
    /// The maximum of "allowed minus sent" before a packet.
    start: i128,
    sent: i128,
}

/// A tree, its packets and its clock.
pub(crate) struct World {
    pub(crate) tree: Tree,
    pub(crate) now: Instant,
    pub(crate) sent: Vec<(Instant, Packet)>,
    pub(crate) lost: Vec<u32>,
    pool: Pool,
    waiting: BTreeMap<u32, Waiting>,
    offered: u32,
    sent_bytes: u64,
    /// When the tree last changed, if it ever did.
    since: Instant,
    changed: bool,
    buckets: HashMap<(Vec<u16>, u16, bool), Bucket>,
    /// The last packet sent of each flow.
    last: HashMap<Keys, u32>,
}

impl World {
    pub(crate) fn new(spec: &Spec) -> Self {
        Self {
            tree: Tree::new(spec, 5, Instant::ZERO).expect("it fits together"),
            now: Instant::ZERO,
            sent: Vec::new(),
            lost: Vec::new(),
            pool: Pool::new(100_000),
            waiting: BTreeMap::new(),
            offered: 0,
            sent_bytes: 0,
            since: Instant::ZERO,
            changed: false,
            buckets: HashMap::new(),
            last: HashMap::new(),
        }
    }

    pub(crate) fn offer(&mut self, keys: Keys, length: u32) {
        let packet = Packet {
            handle: self.offered,
            length,
            keys,
            arrived: self.now,
            marked: false,
        };
        let way = Way::of(self.tree.spec(), &keys);
        self.waiting.insert(self.offered, Waiting { packet, way });
        self.offered += 1;
        let id = self.pool.insert(packet).expect("the pool has room");
        let taken = self.tree.enqueue(&mut self.pool, id, self.now);
        self.count_lost();
        assert_eq!(taken, self.waiting.contains_key(&packet.handle));
    }

    fn count_lost(&mut self) {
        for (handle, _) in self.pool.discarded() {
            assert!(
                self.waiting.remove(&handle).is_some(),
                "{handle} is lost twice"
            );
            self.lost.push(handle);
        }
    }

    /// Dequeues one packet now.
    pub(crate) fn take(&mut self) -> Option<Packet> {
        let id = self.tree.dequeue(&mut self.pool, self.now);
        self.count_lost();
        let packet = self.pool.take(id?);
        let Waiting { packet: own, way } = self
            .waiting
            .remove(&packet.handle)
            .expect("it waited, and left only now");
        assert_eq!(
            (packet.length, packet.keys, packet.arrived),
            (own.length, own.keys, own.arrived)
        );
        let before = self.last.insert(packet.keys, packet.handle);
        assert!(
            before < Some(packet.handle),
            "a flow's packets stay in order"
        );
        self.nobody_was_before(&way);
        for gate in &way.gates {
            self.pass(gate, packet.length);
        }
        self.sent_bytes += u64::from(packet.length);
        self.sent.push((self.now, packet));
        Some(packet)
    }

    /// The first of two bands takes precedence, unless a rate limits it.
    fn nobody_was_before(&self, way: &Way) {
        for own in way.bands.iter().filter(|band| band.exact) {
            for (handle, other) in &self.waiting {
                let mut bands = other.way.bands.iter();
                let first = bands.any(|band| band.place == own.place && band.band < own.band);
                assert!(
                    !first || other.way.gates.len() > own.gates,
                    "{handle} of an earlier band waits at {:?}",
                    own.place
                );
            }
        }
    }

    /// No span that ends here exceeds `rate * span + burst`.
    fn pass(&mut self, gate: &Gate, length: u32) {
        let mut bucket = self.bucket(gate);
        let elapsed = self.now.since(self.since).as_nanos();
        let allowed = i128::from(gate.rate_bps) * i128::from(elapsed);
        bucket.start = bucket.start.max(allowed - bucket.sent);
        bucket.sent += i128::from(length) * OCTET;
        let most = i128::from(gate.burst + gate.held) * OCTET;
        let over = bucket.start - (allowed - bucket.sent) - most;
        assert!(over <= 0, "{gate:?}: {} octets too many", over / OCTET);
        bucket.level -= i128::from(length) * OCTET;
        self.buckets.insert(gate.name.clone(), bucket);
    }

    fn bucket(&self, gate: &Gate) -> Bucket {
        let full = i128::from(gate.size) * OCTET;
        let fresh = Bucket {
            // After a change a bucket may be empty and one packet in debt.
            level: if self.changed {
                -(i128::from(MTU) * OCTET)
            } else {
                full
            },
            at: self.since,
            start: i128::MIN,
            sent: 0,
        };
        let mut bucket = self.buckets.get(&gate.name).cloned().unwrap_or(fresh);
        let elapsed = self.now.since(bucket.at).as_nanos();
        bucket.level += i128::from(gate.rate_bps) * i128::from(elapsed);
        bucket.level = bucket.level.min(full);
        bucket.at = self.now;
        bucket
    }

    /// No packet waits while every bucket on its path is full.
    fn all_are_held_back(&self) {
        for (handle, waiting) in &self.waiting {
            let mut gates = waiting.way.gates.iter();
            let is_full = |gate: &Gate| self.bucket(gate).level >= i128::from(gate.size) * OCTET;
            assert!(
                !gates.all(is_full),
                "{handle} waits at {:?} for nothing: {:?}",
                self.now,
                self.tree.spec()
            );
        }
    }

    /// Advances time to `end`, and dequeues each packet as soon as it may leave.
    pub(crate) fn run_until(&mut self, end: Instant) {
        let mut in_vain = 0;
        while let Some(next) = self.tree.next_time(self.now) {
            if next > self.now {
                self.all_are_held_back();
            }
            if next > end {
                break;
            }
            if next.as_nanos() > self.now.as_nanos() + 1 {
                self.now = Instant::from_nanos(next.as_nanos() - 1);
                assert_eq!(self.take(), None, "nothing leaves before next_time");
            }
            self.now = self.now.max(next);
            if self.take().is_some() {
                in_vain = 0;
                continue;
            }
            in_vain += 1;
            assert!(
                in_vain < 20,
                "asked again and again: {:?}",
                self.tree.spec()
            );
            let again = self.tree.next_time(self.now);
            assert!(
                again.is_none_or(|again| again > self.now),
                "{:?}",
                self.tree.spec()
            );
        }
        self.now = self.now.max(end);
        self.check();
    }

    /// Waits until a packet may leave, and sends it over a link.
    pub(crate) fn step(&mut self, link_bps: u64) {
        let next = self.tree.next_time(self.now).expect("something waits");
        self.now = self.now.max(next);
        if let Some(packet) = self.take() {
            let time_ns = u64::from(packet.length) * 8_000_000_000 / link_bps;
            self.now += Duration::from_nanos(time_ns);
        }
    }

    /// Changes to another tree.
    pub(crate) fn change(&mut self, spec: &Spec) {
        let before = (self.tree.backlog(), self.tree.statistics());
        let changed = self.tree.change(spec, &mut self.pool, self.now);
        changed.expect("it fits together");
        assert_eq!(self.pool.discarded().count(), 0, "a change loses nothing");
        assert_eq!((self.tree.backlog(), self.tree.statistics()), before);
        for waiting in self.waiting.values_mut() {
            waiting.way = Way::of(spec, &waiting.packet.keys);
        }
        self.buckets.clear();
        (self.since, self.changed) = (self.now, true);
        self.check();
    }

    /// Every packet is where it should be, and counted once.
    pub(crate) fn check(&self) {
        let backlog = self.tree.backlog();
        let waiting = self.waiting.values().map(|waiting| waiting.packet.length);
        let bytes: u64 = waiting.map(u64::from).sum();
        assert_eq!(
            (backlog.packets as usize, backlog.bytes),
            (self.waiting.len(), bytes)
        );
        assert_eq!(self.pool.len() as usize, self.waiting.len());
        let statistics = self.tree.statistics();
        assert_eq!(statistics.sent_packets, self.sent.len() as u64);
        assert_eq!(statistics.sent_bytes, self.sent_bytes);
        assert_eq!(statistics.dropped, self.lost.len() as u64);
        let all = self.waiting.len() + self.sent.len() + self.lost.len();
        assert_eq!(all, self.offered as usize);
        self.check_classes();
    }

    /// The backlogs of the classes add up to the total backlog.
    fn check_classes(&self) {
        let classes = self.tree.classes();
        let below: u32 = classes
            .iter()
            .filter(|class| {
                let mut others = classes.iter();
                others.all(|other| other.parent.as_ref() != Some(&class.name))
            })
            .map(|class| class.backlog.packets)
            .sum();
        let details = self.tree.details();
        let direct = details.iter().find(|(name, _)| *name == "direct_qlen");
        let direct = direct.map_or(0, |(_, packets)| *packets);
        if !classes.is_empty() {
            assert_eq!(
                u64::from(below) + direct,
                u64::from(self.tree.backlog().packets)
            );
        }
    }

    /// Drains all packets.
    pub(crate) fn empty(&mut self) {
        self.run_until(self.now + Duration::from_secs(1_000));
        assert_eq!(self.tree.backlog(), qos::Backlog::default());
    }
}

/// Keys of a flow between numbered hosts.
pub(crate) fn keys(host: u8, port: u16, traffic_class: u8) -> Keys {
    let address = |last: u8| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last];
    Keys {
        mark: u32::from(port),
        traffic_class,
        outer: Flow {
            source: address(host),
            destination: address(99),
            source_port: port,
            destination_port: 443,
            protocol: 17,
        },
        ..Keys::default()
    }
}
