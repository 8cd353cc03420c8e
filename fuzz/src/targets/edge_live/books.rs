//! The edge's events about its subscribers, and their invariants.

use core::net::{IpAddr, Ipv4Addr};
use std::collections::{HashMap, HashSet};

use aaa::Prefix;
use edge::{Account, Edge, Entry, Event, Phase, SubscriberKey, SubscriberView};
use l2tp::SessionState;

/// Accounting entries and events.
#[derive(Default)]
pub(super) struct Books {
    /// The last entry of each account, by number.
    accounts: HashMap<u64, Account>,
    up: HashSet<SubscriberKey>,
    gone: HashSet<SubscriberKey>,
    came_up: u64,
}

pub(super) fn subscribers(edge: &Edge) -> impl Iterator<Item = SubscriberView<'_>> {
    let mut cursor = 0;
    core::iter::from_fn(move || {
        let (next, view) = edge.next_subscriber(cursor)?;
        cursor = next;
        Some(view)
    })
}

/// Held pool addresses.
pub(super) fn used(edge: &Edge) -> u32 {
    edge.pools().views().map(|pool| pool.used).sum()
}

impl Books {
    /// Checks that an account has one start and at most one stop, which is last.
    pub(super) fn account(&mut self, account: Account) {
        let last = self.accounts.get(&account.number);
        match (last.map(|last| last.entry), account.entry) {
            (None, Entry::Start)
            | (Some(Entry::Start | Entry::Interim), Entry::Interim | Entry::Stop(_)) => {}
            (last, _) => panic!("{account:?} after {last:?}"),
        }
        if let Some(last) = last {
            assert_eq!(
                (last.subscriber, &last.name),
                (account.subscriber, &account.name)
            );
            assert!(last.at <= account.at && last.age <= account.age);
            assert!(last.traffic.octets_in <= account.traffic.octets_in);
            assert!(last.traffic.octets_out <= account.traffic.octets_out);
        }
        self.accounts.insert(account.number, account);
    }

    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::Up { subscriber } => {
                assert!(self.up.insert(*subscriber) && !self.gone.contains(subscriber));
                self.came_up += 1;
            }
            Event::Down { subscriber, .. } => {
                assert!(self.gone.insert(*subscriber), "{event:?} twice");
                self.up.remove(subscriber);
            }
            Event::Client { .. } | Event::Uplink { .. } => panic!("{event:?} of a network"),
            Event::Access(_)
            | Event::Network { .. }
            | Event::QueueFaults { .. }
            | Event::NoPrefix { .. } => {}
        }
    }

    /// Checks the invariants that always hold.
    pub(super) fn check(&self, edge: &Edge) {
        let mut held = HashSet::new();
        let mut routes = HashSet::new();
        let mut in_pool = 0;
        for one in subscribers(edge) {
            let session = edge.endpoint().session(one.session);
            let session = session.unwrap_or_else(|| panic!("{:?} has no session", one.key));
            assert_eq!(session.state, SessionState::Established);
            let found = edge.subscriber_in(one.session).map(|found| found.key);
            assert_eq!(found, Some(one.key));
            let is_up = self.up.contains(&one.key);
            assert_eq!(is_up, one.up.is_some());
            assert!(one.phase != Phase::Up || is_up);
            assert_eq!(one.ending.is_some(), one.phase == Phase::Ending);
            if matches!(one.phase, Phase::Networks | Phase::Up) {
                assert!(edge.find(one.name).any(|key| key == one.key));
            }
            if let Some(address) = one.address {
                assert!(held.insert(address), "{address} is held twice");
                in_pool += u32::from(address.octets()[0] == 10);
                assert_eq!(edge.at_address(IpAddr::V4(address)), Some(one.key));
            }
            routes.extend(networks(&one));
        }
        assert_eq!(used(edge), in_pool, "addresses of the pool");
        let counts = edge.counts();
        assert!(counts.routes <= routes.len());
        if counts.routes_refused == 0 {
            assert_eq!(counts.routes, routes.len(), "{routes:?}");
        }
        assert!(counts.subscribers <= edge.config().subscribers_max as usize);
        let gone = self.gone.len() as u64;
        assert_eq!((counts.up, counts.down), (self.came_up, gone));
        let open = self.accounts.values();
        let open = open.filter(|last| !matches!(last.entry, Entry::Stop(_)));
        let open: HashSet<_> = open.map(|last| last.subscriber).collect();
        assert_eq!(open, self.up, "who is up has an account that goes on");
        let kept = edge.config().history_max.min(gone as usize);
        assert_eq!(edge.ended(kept).map(|ended| ended.account), None);
        assert!(kept == 0 || edge.ended(kept - 1).is_some());
    }
}

/// The networks that should be routed to a subscriber: its address, and those behind it.
fn networks(one: &SubscriberView<'_>) -> Vec<Prefix> {
    let open = |ipv6| one.link.is_open(ipv6);
    let own = one
        .address
        .filter(|_| open(false))
        .map(|address: Ipv4Addr| {
            Prefix::new(address.into(), 32).expect("no bits behind its length")
        });
    let behind = one.profile.map_or(&[][..], |profile| &profile.routes);
    let behind = behind.iter().copied();
    let behind = behind.filter(|network| open(network.address().is_ipv6()));
    own.into_iter().chain(behind).collect()
}
