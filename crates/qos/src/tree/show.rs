//! What `headend qos show` and `graph` are told of a tree.

use core::fmt::Write;

use super::spec::{below, name};
use super::{Classifier, Kept, Spec, Tree, added};
use crate::classify::{FlowMatch, Match};
use crate::codel::Parameters;
use crate::discipline::{Backlog, Discipline, Statistics};
use crate::fifo::Limit;
use crate::policy::units::{Octets, Rate, Time};

/// A discipline or a class, as tc shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The discipline's kind, or that of the discipline whose class it is.
    pub kind: &'static str,
    /// Whether it is a class.
    pub is_class: bool,
    /// "1:" or "1:10".
    pub handle: String,
    /// The handle right above it: of a class, its parent class or its discipline; of a discipline, its class. `None` for
    /// the root.
    pub parent: Option<String>,
    /// Its options, as tc prints them.
    pub options: String,
    /// What it has done.
    pub statistics: Statistics,
    /// What waits in it and below it.
    pub backlog: Backlog,
    /// Numbers of its own.
    pub details: Vec<(&'static str, i64)>,
    /// Of a discipline with classes: what goes where, in order.
    pub rules: Vec<Rule>,
}

/// What a classifier says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What is asked: "proto 6 proto-dst 22".
    pub what: String,
    /// The handle of the class that such packets go to; of several, the first and how many.
    pub class: String,
}

impl Tree {
    /// Every discipline and class once, each after what is above it.
    #[must_use]
    pub fn walk(&self) -> Vec<Node> {
        let mut nodes = Vec::new();
        let root = (&self.spec, self.root.as_ref());
        self.visit(
            root,
            "",
            None,
            &mut self.majors.iter(),
            &mut |node, place| {
                let mut node: Node = node;
                node.statistics = added(node.statistics, self.kept(place, node.kind));
                nodes.push(node);
            },
        );
        nodes
    }

    /// What was counted in each place, changes before included.
    pub(super) fn counted(&self) -> Kept {
        let mut kept = self.kept.clone();
        let root = (&self.spec, self.root.as_ref());
        self.visit(
            root,
            "",
            None,
            &mut self.majors.iter(),
            &mut |node, place| {
                let sum = kept.entry((place.to_owned(), node.kind)).or_default();
                *sum = added(*sum, node.statistics);
            },
        );
        kept
    }

    fn visit(
        &self,
        (spec, discipline): (&Spec, &dyn Discipline),
        place: &str,
        parent: Option<String>,
        majors: &mut core::slice::Iter<'_, u16>,
        into: &mut dyn FnMut(Node, &str),
    ) {
        let kind = discipline.kind();
        let major = majors.next().copied().unwrap_or(0);
        let handle = format!("{major:x}:");
        let details = discipline.details();
        let node = Node {
            kind,
            is_class: false,
            handle: handle.clone(),
            parent,
            options: options(spec),
            statistics: discipline.statistics(),
            backlog: discipline.backlog(),
            details: details
                .into_iter()
                .map(|(name, value)| (name, i64::try_from(value).unwrap_or(i64::MAX)))
                .collect(),
            rules: rules(spec, major),
        };
        into(node, place);
        let classes = discipline.classes();
        let has_classes = !classes.is_empty();
        for class in classes {
            let minor = class.name.rsplit(':').next().unwrap_or_default();
            let place = format!("{place}:{minor}");
            let node = Node {
                kind,
                is_class: true,
                handle: class.name,
                parent: Some(class.parent.unwrap_or_else(|| handle.clone())),
                options: class.options,
                statistics: class.statistics,
                backlog: class.backlog,
                details: class.details,
                rules: Vec::new(),
            };
            into(node, &place);
        }
        for (minor, spec, discipline) in below(spec, discipline) {
            let place = format!("{place}/{minor:x}");
            let class = name(major, minor);
            let parent = if has_classes { class } else { handle.clone() };
            self.visit((spec, discipline), &place, Some(parent), majors, into);
        }
    }
}

fn options(spec: &Spec) -> String {
    match spec {
        Spec::Fifo(Limit::Packets(packets)) => format!("limit {packets}p"),
        Spec::Fifo(Limit::Bytes(bytes)) => format!("limit {}", Octets(*bytes)),
        Spec::PfifoFast(options) => format!("bands 3 limit {}p", options.limit),
        Spec::Sfq(options) => {
            let mut text = format!(
                "limit {}p quantum {} depth {} divisor {} keys {}",
                options.limit,
                Octets(options.quantum.into()),
                options.depth,
                options.divisor,
                options.keys
            );
            if options.period.as_nanos() > 0 {
                let _ = write!(text, " perturb {}", Time(options.period));
            }
            text
        }
        Spec::Codel(options) => format!("limit {}p{}", options.limit, codel(&options.parameters)),
        Spec::FqCodel(options) => format!(
            "limit {}p flows {} quantum {} memory_limit {} keys {}{}",
            options.limit,
            options.flows,
            Octets(options.quantum.into()),
            Octets(options.memory_limit),
            options.keys,
            codel(&options.parameters)
        ),
        Spec::Fair(options) => {
            let hosts = match options.hosts.is_empty() {
                true => "off".to_owned(),
                false => options.hosts.to_string(),
            };
            format!(
                "limit {}p memory_limit {} quantum {} hosts {hosts} flows {}{}",
                options.limit,
                Octets(options.memory_limit),
                Octets(options.quantum.into()),
                options.flows,
                codel(&options.codel)
            )
        }
        Spec::Prio { bands, .. } => format!("bands {}", bands.len()),
        Spec::Drr { .. } => String::new(),
        Spec::Tbf { options, .. } => {
            let rate = Rate(options.rate_bps);
            let mut text = format!("rate {rate} burst {}", Octets(options.burst.into()));
            if let Some(peak) = options.peak {
                let (rate, mtu) = (Rate(peak.rate_bps), Octets(peak.mtu.into()));
                let _ = write!(text, " peakrate {rate} mtu {mtu}");
            }
            text
        }
        Spec::Htb(htb) => {
            let default = htb.default.unwrap_or(0);
            format!("default {default:#x} direct_qlen {}", htb.direct_limit)
        }
    }
}

fn codel(parameters: &Parameters) -> String {
    let (target, interval) = (Time(parameters.target), Time(parameters.interval));
    let mut text = format!(" target {target} interval {interval}");
    if let Some(threshold) = parameters.ce_threshold {
        let _ = write!(text, " ce_threshold {}", Time(threshold));
    }
    if parameters.ecn {
        text.push_str(" ecn");
    }
    text
}

fn rules(spec: &Spec, major: u16) -> Vec<Rule> {
    let class = |class: u32| name(major, class as u16);
    let mut shown = match spec {
        Spec::Prio { classifier, .. } => {
            let mut shown = told(classifier.as_ref(), &class);
            shown.push(Rule {
                what: "else by dscp".to_owned(),
                class: format!("{} and on", class(1)),
            });
            shown
        }
        Spec::Drr { classifier, .. } => told(Some(classifier), &class),
        Spec::Htb(htb) => told(htb.classifier.as_ref(), &class),
        _ => Vec::new(),
    };
    if let Spec::Htb(htb) = spec {
        shown.push(Rule {
            what: "else".to_owned(),
            class: htb
                .default
                .map_or_else(|| "unshaped".to_owned(), |minor| class(minor.into())),
        });
    }
    shown
}

fn told(classifier: Option<&Classifier>, class: &impl Fn(u32) -> String) -> Vec<Rule> {
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
    match classifier {
        None => Vec::new(),
        Some(Classifier::Rules(rules)) => {
            let rules = rules.iter().map(|(rule, to)| Rule {
                what: describe(rule),
                class: class(*to),
            });
            rules.collect()
        }
        Some(Classifier::Map(map)) => {
            let what = format!(
                "map {} and {:#x} xor {:#x} rshift {} addend {:#x}",
                map.key, map.mask, map.xor, map.rshift, map.addend
            );
            several(what, map.baseclass, map.divisor)
        }
        Some(Classifier::Hash {
            keys,
            divisor,
            baseclass,
            ..
        }) => several(format!("hash {keys}"), *baseclass, *divisor),
        Some(Classifier::Bands(_)) => several("dscp".to_owned(), 1, 0),
    }
}

/// A rule in words, by the names of the keys.
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
