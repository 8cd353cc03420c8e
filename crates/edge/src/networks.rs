//! Networks behind subscribers: packets to them, or where we are the client from them, go to its session.

use aaa::Prefix;

use crate::edge::Edge;
use crate::path::change::{Step, Table};
use crate::subscriber::SubscriberKey;

/// Where the prefixes of a subscriber stand.
pub(crate) fn table(is_client: bool) -> Table {
    match is_client {
        true => Table::Own,
        false => Table::Subscribers,
    }
}

fn version(network: &Prefix) -> u8 {
    if network.address().is_ipv4() { 4 } else { 6 }
}

impl Edge {
    /// Leads the networks behind a subscriber to it, those of one version of IP, or does not any more. One that another
    /// has stays with that, and comes to this one when the other goes.
    pub(crate) fn framed_routes(&mut self, index: u32, ipv6: bool, here: bool) {
        let one = self.at(index);
        let (key, table) = (SubscriberKey(one.key), table(one.is_client));
        let profile = one.profile.as_deref();
        let networks = profile.map_or(&[][..], |profile| &profile.routes);
        let of_version = |network: &&Prefix| network.address().is_ipv6() == ipv6;
        let networks: Vec<_> = networks.iter().filter(of_version).copied().collect();
        for network in networks {
            let (address, length) = (network.address(), network.length());
            if !here {
                self.waiting.forget(network, key);
                if self.change(Step::Unroute(table, address, length, index)) {
                    self.hand_over(network);
                }
            } else if !self.change(Step::Route(table, address, length, index)) {
                self.counters.routes_refused += 1;
                self.waiting.add(network, key);
            }
        }
    }

    /// A network is free: it goes to who has waited for it longest.
    fn hand_over(&mut self, network: Prefix) {
        while let Some(key) = self.waiting.next(network) {
            let Some(one) = self.subscribers.get(key.0) else {
                continue;
            };
            let table = table(one.is_client);
            let (address, length) = (network.address(), network.length());
            if one.is_open(version(&network))
                && self.change(Step::Route(table, address, length, key.0.index))
            {
                return;
            }
        }
    }

    /// Networks of a subscriber that is up which do not lead to it, since another has them or there was no room.
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

/// Who waits for networks that others have: nobody, as a rule.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Vec<(Prefix, SubscriberKey)>);

impl Waiting {
    fn add(&mut self, network: Prefix, key: SubscriberKey) {
        if !self.0.contains(&(network, key)) {
            self.0.push((network, key));
        }
    }

    fn forget(&mut self, network: Prefix, key: SubscriberKey) {
        self.0.retain(|one| *one != (network, key));
    }

    fn next(&mut self, network: Prefix) -> Option<SubscriberKey> {
        let at = self.0.iter().position(|(one, _)| *one == network)?;
        Some(self.0.remove(at).1)
    }
}
