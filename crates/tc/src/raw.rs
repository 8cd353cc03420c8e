//! Options as the kernel lists them, in a form that it accepts again.
//!
//! What `apply` replaces may have options that this crate does not know, so they are kept as bytes. Before that, what
//! counts is taken out (statistics, ages, references), and what the kernel rounds down or leaves out is put right. Start
//! with [`Raw::of_qdisc`] and [`filter`].

use serde::{Deserialize, Serialize};

use crate::attributes::{NESTED, Reader, Writer, word};
use crate::encode::{OPTIONS, STAB, STAB_BASE};
use crate::object::{Filter, FilterKind, Object, Qdisc, QdiscKind};

/// The number by which any filter of `u32` names the first table of its priority (`TC_U32_ROOT`).
pub(crate) const U32_FIRST: u32 = 0xfff0_0000;
/// The kernel's own tables of `u32` have at least this number.
const U32_OWN: u32 = 0x800;
/// Bytes of a policer's table of rates.
const RATES: usize = 1_024;
/// Bytes of an action's ages (`struct tcf_t`).
const AGES: usize = 32;
/// `TCA_CLS_FLAGS_IN_HW` and `TCA_CLS_FLAGS_NOT_IN_HW`, which the kernel lists and does not accept.
const IN_HARDWARE: u32 = 1 << 2 | 1 << 3;
/// Why a filter with a program does not come back.
const UNLOADED: &str = "its eBPF program is unloaded with it unless something else keeps it";
const INGRESS_BLOCK: u16 = 13;
/// `TC_ACT_UNSPEC`: the next filter is tried.
const CONTINUE: u32 = u32::MAX;
/// Bytes of a `struct tc_sizespec`.
const SIZE_SPEC: usize = 24;
/// The most entries of a table of sizes: an attribute has 16 bits for its length, and is within another one.
const SIZES_MAX: u32 = 32_700;
/// `TCA_STAB_DATA`.
const STAB_DATA: u16 = 2;

/// A discipline as the kernel lists it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Raw {
    /// `TCA_OPTIONS`.
    pub options: Option<Vec<u8>>,
    /// `struct tc_sizespec`.
    pub stab: Option<Vec<u8>>,
    /// The block of filters that it shares with other interfaces (`TCA_INGRESS_BLOCK`).
    pub block: Option<u32>,
}

impl Raw {
    pub(crate) fn of_qdisc(kind: &str, attributes: Reader<'_>) -> Self {
        let options = attributes.bytes(OPTIONS);
        let stab = attributes.nested(STAB);
        Self {
            options: options.map(|options| qdisc(kind, options)),
            stab: stab
                .and_then(|stab| stab.bytes(STAB_BASE))
                .map(|base| base[..base.len().min(SIZE_SPEC)].to_vec()),
            block: attributes.u32(INGRESS_BLOCK),
        }
    }

    /// Writes options and sizes. A change must not give the number of queues of `fq_codel`.
    pub(crate) fn write(&self, kind: &str, is_change: bool, out: &mut Writer) {
        match &self.options {
            Some(options) if kind == "fq_codel" && is_change => {
                let kept = Reader(options).all().filter(|(kind, _)| *kind != 5);
                out.nest(OPTIONS, |out| {
                    kept.for_each(|(kind, value)| {
                        out.bytes(kind, value);
                    });
                });
            }
            Some(options) => {
                // Only ets insists on this flag.
                let flag = if kind == "ets" { NESTED } else { 0 };
                out.bytes(OPTIONS | flag, options);
            }
            None => {}
        }
        if let Some(stab) = &self.stab {
            let sizes = sizes(stab);
            out.nest(STAB, |out| {
                out.bytes(STAB_BASE, stab);
                if !sizes.is_empty() {
                    out.bytes(STAB_DATA, &sizes);
                }
            });
        }
    }
}

/// The table of sizes for a `struct tc_sizespec`, as tc(8) calculates it; the kernel does not list it.
fn sizes(base: &[u8]) -> Vec<u8> {
    let field = |at| word(base, at).unwrap_or(0);
    let (layer, mpu, count) = (field(8), field(12), field(20));
    let [cell_log, size_log] = [0, 1].map(|at| base.get(at).copied().unwrap_or(0) & 31);
    let size = |slot: u32| {
        let bytes = (u64::from(slot + 1) << cell_log).max(mpu.into());
        let bytes = if layer == 2 {
            bytes.div_ceil(48) * 53
        } else {
            bytes
        };
        u16::try_from(bytes >> size_log).unwrap_or(u16::MAX)
    };
    let sizes = (0..count.min(SIZES_MAX)).map(size);
    sizes.flat_map(u16::to_ne_bytes).collect()
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_ne_bytes());
    }
}

fn qdisc(kind: &str, options: &[u8]) -> Vec<u8> {
    match kind {
        "htb" => rebuilt(options, |kind, value| {
            if kind == 2 {
                // The version, and packets counted.
                put(value, 0, 3);
                put(value, 16, 0);
            }
            true
        }),
        // The kernel lists these times rounded down.
        "fq_codel" => rebuilt(options, |kind, value| {
            if [1, 3, 7].contains(&kind) {
                rounded_up(value);
            }
            true
        }),
        "codel" => rebuilt(options, |kind, value| {
            if [1, 3, 5].contains(&kind) {
                rounded_up(value);
            }
            true
        }),
        "sfq" => {
            let mut options = options.to_vec();
            if let Some(statistics) = options.get_mut(48..72) {
                statistics.fill(0);
            }
            options
        }
        _ => options.to_vec(),
    }
}

fn rounded_up(value: &mut [u8]) {
    let us = word(value, 0).unwrap_or(0);
    put(value, 0, us.saturating_add(1));
}

/// The attributes for which `keep` returns true, after it has changed them.
fn rebuilt(options: &[u8], mut keep: impl FnMut(u16, &mut Vec<u8>) -> bool) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    for (kind, value) in Reader(options).all() {
        let mut value = value.to_vec();
        if keep(kind & !NESTED, &mut value) {
            out.bytes(kind, &value);
        }
    }
    out.0
}

/// Where a kind of filter has its actions, its policer, its flags and its statistics; 0: it has none.
fn places(kind: &str) -> [u16; 4] {
    match kind {
        "basic" => [3, 4, 0, 5],
        "bpf" => [1, 2, 9, 0],
        "cgroup" => [1, 2, 0, 0],
        "flow" => [9, 10, 0, 0],
        "flower" => [3, 0, 22, 0],
        "fw" => [4, 2, 0, 0],
        "matchall" => [2, 0, 3, 4],
        "route" => [6, 5, 0, 0],
        "u32" => [7, 6, 11, 9],
        _ => [0; 4],
    }
}

/// A filter's options, and its number, in a form that the kernel accepts again.
pub(crate) fn filter(kind: &str, handle: u32, options: &[u8]) -> (Vec<u8>, u32) {
    let [actions_at, policer_at, flags_at, statistics_at] = places(kind);
    let mut number = handle;
    let options = rebuilt(options, |place, value| {
        if place == statistics_at {
            return false;
        }
        if place == actions_at {
            *value = actions(value);
        } else if place == policer_at {
            *value = policer(value);
        } else if place == flags_at {
            let flags = word(value, 0).unwrap_or(0) & !IN_HARDWARE;
            put(value, 0, flags);
            return flags != 0;
        } else if (kind, place) == ("u32", 10) {
            // How often the mark was as wanted.
            put(value, 8, 0);
        } else if (kind, place) == ("u32", 2) && is_first(word(value, 0).unwrap_or(0)) {
            // The kernel numbers the first table again.
            put(value, 0, U32_FIRST);
            number = handle & 0xfff;
        }
        // eBPF lists hash and number of a program, which it gives anew.
        !(kind == "bpf" && [10, 11].contains(&place))
    });
    (options, number)
}

/// Whether a table of `u32` is the kernel's own: the first one of a priority.
pub(crate) fn is_first(table: u32) -> bool {
    table >> 20 >= U32_OWN && table & 0xf_f000 == 0
}

fn actions(nest: &[u8]) -> Vec<u8> {
    rebuilt(nest, |_, action| {
        let name = Reader(action).text(1).unwrap_or_default().to_owned();
        *action = rebuilt(action, |place, value| {
            if place == 2 && name == "police" {
                *value = policer(value);
            } else if place == 2 {
                *value = action_options(value);
            }
            // Kind, options, cookie, flags, and whose statistics.
            [1, 2, 6, 7, 8].contains(&place)
        });
        true
    })
}

/// Most actions begin with a `struct tc_gen`, and list their ages.
fn action_options(options: &[u8]) -> Vec<u8> {
    rebuilt(options, |place, value| {
        let is_head = [1, 2].contains(&place);
        if is_head && value.len() >= 20 {
            put(value, 12, 0);
            put(value, 16, 0);
        }
        !(is_head && value.len() == AGES)
    })
}

/// A policer lists its rates without the tables that the kernel wants; it looks at their length alone.
fn policer(options: &[u8]) -> Vec<u8> {
    let mut tables = Vec::new();
    let options = rebuilt(options, |place, value| {
        if place == 1 {
            put(value, 44, 0);
            put(value, 48, 0);
            for (spec, table) in [(20, 2), (32, 3)] {
                let has_rate = word(value, spec + 8).is_some_and(|rate| rate != 0);
                if let Some(log) = value.get_mut(spec).filter(|_| has_rate) {
                    *log = 3;
                    tables.push(table);
                }
            }
        }
        ![2, 3, 6].contains(&place)
    });
    let mut out = Writer(options);
    for table in tables {
        out.bytes(table, &[0; RATES]);
    }
    out.0
}

impl Qdisc {
    /// Whether its filters are those of a block that other interfaces have too.
    #[must_use]
    pub fn shares_filters(&self) -> bool {
        self.raw.as_ref().is_some_and(|raw| raw.block.is_some())
    }
}

impl Filter {
    /// Whether it takes every packet, or every one of IPv4 or IPv6, so that later filters see none.
    #[must_use]
    pub fn takes_all(&self) -> bool {
        let is_broad = [3, 0x0800, 0x86dd].contains(&self.protocol);
        let is_empty = |keys: &[u8]| keys.chunks(16).all(|key| word(key, 0) == Some(0));
        is_broad
            && match &self.kind {
                FilterKind::U32 { keys, mark, .. } => {
                    mark.is_none() && keys.iter().all(|key| key.mask == 0)
                }
                FilterKind::Flow { .. } => true,
                FilterKind::Bpf(_) => false,
                FilterKind::Other { kind, options } => {
                    let options = Reader(options.as_deref().unwrap_or_default());
                    let has_no = |at: u16| options.bytes(at).is_none();
                    let matches_all = match kind.as_str() {
                        "matchall" => true,
                        "basic" => has_no(2),
                        // Keys but for the EtherType.
                        "flower" => (4..80).all(|at| [8, 22].contains(&at) || has_no(at)),
                        // No link to a table, no mark, no interface; of the first table.
                        "u32" => {
                            let keys = options.bytes(5).and_then(|selector| selector.get(16..));
                            [3, 8, 10].into_iter().all(has_no)
                                && options.u32(2) == Some(U32_FIRST)
                                && keys.is_some_and(is_empty)
                        }
                        _ => false,
                    };
                    matches_all && !continues(kind, options)
                }
            }
    }

    /// Whether an action sends packets to the interface with this index.
    #[must_use]
    pub fn leads_to(&self, index: u32) -> bool {
        let FilterKind::Other { kind, options } = &self.kind else {
            return false;
        };
        let options = Reader(options.as_deref().unwrap_or_default());
        let actions = options.bytes(places(kind)[0]).unwrap_or_default();
        Reader(actions).all().any(|(_, action)| {
            let action = Reader(action);
            let parameters = action.nested(2).and_then(|options| options.bytes(2));
            action.text(1) == Some("mirred")
                && parameters.and_then(|bytes| word(bytes, 24)) == Some(index)
        })
    }
}

/// Whether the next filter is tried after a filter's last action, or after its policer let a packet pass.
fn continues(kind: &str, options: Reader<'_>) -> bool {
    let [actions_at, policer_at, ..] = places(kind);
    let verdict_of = |policer: Reader<'_>| policer.u32(5).or(word(policer.bytes(1)?, 4));
    let last = options.bytes(actions_at).and_then(|actions| {
        let (_, action) = Reader(actions).all().last()?;
        let (action, options) = (Reader(action), Reader(action).nested(2)?);
        match action.text(1)? {
            "police" => verdict_of(options),
            _ => word(options.bytes(2)?, 8),
        }
    });
    let policer = options.nested(policer_at).filter(|_| policer_at != 0);
    [last, policer.and_then(verdict_of)].contains(&Some(CONTINUE))
}

impl Object {
    /// Why an object cannot be made again from what the kernel lists; `None` if it can.
    #[must_use]
    pub fn loss(&self) -> Option<&'static str> {
        match self {
            Self::Qdisc(qdisc) => match qdisc.kind.name() {
                "red" | "gred" | "choke" => Some("the kernel does not list its table"),
                "netem" if has_jitter(&qdisc.kind) => {
                    Some("the kernel does not list the distribution of its delays")
                }
                _ => None,
            },
            Self::Class(_) => None,
            Self::Filter(filter) => match &filter.kind {
                FilterKind::Bpf(_) => Some(UNLOADED),
                FilterKind::Other { kind, options } if kind == "bpf" => {
                    // Instructions of the older BPF are listed.
                    let options = Reader(options.as_deref().unwrap_or_default());
                    let is_lost = options.bytes(5).is_none();
                    is_lost.then_some(UNLOADED)
                }
                _ => None,
            },
        }
    }
}

fn has_jitter(kind: &QdiscKind) -> bool {
    let QdiscKind::Other { options, .. } = kind else {
        return false;
    };
    let jitter = options.as_deref().and_then(|options| word(options, 20));
    jitter.is_some_and(|jitter| jitter != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_sizes_is_that_of_tc() {
        // `stab linklayer atm tsize 128`: mtu 2047, so 16 bytes a slot.
        let mut base = vec![4, 0, 0xff, 0xff];
        for value in [0_u32, 2, 0, 2_047, 128] {
            base.extend(value.to_ne_bytes());
        }
        let sizes = sizes(&base);
        assert_eq!(sizes.len(), 256);
        let size = |slot: usize| u16::from_ne_bytes([sizes[slot * 2], sizes[slot * 2 + 1]]);
        // 16, 48, 64 and 2,048 bytes in cells of 48 that take 53.
        assert_eq!([0, 2, 3, 127].map(size), [53, 53, 106, 43 * 53]);
    }

    #[test]
    fn what_counts_is_not_kept() {
        let mut mirred = Writer(Vec::new());
        mirred.bytes(1, &[7; AGES]).bytes(2, &[1; 28]);
        let mut action = Writer(Vec::new());
        action.text(1, "mirred").bytes(4, &[9; 40]);
        action.bytes(2, &mirred.0);
        let mut options = Writer(Vec::new());
        options.u32(1, 0x1_0001).u32(11, 8).bytes(9, &[1; 24]);
        options.nest(7, |out| {
            out.bytes(1, &action.0);
        });
        let (kept, handle) = filter("u32", 0x8000_0800, &options.0);
        assert_eq!(handle, 0x8000_0800);
        let kept = Reader(&kept);
        assert_eq!((kept.bytes(9), kept.bytes(11)), (None, None));
        let action = kept.nested(7).and_then(|nest| nest.nested(1));
        let action = action.expect("an action");
        assert_eq!((action.text(1), action.bytes(4)), (Some("mirred"), None));
        let mirred = action.nested(2).expect("options");
        let mut expected = [1; 28];
        expected[12..20].fill(0);
        assert_eq!(
            (mirred.bytes(1), mirred.bytes(2)),
            (None, Some(&expected[..]))
        );
    }

    #[test]
    fn a_policer_gets_the_table_that_the_kernel_wants() {
        let mut parameters = vec![0; 56];
        put(&mut parameters, 28, 125_000);
        put(&mut parameters, 44, 1);
        let mut options = Writer(Vec::new());
        options.bytes(1, &parameters).bytes(6, &[1; AGES]);
        let kept = policer(&options.0);
        let kept = Reader(&kept);
        let parameters = kept.bytes(1).expect("parameters");
        assert_eq!((parameters[20], parameters[44]), (3, 0));
        assert_eq!(kept.bytes(2).map(<[u8]>::len), Some(RATES));
        assert_eq!((kept.bytes(3), kept.bytes(6)), (None, None));
    }
}
