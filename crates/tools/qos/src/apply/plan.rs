//! Which interface gets which queues.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use qos::policy::Policy;
use reactor::netlink::Netlink;
use serde_json::json;
use tc::compile::{Attached, Place, compile};
use tc::{Abilities, Compiled, Object, Tree, changes, line};

use super::kernel::{Kernel, Queues};
use super::outside::{self, Arriving, View, inside};
use super::remembered;
use super::state::{Kept, State, Store};
use super::transaction::{Target, named};

/// Bytes of an Ethernet header, and the link layers that have one (`ARPHRD_ETHER`, `ARPHRD_LOOPBACK`).
const ETHERNET: u32 = 14;
const WITH_HEADER: [u16; 2] = [1, 772];

/// The trees for a policy.
pub(super) struct Plan {
    /// The state once the policy is in force.
    pub(super) state: State,
    /// The state before.
    pub(super) old: Option<State>,
    /// What the old and the new policy change.
    pub(super) state_meanwhile: State,
    /// Advice, one line each.
    pub(super) advice: Vec<String>,
    /// The wanted queues of each interface of `state_meanwhile`, without those for arriving packets, and whether headend
    /// made the discipline for these.
    wanted: Vec<(String, u32, Tree, bool)>,
    /// The queues of the interface made for arriving packets.
    arriving: Tree,
    /// The programs of each interface.
    programs: Vec<(String, Attached)>,
}

/// The modules of this kernel. A dry run without the privilege to try assumes all.
pub(super) fn abilities(directory: &Path, is_dry: bool) -> Result<Abilities> {
    match remembered::abilities(directory, is_dry) {
        Ok(abilities) => Ok(abilities),
        Err(_) if is_dry => {
            eprintln!("without root it is unknown which modules this kernel has; all are assumed (advice)");
            Ok(Abilities::ALL)
        }
        Err(error) => Err(error.context(
            "cannot try which modules this kernel has; run it as root (CAP_NET_ADMIN and CAP_SYS_ADMIN)",
        )),
    }
}

/// The name of the interface for packets that arrive at `wan`.
fn ifb_of(wan: &str, index: u32) -> String {
    let name = format!("ifb4{wan}");
    match name.len() {
        ..=15 => name,
        _ => format!("ifb4-{index}"),
    }
}

impl Plan {
    /// Compiles `policy` for `wan` and perhaps `lan`, names with indices.
    ///
    /// # Errors
    /// The kernel cannot do what the policy says.
    pub(super) fn new(
        policy: &Policy,
        wan: (&str, u32),
        lan: Option<(&str, u32)>,
        abilities: &Abilities,
        old: Option<State>,
        store: &Store,
        kernel: &mut Kernel,
    ) -> Result<Self> {
        let place = |is_up, index, is_redirected, kernel: &mut Kernel| {
            let layer = kernel.netlink.link_layer(index)?;
            let header = if WITH_HEADER.contains(&layer) {
                ETHERNET
            } else {
                0
            };
            anyhow::Ok(Place {
                is_up,
                header,
                is_redirected,
            })
        };
        let up = compile(policy, place(true, wan.1, false, kernel)?, abilities)?;
        let down_at = lan.map_or(wan.1, |(_, index)| index);
        let down = place(false, down_at, lan.is_none(), kernel)?;
        let down = compile(policy, down, abilities)?;
        let mut plan = Self {
            state: with_names(store, wan, lan, &up, &down),
            state_meanwhile: store.empty(wan.0, wan.1),
            advice: up.advice,
            wanted: Vec::new(),
            arriving: Tree::default(),
            programs: Vec::new(),
            old,
        };
        let ifb = ifb_of(wan.0, wan.1);
        let down_name = lan.map_or(ifb.as_str(), |(name, _)| name);
        for (device, programs) in [(wan.0, up.programs), (down_name, down.programs)] {
            let named = programs.into_iter().map(|one| (device.to_owned(), one));
            plan.programs.extend(named);
        }
        for line in down.advice {
            if !plan.advice.contains(&line) {
                plan.advice.push(line);
            }
        }
        if policy.kernel().nat && !policy.kernel().cake && lan.is_none() && abilities.drr {
            let line = "downloads know the hosts behind NAT only with --lan IF, or with cake";
            plan.advice.push(line.to_owned());
        }
        plan.keep_old(kernel)?;
        plan.add(wan, up.tree, kernel)?;
        match lan {
            Some(lan) => plan.add(lan, down.tree, kernel)?,
            None if !down.tree.is_empty() => {
                if !abilities.redirect {
                    bail!(
                        "link.down: this kernel cannot redirect arriving packets (modules ifb, sch_ingress, act_mirred); \
                         load them, or give --lan IF"
                    );
                }
                plan.take_ifb(ifb, wan, kernel)?;
                plan.arriving = down.tree;
            }
            None => {}
        }
        Ok(plan)
    }

    /// Checks that arriving packets can be redirected to the interface `ifb`, and that its name is free.
    fn take_ifb(&mut self, ifb: String, wan: (&str, u32), kernel: &mut Kernel) -> Result<()> {
        let own = self.own_ifbs(kernel);
        outside::check(wan.0, &kernel.read(wan.1)?, &own)?;
        let is_own = self.state_meanwhile.ifbs.contains(&ifb);
        if !is_own && kernel.netlink.index(&ifb).is_ok() {
            bail!(
                "{ifb}: exists already, and not by headend qos apply. If sqm-scripts made it, stop sqm; else see with tc \
                 filter show dev {} ingress whether packets are redirected to it, delete these filters, then ip link delete \
                 {ifb}; or give --lan IF",
                wan.0
            );
        }
        self.state.ifbs = vec![ifb.clone()];
        self.state_meanwhile.ifbs.retain(|name| *name != ifb);
        self.state_meanwhile.ifbs.insert(0, ifb);
        Ok(())
    }

    /// The interfaces that headend made and that exist.
    fn own_ifbs(&self, kernel: &Kernel) -> Vec<u32> {
        let names = self.state_meanwhile.ifbs.iter();
        names
            .filter_map(|name| kernel.netlink.index(name).ok())
            .collect()
    }

    /// Takes over what the old policy changed; an interface that the new one leaves alone is restored. An interface may
    /// have a new name.
    fn keep_old(&mut self, kernel: &mut Kernel) -> Result<()> {
        let Some(old) = &self.old else { return Ok(()) };
        self.state_meanwhile.ifbs.clone_from(&old.ifbs);
        for kept in &old.devices {
            if let Some((_, name)) = kernel.netlink.link(kept.index)? {
                let made = kept.before.ingress().is_none();
                self.wanted
                    .push((name.clone(), kept.index, inside(&kept.before), made));
                self.state_meanwhile.devices.push(Kept {
                    name,
                    ..kept.clone()
                });
            }
        }
        Ok(())
    }

    fn add(&mut self, (name, index): (&str, u32), tree: Tree, kernel: &mut Kernel) -> Result<()> {
        let devices = self.state_meanwhile.devices.iter();
        let known = devices.clone().find(|kept| kept.index == index).cloned();
        let kept = match known {
            Some(kept) => kept,
            None => {
                kernel.lists_all = true;
                let before = kernel.read(index);
                kernel.lists_all = false;
                let kept = Kept {
                    name: name.to_owned(),
                    index,
                    before: before?,
                };
                if !tree.is_empty() {
                    self.advise_losses(name, &kept.before);
                }
                let made = kept.before.ingress().is_none();
                self.state_meanwhile.devices.push(kept.clone());
                self.wanted
                    .push((name.to_owned(), index, Tree::default(), made));
                kept
            }
        };
        // A direction without a rate keeps what it had.
        let want = match tree.is_empty() {
            true => inside(&kept.before),
            false => tree,
        };
        let place = self.wanted.iter_mut().find(|(_, own, ..)| *own == index);
        place.context("an interface without a tree")?.2 = want;
        self.state.devices.push(kept);
        Ok(())
    }

    /// Names what `remove` will not be able to restore.
    fn advise_losses(&mut self, name: &str, before: &Tree) {
        let before = inside(before);
        let qdiscs = before.qdiscs.into_iter().map(Object::Qdisc);
        let objects = qdiscs.chain(before.filters.into_iter().map(Object::Filter));
        for object in objects {
            if let Some(reason) = object.loss() {
                let line = format!(
                    "{name}: headend qos remove will not restore {}: {reason}",
                    named(&object)
                );
                self.advice.push(line);
            }
        }
    }

    /// The programs that the filters run.
    pub(super) fn programs(&self) -> Vec<Attached> {
        let programs = self.programs.iter();
        programs.map(|(_, program)| program.clone()).collect()
    }

    /// The interfaces that the plan changes, as far as they exist.
    pub(super) fn indices(&self, netlink: &Netlink) -> Vec<u32> {
        let ifb = self.state.ifbs.first();
        let ifb = ifb.and_then(|name| netlink.index(name).ok());
        let wanted = self.wanted.iter().map(|(_, index, ..)| *index);
        wanted.chain(ifb).collect()
    }

    /// The programs as rows of JSON.
    pub(super) fn program_rows(&self) -> Vec<serde_json::Value> {
        let row = |(device, one): &(String, Attached)| {
            json!({
                "device": device,
                "name": one.name,
                "parent": one.parent.to_string(),
                "instructions": one.instructions.len(),
                "rules": one.words,
            })
        };
        self.programs.iter().map(row).collect()
    }

    /// The wanted queues of each interface. Makes the interface for arriving packets if it is missing.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn targets(&self, netlink: &mut Netlink) -> Result<Vec<Target>> {
        let mut ifb = None;
        if let Some(name) = self.state.ifbs.first() {
            let index = netlink.index(name);
            let index = index.or_else(|_| netlink.add_ifb(name));
            let index = index.with_context(|| format!("{name}: cannot make it"))?;
            ifb = Some((name.as_str(), index));
        }
        let own = self.state_meanwhile.ifbs.iter();
        let own = own.filter_map(|name| netlink.index(name).ok()).collect();
        Ok(self.targets_with(ifb, own))
    }

    fn targets_with(&self, ifb: Option<(&str, u32)>, own: Vec<u32>) -> Vec<Target> {
        let mut targets: Vec<Target> = Vec::new();
        if let Some((name, index)) = ifb {
            targets.push(Target {
                name: name.to_owned(),
                index,
                want: self.arriving.clone(),
                arriving: Arriving::default(),
            });
        }
        for (name, index, want, made) in &self.wanted {
            let is_wan = *index == self.state.wan_index;
            targets.push(Target {
                name: name.clone(),
                index: *index,
                want: want.clone(),
                arriving: Arriving {
                    ifbs: own.clone(),
                    made: *made,
                    to: ifb.filter(|_| is_wan).map(|(_, ifb)| ifb),
                },
            });
        }
        targets
    }

    /// Prints what would be done: `tc` lines, or the objects.
    ///
    /// # Errors
    /// The queues cannot be read.
    pub(super) fn print(&self, is_json: bool, kernel: &mut Kernel) -> Result<ExitCode> {
        let mut out = std::io::stdout().lock();
        // An interface that does not exist yet has no index; the highest stands for it.
        let ifb = self.state.ifbs.first().map(String::as_str);
        let found = ifb.map(|name| (name, kernel.netlink.index(name).ok()));
        let own = self.own_ifbs(kernel);
        let device = found.map(|(name, index)| (name, index.unwrap_or(u32::MAX)));
        let mut targets = self.targets_with(device, own);
        let mut different = Vec::new();
        for target in &mut targets {
            let now = match target.index {
                u32::MAX => Tree::default(),
                index => kernel.read(index)?,
            };
            let view = View::of(target, &now)?;
            different.push(changes(&view.now, &view.want));
            target.want = view.want;
        }
        if is_json {
            let devices: Vec<_> = targets
                .iter()
                .map(|target| json!({ "device": target.name, "objects": target.want }))
                .collect();
            let document = json!({
                "schema": "qos.apply/1",
                "changes": 0,
                "devices": devices,
                "programs": self.program_rows(),
            });
            writeln!(out, "{document:#}")?;
            return Ok(ExitCode::SUCCESS);
        }
        if let Some((name, None)) = found {
            writeln!(out, "ip link add name {name} type ifb")?;
            writeln!(out, "ip link set {name} up")?;
        }
        for (device, one) in &self.programs {
            writeln!(
                out,
                "# {device}: headend attaches the eBPF program {} to {}, {} instructions; tc cannot",
                one.name,
                one.parent,
                one.instructions.len()
            )?;
            for words in &one.words {
                writeln!(out, "#   {words}")?;
            }
        }
        for (target, different) in targets.iter().zip(&different) {
            for change in different {
                let name_of = |_: u32| ifb.unwrap_or("?").to_owned();
                writeln!(out, "{}", line(change, &target.name, name_of))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A state without interfaces, with the policy's names for the queues of both directions.
fn with_names(
    store: &Store,
    wan: (&str, u32),
    lan: Option<(&str, u32)>,
    up: &Compiled,
    down: &Compiled,
) -> State {
    let mut state = store.empty(wan.0, wan.1);
    let down_at = lan.map_or_else(|| ifb_of(wan.0, wan.1), |(name, _)| name.to_owned());
    for (device, compiled) in [(wan.0, up), (&down_at, down)] {
        state.name(device, &compiled.class_names, &compiled.filter_names);
    }
    state
}
