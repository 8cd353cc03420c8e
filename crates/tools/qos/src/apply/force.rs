//! A plan in force, and what was there before restored: the order of files, interfaces and queues that survives a kill.

use anyhow::{Context, Result};
use tc::{FilterKind, Tree};

use super::kernel::{Kernel, Queues, Wanted};
use super::outside::{Arriving, inside};
use super::plan::Plan;
use super::state::{State, Store};
use super::transaction::{self, Half, Target, perform};

/// Makes the changes of a plan. What was there is on disk before the first change.
///
/// # Errors
/// The kernel refused a change. The state on disk is that of the queues: the old ones, or if they could not be restored,
/// of all that has changed.
pub(super) fn put_in_force(
    plan: &Plan,
    store: &Store,
    kernel: &mut Kernel,
) -> Result<(Vec<Wanted>, Vec<Target>)> {
    // What others have made is put back with all filters if a change is refused.
    kernel.lists_all = plan.old.is_none();
    let done = in_order(plan, store, kernel);
    kernel.lists_all = false;
    done
}

fn in_order(plan: &Plan, store: &Store, kernel: &mut Kernel) -> Result<(Vec<Wanted>, Vec<Target>)> {
    // Until the last change, the state names everything that the old or the new policy has.
    store.save(&plan.state_meanwhile, plan.old.as_ref())?;
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
    let is_half = |error: &anyhow::Error| error.downcast_ref::<Half>().is_some();
    if done.as_ref().is_err_and(is_half) {
        return done;
    }
    let state = match &done {
        Ok(_) => Some(&plan.state),
        Err(_) => plan.old.as_ref(),
    };
    let used = |name: &String| state.is_some_and(|state| state.ifbs.contains(name));
    let unused = plan.state_meanwhile.ifbs.iter().filter(|name| !used(name));
    let mut left = Vec::new();
    for name in unused {
        if !delete_ifb(kernel, name, &plan.state_meanwhile)? {
            left.push(name.clone());
        }
    }
    match state {
        Some(state) if !state.devices.is_empty() => {
            let mut state = state.clone();
            state.ifbs.extend(left);
            store.save(&state, Some(&plan.state_meanwhile))?;
        }
        _ => store.delete(&plan.state_meanwhile)?,
    }
    done
}

/// Deletes an interface that headend made, unless packets are redirected to it, which would then be lost.
fn delete_ifb(kernel: &mut Kernel, name: &str, state: &State) -> Result<bool> {
    let Ok(index) = kernel.netlink.index(name) else {
        return Ok(true);
    };
    for kept in &state.devices {
        if kernel.netlink.link(kept.index)?.is_some() && leads_to(&kernel.read(kept.index)?, index)
        {
            eprintln!(
                "{name}: stays, because a filter of another program redirects the arriving packets of {} to it",
                kept.name
            );
            return Ok(false);
        }
    }
    let deleted = kernel.netlink.delete(name);
    deleted.with_context(|| format!("{name}: cannot delete it"))?;
    Ok(true)
}

/// Whether a filter redirects packets to an interface.
fn leads_to(tree: &Tree, index: u32) -> bool {
    tree.filters.iter().any(|filter| {
        filter.redirects_all_to(index)
            || match &filter.kind {
                FilterKind::U32 { action, .. } => *action == tc::Action::Redirect(index),
                FilterKind::Other { .. } => filter.leads_to(index),
                FilterKind::Flow { .. } | FilterKind::Bpf(_) => false,
            }
    })
}

/// Restores what was there before `apply`. The caller has locked the interfaces. Returns what could not be restored.
///
/// # Errors
/// The kernel's error. Then the state stays, and `remove` can be tried again.
pub(super) fn restore(state: &State, store: &Store, kernel: &mut Kernel) -> Result<Vec<String>> {
    let ifbs = state.ifbs.iter();
    let ifbs: Vec<u32> = ifbs
        .filter_map(|name| kernel.netlink.index(name).ok())
        .collect();
    let mut targets = Vec::new();
    for kept in &state.devices {
        // It may have another name by now.
        let Some((_, name)) = kernel.netlink.link(kept.index)? else {
            continue;
        };
        targets.push(Target {
            name,
            index: kept.index,
            want: inside(&kept.before),
            arriving: Arriving {
                ifbs: ifbs.clone(),
                made: kept.before.ingress().is_none(),
                to: None,
            },
        });
    }
    let mut missing = Vec::new();
    for target in &mut targets {
        missing.extend(kernel.programs.prune(&target.name, &mut target.want));
    }
    kernel.lists_all = true;
    let restored = transaction::restore(kernel, &targets);
    kernel.lists_all = false;
    missing.extend(restored?);
    for name in &state.ifbs {
        delete_ifb(kernel, name, state)?;
    }
    store.delete(state)?;
    Ok(missing)
}
