//! FQ-CoDel: a queue with controlled delay for each flow, served in turn by bytes, new flows first. tc's `fq_codel`.
//!
//! RFC 8290, RFC 8289 (each queue's control), RFC 3168 (marks). Linux departs from the RFC in four ways. It counts
//! packets dropped at the limit as CoDel's drops; it drops half of a queue's bytes there instead of half of its
//! packets; it forgets an empty new flow at once if there is no old flow; and it lets CoDel drop while more than one
//! packet waits in all queues together. Only the last is available here, as [`Floor::All`].

use base::Instant;

use crate::classify::{Hash, KeySet};
use crate::codel::control::{Control, Law, Pace, Tally, Turn, Waiting};
use crate::codel::{ECN, INTERVAL, Parameters, TARGET};
use crate::discipline::{Backlog, Discipline, Statistics};
use crate::fattest::Fattest;
use crate::packet::{Id, List, Pool, Reason};
use crate::plan::{About, Declared, Make, Picture, Plan, Unfit};
use crate::queue::{FLOW_KEYS, LimitBy, MEMORY, Offer, QUANTUM, Queue};
use crate::round::{Link, Member, Round};
use crate::units::Octets;

/// Which bytes count as waiting behind a packet: CoDel may drop it if they exceed [`Parameters::mtu`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Floor {
    /// Those of its own flow, as in RFC 8289 5.6: a flow's last packet is never dropped.
    Flow,
    /// Those of all flows, as in Linux. This also bounds the delay when very many flows have a packet or two each.
    All,
}

/// Options of an [`FqCodel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Packets in all queues.
    pub limit: u32,
    /// Queues, from 1 to 65,536; values outside count as the nearest of these.
    pub flows: u32,
    /// Bytes on the line for each flow and turn, from 1 to 2^30; values outside count as the nearest of these.
    pub quantum: u32,
    /// Bytes of memory for all packets: for each packet its length and [`Pool::PLACE_BYTES`].
    pub memory_limit: u64,
    /// The most packets that are dropped together at the limit; 0 counts as 1.
    pub drop_batch: u32,
    /// CoDel's parameters; `mtu` should be at least the largest packet's bytes.
    pub parameters: Parameters,
    /// Which backlog CoDel leaves alone.
    pub floor: Floor,
    /// The keys of a flow.
    pub keys: KeySet,
    /// Chooses each flow's queue. Make it random, so that a sender cannot aim at another's queue (RFC 8290 8).
    pub seed: u64,
}

impl Default for Options {
    /// The defaults of RFC 8290 5.2, with ECN marking. Flows are distinguished by 5-tuple, outside and inside tunnels.
    fn default() -> Self {
        Self {
            limit: 10_240,
            flows: 1024,
            quantum: 1514,
            memory_limit: 32 << 20,
            drop_batch: 64,
            parameters: Parameters {
                ecn: true,
                ..Parameters::default()
            },
            floor: Floor::Flow,
            keys: KeySet::FLOW,
            seed: 0,
        }
    }
}

/// The queue of one flow, or of several with the same hash: one cache line.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Flow {
    list: List,
    control: Control,
    pace: Pace,
    /// "Byte credits"; below zero if it sent more than its quantum.
    credits: i32,
    link: Link,
}

const _: () = assert!(size_of::<Flow>() == 64);

impl Member for Flow {
    #[inline]
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl Flow {
    /// Its length in bytes, at least 1 if a packet waits.
    #[inline]
    fn size(&self) -> u32 {
        let bytes = u32::try_from(self.list.bytes()).unwrap_or(u32::MAX);
        bytes.max(u32::from(!self.list.is_empty()))
    }
}

/// A flow's queue as CoDel sees it.
struct View<'a> {
    list: &'a mut List,
    all: &'a mut Backlog,
    floor: Floor,
}

impl Waiting for View<'_> {
    #[inline]
    fn pop(&mut self, pool: &Pool) -> Option<Id> {
        let id = self.list.pop(pool)?;
        self.all.remove(pool.length(id));
        Some(id)
    }

    #[inline]
    fn bytes_behind(&self) -> u64 {
        match self.floor {
            Floor::Flow => self.list.bytes(),
            Floor::All => self.all.bytes,
        }
    }
}

/// A queue for each flow.
#[derive(Debug)]
pub struct FqCodel {
    options: Options,
    quantum: i32,
    law: Law,
    hash: Hash,
    /// Empty until the first packet arrives.
    flows: Vec<Flow>,
    fattest: Fattest,
    new_flows: Round,
    old_flows: Round,
    backlog: Backlog,
    tally: Tally,
    statistics: Statistics,
    drop_overlimit: u64,
    drop_overmemory: u64,
    new_flow_count: u64,
}

impl FqCodel {
    /// Empty queues. Their table takes 68 bytes a flow and is allocated with the first packet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let flows = options.flows.clamp(1, 1 << 16);
        Self {
            options: Options {
                flows,
                drop_batch: options.drop_batch.max(1),
                ..options
            },
            quantum: options.quantum.clamp(1, 1 << 30) as i32,
            law: Law::new(&options.parameters),
            hash: Hash::new(options.keys, flows, options.seed, 0),
            flows: Vec::new(),
            fattest: Fattest::default(),
            new_flows: Round::default(),
            old_flows: Round::default(),
            backlog: Backlog::default(),
            tally: Tally::default(),
            statistics: Statistics::default(),
            drop_overlimit: 0,
            drop_overmemory: 0,
            new_flow_count: 0,
        }
    }

    /// Bytes of memory that the waiting packets take.
    #[inline]
    fn memory_used(&self) -> u64 {
        self.backlog.bytes + u64::from(self.backlog.packets) * u64::from(Pool::PLACE_BYTES)
    }

    /// Puts a packet at the end of its flow's queue.
    #[inline]
    fn push(&mut self, pool: &mut Pool, id: Id) {
        if self.flows.is_empty() {
            self.make_table();
        }
        let index = self.hash.bucket(pool.keys(id));
        let flow = &mut self.flows[index as usize];
        flow.list.push(pool, id);
        self.backlog.add(pool.length(id));
        self.fattest.raise(index as usize, flow.size());
        if !flow.link.is_waiting() {
            flow.credits = self.quantum;
            self.new_flows.push(&mut self.flows, index);
            self.new_flow_count += 1;
        }
    }

    #[cold]
    fn make_table(&mut self) {
        let flows = self.options.flows as usize;
        self.flows = vec![Flow::default(); flows];
        self.fattest = Fattest::new(flows);
    }

    /// Drops packets from the longest queues until no limit is exceeded; returns whether the newest packet is still
    /// there.
    #[cold]
    fn drop_from_fattest(&mut self, pool: &mut Pool, newest: Id) -> bool {
        let mut kept = true;
        loop {
            let over_memory = self.memory_used() > self.options.memory_limit;
            if !over_memory && self.backlog.packets <= self.options.limit {
                return kept;
            }
            let flows = &self.flows;
            let Some(index) = self.fattest.find(|index| flows[index].size()) else {
                return kept;
            };
            let list = &mut self.flows[index].list;
            let batch = (list.packets() / 2).clamp(1, self.options.drop_batch);
            for _ in 0..batch {
                let Some(id) = list.pop(pool) else { break };
                kept &= id != newest;
                self.backlog.remove(pool.length(id));
                pool.discard(id, Reason::Overlimit);
            }
            self.drop_overlimit += u64::from(batch);
            self.drop_overmemory += u64::from(over_memory) * u64::from(batch);
        }
    }
}

impl Declared for Options {
    const ABOUT: About<Self> = About {
        kinds: &["fq_codel"],
        queues: &[Queue {
            offer: Offer {
                name: "flows",
                template: "flows",
                settings: &[&ECN, &TARGET, &INTERVAL, &QUANTUM, &MEMORY, &FLOW_KEYS],
                limit: LimitBy::Packets(10_240),
                bounds_delay: true,
            },
            plan: |given| Options {
                limit: given.packets(),
                memory_limit: given.memory(),
                quantum: given.quantum(),
                keys: given.flow_keys(),
                parameters: Parameters::of(given),
                ..Options::default()
            },
        }],
        picture: Picture {
            has_flow_classes: true,
        },
    };
}

impl<S> Plan<S> for Options {
    fn kind(&self) -> &'static str {
        "fq_codel"
    }

    fn options(&self) -> String {
        format!(
            "limit {}p flows {} quantum {} memory_limit {} keys {}{}",
            self.limit,
            self.flows,
            Octets(self.quantum.into()),
            Octets(self.memory_limit),
            self.keys,
            self.parameters.options()
        )
    }

    fn packets_max(&self) -> u32 {
        self.limit
    }

    fn make(&self, make: Make) -> Result<Box<dyn Discipline>, Unfit> {
        Ok(Box::new(FqCodel::new(Options {
            seed: self.seed ^ make.seed,
            ..*self
        })))
    }
}

impl Discipline for FqCodel {
    fn kind(&self) -> &'static str {
        "fq_codel"
    }

    fn enqueue(&mut self, pool: &mut Pool, id: Id, _: Instant) -> bool {
        self.push(pool, id);
        let fits = self.backlog.packets <= self.options.limit
            && self.memory_used() <= self.options.memory_limit;
        fits || self.drop_from_fattest(pool, id)
    }

    fn restore(&mut self, pool: &mut Pool, id: Id, _: Instant) -> bool {
        self.push(pool, id);
        true
    }

    fn dequeue(&mut self, pool: &mut Pool, now: Instant) -> Option<Id> {
        loop {
            let is_new = self.new_flows.length() > 0;
            let round = if is_new {
                &mut self.new_flows
            } else {
                &mut self.old_flows
            };
            let index = round.first()?;
            let flow = &mut self.flows[index as usize];
            if flow.credits <= 0 {
                flow.credits += self.quantum;
                round.pop(&mut self.flows);
                self.old_flows.push(&mut self.flows, index);
                continue;
            }
            let mut turn = Turn {
                law: &self.law,
                tally: &mut self.tally,
                pool,
                now,
            };
            let mut view = View {
                list: &mut flow.list,
                all: &mut self.backlog,
                floor: self.options.floor,
            };
            if let Some(id) = flow.control.dequeue(&mut flow.pace, &mut turn, &mut view) {
                let length = pool.length(id);
                flow.credits = flow.credits.saturating_sub_unsigned(length);
                self.statistics.count_sent(length);
                return Some(id);
            }
            // An empty new flow stays for one round of the old flows. Otherwise it could come back as a new flow and
            // overtake them.
            round.pop(&mut self.flows);
            if is_new {
                self.old_flows.push(&mut self.flows, index);
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
            ..self.statistics
        }
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut Vec<Id>) {
        for round in [&mut self.new_flows, &mut self.old_flows] {
            while let Some(index) = round.pop(&mut self.flows) {
                self.flows[index as usize].list.drain(pool, into);
            }
        }
        self.backlog = Backlog::default();
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("maxpacket", self.tally.max_packet.into()),
            ("drop_overlimit", self.drop_overlimit),
            ("new_flow_count", self.new_flow_count),
            ("ecn_mark", self.tally.ecn_mark),
            ("ce_mark", self.tally.ce_mark),
            ("memory_used", self.memory_used()),
            ("drop_overmemory", self.drop_overmemory),
            ("new_flows_len", self.new_flows.length().into()),
            ("old_flows_len", self.old_flows.length().into()),
        ]
    }
}
