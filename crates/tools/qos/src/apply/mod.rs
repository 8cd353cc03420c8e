//! `headend qos apply` and `headend qos remove`: a policy in the kernel's own queues.
//!
//! | module | purpose |
//! |---|---|
//! | `kernel` | reads queues, changes them in one system call, tries which modules there are |
//! | `transaction` | all changes or none |
//! | `programs` | the eBPF programs that filters run |
//! | `state` | what was there before, on disk |
//! | `session` | a policy and its interfaces: locked, planned, put in force, read back, restored |
//! | `watch` | `--watch`: the policy is put back when something changed |
//! | `manager` | reports to the service manager |
//! | `measure` | the time of all this, for `headend bench qos` |
//! | `force` | a plan is put in force, or what was there is restored |
//! | `outside` | what is headend's of the place for arriving packets |
//! | `remembered` | what the kernel can do, so that it is not tried every time |
//! | `plan` | which interface gets which queues |
//!
//! Crate `tc` compiles the policy and computes what differs. Start with [`apply`].

mod force;
mod kernel;
mod manager;
pub mod measure;
mod outside;
mod plan;
mod programs;
mod remembered;
mod session;
pub(crate) mod state;
#[cfg(test)]
mod tests;
mod transaction;
mod watch;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use qos::policy::Policy;
use qos::units::Rate;
use serde_json::json;

use super::check::Examined;
use force::restore;
use kernel::Kernel;
use plan::Plan;
use session::{Done, Session, lock_all};
use state::Store;

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
    /// Stay, and put the policy back when an interface comes back or another program changes its queues. SIGHUP reads the
    /// policy again; SIGTERM and SIGINT restore what was there
    #[arg(long, conflicts_with_all = ["dry_run", "json"])]
    watch: bool,
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

/// Compiles a policy and puts it in force.
pub(super) fn apply(args: &ApplyArgs) -> Result<ExitCode> {
    if args.watch {
        return watch::watch(args);
    }
    let examined = Examined::read(&args.policy)?;
    for line in examined.faults().iter().chain(&examined.advice()) {
        eprintln!("{line}");
    }
    let Some(policy) = examined.policy() else {
        return Ok(ExitCode::from(2));
    };
    let mut session = Session::open(args)?;
    let plan = session.plan(&policy)?;
    for line in &plan.advice {
        eprintln!("{line} (advice)");
    }
    if args.dry_run {
        return plan.print(args.json, &mut session.kernel);
    }
    let done = session.put(&plan)?;
    for line in &done.differences {
        eprintln!("{line}");
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        let targets = done.targets.iter();
        let devices: Vec<_> = targets
            .map(|target| json!({ "device": target.name, "objects": target.want }))
            .collect();
        let document = json!({
            "schema": "qos.apply/1",
            "changes": done.changes.len(),
            "devices": devices,
            "programs": plan.program_rows(),
        });
        writeln!(out, "{document:#}")?;
    } else {
        let line = summary(&args.wan, &policy, &plan, &done);
        let wan = &args.wan;
        writeln!(
            out,
            "{line}; headend qos remove --wan {wan} restores what was there"
        )?;
    }
    Ok(ExitCode::from(u8::from(!done.differences.is_empty())))
}

/// The line that says what is in force.
fn summary(wan: &str, policy: &Policy, plan: &Plan, done: &Done) -> String {
    let rate =
        |rate: Option<u64>| rate.map_or("as it was".to_owned(), |rate| Rate(rate).to_string());
    let targets = done.targets.iter();
    let objects: usize = targets.map(|target| target.want.len()).sum();
    let programs = plan.programs().into_iter().map(|program| program.name);
    let programs: std::collections::BTreeSet<String> = programs.collect();
    let programs = match programs.len() {
        0 => String::new(),
        1 => ", one eBPF program".to_owned(),
        count => format!(", {count} eBPF programs"),
    };
    format!(
        "{wan}: up {}, down {}; {objects} objects{programs}, {} changes",
        rate(policy.up_bps()),
        rate(policy.down_bps()),
        done.changes.len()
    )
}

/// Restores what was there before `apply`.
pub(super) fn remove(args: &RemoveArgs) -> Result<ExitCode> {
    let store = Store::new(&args.place.state)?;
    let Some(state) = store.load(&args.wan)? else {
        bail!("{}: headend qos apply has made no queues here", args.wan);
    };
    let _locks = lock_all(&state)?;
    if store.load(&args.wan)?.as_ref() != Some(&state) {
        bail!(
            "{}: another headend qos has changed its queues at the same time; try again",
            args.wan
        );
    }
    let mut kernel = Kernel::open()?;
    for kept in &state.devices {
        if kernel.netlink.link(kept.index)?.is_none() {
            eprintln!(
                "{}: no longer exists, so its queues need no restoring",
                kept.name
            );
        }
    }
    let missing = restore(&state, &store, &mut kernel)?;
    for line in &missing {
        eprintln!("{line}");
    }
    let done = match missing.is_empty() {
        true => "as it was",
        false => "restored, but for what standard error names",
    };
    writeln!(std::io::stdout().lock(), "{}: {done}", args.wan)?;
    Ok(ExitCode::from(u8::from(!missing.is_empty())))
}
