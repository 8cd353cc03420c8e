//! A policy becomes the kernel's objects, for what a kernel has.
//!
//! `cake` is the other choice for the root. `leaf` chooses the queue of a class, `rules` turns conditions into filters,
//! `programs` into eBPF programs; `groups` divides large trees. What a kernel cannot do is refused, or done by a simpler queue with advice that names
//! the missing module.

mod cake;
mod groups;
mod leaf;
mod programs;
mod rules;

use std::collections::HashMap;

use groups::Groups;
pub use programs::{Attached, PREFIX};
use qos::policy::Policy;
use qos::tree::{Classifier, HtbSpec, Overhead, Spec};
use serde::{Deserialize, Serialize};

use crate::object::{
    Action, Class, ClassKind, Filter, FilterKind, Handle, Key, Object, Qdisc, QdiscKind, Speed,
    Tree,
};

/// The modules that a kernel has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "a list of modules")]
pub struct Abilities {
    /// `sch_htb`.
    pub htb: bool,
    /// `sch_fq_codel`.
    pub fq_codel: bool,
    /// `sch_codel`.
    pub codel: bool,
    /// `sch_sfq`.
    pub sfq: bool,
    /// `sch_drr`.
    pub drr: bool,
    /// `sch_ets`.
    pub ets: bool,
    /// `cls_flow`.
    pub flow: bool,
    /// `cls_bpf`, and leave to load eBPF programs.
    pub bpf: bool,
    /// `sch_cake`.
    pub cake: bool,
    /// `cls_u32`.
    pub u32: bool,
    /// Filters of `u32` compare marks (`CONFIG_CLS_U32_MARK`).
    pub u32_mark: bool,
    /// `nf_conntrack` is there, so addresses before NAT are known.
    pub conntrack: bool,
    /// `sch_ingress`, `act_mirred` and `ifb`.
    pub redirect: bool,
}

impl Abilities {
    /// All modules.
    pub const ALL: Self = Self {
        htb: true,
        fq_codel: true,
        codel: true,
        sfq: true,
        drr: true,
        ets: true,
        flow: true,
        bpf: true,
        cake: true,
        u32: true,
        u32_mark: true,
        conntrack: true,
        redirect: true,
    };
}

/// Why a policy cannot be compiled: the part of the policy, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct Refusal {
    /// The direction, and the section or class.
    pub place: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// The place of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Whether packets go to the provider.
    pub is_up: bool,
    /// Bytes of the link layer's header that the kernel counts in a packet's length: 14 with Ethernet, 0 with PPP.
    pub header: u32,
    /// Whether the packets were redirected before the firewall saw them, so that they have no mark.
    pub is_redirected: bool,
}

/// The objects, and advice on what the kernel does otherwise than the policy says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Compiled {
    /// The objects.
    pub tree: Tree,
    /// Advice, one line each.
    pub advice: Vec<String>,
    /// The policy's names for classes, by handle.
    pub class_names: Vec<(Handle, String)>,
    /// The section of the policy that each filter comes from, in the order of priorities from 1.
    pub filter_names: Vec<String>,
    /// The eBPF programs that the tree's filters run.
    pub programs: Vec<Attached>,
}

/// The major of the first discipline.
const ROOT: u16 = 1;

/// Compiles one direction of a policy. A direction without a rate gives an empty tree.
///
/// # Errors
/// The kernel lacks a module, or its filters cannot express a condition.
pub fn compile(policy: &Policy, place: Place, abilities: &Abilities) -> Result<Compiled, Refusal> {
    let spec = if place.is_up {
        policy.up_spec()
    } else {
        policy.down_spec()
    };
    let Spec::Htb(spec) = spec else {
        return Ok(Compiled::default());
    };
    let mut compiler = Compiler {
        policy,
        place,
        abilities,
        spec: &spec,
        groups: Groups::default(),
        ceilings_bps: spec
            .classes
            .iter()
            .map(|class| (class.minor, class.ceil_bps))
            .collect(),
        below: 0,
        out: Compiled::default(),
    };
    if policy.kernel().nat && !abilities.conntrack {
        let line = "kernel.nat: this kernel tracks no connections yet (module nf_conntrack), so hosts are those after NAT \
                    until it does";
        compiler.advise(line.to_owned());
    }
    if policy.kernel().cake {
        compiler.add_cake()?;
        return Ok(compiler.out);
    }
    compiler.check_modules()?;
    compiler.divide()?;
    compiler.add_root();
    for class in &spec.classes {
        compiler.add_class(class);
        let name = policy.class_name(class.minor).unwrap_or_default();
        let named = (compiler.groups.handle(class.minor), name.to_owned());
        compiler.out.class_names.push(named);
    }
    for (minor, leaf) in &spec.leaves {
        compiler.add_leaf(*minor, leaf)?;
    }
    compiler.add_rules()?;
    Ok(compiler.out)
}

/// The filter that sends arriving packets to another interface's queue.
#[must_use]
pub fn redirection(index: u32, priority: u16) -> Filter {
    Filter {
        parent: Handle::ARRIVING,
        priority,
        protocol: 3,
        handle: 0,
        chain: 0,
        kind: FilterKind::U32 {
            keys: vec![Key {
                offset: 0,
                mask: 0,
                value: 0,
            }],
            mark: None,
            action: Action::Redirect(index),
        },
    }
}

/// The discipline that such a filter needs.
#[must_use]
pub fn ingress() -> Qdisc {
    Qdisc {
        handle: Handle::INGRESS,
        parent: Handle::INGRESS_PARENT,
        added: None,
        kind: QdiscKind::Ingress,
        raw: None,
    }
}

struct Compiler<'p> {
    policy: &'p Policy,
    place: Place,
    abilities: &'p Abilities,
    spec: &'p HtbSpec,
    /// Classes of inner disciplines.
    groups: Groups,
    /// The ceiling of each class.
    ceilings_bps: HashMap<u16, u64>,
    /// Disciplines below drr so far.
    below: u16,
    out: Compiled,
}

impl Compiler<'_> {
    fn direction(&self) -> &'static str {
        if self.place.is_up { "up" } else { "down" }
    }

    fn refuse<T>(&self, what: &str, message: impl Into<String>) -> Result<T, Refusal> {
        Err(Refusal {
            place: format!("{}, {what}", self.direction()),
            message: message.into(),
        })
    }

    fn advise(&mut self, line: String) {
        if !self.out.advice.contains(&line) {
            self.out.advice.push(line);
        }
    }

    /// The policy's name for a class, with its number.
    fn name(&self, minor: u16) -> String {
        let name = self.policy.class_name(minor).unwrap_or_default();
        format!("class {} \"{name}\"", self.groups.handle(minor))
    }

    /// Divides a large tree, if a program chooses its classes.
    fn divide(&mut self) -> Result<(), Refusal> {
        if let Some(Classifier::Rules(rules)) = &self.spec.classifier
            && self.has_program(rules)?
        {
            self.groups = Groups::of(self.spec);
        }
        Ok(())
    }

    fn check_modules(&self) -> Result<(), Refusal> {
        if !self.abilities.htb {
            let message = "this kernel has no htb (module sch_htb); load it, install the package of \
                           your kernel's modules, or use headend qos run";
            return self.refuse("link", message);
        }
        Ok(())
    }

    /// Bytes that each packet's length needs in addition to the kernel's count.
    fn beyond(&self) -> i32 {
        self.policy.overhead().per_packet - self.place.header.cast_signed()
    }

    fn add_root(&mut self) {
        self.out.tree.push(Object::Qdisc(Qdisc {
            handle: Handle::new(ROOT, 0),
            parent: Handle::ROOT,
            // htb can only add bytes.
            added: Some(self.beyond()).filter(|bytes| *bytes < 0),
            kind: QdiscKind::Htb {
                default: self.spec.default.unwrap_or(0).into(),
            },
            raw: None,
        }));
    }

    fn add_class(&mut self, class: &qos::htb::ClassOptions) {
        let Overhead { mpu, atm, .. } = self.policy.overhead();
        // The kernel lets a class send one packet beyond its burst.
        let mtu = self.spec.mtu;
        let speed = |rate_bps: u64, burst: u32| {
            let rate = (rate_bps / 8).max(1);
            Speed {
                rate,
                burst_ticks: Speed::ticks(rate, burst.saturating_sub(mtu).max(mtu)),
                overhead: u16::try_from(self.beyond().max(0)).unwrap_or(0),
                mpu: mpu as u16,
                atm,
            }
        };
        let tenth = u32::try_from(class.rate_bps / 80).unwrap_or(u32::MAX);
        let kind = ClassKind::Htb {
            rate: speed(class.rate_bps, class.burst),
            ceil: speed(class.ceil_bps, class.cburst),
            quantum: class.quantum.unwrap_or(tenth).clamp(mtu, 200_000.max(mtu)),
            prio: self
                .groups
                .priority(class.minor)
                .unwrap_or(class.priority)
                .into(),
        };
        self.out.tree.push(Object::Class(Class {
            handle: self.groups.handle(class.minor),
            parent: self.groups.above(class),
            kind: kind.clone(),
        }));
        if self.groups.priority(class.minor).is_some() {
            self.add_inner(class, &kind);
        }
    }
}
