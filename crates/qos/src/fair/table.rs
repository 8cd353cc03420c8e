//! The tables of hosts and flows: found by key, stored in slabs, forgotten some time after they became idle.

use core::hint::black_box;
use std::collections::VecDeque;

use hashbrown::HashTable;
use wire::flow::Keys;

use super::Options;
use super::heaviest::Heaviest;
use super::member::{Flow, Host, HostKey};
use super::turns::NONE;
use crate::classify::{Hash, KeySet};
use crate::codel::control::Pace;

/// Idle flows that are remembered. RFC 8290 keeps CoDel's state of a flow whose queue is empty for a moment.
const IDLE_MAX: usize = 4_096;

/// The bit of `rests` that an idle flow has.
const IDLE: u32 = 1;

/// A flow that became idle.
#[derive(Debug, Clone, Copy)]
struct Idle {
    hash: u64,
    flow: u32,
    /// Its entry of [`Table::rests`] at that time. If the entry has changed since, the flow is no longer idle.
    rests: u32,
    host: u32,
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
    /// Of each flow, the state of CoDel that only late packets read.
    pub(super) paces: Vec<Pace>,
    /// How often each flow became idle or was replaced by another, times 2; plus 1 while it is idle. These are separate
    /// from the flows, which may not be in the cache, because the processor cannot predict who is idle.
    rests: Vec<u32>,
    /// The place of each host in `heaviest`, and of each flow in its host's heap.
    host_places: Vec<u32>,
    flow_places: Vec<u32>,
    free_host: u32,
    /// Places in `flows` without a flow.
    free_flows: Vec<u32>,
    host_index: HashTable<u32>,
    flow_index: HashTable<u32>,
    /// Hosts by size.
    heaviest: Heaviest,
    /// Flows that became idle, in that order.
    idle: VecDeque<Idle>,
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
            paces: Vec::new(),
            rests: Vec::new(),
            host_places: Vec::new(),
            flow_places: Vec::new(),
            free_host: NONE,
            free_flows: Vec::new(),
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
            Some(&flow) if self.rests[flow as usize] & IDLE != 0 => {
                self.rests[flow as usize] &= !IDLE;
                self.awake(flow, quantum)
            }
            Some(&flow) => Found::waiting(flow),
            None => self.open(keys, hash, quantum),
        }
    }

    /// Adds a flow to its host's ring, and the host to the ring of hosts if needed.
    fn awake(&mut self, index: u32, quantum: i64) -> Found {
        let flow = &mut self.flows[index as usize];
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
        let index = self.place_flow(Flow::new(hash, host_index));
        let host = &mut self.hosts[host_index as usize];
        if is_full {
            host.shared = index;
            self.flows[index as usize].hash = !host.hash;
        }
        let hash = self.flows[index as usize].hash;
        let flows = &mut self.flows;
        self.flow_index
            .insert_unique(hash, index, |&flow| flows[flow as usize].hash);
        host.flows.add(flows, &mut self.flow_places, index);
        self.awake(index, quantum)
    }

    /// Stores a new flow and returns its index.
    fn place_flow(&mut self, flow: Flow) -> u32 {
        let Some(index) = self.free_flows.pop() else {
            self.flows.push(flow);
            self.paces.push(Pace::default());
            self.rests.push(0);
            self.flow_places.push(NONE);
            return self.flows.len() as u32 - 1;
        };
        self.flows[index as usize] = flow;
        let rests = &mut self.rests[index as usize];
        *rests = rests.wrapping_add(2) & !IDLE;
        index
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
            self.hosts.push(Host::new(key));
            self.host_places.push(NONE);
            self.hosts.len() as u32 - 1
        } else {
            let index = self.free_host;
            let host = &mut self.hosts[index as usize];
            self.free_host = host.next;
            // Keeps the heap's memory for the next host.
            let flows = core::mem::take(&mut host.flows);
            *host = Host::new(key);
            host.flows = flows;
            index
        };
        let hosts = &mut self.hosts;
        self.host_index
            .insert_unique(hash, index, |&host| hosts[host as usize].hash);
        self.heaviest.add(hosts, &mut self.host_places, index);
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
        let flow = &self.flows[index as usize];
        let (hash, host) = (flow.hash, flow.host);
        if self.hosts[host as usize].shared == index {
            self.hosts[host as usize].shared = NONE;
            self.forget_flow(index, hash, host);
            return;
        }
        let rests = &mut self.rests[index as usize];
        *rests = rests.wrapping_add(2) | IDLE;
        self.idle.push_back(Idle {
            hash,
            flow: index,
            rests: *rests,
            host,
        });
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
        let Some(idle) = self.idle.pop_front() else {
            return false;
        };
        if self.rests[idle.flow as usize] == idle.rests {
            self.forget_flow(idle.flow, idle.hash, idle.host);
            let host = &self.hosts[idle.host as usize];
            if host.flows.is_empty() && !host.has_turns {
                self.forget_host(idle.host);
            }
        }
        true
    }

    /// Forgets a flow with this hash and host, without a look at the flow: it may not be in the cache.
    fn forget_flow(&mut self, index: u32, hash: u64, host: u32) {
        self.rests[index as usize] &= !IDLE;
        self.free_flows.push(index);
        self.touch(index);
        if let Ok(entry) = self.flow_index.find_entry(hash, |&flow| flow == index) {
            entry.remove();
        }
        let host = &mut self.hosts[host as usize];
        host.flows.remove(&mut self.flow_places, index);
    }

    fn forget_host(&mut self, index: u32) {
        let host = &mut self.hosts[index as usize];
        let hash = host.hash;
        host.next = self.free_host;
        self.free_host = index;
        if let Ok(entry) = self.host_index.find_entry(hash, |&host| host == index) {
            entry.remove();
        }
        self.heaviest.remove(&mut self.host_places, index);
    }

    /// The longest flow of the host with the most bytes.
    pub(super) fn longest(&mut self) -> Option<u32> {
        let host = self.heaviest.find(&mut self.hosts, &mut self.host_places)?;
        let flows = &mut self.hosts[host as usize].flows;
        flows.find(&mut self.flows, &mut self.flow_places)
    }

    /// Records that a flow and its host grew.
    #[inline]
    pub(super) fn grew(&mut self, flow: u32) {
        let host = self.flows[flow as usize].host;
        let flows = &mut self.hosts[host as usize].flows;
        flows.raise(&mut self.flows, &mut self.flow_places, flow);
        self.heaviest
            .raise(&mut self.hosts, &mut self.host_places, host);
    }

    /// Reads a flow before its turn, so that its cache line is there then. The processor goes on meanwhile.
    #[inline]
    pub(super) fn touch(&self, index: u32) {
        if let Some(flow) = self.flows.get(index as usize) {
            black_box(flow.deficit);
        }
    }

    /// Forgets all hosts and flows.
    pub(super) fn clear(&mut self) {
        self.hosts.clear();
        self.flows.clear();
        self.paces.clear();
        self.rests.clear();
        self.host_places.clear();
        self.flow_places.clear();
        self.free_host = NONE;
        self.free_flows.clear();
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
