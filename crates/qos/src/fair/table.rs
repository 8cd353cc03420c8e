//! The tables of hosts and flows: found by key, stored in slabs, forgotten some time after they became idle.

use std::collections::VecDeque;

use hashbrown::HashTable;
use wire::flow::Keys;

use super::Options;
use super::heaviest::{Heaviest, Weighed};
use crate::classify::{Hash, KeySet};
use crate::codel::control::{Control, Waiting};
use crate::packet::{Chain, Id, Pool};

pub(super) const NONE: u32 = u32::MAX;

/// The key of a host: the hash of its address under two secrets, or the entry shared by hosts beyond the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HostKey {
    One(u64, u64),
    Rest,
}

/// A ring of hosts, or of a host's flows, in the order of their turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ring {
    pub(super) first: u32,
    last: u32,
}

impl Default for Ring {
    fn default() -> Self {
        Self {
            first: NONE,
            last: NONE,
        }
    }
}

/// A member of a [`Ring`].
pub(super) trait Linked {
    fn next(&mut self) -> &mut u32;
}

impl Ring {
    pub(super) fn push<T: Linked>(&mut self, all: &mut [T], item: u32) {
        *all[item as usize].next() = NONE;
        match self.last {
            NONE => self.first = item,
            last => *all[last as usize].next() = item,
        }
        self.last = item;
    }

    pub(super) fn pop<T: Linked>(&mut self, all: &mut [T]) {
        if self.first != NONE {
            self.first = *all[self.first as usize].next();
        }
        if self.first == NONE {
            self.last = NONE;
        }
    }
}

/// New members go before old ones, but may not starve them: for each byte that old ones send, new ones may send
/// [`Turns::FAVOUR`] bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Turns {
    pub(super) new: Ring,
    pub(super) old: Ring,
    /// Bytes that new members may send before an old one gets its turn.
    credit: i64,
}

impl Turns {
    const FAVOUR: i64 = 16;

    /// The member whose turn it is, and whether it is a new one; `NONE` if there is no member.
    #[inline]
    pub(super) fn first(&self) -> (u32, bool) {
        if self.new.first != NONE && (self.credit > 0 || self.old.first == NONE) {
            (self.new.first, true)
        } else {
            (self.old.first, false)
        }
    }

    /// Charges the bytes that the member with the turn sent.
    #[inline]
    pub(super) fn sent(&mut self, new: bool, length: u32, quantum: i64) {
        let length = i64::from(length);
        let most = quantum * Self::FAVOUR;
        self.credit = if self.old.first == NONE {
            most
        } else if new {
            self.credit - length
        } else {
            most.min(self.credit + length * Self::FAVOUR)
        };
    }

    /// Moves the member with the turn to the end of the old ones.
    #[inline]
    pub(super) fn rotate<T: Linked>(&mut self, all: &mut [T], new: bool) {
        let first = self.remove(all, new);
        self.old.push(all, first);
    }

    /// Removes the member with the turn.
    #[inline]
    pub(super) fn remove<T: Linked>(&mut self, all: &mut [T], new: bool) -> u32 {
        let ring = if new { &mut self.new } else { &mut self.old };
        let first = ring.first;
        ring.pop(all);
        first
    }
}

/// A flow's packets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    pub(super) chain: Chain,
    pub(super) packets: u32,
    pub(super) bytes: u64,
}

impl Line {
    #[inline]
    pub(super) fn push(&mut self, pool: &mut Pool, id: Id) {
        self.packets += 1;
        self.bytes += u64::from(pool.length(id));
        self.chain.push(pool, id);
    }
}

impl Waiting for Line {
    #[inline]
    fn pop(&mut self, pool: &Pool) -> Option<Id> {
        let id = self.chain.pop(pool)?;
        self.packets -= 1;
        self.bytes -= u64::from(pool.length(id));
        Some(id)
    }

    #[inline]
    fn bytes_behind(&self) -> u64 {
        self.bytes
    }
}

/// Idle flows that are remembered. RFC 8290 keeps CoDel's state of a flow whose queue is empty for a moment.
const IDLE_MAX: usize = 4_096;

/// A flow that has packets, or had some a moment ago.
#[derive(Debug)]
pub(super) struct Flow {
    hash: u64,
    pub(super) line: Line,
    pub(super) deficit: i64,
    pub(super) host: u32,
    next: u32,
    pub(super) control: Control,
    place: u32,
    bound: u64,
    /// How often it became idle.
    rests: u32,
    is_idle: bool,
}

/// A host that has flows.
#[derive(Debug)]
pub(super) struct Host {
    key: HostKey,
    hash: u64,
    pub(super) turns: Turns,
    pub(super) deficit: i64,
    pub(super) packets: u32,
    pub(super) bytes: u64,
    next: u32,
    place: u32,
    bound: u64,
    /// The flow that further flows of the host share. A flow in it stays there while it exists, so that none of its
    /// packets overtakes another.
    shared: u32,
    /// Its flows by size, including idle ones.
    pub(super) flows: Heaviest,
    /// Whether it is in a ring.
    has_turns: bool,
}

impl Linked for Flow {
    #[inline]
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

impl Linked for Host {
    #[inline]
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

impl Weighed for Flow {
    #[inline]
    fn size(&self) -> u64 {
        self.line.bytes
    }

    #[inline]
    fn place(&mut self) -> &mut u32 {
        &mut self.place
    }

    #[inline]
    fn bound(&mut self) -> &mut u64 {
        &mut self.bound
    }
}

impl Weighed for Host {
    #[inline]
    fn size(&self) -> u64 {
        self.bytes
    }

    #[inline]
    fn place(&mut self) -> &mut u32 {
        &mut self.place
    }

    #[inline]
    fn bound(&mut self) -> &mut u64 {
        &mut self.bound
    }
}

/// All hosts and flows.
#[derive(Debug)]
pub(super) struct Table {
    host_hashes: [Hash; 2],
    flow_hash: Hash,
    hosts_max: usize,
    flows_max: usize,
    pub(super) hosts: Vec<Host>,
    pub(super) flows: Vec<Flow>,
    free_host: u32,
    free_flow: u32,
    host_index: HashTable<u32>,
    flow_index: HashTable<u32>,
    /// Hosts by size.
    heaviest: Heaviest,
    /// Flows that became idle, each with its idle count at that time. If the count has changed since, the flow is no
    /// longer idle.
    idle: VecDeque<(u32, u32)>,
    hosts_with_turns: u64,
    flows_with_turns: u64,
    /// Packets whose host, or whose flow, had to use the shared entry.
    pub(super) shared_host: u64,
    pub(super) shared_flow: u64,
}

impl Table {
    pub(super) fn new(options: &Options, seed: u64) -> Self {
        let all: Vec<_> = options.hosts.iter().chain(options.flows.iter()).collect();
        let hash = |keys, nth: u64| Hash::new(keys, 0, seed.rotate_left(20) ^ nth, 0);
        Self {
            host_hashes: [hash(options.hosts, 1), hash(options.hosts, 2)],
            flow_hash: hash(KeySet::of(&all), 3),
            hosts_max: options.hosts_max as usize,
            flows_max: options.flows_max as usize,
            hosts: Vec::new(),
            flows: Vec::new(),
            free_host: NONE,
            free_flow: NONE,
            host_index: HashTable::new(),
            flow_index: HashTable::new(),
            heaviest: Heaviest::default(),
            idle: VecDeque::new(),
            hosts_with_turns: 0,
            flows_with_turns: 0,
            shared_host: 0,
            shared_flow: 0,
        }
    }

    /// Hosts that are not idle.
    pub(super) fn hosts_len(&self) -> u64 {
        self.hosts_with_turns
    }

    /// Flows that are not idle.
    pub(super) fn flows_len(&self) -> u64 {
        self.flows_with_turns
    }

    /// The flow for a packet with `keys`: its own or the shared one.
    #[inline]
    pub(super) fn flow_of(&mut self, keys: &Keys, quantum: i64) -> Found {
        let hash = self.flow_hash.value(keys);
        let found = self
            .flow_index
            .find(hash, |&flow| self.flows[flow as usize].hash == hash);
        match found {
            Some(&flow) if self.flows[flow as usize].is_idle => self.awake(flow, quantum),
            Some(&flow) => Found::waiting(flow),
            None => self.open(keys, hash, quantum),
        }
    }

    /// Adds a flow to its host's ring, and the host to the ring of hosts if needed.
    fn awake(&mut self, index: u32, quantum: i64) -> Found {
        let flow = &mut self.flows[index as usize];
        flow.is_idle = false;
        flow.deficit = quantum;
        let host_index = flow.host;
        let host = &mut self.hosts[host_index as usize];
        host.turns.new.push(&mut self.flows, index);
        self.flows_with_turns += 1;
        let is_new = !host.has_turns;
        if is_new {
            host.has_turns = true;
            host.deficit = quantum;
            self.hosts_with_turns += 1;
        }
        Found {
            flow: index,
            is_new: true,
            new_host: is_new.then_some(host_index),
        }
    }

    /// A new flow for a packet with this hash, or the shared one.
    fn open(&mut self, keys: &Keys, hash: u64, quantum: i64) -> Found {
        while self.flow_index.len() >= self.flows_max && self.forget_one() {}
        let host_index = self.open_host(keys);
        let shared = self.hosts[host_index as usize].shared;
        let is_full = self.flow_index.len() >= self.flows_max;
        if shared != NONE || is_full {
            self.shared_flow += 1;
        }
        if shared != NONE {
            return Found::waiting(shared);
        }
        let flow = Flow {
            hash,
            line: Line::default(),
            deficit: quantum,
            host: host_index,
            next: NONE,
            control: Control::default(),
            place: 0,
            bound: 0,
            rests: 0,
            is_idle: false,
        };
        let index = if self.free_flow == NONE {
            self.flows.push(flow);
            self.flows.len() as u32 - 1
        } else {
            let index = self.free_flow;
            let place = &mut self.flows[index as usize];
            self.free_flow = place.next;
            let rests = place.rests.wrapping_add(1);
            *place = Flow { rests, ..flow };
            index
        };
        let host = &mut self.hosts[host_index as usize];
        if is_full {
            host.shared = index;
            self.flows[index as usize].hash = !host.hash;
        }
        let hash = self.flows[index as usize].hash;
        let flows = &mut self.flows;
        self.flow_index
            .insert_unique(hash, index, |&flow| flows[flow as usize].hash);
        host.flows.add(flows, index);
        self.awake(index, quantum)
    }

    fn open_host(&mut self, keys: &Keys) -> u32 {
        let [first, second] = &self.host_hashes;
        let mut key = HostKey::One(first.value(keys), second.value(keys));
        if let Some(host) = self.find_host(key) {
            return host;
        }
        while self.host_index.len() >= self.hosts_max && self.forget_one() {}
        let found = self.find_host(HostKey::Rest);
        let in_use = found.is_some_and(|host| self.hosts[host as usize].shared != NONE);
        if in_use || self.host_index.len() >= self.hosts_max {
            self.shared_host += 1;
            key = HostKey::Rest;
            if let Some(host) = found {
                return host;
            }
        }
        let hash = key.hash();
        let index = if self.free_host == NONE {
            self.hosts.push(Host::new(key, hash));
            self.hosts.len() as u32 - 1
        } else {
            let index = self.free_host;
            let host = &mut self.hosts[index as usize];
            self.free_host = host.next;
            // Keeps the heap's memory for the next host.
            let flows = core::mem::take(&mut host.flows);
            *host = Host::new(key, hash);
            host.flows = flows;
            index
        };
        let hosts = &mut self.hosts;
        self.host_index
            .insert_unique(hash, index, |&host| hosts[host as usize].hash);
        self.heaviest.add(hosts, index);
        index
    }

    fn find_host(&self, key: HostKey) -> Option<u32> {
        self.host_index
            .find(key.hash(), |&host| self.hosts[host as usize].key == key)
            .copied()
    }

    /// Marks a flow as idle: it is empty and in no ring.
    pub(super) fn rest_flow(&mut self, index: u32) {
        self.flows_with_turns -= 1;
        let flow = &mut self.flows[index as usize];
        if self.hosts[flow.host as usize].shared == index {
            self.forget_flow(index);
            return;
        }
        flow.is_idle = true;
        flow.rests = flow.rests.wrapping_add(1);
        self.idle.push_back((index, flow.rests));
        while self.idle.len() > IDLE_MAX {
            self.forget_one();
        }
    }

    /// Marks a host as idle: it has no flow in a ring, and is in none.
    pub(super) fn rest_host(&mut self, index: u32) {
        self.hosts_with_turns -= 1;
        let host = &mut self.hosts[index as usize];
        host.has_turns = false;
        if host.flows.is_empty() {
            self.forget_host(index);
        }
    }

    /// Forgets the flow that has been idle the longest, if it still is; returns whether there was one.
    fn forget_one(&mut self) -> bool {
        let Some((index, rests)) = self.idle.pop_front() else {
            return false;
        };
        let flow = &self.flows[index as usize];
        if flow.is_idle && flow.rests == rests {
            let host_index = flow.host;
            self.forget_flow(index);
            let host = &self.hosts[host_index as usize];
            if host.flows.is_empty() && !host.has_turns {
                self.forget_host(host_index);
            }
        }
        true
    }

    fn forget_flow(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let (hash, host) = (flow.hash, flow.host);
        flow.is_idle = false;
        flow.next = self.free_flow;
        self.free_flow = index;
        if let Ok(entry) = self.flow_index.find_entry(hash, |&flow| flow == index) {
            entry.remove();
        }
        let host = &mut self.hosts[host as usize];
        if host.shared == index {
            host.shared = NONE;
        }
        host.flows.remove(&mut self.flows, index);
    }

    fn forget_host(&mut self, index: u32) {
        let host = &mut self.hosts[index as usize];
        let hash = host.hash;
        host.next = self.free_host;
        self.free_host = index;
        if let Ok(entry) = self.host_index.find_entry(hash, |&host| host == index) {
            entry.remove();
        }
        self.heaviest.remove(&mut self.hosts, index);
    }

    /// The longest flow of the host with the most bytes.
    pub(super) fn longest(&mut self) -> Option<u32> {
        let host = self.heaviest.find(&mut self.hosts)?;
        self.hosts[host as usize].flows.find(&mut self.flows)
    }

    /// Records that a flow and its host grew.
    #[inline]
    pub(super) fn grew(&mut self, flow: u32) {
        let host = self.flows[flow as usize].host;
        self.hosts[host as usize].flows.raise(&mut self.flows, flow);
        self.heaviest.raise(&mut self.hosts, host);
    }

    /// Forgets all hosts and flows.
    pub(super) fn clear(&mut self) {
        self.hosts.clear();
        self.flows.clear();
        self.free_host = NONE;
        self.free_flow = NONE;
        self.host_index.clear();
        self.flow_index.clear();
        self.heaviest.clear();
        self.idle.clear();
        self.hosts_with_turns = 0;
        self.flows_with_turns = 0;
    }
}

/// The result of [`Table::flow_of`].
pub(super) struct Found {
    pub(super) flow: u32,
    /// Whether the flow just got turns.
    pub(super) is_new: bool,
    /// Its host, if the caller must give it turns.
    pub(super) new_host: Option<u32>,
}

impl Found {
    fn waiting(flow: u32) -> Self {
        Self {
            flow,
            is_new: false,
            new_host: None,
        }
    }
}

impl HostKey {
    fn hash(self) -> u64 {
        match self {
            HostKey::One(first, _) => first,
            HostKey::Rest => 0,
        }
    }
}

impl Host {
    fn new(key: HostKey, hash: u64) -> Self {
        Self {
            key,
            hash,
            turns: Turns::default(),
            deficit: 0,
            packets: 0,
            bytes: 0,
            next: NONE,
            place: 0,
            bound: 0,
            shared: NONE,
            flows: Heaviest::default(),
            has_turns: false,
        }
    }
}
