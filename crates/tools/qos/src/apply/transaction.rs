//! All changes of several interfaces, or none.
//!
//! One system call carries all changes, so that a kill leaves the old queues or the new ones. If the kernel refuses one,
//! the differences from what was there are computed again and undone. [`restore`] is the exception: it restores what can
//! be restored, and names the rest.

use std::fmt;

use anyhow::{Context, Result, anyhow};
use tc::{Change, Object, Tree, Verb, changes};

use super::kernel::{Failure, Queues, Wanted};
use super::outside::{Arriving, View};

/// An interface and the queues that it is to have.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) index: u32,
    /// Without what is for arriving packets.
    pub(super) want: Tree,
    pub(super) arriving: Arriving,
}

/// The queues are neither the old ones nor the new ones.
#[derive(Debug)]
pub(super) struct Half(String);

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads what the interfaces have.
fn views(queues: &mut dyn Queues, targets: &[Target]) -> Result<Vec<View>> {
    let view = |target: &Target| View::of(target, &queues.read(target.index)?);
    targets.iter().map(view).collect()
}

/// The changes that turn what is there into what is wanted.
fn wanted(views: &[View], targets: &[Target]) -> Vec<Wanted> {
    let pairs = views.iter().zip(targets);
    pairs
        .flat_map(|(view, target)| {
            let changes = changes(&view.now, &view.want).into_iter();
            changes.map(|change| (target.index, change))
        })
        .collect()
}

/// Makes each interface's queues those that are wanted. Returns the changes.
///
/// # Errors
/// The kernel refused a change; the queues are as they were. If they are not, the error has the context [`Half`].
pub(super) fn perform(queues: &mut dyn Queues, targets: &[Target]) -> Result<Vec<Wanted>> {
    let views = views(queues, targets)?;
    let wanted = wanted(&views, targets);
    let done = changed(queues, &views, &wanted, targets);
    queues.release();
    done.map(|()| wanted)
}

/// Makes the changes, or undoes them.
fn changed(
    queues: &mut dyn Queues,
    views: &[View],
    wanted: &[Wanted],
    targets: &[Target],
) -> Result<()> {
    let refused = match queues.change(wanted) {
        Ok(None) => return Ok(()),
        Ok(Some(failure)) => explain(&failure, wanted, targets),
        Err(error) => error,
    };
    match undo(queues, views, targets) {
        Ok(()) => Err(refused.context("nothing was changed")),
        Err(error) => {
            let text = format!(
                "{refused:#}; undoing the other changes failed too: {error:#}. What was there is still recorded: use \
                 headend qos remove"
            );
            Err(anyhow!(text.clone()).context(Half(text)))
        }
    }
}

/// Makes each interface's queues what they were, and reads them to verify it.
fn undo(queues: &mut dyn Queues, views: &[View], targets: &[Target]) -> Result<()> {
    let back = differing(queues, views, targets)?;
    if let Some(failure) = queues.change(&back)? {
        return Err(explain(&failure, &back, targets));
    }
    match differing(queues, views, targets)?.first() {
        Some((_, change)) => Err(anyhow!("{} is not as it was", name(change))),
        None => Ok(()),
    }
}

/// What differs from what was there.
fn differing(queues: &mut dyn Queues, views: &[View], targets: &[Target]) -> Result<Vec<Wanted>> {
    let mut back: Vec<Wanted> = Vec::new();
    for (view, target) in views.iter().zip(targets) {
        let now = view.own(&queues.read(target.index)?);
        let changes = changes(&now, &view.now).into_iter();
        back.extend(changes.map(|change| (target.index, change)));
    }
    Ok(back)
}

/// Makes each interface's queues those that are wanted, as far as the kernel takes them. Returns what is missing.
///
/// # Errors
/// The kernel refused to delete something of headend's, or cannot be asked.
pub(super) fn restore(queues: &mut dyn Queues, targets: &[Target]) -> Result<Vec<String>> {
    let views = views(queues, targets)?;
    let wanted = wanted(&views, targets);
    let refused = queues.attempt(&wanted)?;
    queues.release();
    let mut missing = Vec::new();
    let mut named = Vec::new();
    for failure in &refused {
        match wanted.get(failure.place) {
            Some((_, change)) if change.verb == Verb::Delete && !is_gone(failure) => {
                return Err(explain(failure, &wanted, targets)
                    .context("not everything of headend's could be removed; try again"));
            }
            Some((index, change)) if change.verb != Verb::Delete => {
                let error = words(failure);
                missing.push(format!(
                    "{}: {} was there and cannot be made again: {error}",
                    interface(*index, targets),
                    name(change)
                ));
                named.push((*index, name(change)));
            }
            _ => {}
        }
    }
    for target in targets {
        let view = View::of(target, &queues.read(target.index)?)?;
        for change in changes(&view.now, &view.want) {
            let name = name(&change);
            if !named.contains(&(target.index, name.clone())) {
                missing.push(format!("{}: {name} is not as it was", target.name));
            }
        }
    }
    queues.release();
    Ok(missing)
}

/// Whether what should be deleted does not exist.
fn is_gone(failure: &Failure) -> bool {
    failure.error.kind() == std::io::ErrorKind::NotFound
}

/// The objects that an interface should have and does not, or the other way round, as `tc` names them. Adds to what is
/// wanted the redirection of arriving packets.
pub(super) fn differences(queues: &mut dyn Queues, target: &mut Target) -> Result<Vec<String>> {
    let view = View::of(target, &queues.read(target.index)?)?;
    let different = changes(&view.now, &view.want);
    target.want = view.want;
    Ok(different.iter().map(name).collect())
}

/// "class 1:20".
pub(super) fn name(change: &Change) -> String {
    named(&change.object)
}

/// "class htb 1:20".
pub(super) fn named(object: &Object) -> String {
    match object {
        Object::Qdisc(qdisc) => format!("qdisc {} {}", qdisc.kind.name(), qdisc.handle),
        Object::Class(class) => format!("class {} {}", class.kind.name(), class.handle),
        Object::Filter(filter) => format!(
            "filter {} priority {} of {}",
            filter.kind.name(),
            filter.priority,
            filter.parent
        ),
    }
}

fn interface(index: u32, targets: &[Target]) -> &str {
    let target = targets.iter().find(|target| target.index == index);
    target.map_or("?", |target| &target.name)
}

/// The kernel's error, with its explanation.
fn words(failure: &Failure) -> String {
    let mut text = failure.error.to_string();
    if !failure.text.is_empty() {
        text = format!("{text}; the kernel says: {}", failure.text);
    }
    if failure.error.kind() == std::io::ErrorKind::PermissionDenied {
        text.push_str("; run it as root, or with the capability CAP_NET_ADMIN");
    }
    text
}

fn explain(failure: &Failure, wanted: &[Wanted], targets: &[Target]) -> anyhow::Error {
    let Some((index, change)) = wanted.get(failure.place) else {
        return anyhow!("the kernel refused a change: {}", failure.error);
    };
    let interface = interface(*index, targets);
    let verb = match change.verb {
        Verb::Add => "add",
        Verb::Change => "change",
        Verb::Delete => "delete",
    };
    let text = format!(
        "{interface}: cannot {verb} {}, {}",
        name(change),
        words(failure)
    );
    let result: Result<()> = Err(anyhow!(text));
    match result.context("the kernel refused a change") {
        Err(error) => error,
        Ok(()) => anyhow!("the kernel refused a change"),
    }
}
