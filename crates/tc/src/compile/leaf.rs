//! The queue of a class: what the policy says where the kernel has it, else the nearest that it has.

use qos::classify::KeySet;
use qos::codel::{self, Parameters};
use qos::fair;
use qos::fifo::Limit;
use qos::sfq;
use qos::tree::Spec;

use super::{Compiler, Refusal, programs};
use crate::object::{
    Class, ClassKind, CodelKind, Filter, FilterKind, FlowKeys, Handle, Object, Qdisc, QdiscKind,
    canonical_us,
};

/// Classes in turn of a queue: buckets of hosts, or of flows. `map` gives neighbouring addresses different buckets.
const BANDS: u16 = 16;
/// Queues of `fq_codel`.
const FQ_CODEL_FLOWS: u16 = 1_024;
/// Queues of each `fq_codel` of a bucket of hosts.
const BAND_FLOWS: u16 = 128;
/// The least memory and the fewest packets of such a queue.
const BAND_MEMORY: u32 = 128 << 10;
const BAND_LIMIT: u32 = 100;
/// Queues of `sfq`, whose number is the kernel's.
const SFQ_FLOWS: u16 = 1_024;
/// The first number of the disciplines below drr, or the one after those of classes.
const BELOW: u16 = 0x1000;
/// The number after the last one of these.
const BELOW_MAX: u16 = 0xfff0;
/// Milliseconds that a plain queue may take to drain.
const PLAIN_MS: u64 = 50;

/// What a queue needs and the kernel lacks.
type Missing = &'static str;

/// The queue of a class.
struct Leaf {
    kind: Result<QdiscKind, Missing>,
    /// What a flow is.
    keys: Option<KeySet>,
}

impl Leaf {
    fn without_keys(kind: Result<QdiscKind, Missing>) -> Self {
        Self { kind, keys: None }
    }
}

impl Compiler<'_> {
    /// Adds the queue of a class.
    pub(super) fn add_leaf(&mut self, minor: u16, spec: &Spec) -> Result<(), Refusal> {
        if let Spec::Fair(options) = spec
            && !options.hosts.is_empty()
        {
            let Leaf { kind, .. } = self.leaf(minor, spec)?;
            if self.has_bands() {
                let queue = kind.unwrap_or_else(|missing| self.plain(minor, missing));
                return self.add_hosts(minor, options, &queue);
            }
            let shared = match kind {
                Ok(_) => "the link is shared by flow, not by host",
                Err(_) => "all hosts share one queue",
            };
            self.advise(format!(
                "{shared}: this kernel has no drr with flow or bpf filters (modules sch_drr, and cls_flow or cls_bpf)"
            ));
        }
        let Leaf { kind, keys } = self.leaf(minor, spec)?;
        let kind = match (kind, keys) {
            (Ok(kind), _) => kind,
            // Its flows in turn are the next best.
            (Err(missing), Some(keys)) if self.has_bands() && self.has_host_program() => {
                let queue = self.plain(minor, missing);
                self.add_bands(minor, self.spec.mtu, &queue)?;
                let classifier = programs::hash(keys, BANDS);
                return self.attach(Handle::new(minor, 0), &classifier);
            }
            (Err(missing), _) => self.plain(minor, missing),
        };
        let flows = match &kind {
            QdiscKind::FqCodel(options) => options.flows as u16,
            QdiscKind::Sfq { .. } => SFQ_FLOWS,
            _ => 0,
        };
        let own = Handle::new(minor, 0);
        self.add_queue(own, self.groups.handle(minor), kind);
        match keys.filter(|keys| flows > 0 && self.has_flow_program(*keys)) {
            Some(keys) => self.attach(own, &programs::hash(keys, flows)),
            None => Ok(()),
        }
    }

    /// The discipline that the policy says, or the module that is missing.
    fn leaf(&self, minor: u16, spec: &Spec) -> Result<Leaf, Refusal> {
        Ok(match spec {
            Spec::Fair(options) => Leaf {
                kind: self.fq_codel(
                    options.limit,
                    options.quantum,
                    options.memory_limit,
                    &options.codel,
                ),
                keys: Some(options.flows),
            },
            Spec::FqCodel(options) => Leaf {
                kind: self.fq_codel(
                    options.limit,
                    options.quantum,
                    options.memory_limit,
                    &options.parameters,
                ),
                keys: Some(options.keys),
            },
            Spec::Codel(options) => Leaf::without_keys(self.codel(options)),
            Spec::Sfq(options) => Leaf {
                kind: self.sfq(options),
                keys: self.abilities.sfq.then_some(options.keys),
            },
            Spec::Fifo(Limit::Packets(limit)) => {
                Leaf::without_keys(Ok(QdiscKind::Pfifo { limit: *limit }))
            }
            Spec::Fifo(Limit::Bytes(bytes)) => Leaf::without_keys(Ok(QdiscKind::Bfifo {
                limit: u32::try_from(*bytes).unwrap_or(u32::MAX),
            })),
            other => {
                let message = format!(
                    "apply does not make the queue {}; use the queue \"fair\", \"flows\", \"codel\", \"sfq\", \"fifo\" \
                     or \"pfifo\"",
                    other.kind()
                );
                return self.refuse(&self.name(minor), message);
            }
        })
    }

    fn codel(&self, options: &codel::Options) -> Result<QdiscKind, Missing> {
        if !self.abilities.codel {
            return Err("codel (module sch_codel)");
        }
        Ok(QdiscKind::Codel(CodelKind {
            limit: options.limit,
            ..times(&options.parameters)
        }))
    }

    fn sfq(&self, options: &sfq::Options) -> Result<QdiscKind, Missing> {
        if !self.abilities.sfq {
            return Err("sfq (module sch_sfq)");
        }
        Ok(QdiscKind::Sfq {
            quantum: options.quantum,
            limit: options.limit,
            perturb_s: u32::try_from(options.period.as_nanos() / 1_000_000_000).unwrap_or(0),
        })
    }

    fn add_queue(&mut self, handle: Handle, parent: Handle, kind: QdiscKind) {
        self.out.tree.push(Object::Qdisc(Qdisc {
            handle,
            parent,
            added: None,
            kind,
            raw: None,
        }));
    }

    fn fq_codel(
        &self,
        limit: u32,
        quantum: u32,
        memory: u64,
        parameters: &Parameters,
    ) -> Result<QdiscKind, Missing> {
        if !self.abilities.fq_codel {
            return Err("fq_codel (module sch_fq_codel)");
        }
        Ok(QdiscKind::FqCodel(CodelKind {
            limit,
            flows: FQ_CODEL_FLOWS.into(),
            // The kernel's least.
            quantum: quantum.max(256),
            memory: u32::try_from(memory).unwrap_or(u32::MAX).min(1 << 31),
            ..times(parameters)
        }))
    }

    /// A short queue in place of one that the kernel lacks.
    fn plain(&mut self, minor: u16, missing: &str) -> QdiscKind {
        let ceil_bps = self.ceilings_bps.get(&minor).copied().unwrap_or(0);
        let bytes = ceil_bps / 8_000 * PLAIN_MS;
        let packets = bytes / u64::from(self.spec.mtu.max(1));
        let limit = u32::try_from(packets).unwrap_or(u32::MAX).clamp(10, 1_000);
        self.advise(format!(
            "queues are pfifo, at most {PLAIN_MS} ms long or 10 packets: this kernel has no {missing}; load it, or \
             use headend qos run, which has its own"
        ));
        QdiscKind::Pfifo { limit }
    }

    /// Whether the kernel serves classes in turn, and has a filter that chooses one by host.
    fn has_bands(&self) -> bool {
        (self.abilities.drr || self.abilities.ets)
            && (self.abilities.flow || self.has_host_program())
    }

    /// Classes in turn, of `drr` or else `ets`, with a queue in each.
    fn add_bands(&mut self, minor: u16, quantum: u32, queue: &QdiscKind) -> Result<(), Refusal> {
        let own = Handle::new(minor, 0);
        let quantum = quantum.max(self.spec.mtu);
        let kind = match self.abilities.drr {
            true => QdiscKind::Drr,
            false => QdiscKind::Ets {
                bands: BANDS as u8,
                quantum,
            },
        };
        let is_drr = kind == QdiscKind::Drr;
        self.add_queue(own, self.groups.handle(minor), kind);
        let last = self.spec.classes.iter().map(|class| class.minor).max();
        let first = BELOW.max(last.unwrap_or(0) + 1) + self.below;
        if first > BELOW_MAX - BANDS {
            let message = "its buckets of hosts and those before need more than 65,000 queues; give the classes the queue \
                           \"fifo\", \"codel\" or \"flows\", or fewer classes";
            return self.refuse(&self.name(minor), message);
        }
        self.below += BANDS;
        for band in 1..=BANDS {
            let class = Handle::new(minor, band);
            if is_drr {
                self.out.tree.push(Object::Class(Class {
                    handle: class,
                    parent: own,
                    kind: ClassKind::Drr { quantum },
                }));
            }
            let handle = Handle::new(first + band - 1, 0);
            self.add_queue(handle, class, queue.clone());
        }
        Ok(())
    }

    /// A class for each host bucket, with a queue of flows in each.
    fn add_hosts(
        &mut self,
        minor: u16,
        options: &fair::Options,
        queue: &QdiscKind,
    ) -> Result<(), Refusal> {
        let first = self.out.tree.qdiscs.len() + 1;
        let queue = &divided(queue);
        self.add_bands(minor, options.quantum, queue)?;
        let own = Handle::new(minor, 0);
        if matches!(queue, QdiscKind::FqCodel(_)) && self.has_flow_program(options.flows) {
            let below = self.out.tree.qdiscs[first..].iter();
            let below: Vec<u16> = below.map(|qdisc| qdisc.handle.major()).collect();
            for major in below {
                let classifier = programs::hash(options.flows, BAND_FLOWS);
                self.attach(Handle::new(major, 0), &classifier)?;
            }
        }
        if self.has_host_program() {
            let classifier = programs::hosts(options.hosts, BANDS);
            return self.attach(own, &classifier);
        }
        let keys = match self.place.is_up {
            true if self.policy.kernel().nat => FlowKeys::SourceBeforeNat,
            true => FlowKeys::Source,
            false => FlowKeys::Destination,
        };
        self.out.tree.push(Object::Filter(Filter {
            parent: own,
            priority: 1,
            protocol: 3,
            handle: 1,
            chain: 0,
            kind: FilterKind::Flow {
                keys,
                divisor: BANDS.into(),
                base: Handle::new(minor, 1),
            },
        }));
        Ok(())
    }
}

/// The queue of one bucket of hosts: together they have the memory of the policy.
fn divided(queue: &QdiscKind) -> QdiscKind {
    let bands = u32::from(BANDS);
    match queue {
        QdiscKind::FqCodel(options) => QdiscKind::FqCodel(CodelKind {
            limit: (options.limit / bands).max(BAND_LIMIT.min(options.limit)),
            memory: (options.memory / bands).max(BAND_MEMORY.min(options.memory)),
            flows: BAND_FLOWS.into(),
            ..*options
        }),
        other => other.clone(),
    }
}

/// CoDel's times and marks.
fn times(parameters: &Parameters) -> CodelKind {
    let us = |time: base::Duration| canonical_us(time.as_nanos() / 1_000);
    CodelKind {
        limit: 0,
        target_us: us(parameters.target),
        interval_us: us(parameters.interval),
        ecn: parameters.ecn,
        flows: 0,
        quantum: 0,
        memory: 0,
    }
}
