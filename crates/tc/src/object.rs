//! Queueing disciplines, classes and filters of one interface, as tc(8) and the kernel number them.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::raw::Raw;

/// The number of an object: "1:20" is major 1, minor 0x20.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Handle(pub u32);

impl Handle {
    /// The parent of an interface's first discipline (`TC_H_ROOT`).
    pub const ROOT: Self = Self(0xffff_ffff);
    /// The discipline for arriving packets, `ffff:`.
    pub const INGRESS: Self = Self(0xffff_0000);
    /// The parent of that discipline (`TC_H_INGRESS`).
    pub const INGRESS_PARENT: Self = Self(0xffff_fff1);
    /// The parent of filters for arriving packets, with `ingress` and with `clsact` (`TC_H_MIN_INGRESS`).
    pub const ARRIVING: Self = Self(0xffff_fff2);

    /// The parent of filters for leaving packets, with `clsact` (`TC_H_MIN_EGRESS`).
    pub const LEAVING: Self = Self(0xffff_fff3);

    /// A number from its parts.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self((major as u32) << 16 | minor as u32)
    }

    /// The discipline's number.
    #[must_use]
    pub const fn major(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// The class's number within its discipline; 0 for the discipline itself.
    #[must_use]
    pub const fn minor(self) -> u16 {
        self.0 as u16
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (*self, self.minor()) {
            (Self::ROOT, _) => f.write_str("root"),
            (_, 0) => write!(f, "{:x}:", self.major()),
            (_, minor) => write!(f, "{:x}:{minor:x}", self.major()),
        }
    }
}

/// All objects of one interface that are not the kernel's defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// Disciplines, parents first.
    pub qdiscs: Vec<Qdisc>,
    /// Classes, parents first.
    pub classes: Vec<Class>,
    /// Filters in the order in which the kernel tries them.
    pub filters: Vec<Filter>,
}

/// Any object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Object {
    /// A discipline.
    Qdisc(Qdisc),
    /// A class.
    Class(Class),
    /// A filter.
    Filter(Filter),
}

/// A queueing discipline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Qdisc {
    /// Its number.
    pub handle: Handle,
    /// The class it is the queue of, or [`Handle::ROOT`].
    pub parent: Handle,
    /// Bytes added to the length of each packet before anything counts it (tc-stab(8)). Negative: taken off.
    pub added: Option<i32>,
    /// Kind and options.
    pub kind: QdiscKind,
    /// All options, if the kernel listed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw>,
}

/// Kind and options of a discipline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QdiscKind {
    /// A rate for each class.
    Htb {
        /// The minor of the class of packets that no filter takes.
        default: u32,
    },
    /// First in, first out; the limit is in packets.
    Pfifo {
        /// Packets.
        limit: u32,
    },
    /// First in, first out; the limit is in bytes.
    Bfifo {
        /// Bytes.
        limit: u32,
    },
    /// A queue for each flow, each with controlled delay.
    FqCodel(CodelKind),
    /// One queue with controlled delay.
    Codel(CodelKind),
    /// Stochastic fairness.
    Sfq {
        /// Bytes of a turn.
        quantum: u32,
        /// Packets in all queues.
        limit: u32,
        /// Seconds between two hashes; 0 is never.
        perturb_s: u32,
    },
    /// Classes in turn.
    Drr,
    /// Classes in turn, each with the same share.
    Ets {
        /// Number of classes.
        bands: u8,
        /// Bytes of a turn.
        quantum: u32,
    },
    /// Rate, fairness and controlled delay in one.
    Cake(Cake),
    /// The place for filters of arriving packets.
    Ingress,
    /// A discipline of a kind that headend does not make; its options are as the kernel lists them.
    Other {
        /// The kind.
        kind: String,
        /// `TCA_OPTIONS`, if there are any.
        options: Option<Vec<u8>>,
    },
}

/// Options of `fq_codel` and `codel`; `flows`, `quantum` and `memory` are for `fq_codel` alone, and 0 with `codel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodelKind {
    /// Packets.
    pub limit: u32,
    /// Acceptable delay in microseconds, as [`canonical_us`] has it.
    pub target_us: u32,
    /// Time above the target before a drop, in microseconds, as [`canonical_us`] has it.
    pub interval_us: u32,
    /// Whether packets are marked in place of dropped.
    pub ecn: bool,
    /// Queues.
    pub flows: u32,
    /// Bytes of a turn.
    pub quantum: u32,
    /// Bytes of memory.
    pub memory: u32,
}

/// Options of `cake` (tc-cake(8)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cake {
    /// Bytes per second.
    pub rate: u64,
    /// `TCA_CAKE_DIFFSERV_MODE`: 1 diffserv4, 3 besteffort.
    pub diffserv: u32,
    /// `TCA_CAKE_FLOW_MODE`: 4 flows, 5 dual-srchost, 6 dual-dsthost.
    pub flow_mode: u32,
    /// Bytes added to each IP packet.
    pub overhead: i32,
    /// Bytes of the shortest packet.
    pub mpu: u32,
    /// Whether packets travel in ATM cells.
    pub atm: bool,
    /// The time of a round trip in microseconds.
    pub rtt_us: u32,
    /// Acceptable delay in microseconds.
    pub target_us: u32,
    /// Bytes of memory.
    pub memory: u32,
    /// Whether hosts are those before NAT.
    pub nat: bool,
    /// Whether the DSCP is cleared.
    pub wash: bool,
    /// Whether superfluous acknowledgements are dropped.
    pub ack_filter: bool,
    /// Whether it shapes packets after the bottleneck.
    pub ingress: bool,
}

/// A class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// Its number.
    pub handle: Handle,
    /// The class above, or its discipline.
    pub parent: Handle,
    /// Kind and options.
    pub kind: ClassKind,
}

/// Kind and options of a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassKind {
    /// Of `htb`.
    Htb {
        /// The guaranteed rate.
        rate: Speed,
        /// The highest rate.
        ceil: Speed,
        /// Bytes of a turn.
        quantum: u32,
        /// 0 is served first.
        prio: u32,
    },
    /// Of `drr`.
    Drr {
        /// Bytes of a turn.
        quantum: u32,
    },
    /// Of a kind that headend does not make.
    Other {
        /// The kind.
        kind: String,
        /// `TCA_OPTIONS`, if there are any.
        options: Option<Vec<u8>>,
    },
}

/// A rate with its burst, and how packets count against it (`struct tc_ratespec`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speed {
    /// Bytes per second.
    pub rate: u64,
    /// The burst as the time that it takes at the rate, in units of 64 ns.
    pub burst_ticks: u32,
    /// Bytes added to each packet.
    pub overhead: u16,
    /// Bytes of the shortest packet.
    pub mpu: u16,
    /// Whether packets travel in ATM cells.
    pub atm: bool,
}

impl Speed {
    /// The time of a burst of `bytes` at `rate`, in units of 64 ns. As tc(8) does, it takes whole microseconds.
    #[must_use]
    pub fn ticks(rate: u64, bytes: u32) -> u32 {
        let us = u128::from(bytes) * 1_000_000 / u128::from(rate.max(1));
        u32::try_from(us * 1_000 / 64).unwrap_or(u32::MAX)
    }

    /// Bytes of the burst: the fewest that take this time.
    #[must_use]
    pub fn burst(&self) -> u64 {
        let us = (u128::from(self.burst_ticks) * 64).div_ceil(1_000);
        let bytes = (us * u128::from(self.rate)).div_ceil(1_000_000);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// A filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// The discipline whose packets it judges.
    pub parent: Handle,
    /// Filters are tried in this order.
    pub priority: u16,
    /// The EtherType of the packets that it judges; 3 is any.
    pub protocol: u16,
    /// Its number. The kernel numbers the `u32` filters that headend makes.
    pub handle: u32,
    /// The chain that it is part of; the first one is 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub chain: u32,
    /// Kind and options.
    pub kind: FilterKind,
}

/// Kind and options of a filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterKind {
    /// Compares words of the packet.
    U32 {
        /// All of them must hold.
        keys: Vec<Key>,
        /// The firewall mark: value and mask.
        mark: Option<(u32, u32)>,
        /// What happens to the packet.
        action: Action,
    },
    /// The class is calculated from a key (tc-flow(8)).
    Flow {
        /// The key.
        keys: FlowKeys,
        /// Number of classes.
        divisor: u32,
        /// The first class.
        base: Handle,
    },
    /// An eBPF program chooses the class (tc-bpf(8)).
    Bpf(Bpf),
    /// A filter of a kind that headend does not make.
    Other {
        /// The kind.
        kind: String,
        /// `TCA_OPTIONS`, if there are any.
        options: Option<Vec<u8>>,
    },
}

/// A filter with an eBPF program. The program itself is the kernel's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bpf {
    /// The filter's name; those of headend contain a hash of the program.
    pub name: String,
    /// The class, if the filter names one.
    pub class: Option<Handle>,
    /// Whether the program's value is an action, and not a class.
    pub is_direct: bool,
    /// The kernel's hash of the instructions; `None` if it is not known yet.
    pub tag: Option<[u8; 8]>,
    /// The program's number; `None` if it is not known, and for programs of headend.
    pub id: Option<u32>,
}

/// What a filter does with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It belongs to this class.
    Class(Handle),
    /// It goes to the queue of the interface with this index.
    Redirect(u32),
}

/// The header field that `flow` reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowKeys {
    /// The source address.
    Source,
    /// The destination address.
    Destination,
    /// The source address before NAT.
    SourceBeforeNat,
}

/// A word of the packet, from the start of the IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Its place in bytes, a multiple of 4.
    pub offset: i32,
    /// The bits compared, in the order of the packet.
    pub mask: u32,
    /// Their values.
    pub value: u32,
}

impl QdiscKind {
    /// The kind's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Htb { .. } => "htb",
            Self::Pfifo { .. } => "pfifo",
            Self::Bfifo { .. } => "bfifo",
            Self::FqCodel(_) => "fq_codel",
            Self::Codel(_) => "codel",
            Self::Sfq { .. } => "sfq",
            Self::Drr => "drr",
            Self::Ets { .. } => "ets",
            Self::Cake(_) => "cake",
            Self::Ingress => "ingress",
            Self::Other { kind, .. } => kind,
        }
    }
}

impl ClassKind {
    /// The kind's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Htb { .. } => "htb",
            Self::Drr { .. } => "drr",
            Self::Other { kind, .. } => kind,
        }
    }
}

impl FilterKind {
    /// The kind's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::U32 { .. } => "u32",
            Self::Flow { .. } => "flow",
            Self::Bpf(_) => "bpf",
            Self::Other { kind, .. } => kind,
        }
    }
}

impl Bpf {
    /// Whether two filters do the same. What is not known of either makes no difference.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let is_same = |(one, other): (Option<u64>, Option<u64>)| {
            one.is_none() || other.is_none() || one == other
        };
        let number = |tag: Option<[u8; 8]>| tag.map(u64::from_ne_bytes);
        (&self.name, self.class, self.is_direct) == (&other.name, other.class, other.is_direct)
            && is_same((number(self.tag), number(other.tag)))
            && is_same((self.id.map(u64::from), other.id.map(u64::from)))
    }
}

impl Qdisc {
    /// Whether two disciplines are the same. If the kernel listed both, all options count, else those that headend gives.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let is_same = match (&self.raw, &other.raw) {
            (Some(one), Some(other)) => one == other,
            _ => self.added == other.added && self.kind == other.kind,
        };
        is_same
            && (self.handle, self.parent) == (other.handle, other.parent)
            && self.kind.name() == other.kind.name()
    }
}

impl Filter {
    /// Whether it judges arriving packets, or leaving ones at `clsact`.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        self.parent.major() == Handle::INGRESS.major()
    }

    /// Whether it is headend's redirection of arriving packets to this interface.
    #[must_use]
    pub fn redirects_all_to(&self, index: u32) -> bool {
        let made = crate::compile::redirection(index, self.priority);
        self.parent == made.parent && self.chain == 0 && self.kind == made.kind
    }

    /// Whether two filters do the same at the same place.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let place = |filter: &Self| {
            let Self {
                parent,
                priority,
                protocol,
                handle,
                chain,
                ..
            } = *filter;
            (parent, priority, protocol, handle, chain)
        };
        match (&self.kind, &other.kind) {
            (FilterKind::Bpf(one), FilterKind::Bpf(two)) => {
                place(self) == place(other) && one.is_like(two)
            }
            _ => self == other,
        }
    }
}

fn is_zero(chain: &u32) -> bool {
    *chain == 0
}

impl Tree {
    /// Adds an object after those of its sort.
    pub fn push(&mut self, object: Object) {
        match object {
            Object::Qdisc(qdisc) => self.qdiscs.push(qdisc),
            Object::Class(class) => self.classes.push(class),
            Object::Filter(filter) => self.filters.push(filter),
        }
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.qdiscs.is_empty() && self.classes.is_empty() && self.filters.is_empty()
    }

    /// Number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.qdiscs.len() + self.classes.len() + self.filters.len()
    }

    /// The discipline at the root.
    #[must_use]
    pub fn root(&self) -> Option<&Qdisc> {
        self.qdiscs
            .iter()
            .find(|qdisc| qdisc.parent == Handle::ROOT)
    }

    /// The part for arriving packets, with the filters of `clsact` for leaving ones.
    #[must_use]
    pub fn arriving(&self) -> Self {
        let is_there = |filter: &&Filter| filter.is_outside();
        Self {
            qdiscs: self.ingress().cloned().into_iter().collect(),
            classes: Vec::new(),
            filters: self.filters.iter().filter(is_there).cloned().collect(),
        }
    }

    /// The discipline for arriving packets, `ingress` or `clsact`.
    #[must_use]
    pub fn ingress(&self) -> Option<&Qdisc> {
        let mut qdiscs = self.qdiscs.iter();
        qdiscs.find(|qdisc| qdisc.parent == Handle::INGRESS_PARENT)
    }
}

/// A time in microseconds as the kernel's codel lists it again: it counts in units of 1,024 ns, and lists the time
/// rounded down.
#[must_use]
pub fn canonical_us(us: u64) -> u32 {
    let us = us.min(u64::from(u32::MAX / 2));
    let listed = ((us * 1_000) >> 10 << 10) / 1_000;
    listed as u32 + 1
}
