//! Fair queuing with controlled delay: a queue for each flow, served in turn by octets, new flows first, and no packet
//! waits for long for long in any. tc's `fq_codel`.
//!
//! RFC 8290, RFC 8289 (each queue's control), RFC 3168 (marks). Linux departs from the RFC's text, and is not followed
//! here: it counts packets dropped at the limit as if CoDel had dropped them, drops half of a queue's octets there and not
//! half of its packets, and forgets a new flow that is empty at once where there is no old one. It also lets CoDel drop as
//! long as more than one packet waits in all queues together, which is [`Floor::All`].

use base::Instant;

use crate::classify::{Hash, KeySet};
use crate::codel::control::{Control, Law, Tally, Turn, Waiting};
use crate::codel::{ECN, INTERVAL, Parameters, TARGET};
use crate::discipline::{Backlog, Discipline, Statistics};
use crate::fattest::Fattest;
use crate::packet::{Id, List, Pool, Reason};
use crate::plan::{About, Declared, Make, Picture, Plan, Unfit};
use crate::queue::{FLOW_KEYS, LimitBy, MEMORY, Offer, QUANTUM, Queue};
use crate::round::{Link, Member, Round};
use crate::units::Octets;

/// Which octets must wait behind a packet for CoDel to drop it: more than [`Parameters::mtu`] of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Floor {
    /// Its own flow's, as RFC 8289 5.6 has it of a queue: a flow's last packet is never dropped.
    Flow,
    /// All flows', as in Linux: the delay is kept also where very many flows have a packet or two each.
    All,
}

/// What an [`FqCodel`] is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Packets in all queues.
    pub limit: u32,
    /// Queues, 1 to 65,536; what is beyond counts as these.
    pub flows: u32,
    /// Octets on the line for each flow and turn, 1 to 2^30; what is beyond counts as these.
    pub quantum: u32,
    /// Octets of memory for all packets: each its length and [`Pool::PLACE_BYTES`].
    pub memory_limit: u64,
    /// Packets that are dropped at once at most when a limit is passed; 0 counts as 1.
    pub drop_batch: u32,
    /// What controls the delay; `mtu` should be at least the largest packet's octets.
    pub parameters: Parameters,
    /// What CoDel leaves alone.
    pub floor: Floor,
    /// What tells one flow from another.
    pub keys: KeySet,
    /// Chooses the queue of each flow; random, so that nobody can choose another's (RFC 8290 8).
    pub seed: u64,
}

impl Default for Options {
    /// As RFC 8290 5.2 has it: with marks, and flows told apart by their 5-tuples outside and inside of tunnels.
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

/// A queue of one flow, or of some whose hash is the same: a cache line.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Flow {
    list: List,
    control: Control,
    /// "Byte credits", below zero when more was sent than there were.
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
    /// How fat it is: octets, and 1 at least when a packet waits.
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
    /// Empty until the first packet comes.
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
    /// Empty queues. Their table takes 68 octets a flow, and is made when the first packet comes.
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

    /// Octets of memory that what waits takes.
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

    /// Drops from the longest queues until no limit is passed; says whether the packet that just came is still there.
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
            if let Some(id) = flow.control.dequeue(&mut turn, &mut view) {
                let length = pool.length(id);
                flow.credits = flow.credits.saturating_sub_unsigned(length);
                self.statistics.count_sent(length);
                return Some(id);
            }
            // A new flow that is empty stays for one round of the old ones, lest it come back before them.
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
