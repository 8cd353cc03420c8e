//! Hosts and flows with queued packets, of all subscribers together.
//!
//! Each host and each flow has an entry only while packets of it are queued, or until its next turn. Hosts take turns by
//! deficit round robin, and so do the flows of each host: new ones before old ones (RFC 8290), with CoDel on each flow
//! (RFC 8289).

use base::Instant;
use hashbrown::HashTable;
use qos::classify::{Hash, KeySet};
use qos::codel::control::{Control, Law, Pace, Tally, Turn, Waiting};
use qos::fair::turns::{Linked, NONE, Turns};
use qos::packet::Chain;
use qos::{Id, Pool, Reason};

use crate::spec::Fairness;
use crate::{Direction, MTU};

/// Flows of a queue that are found by a walk. A queue with more flows has its hosts and flows in the tables, until it is
/// empty. Most queues have few flows, and a walk over few costs less than entries in a table of all.
const WALK_MAX: u16 = 8;
/// Hosts and flows that a search for the longest one visits.
const SEARCH_MAX: usize = 64;

/// A subscriber's queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queue {
    /// Its hosts.
    turns: Turns,
    /// Distinguishes its hosts and flows from those of other subscribers.
    salt: u32,
    /// The caller's name for the subscriber.
    pub(crate) owner: u32,
    pub(crate) packets: u32,
    /// Bytes on the line.
    pub(crate) octets: u32,
    /// A host that had the most bytes when it last grew.
    heaviest: u32,
    /// The flow for all flows that found the table full. While it exists, new flows use it, so that no packet
    /// overtakes another of its flow.
    shared: u32,
    /// Flows with an entry.
    flows: u16,
    /// Whether its hosts and flows are in the tables.
    is_indexed: bool,
    /// The number of its template.
    pub(crate) template: u16,
    /// That of its first packet, so that no packet overtakes another of its flow when the template changes.
    fairness: Fairness,
}

impl Queue {
    pub(crate) fn new(salt: u32, owner: u32, template: u16) -> Self {
        Self {
            turns: Turns::default(),
            salt,
            owner,
            packets: 0,
            octets: 0,
            heaviest: NONE,
            shared: NONE,
            flows: 0,
            is_indexed: false,
            template,
            fairness: Fairness::Hosts,
        }
    }

    #[inline]
    fn salt(&self) -> u64 {
        u64::from(self.salt).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn remove(&mut self, packets: u32, octets: u32) {
        self.packets -= packets;
        self.octets -= octets;
    }
}

/// A flow with queued packets: one cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Flow {
    hash: u64,
    line: Line,
    deficit: i32,
    host: u32,
    next: u32,
    control: Control,
    pace: Pace,
}

const _: () = assert!(size_of::<Flow>() == 64);

#[derive(Debug, Clone, Copy, Default)]
struct Line {
    chain: Chain,
    octets: u32,
}

impl Waiting for Line {
    #[inline]
    fn pop(&mut self, pool: &Pool) -> Option<Id> {
        let id = self.chain.pop(pool)?;
        self.octets -= pool.length(id);
        Some(id)
    }

    #[inline]
    fn bytes_behind(&self) -> u64 {
        self.octets.into()
    }
}

#[derive(Debug)]
struct Host {
    hash: u64,
    turns: Turns,
    deficit: i32,
    octets: u32,
    packets: u32,
    next: u32,
    /// A flow that was the longest when it last grew.
    longest: u32,
}

impl Linked for Flow {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

impl Linked for Host {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

/// A packet's flow and host before they are looked up.
#[derive(Debug, Clone, Copy)]
struct Names {
    host: u64,
    flow: u64,
}

/// The hosts and flows of all queues.
#[derive(Debug)]
pub(crate) struct Flows {
    host_hash: Hash,
    flow_hash: Hash,
    flows_max: usize,
    hosts: Vec<Host>,
    flows: Vec<Flow>,
    free_hosts: Vec<u32>,
    free_flows: Vec<u32>,
    host_index: HashTable<u32>,
    flow_index: HashTable<u32>,
}

/// A host in a queue, for views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostView {
    /// Its address, IPv4 as `::ffff:a.b.c.d`.
    pub address: [u8; 16],
    /// Queued packets.
    pub packets: u32,
    /// Their bytes on the line.
    pub octets: u32,
    /// Its flows.
    pub flows: u32,
}

impl Flows {
    /// Tables for at most `flows_max` flows, and one more for each subscriber.
    pub(crate) fn new(direction: Direction, flows_max: u32, seed: u64) -> Self {
        let host = match direction {
            Direction::Down => KeySet::HOST_DST,
            Direction::Up => KeySet::HOST,
        };
        Self {
            host_hash: Hash::new(host, 0, seed ^ 1, 0),
            flow_hash: Hash::new(KeySet::INNERMOST, 0, seed ^ 2, 0),
            flows_max: flows_max as usize,
            hosts: Vec::new(),
            flows: Vec::new(),
            free_hosts: Vec::new(),
            free_flows: Vec::new(),
            host_index: HashTable::new(),
            flow_index: HashTable::new(),
        }
    }

    /// Adds a packet to a queue.
    #[inline]
    pub(crate) fn push(&mut self, queue: &mut Queue, fairness: Fairness, pool: &mut Pool, id: Id) {
        if queue.packets == 0 {
            queue.fairness = fairness;
        }
        let fairness = queue.fairness;
        let keys = pool.keys(id);
        let host = match fairness {
            Fairness::Hosts => self.host_hash.value(keys),
            Fairness::Flows | Fairness::None => 0,
        };
        let flow = match fairness {
            Fairness::Hosts | Fairness::Flows => self.flow_hash.value(keys),
            Fairness::None => 0,
        };
        let names = Names {
            host: host ^ queue.salt(),
            flow: flow ^ queue.salt().rotate_left(17),
        };
        let index = match self.find_flow(queue, names.flow) {
            Some(index) => index,
            None => self.open(queue, names),
        };
        let length = pool.length(id);
        let flow = &mut self.flows[index as usize];
        flow.line.chain.push(pool, id);
        flow.line.octets += length;
        let octets = flow.line.octets;
        let host_index = flow.host;
        let host = &mut self.hosts[host_index as usize];
        host.octets += length;
        host.packets += 1;
        let size = host.octets;
        let longest = host.longest;
        if longest != index
            && (longest == NONE || self.flows[longest as usize].line.octets < octets)
        {
            self.hosts[host_index as usize].longest = index;
        }
        if queue.heaviest != host_index
            && (queue.heaviest == NONE || self.hosts[queue.heaviest as usize].octets < size)
        {
            queue.heaviest = host_index;
        }
        queue.packets += 1;
        queue.octets += length;
    }

    #[inline]
    fn find_flow(&self, queue: &Queue, hash: u64) -> Option<u32> {
        if !queue.is_indexed {
            let mut flows = self
                .hosts_of(queue)
                .flat_map(|host| self.flows_of(&self.hosts[host as usize]));
            return flows.find(|&flow| self.flows[flow as usize].hash == hash);
        }
        let found = self
            .flow_index
            .find(hash, |&flow| self.flows[flow as usize].hash == hash);
        found.copied()
    }

    fn open(&mut self, queue: &mut Queue, names: Names) -> u32 {
        if queue.shared != NONE {
            return queue.shared;
        }
        let is_full = self.flows.len() - self.free_flows.len() >= self.flows_max;
        if queue.flows == WALK_MAX && !queue.is_indexed {
            self.index(queue);
        }
        let names = if is_full {
            Names {
                host: !queue.salt(),
                flow: !queue.salt(),
            }
        } else {
            names
        };
        let host = self.open_host(queue, names.host);
        let flow = Flow {
            hash: names.flow,
            line: Line::default(),
            deficit: MTU as i32,
            host,
            next: NONE,
            control: Control::default(),
            pace: Pace::default(),
        };
        let index = match self.free_flows.pop() {
            Some(index) => {
                self.flows[index as usize] = flow;
                index
            }
            None => {
                self.flows.push(flow);
                self.flows.len() as u32 - 1
            }
        };
        queue.flows = queue.flows.saturating_add(1);
        if queue.is_indexed {
            self.index_flow(index);
        }
        let turns = &mut self.hosts[host as usize].turns;
        turns.new.push(&mut self.flows, index);
        if is_full {
            queue.shared = index;
        }
        index
    }

    fn open_host(&mut self, queue: &mut Queue, hash: u64) -> u32 {
        let is_it = |host: u32| self.hosts[host as usize].hash == hash;
        let found = match queue.is_indexed {
            true => self.host_index.find(hash, |&host| is_it(host)).copied(),
            false => self.hosts_of(queue).find(|&host| is_it(host)),
        };
        if let Some(host) = found {
            return host;
        }
        let host = Host {
            hash,
            turns: Turns::default(),
            deficit: MTU as i32,
            octets: 0,
            packets: 0,
            next: NONE,
            longest: NONE,
        };
        let index = match self.free_hosts.pop() {
            Some(index) => {
                self.hosts[index as usize] = host;
                index
            }
            None => {
                self.hosts.push(host);
                self.hosts.len() as u32 - 1
            }
        };
        if queue.is_indexed {
            self.index_host(index);
        }
        queue.turns.new.push(&mut self.hosts, index);
        index
    }

    /// Enters the hosts and flows of a queue into the tables.
    fn index(&mut self, queue: &mut Queue) {
        queue.is_indexed = true;
        let hosts: Vec<u32> = self.hosts_of(queue).collect();
        for host in hosts {
            self.index_host(host);
            let flows: Vec<u32> = self.flows_of(&self.hosts[host as usize]).collect();
            flows.into_iter().for_each(|flow| self.index_flow(flow));
        }
    }

    fn index_host(&mut self, index: u32) {
        let hosts = &self.hosts;
        let hash = |&at: &u32| hosts[at as usize].hash;
        self.host_index.insert_unique(hash(&index), index, hash);
    }

    fn index_flow(&mut self, index: u32) {
        let flows = &self.flows;
        let hash = |&at: &u32| flows[at as usize].hash;
        self.flow_index.insert_unique(hash(&index), index, hash);
    }

    /// The hosts of a queue.
    #[inline]
    fn hosts_of(&self, queue: &Queue) -> impl Iterator<Item = u32> {
        chains(&queue.turns, |index| self.hosts[index as usize].next)
    }

    /// The flows of a host.
    #[inline]
    fn flows_of(&self, host: &Host) -> impl Iterator<Item = u32> {
        chains(&host.turns, |index| self.flows[index as usize].next)
    }

    fn close_flow(&mut self, queue: &mut Queue, index: u32) {
        let flow = &self.flows[index as usize];
        let host = &mut self.hosts[flow.host as usize];
        if host.longest == index {
            host.longest = NONE;
        }
        if queue.shared == index {
            queue.shared = NONE;
        }
        queue.flows = queue.flows.saturating_sub(1);
        if queue.is_indexed
            && let Ok(entry) = self.flow_index.find_entry(flow.hash, |&at| at == index)
        {
            entry.remove();
        }
        self.free_flows.push(index);
    }

    fn close_host(&mut self, queue: &mut Queue, index: u32) {
        if queue.heaviest == index {
            queue.heaviest = NONE;
        }
        let hash = self.hosts[index as usize].hash;
        if queue.is_indexed
            && let Ok(entry) = self.host_index.find_entry(hash, |&at| at == index)
        {
            entry.remove();
        }
        self.free_hosts.push(index);
    }

    /// Takes the packet of a queue that leaves next. Late packets before it are discarded or marked.
    pub(crate) fn take(
        &mut self,
        queue: &mut Queue,
        law: &Law,
        tally: &mut Tally,
        pool: &mut Pool,
        now: Instant,
    ) -> Option<Id> {
        let mut turn = Turn {
            law,
            tally,
            pool,
            now,
        };
        let id = loop {
            let (index, is_new) = queue.turns.first();
            if index == NONE {
                break None;
            }
            let host = &mut self.hosts[index as usize];
            if host.deficit <= 0 {
                host.deficit += MTU as i32;
                queue.turns.rotate(&mut self.hosts, is_new);
                continue;
            }
            if let Some(id) = self.take_from(queue, index, &mut turn) {
                let length = turn.pool.length(id);
                self.hosts[index as usize].deficit -= length as i32;
                queue.turns.sent(is_new, length, MTU.into());
                break Some(id);
            }
            if is_new && queue.turns.old.first != NONE {
                queue.turns.rotate(&mut self.hosts, is_new);
            } else {
                queue.turns.remove(&mut self.hosts, is_new);
                self.close_host(queue, index);
            }
        };
        if queue.packets == 0 {
            self.close_all(queue);
        }
        id
    }

    fn take_from(&mut self, queue: &mut Queue, host: u32, turn: &mut Turn<'_>) -> Option<Id> {
        loop {
            let turns = &mut self.hosts[host as usize].turns;
            let (index, is_new) = turns.first();
            if index == NONE {
                return None;
            }
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += MTU as i32;
                turns.rotate(&mut self.flows, is_new);
                continue;
            }
            let before = (flow.line.octets, turn.tally.dropped);
            let id = match flow.line.chain.is_empty() {
                true => {
                    flow.control.found_empty();
                    None
                }
                false => flow.control.dequeue(&mut flow.pace, turn, &mut flow.line),
            };
            let octets = before.0 - flow.line.octets;
            let packets = (turn.tally.dropped - before.1) as u32 + u32::from(id.is_some());
            if let Some(id) = id {
                let length = turn.pool.length(id);
                flow.deficit -= length as i32;
                turns.sent(is_new, length, MTU.into());
            } else if is_new && turns.old.first != NONE {
                turns.rotate(&mut self.flows, is_new);
            } else {
                turns.remove(&mut self.flows, is_new);
                self.close_flow(queue, index);
            }
            let host = &mut self.hosts[host as usize];
            host.octets -= octets;
            host.packets -= packets;
            queue.remove(packets, octets);
            if id.is_some() {
                return id;
            }
        }
    }

    /// Frees the hosts and flows of an empty queue.
    fn close_all(&mut self, queue: &mut Queue) {
        loop {
            let (host, is_new) = queue.turns.first();
            if host == NONE {
                break;
            }
            loop {
                let turns = &mut self.hosts[host as usize].turns;
                let (flow, is_new) = turns.first();
                if flow == NONE {
                    break;
                }
                turns.remove(&mut self.flows, is_new);
                self.close_flow(queue, flow);
            }
            queue.turns.remove(&mut self.hosts, is_new);
            self.close_host(queue, host);
        }
        *queue = Queue::new(queue.salt, queue.owner, queue.template);
    }

    /// Discards the first packet of the longest flow of the host with the most bytes, approximately: the host and the
    /// flow that were the largest when they last grew. Returns its length.
    pub(crate) fn discard_one(&mut self, queue: &mut Queue, pool: &mut Pool) -> Option<u32> {
        let host_index = self.heaviest(queue)?;
        let index = self.longest(host_index)?;
        let flow = &mut self.flows[index as usize];
        let id = flow.line.pop(pool)?;
        let length = pool.length(id);
        let host = &mut self.hosts[host_index as usize];
        host.octets -= length;
        host.packets -= 1;
        queue.remove(1, length);
        pool.discard(id, Reason::Overlimit);
        if queue.packets == 0 {
            self.close_all(queue);
        }
        Some(length)
    }

    /// Discards all packets of a queue; returns how many.
    pub(crate) fn clear(&mut self, queue: &mut Queue, pool: &mut Pool) -> u32 {
        let mut count = 0;
        while self.discard_one(queue, pool).is_some() {
            count += 1;
        }
        count
    }

    fn heaviest(&self, queue: &Queue) -> Option<u32> {
        let hint = queue.heaviest;
        if hint != NONE && self.hosts[hint as usize].packets > 0 {
            return Some(hint);
        }
        largest(&queue.turns, |index| {
            let host = &self.hosts[index as usize];
            (host.octets, host.next)
        })
    }

    fn longest(&self, host: u32) -> Option<u32> {
        let host = &self.hosts[host as usize];
        let hint = host.longest;
        if hint != NONE && !self.flows[hint as usize].line.chain.is_empty() {
            return Some(hint);
        }
        largest(&host.turns, |index| {
            let flow = &self.flows[index as usize];
            (flow.line.octets, flow.next)
        })
    }

    /// Up to `max` hosts of a queue.
    pub(crate) fn hosts(
        &self,
        queue: &Queue,
        pool: &Pool,
        direction: Direction,
        max: usize,
    ) -> Vec<HostView> {
        let hosts = self
            .hosts_of(queue)
            .map(|index| &self.hosts[index as usize]);
        let hosts = hosts.filter(|host| host.packets > 0).take(max);
        hosts
            .filter_map(|host| self.host_view(host, pool, direction))
            .collect()
    }

    fn host_view(&self, host: &Host, pool: &Pool, direction: Direction) -> Option<HostView> {
        let mut flows = 0;
        let mut first = None;
        for index in self.flows_of(host) {
            let packet = self.flows[index as usize].line.chain.first();
            flows += u32::from(packet.is_some());
            first = first.or(packet);
        }
        let flow = pool.keys(first?).innermost();
        Some(HostView {
            address: match direction {
                Direction::Down => flow.destination,
                Direction::Up => flow.source,
            },
            packets: host.packets,
            octets: host.octets,
            flows,
        })
    }
}

/// The members of both rings, new ones first.
#[inline]
fn chains(turns: &Turns, next: impl Fn(u32) -> u32) -> impl Iterator<Item = u32> {
    let some = |index: u32| (index != NONE).then_some(index);
    let old = turns.old.first;
    let mut at = turns.new.first;
    let mut is_old = false;
    core::iter::from_fn(move || {
        if at == NONE && !is_old {
            (at, is_old) = (old, true);
        }
        let index = some(at)?;
        at = next(index);
        Some(index)
    })
}

/// The largest of the first members that are not empty.
fn largest(turns: &Turns, member: impl Fn(u32) -> (u32, u32)) -> Option<u32> {
    let sized = chains(turns, |index| member(index).1).map(|index| (member(index).0, index));
    let sized = sized.filter(|&(size, _)| size > 0).take(SEARCH_MAX);
    sized.max_by_key(|&(size, _)| size).map(|(_, index)| index)
}
