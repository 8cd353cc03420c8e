//! Networks behind subscribers. Packets to such a network go into the subscriber's session; where we are the client,
//! packets from it do.

use std::collections::BTreeMap;

use aaa::Prefix;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::access::Access;
use crate::edge::Edge;
use crate::key::SubscriberKey;
use crate::path::change::{Step, Table};

/// The table that has the prefixes of a subscriber.
pub(crate) fn table(is_client: bool) -> Table {
    match is_client {
        true => Table::Own,
        false => Table::Subscribers,
    }
}

fn version(network: &Prefix) -> u8 {
    if network.address().is_ipv4() { 4 } else { 6 }
}

impl<A: Access> Edge<A> {
    /// Adds or removes the routes to the networks behind a subscriber, of one version of IP. A network held by
    /// another subscriber stays there, and moves here when that subscriber ends.
    pub(crate) fn framed_routes(&mut self, index: u32, ipv6: bool, here: bool) {
        let profile = self.at(index).profile.as_deref();
        let networks = profile.map_or(&[][..], |profile| &profile.routes);
        let of_version = |network: &&Prefix| network.address().is_ipv6() == ipv6;
        let networks: Vec<_> = networks.iter().filter(of_version).copied().collect();
        for network in networks {
            self.lead(index, network, here);
        }
    }

    /// Adds or removes the route to one network behind a subscriber.
    pub(crate) fn lead(&mut self, index: u32, network: Prefix, here: bool) {
        let one = self.at(index);
        let (key, table) = (SubscriberKey(one.key), table(one.is_client));
        let (address, length) = (network.address(), network.length());
        if !here {
            self.waiting.forget((table, network), key);
            if self.change(Step::Unroute(table, address, length, index)) {
                self.hand_over((table, network));
            }
            return;
        }
        let before = self.path.own.holder(address, length).ok().flatten();
        if !self.change(Step::Route(table, address, length, index)) {
            self.counters.routes_refused += 1;
            self.waiting.add((table, network), key);
        } else if let Some(before) = before.filter(|&one| table == Table::Own && one != index)
            && let Some(one) = self.subscribers.at(before)
        {
            // Another of our clients had it, and may still be connected.
            self.waiting.add((table, network), SubscriberKey(one.key));
        }
    }

    /// Gives a free network to the subscriber that has waited longest for it.
    pub(crate) fn hand_over(&mut self, wanted: Wanted) {
        let (table, network) = wanted;
        while let Some(key) = self.waiting.next(wanted) {
            let Some(one) = self.subscribers.get(key.0) else {
                continue;
            };
            let (address, length) = (network.address(), network.length());
            if one.is_open(version(&network))
                && self.change(Step::Route(table, address, length, key.0.index))
            {
                return;
            }
        }
    }

    /// Networks of a connected subscriber that have no route to it: another subscriber holds them, or the table
    /// is full.
    #[must_use]
    pub fn missing_routes(&self, key: SubscriberKey) -> Vec<Prefix> {
        let Some(one) = self.subscribers.get(key.0) else {
            return Vec::new();
        };
        let profile = one.profile.as_deref();
        let networks = profile.map_or(&[][..], |profile| &profile.routes);
        let routes = match table(one.is_client) {
            Table::Own => &self.path.own,
            Table::Subscribers => &self.path.routes,
        };
        let is_missing = |network: &&Prefix| {
            let holder = routes.holder(network.address(), network.length());
            one.is_open(version(network)) && holder != Ok(Some(key.0.index))
        };
        networks.iter().filter(is_missing).copied().collect()
    }
}

/// A network, and in which table.
pub(crate) type Wanted = (Table, Prefix);

/// Subscribers that wait for networks held by others; usually none. Many may wait for the same network.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Subscribers by network, the longest wait first.
    queues: HashMap<Wanted, BTreeMap<u64, SubscriberKey>>,
    /// When each started to wait.
    since: HashMap<(Wanted, SubscriberKey), u64>,
    last: u64,
}

impl Waiting {
    pub(crate) fn add(&mut self, wanted: Wanted, key: SubscriberKey) {
        if let Entry::Vacant(vacant) = self.since.entry((wanted, key)) {
            self.last += 1;
            vacant.insert(self.last);
            let queue = self.queues.entry(wanted).or_default();
            queue.insert(self.last, key);
        }
    }

    pub(crate) fn forget(&mut self, wanted: Wanted, key: SubscriberKey) {
        if let Some(since) = self.since.remove(&(wanted, key)) {
            self.take(wanted, |queue| queue.remove(&since));
        }
    }

    fn next(&mut self, wanted: Wanted) -> Option<SubscriberKey> {
        let key = self.take(wanted, |queue| queue.pop_first().map(|(_, key)| key))?;
        self.since.remove(&(wanted, key));
        Some(key)
    }

    /// Takes one out of a queue, and removes the queue with its last one.
    fn take(
        &mut self,
        wanted: Wanted,
        take: impl FnOnce(&mut BTreeMap<u64, SubscriberKey>) -> Option<SubscriberKey>,
    ) -> Option<SubscriberKey> {
        let queue = self.queues.get_mut(&wanted)?;
        let taken = take(queue);
        if queue.is_empty() {
            self.queues.remove(&wanted);
        }
        taken
    }
}
