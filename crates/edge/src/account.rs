//! Accounts of subscribers: that one began, goes on, ended. Whoever keeps them makes records of these.

use core::net::Ipv4Addr;

use base::{Duration, Instant};

use crate::edge::Edge;
use crate::end::End;
use crate::subscriber::{SubscriberKey, Traffic};

/// What an account says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It begins.
    Start,
    /// It goes on.
    Interim,
    /// It ended, for this Acct-Terminate-Cause (RFC 2866, section 5.10).
    Stop(u32),
}

/// One entry of a subscriber's account.
#[derive(Clone, Debug)]
pub struct Account {
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
    /// Its tunnel's and session's ids on our side.
    pub ids: (u32, u32),
}

impl Edge {
    /// The next entry of an account, oldest first.
    pub fn poll_account(&mut self) -> Option<Account> {
        self.accounts.pop_front()
    }

    pub(crate) fn account_begins(&mut self, index: u32, now: Instant) {
        let number = self.next_account;
        self.next_account += 1;
        let subscriber = self.at_mut(index);
        subscriber.account = number;
        subscriber.accounted = true;
        self.note(index, Entry::Start, now);
    }

    pub(crate) fn account_goes_on(&mut self, index: u32, now: Instant) {
        self.note(index, Entry::Interim, now);
    }

    pub(crate) fn account_ends(&mut self, index: u32, reason: &End, now: Instant) {
        if core::mem::take(&mut self.at_mut(index).accounted) {
            self.note(index, Entry::Stop(reason.terminate_cause()), now);
        }
    }

    fn note(&mut self, index: u32, entry: Entry, now: Instant) {
        if !self.config.accounting {
            return;
        }
        let subscriber = self.at(index);
        let profile = subscriber.profile.as_deref();
        let account = Account {
            entry,
            number: subscriber.account,
            name: subscriber.name.clone(),
            address: subscriber.held,
            class: profile.map_or_else(Vec::new, |profile| profile.class.clone()),
            traffic: subscriber.traffic,
            age: subscriber.up.map_or(Duration::ZERO, |up| now.since(up)),
            at: now,
            ids: subscriber.ids,
        };
        self.accounts.push_back(account);
    }
}

impl Account {
    /// Who it is about, in the words of a record: 16 digits, the same for all entries.
    #[must_use]
    pub fn session_id(&self) -> String {
        format!("{:016x}", self.number)
    }
}

/// As [`Account::session_id`], of a subscriber that is on line.
#[must_use]
pub fn session_id(number: u64) -> String {
    format!("{number:016x}")
}

impl From<SubscriberKey> for u64 {
    fn from(key: SubscriberKey) -> Self {
        key.to_token()
    }
}
