//! Objects from the kernel's lists. Kinds that headend does not make keep their options as bytes.

use crate::attributes::{Reader, half, word};
use crate::encode::{
    CHAIN, HEAD, KIND, NEW_CLASS, NEW_FILTER, NEW_QDISC, OPTIONS, STAB, STAB_BASE,
};
use crate::object::{
    Action, Bpf, Cake, Class, ClassKind, CodelKind, Filter, FilterKind, FlowKeys, Handle, Key,
    Object, Qdisc, QdiscKind, Speed,
};
use crate::raw::{self, Raw, U32_FIRST, is_first};

/// Kinds whose classes the operator makes. All other kinds list queues of their own as classes.
const WITH_CLASSES: [&str; 4] = ["htb", "drr", "hfsc", "qfq"];

/// An object of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The interface's index.
    pub index: u32,
    /// The object.
    pub object: Object,
}

/// The object in a message of this type. `None`: no object, one that the kernel made by itself, or a broken message.
#[must_use]
pub fn decode(kind: u16, body: &[u8]) -> Option<Found> {
    let head = body.get(..HEAD)?;
    let (index, handle) = (word(head, 4)?, Handle(word(head, 8)?));
    let (parent, info) = (Handle(word(head, 12)?), word(head, 16)?);
    let attributes = Reader(&body[HEAD..]);
    let name = attributes.text(KIND)?;
    let object = match kind {
        NEW_QDISC => Object::Qdisc(Qdisc {
            handle,
            parent,
            added: added(attributes),
            kind: qdisc(name, attributes).unwrap_or_else(|| QdiscKind::Other {
                kind: name.to_owned(),
                options: raw(attributes),
            }),
            raw: Some(Raw::of_qdisc(name, attributes)),
        }),
        // hfsc lists itself as a class of its own, with the number of the discipline.
        NEW_CLASS if WITH_CLASSES.contains(&name) && handle.minor() != 0 => {
            let is_top = parent == Handle::ROOT;
            let top = Handle::new(handle.major(), 0);
            Object::Class(Class {
                handle,
                parent: if is_top { top } else { parent },
                kind: class(name, attributes)?,
            })
        }
        NEW_FILTER => {
            let (kind, number) = filter(name, handle, attributes)?;
            Object::Filter(Filter {
                parent: place(parent),
                priority: (info >> 16) as u16,
                protocol: u16::from_be(info as u16),
                handle: number,
                chain: attributes.u32(CHAIN).unwrap_or(0),
                kind,
            })
        }
        _ => return None,
    };
    // The kernel's own disciplines have no number.
    let is_default = kind == NEW_QDISC && handle.0 == 0;
    (!is_default).then_some(Found { index, object })
}

/// All numbers but one that begin with `ffff:` are the same place, and the kernel lists that of the last filter.
fn place(parent: Handle) -> Handle {
    match parent {
        Handle::LEAVING => parent,
        _ if parent.major() == Handle::INGRESS.major() => Handle::ARRIVING,
        _ => parent,
    }
}

fn added(attributes: Reader<'_>) -> Option<i32> {
    let base = attributes.nested(STAB)?.bytes(STAB_BASE)?;
    Some(word(base, 4)?.cast_signed())
}

fn raw(attributes: Reader<'_>) -> Option<Vec<u8>> {
    attributes.bytes(OPTIONS).map(<[u8]>::to_vec)
}

fn qdisc(name: &str, attributes: Reader<'_>) -> Option<QdiscKind> {
    let bytes = attributes.bytes(OPTIONS).unwrap_or_default();
    let options = Reader(bytes);
    Some(match name {
        "htb" => QdiscKind::Htb {
            default: word(options.bytes(2)?, 8)?,
        },
        "pfifo" => QdiscKind::Pfifo {
            limit: word(bytes, 0)?,
        },
        "bfifo" => QdiscKind::Bfifo {
            limit: word(bytes, 0)?,
        },
        "fq_codel" => QdiscKind::FqCodel(CodelKind {
            flows: options.u32(5)?,
            quantum: options.u32(6)?,
            memory: options.u32(9)?,
            ..codel(options)?
        }),
        "codel" => QdiscKind::Codel(codel(options)?),
        "sfq" => QdiscKind::Sfq {
            quantum: word(bytes, 0)?,
            perturb_s: word(bytes, 4)?,
            limit: word(bytes, 8)?,
        },
        "drr" => QdiscKind::Drr,
        "ets" => ets(options)?,
        "cake" => cake(options)?,
        "ingress" => QdiscKind::Ingress,
        _ => QdiscKind::Other {
            kind: name.to_owned(),
            options: raw(attributes),
        },
    })
}

/// The options that `codel` and `fq_codel` share. Times as [`crate::canonical_us`] has them.
fn codel(options: Reader<'_>) -> Option<CodelKind> {
    Some(CodelKind {
        target_us: options.u32(1)?.saturating_add(1),
        limit: options.u32(2)?,
        interval_us: options.u32(3)?.saturating_add(1),
        ecn: options.u32(4)? != 0,
        flows: 0,
        quantum: 0,
        memory: 0,
    })
}

/// Bands that share alike, and no strict ones.
fn ets(options: Reader<'_>) -> Option<QdiscKind> {
    let &[bands] = options.bytes(1)? else {
        return None;
    };
    let is_strict = options.bytes(2).is_some_and(|bands| bands != [0]);
    let quanta = options.bytes(3)?;
    let quantum = Reader(quanta).u32(4)?;
    // Each is an attribute of 8 bytes.
    let mut all = quanta.chunks(8).map(|one| Reader(one).u32(4));
    let is_alike = quanta.len() == usize::from(bands) * 8 && all.all(|one| one == Some(quantum));
    (is_alike && !is_strict).then_some(QdiscKind::Ets { bands, quantum })
}

fn cake(options: Reader<'_>) -> Option<QdiscKind> {
    let flag = |kind| options.u32(kind).map(|value| value != 0);
    Some(QdiscKind::Cake(Cake {
        rate: options.u64(2)?,
        diffserv: options.u32(3)?,
        atm: options.u32(4)? == 1,
        flow_mode: options.u32(5)?,
        overhead: options.u32(6)?.cast_signed(),
        rtt_us: options.u32(7)?,
        target_us: options.u32(8)?,
        memory: options.u32(10)?,
        nat: flag(11)?,
        wash: flag(13)?,
        mpu: options.u32(14).unwrap_or(0),
        ingress: flag(15)?,
        ack_filter: flag(16)?,
    }))
}

fn class(name: &str, attributes: Reader<'_>) -> Option<ClassKind> {
    let options = attributes.nested(OPTIONS);
    Some(match name {
        "htb" => {
            let options = options?;
            let parameters = options.bytes(1)?;
            let more = [options.u64(6), options.u64(7)];
            let speed = |at: usize, burst: usize, more: Option<u64>| {
                let spec = parameters.get(at..at + 12)?;
                Some(Speed {
                    rate: more.unwrap_or(word(spec, 8)?.into()),
                    burst_ticks: word(parameters, burst)?,
                    overhead: half(spec, 2)?,
                    mpu: half(spec, 6)?,
                    atm: spec[1] & 0xf == 2,
                })
            };
            ClassKind::Htb {
                rate: speed(0, 24, more[0])?,
                ceil: speed(12, 28, more[1])?,
                quantum: word(parameters, 32)?,
                prio: word(parameters, 40)?,
            }
        }
        "drr" => ClassKind::Drr {
            quantum: options?.u32(1)?,
        },
        _ => ClassKind::Other {
            kind: name.to_owned(),
            options: raw(attributes),
        },
    })
}

/// Kind, options and number of a filter.
fn filter(name: &str, handle: Handle, attributes: Reader<'_>) -> Option<(FilterKind, u32)> {
    // The kernel lists each filter's classifier too, without options.
    let options = attributes.nested(OPTIONS)?;
    let known = match name {
        // u32's numbers are the kernel's own.
        "u32" if options.bytes(5).is_some() => u32_filter(options).map(|kind| (kind, 0)),
        // A table of u32; the first one is made by itself.
        "u32" if is_first(handle.0) && options.u32(4) == Some(1) => return None,
        "flow" => flow(options).map(|kind| (kind, handle.0)),
        "bpf" => bpf(options).map(|bpf| (FilterKind::Bpf(bpf), handle.0)),
        _ => None,
    };
    Some(known.unwrap_or_else(|| {
        let (options, number) = raw::filter(name, handle.0, options.0);
        let kind = FilterKind::Other {
            kind: name.to_owned(),
            options: Some(options),
        };
        (kind, number)
    }))
}

/// A filter as headend makes them.
fn u32_filter(options: Reader<'_>) -> Option<FilterKind> {
    let selector = options.bytes(5)?;
    let count = usize::from(*selector.get(2)?);
    let is_plain = selector[0] & !1 == 0 && selector.get(4..16)?.iter().all(|&byte| byte == 0);
    let key = |bytes: &[u8]| {
        let big = |at: usize| Some(u32::from_be(word(bytes, at)?));
        (word(bytes, 12)? == 0).then_some(())?;
        Some(Key {
            mask: big(0)?,
            value: big(4)?,
            offset: word(bytes, 8)?.cast_signed(),
        })
    };
    let keys = selector.get(16..16 + count * 16)?.chunks_exact(16);
    let keys: Option<Vec<Key>> = keys.map(key).collect();
    let mark = options.bytes(10).and_then(|mark| {
        let (value, mask) = (word(mark, 0)?, word(mark, 4)?);
        (mask != 0).then_some((value, mask))
    });
    // A filter of the first table lists its table, and no link to another.
    let is_expected = |kind: u16, value: &[u8]| match kind {
        2 => word(value, 0).is_some_and(|table| table == U32_FIRST || is_first(table)),
        3 => value == [0; 4],
        _ => false,
    };
    let others = [2, 3, 6, 8].into_iter();
    let mut others = others.filter_map(|kind| Some((kind, options.bytes(kind)?)));
    let has_others = others.any(|(kind, value)| !is_expected(kind, value));
    let action = match (options.u32(1), options.nested(7)) {
        (Some(class), None) => Action::Class(Handle(class)),
        (None | Some(0), Some(actions)) => Action::Redirect(redirect(actions)?),
        _ => return None,
    };
    (is_plain && !has_others).then_some(FilterKind::U32 {
        keys: keys?,
        mark,
        action,
    })
}

/// The interface of a single redirecting action.
fn redirect(actions: Reader<'_>) -> Option<u32> {
    let action = actions.nested(1)?;
    if action.text(1)? != "mirred" || actions.bytes(2).is_some() {
        return None;
    }
    let parameters = action.nested(2)?.bytes(2)?;
    let is_redirect = word(parameters, 8)? == 4 && word(parameters, 20)? == 1;
    is_redirect.then(|| word(parameters, 24)).flatten()
}

fn flow(options: Reader<'_>) -> Option<FilterKind> {
    let keys = match options.u32(1)? {
        1 => FlowKeys::Source,
        2 => FlowKeys::Destination,
        0x200 => FlowKeys::SourceBeforeNat,
        _ => return None,
    };
    // A hash, a shift, an addend, a mask or an exclusive or.
    let has_others = options.u32(2)? != 0
        || [4, 5, 6, 7, 9]
            .iter()
            .any(|&kind| options.bytes(kind).is_some());
    (!has_others).then_some(())?;
    Some(FilterKind::Flow {
        keys,
        divisor: options.u32(8)?,
        base: Handle(options.u32(3)?),
    })
}

/// A filter with a program, and without actions of its own.
fn bpf(options: Reader<'_>) -> Option<Bpf> {
    // Actions, a policer, and instructions of the older BPF.
    let has_others = [1, 2, 5].iter().any(|&kind| options.bytes(kind).is_some());
    (!has_others).then_some(())?;
    Some(Bpf {
        name: options.text(7)?.to_owned(),
        class: options.u32(3).filter(|class| *class != 0).map(Handle),
        is_direct: options.u32(8).unwrap_or(0) & 1 != 0,
        tag: options.bytes(10).and_then(|tag| tag.try_into().ok()),
        id: options.u32(11),
    })
}
