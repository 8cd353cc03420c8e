//! Generates random trees.

use core::ops::Range;

use base::Duration;
use proptest::prelude::*;
use qos::classify::{Bands, FlowMatch, Key, KeySet, Map, Match, Ports};
use qos::codel::{self, Parameters};
use qos::fifo::Limit;
use qos::fq_codel::{self, Floor};
use qos::htb::ClassOptions;
use qos::pfifo_fast;
use qos::sfq::{self, Perturb};
use qos::tree::{Classifier, DrrClass, DrrSpec, HtbSpec, PrioSpec, Spec, TbfSpec};
use qos::{fair, tbf};

/// Bytes of the longest packet.
pub(crate) const MTU: u32 = 1_514;
/// The root class of an HTB.
const ROOT: u16 = 0x100;
/// An inner class above some leaves.
const INNER: u16 = 0x101;

fn codel() -> impl Strategy<Value = Parameters> {
    // RFC 8289 4.3: the interval is several times the target. With a shorter interval CoDel drops every few packets.
    // A generator whose period is a few packets can then lose all packets of one flow.
    (0u64..20, 1u64..100, any::<bool>()).prop_map(|(target, interval, ecn)| Parameters {
        target: Duration::from_millis(target),
        interval: Duration::from_millis(interval.max(4 * target)),
        mtu: MTU,
        ecn,
        ce_threshold: None,
    })
}

fn keys() -> impl Strategy<Value = KeySet> {
    let host = KeySet::of(&[Key::Src]);
    prop::sample::select(vec![KeySet::FLOW, KeySet::HOST, KeySet::default(), host])
}

/// A queue of at least `limit` packets. `fair` excludes queues that prefer some flows to others.
pub(crate) fn leaf(limit: u32, fair: bool) -> BoxedStrategy<Spec> {
    let perturb = prop_oneof![Just(Perturb::Apart), Just(Perturb::Rehash)];
    let sfq = (1u32..3_000, 1u32..20, 0u64..100, any::<bool>(), perturb);
    let values = (limit..limit + 100, keys(), codel(), 1u32..3_000, sfq);
    let kinds = if fair { 0u8..6 } else { 0..7 };
    let made = (kinds, values).prop_map(
        move |(kind, (limit, keys, codel, quantum, sfq))| match kind {
            0 => Spec::Fifo(Limit::Packets(limit)),
            1 => Spec::Fifo(Limit::Bytes(u64::from(limit * MTU))),
            2 => {
                let (quantum, divisor, period, head_drop, perturb) = sfq;
                Spec::Sfq(sfq::Options {
                    limit,
                    depth: limit,
                    quantum,
                    divisor,
                    head_drop,
                    // A change gives the flow whose turn it is another full quantum.
                    period: Duration::from_millis(if fair { 50 * period } else { period }),
                    perturb,
                    keys,
                    seed: 1,
                })
            }
            3 => Spec::Codel(codel::Options {
                limit,
                parameters: codel,
            }),
            4 => Spec::FqCodel(fq_codel::Options {
                limit,
                keys,
                quantum,
                flows: 16,
                drop_batch: 1 + quantum % 8,
                floor: if codel.ecn { Floor::All } else { Floor::Flow },
                parameters: codel,
                ..fq_codel::Options::default()
            }),
            5 => Spec::Fair(fair::Options {
                limit,
                hosts: keys,
                quantum,
                hosts_max: 3,
                flows_max: 5,
                codel,
                ..fair::Options::default()
            }),
            _ => Spec::PfifoFast(pfifo_fast::Options {
                limit,
                bands: if codel.ecn { Bands::DSCP } else { Bands::LINUX },
            }),
        },
    );
    made.boxed()
}

/// A classifier that sends packets to the classes 1 to `classes` only.
fn classifier(kind: u8, classes: u32, keys: KeySet) -> Classifier {
    let divisor = classes;
    match kind {
        0 => Classifier::Map(Map {
            divisor,
            ..Map::new(Key::Mark)
        }),
        1 => Classifier::Hash {
            keys,
            divisor,
            seed: 9,
            baseclass: 1,
        },
        2 if classes == 3 => Classifier::Bands(Bands::DSCP),
        _ => {
            let ports = |low, high| FlowMatch {
                proto_src: Some(Ports { low, high }),
                ..FlowMatch::default()
            };
            let rule = |outer, class| {
                let rule = Match {
                    outer,
                    ..Match::default()
                };
                (rule, class)
            };
            let each = (1..classes).map(|class| rule(ports(0, class as u16 - 1), class));
            let rest = (Match::default(), classes);
            Classifier::Rules(each.chain([rest]).collect())
        }
    }
}

fn prio(inner: BoxedStrategy<Spec>) -> impl Strategy<Value = Spec> {
    let bands = prop::collection::vec(inner, 1..4);
    (bands, prop::option::of(0u8..4), keys(), any::<bool>()).prop_map(
        |(bands, kind, keys, linux)| {
            Spec::Prio(PrioSpec {
                classifier: kind.map(|kind| classifier(kind, bands.len() as u32, keys)),
                bands,
                priomap: if linux { Bands::LINUX } else { Bands::DSCP },
            })
        },
    )
}

fn drr(inner: BoxedStrategy<Spec>, quantum: Range<u32>) -> impl Strategy<Value = Spec> {
    let classes = prop::collection::vec((quantum, inner), 1..4);
    (classes, 0u8..4, keys()).prop_map(|(classes, kind, keys)| {
        Spec::Drr(DrrSpec {
            classifier: classifier(kind, classes.len() as u32, keys),
            classes: (1..)
                .zip(classes)
                .map(|(minor, (quantum, child))| DrrClass {
                    minor,
                    quantum,
                    child,
                })
                .collect(),
        })
    })
}

/// Rates of [`any_tree`].
const RATES: Range<u64> = 200_000..50_000_000;
/// Rates of [`tree_of_equals`].
const FAST: Range<u64> = LINK_BPS..50_000_000;
/// Rates above a [`tree_of_equals`]: none of its rates is lower, except those of an HTB's leaves.
pub(crate) const LINK_BPS: u64 = 5_000_000;

fn tbf(inner: BoxedStrategy<Spec>, rate: Range<u64>) -> impl Strategy<Value = Spec> {
    let peak = prop::option::of((1u64..4, MTU..4_000));
    (rate, MTU..20_000, peak, inner).prop_map(|(rate_bps, burst, peak, child)| {
        Spec::Tbf(TbfSpec {
            options: tbf::Options {
                rate_bps,
                burst,
                peak: peak.map(|(times, mtu)| tbf::Peak {
                    rate_bps: rate_bps * times,
                    mtu,
                }),
            },
            child: Box::new(child),
        })
    })
}

/// Classes below one, half of them below another in between. But of `equals`, some have priorities, and what belongs to
/// none may pass by.
fn htb(inner: BoxedStrategy<Spec>, rate: Range<u64>, equals: bool) -> impl Strategy<Value = Spec> {
    let leaf = (
        rate.clone(),
        1u64..5,
        0..if equals { 1 } else { 3u8 },
        MTU..20_000,
        inner,
    );
    let leaves = prop::collection::vec(leaf, 1..5);
    let values = (
        rate,
        MTU..20_000,
        0u8..4,
        keys(),
        0..if equals { 1 } else { 2u32 },
    );
    (leaves, values).prop_map(|(leaves, (root_bps, burst, kind, keys, direct))| {
        let class = |minor, parent, rate_bps, ceil_bps, burst, priority| ClassOptions {
            minor,
            parent,
            rate_bps,
            ceil_bps,
            burst,
            cburst: burst,
            priority,
            quantum: None,
        };
        let count = leaves.len() as u64;
        let mut classes = vec![class(ROOT, None, root_bps, root_bps, burst, 0)];
        let inner_bps = root_bps / 2;
        if count > 2 {
            let inner = class(INNER, Some(ROOT), inner_bps, inner_bps, burst, 0);
            classes.push(inner);
        }
        let mut below = Vec::new();
        let classifier = classifier(kind, leaves.len() as u32 + direct, keys);
        for (minor, (ceil, part, priority, burst, child)) in (1..).zip(leaves) {
            let (parent, parent_bps) = match count > 2 && u64::from(minor) <= count / 2 {
                true => (INNER, inner_bps),
                false => (ROOT, root_bps),
            };
            let ceil = ceil.clamp(parent_bps / 10, parent_bps);
            let rate = (parent_bps / (2 * count) / part).min(ceil);
            classes.push(class(minor, Some(parent), rate, ceil, burst, priority));
            below.push((minor, child));
        }
        Spec::Htb(HtbSpec {
            mtu: MTU,
            classes,
            leaves: below,
            classifier: Some(classifier),
            default: None,
            direct_limit: 5,
        })
    })
}

/// Any tree, with up to three disciplines above a leaf.
pub(crate) fn any_tree() -> impl Strategy<Value = Spec> {
    leaf(1, false).prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            2 => prio(inner.clone()),
            2 => drr(inner.clone(), 1..3_000),
            1 => tbf(inner.clone(), RATES),
            3 => htb(inner, RATES, false),
        ]
    })
}

/// A tree without priorities and without short queues.
pub(crate) fn tree_of_equals() -> impl Strategy<Value = Spec> {
    leaf(64, true).prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            3 => drr(inner.clone(), 1_000..2_000),
            1 => tbf(inner.clone(), FAST),
            2 => htb(inner, FAST, true),
        ]
    })
}

/// A tree below one topmost rate limit.
pub(crate) fn shaped_tree() -> impl Strategy<Value = Spec> {
    let below = prop_oneof![2 => leaf(1, false), 3 => any_tree()].boxed();
    let htb = htb(below.clone(), RATES, false).prop_map(|mut spec| {
        if let Spec::Htb(htb) = &mut spec {
            // No packet bypasses the classes.
            htb.default = Some(1);
        }
        spec
    });
    prop_oneof![tbf(below, RATES), htb]
}
