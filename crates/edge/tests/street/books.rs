//! What an edge reports, and whether it is in order: sessions, subscribers, accounts, port blocks.

use core::fmt::Debug;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::Ipv4Addr;

use base::{Duration, Instant};
use edge::access::{Access, Served, SessionChange};
use edge::{Account, Entry, Event, SubscriberKey, Traffic};
use nat::Block;

type Place = <Served as Access>::Place;
type Session = <Served as Access>::Session;

/// How long a port block stays out of use after its subscriber, less the resolution of the NAT's clock.
pub(crate) const HOLD: Duration = Duration::from_secs(20);

/// The records of one edge.
#[derive(Default)]
pub(crate) struct Books {
    /// Sessions that came up and have not ended.
    pub(crate) sessions: HashSet<Session>,
    /// Subscribers that are connected.
    pub(crate) up: HashSet<SubscriberKey>,
    /// Subscribers that were seen, and those that ended.
    pub(crate) seen: HashSet<SubscriberKey>,
    pub(crate) gone: HashSet<SubscriberKey>,
    /// How often each reason ended one, by its first words.
    pub(crate) reasons: BTreeMap<String, u64>,
    accounts: HashMap<u64, Account<Place>>,
    closed: HashSet<u64>,
    /// Port blocks by external address and first port.
    pub(crate) blocks: HashMap<(Ipv4Addr, u16), Block>,
    freed: HashMap<(Ipv4Addr, u16), Instant>,
    /// Whether it was reported that all blocks are in use.
    is_used_up: bool,
    pub(crate) used_up: u64,
}

impl Books {
    pub(crate) fn event(&mut self, event: &Event<Served>) {
        match event {
            Event::Access(event) => match Served::session_change(event) {
                Some(SessionChange::Up(session)) => {
                    assert!(self.sessions.insert(session), "{event:?} twice");
                }
                Some(SessionChange::Down(session, _)) => {
                    self.sessions.remove(&session);
                }
                None => {}
            },
            Event::Up { subscriber } => {
                assert!(self.up.insert(*subscriber), "{event:?} twice");
                assert!(!self.gone.contains(subscriber), "{event:?} after its end");
                self.seen.insert(*subscriber);
            }
            Event::Down {
                subscriber,
                reason,
                was_up,
                ..
            } => {
                assert!(self.gone.insert(*subscriber), "{event:?} twice");
                assert_eq!(self.up.remove(subscriber), *was_up, "{event:?}");
                let text = reason.to_string();
                assert!(!text.is_empty(), "an end without a reason");
                let words: Vec<&str> = text.split(' ').take(4).collect();
                *self.reasons.entry(words.join(" ")).or_default() += 1;
            }
            Event::Client { .. }
            | Event::Uplink { .. }
            | Event::Network { .. }
            | Event::QueueFaults { .. }
            | Event::NoPrefix { .. } => {}
        }
    }

    pub(crate) fn account(&mut self, account: &Account<Place>) {
        let number = account.number;
        let is_stop = matches!(account.entry, Entry::Stop(_));
        assert!(!self.closed.contains(&number), "{account:?} after its Stop");
        match self.accounts.get(&number) {
            None => assert_eq!(account.entry, Entry::Start, "{account:?} without a Start"),
            Some(last) => {
                assert_ne!(account.entry, Entry::Start, "two Starts of {number}");
                assert_eq!(last.subscriber, account.subscriber);
                assert!(account.at >= last.at && account.age >= last.age);
                assert!(grew(last.traffic, account.traffic), "{last:?} {account:?}");
            }
        }
        match is_stop {
            true => {
                self.accounts.remove(&number);
                self.closed.insert(number);
            }
            false => {
                self.accounts.insert(number, account.clone());
            }
        }
    }

    pub(crate) fn block(&mut self, event: nat::Event) {
        match event {
            nat::Event::BlockAllocated(block, at) => {
                let place = (block.external, block.first);
                if let Some(freed) = self.freed.remove(&place) {
                    let pause = at.since(freed) + Duration::from_secs(2);
                    assert!(pause >= HOLD, "{block:?} again after {pause:?}");
                }
                let other = self.blocks.insert(place, block);
                assert!(other.is_none(), "{block:?} is also of {other:?}");
                self.is_used_up = false;
            }
            nat::Event::BlockFreed(block, at) => {
                let place = (block.external, block.first);
                let had = self.blocks.remove(&place);
                assert_eq!(had, Some(block), "freed by another, or twice");
                self.freed.insert(place, at);
            }
            nat::Event::PoolUsedUp { .. } => {
                assert!(!self.is_used_up, "reported twice");
                self.is_used_up = true;
                self.used_up += 1;
            }
            nat::Event::SubscriberLimit { .. }
            | nat::Event::ForwardAdded(..)
            | nat::Event::ForwardRemoved(..) => {}
        }
    }

    /// Exactly the connected subscribers have open accounts.
    pub(crate) fn check(&self, has_accounts: bool) {
        let open: HashSet<_> = self.accounts.values().map(|one| one.subscriber).collect();
        assert_eq!(
            open.len(),
            self.accounts.len(),
            "two accounts of one subscriber"
        );
        if has_accounts {
            same("connected subscribers and open accounts", &self.up, &open);
        }
    }

    /// Accounts that were started, and all of them were stopped.
    pub(crate) fn closed(&self) -> usize {
        assert!(self.accounts.is_empty(), "{:?}", self.accounts);
        self.closed.len()
    }
}

/// Compares two sets.
pub(crate) fn same<T: Debug + Eq + core::hash::Hash>(
    what: &str,
    one: &HashSet<T>,
    two: &HashSet<T>,
) {
    let first: Vec<_> = one.difference(two).collect();
    let second: Vec<_> = two.difference(one).collect();
    assert!(
        first.is_empty() && second.is_empty(),
        "{what}: only the first has {first:?}, only the second has {second:?}"
    );
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
    let mut pairs = numbers(before).into_iter().zip(numbers(after));
    pairs.all(|(before, after)| before <= after)
}
