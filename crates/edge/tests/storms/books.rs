//! Records the events and accounting entries of each subscriber, and checks their order.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use edge::{Account, End, Entry, Event, SubscriberKey, Traffic};

/// The accounting entries and events of one edge.
#[derive(Default)]
pub(crate) struct Books {
    accounts: HashMap<u64, History>,
    up: HashSet<SubscriberKey>,
    /// Every subscriber that has ended.
    gone: HashSet<SubscriberKey>,
    pub(crate) ends: Vec<End>,
    /// Clients that have addresses.
    clients: HashSet<SubscriberKey>,
    /// Networks routed to a subscriber.
    pub(crate) networks: HashSet<(IpAddr, u8)>,
    pub(crate) came_up: u64,
}

struct History {
    subscriber: SubscriberKey,
    name: Box<[u8]>,
    last: Account,
    is_over: bool,
}

impl Books {
    pub(crate) fn account(&mut self, account: Account) {
        let number = account.number;
        assert!(number > 0);
        let Some(history) = self.accounts.get_mut(&number) else {
            assert_eq!(account.entry, Entry::Start, "{account:?} without a start");
            let history = History {
                subscriber: account.subscriber,
                name: account.name.clone(),
                last: account,
                is_over: false,
            };
            let mut others = self.accounts.values();
            let subscriber = history.subscriber;
            assert!(
                others.all(|other| other.is_over || other.subscriber != subscriber),
                "two accounts of one subscriber"
            );
            self.accounts.insert(number, history);
            return;
        };
        assert!(!history.is_over, "{account:?} after its end");
        assert_ne!(account.entry, Entry::Start, "two starts of {number}");
        assert_eq!(history.subscriber, account.subscriber);
        assert_eq!(history.name, account.name, "one account, one name");
        assert!(account.at >= history.last.at && account.age >= history.last.age);
        assert!(
            grew(history.last.traffic, account.traffic),
            "{:?} {account:?}",
            history.last
        );
        history.is_over = matches!(account.entry, Entry::Stop(_));
        history.last = account;
    }

    pub(crate) fn event(&mut self, event: &Event) {
        match event {
            Event::Up { subscriber } => {
                assert!(self.up.insert(*subscriber), "{event:?} twice");
                assert!(!self.gone.contains(subscriber));
                self.came_up += 1;
            }
            Event::Down {
                subscriber, reason, ..
            } => {
                assert!(self.gone.insert(*subscriber), "{event:?} twice");
                assert!(!self.clients.contains(subscriber), "addresses are left");
                self.up.remove(subscriber);
                self.ends.push(reason.clone());
            }
            Event::Uplink { .. } => panic!("no client of these asks: {event:?}"),
            Event::Client {
                subscriber,
                addresses,
            } => {
                let changed = match addresses {
                    Some(_) => self.clients.insert(*subscriber),
                    None => self.clients.remove(subscriber),
                };
                assert!(changed, "{event:?}");
            }
            Event::Network {
                address,
                length,
                leads,
            } => {
                let network = (*address, *length);
                let changed = match leads {
                    true => self.networks.insert(network),
                    false => self.networks.remove(&network),
                };
                assert!(changed, "{event:?} twice");
            }
            Event::Access(_) | Event::QueueFaults { .. } | Event::NoPrefix { .. } => {}
        }
    }

    /// Whether a subscriber is connected and has not ended.
    pub(crate) fn is_up(&self, subscriber: SubscriberKey) -> bool {
        self.up.contains(&subscriber)
    }

    pub(crate) fn up(&self) -> usize {
        self.up.len()
    }

    /// Exactly the connected subscribers have open accounts.
    pub(crate) fn check(&self, is_client_side: bool) {
        let open = self.accounts.values().filter(|history| !history.is_over);
        let open: HashSet<_> = open.map(|history| history.subscriber).collect();
        if is_client_side {
            assert!(self.accounts.is_empty(), "a client has no account");
        } else {
            assert_eq!(open, self.up);
        }
    }
}

fn grew(before: Traffic, after: Traffic) -> bool {
    let numbers = |one: Traffic| {
        [
            one.packets_in,
            one.octets_in,
            one.packets_out,
            one.octets_out,
            one.dropped,
        ]
    };
    let pairs = numbers(before).into_iter().zip(numbers(after));
    pairs.into_iter().all(|(before, after)| before <= after)
}
