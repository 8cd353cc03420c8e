//! Hosts and flows with queued packets, of all subscribers together.
//!
//! Most queues have packets of one flow, and these are in the queue itself: a packet then reads no other table. When a
//! packet of a second flow arrives, or the first packet is late, hosts and flows get entries, until the queue is empty.
//! Hosts take turns by deficit round robin, and so do the flows of each host: new ones before old ones (RFC 8290), with
//! CoDel on each flow (RFC 8289).

mod queue;
#[cfg(test)]
mod tests;
mod views;

use hashbrown::HashTable;
use qos::classify::{Hash, KeySet};
use qos::codel::control::{Control, Pace, Store, Turn, Waiting};
use qos::fair::turns::{Linked, NONE, Turns};
use qos::{Id, Packet, Reason};

use crate::packets::{Chain, New, Packets};
use crate::spec::Fairness;
use crate::{Direction, MTU};

pub(crate) use queue::Queue;
use queue::{Many, Members, Solo};
pub use views::HostView;

/// Flows of a queue that are found by a walk. A queue with more flows has its hosts and flows in the tables, until it is
/// empty. Most queues have few flows, and a walk over few costs less than entries in a table of all.
const WALK_MAX: u16 = 8;
/// Hosts and flows of a queue that are side by side: the processor loads all of them at once, while it would find one
/// after the other in lists.
const GROUP_HOSTS: u32 = 2;
const GROUP_FLOWS: u32 = 4;
/// Hosts and flows that a search for the longest one visits.
const SEARCH_MAX: usize = 64;

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

impl Waiting<Packets> for Line {
    #[inline]
    fn pop(&mut self, pool: &Packets) -> Option<Id> {
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
#[repr(align(64))]
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

impl Flow {
    fn new(hash: u64, host: u32) -> Self {
        Self {
            hash,
            line: Line::default(),
            deficit: MTU as i32,
            host,
            next: NONE,
            control: Control::default(),
            pace: Pace::default(),
        }
    }
}

impl Host {
    fn new(hash: u64) -> Self {
        Self {
            hash,
            turns: Turns::default(),
            deficit: MTU as i32,
            octets: 0,
            packets: 0,
            next: NONE,
            longest: NONE,
        }
    }
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

/// The hosts and flows of all queues.
#[derive(Debug)]
pub(crate) struct Flows {
    host_hash: Hash,
    flow_hash: Hash,
    flows_max: usize,
    /// In groups, as `flows`.
    hosts: Vec<Host>,
    flows: Vec<Flow>,
    free_groups: Vec<u32>,
    /// Places of groups that are given out one by one, to queues with more than a group.
    free_hosts: Vec<u32>,
    free_flows: Vec<u32>,
    /// Flows with an entry.
    open: usize,
    host_index: HashTable<u32>,
    flow_index: HashTable<u32>,
}

impl Flows {
    /// Tables for at most `flows_max` flows, and two more for each subscriber.
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
            free_groups: Vec::new(),
            free_hosts: Vec::new(),
            free_flows: Vec::new(),
            open: 0,
            host_index: HashTable::new(),
            flow_index: HashTable::new(),
        }
    }

    /// Adds a packet to a queue. `None` if there is no place for it.
    #[inline]
    pub(crate) fn push(
        &mut self,
        queue: &mut Queue,
        fairness: Fairness,
        packets: &mut Packets,
        packet: &Packet,
    ) -> Option<()> {
        if queue.packets == 0 {
            queue.fairness = fairness;
        }
        let keys = &packet.keys;
        let host = match queue.fairness {
            Fairness::Hosts => self.host_hash.value(keys),
            Fairness::Flows | Fairness::None => 0,
        };
        let flow = match queue.fairness {
            Fairness::Hosts | Fairness::Flows => self.flow_hash.value(keys),
            Fairness::None => 0,
        };
        let flow = flow ^ queue.salt().rotate_left(17);
        let new = New {
            handle: packet.handle,
            length: packet.length,
            arrived: packet.arrived,
            host: host ^ queue.salt(),
            is_capable: keys.traffic_class & 0b11 != 0,
            is_marked: packet.marked,
        };
        let id = packets.insert(new)?;
        match &mut queue.members {
            Members::Solo(solo) if queue.packets == 0 => {
                *solo = Solo {
                    hash: flow,
                    deficit: MTU as i32,
                    ..Solo::default()
                };
                solo.chain.push(packets, id);
            }
            Members::Solo(solo) if solo.hash == flow => solo.chain.push(packets, id),
            Members::Solo(_) | Members::Many(_) => {
                self.push_many(queue, packets, (id, flow, &new));
            }
        }
        queue.packets += 1;
        queue.octets += packet.length;
        Some(())
    }

    /// Adds a packet to the flow with this hash, if the queue has several.
    fn push_many(&mut self, queue: &mut Queue, packets: &mut Packets, one: (Id, u64, &New)) {
        let (id, hash, new) = one;
        let salt = queue.salt();
        let many = self.many(queue, packets);
        let index = match self.find_flow(many, hash) {
            Some(index) => index,
            None => self.open(many, salt, new.host, hash),
        };
        let flow = &mut self.flows[index as usize];
        flow.line.chain.push(packets, id);
        flow.line.octets += new.length;
        let octets = flow.line.octets;
        let host_index = flow.host;
        let host = &mut self.hosts[host_index as usize];
        host.octets += new.length;
        host.packets += 1;
        let size = host.octets;
        let longest = host.longest;
        if longest != index
            && (longest == NONE || self.flows[longest as usize].line.octets < octets)
        {
            self.hosts[host_index as usize].longest = index;
        }
        if many.heaviest != host_index
            && (many.heaviest == NONE || self.hosts[many.heaviest as usize].octets < size)
        {
            many.heaviest = host_index;
        }
    }

    /// The entries of a queue. If it had one flow without an entry, the flow gets one that goes on where it was.
    #[inline]
    fn many<'a>(&mut self, queue: &'a mut Queue, packets: &Packets) -> &'a mut Many {
        if let Members::Solo(solo) = queue.members {
            queue.members = Members::Many(self.spread(queue, solo, packets));
        }
        match &mut queue.members {
            Members::Many(many) => many,
            Members::Solo(_) => unreachable!("it was spread"),
        }
    }

    fn spread(&mut self, queue: &Queue, solo: Solo, packets: &Packets) -> Many {
        let mut many = Many {
            turns: Turns::default(),
            heaviest: NONE,
            shared: NONE,
            group: self.open_group(),
            flows: 0,
            used: 0,
            is_indexed: false,
        };
        let Some(first) = solo.chain.first() else {
            return many;
        };
        let host = self.open_host(&mut many, packets.host(first));
        let flow = self.open_flow(&mut many, host, solo.hash);
        let line = Line {
            chain: solo.chain,
            octets: queue.octets,
        };
        let entry = &mut self.flows[flow as usize];
        (entry.line, entry.deficit) = (line, solo.deficit);
        let entry = &mut self.hosts[host as usize];
        (entry.octets, entry.packets) = (queue.octets, queue.packets);
        (entry.deficit, entry.longest) = (solo.deficit, flow);
        many.heaviest = host;
        if solo.has_sent {
            many.turns.sent(true, 0, MTU.into());
            entry.turns.sent(true, 0, MTU.into());
        }
        if solo.is_old {
            entry.turns.rotate(&mut self.flows, true);
            many.turns.rotate(&mut self.hosts, true);
        }
        many
    }

    #[inline]
    fn find_flow(&self, many: &Many, hash: u64) -> Option<u32> {
        if !many.is_indexed {
            let mut flows = self
                .hosts_of(many)
                .flat_map(|host| self.flows_of(&self.hosts[host as usize]));
            return flows.find(|&flow| self.flows[flow as usize].hash == hash);
        }
        let found = self
            .flow_index
            .find(hash, |&flow| self.flows[flow as usize].hash == hash);
        found.copied()
    }

    fn open(&mut self, many: &mut Many, salt: u64, host: u64, flow: u64) -> u32 {
        if many.shared != NONE {
            return many.shared;
        }
        let is_full = self.open >= self.flows_max;
        if many.flows == WALK_MAX && !many.is_indexed {
            self.index(many);
        }
        let (host, flow) = if is_full {
            (!salt, !salt)
        } else {
            (host, flow)
        };
        let host = self.open_host(many, host);
        let index = self.open_flow(many, host, flow);
        if is_full {
            many.shared = index;
        }
        index
    }

    /// Places for the first hosts and flows of a queue.
    fn open_group(&mut self) -> u32 {
        if let Some(group) = self.free_groups.pop() {
            return group;
        }
        let group = self.flows.len() as u32 / GROUP_FLOWS;
        let flows = self.flows.len() + GROUP_FLOWS as usize;
        let hosts = self.hosts.len() + GROUP_HOSTS as usize;
        self.flows.resize_with(flows, || Flow::new(0, NONE));
        self.hosts.resize_with(hosts, || Host::new(0));
        group
    }

    /// Makes sure that single places for a host and a flow are free.
    fn split_group(&mut self) {
        if self.free_hosts.is_empty() || self.free_flows.is_empty() {
            let group = self.open_group();
            let flows = group * GROUP_FLOWS..(group + 1) * GROUP_FLOWS;
            let hosts = group * GROUP_HOSTS..(group + 1) * GROUP_HOSTS;
            self.free_flows.extend(flows);
            self.free_hosts.extend(hosts);
        }
    }

    fn open_flow(&mut self, many: &mut Many, host: u32, hash: u64) -> u32 {
        let flow = Flow::new(hash, host);
        let index = match many.take(0, GROUP_FLOWS) {
            Some(at) => many.group * GROUP_FLOWS + at,
            None => {
                self.split_group();
                self.free_flows.pop().expect("a group has flows")
            }
        };
        self.flows[index as usize] = flow;
        self.open += 1;
        many.flows = many.flows.saturating_add(1);
        if many.is_indexed {
            self.index_flow(index);
        }
        let turns = &mut self.hosts[host as usize].turns;
        turns.new.push(&mut self.flows, index);
        index
    }

    fn open_host(&mut self, many: &mut Many, hash: u64) -> u32 {
        let is_it = |host: u32| self.hosts[host as usize].hash == hash;
        let found = match many.is_indexed {
            true => self.host_index.find(hash, |&host| is_it(host)).copied(),
            false => self.hosts_of(many).find(|&host| is_it(host)),
        };
        if let Some(host) = found {
            return host;
        }
        let host = Host::new(hash);
        let index = match many.take(GROUP_FLOWS, GROUP_HOSTS) {
            Some(at) => many.group * GROUP_HOSTS + at,
            None => {
                self.split_group();
                self.free_hosts.pop().expect("a group has hosts")
            }
        };
        self.hosts[index as usize] = host;
        if many.is_indexed {
            self.index_host(index);
        }
        many.turns.new.push(&mut self.hosts, index);
        index
    }

    /// Enters the hosts and flows of a queue into the tables.
    fn index(&mut self, many: &mut Many) {
        many.is_indexed = true;
        let hosts: Vec<u32> = self.hosts_of(many).collect();
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
    fn hosts_of(&self, many: &Many) -> impl Iterator<Item = u32> {
        chains(&many.turns, |index| self.hosts[index as usize].next)
    }

    /// The flows of a host.
    #[inline]
    fn flows_of(&self, host: &Host) -> impl Iterator<Item = u32> {
        chains(&host.turns, |index| self.flows[index as usize].next)
    }

    fn close_flow(&mut self, many: &mut Many, index: u32) {
        let flow = &self.flows[index as usize];
        let host = &mut self.hosts[flow.host as usize];
        if host.longest == index {
            host.longest = NONE;
        }
        if many.shared == index {
            many.shared = NONE;
        }
        many.flows = many.flows.saturating_sub(1);
        if many.is_indexed
            && let Ok(entry) = self.flow_index.find_entry(flow.hash, |&at| at == index)
        {
            entry.remove();
        }
        self.open -= 1;
        match index.checked_sub(many.group * GROUP_FLOWS) {
            Some(at) if at < GROUP_FLOWS => many.used &= !(1 << at),
            _ => self.free_flows.push(index),
        }
    }

    fn close_host(&mut self, many: &mut Many, index: u32) {
        if many.heaviest == index {
            many.heaviest = NONE;
        }
        let hash = self.hosts[index as usize].hash;
        if many.is_indexed
            && let Ok(entry) = self.host_index.find_entry(hash, |&at| at == index)
        {
            entry.remove();
        }
        match index.checked_sub(many.group * GROUP_HOSTS) {
            Some(at) if at < GROUP_HOSTS => many.used &= !(1 << (GROUP_FLOWS + at)),
            _ => self.free_hosts.push(index),
        }
    }

    /// Takes the packet of a queue that leaves next. Late packets before it are discarded or marked.
    #[inline]
    pub(crate) fn take(&mut self, queue: &mut Queue, turn: &mut Turn<'_, Packets>) -> Option<Id> {
        if let Members::Solo(solo) = &mut queue.members {
            let id = solo.chain.first()?;
            let length = turn.pool.length(id);
            let delay = turn.now.since(turn.pool.arrived(id));
            if turn
                .law
                .is_calm(delay.as_nanos(), (queue.octets - length).into())
            {
                solo.chain.pop(turn.pool);
                while solo.deficit <= 0 {
                    solo.deficit += MTU as i32;
                    solo.is_old = true;
                }
                solo.deficit -= length as i32;
                solo.has_sent = true;
                queue.remove(1, length);
                return Some(id);
            }
        }
        self.take_many(queue, turn)
    }

    fn take_many(&mut self, queue: &mut Queue, turn: &mut Turn<'_, Packets>) -> Option<Id> {
        let before = (queue.packets, queue.octets);
        let many = self.many(queue, turn.pool);
        let mut gone = (0, 0);
        let id = loop {
            let (index, is_new) = many.turns.first();
            if index == NONE {
                break None;
            }
            let host = &mut self.hosts[index as usize];
            if host.deficit <= 0 {
                host.deficit += MTU as i32;
                many.turns.rotate(&mut self.hosts, is_new);
                continue;
            }
            if let Some(id) = self.take_from(many, index, turn, &mut gone) {
                let length = turn.pool.length(id);
                self.hosts[index as usize].deficit -= length as i32;
                many.turns.sent(is_new, length, MTU.into());
                break Some(id);
            }
            if is_new && many.turns.old.first != NONE {
                many.turns.rotate(&mut self.hosts, is_new);
            } else {
                many.turns.remove(&mut self.hosts, is_new);
                self.close_host(many, index);
            }
        };
        (queue.packets, queue.octets) = (before.0 - gone.0, before.1 - gone.1);
        if queue.packets == 0 {
            self.close_all(queue);
        }
        id
    }

    /// The next packet of a host. `gone` counts the packets and bytes that left.
    fn take_from(
        &mut self,
        many: &mut Many,
        host: u32,
        turn: &mut Turn<'_, Packets>,
        gone: &mut (u32, u32),
    ) -> Option<Id> {
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
                self.close_flow(many, index);
            }
            let host = &mut self.hosts[host as usize];
            host.octets -= octets;
            host.packets -= packets;
            *gone = (gone.0 + packets, gone.1 + octets);
            if id.is_some() {
                return id;
            }
        }
    }

    /// Frees the hosts and flows of an empty queue.
    fn close_all(&mut self, queue: &mut Queue) {
        let members = core::mem::take(&mut queue.members);
        let Members::Many(mut many) = members else {
            return;
        };
        loop {
            let (host, is_new) = many.turns.first();
            if host == NONE {
                self.free_groups.push(many.group);
                return;
            }
            loop {
                let turns = &mut self.hosts[host as usize].turns;
                let (flow, is_new) = turns.first();
                if flow == NONE {
                    break;
                }
                turns.remove(&mut self.flows, is_new);
                self.close_flow(&mut many, flow);
            }
            many.turns.remove(&mut self.hosts, is_new);
            self.close_host(&mut many, host);
        }
    }

    /// Discards the first packet of the longest flow of the host with the most bytes, approximately: the host and the
    /// flow that were the largest when they last grew. Returns its length.
    pub(crate) fn discard_one(&mut self, queue: &mut Queue, pool: &mut Packets) -> Option<u32> {
        let id = match &mut queue.members {
            Members::Solo(solo) => solo.chain.pop(pool)?,
            Members::Many(many) => {
                let host_index = self.heaviest(many)?;
                let index = self.longest(host_index)?;
                let flow = &mut self.flows[index as usize];
                let id = flow.line.pop(pool)?;
                let host = &mut self.hosts[host_index as usize];
                host.octets -= pool.length(id);
                host.packets -= 1;
                id
            }
        };
        let length = pool.length(id);
        queue.remove(1, length);
        pool.discard(id, Reason::Overlimit);
        if queue.packets == 0 {
            self.close_all(queue);
        }
        Some(length)
    }

    /// Discards all packets of a queue; returns how many.
    pub(crate) fn clear(&mut self, queue: &mut Queue, pool: &mut Packets) -> u32 {
        let mut count = 0;
        while self.discard_one(queue, pool).is_some() {
            count += 1;
        }
        count
    }

    fn heaviest(&self, many: &Many) -> Option<u32> {
        let hint = many.heaviest;
        if hint != NONE && self.hosts[hint as usize].packets > 0 {
            return Some(hint);
        }
        largest(&many.turns, |index| {
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

    /// Reads the hosts and flows of a queue, or the packet of its only flow, so that they are in the cache. The caller
    /// does this for a batch of queues, so that the processor loads for all of them at once.
    #[inline]
    pub(crate) fn touch(&self, queue: &Queue, packets: &Packets) -> u32 {
        let many = match &queue.members {
            Members::Solo(solo) => {
                return solo.chain.first().map_or(0, |id| packets.touch(id));
            }
            Members::Many(many) => many,
        };
        let mut sum = 0;
        for at in 0..GROUP_FLOWS {
            sum ^= self.flows[(many.group * GROUP_FLOWS + at) as usize].deficit;
        }
        for at in 0..GROUP_HOSTS {
            sum ^= self.hosts[(many.group * GROUP_HOSTS + at) as usize].deficit;
        }
        sum as u32
    }

    /// Reads the packet of a queue that is probably the next one. [`Flows::touch`] comes before.
    #[inline]
    pub(crate) fn touch_packet(&self, queue: &Queue, packets: &Packets) -> u32 {
        let Members::Many(many) = &queue.members else {
            return 0;
        };
        let host = self.hosts.get(many.turns.first().0 as usize);
        let flow = host.and_then(|host| self.flows.get(host.turns.first().0 as usize));
        let first = flow.and_then(|flow| flow.line.chain.first());
        first.map_or(0, |id| packets.touch(id))
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
