//! Arriving packets. Disciplines and filters of others are never changed there: a filter that was deleted and added again
//! would lose its counters, and the kernel does not list all that it has.

use anyhow::{Result, anyhow, bail};
use tc::compile::{ingress, redirection};
use tc::{Filter, FilterKind, Handle, QdiscKind, Tree};

use super::transaction::Target;

/// What headend makes for arriving packets.
#[derive(Debug, Clone, Default)]
pub(super) struct Arriving {
    /// Interfaces that headend made; redirections to them are headend's.
    pub(super) ifbs: Vec<u32>,
    /// Whether there was no discipline for arriving packets before headend made one.
    pub(super) made: bool,
    /// The interface that arriving packets are to go to.
    pub(super) to: Option<u32>,
}

/// The part of an interface's queues that is headend's, as it is and as it should be.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) now: Tree,
    pub(super) want: Tree,
    ifbs: Vec<u32>,
    with_ingress: bool,
}

impl View {
    /// Compares the queues of an interface with those that it should have.
    ///
    /// # Errors
    /// A filter of another program takes all arriving packets before the redirection.
    pub(super) fn of(target: &Target, now: &Tree) -> Result<Self> {
        let Arriving { ifbs, made, to } = &target.arriving;
        let outside: Vec<&Filter> = now.filters.iter().filter(|one| one.is_outside()).collect();
        let is_ours = |filter: &Filter| ifbs.iter().any(|ifb| filter.redirects_all_to(*ifb));
        let (own, others): (Vec<&Filter>, Vec<&Filter>) =
            outside.into_iter().partition(|filter| is_ours(filter));
        let found = now.ingress();
        let is_own = *made
            && others.is_empty()
            && found.is_none_or(|qdisc| qdisc.kind == QdiscKind::Ingress);
        let with_ingress = match to {
            Some(_) => found.is_none(),
            None => is_own,
        };
        let mut want = target.want.clone();
        strip(&mut want, &[], false);
        if let Some(ifb) = *to {
            let current = own.iter().find(|filter| filter.redirects_all_to(ifb));
            let priority = place(current.map(|filter| filter.priority), &others)?;
            if let Some(filter) = others.iter().find(|one| takes_all(one, priority)) {
                return Err(taken(&target.name, filter));
            }
            if with_ingress {
                want.qdiscs.push(ingress());
            }
            want.filters.push(redirection(ifb, priority));
        }
        let mut view = Self {
            now: Tree::default(),
            want,
            ifbs: ifbs.clone(),
            with_ingress,
        };
        view.now = view.own(now);
        Ok(view)
    }

    /// The part of a tree that is headend's to change.
    pub(super) fn own(&self, tree: &Tree) -> Tree {
        let mut tree = tree.clone();
        strip(&mut tree, &self.ifbs, self.with_ingress);
        tree
    }
}

/// Takes out what is for arriving packets, but for redirections to `ifbs`, and perhaps the discipline.
fn strip(tree: &mut Tree, ifbs: &[u32], with_ingress: bool) {
    let is_ours = |filter: &Filter| ifbs.iter().any(|ifb| filter.redirects_all_to(*ifb));
    tree.filters
        .retain(|filter| !filter.is_outside() || is_ours(filter));
    tree.qdiscs
        .retain(|qdisc| with_ingress || qdisc.parent != Handle::INGRESS_PARENT);
}

/// The queues of an interface without those for arriving packets.
pub(super) fn inside(tree: &Tree) -> Tree {
    let mut tree = tree.clone();
    strip(&mut tree, &[], false);
    tree
}

/// The priority after all other filters for arriving packets.
fn place(current: Option<u16>, others: &[&Filter]) -> Result<u16> {
    let arriving = others
        .iter()
        .filter(|filter| filter.parent == Handle::ARRIVING);
    let last = arriving.map(|filter| filter.priority).max().unwrap_or(0);
    match current.filter(|current| *current > last) {
        Some(current) => Ok(current),
        None => last.checked_add(1).ok_or_else(|| {
            anyhow!(
                "arriving packets have a filter of the last priority; delete it with tc filter del"
            )
        }),
    }
}

fn takes_all(filter: &Filter, before: u16) -> bool {
    filter.parent == Handle::ARRIVING
        && filter.chain == 0
        && filter.priority < before
        && filter.takes_all()
}

fn taken(name: &str, filter: &Filter) -> anyhow::Error {
    let what = match filter.protocol {
        0x0800 => "IPv4 packet",
        0x86dd => "IPv6 packet",
        _ => "packet",
    };
    let kind = match &filter.kind {
        FilterKind::Other { kind, .. } => kind,
        known => known.name(),
    };
    anyhow!(
        "{name}: the filter {kind} of priority {} takes every {what} that arrives before headend could shape it; if \
         sqm-scripts made it, stop sqm; else delete it (tc filter del dev {name} ingress prio {}, or all of them: tc qdisc \
         del dev {name} ingress), or give --lan IF",
        filter.priority,
        filter.priority
    )
}

/// Refuses what [`View::of`] would refuse once the redirection is there.
///
/// # Errors
/// As [`View::of`].
pub(super) fn check(name: &str, now: &Tree, ifbs: &[u32]) -> Result<()> {
    let target = Target {
        name: name.to_owned(),
        index: 0,
        want: Tree::default(),
        arriving: Arriving {
            ifbs: ifbs.to_vec(),
            made: false,
            // An interface that does not exist yet.
            to: Some(u32::MAX),
        },
    };
    if now.qdiscs.iter().any(|qdisc| qdisc.shares_filters()) {
        bail!(
            "{name}: its filters for arriving packets are shared with other interfaces (ingress_block); give --lan IF"
        );
    }
    View::of(&target, now).map(|_| ())
}
