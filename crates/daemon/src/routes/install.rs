//! Installs best routes in the kernel, a bounded number in each turn. Only the newest change of a
//! prefix is sent.
//!
//! At start, after a link has changed, and after another program has changed one of our routes, it
//! reads the kernel's routes of our origin, table and metric, a part in each turn. Routes that the
//! kernel lost are sent again. Routes that nobody wants are stale: an earlier run of the daemon left
//! them. They stay until the speaker has its peers' routes (graceful restart, RFC 4724), and are
//! removed then. Start with [`Installed::work`].

use std::io;
use std::net::IpAddr;

use base::{Duration, Instant};
use hashbrown::{HashMap, HashSet};
use reactor::netlink::{
    FoundRoute, LEARNED_ORIGIN, LOCAL_MAX, LearnedRoute, LearnedTable, Netlink, Notice, RouteDump,
    RouteFilter,
};
use wire::bgp::Prefix;

use crate::config::Install;

/// Delay from a notification to the comparison.
const SETTLE: Duration = Duration::from_millis(200);
/// Minimum interval of comparisons.
const INTERVAL: Duration = Duration::from_secs(5);
/// Parts of the kernel's table read in a turn, each of some hundred routes.
const READS: usize = 4;
/// Routes compared in a turn.
const COMPARED: usize = 4_096;

/// Our routes in the kernel, and changes not sent yet.
pub(super) struct Installed {
    netlink: Netlink,
    place: LearnedTable,
    /// The routes as last sent to the kernel.
    told: HashMap<Prefix, IpAddr>,
    /// The wanted route of each prefix, where it differs from `told`.
    waiting: HashMap<Prefix, Option<IpAddr>>,
    /// The order in which prefixes wait.
    order: Vec<Prefix>,
    refused: u64,
    /// Routes the kernel refused. They are tried again when their route or a link changes.
    missing: HashMap<Prefix, IpAddr>,
    /// Routes in the kernel that were not sent by this run.
    stale: HashSet<Prefix>,
    look_at: Option<Instant>,
    looked: Instant,
    look: Option<Look>,
    /// Routes sent again, and stale routes removed.
    restored: u64,
    swept: u64,
}

/// A comparison in progress.
enum Look {
    /// The kernel's routes are read. `seen` are those that are as sent.
    Reading {
        dump: Box<RouteDump>,
        is_ipv4: bool,
        seen: HashSet<Prefix>,
    },
    /// These were sent and may be missing.
    Comparing {
        left: Vec<Prefix>,
        seen: HashSet<Prefix>,
    },
}

/// Counts for `show kernel`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InstalledCounts {
    pub(crate) table: u32,
    pub(crate) wanted: usize,
    pub(crate) present: usize,
    pub(crate) stale: usize,
    pub(crate) restored: u64,
    pub(crate) swept: u64,
    pub(crate) refused: u64,
}

impl Installed {
    pub(super) fn open(install: Install) -> io::Result<Self> {
        Ok(Self {
            netlink: Netlink::open()?,
            place: LearnedTable {
                table: install.table,
                metric: install.metric,
            },
            told: HashMap::new(),
            waiting: HashMap::new(),
            order: Vec::new(),
            refused: 0,
            missing: HashMap::new(),
            stale: HashSet::new(),
            look_at: Some(Instant::ZERO),
            looked: Instant::ZERO,
            look: None,
            restored: 0,
            swept: 0,
        })
    }

    /// The port of the netlink socket that changes routes.
    pub(super) fn port(&self) -> io::Result<u32> {
        self.netlink.port()
    }

    /// Sets the next hop of a prefix, or removes its route.
    pub(super) fn set(&mut self, prefix: Prefix, via: Option<IpAddr>) {
        if self.waiting.insert(prefix, via).is_none() {
            self.order.push(prefix);
        }
    }

    /// Takes a notification of the kernel.
    pub(super) fn notice(&mut self, notice: &Notice, now: Instant) {
        let may_concern = match notice {
            Notice::Link(_) | Notice::LinkGone(_) | Notice::Overflow => true,
            Notice::Route(route) => route.protocol == LEARNED_ORIGIN,
            Notice::Address(_) => false,
        };
        if may_concern {
            let at = (now + SETTLE).max(self.looked + INTERVAL);
            self.look_at.get_or_insert(at);
        }
    }

    /// Whether there is work to do at once. `settled`: the speaker has its peers' routes.
    pub(super) fn has_work(&self, settled: bool) -> bool {
        let sweeps = settled && !self.stale.is_empty();
        !self.order.is_empty() || self.look.is_some() || sweeps
    }

    /// Whether the kernel has routes of an earlier run.
    pub(super) fn has_stale(&self) -> bool {
        !self.stale.is_empty()
    }

    /// When the next comparison is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.look_at.filter(|_| self.look.is_none())
    }

    /// Does one turn's share of the work. Returns whether there was any. `settled`: the speaker has
    /// its peers' routes, so that a route without a peer is not wanted.
    pub(super) fn work(&mut self, settled: bool, now: Instant) -> bool {
        let due = self.due().is_some_and(|at| at <= now);
        if !due && !self.has_work(settled) {
            return false;
        }
        if due {
            self.begin_look(now);
        }
        if self.look.is_some()
            && let Err(error) = self.go_on_looking()
        {
            self.look = None;
            self.look_at = Some(now + INTERVAL);
            if error.kind() != io::ErrorKind::Interrupted {
                tracing::warn!(%error, "the kernel's routes cannot be read");
            }
        }
        if settled && self.order.is_empty() && self.look.is_none() {
            self.sweep();
        }
        self.send();
        true
    }

    fn begin_look(&mut self, now: Instant) {
        (self.look_at, self.looked) = (None, now);
        match self.dump(true) {
            Ok(dump) => {
                self.look = Some(Look::Reading {
                    dump,
                    is_ipv4: true,
                    seen: HashSet::new(),
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the kernel's routes cannot be read");
                self.look_at = Some(now + INTERVAL);
            }
        }
    }

    fn dump(&self, is_ipv4: bool) -> io::Result<Box<RouteDump>> {
        let filter = RouteFilter {
            is_ipv4,
            table: self.place.table,
            protocol: Some(LEARNED_ORIGIN),
            interface: None,
        };
        RouteDump::start(filter).map(Box::new)
    }

    fn go_on_looking(&mut self) -> io::Result<()> {
        match self.look.take() {
            None => Ok(()),
            Some(Look::Reading {
                mut dump,
                is_ipv4,
                mut seen,
            }) => {
                let mut found = Vec::new();
                let mut more = true;
                for _ in 0..READS {
                    more = more && dump.read(&mut found)?;
                }
                for route in found {
                    self.found(&route, &mut seen);
                }
                let next = match (more, is_ipv4) {
                    (true, _) => Look::Reading {
                        dump,
                        is_ipv4,
                        seen,
                    },
                    (false, true) => Look::Reading {
                        dump: self.dump(false)?,
                        is_ipv4: false,
                        seen,
                    },
                    (false, false) => self.begin_comparing(seen),
                };
                self.look = Some(next);
                Ok(())
            }
            Some(Look::Comparing { left, seen }) => {
                self.compare(left, seen);
                Ok(())
            }
        }
    }

    /// A route of our origin that the kernel has.
    fn found(&mut self, route: &FoundRoute, seen: &mut HashSet<Prefix>) {
        if route.metric != self.place.metric {
            return;
        }
        let prefix = Prefix::of(route.to.0, route.to.1);
        match self.told.get(&prefix) {
            Some(via) if route.via == Some(*via) => {
                seen.insert(prefix);
            }
            // It differs: the comparison sends ours again.
            Some(_) => {}
            None => {
                self.stale.insert(prefix);
            }
        }
    }

    fn begin_comparing(&mut self, seen: HashSet<Prefix>) -> Look {
        if !self.stale.is_empty() {
            let routes = self.stale.len();
            tracing::info!(
                routes,
                "the kernel has routes of an earlier run; they stay until the peers' routes are known"
            );
        }
        // A refusal may have been for a link that was down.
        for (prefix, via) in core::mem::take(&mut self.missing) {
            if !self.waiting.contains_key(&prefix) {
                self.set(prefix, Some(via));
            }
        }
        let left = if seen.len() == self.told.len() {
            Vec::new()
        } else {
            self.told.keys().copied().collect()
        };
        Look::Comparing { left, seen }
    }

    fn compare(&mut self, mut left: Vec<Prefix>, seen: HashSet<Prefix>) {
        let part = left.split_off(left.len().saturating_sub(COMPARED));
        let mut lost = 0_u64;
        for prefix in part {
            if seen.contains(&prefix) || self.waiting.contains_key(&prefix) {
                continue;
            }
            if let Some(via) = self.told.remove(&prefix) {
                self.set(prefix, Some(via));
                lost += 1;
            }
        }
        if lost > 0 {
            self.restored += lost;
            tracing::info!(
                routes = lost,
                "the kernel had lost learned routes; they are sent again"
            );
        }
        self.look = (!left.is_empty()).then_some(Look::Comparing { left, seen });
    }

    /// Removes stale routes.
    fn sweep(&mut self) {
        let part: Vec<Prefix> = self.stale.iter().take(LOCAL_MAX).copied().collect();
        self.swept += part.len() as u64;
        for prefix in part {
            self.set(prefix, None);
        }
    }

    /// Sends one turn's share of changes to the kernel.
    fn send(&mut self) {
        let mut changes = Vec::with_capacity(LOCAL_MAX);
        while changes.len() < LOCAL_MAX
            && let Some(prefix) = self.order.pop()
        {
            let Some(via) = self.waiting.remove(&prefix) else {
                continue;
            };
            let was_missing = self.missing.remove(&prefix).is_some();
            let was_stale = self.stale.remove(&prefix);
            let is_new = was_missing || was_stale;
            if self.told.get(&prefix).copied() == via && !is_new {
                continue;
            }
            changes.push(LearnedRoute {
                to: (prefix.address(), prefix.len()),
                via,
            });
            match via {
                Some(via) => self.told.insert(prefix, via),
                None => self.told.remove(&prefix),
            };
        }
        if changes.is_empty() {
            return;
        }
        let outcome = self.netlink.change_learned(self.place, &changes);
        let (refused, error) = match outcome {
            Ok((0, _)) => return,
            Ok((_, error)) => self.one_by_one(&changes, error),
            Err(error) => {
                self.look_at.get_or_insert(self.looked + INTERVAL);
                self.one_by_one(&changes, Some(error))
            }
        };
        if let Some(error) = error
            && self.refused == 0
        {
            tracing::warn!(%error, "the kernel refused a learned route; further refusals are only counted");
        }
        self.refused += refused;
    }

    /// Finds the routes of a batch that the kernel refuses, by sending each again; for the others
    /// that changes nothing.
    fn one_by_one(
        &mut self,
        changes: &[LearnedRoute],
        first: Option<io::Error>,
    ) -> (u64, Option<io::Error>) {
        let mut refused = 0;
        for change in changes {
            let outcome = self
                .netlink
                .change_learned(self.place, core::slice::from_ref(change));
            let Some(via) = change.via else {
                // A route that is gone already needs no removal.
                continue;
            };
            if !matches!(outcome, Ok((0, _))) {
                let prefix = Prefix::of(change.to.0, change.to.1);
                self.told.remove(&prefix);
                self.missing.insert(prefix, via);
                refused += 1;
            }
        }
        (refused, first.filter(|_| refused > 0))
    }

    /// Number of our routes in the kernel.
    pub(super) fn len(&self) -> usize {
        self.told.len()
    }

    /// Number of routes refused since the start.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    pub(super) fn counts(&self) -> InstalledCounts {
        let is_new = |(prefix, via): (&Prefix, &Option<IpAddr>)| {
            via.is_some() && !self.told.contains_key(prefix)
        };
        let new = self.waiting.iter().filter(|one| is_new(*one)).count();
        InstalledCounts {
            table: self.place.table,
            wanted: self.told.len() + self.missing.len() + new,
            present: self.told.len(),
            stale: self.stale.len(),
            restored: self.restored,
            swept: self.swept,
            refused: self.refused,
        }
    }

    /// Removes all our routes, also those of earlier runs.
    pub(super) fn withdraw_all(&mut self) {
        if self.due().is_some() {
            self.begin_look(self.looked);
        }
        while self.look.is_some() && self.go_on_looking().is_ok() {}
        self.waiting.clear();
        self.order.clear();
        let told: Vec<Prefix> = self.told.keys().copied().collect();
        let stale = core::mem::take(&mut self.stale);
        for prefix in told {
            self.set(prefix, None);
        }
        for &prefix in &stale {
            self.set(prefix, None);
        }
        self.stale = stale;
        while !self.order.is_empty() {
            self.send();
        }
    }
}

#[cfg(test)]
mod tests;
