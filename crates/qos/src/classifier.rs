//! Which class a packet belongs to, as plain data, and how `show` prints it.

use crate::classify::{Bands, Filter, FlowMatch, Hash, KeySet, Map, Match};
use crate::discipline::Classify;

/// Chooses a packet's class.
#[derive(Debug, Clone, PartialEq)]
pub enum Classifier {
    /// Rules in order, the first that matches wins.
    Rules(Vec<(Match, u32)>),
    /// A class number calculated from one key.
    Map(Map),
    /// Packets spread over classes by a hash of their keys.
    Hash {
        /// The keys.
        keys: KeySet,
        /// Number of classes.
        divisor: u32,
        /// Chooses the function.
        seed: u64,
        /// The first class.
        baseclass: u32,
    },
    /// The DSCP's band: the first band is class 1.
    Bands(Bands),
}

/// A rule of a classifier, as `show` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The condition: "proto 6 proto-dst 22".
    pub what: String,
    /// The handle of the class that such packets go to; of several classes, the first and how many.
    pub class: String,
}

impl Classifier {
    /// The classifier itself.
    pub(crate) fn make(&self) -> Box<dyn Classify> {
        match self {
            Self::Rules(rules) => Box::new(Filter::new(rules.iter().copied())),
            Self::Map(map) => Box::new(*map),
            Self::Hash {
                keys,
                divisor,
                seed,
                baseclass,
            } => Box::new(Hash::new(*keys, *divisor, *seed, *baseclass)),
            Self::Bands(bands) => Box::new(*bands),
        }
    }

    /// Its rules, for the discipline `major`.
    #[must_use]
    pub fn rules(&self, major: u16) -> Vec<Rule> {
        let class = |class: u32| name(major, class as u16);
        let several = |what, first, divisor| {
            let count = match divisor {
                0 => " and on".to_owned(),
                divisor => format!(" and on, {divisor} in all"),
            };
            vec![Rule {
                what,
                class: class(first) + &count,
            }]
        };
        match self {
            Self::Rules(rules) => {
                let rules = rules.iter().map(|(rule, to)| Rule {
                    what: describe(rule),
                    class: class(*to),
                });
                rules.collect()
            }
            Self::Map(map) => {
                let what = format!(
                    "map {} and {:#x} xor {:#x} rshift {} addend {:#x}",
                    map.key, map.mask, map.xor, map.rshift, map.addend
                );
                several(what, map.baseclass, map.divisor)
            }
            Self::Hash {
                keys,
                divisor,
                baseclass,
                ..
            } => several(format!("hash {keys}"), *baseclass, *divisor),
            Self::Bands(_) => several("dscp".to_owned(), 1, 0),
        }
    }
}

/// A class's name: "1:10".
#[must_use]
pub fn name(major: u16, minor: u16) -> String {
    format!("{major:x}:{minor:x}")
}

/// The conditions of a rule as text, by the names of the keys.
pub(crate) fn describe(rule: &Match) -> String {
    let mut words = Vec::new();
    asked("", &rule.outer, &mut words);
    asked("tunnel-", &rule.tunnel, &mut words);
    asked("innermost-", &rule.innermost, &mut words);
    words.extend(rule.dscp.map(|dscp| format!("dscp {dscp}")));
    let mark = rule
        .mark
        .map(|mark| format!("mark {:#x}/{:#x}", mark.value, mark.mask));
    words.extend(mark);
    words.extend(rule.vlan.map(|vlan| format!("vlan {vlan}")));
    match words.is_empty() {
        true => "all".to_owned(),
        false => words.join(" "),
    }
}

fn asked(header: &str, flow: &FlowMatch, words: &mut Vec<String>) {
    words.extend(flow.src.map(|prefix| format!("{header}src {prefix}")));
    words.extend(flow.dst.map(|prefix| format!("{header}dst {prefix}")));
    words.extend(flow.proto.map(|proto| format!("{header}proto {proto}")));
    words.extend(
        flow.proto_src
            .map(|ports| format!("{header}proto-src {ports}")),
    );
    words.extend(
        flow.proto_dst
            .map(|ports| format!("{header}proto-dst {ports}")),
    );
}
