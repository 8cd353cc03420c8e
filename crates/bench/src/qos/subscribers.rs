//! The cost of a packet in the queues of shaped subscribers, and the memory of an idle one.

use anyhow::{Result, ensure};
use base::{Duration, Instant};
use hqos::spec::{Node, NodeId, Rates, Template, TemplateId};
use hqos::{Admission, Direction, Options, Plan, Shape, SubId, Tree};
use lab::plot::number::grouped;
use lab::report::{Cell, Table};
use qos::{Packet, Pool};
use reactor::usage;
use wire::flow::Keys;

use super::packets::{self, Random};
use super::{Config, least};

/// Numbers of subscribers.
const SUBSCRIBERS: [u32; 3] = [6_250, 25_000, 100_000];

/// Goals: packets per second in millions, and bytes of an idle subscriber.
const REACH_MPPS: f64 = 3.0;
const REACH_OCTETS: f64 = 600.0;

/// Subscribers of an access node.
const PER_NODE: u32 = 500;

/// Packets queued throughout, if they do not wait for tokens.
const WAITING: u32 = 2_048;

/// Packets that each subscriber has queued throughout, if they wait for tokens.
const BACKLOG: u32 = 2;

/// Packets that are enqueued, and then dequeued, together.
const BATCH: u32 = 32;

/// Nanoseconds between two packets.
const GAP_NS: u64 = 150;

/// Packets between two readings of the clock.
const ROUND: u32 = 1 << 15;

/// Lengths of packets in bytes: a third each.
const LENGTHS: [u32; 3] = [64, 576, 1_500];

/// Flows of a subscriber that has several, behind two hosts, and packets of it that arrive together.
const FLOWS: usize = 8;
const GROUP: u32 = 4;

/// How packets pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// Into a ring of packet ids, and out of it.
    Floor,
    /// At once: no packet waits.
    Pass,
    /// Through their subscriber's queue, with tokens.
    Queue,
    /// The same, and each packet waits for its subscriber's tokens.
    Tokens,
}

/// Whose packets they are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// Each subscriber has one flow.
    One,
    /// Each subscriber has several flows of two hosts.
    Several,
}

const ROWS: [(How, Whose, &str); 6] = [
    (How::Floor, Whose::One, "floor: a ring of packet ids"),
    (How::Pass, Whose::One, "pass at once"),
    (
        How::Queue,
        Whose::One,
        "enqueue and dequeue, a flow per subscriber",
    ),
    (
        How::Queue,
        Whose::Several,
        "enqueue and dequeue, flows of two hosts per subscriber",
    ),
    (
        How::Tokens,
        Whose::One,
        "the same, waiting for tokens, a flow per subscriber",
    ),
    (
        How::Tokens,
        Whose::Several,
        "the same, waiting for tokens, flows of two hosts",
    ),
];

/// A rate that no subscriber reaches, and one that each reaches.
const HIGH_BPS: u64 = 1_000_000_000;
const LOW_BPS: u64 = 1_000_000;

fn plan(subscribers: u32) -> Plan {
    let node = |name: String, parent| Node {
        name,
        parent,
        rates: Rates {
            down: 900_000_000_000,
            up: 900_000_000_000,
        },
        weight: 1,
    };
    let access =
        (0..subscribers.div_ceil(PER_NODE)).map(|n| node(format!("access-{n}"), Some(NodeId(0))));
    let uplink = node("uplink".to_owned(), None);
    // The offered load does not react to drops.
    let template = Template {
        target: Duration::from_secs(10),
        ..Template::default()
    };
    Plan {
        templates: vec![template],
        nodes: std::iter::once(uplink).chain(access).collect(),
    }
}

struct Load {
    tree: Tree,
    ids: Vec<SubId>,
    keys: Vec<Keys>,
    random: Random,
    now: Instant,
    lost: u64,
    whose: Whose,
    /// The subscribers of a batch.
    batch: Vec<u32>,
}

impl Load {
    fn new(subscribers: u32, bps: u64, whose: Whose) -> Result<Self> {
        let now = Instant::from_nanos(1);
        let options = Options {
            // The benchmark's flows have different sources.
            direction: Direction::Up,
            packets_max: 1 << 20,
            octets_max: 1 << 40,
            subscribers_max: subscribers,
            seed: 42,
        };
        let mut tree = Tree::new(&plan(subscribers), &options, now)?;
        let ids = (0..subscribers).filter_map(|owner| {
            let shape = Shape {
                rates: Rates { down: bps, up: bps },
                template: TemplateId(0),
                node: Some(NodeId(1 + owner / PER_NODE)),
            };
            tree.add(&shape, owner, now)
        });
        let ids = ids.collect();
        Ok(Self {
            tree,
            ids,
            keys: packets::keys(1_024),
            random: Random::new(1),
            now,
            lost: 0,
            whose,
            batch: Vec::new(),
        })
    }

    fn any(&mut self) -> u32 {
        self.random.below(self.ids.len()) as u32
    }

    fn packet(&mut self, owner: u32) -> Packet {
        let flow = match self.whose {
            Whose::One => 0,
            Whose::Several => self.random.below(FLOWS),
        };
        // Of two neighbouring hosts.
        let flow = owner as usize + flow % 2 + flow / 2 * packets::HOSTS as usize;
        Packet {
            handle: owner,
            length: LENGTHS[self.random.below(LENGTHS.len())],
            keys: self.keys[flow % self.keys.len()],
            arrived: self.now,
            marked: false,
        }
    }

    #[inline]
    fn push(&mut self, owner: u32) {
        let packet = self.packet(owner);
        self.tree.push(self.ids[owner as usize], packet, self.now);
    }

    /// Loads what the subscribers of a batch need, as a batch of received datagrams does.
    fn touch(&self) {
        let ids = self.batch.iter().map(|&owner| self.ids[owner as usize]);
        self.tree.touch(ids);
    }

    fn push_batch(&mut self) {
        self.touch();
        let batch = core::mem::take(&mut self.batch);
        batch.iter().for_each(|&owner| self.push(owner));
        self.batch = batch;
        self.batch.clear();
    }

    /// The subscribers of the next batch.
    fn choose(&mut self) {
        let group = match self.whose {
            Whose::One => 1,
            Whose::Several => GROUP,
        };
        for _ in 0..BATCH / group {
            let owner = self.any();
            self.batch.extend((0..group).map(|_| owner));
        }
    }

    /// Packets that pass at once.
    fn pass(&mut self) {
        for _ in 0..ROUND / BATCH {
            self.choose();
            self.touch();
            for at in 0..self.batch.len() {
                self.now += Duration::from_nanos(GAP_NS);
                let id = self.ids[self.batch[at] as usize];
                let octets = LENGTHS[self.random.below(LENGTHS.len())];
                let admission = self.tree.admit(id, octets, self.now);
                self.lost += u64::from(admission != Admission::Pass);
            }
            self.batch.clear();
        }
    }

    /// Packets of any subscribers, which leave in the same step.
    fn queue(&mut self) {
        for _ in 0..ROUND / BATCH {
            self.now += Duration::from_nanos(u64::from(BATCH) * GAP_NS);
            self.choose();
            self.push_batch();
            for _ in 0..BATCH {
                self.lost += u64::from(self.tree.pop(self.now).is_none());
            }
        }
        self.lost += self.tree.discarded().count() as u64;
    }

    /// Packets that leave when their subscriber has tokens; each is followed by another one of its subscriber.
    fn tokens(&mut self) {
        let mut left = ROUND;
        while left > 0 {
            let sent = self.tree.pop(self.now);
            self.batch.extend(sent.map(|sent| sent.owner));
            left -= u32::from(sent.is_some());
            let is_full = self.batch.len() == BATCH as usize;
            if is_full || sent.is_none() || left == 0 {
                self.push_batch();
            }
            if sent.is_none() {
                let wake = self.tree.next_deadline();
                self.now = self.now.max(wake.unwrap_or(self.now));
            }
        }
        self.lost += self.tree.discarded().count() as u64;
    }
}

/// Nanoseconds of a packet.
fn measure(config: &Config, how: How, whose: Whose, subscribers: u32) -> Result<f64> {
    let bps = if how == How::Tokens {
        LOW_BPS
    } else {
        HIGH_BPS
    };
    let mut load = Load::new(subscribers, bps, whose)?;
    let ns = match how {
        How::Floor => floor(config, &mut load),
        How::Pass => least(config, ROUND.into(), || load.pass()),
        How::Queue => {
            for _ in 0..WAITING {
                let owner = load.any();
                load.push(owner);
            }
            least(config, ROUND.into(), || load.queue())
        }
        How::Tokens => {
            for owner in (0..BACKLOG).flat_map(|_| 0..subscribers) {
                load.push(owner);
            }
            // The first bursts leave.
            (0..=subscribers * 4 / ROUND).for_each(|_| load.tokens());
            least(config, ROUND.into(), || load.tokens())
        }
    };
    ensure!(load.lost == 0, "{} packets did not pass", load.lost);
    Ok(ns)
}

fn floor(config: &Config, load: &mut Load) -> f64 {
    let mut pool = Pool::new(WAITING + BATCH);
    let mut ring = std::collections::VecDeque::new();
    for _ in 0..WAITING {
        let owner = load.any();
        ring.extend(pool.insert(load.packet(owner)));
    }
    least(config, ROUND.into(), || {
        for _ in 0..ROUND / BATCH {
            for _ in 0..BATCH {
                let owner = load.any();
                ring.extend(pool.insert(load.packet(owner)));
            }
            for _ in 0..BATCH {
                if let Some(id) = ring.pop_front() {
                    pool.release_sent(id);
                }
            }
        }
    })
}

/// Bytes of memory of an idle subscriber in both directions.
fn idle_octets(subscribers: u32) -> Result<f64> {
    let before = usage::resident_bytes().unwrap_or(0);
    let loads = [
        Load::new(subscribers, HIGH_BPS, Whose::One)?,
        Load::new(subscribers, HIGH_BPS, Whose::One)?,
    ];
    let after = usage::resident_bytes().unwrap_or(0);
    // The bench's own list of ids.
    let ids = loads
        .iter()
        .map(|load| load.ids.capacity() * size_of::<SubId>());
    let octets = after.saturating_sub(before) as f64 - ids.sum::<usize>() as f64;
    Ok(octets / f64::from(subscribers))
}

/// The table of all rows.
///
/// # Errors
/// A packet that did not pass.
pub(super) fn table(config: &Config, told: &mut dyn FnMut(String)) -> Result<Table> {
    let headings = SUBSCRIBERS.map(|n| format!("at {}", grouped(f64::from(n), 0)));
    let mut columns = vec![("what", "")];
    columns.extend(headings.iter().map(|heading| (heading.as_str(), "")));
    columns.extend([("unit", ""), ("to reach", "")]);
    let mut table = Table::new(
        "Queues of shaped subscribers, against their number",
        &columns,
    );
    told("memory of idle subscribers".to_owned());
    // First, while the process has no freed memory that they could use.
    let idle = idle_octets(SUBSCRIBERS[2])?;
    for (how, whose, what) in ROWS {
        let mut cells: Vec<Cell> = vec![what.into()];
        for n in SUBSCRIBERS {
            told(format!("{what}, {n} subscribers"));
            cells.push(Cell::num(1e3 / measure(config, how, whose, n)?, 2));
        }
        cells.push("M/s".into());
        match how {
            How::Floor => table.floor(cells),
            How::Pass | How::Queue | How::Tokens => {
                cells.push(Cell::num(REACH_MPPS, 0));
                table.row(cells);
            }
        }
    }
    table.row([
        "memory of an idle subscriber, both directions".into(),
        Cell::Missing,
        Cell::Missing,
        Cell::num(idle, 0),
        "bytes".into(),
        Cell::num(REACH_OCTETS, 0),
    ]);
    Ok(table)
}

/// How the table was measured.
pub(super) fn method() -> String {
    format!(
        "Subscribers: packets of 64, 576 and 1,500 bytes, a third each, of random subscribers. A subscriber has one flow, or {FLOWS} flows of two hosts, of which {GROUP} packets arrive together. Access nodes of {PER_NODE} subscribers share an uplink; no shared link is full. Enqueue and dequeue: {} packets wait at all times; in each step, {BATCH} are enqueued, then {BATCH} are dequeued. What a batch needs is loaded before its first packet. Waiting for tokens: every subscriber has {BACKLOG} packets queued at all times, in virtual time; each packet waits for its subscriber's tokens. The floor does the same with a ring of packet ids. Memory: resident memory of the process before and after the subscribers are added, per subscriber.",
        grouped(f64::from(WAITING), 0)
    )
}
