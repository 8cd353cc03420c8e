//! eBPF programs in place of `u32` and `flow` filters: where a policy asks for headers that those cannot read.

use core::fmt::Write;

use bpf::{Answer, Link, Options, emit};
use qos::classify::{FlowMatch, KeySet, Map, Match};
use qos::policy::Filters;
use qos::tree::Classifier;

use super::{Compiler, ROOT, Refusal};
use crate::object::{Bpf, Filter, FilterKind, Handle, Object};

/// Filters of `u32` that take more time of a packet than a program.
const FILTERS_WORTH: usize = 16;
/// The EtherType that is any.
const ANY: u16 = 3;

/// How the names of filters with programs begin.
pub const PREFIX: &str = "headend-";

/// A program, and the filter that runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// The filter's name, which contains a hash of the instructions.
    pub name: String,
    /// The discipline whose packets it judges.
    pub parent: Handle,
    /// The instructions, as bpf(2) takes them.
    pub instructions: Vec<u64>,
    /// What it chooses, one line each: "proto 6 proto-dst 22 -> 1:10".
    pub words: Vec<String>,
}

impl Compiler<'_> {
    /// Whether a program chooses the classes of these rules.
    pub(super) fn has_program(&self, rules: &[(Match, u32)]) -> Result<bool, Refusal> {
        let may = self.abilities.bpf;
        let count = || {
            rules
                .iter()
                .map(|(rule, _)| super::rules::count(rule))
                .sum::<usize>()
        };
        match self.policy.kernel().classifier {
            Filters::U32 => Ok(false),
            Filters::Bpf if !may => {
                let message = "classifier = \"bpf\": this kernel has no bpf filters (module cls_bpf), or loads no eBPF \
                               program for this process; run it as root, or give classifier = \"auto\"";
                self.refuse("kernel.classifier", message)
            }
            Filters::Bpf => Ok(true),
            Filters::Auto => {
                let has_mark = |rule: &Match| rule.mark.is_some() && !self.abilities.u32_mark;
                let is_deep = rules
                    .iter()
                    .any(|(rule, _)| is_deep(rule) || has_mark(rule));
                Ok(may && (is_deep || !self.abilities.u32 || count() > FILTERS_WORTH))
            }
        }
    }

    /// Whether a program tells hosts apart: it reads the header that the policy means, within tunnels too.
    pub(super) fn has_host_program(&self) -> bool {
        let knows_nat = self.place.is_up && self.policy.kernel().nat && self.abilities.flow;
        self.abilities.bpf && !knows_nat && self.policy.kernel().classifier != Filters::U32
    }

    /// Whether a program tells flows apart, and not the kernel's own hash.
    pub(super) fn has_flow_program(&mut self, keys: KeySet) -> bool {
        let is_usual = keys == KeySet::INNERMOST;
        match self.policy.kernel().classifier {
            Filters::Bpf => true,
            Filters::Auto if !is_usual && self.abilities.bpf => true,
            _ if is_usual => false,
            _ => {
                self.advise(
                    "shape.flow_keys: the kernel tells flows apart by keys of its own; an eBPF program would use \
                     yours, with classifier = \"auto\" and a kernel that has bpf filters (module cls_bpf)"
                        .to_owned(),
                );
                false
            }
        }
    }

    /// Adds a filter with a program to a discipline.
    pub(super) fn attach(
        &mut self,
        parent: Handle,
        classifier: &Classifier,
    ) -> Result<(), Refusal> {
        // Below the root, the filter names the major number, and queues of the same kind share a program.
        let is_root = parent.major() == ROOT;
        let options = Options {
            link: match self.place.header {
                0 => Link::Ip,
                _ => Link::Ethernet,
            },
            answer: match is_root {
                true if self.groups.is_empty() => Answer::Class { major: ROOT },
                true => Answer::Nested { major: ROOT },
                false => Answer::Minor,
            },
            no_answer: if is_root { 0 } else { Answer::NEXT },
        };
        let program = match emit(classifier, &options) {
            Ok(program) => program,
            Err(error) => return self.refuse("kernel.classifier", error.to_string()),
        };
        let instructions = program.instructions().to_vec();
        let name = name_of(&instructions);
        let rules = classifier.rules(parent.major()).into_iter();
        self.out.tree.push(Object::Filter(Filter {
            parent,
            priority: 1,
            protocol: ANY,
            handle: 1,
            chain: 0,
            kind: FilterKind::Bpf(Bpf {
                name: name.clone(),
                class: (!is_root).then_some(parent),
                is_direct: !is_root,
                tag: None,
                id: None,
            }),
        }));
        self.out.programs.push(Attached {
            name,
            parent,
            instructions,
            words: rules
                .map(|rule| format!("{} -> {}", rule.what, rule.class))
                .collect(),
        });
        Ok(())
    }

    /// The program of all rules, at the root.
    pub(super) fn attach_rules(&mut self, rules: &[(Match, u32)]) -> Result<(), Refusal> {
        let count = rules.len();
        if let Some((_, class)) = rules.iter().find(|(rule, _)| self.is_markless(rule)) {
            let name = self.name(*class as u16);
            return self.refuse(&name, super::rules::MARKLESS);
        }
        let handle = |class: u32| self.groups.handle(class as u16).0;
        let rules = rules.iter().map(|(rule, class)| (*rule, handle(*class)));
        let classifier = Classifier::Rules(rules.collect());
        let name = match count {
            1 => "1 rule in a program".to_owned(),
            count => format!("{count} rules in a program"),
        };
        self.out.filter_names.push(name);
        self.attach(Handle::new(ROOT, 0), &classifier)
    }
}

/// The map of hosts to the classes from 1 on.
pub(super) fn hosts(keys: KeySet, divisor: u16) -> Classifier {
    let key = keys.iter().next();
    match key.filter(|_| keys.iter().count() == 1) {
        Some(key) => Classifier::Map(Map {
            divisor: divisor.into(),
            ..Map::new(key)
        }),
        None => hash(keys, divisor),
    }
}

/// A hash of the keys over the classes from 1 on.
pub(super) fn hash(keys: KeySet, divisor: u16) -> Classifier {
    Classifier::Hash {
        keys,
        divisor: divisor.into(),
        // The same policy gives the same program, so that nothing is changed the second time.
        seed: 0x6865_6164_656e_6400,
        baseclass: 1,
    }
}

/// Whether a rule asks for what `u32` cannot read.
fn is_deep(rule: &Match) -> bool {
    let asked = [&rule.innermost, &rule.tunnel];
    rule.vlan.is_some() || asked.into_iter().any(|flow| *flow != FlowMatch::default())
}

/// "headend-0123456789abcdef".
fn name_of(instructions: &[u64]) -> String {
    // FNV-1a.
    let octets = instructions.iter().flat_map(|word| word.to_ne_bytes());
    let hash = octets.fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x100_0000_01b3)
    });
    let mut name = PREFIX.to_owned();
    let _ = write!(name, "{hash:016x}");
    name
}
