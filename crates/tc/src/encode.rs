//! Objects as bodies of rtnetlink messages (linux/rtnetlink.h, linux/pkt_sched.h, linux/pkt_cls.h).

use crate::attributes::{NESTED, Reader, Writer};
use crate::object::{
    Action, Cake, Class, ClassKind, CodelKind, Filter, FilterKind, FlowKeys, Handle, Key, Object,
    Qdisc, QdiscKind, Speed,
};

pub(crate) const NEW_QDISC: u16 = 36;
pub(crate) const DEL_QDISC: u16 = 37;
pub(crate) const NEW_CLASS: u16 = 40;
pub(crate) const DEL_CLASS: u16 = 41;
pub(crate) const NEW_FILTER: u16 = 44;
pub(crate) const DEL_FILTER: u16 = 45;

const F_REPLACE: u16 = 0x100;
const F_EXCL: u16 = 0x200;
const F_CREATE: u16 = 0x400;

pub(crate) const KIND: u16 = 1;
pub(crate) const OPTIONS: u16 = 2;
pub(crate) const STAB: u16 = 8;
pub(crate) const CHAIN: u16 = 11;
pub(crate) const STAB_BASE: u16 = 1;
/// Linux's `struct tcmsg`.
pub(crate) const HEAD: usize = 20;

/// What to do with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Add it; it must not be there.
    Add,
    /// Give it these options; it must be there.
    Change,
    /// Delete it.
    Delete,
}

/// A request without its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The type (`RTM_NEWQDISC`...).
    pub kind: u16,
    /// Flags beside `NLM_F_REQUEST`.
    pub flags: u16,
    /// The bytes after the header.
    pub body: Vec<u8>,
}

impl Object {
    /// The request for the interface with this index. A filter with an eBPF program needs a descriptor of that program.
    #[must_use]
    pub fn message(&self, verb: Verb, index: u32, program: Option<i32>) -> Message {
        let flags = match verb {
            Verb::Add => F_CREATE | F_EXCL,
            Verb::Change => F_REPLACE,
            Verb::Delete => 0,
        };
        let (new, delete) = match self {
            Self::Qdisc(_) => (NEW_QDISC, DEL_QDISC),
            Self::Class(_) => (NEW_CLASS, DEL_CLASS),
            Self::Filter(_) => (NEW_FILTER, DEL_FILTER),
        };
        let is_new = verb != Verb::Delete;
        let mut writer = Writer(match self {
            Self::Qdisc(qdisc) => head(index, qdisc.handle.0, qdisc.parent, 0),
            Self::Class(class) => head(index, class.handle.0, class.parent, 0),
            Self::Filter(filter) => {
                let info = u32::from(filter.priority) << 16 | u32::from(filter.protocol.to_be());
                // Deleting all filters of a priority needs no number, and u32's are the kernel's.
                let handle = if is_new { filter.handle } else { 0 };
                head(index, handle, filter.parent, info)
            }
        });
        match self {
            Self::Qdisc(one) => qdisc(one, verb, &mut writer),
            Self::Class(one) if is_new => class(one, &mut writer),
            Self::Class(_) => {}
            Self::Filter(one) => filter(one, is_new, program, &mut writer),
        }
        Message {
            kind: if is_new { new } else { delete },
            flags,
            body: writer.0,
        }
    }
}

/// `TCA_FLOWER_KEY_ETH_TYPE`.
const FLOWER_TYPE: u16 = 8;
/// The protocol of filters for all packets (`ETH_P_ALL`).
const ANY: u16 = 3;

/// `struct tcmsg`.
pub(crate) fn head(index: u32, handle: u32, parent: Handle, info: u32) -> Vec<u8> {
    let words = [0, index, handle, parent.0, info];
    words.into_iter().flat_map(u32::to_ne_bytes).collect()
}

fn words(values: &[u32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_ne_bytes())
        .collect()
}

fn raw(options: Option<&Vec<u8>>, out: &mut Writer) {
    if let Some(options) = options {
        out.bytes(OPTIONS, options);
    }
}

fn qdisc(qdisc: &Qdisc, verb: Verb, out: &mut Writer) {
    out.text(KIND, qdisc.kind.name());
    if verb == Verb::Delete {
        return;
    }
    if let Some(raw) = &qdisc.raw {
        raw.write(qdisc.kind.name(), verb == Verb::Change, out);
        return;
    }
    match &qdisc.kind {
        QdiscKind::Htb { default } => {
            // `struct tc_htb_glob`: version, r2q, default class, and two that are 0.
            let init = words(&[3, 10, *default, 0, 0]);
            out.nest(OPTIONS, |out| {
                out.bytes(2, &init);
            });
        }
        QdiscKind::Pfifo { limit } | QdiscKind::Bfifo { limit } => {
            out.u32(OPTIONS, *limit);
        }
        QdiscKind::FqCodel(options) => fq_codel(options, verb, out),
        QdiscKind::Codel(options) => {
            let CodelKind { limit, ecn, .. } = *options;
            out.nest(OPTIONS, |out| {
                out.u32(1, options.target_us).u32(2, limit);
                out.u32(3, options.interval_us).u32(4, ecn.into());
            });
        }
        QdiscKind::Sfq {
            quantum,
            limit,
            perturb_s,
        } => {
            // `struct tc_sfq_qopt`; divisor and flows are the kernel's.
            out.bytes(OPTIONS, &words(&[*quantum, *perturb_s, *limit, 0, 0]));
        }
        QdiscKind::Drr | QdiscKind::Ingress => {}
        QdiscKind::Ets { bands, quantum } => {
            // Only ets insists on these flags.
            out.nest(OPTIONS | NESTED, |out| {
                out.bytes(1, &[*bands]).nest(3 | NESTED, |out| {
                    for _ in 0..*bands {
                        out.u32(4, *quantum);
                    }
                });
            });
        }
        QdiscKind::Cake(options) => cake(options, out),
        QdiscKind::Other { options, .. } => raw(options.as_ref(), out),
    }
    if let Some(added) = qdisc.added {
        // `struct tc_sizespec`: no table, only the overhead.
        let base = words(&[0, added.cast_unsigned(), 1, 0, 0, 0]);
        out.nest(STAB, |out| {
            out.bytes(STAB_BASE, &base);
        });
    }
}

fn fq_codel(options: &CodelKind, verb: Verb, out: &mut Writer) {
    out.nest(OPTIONS, |out| {
        out.u32(1, options.target_us).u32(2, options.limit);
        out.u32(3, options.interval_us).u32(4, options.ecn.into());
        // The kernel refuses a change that gives the number of queues, even if it is the same.
        if verb == Verb::Add {
            out.u32(5, options.flows);
        }
        out.u32(6, options.quantum);
        out.u32(9, options.memory);
    });
}

fn cake(options: &Cake, out: &mut Writer) {
    let number = |flag: bool| u32::from(flag);
    out.nest(OPTIONS, |out| {
        out.u64(2, options.rate).u32(3, options.diffserv);
        out.u32(4, number(options.atm)).u32(5, options.flow_mode);
        out.u32(6, options.overhead.cast_unsigned());
        out.u32(7, options.rtt_us);
        out.u32(8, options.target_us);
        out.u32(10, options.memory).u32(11, number(options.nat));
        out.u32(13, number(options.wash)).u32(14, options.mpu);
        out.u32(15, number(options.ingress));
        out.u32(16, number(options.ack_filter));
    });
}

fn class(class: &Class, out: &mut Writer) {
    out.text(KIND, class.kind.name());
    match &class.kind {
        ClassKind::Htb {
            rate,
            ceil,
            quantum,
            prio,
        } => {
            let mut parameters = ratespec(rate);
            parameters.extend(ratespec(ceil));
            let rest = [rate.burst_ticks, ceil.burst_ticks, *quantum, 0, *prio];
            parameters.extend(words(&rest));
            out.nest(OPTIONS, |out| {
                out.bytes(1, &parameters);
                for (kind, speed) in [(6, rate), (7, ceil)] {
                    if speed.rate > u64::from(u32::MAX) {
                        out.u64(kind, speed.rate);
                    }
                }
            });
        }
        ClassKind::Drr { quantum } => {
            out.nest(OPTIONS, |out| {
                out.u32(1, *quantum);
            });
        }
        ClassKind::Other { options, .. } => raw(options.as_ref(), out),
    }
}

/// `struct tc_ratespec`.
fn ratespec(speed: &Speed) -> Vec<u8> {
    let mut bytes = vec![0, if speed.atm { 2 } else { 1 }];
    bytes.extend(speed.overhead.to_ne_bytes());
    bytes.extend([0; 2]);
    bytes.extend(speed.mpu.to_ne_bytes());
    let rate = u32::try_from(speed.rate).unwrap_or(u32::MAX);
    bytes.extend(rate.to_ne_bytes());
    bytes
}

fn filter(filter: &Filter, is_new: bool, program: Option<i32>, out: &mut Writer) {
    out.text(KIND, filter.kind.name());
    if filter.chain != 0 {
        out.u32(CHAIN, filter.chain);
    }
    if !is_new {
        return;
    }
    match &filter.kind {
        FilterKind::U32 { keys, mark, action } => {
            out.nest(OPTIONS, |out| {
                if let Action::Class(class) = action {
                    out.u32(1, class.0);
                }
                out.bytes(5, &selector(keys));
                if let Action::Redirect(index) = action {
                    redirect(*index, out);
                }
                if let Some((value, mask)) = mark {
                    out.bytes(10, &words(&[*value, *mask, 0]));
                }
            });
        }
        FilterKind::Flow {
            keys,
            divisor,
            base,
        } => {
            let key = match keys {
                FlowKeys::Source => 1,
                FlowKeys::Destination => 1 << 1,
                FlowKeys::SourceBeforeNat => 1 << 9,
            };
            out.nest(OPTIONS, |out| {
                out.u32(1, key).u32(2, 0).u32(3, base.0).u32(8, *divisor);
            });
        }
        FilterKind::Bpf(bpf) => {
            out.nest(OPTIONS, |out| {
                if let Some(class) = bpf.class {
                    out.u32(3, class.0);
                }
                if let Some(program) = program {
                    out.u32(6, program.cast_unsigned());
                }
                out.text(7, &bpf.name);
                out.u32(8, u32::from(bpf.is_direct));
            });
        }
        FilterKind::Other { kind, options } if kind == "flower" && filter.protocol != ANY => {
            let options = options.as_deref().unwrap_or_default();
            out.bytes(OPTIONS, &of_protocol(options, filter.protocol));
        }
        FilterKind::Other { options, .. } => raw(options.as_ref(), out),
    }
}

/// The options of `flower` with the filter's protocol as the key of its type. The kernel lists the type inside VLAN tags
/// there, or none, and would read no tag without the tag's own type.
fn of_protocol(options: &[u8], protocol: u16) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    out.bytes(FLOWER_TYPE, &protocol.to_be_bytes());
    for (kind, value) in Reader(options).all() {
        if kind & !NESTED != FLOWER_TYPE {
            out.bytes(kind, value);
        }
    }
    out.0
}

/// `struct tc_u32_sel` and its keys.
fn selector(keys: &[Key]) -> Vec<u8> {
    let mut bytes = vec![1, 0, keys.len() as u8];
    bytes.resize(16, 0);
    for key in keys {
        bytes.extend(key.mask.to_be_bytes());
        bytes.extend(key.value.to_be_bytes());
        bytes.extend(key.offset.to_ne_bytes());
        bytes.extend([0; 4]);
    }
    bytes
}

/// The action mirred: the packet leaves this path (`TC_ACT_STOLEN`) and enters the other interface's queue.
fn redirect(index: u32, out: &mut Writer) {
    out.nest(7, |out| {
        out.nest(1, |out| {
            out.text(1, "mirred").nest(2, |out| {
                out.bytes(2, &words(&[0, 0, 4, 0, 0, 1, index]));
            });
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flower_of_tagged_packets_names_the_type_of_the_tag() {
        let mut listed = Writer(Vec::new());
        // The type inside the tag, and the tag's number.
        listed.bytes(FLOWER_TYPE, &[8, 0]).bytes(23, &[7, 0]);
        for options in [&listed.0[..], &listed.0[8..]] {
            let options = of_protocol(options, 0x8100);
            assert_eq!(Reader(&options).bytes(FLOWER_TYPE), Some(&[0x81, 0][..]));
            assert_eq!(Reader(&options).bytes(23), Some(&[7, 0][..]));
            assert_eq!(Reader(&options).all().count(), 2);
        }
    }
}
