//! `headend qos apply` and `headend qos remove`: a policy in the kernel's own queues.
//!
//! | module | purpose |
//! |---|---|
//! | `kernel` | reads queues, changes them in one system call, tries which modules there are |
//! | `transaction` | all changes or none |
//! | `programs` | the eBPF programs that filters run |
//! | `state` | what was there before, on disk |
//! | `plan` | which interface gets which queues |
//!
//! Crate `tc` compiles the policy and computes what differs. Start with [`apply`].

mod kernel;
mod plan;
mod programs;
pub(crate) mod state;
#[cfg(test)]
mod tests;
mod transaction;

use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use qos::policy::Policy;
use qos::units::Rate;
use rustix::io::Errno;
use serde_json::json;

use super::check::Examined;
use super::run::lock::{holder, lock};
use super::system;
use kernel::Kernel;
use plan::Plan;
use state::Store;
use transaction::{Target, differences, perform};

/// Shape an interface with the kernel's own queues, as a policy says.
#[derive(Debug, clap::Args)]
pub(super) struct ApplyArgs {
    /// The policy file
    policy: PathBuf,
    /// The interface towards the provider
    #[arg(long, value_name = "IF")]
    wan: String,
    /// The interface of the hosts; shapes downloads. Without it, downloads are shaped as they arrive from the provider
    #[arg(long, value_name = "IF")]
    lan: Option<String>,
    /// Print the tc lines that would do the same, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: StatePlace,
}

/// Remove what `apply` made, and restore the queues that were there before.
#[derive(Debug, clap::Args)]
pub(super) struct RemoveArgs {
    /// The interface towards the provider
    #[arg(long, value_name = "IF")]
    wan: String,
    #[command(flatten)]
    place: StatePlace,
}

#[derive(Debug, clap::Args)]
struct StatePlace {
    /// The directory that keeps what was there before
    #[arg(long, value_name = "DIRECTORY", default_value = "/run/headend-qos")]
    state: PathBuf,
}

/// Locks an interface until the descriptor is closed.
fn locked(option: &str, name: &str) -> Result<(u32, OwnedFd)> {
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

/// Compiles a policy and puts it in force.
pub(super) fn apply(args: &ApplyArgs) -> Result<ExitCode> {
    let examined = Examined::read(&args.policy)?;
    for line in examined.faults().iter().chain(&examined.advice()) {
        eprintln!("{line}");
    }
    let Some(policy) = examined.policy() else {
        return Ok(ExitCode::from(2));
    };
    let (wan, _wan_lock) = locked("--wan", &args.wan)?;
    let lan = args
        .lan
        .as_deref()
        .map(|name| (name, locked("--lan", name)));
    let lan = match lan {
        Some((name, _)) if name == args.wan => {
            bail!("--lan and --wan are the same interface; leave --lan out")
        }
        Some((name, lock)) => Some((name, lock?)),
        None => None,
    };
    let store = Store::new(&args.place.state)?;
    let kept = store.load(&args.wan)?;
    let mut kernel = Kernel::open()?;
    let abilities = plan::abilities(args.dry_run)?;
    let lan = lan.as_ref().map(|(name, (index, _))| (*name, *index));
    for index in [Some(wan), lan.map(|(_, index)| index)]
        .into_iter()
        .flatten()
    {
        if let Some(other) = store.other(&args.wan, index) {
            bail!(
                "this interface is part of the policy of {other}; use headend qos remove --wan {other} first"
            );
        }
    }
    let plan = Plan::new(
        &policy,
        (&args.wan, wan),
        lan,
        &abilities,
        kept,
        &store,
        &mut kernel,
    )?;
    for line in &plan.advice {
        eprintln!("{line} (advice)");
    }
    if args.dry_run {
        return plan.print(args.json, &mut kernel);
    }
    kernel.programs.load(&plan.programs())?;
    let (changed, targets) = put_in_force(&plan, &store, &mut kernel)?;
    for target in &targets {
        for name in differences(&mut kernel, target)? {
            eprintln!(
                "{}: the kernel lists {name} otherwise than asked",
                target.name
            );
        }
    }
    if args.json {
        return print_json(&plan, &targets, changed);
    }
    summarise(args, &policy, &plan, &targets, changed)
}

/// Prints the line that says what is in force.
fn summarise(
    args: &ApplyArgs,
    policy: &Policy,
    plan: &Plan,
    targets: &[Target],
    changed: usize,
) -> Result<ExitCode> {
    let rate =
        |rate: Option<u64>| rate.map_or("as it was".to_owned(), |rate| Rate(rate).to_string());
    let objects: usize = targets.iter().map(|target| target.want.len()).sum();
    let programs = match plan.programs().len() {
        0 => String::new(),
        1 => ", one eBPF program".to_owned(),
        count => format!(", {count} eBPF programs"),
    };
    let line = format!(
        "{}: up {}, down {}; {objects} objects{programs}, {changed} changes; headend qos remove --wan {} restores what was there",
        args.wan,
        rate(policy.up_bps()),
        rate(policy.down_bps()),
        args.wan
    );
    writeln!(std::io::stdout().lock(), "{line}")?;
    Ok(ExitCode::SUCCESS)
}

fn print_json(plan: &Plan, targets: &[Target], changed: usize) -> Result<ExitCode> {
    let devices: Vec<_> = targets
        .iter()
        .map(|target| json!({ "device": target.name, "objects": target.want }))
        .collect();
    let document = json!({
        "schema": "qos.apply/1",
        "changes": changed,
        "devices": devices,
        "programs": plan.program_rows(),
    });
    writeln!(std::io::stdout().lock(), "{document:#}")?;
    Ok(ExitCode::SUCCESS)
}

/// Makes the changes of a plan. What was there is on disk before the first change.
fn put_in_force(plan: &Plan, store: &Store, kernel: &mut Kernel) -> Result<(usize, Vec<Target>)> {
    // Until the last change, the state names everything that the old or the new policy has.
    store.save(&plan.state_meanwhile)?;
    let done = (|| {
        let mut targets = plan.targets(&mut kernel.netlink)?;
        for target in &mut targets {
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

/// Restores what was there before `apply`.
pub(super) fn remove(args: &RemoveArgs) -> Result<ExitCode> {
    let store = Store::new(&args.place.state)?;
    let Some(state) = store.load(&args.wan)? else {
        bail!("{}: headend qos apply has made no queues here", args.wan);
    };
    let mut kernel = Kernel::open()?;
    let mut locks = Vec::new();
    let mut targets = Vec::new();
    for kept in &state.devices {
        if kernel.netlink.index(&kept.name).ok() != Some(kept.index) {
            eprintln!("{}: is gone, and its queues with it", kept.name);
            continue;
        }
        locks.push(locked("--wan", &kept.name)?);
        targets.push(Target {
            name: kept.name.clone(),
            index: kept.index,
            want: kept.before.clone(),
        });
    }
    perform(&mut kernel, &targets)?;
    if let Some(ifb) = &state.ifb {
        delete_ifb(&mut kernel, ifb)?;
    }
    store.delete(&args.wan)?;
    let mut is_whole = true;
    for target in &targets {
        for name in differences(&mut kernel, target)? {
            eprintln!("{}: {name} is not as it was", target.name);
            is_whole = false;
        }
    }
    writeln!(std::io::stdout().lock(), "{}: as it was", args.wan)?;
    Ok(ExitCode::from(u8::from(!is_whole)))
}
