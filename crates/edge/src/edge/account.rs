//! Accounts of subscribers: that one began, goes on, ended. Whoever keeps them makes records of these.

use core::net::Ipv4Addr;

use aaa::accounting::TerminateCause;
use base::{Duration, Instant};

use crate::access::{Access, Numbers, Served};
use crate::edge::Edge;
use crate::end::End;
use crate::key::{SubscriberKey, Traffic};

/// What an account says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It begins.
    Start,
    /// It goes on.
    Interim,
    /// It ended, for this reason.
    Stop(TerminateCause),
}

/// One entry of a subscriber's account.
#[derive(Clone, Debug)]
pub struct Account<P = <Served as Access>::Place> {
    /// What it says.
    pub entry: Entry,
    /// The account's number; no two of an edge's are equal.
    pub number: u64,
    /// The subscriber's name.
    pub name: Box<[u8]>,
    /// Its IPv4 address, if it had one.
    pub address: Option<Ipv4Addr>,
    /// What the server wants to see (Class).
    pub class: Vec<Box<[u8]>>,
    /// What it sent and got so far.
    pub traffic: Traffic,
    /// How long it has been on line.
    pub age: Duration,
    /// When this was so.
    pub at: Instant,
    /// Where its session is, or was.
    pub place: P,
    /// Who it is about; after the last entry nothing is there under this key.
    pub subscriber: SubscriberKey,
    /// Where it called from, and what.
    pub numbers: Option<Box<Numbers>>,
    /// Whether we let it in, and not a server.
    pub is_local: bool,
    /// Its interface identifier, if IPv6 is open.
    pub interface: Option<u64>,
}

impl<A: Access> Edge<A> {
    /// The next entry of an account, oldest first.
    pub fn poll_account(&mut self) -> Option<Account<A::Place>> {
        self.accounts.pop_front()
    }

    pub(crate) fn account_begins(&mut self, index: u32, now: Instant) {
        self.at_mut(index).accounted = true;
        let account = self.entry(index, Entry::Start, now);
        self.accounts.extend(account);
    }

    pub(crate) fn account_goes_on(&mut self, index: u32, now: Instant) {
        let account = self.entry(index, Entry::Interim, now);
        self.accounts.extend(account);
    }

    /// The last entry, if there was any before; it is to be given out.
    pub(crate) fn account_ends(
        &mut self,
        index: u32,
        reason: &End<A::Reason>,
        now: Instant,
    ) -> Option<Account<A::Place>> {
        let accounted = core::mem::take(&mut self.at_mut(index).accounted);
        let entry = Entry::Stop(reason.terminate_cause());
        accounted.then(|| self.entry(index, entry, now))?
    }

    fn entry(&self, index: u32, entry: Entry, now: Instant) -> Option<Account<A::Place>> {
        if !self.config.accounting {
            return None;
        }
        let subscriber = self.at(index);
        let profile = subscriber.profile.as_deref();
        Some(Account {
            entry,
            number: subscriber.account,
            name: subscriber.name.clone(),
            address: subscriber.held,
            class: profile.map_or_else(Vec::new, |profile| profile.class.clone()),
            traffic: subscriber.traffic(),
            age: subscriber.up.map_or(Duration::ZERO, |up| now.since(up)),
            at: now,
            place: subscriber.place,
            subscriber: SubscriberKey(subscriber.key),
            numbers: subscriber.numbers.clone(),
            is_local: subscriber.is_local,
            interface: subscriber.ipv6.map(|[_, peer]| peer),
        })
    }
}
