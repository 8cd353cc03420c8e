//! Accounting entries of subscribers: start, interim, stop. The owner makes records of them.

use core::net::Ipv4Addr;

use aaa::accounting::{Ipv6Leases, TerminateCause};
use base::{Duration, Instant};

use crate::access::{Access, L2tp, Numbers};
use crate::edge::Edge;
use crate::edge::switching::Far;
use crate::end::End;
use crate::key::{QueueLosses, SubscriberKey, Traffic};
use crate::path::Meter;
use crate::v6::Family;

/// The kind of an accounting entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The subscriber connected.
    Start,
    /// It is still connected.
    Interim,
    /// It ended, for this reason.
    Stop(TerminateCause),
}

/// One accounting entry of a subscriber.
#[derive(Clone, Debug)]
pub struct Account<P = <L2tp as Access>::Place> {
    /// Its kind.
    pub entry: Entry,
    /// The account's number; no two of an edge's are equal.
    pub number: u64,
    /// The subscriber's name.
    pub name: Box<[u8]>,
    /// Its IPv4 address, if it had one.
    pub address: Option<Ipv4Addr>,
    /// The Class attributes that the server wants back.
    pub class: Vec<Box<[u8]>>,
    /// Its traffic so far.
    pub traffic: Traffic,
    /// Time connected.
    pub age: Duration,
    /// When the entry was made.
    pub at: Instant,
    /// Where its session is, or was.
    pub place: P,
    /// The subscriber. After the last entry its key is stale.
    pub subscriber: SubscriberKey,
    /// Calling and called numbers.
    pub numbers: Option<Box<Numbers>>,
    /// Whether we authenticated it, not a server.
    pub is_local: bool,
    /// Its interface identifier, if IPv6CP is open.
    pub interface: Option<u64>,
    /// Its IPv6 prefixes.
    pub ipv6: Ipv6Leases,
    /// The LNS that has its session.
    pub far: Option<Box<Far<P>>>,
    /// What its queues down and up lost and marked, if it has queues.
    pub queue: Option<[QueueLosses; 2]>,
}

impl<A: Access> Edge<A> {
    /// The next entry of an account, oldest first.
    pub fn poll_account(&mut self) -> Option<Account<A::Place>> {
        self.accounts.pop_front()
    }

    /// The open account of the first subscriber at or behind `cursor`, as an interim entry, and the cursor behind it. The
    /// entry is `None` if this subscriber has no open account.
    #[must_use]
    pub fn next_account(
        &self,
        cursor: u32,
        now: Instant,
    ) -> Option<(u32, Option<Account<A::Place>>)> {
        let (index, subscriber) = self.subscribers.next_from(cursor)?;
        let account = match subscriber.accounted {
            true => self.entry(index, Entry::Interim, now),
            false => None,
        };
        Some((index + 1, account))
    }

    pub(crate) fn account_begins(&mut self, index: u32, now: Instant) {
        // Accounting may be switched on or off while the subscriber is connected.
        self.at_mut(index).accounted = self.config.accounting;
        let account = self.entry(index, Entry::Start, now);
        self.accounts.extend(account);
    }

    pub(crate) fn account_goes_on(&mut self, index: u32, now: Instant) {
        if self.at(index).accounted {
            let account = self.entry(index, Entry::Interim, now);
            self.accounts.extend(account);
        }
    }

    /// The last entry, if there was a first one.
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
        // The last entry has what the subscriber had.
        let before = match entry {
            Entry::Stop(_) => subscriber.v6_before.as_deref(),
            Entry::Start | Entry::Interim => None,
        };
        let family = subscriber.v6.as_deref().or(before);
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
            interface: family.map(|family| family.identifiers[1]),
            ipv6: family.map(Family::leases).unwrap_or_default(),
            far: self.far(index),
            queue: self.shaped.contains_key(&index).then(|| {
                let meters = subscriber.meters.as_deref();
                meters.map_or_else(Default::default, Meter::losses)
            }),
        })
    }
}
