//! The queue of a class: what the policy says where the kernel has it, else the nearest that it has.

use qos::codel::Parameters;
use qos::fifo::Limit;
use qos::tree::Spec;

use super::{Compiler, ROOT, Refusal};
use crate::object::{
    Class, ClassKind, CodelKind, Filter, FilterKind, FlowKeys, Handle, Object, Qdisc, QdiscKind,
    canonical_us,
};

/// Host buckets of a class. A `map` filter gives neighbouring addresses different buckets.
const HOSTS: u16 = 16;
/// The first number of the disciplines below drr; those of classes are smaller.
const BELOW: u16 = 0x1000;
/// Milliseconds that a plain queue may take to drain.
const PLAIN_MS: u64 = 50;

impl Compiler<'_> {
    pub(super) fn add_leaf(&mut self, minor: u16, spec: &Spec) -> Result<(), Refusal> {
        let kind = match spec {
            Spec::Fair(options) => {
                let queue = self.fq_codel(
                    options.limit,
                    options.quantum,
                    options.memory_limit,
                    &options.codel,
                );
                if let (false, Ok(queue)) = (options.hosts.is_empty(), &queue) {
                    if self.abilities.drr {
                        self.add_hosts(minor, options.quantum, queue);
                        return Ok(());
                    }
                    self.advise(
                        "the link is shared by flow, not by host: this kernel has no drr with flow filters (modules \
                         sch_drr and cls_flow)"
                            .to_owned(),
                    );
                }
                queue
            }
            Spec::FqCodel(options) => self.fq_codel(
                options.limit,
                options.quantum,
                options.memory_limit,
                &options.parameters,
            ),
            Spec::Codel(options) if self.abilities.codel => Ok(QdiscKind::Codel(CodelKind {
                limit: options.limit,
                flows: 0,
                quantum: 0,
                memory: 0,
                ..times(&options.parameters)
            })),
            Spec::Codel(_) => Err("codel (module sch_codel)"),
            Spec::Sfq(options) if self.abilities.sfq => Ok(QdiscKind::Sfq {
                quantum: options.quantum,
                limit: options.limit,
                perturb_s: u32::try_from(options.period.as_nanos() / 1_000_000_000).unwrap_or(0),
            }),
            Spec::Sfq(_) => Err("sfq (module sch_sfq)"),
            Spec::Fifo(Limit::Packets(limit)) => Ok(QdiscKind::Pfifo { limit: *limit }),
            Spec::Fifo(Limit::Bytes(bytes)) => Ok(QdiscKind::Bfifo {
                limit: u32::try_from(*bytes).unwrap_or(u32::MAX),
            }),
            other => {
                let message = format!(
                    "apply does not make the queue {}; use the queue \"fair\", \"flows\", \"codel\", \"sfq\", \"fifo\" \
                     or \"pfifo\"",
                    other.kind()
                );
                return self.refuse(&self.name(minor), message);
            }
        };
        let kind = kind.unwrap_or_else(|missing| self.plain(minor, missing));
        self.add_queue(Handle::new(minor, 0), Handle::new(ROOT, minor), kind);
        Ok(())
    }

    fn add_queue(&mut self, handle: Handle, parent: Handle, kind: QdiscKind) {
        self.out.tree.push(Object::Qdisc(Qdisc {
            handle,
            parent,
            added: None,
            kind,
        }));
    }

    fn fq_codel(
        &self,
        limit: u32,
        quantum: u32,
        memory: u64,
        parameters: &Parameters,
    ) -> Result<QdiscKind, &'static str> {
        if !self.abilities.fq_codel {
            return Err("fq_codel (module sch_fq_codel)");
        }
        Ok(QdiscKind::FqCodel(CodelKind {
            limit,
            flows: 1_024,
            // The kernel's least.
            quantum: quantum.max(256),
            memory: u32::try_from(memory).unwrap_or(u32::MAX).min(1 << 31),
            ..times(parameters)
        }))
    }

    /// A short queue in place of one that the kernel lacks.
    fn plain(&mut self, minor: u16, missing: &str) -> QdiscKind {
        let class = self.spec.classes.iter().find(|class| class.minor == minor);
        let ceil_bps = class.map_or(0, |class| class.ceil_bps);
        let bytes = ceil_bps / 8_000 * PLAIN_MS;
        let packets = bytes / u64::from(self.spec.mtu.max(1));
        let limit = u32::try_from(packets).unwrap_or(u32::MAX).clamp(10, 1_000);
        self.advise(format!(
            "queues are pfifo, at most {PLAIN_MS} ms long or 10 packets: this kernel has no {missing}; load it, or \
             use headend qos run, which has its own"
        ));
        QdiscKind::Pfifo { limit }
    }

    /// A drr class for each host bucket, with a queue of flows in each.
    fn add_hosts(&mut self, minor: u16, quantum: u32, queue: &QdiscKind) {
        let own = Handle::new(minor, 0);
        self.add_queue(own, Handle::new(ROOT, minor), QdiscKind::Drr);
        let quantum = quantum.max(self.spec.mtu);
        let used = self.out.tree.qdiscs.iter();
        let used = used.filter(|qdisc| qdisc.handle.major() >= BELOW).count() as u16;
        for host in 1..=HOSTS {
            let class = Handle::new(minor, host);
            self.out.tree.push(Object::Class(Class {
                handle: class,
                parent: own,
                kind: ClassKind::Drr { quantum },
            }));
            let handle = Handle::new(BELOW + used + host - 1, 0);
            self.add_queue(handle, class, queue.clone());
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
            kind: FilterKind::Flow {
                keys,
                divisor: HOSTS.into(),
                base: Handle::new(minor, 1),
            },
        }));
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
