//! Changes of connected subscribers: filter, walled garden, queues, times and networks, at once and without a new
//! session. CoA-Requests (RFC 5176, section 2.2) and operators' commands come in at one door, [`Edge::change_sessions`].
//!
//! A change is atomic: first every part is checked for every subscriber, and then everything is applied.

use core::fmt;
use core::net::IpAddr;
use std::sync::Arc;

use aaa::{Change, Prefix, Profile, Queue, Walled};
use base::{Duration, Instant};
use filter::FilterId;

use super::links::later;
use crate::access::Access;
use crate::edge::Edge;
use crate::garden::Gardens;
use crate::key::SubscriberKey;
use crate::path::Facts;
use crate::path::change::Step;
use crate::queue::{QueueFault, Setting};
use crate::subscriber::Phase;

/// Why nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeRefusal {
    /// It has disconnected, or is disconnecting.
    Gone,
    /// It is a client of ours: the network that it belongs to decides.
    Client,
    /// It is not admitted yet.
    NotAdmitted,
    /// An LNS has its session, so this part of the change would have no effect.
    Switched(&'static str),
    /// Networks can lead to one subscriber only, and there are more.
    Several,
    /// There is no filter with this name.
    NoFilter(Box<str>),
    /// There is no walled garden with this name.
    NoGarden(Box<str>),
    /// Rates, template or link cannot be applied.
    Queue(QueueFault),
    /// Another subscriber has the network.
    Held(Prefix),
    /// The table of networks is full.
    Full,
}

impl fmt::Display for ChangeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("it is disconnecting"),
            Self::Client => f.write_str("it is a client of ours; its network decides"),
            Self::NotAdmitted => f.write_str("it is not admitted yet"),
            Self::Switched(what) => write!(f, "an LNS has its session and decides on {what}"),
            Self::Several => f.write_str("networks can lead to one subscriber only"),
            Self::NoFilter(name) => write!(f, "there is no filter {name:?}"),
            Self::NoGarden(name) => write!(f, "there is no garden {name:?}"),
            Self::Queue(QueueFault::NoTemplate(name, _)) => {
                write!(f, "there is no template {name:?}")
            }
            Self::Queue(QueueFault::NoLink(name, _)) => write!(f, "there is no link {name:?}"),
            Self::Queue(fault) => fault.fmt(f),
            Self::Held(network) => write!(f, "another subscriber has {network}"),
            Self::Full => f.write_str("the table of networks is full"),
        }
    }
}

/// A change whose names were found.
struct Found {
    filter: Option<(Box<str>, FilterId)>,
    /// `Some(None)`: out of every garden.
    garden: Option<Option<Box<str>>>,
    queue: Queue,
}

impl Found {
    /// The first part of a change that has no effect on a session that an LNS has: its packets pass no filter and no
    /// queue here, and no network leads to it. New rates are those of the line, if they can be reported.
    fn beyond(&self, change: &Change, may_report: bool) -> Option<&'static str> {
        let rates = Queue {
            rates_bps: self.queue.rates_bps,
            ..Queue::default()
        };
        let is_reported = may_report && rates == self.queue;
        let is_queue = !self.queue.is_empty() && !is_reported;
        let parts = [
            ("its filter", self.filter.is_some()),
            ("its walled garden", self.garden.is_some()),
            ("its queues", is_queue || change.reset_queue),
            (
                "the networks behind it",
                change.routes.iter().any(Option::is_some),
            ),
        ];
        let found = parts.into_iter().find(|(_, is_changed)| *is_changed);
        found.map(|(what, _)| what)
    }
}

/// The queues that a subscriber gets.
type Queues = Option<(Queue, Option<Setting>)>;

impl<A: Access> Edge<A> {
    /// Changes connected subscribers at once: all of them and all parts, or nothing. The changes last until their
    /// sessions end. To apply the same change again has no further effect.
    ///
    /// # Errors
    /// Why nothing changed.
    pub fn change_sessions(
        &mut self,
        subscribers: &[SubscriberKey],
        change: &Change,
        now: Instant,
    ) -> Result<(), ChangeRefusal> {
        let found = self.find_names(change)?;
        if subscribers.len() > 1 && change.routes.iter().flatten().any(|all| !all.is_empty()) {
            return Err(ChangeRefusal::Several);
        }
        let mut queues = Vec::with_capacity(subscribers.len());
        for &subscriber in subscribers {
            queues.push(self.check_change(subscriber, change, &found)?);
        }
        for (subscriber, queue) in subscribers.iter().zip(queues) {
            self.apply_change(subscriber.0.index, change, &found, queue, now);
        }
        Ok(())
    }

    /// Puts the entry of a subscriber into its garden, if it is in one. The garden's filter takes the place of its own. A
    /// garden that the configuration no longer has holds nobody.
    pub(crate) fn wall(&self, index: u32, facts: &mut Facts) {
        let profile = self.at(index).profile.as_deref();
        let name = profile.and_then(|profile| profile.garden.as_deref());
        let garden = name.and_then(|name| self.path.gardens.find(name));
        let Some((id, garden)) = garden else { return };
        let filter = garden.filter.as_deref();
        let filter = filter.and_then(|name| self.path.filters.set().find(name));
        facts.filter = Some(filter.unwrap_or(FilterId::NOBODY));
        facts.garden = Some(id);
    }

    /// Replaces the walled gardens. Those who are in one are put into the new one with its name a little later.
    pub(crate) fn set_gardens(&mut self) {
        let gardens = Gardens::new(&self.config.gardens, &self.path.gardens);
        self.change(Step::Gardens(Arc::new(gardens)));
    }

    /// Finds filter and garden by their names. The name of a filter may be that of a template or of a garden.
    fn find_names(&self, change: &Change) -> Result<Found, ChangeRefusal> {
        let mut profile = Profile {
            filter: change.filter.clone(),
            queue: change.queue.clone(),
            ..Profile::default()
        };
        self.names_of_filter_id(&mut profile);
        let filter = match profile.filter {
            None => None,
            Some(name) => match self.path.filters.set().find(&name) {
                Some(id) => Some((name, id)),
                None => return Err(ChangeRefusal::NoFilter(name)),
            },
        };
        let named = profile.garden.map(Walled::In);
        let garden = match change.garden.clone().or(named) {
            None => None,
            Some(Walled::Out) => Some(None),
            Some(Walled::In(name)) if self.path.gardens.find(&name).is_none() => {
                return Err(ChangeRefusal::NoGarden(name));
            }
            Some(Walled::In(name)) => Some(Some(name)),
        };
        Ok(Found {
            filter,
            garden,
            queue: profile.queue,
        })
    }

    /// Checks a change of one subscriber. Returns the queues that it gets.
    fn check_change(
        &self,
        subscriber: SubscriberKey,
        change: &Change,
        found: &Found,
    ) -> Result<Queues, ChangeRefusal> {
        let one = self.subscribers.get(subscriber.0);
        let one = one.ok_or(ChangeRefusal::Gone)?;
        match one.phase() {
            _ if one.is_client => return Err(ChangeRefusal::Client),
            Phase::Ending => return Err(ChangeRefusal::Gone),
            Phase::Link | Phase::Asking => return Err(ChangeRefusal::NotAdmitted),
            Phase::Networks | Phase::Up => {}
        }
        let index = subscriber.0.index;
        if self.is_switched(index) {
            let may_report = self.may_report_speed(index);
            let beyond = found.beyond(change, may_report);
            return beyond.map_or(Ok(None), |what| Err(ChangeRefusal::Switched(what)));
        }
        self.check_networks(index, change)?;
        if found.queue.is_empty() && !change.reset_queue {
            return Ok(None);
        }
        let queue = self.check_queue(index, &found.queue, change.reset_queue);
        queue.map(Some).map_err(ChangeRefusal::Queue)
    }

    /// Checks that new networks are free, and that the table has room for them.
    fn check_networks(&self, index: u32, change: &Change) -> Result<(), ChangeRefusal> {
        let routes = &self.path.routes;
        let mut new = 0;
        for network in change.routes.iter().flatten().flatten() {
            match routes.holder(network.address(), network.length()) {
                Ok(Some(holder)) if holder != index => return Err(ChangeRefusal::Held(*network)),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => new += 1,
            }
        }
        match routes.len() + new > self.config.routes_max as usize {
            true => Err(ChangeRefusal::Full),
            false => Ok(()),
        }
    }

    fn apply_change(
        &mut self,
        index: u32,
        change: &Change,
        found: &Found,
        queue: Queues,
        now: Instant,
    ) {
        if let Some((own, setting)) = queue {
            self.put_setting(index, own, setting, now);
        } else if found.queue.rates_bps != [None; 2] {
            self.report_speed(index, found.queue.rates_bps);
        }
        for (ipv6, networks) in [false, true].into_iter().zip(&change.routes) {
            if let Some(networks) = networks {
                self.replace_networks(index, ipv6, networks);
            }
        }
        let profile = self.profile_mut(index);
        if let Some(class) = &change.class {
            profile.class.clone_from(class);
        }
        let mut is_new = false;
        if let Some(garden) = &found.garden {
            is_new = profile.garden != *garden;
            profile.garden.clone_from(garden);
        }
        if let Some((name, id)) = &found.filter {
            profile.filter = Some(name.clone());
            let one = self.at_mut(index);
            is_new |= one.filter.replace(*id) != Some(*id);
        }
        if is_new {
            self.publish(index);
        }
        self.change_times(index, change, now);
        if self.config.interim_on_change && self.at(index).up.is_some() {
            self.account_goes_on(index, now);
        }
    }

    fn profile_mut(&mut self, index: u32) -> &mut Profile {
        self.at_mut(index).profile.get_or_insert_default()
    }

    /// Replaces the networks of one version of IP behind a subscriber. A network that stays leads to it without a break.
    fn replace_networks(&mut self, index: u32, ipv6: bool, networks: &[Prefix]) {
        let is_open = self.at(index).is_open(if ipv6 { 6 } else { 4 });
        // What it holds as a lease leads to it already, and goes when the lease does.
        let leases = self.at(index).v6.as_deref().map(|family| family.held);
        let leases = leases.unwrap_or_default();
        let is_new = |one: &&Prefix| !leases.contains(&Some(**one));
        let networks: Vec<Prefix> = networks.iter().filter(is_new).copied().collect();
        let profile = self.profile_mut(index);
        let is_replaced = |one: &Prefix| one.address().is_ipv6() == ipv6;
        let all = core::mem::take(&mut profile.routes);
        let (old, mut routes): (Vec<_>, Vec<_>) = all.into_iter().partition(is_replaced);
        routes.extend(&networks);
        profile.routes = routes;
        if !is_open {
            return;
        }
        for &network in old.iter().filter(|one| !networks.contains(one)) {
            self.lead(index, network, false);
        }
        for &network in networks.iter().filter(|one| !old.contains(one)) {
            self.lead(index, network, true);
        }
    }

    /// Moves the deadlines of a subscriber. The longest session counts from its start, so its end may be now.
    fn change_times(&mut self, index: u32, change: &Change, now: Instant) {
        let spans = [
            change.session_timeout,
            change.idle_timeout,
            change.interim_interval,
        ];
        if spans == [None; 3] {
            return;
        }
        let profile = self.profile_mut(index);
        let own: [&mut Option<Duration>; 3] = [
            &mut profile.session_timeout,
            &mut profile.idle_timeout,
            &mut profile.interim_interval,
        ];
        for (own, new) in own.into_iter().zip(spans) {
            *own = new.or(*own);
        }
        let one = self.at_mut(index);
        let Some(up) = one.up else { return };
        let [session, idle, interim] = spans;
        if let Some(session) = session {
            one.end_at = later(up, session);
        }
        if let Some(idle) = idle {
            let traffic = one.traffic();
            one.packets_seen = traffic.packets_in + traffic.packets_out;
            one.idle_at = later(now, idle);
        }
        if let Some(interim) = interim {
            one.interim_at = later(now, interim);
        }
        self.settle_timer(index);
    }

    /// The subscriber with an account's number.
    #[must_use]
    pub fn at_account(&self, number: u64) -> Option<SubscriberKey> {
        let index = self.by_account.find(hash(number), |&index| {
            let one = self.subscribers.at(index);
            one.is_some_and(|one| one.account == number)
        });
        let one = self.subscribers.at(*index?)?;
        Some(SubscriberKey(one.key))
    }

    /// The subscriber whose key has this number in its lower 32 bits ([`SubscriberKey::to_token`]).
    #[must_use]
    pub fn at_port(&self, port: u32) -> Option<SubscriberKey> {
        let one = self.subscribers.at(port)?;
        Some(SubscriberKey(one.key))
    }

    /// The subscriber that packets to an address of IPv6 go to.
    #[must_use]
    pub fn at_prefix(&self, prefix: Prefix) -> Option<SubscriberKey> {
        match prefix.address() {
            IpAddr::V4(_) => None,
            address => {
                let holder = self.path.routes.holder(address, prefix.length());
                let one = self.subscribers.at(holder.ok().flatten()?)?;
                Some(SubscriberKey(one.key))
            }
        }
    }

    /// Adds a new subscriber to the table of accounts.
    pub(crate) fn register_account(&mut self, index: u32) {
        let number = self.at(index).account;
        let subscribers = &self.subscribers;
        self.by_account.insert_unique(hash(number), index, |&at| {
            let one = subscribers.at(at);
            hash(one.expect("the table names only subscribers").account)
        });
    }

    /// Removes a subscriber that is no longer in its table from that of accounts.
    pub(crate) fn forget_account(&mut self, index: u32, number: u64) {
        if let Ok(entry) = self.by_account.find_entry(hash(number), |&at| at == index) {
            entry.remove();
        }
    }
}

/// Numbers of accounts are consecutive, so this spreads them without a secret.
fn hash(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
