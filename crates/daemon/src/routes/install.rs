//! Installs best routes in the kernel, a bounded number in each turn. Only the newest change of a
//! prefix is sent.

use std::io;
use std::net::IpAddr;

use hashbrown::{HashMap, HashSet};
use reactor::netlink::{LOCAL_MAX, LearnedRoute, LearnedTable, Netlink};
use wire::bgp::Prefix;

use crate::config::Install;

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
    /// Prefixes the kernel refused. They are not tried again until their route changes.
    missing: HashSet<Prefix>,
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
            missing: HashSet::new(),
        })
    }

    /// Sets the next hop of a prefix, or removes its route.
    pub(super) fn set(&mut self, prefix: Prefix, via: Option<IpAddr>) {
        if self.waiting.insert(prefix, via).is_none() {
            self.order.push(prefix);
        }
    }

    pub(super) fn has_changes(&self) -> bool {
        !self.order.is_empty()
    }

    /// Sends one turn's share to the kernel.
    pub(super) fn work(&mut self) {
        let mut changes = Vec::with_capacity(LOCAL_MAX);
        while changes.len() < LOCAL_MAX
            && let Some(prefix) = self.order.pop()
        {
            let Some(via) = self.waiting.remove(&prefix) else {
                continue;
            };
            let was_missing = self.missing.remove(&prefix);
            if self.told.get(&prefix).copied() == via && !was_missing {
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
            Err(error) => (changes.len() as u64, Some(error)),
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
        for change in changes.iter().filter(|change| change.via.is_some()) {
            let outcome = self
                .netlink
                .change_learned(self.place, core::slice::from_ref(change));
            if !matches!(outcome, Ok((0, _))) {
                let prefix = Prefix::of(change.to.0, change.to.1);
                self.told.remove(&prefix);
                self.missing.insert(prefix);
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

    /// Removes all our routes.
    pub(super) fn withdraw_all(&mut self) {
        let told: Vec<Prefix> = self.told.keys().copied().collect();
        for prefix in told {
            self.set(prefix, None);
        }
        while self.has_changes() {
            self.work();
        }
    }
}
