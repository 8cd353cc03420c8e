//! All changes of several interfaces, or none.
//!
//! One system call carries all changes, so that a kill leaves the old queues or the new ones. If the kernel refuses one,
//! the differences from what was there are computed again and undone.

use anyhow::{Context, Result, anyhow};
use tc::{Change, Object, Tree, Verb, changes};

use super::kernel::{Failure, Queues, Wanted};

/// An interface and the queues that it is to have.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) index: u32,
    pub(super) want: Tree,
}

/// Makes each interface's queues those that are wanted. Returns the changes.
///
/// # Errors
/// The kernel refused a change; the queues are as they were, or the message says what is not.
pub(super) fn perform(queues: &mut dyn Queues, targets: &[Target]) -> Result<Vec<Wanted>> {
    let mut before = Vec::new();
    for target in targets {
        let now = queues.read(target.index)?;
        before.push(Target {
            want: now,
            ..target.clone()
        });
    }
    let pairs = before.iter().zip(targets);
    let wanted: Vec<Wanted> = pairs
        .flat_map(|(before, target)| {
            let changes = changes(&before.want, &target.want).into_iter();
            changes.map(|change| (target.index, change))
        })
        .collect();
    let done = changed(queues, &before, &wanted, targets);
    queues.release();
    done.map(|()| wanted)
}

/// Makes the changes, or undoes them.
fn changed(
    queues: &mut dyn Queues,
    before: &[Target],
    wanted: &[Wanted],
    targets: &[Target],
) -> Result<()> {
    let refused = match queues.change(wanted) {
        Ok(None) => return Ok(()),
        Ok(Some(failure)) => explain(&failure, wanted, targets),
        Err(error) => error,
    };
    match undo(queues, before) {
        Ok(()) => Err(refused.context("nothing was changed")),
        Err(error) => Err(refused.context(format!(
            "a change was refused, and undoing the others failed too ({error:#}); use headend qos remove"
        ))),
    }
}

/// Makes each interface's queues what they were.
fn undo(queues: &mut dyn Queues, before: &[Target]) -> Result<()> {
    let mut back: Vec<Wanted> = Vec::new();
    for target in before {
        let now = queues.read(target.index)?;
        let changes = changes(&now, &target.want).into_iter();
        back.extend(changes.map(|change| (target.index, change)));
    }
    match queues.change(&back)? {
        None => Ok(()),
        Some(failure) => Err(explain(&failure, &back, before)),
    }
}

/// The objects that an interface should have and does not, or the other way round, as `tc` names them.
pub(super) fn differences(queues: &mut dyn Queues, target: &Target) -> Result<Vec<String>> {
    let now = queues.read(target.index)?;
    let different = changes(&now, &target.want);
    Ok(different.iter().map(name).collect())
}

/// "class 1:20".
pub(super) fn name(change: &Change) -> String {
    match &change.object {
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

fn explain(failure: &Failure, wanted: &[Wanted], targets: &[Target]) -> anyhow::Error {
    let Some((index, change)) = wanted.get(failure.place) else {
        return anyhow!("the kernel refused a change: {}", failure.error);
    };
    let target = targets.iter().find(|target| target.index == *index);
    let interface = target.map_or("?", |target| &target.name);
    let verb = match change.verb {
        Verb::Add => "add",
        Verb::Change => "change",
        Verb::Delete => "delete",
    };
    let mut text = format!(
        "{interface}: cannot {verb} {}, {}",
        name(change),
        failure.error
    );
    if !failure.text.is_empty() {
        text = format!("{text}; the kernel says: {}", failure.text);
    }
    if failure.error.kind() == std::io::ErrorKind::PermissionDenied {
        text.push_str("; run it as root, or with the capability CAP_NET_ADMIN");
    }
    let result: Result<()> = Err(anyhow!(text));
    match result.context("the kernel refused a change") {
        Err(error) => error,
        Ok(()) => anyhow!("the kernel refused a change"),
    }
}
