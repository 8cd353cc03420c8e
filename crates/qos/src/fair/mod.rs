//! Fair queuing per host, then per flow within a host, with CoDel on each flow.
//!
//! Hosts take turns by deficit round robin, and so do the flows of each host. Within a host, the rules of RFC 8290
//! apply: new flows before old ones, CoDel (RFC 8289) on each, marks instead of drops for ECN-capable senders (RFC
//! 3168). It goes beyond the RFC in three ways. A host is known by 128 bits of a keyed hash of its address, not by a
//! bucket that other hosts may share. Only hosts and flows with packets, or with packets a moment ago, take memory.
//! New flows cannot starve old ones. At the limit, the longest flow of the host with the most bytes loses its first
//! packet.
//!
//! All hosts share one table and all flows another, so a packet costs the same with ten thousand hosts as with ten.

mod heaviest;
mod member;
mod table;
#[cfg(test)]
mod tests;
pub mod turns;

use base::Instant;

use crate::classify::KeySet;
use crate::codel::control::{Law, Tally, Turn, Waiting};
use crate::codel::{ECN, INTERVAL, Parameters, TARGET};
use crate::discipline::{Backlog, Discipline, Statistics};
use crate::packet::{Id, Pool, Reason};
use crate::plan::{About, Declared, Make, Picture, Plan, Unfit};
use crate::queue::{FLOW_KEYS, LimitBy, MEMORY, Offer, QUANTUM, Queue, Setting, Takes};
use crate::units::Octets;
use table::Table;
use turns::{NONE, Turns};

/// Options of a [`Fair`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Packets that may wait.
    pub limit: u32,
    /// Bytes on the line that may wait.
    pub memory_limit: u64,
    /// Bytes that a flow, and a host, may send in its turn.
    pub quantum: u32,
    /// The keys of a host: [`KeySet::HOST`] for upstream packets, [`KeySet::HOST_DST`] for downstream packets, empty
    /// to treat flows alone.
    pub hosts: KeySet,
    /// The keys of a flow within a host.
    pub flows: KeySet,
    /// Hosts in the table; further hosts share one entry.
    pub hosts_max: u32,
    /// Flows in the table; further flows share one entry per host.
    pub flows_max: u32,
    /// CoDel's parameters.
    pub codel: Parameters,
}

impl Default for Options {
    /// RFC 8290's values, with marks.
    fn default() -> Self {
        Self {
            limit: 10_240,
            memory_limit: 32 << 20,
            quantum: 1514,
            hosts: KeySet::HOST,
            flows: KeySet::INNERMOST,
            hosts_max: 16_384,
            flows_max: 65_536,
            codel: Parameters {
                ecn: true,
                ..Parameters::default()
            },
        }
    }
}

/// Fair queuing among hosts, then among the flows of each host.
#[derive(Debug)]
pub struct Fair {
    limit: u32,
    memory_limit: u64,
    quantum: i64,
    law: Law,
    table: Table,
    turns: Turns,
    backlog: Backlog,
    sent: Statistics,
    tally: Tally,
    drop_overlimit: u64,
    new_flow_count: u64,
}

impl Fair {
    /// An empty queue. A sender that does not know `seed` cannot choose flows that collide.
    #[must_use]
    pub fn new(options: &Options, seed: u64) -> Self {
        Self {
            limit: options.limit,
            memory_limit: options.memory_limit,
            quantum: options.quantum.max(1).into(),
            law: Law::new(&options.codel),
            table: Table::new(options, seed),
            turns: Turns::default(),
            backlog: Backlog::default(),
            sent: Statistics::default(),
            tally: Tally::default(),
            drop_overlimit: 0,
            new_flow_count: 0,
        }
    }

    #[inline]
    fn insert(&mut self, pool: &mut Pool, id: Id) {
        let length = pool.length(id);
        let found = self.table.flow_of(pool.keys(id), self.quantum);
        let flow = found.flow;
        self.new_flow_count += u64::from(found.is_new);
        if let Some(host) = found.new_host {
            self.turns.new.push(&mut self.table.hosts, host);
        }
        let place = &mut self.table.flows[flow as usize];
        place.line.push(pool, id, length);
        self.table.hosts[place.host as usize].bytes += u64::from(length);
        self.backlog.add(length);
        self.table.grew(flow);
    }

    /// Discards the first packet of the longest flow of the host with the most bytes.
    fn discard_one(&mut self, pool: &mut Pool) -> Option<Id> {
        let flow = self.table.longest()?;
        let place = &mut self.table.flows[flow as usize];
        let id = place.line.pop(pool)?;
        let host = place.host;
        self.left(host, 1, pool.length(id).into());
        self.drop_overlimit += 1;
        pool.discard(id, Reason::Overlimit);
        Some(id)
    }

    /// Subtracts packets that left a host, whether sent or dropped.
    #[inline]
    fn left(&mut self, host: u32, packets: u32, bytes: u64) {
        self.table.hosts[host as usize].bytes -= bytes;
        self.backlog.packets -= packets;
        self.backlog.bytes -= bytes;
    }

    /// Takes the next packet of a host, and closes flows that stay empty.
    fn take_from(&mut self, host: u32, pool: &mut Pool, now: Instant) -> Option<Id> {
        loop {
            let turns = &mut self.table.hosts[host as usize].turns;
            let (index, is_new) = turns.first();
            if index == NONE {
                return None;
            }
            let flow = &mut self.table.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                turns.rotate(&mut self.table.flows, is_new);
                continue;
            }
            let next = flow.next;
            if flow.line.is_empty() {
                flow.control.found_empty();
                self.yield_turn(host, index, is_new);
                self.table.touch(next);
                continue;
            }
            let (bytes, dropped) = (flow.line.bytes(), self.tally.dropped);
            let mut turn = Turn {
                law: &self.law,
                tally: &mut self.tally,
                pool,
                now,
            };
            let pace = &mut self.table.paces[index as usize];
            let id = flow.control.dequeue(pace, &mut turn, &mut flow.line);
            let bytes = bytes - flow.line.bytes();
            let dropped = (self.tally.dropped - dropped) as u32;
            if let Some(id) = id {
                let length = pool.length(id);
                flow.deficit -= i64::from(length);
                turns.sent(is_new, length, self.quantum);
                self.left(host, dropped + 1, bytes);
                self.table.touch(next);
                return Some(id);
            }
            self.yield_turn(host, index, is_new);
            self.left(host, dropped, bytes);
        }
    }

    /// Ends the turn of an empty flow: a new one stays for a turn among the old ones, if there are any.
    fn yield_turn(&mut self, host: u32, flow: u32, is_new: bool) {
        let turns = &mut self.table.hosts[host as usize].turns;
        if is_new && turns.old.first != NONE {
            turns.rotate(&mut self.table.flows, is_new);
        } else {
            turns.remove(&mut self.table.flows, is_new);
            self.table.rest_flow(flow);
        }
    }
}

/// `hosts`: whether each host gets the same share.
pub static HOSTS: Setting = Setting {
    name: "hosts",
    takes: Takes::Switch("fair", "off"),
    caution: None,
};

impl Declared for Options {
    const ABOUT: About<Self> = About {
        kinds: &["fair"],
        queues: &[Queue {
            offer: Offer {
                name: "fair",
                template: "home",
                settings: &[
                    &HOSTS, &ECN, &TARGET, &INTERVAL, &QUANTUM, &MEMORY, &FLOW_KEYS,
                ],
                limit: LimitBy::Packets(10_240),
                bounds_delay: true,
            },
            plan: |given| Options {
                limit: given.packets(),
                memory_limit: given.memory(),
                quantum: given.quantum(),
                hosts: match (given.settings.is_on(&HOSTS), given.is_up) {
                    (false, _) => KeySet::default(),
                    (true, true) => KeySet::HOST,
                    (true, false) => KeySet::HOST_DST,
                },
                flows: given.flow_keys(),
                codel: Parameters::of(given),
                ..Options::default()
            },
        }],
        picture: Picture {
            has_flow_classes: false,
        },
    };
}

impl<S> Plan<S> for Options {
    fn kind(&self) -> &'static str {
        "fair"
    }

    fn options(&self) -> String {
        let hosts = match self.hosts.is_empty() {
            true => "off".to_owned(),
            false => self.hosts.to_string(),
        };
        format!(
            "limit {}p memory_limit {} quantum {} hosts {hosts} flows {}{}",
            self.limit,
            Octets(self.memory_limit),
            Octets(self.quantum.into()),
            self.flows,
            self.codel.options()
        )
    }

    fn packets_max(&self) -> u32 {
        self.limit
    }

    fn make(&self, make: Make) -> Result<Box<dyn Discipline>, Unfit> {
        let seed = make.seed ^ u64::from(make.major).rotate_left(32);
        Ok(Box::new(Fair::new(self, seed)))
    }
}

impl Discipline for Fair {
    fn kind(&self) -> &'static str {
        "fair"
    }

    fn enqueue(&mut self, pool: &mut Pool, id: Id, _: Instant) -> bool {
        self.insert(pool, id);
        let mut taken = true;
        while self.backlog.packets > self.limit || self.backlog.bytes > self.memory_limit {
            match self.discard_one(pool) {
                Some(lost) => taken &= lost != id,
                None => break,
            }
        }
        taken
    }

    fn restore(&mut self, pool: &mut Pool, id: Id, _: Instant) -> bool {
        self.insert(pool, id);
        true
    }

    fn dequeue(&mut self, pool: &mut Pool, now: Instant) -> Option<Id> {
        loop {
            let (index, is_new) = self.turns.first();
            if index == NONE {
                return None;
            }
            let host = &mut self.table.hosts[index as usize];
            if host.deficit <= 0 {
                host.deficit += self.quantum;
                self.turns.rotate(&mut self.table.hosts, is_new);
                continue;
            }
            if let Some(id) = self.take_from(index, pool, now) {
                let length = pool.length(id);
                self.table.hosts[index as usize].deficit -= i64::from(length);
                self.turns.sent(is_new, length, self.quantum);
                self.sent.count_sent(length);
                return Some(id);
            }
            if is_new && self.turns.old.first != NONE {
                self.turns.rotate(&mut self.table.hosts, is_new);
            } else {
                self.turns.remove(&mut self.table.hosts, is_new);
                self.table.rest_host(index);
            }
        }
    }

    fn next_time(&self, now: Instant) -> Option<Instant> {
        (self.backlog.packets > 0).then_some(now)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn statistics(&self) -> Statistics {
        Statistics {
            dropped: self.drop_overlimit + self.tally.dropped,
            ecn_mark: self.tally.ecn_mark,
            ..self.sent
        }
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut Vec<Id>) {
        for flow in &mut self.table.flows {
            while let Some(id) = flow.line.pop(pool) {
                into.push(id);
            }
        }
        self.table.clear();
        self.turns = Turns::default();
        self.backlog = Backlog::default();
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("hosts", self.table.hosts_len()),
            ("flows", self.table.flows_len()),
            ("new_flow_count", self.new_flow_count),
            ("host_collisions", self.table.shared_host),
            ("flow_collisions", self.table.shared_flow),
            ("maxpacket", self.tally.max_packet.into()),
            ("drop_overlimit", self.drop_overlimit),
            ("ecn_mark", self.tally.ecn_mark),
            ("ce_mark", self.tally.ce_mark),
        ]
    }
}
