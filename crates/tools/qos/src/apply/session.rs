//! A policy and its interfaces: locked, planned, put in force, read back, restored.

use std::os::fd::OwnedFd;

use anyhow::{Context, Result, bail};
use qos::policy::Policy;
use rustix::io::Errno;
use tc::Abilities;

use super::super::run::lock::{holder, lock};
use super::super::system;
use super::ApplyArgs;
use super::kernel::{Kernel, Queues, Wanted};
use super::plan::{self, Plan};
use super::state::{State, Store};
use super::transaction::{Target, differences, perform};

/// What `apply` needs beside the policy.
pub(super) struct Session<'a> {
    args: &'a ApplyArgs,
    pub(super) store: Store,
    pub(super) kernel: Kernel,
    abilities: Abilities,
    /// The locked interfaces, by index.
    locks: Vec<(u32, OwnedFd)>,
}

/// What a plan did.
pub(super) struct Done {
    pub(super) targets: Vec<Target>,
    pub(super) changes: Vec<Wanted>,
    /// What the kernel lists otherwise than asked.
    pub(super) differences: Vec<String>,
}

impl<'a> Session<'a> {
    /// Tries what the kernel can do.
    ///
    /// # Errors
    /// A privilege is missing.
    pub(super) fn open(args: &'a ApplyArgs) -> Result<Self> {
        if args.lan.as_deref() == Some(&args.wan) {
            bail!("--lan and --wan are the same interface; leave --lan out");
        }
        Ok(Self {
            args,
            store: Store::new(&args.place.state)?,
            kernel: Kernel::open()?,
            abilities: plan::abilities(args.dry_run)?,
            locks: Vec::new(),
        })
    }

    /// The interfaces, with their options.
    pub(super) fn names(&self) -> Vec<(&'static str, &'a str)> {
        let lan = self.args.lan.as_deref().map(|name| ("--lan", name));
        [("--wan", self.args.wan.as_str())]
            .into_iter()
            .chain(lan)
            .collect()
    }

    /// Tries again what the kernel can do: a module may have been loaded meanwhile.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub(super) fn look_again(&mut self) -> Result<()> {
        self.abilities = plan::abilities(self.args.dry_run)?;
        Ok(())
    }

    /// Locks the interfaces, and compiles the policy for them.
    ///
    /// # Errors
    /// An interface is missing or in use, or the kernel cannot do what the policy says.
    pub(super) fn plan(&mut self, policy: &Policy) -> Result<Plan> {
        let mut found = Vec::new();
        for (option, name) in self.names() {
            let index = self.lock(option, name)?;
            if let Some(other) = self.store.other(&self.args.wan, index) {
                bail!(
                    "this interface is part of the policy of {other}; use headend qos remove --wan {other} first"
                );
            }
            found.push((name, index));
        }
        self.locks
            .retain(|(index, _)| found.iter().any(|(_, found)| found == index));
        let kept = self.store.load(&self.args.wan)?;
        Plan::new(
            policy,
            found[0],
            found.get(1).copied(),
            &self.abilities,
            kept,
            &self.store,
            &mut self.kernel,
        )
    }

    fn lock(&mut self, option: &str, name: &str) -> Result<u32> {
        let Some(found) = system::interface(name) else {
            bail!("{option} {name}: there is no such interface");
        };
        if !self.locks.iter().any(|(index, _)| *index == found.index) {
            self.locks.push(locked(option, name)?);
        }
        Ok(found.index)
    }

    /// Loads the programs, makes the changes, and reads them back.
    ///
    /// # Errors
    /// The kernel refused something; nothing was changed, or the message says what was.
    pub(super) fn put(&mut self, plan: &Plan) -> Result<Done> {
        // Programs that run already are not loaded again: the verifier takes its time.
        for index in plan.indices(&self.kernel.netlink) {
            self.kernel.read(index)?;
        }
        self.kernel.programs.load(&plan.programs())?;
        let (changes, targets) = put_in_force(plan, &self.store, &mut self.kernel)?;
        let mut different = Vec::new();
        for target in &targets {
            for name in differences(&mut self.kernel, target)? {
                let device = &target.name;
                different.push(format!(
                    "{device}: the kernel lists {name} otherwise than asked"
                ));
            }
        }
        self.kernel.release();
        Ok(Done {
            targets,
            changes,
            differences: different,
        })
    }

    /// Restores what was there before. Returns what could not be restored.
    ///
    /// # Errors
    /// As [`restore`].
    pub(super) fn restore(&mut self) -> Result<Vec<String>> {
        match self.store.load(&self.args.wan)? {
            Some(state) => restore(&state, &self.store, &mut self.kernel),
            None => Ok(Vec::new()),
        }
    }
}

/// Locks an interface until the descriptor is closed.
pub(super) fn locked(option: &str, name: &str) -> Result<(u32, OwnedFd)> {
    let Some(found) = system::interface(name) else {
        bail!("{option} {name}: there is no such interface");
    };
    match lock(found.index) {
        Ok(lock) => Ok((found.index, lock)),
        Err(Errno::ADDRINUSE) => {
            let process = holder(found.index);
            let process = process.map_or(String::new(), |process| format!(" (process {process})"));
            bail!(
                "{option} {name}: another headend qos{process} uses this interface; wait for it, or stop it first"
            )
        }
        Err(error) => Err(error).with_context(|| format!("{option} {name}: cannot lock it")),
    }
}

/// Makes the changes of a plan. What was there is on disk before the first change.
fn put_in_force(
    plan: &Plan,
    store: &Store,
    kernel: &mut Kernel,
) -> Result<(Vec<Wanted>, Vec<Target>)> {
    // Until the last change, the state names everything that the old or the new policy has.
    store.save(&plan.state_meanwhile)?;
    let done = (|| {
        let mut targets = plan.targets(&mut kernel.netlink)?;
        for target in &mut targets {
            for line in kernel.programs.prune(&target.name, &mut target.want) {
                eprintln!("{line}");
            }
            kernel.programs.mark(&mut target.want);
        }
        let changed = perform(kernel, &targets)?;
        Ok((changed, targets))
    })();
    let is_done = done.is_ok();
    let state = if is_done {
        Some(&plan.state)
    } else {
        plan.old.as_ref()
    };
    let ifb = state.and_then(|state| state.ifb.as_deref());
    if let Some(unused) = plan.state_meanwhile.ifb.as_deref()
        && ifb != Some(unused)
    {
        delete_ifb(kernel, unused)?;
    }
    match state {
        Some(state) if !state.devices.is_empty() => store.save(state)?,
        _ => store.delete(&plan.state.wan)?,
    }
    done
}

fn delete_ifb(kernel: &mut Kernel, name: &str) -> Result<()> {
    if kernel.netlink.index(name).is_ok() {
        kernel
            .netlink
            .delete(name)
            .with_context(|| format!("{name}: cannot delete it"))?;
    }
    Ok(())
}

/// Restores what was there before `apply`. The caller has locked the interfaces. Returns what could not be restored.
///
/// # Errors
/// The kernel's error.
pub(super) fn restore(state: &State, store: &Store, kernel: &mut Kernel) -> Result<Vec<String>> {
    let there = state
        .devices
        .iter()
        .filter(|kept| kernel.netlink.index(&kept.name).ok() == Some(kept.index));
    let mut targets: Vec<Target> = there
        .map(|kept| Target {
            name: kept.name.clone(),
            index: kept.index,
            want: kept.before.clone(),
        })
        .collect();
    let mut missing = Vec::new();
    for target in &mut targets {
        missing.extend(kernel.programs.prune(&target.name, &mut target.want));
    }
    perform(kernel, &targets)?;
    if let Some(ifb) = &state.ifb {
        delete_ifb(kernel, ifb)?;
    }
    store.delete(&state.wan)?;
    for target in &targets {
        for name in differences(kernel, target)? {
            missing.push(format!("{}: {name} is not as it was", target.name));
        }
    }
    kernel.release();
    Ok(missing)
}
