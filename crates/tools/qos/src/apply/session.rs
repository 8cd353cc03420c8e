//! A policy and its interfaces: locked, planned, put in force, read back, restored.

use std::os::fd::OwnedFd;

use anyhow::{Context, Result, bail};
use qos::policy::Policy;
use rustix::io::Errno;
use tc::Abilities;

use super::super::run::lock::{holder, lock};
use super::super::system;
use super::ApplyArgs;
use super::force::{put_in_force, restore};
use super::kernel::{Kernel, Queues, Wanted};
use super::plan::{self, Plan};
use super::state::{State, Store};
use super::transaction::{Target, differences};

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
            abilities: plan::abilities(&args.place.state, args.dry_run)?,
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
        self.abilities = plan::abilities(&self.args.place.state, self.args.dry_run)?;
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
        let kept = self.store.load(&self.args.wan)?;
        // Interfaces of the old policy are restored.
        let old: Vec<(String, u32)> = (kept.iter())
            .flat_map(|state| &state.devices)
            .map(|kept| (kept.name.clone(), kept.index))
            .collect();
        for (name, index) in &old {
            if !self.locks.iter().any(|(locked, _)| locked == index) {
                self.locks.push((*index, lock_index(name, *index)?));
            }
        }
        self.locks.retain(|(index, _)| {
            let old = old.iter().map(|(_, index)| index);
            found
                .iter()
                .map(|(_, index)| index)
                .chain(old)
                .any(|used| used == index)
        });
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
        let (changes, mut targets) = put_in_force(plan, &self.store, &mut self.kernel)?;
        let mut different = Vec::new();
        for target in &mut targets {
            for name in differences(&mut self.kernel, target)? {
                let device = &target.name;
                different.push(format!(
                    "{device}: the kernel took {name} and lists it with other options"
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
    Ok((
        found.index,
        lock_index(&format!("{option} {name}"), found.index)?,
    ))
}

fn lock_index(name: &str, index: u32) -> Result<OwnedFd> {
    match lock(index) {
        Ok(lock) => Ok(lock),
        Err(Errno::ADDRINUSE) => {
            let process = holder(index);
            let process = process.map_or(String::new(), |process| format!(" (process {process})"));
            bail!(
                "{name}: another headend qos{process} uses this interface; wait for it, or stop it first"
            )
        }
        Err(error) => Err(error).with_context(|| format!("{name}: cannot lock it")),
    }
}

/// Locks the interfaces of a state. One that is gone is locked too, because its lock is the state's.
pub(super) fn lock_all(state: &State) -> Result<Vec<OwnedFd>> {
    let mut locks = vec![lock_index(&state.wan, state.wan_index)?];
    let others = state.devices.iter();
    for kept in others.filter(|kept| kept.index != state.wan_index) {
        locks.push(lock_index(&kept.name, kept.index)?);
    }
    Ok(locks)
}
