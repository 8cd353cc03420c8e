//! Admission: a subscriber gets its name, address and routes, and releases them at the end.

use core::hash::BuildHasher;
use core::net::{IpAddr, Ipv4Addr};
use core::num::NonZeroU64;
use std::sync::Arc;

use aaa::pools::{Fault, Holder, Request};
use aaa::{Address, Prefix, Profile};
use base::Instant;
use ppp::{Grant, Ipv4Offer, Ipv4Settings, Ipv6Offer, Ipv6Settings};

use crate::access::Access;
use crate::counters::Refusal;
use crate::edge::Edge;
use crate::edge::networks::table;
use crate::end::End;
use crate::event::{Admission, Event};
use crate::key::SubscriberKey;
use crate::path::change::{Change, Step};
use crate::path::{Entry, Meter};
use crate::subscriber::{Again, Phase};
use crate::v6::{Family, V6Count};

impl<A: Access> Edge<A> {
    /// Admits a subscriber: the positive answer to a [`crate::Question`]. The peer may show `message` to its user.
    /// `false` if the answer is stale: the subscriber ended, or renegotiated since; a new claim causes a new question.
    pub fn admit(
        &mut self,
        subscriber: SubscriberKey,
        admission: Admission,
        message: &[u8],
        now: Instant,
    ) -> bool {
        let index = subscriber.0.index;
        let Some(claimed) = self.answered(subscriber) else {
            return false;
        };
        let Admission {
            profile,
            sticky,
            is_remote,
            sessions,
            shape,
            left_out,
        } = admission;
        let name = profile.name.as_deref().map(str::as_bytes);
        let name = name.or(claimed.name.as_deref());
        let one = self.at_mut(index);
        if let Some(name) = name.filter(|&name| *name != *one.name) {
            if one.phase() != Phase::Asking || one.up.is_some() {
                let why = "another name than that of its account";
                return self.deny(index, (Refusal::OtherName, why), b"another name", now);
            }
            self.forget_name(index);
            self.set_name(index, name);
        }
        let one = self.at_mut(index);
        if one.phase() != Phase::Asking {
            // It authenticated again as the same user: it keeps its address and routes.
            self.with_link(index, now, |link, ctx| {
                link.accept(&Grant::default(), message, ctx)
            });
            return true;
        }
        one.is_local = !is_remote;
        self.register_name(index);
        if sessions.is_some_and(|most| self.sessions_alike(index) > most as usize) {
            let why = "as many sessions as it may have";
            let why = (Refusal::TooManySessions, why);
            return self.deny(index, why, b"too many sessions", now);
        }
        if profile.tunnel.is_some() {
            if let Err(why) = self.switch_admitted(index, profile, now) {
                let why = (Refusal::NoTunnel, &*why);
                return self.deny(index, why, b"no network server", now);
            }
            return true;
        }
        self.switches.forget(index);
        if let Err((refusal, why, message)) = self.take_profile(index, profile, now) {
            return self.deny(index, (refusal, &why), message, now);
        }
        self.report_queue_faults(index, left_out);
        let Some(ipv4) = self.lease_or_turn_away(index, sticky, now) else {
            return true;
        };
        let grant = self.grant(index, ipv4);
        self.set_phase(index, Phase::Networks);
        self.set_first_shape(subscriber, shape, now);
        self.with_link(index, now, |link, ctx| link.accept(&grant, message, ctx));
        true
    }

    /// Leases a subscriber's address; `Some(None)` if it gets IPv6 alone, `None` if it is turned away.
    fn lease_or_turn_away(
        &mut self,
        index: u32,
        sticky: bool,
        now: Instant,
    ) -> Option<Option<Ipv4Addr>> {
        match self.lease(index, sticky) {
            Ok(address) => Some(Some(address)),
            // IPv6 does not need the IPv4 address.
            Err(_) if self.serves_ipv6(index) => {
                self.counters.v6.count(V6Count::WithoutIpv4);
                Some(None)
            }
            Err(why) => {
                self.counters.without_address += 1;
                self.counters.refusals.count(Refusal::NoAddress);
                let reason = End::NoAddress(why.into());
                self.turn_away(index, reason, b"no address", now);
                None
            }
        }
    }

    /// Gives a subscriber its profile, with the filter and the queues of it.
    ///
    /// # Errors
    /// Why it cannot have them: the reason, its text, and the message to the peer.
    fn take_profile(
        &mut self,
        index: u32,
        mut profile: Profile,
        now: Instant,
    ) -> Result<(), (Refusal, String, &'static [u8])> {
        self.names_of_filter_id(&mut profile);
        let wanted = profile.filter.as_ref().or(self.config.filter.as_ref());
        let filter = wanted.map(|name| self.path.filters.set().find(name));
        if filter == Some(None) {
            let name = wanted.map_or("", |name| name);
            let why = format!("there is no filter {name}");
            return Err((Refusal::NoFilter, why, b"no filter"));
        }
        if let Some(name) = profile.garden.as_deref()
            && self.path.gardens.find(name).is_none()
        {
            let why = format!("there is no garden {name}");
            return Err((Refusal::NoFilter, why, b"no garden"));
        }
        self.at_mut(index).filter = filter.flatten();
        let is_plain = profile == Profile::default();
        self.at_mut(index).profile = (!is_plain).then(|| Box::new(profile));
        let queued = self.queue_admitted(index, now);
        queued.map_err(|why| (Refusal::NoQueue, why, &b"no queue"[..]))
    }

    /// What an admitted subscriber is offered, besides its own address: `held`, or the one it wishes.
    /// Without an address it is offered IPv6 alone.
    fn grant(&mut self, index: u32, held: Option<Ipv4Addr>) -> Grant {
        let peer = held.map(|held| self.early_wish(index, held));
        // The same in all negotiations of a session, so that a late packet of an earlier one does no harm.
        let token = SubscriberKey(self.at(index).key).to_token();
        let identifier = self.hasher.hash_one((b"interface identifier", token)) | 1;
        let profile = self.at(index).profile.as_deref();
        let fixed = profile.and_then(|profile| profile.ipv6.as_deref()?.interface);
        let ipv6 = match fixed.map(NonZeroU64::get) {
            None => Ipv6Offer::free(identifier),
            Some(peer) => Ipv6Offer {
                // Both ends must differ (RFC 5072, section 4.1).
                local: if identifier == peer {
                    identifier ^ 2
                } else {
                    identifier
                },
                peer,
                peer_must: true,
            },
        };
        Grant {
            ipv4: peer.map(|peer| Ipv4Offer {
                local: self.config.address,
                peer,
                dns: self.config.dns,
                ask_dns: false,
            }),
            ipv6: self.config.ipv6.then_some(ipv6),
        }
    }

    /// How many sessions have the subscriber's name, with its own.
    fn sessions_alike(&self, index: u32) -> usize {
        let alike = self.find(&self.at(index).name);
        // Our own clients with this name are subscribers of another network.
        alike.filter(|one| !self.at(one.0.index).is_client).count()
    }

    /// Does not admit a subscriber whose claim was accepted. Returns `true`: the answer was in time.
    fn deny(
        &mut self,
        index: u32,
        (refusal, why): (Refusal, &str),
        message: &[u8],
        now: Instant,
    ) -> bool {
        self.counters.refused += 1;
        self.counters.refusals.count(refusal);
        self.turn_away(index, End::Refused(why.into()), message, now);
        true
    }

    /// Refuses a subscriber: the negative answer to a [`crate::Question`], with its reason to count and its text. `false`
    /// if the answer is stale, as for [`Edge::admit`].
    pub fn refuse(
        &mut self,
        subscriber: SubscriberKey,
        why: (Refusal, &str),
        message: &[u8],
        now: Instant,
    ) -> bool {
        let index = subscriber.0.index;
        if self.answered(subscriber).is_none() {
            return false;
        }
        // A Failure is the server's to send, and none decided (RFC 3579, section 2.1).
        let asked = self.at(index).link.view().local.authentication;
        if why.0 == Refusal::NoServer && asked == Some(ppp::Authentication::Eap) {
            self.counters.refused += 1;
            self.counters.refusals.count(why.0);
            self.end(index, End::Refused(why.1.into()), now);
            return true;
        }
        self.deny(index, why, message, now)
    }

    /// Passes on a further Request of a subscriber's server by EAP: neither answer yet to a [`crate::Question`]. The
    /// subscriber's Response is the next question. A Request that cannot be passed on refuses the subscriber. `false` if
    /// the answer is stale, as for [`Edge::admit`].
    pub fn challenge(
        &mut self,
        subscriber: SubscriberKey,
        challenge: ppp::Challenge<'_>,
        now: Instant,
    ) -> bool {
        let index = subscriber.0.index;
        if self.answered(subscriber).is_none() {
            return false;
        }
        let sent = self.with_link(index, now, |link, ctx| link.challenge(challenge, ctx));
        if sent != Some(true) {
            let why = "its server's EAP packet cannot be passed on";
            return self.deny(index, (Refusal::Rejected, why), b"", now);
        }
        true
    }

    /// Marks a question as answered and returns the claims made meanwhile; `None` if the answer is stale.
    fn answered(&mut self, subscriber: SubscriberKey) -> Option<Again> {
        let one = self.subscribers.get_mut(subscriber.0)?;
        let claim = one.asked.take()?;
        let again = one.again.take().map_or_else(Again::default, |again| *again);
        let link = &one.link;
        if one.phase() != Phase::Ending && link.awaits_answer() && link.claims() == claim {
            return Some(again);
        }
        if let Some(next) = again.next.filter(|_| link.awaits_answer()) {
            self.ask(subscriber.0.index, next);
        }
        None
    }

    pub(super) fn turn_away(
        &mut self,
        index: u32,
        reason: End<A::Reason>,
        message: &[u8],
        now: Instant,
    ) {
        self.tell_to_go(index, reason);
        self.publish(index);
        self.with_link(index, now, |link, ctx| link.refuse(message, ctx));
    }

    /// Leases the subscriber's address. One that renegotiates keeps its address if its profile still allows it.
    fn lease(&mut self, index: u32, sticky: bool) -> Result<Ipv4Addr, String> {
        let Self {
            subscribers, pools, ..
        } = self;
        let subscriber = subscribers.at_mut(index).expect("the caller has it");
        let holder = Holder(SubscriberKey(subscriber.key).to_token());
        let profile = subscriber.profile.as_deref();
        let wanted = profile.map_or(Address::FromPool, |profile| profile.address);
        match (subscriber.held, wanted) {
            (Some(held), Address::Fixed(address)) if held == address => return Ok(held),
            (Some(held), Address::FromPool | Address::ItsOwn) => return Ok(held),
            (Some(held), Address::Fixed(_)) => {
                pools.release(held, holder);
                subscriber.held = None;
            }
            (None, _) => {}
        }
        let address = match wanted {
            Address::Fixed(address) => match pools.claim(address, holder) {
                Ok(()) => address,
                Err(Fault::Held { by }) => {
                    let other = subscribers.get(SubscriberKey::from_token(by.0).0);
                    let other = other.map_or("another", |one| {
                        core::str::from_utf8(&one.name).unwrap_or("another")
                    });
                    return Err(format!("{address} is held by {other:?}"));
                }
                Err(fault) => return Err(fault.to_string()),
            },
            Address::FromPool | Address::ItsOwn => pools
                .take(&Request {
                    pool: profile.and_then(|profile| profile.pool.as_deref()),
                    holder,
                    user: &subscriber.name,
                    sticky,
                })
                .map_err(|fault| fault.to_string())?,
        };
        subscriber.held = Some(address);
        Ok(address)
    }

    /// Leases the address that a frame asks for, if the subscriber may choose (RFC 2865, section 5.8) and its pool has
    /// that address free.
    pub(crate) fn heed_wish(&mut self, index: u32, frame: &[u8]) {
        let subscriber = self.at(index);
        if !subscriber.may_choose() {
            return;
        }
        if let (Some(wish), Some(held)) = (subscriber.link.wish(frame), subscriber.held)
            && self.exchange(index, held, wish)
        {
            self.at_mut(index).link.change_ipv4(wish);
        }
    }

    /// As [`Edge::heed_wish`], for what a subscriber asked for before it was admitted. Returns the address it gets.
    fn early_wish(&mut self, index: u32, held: Ipv4Addr) -> Ipv4Addr {
        let subscriber = self.at(index);
        let wish = subscriber.link.early_wish();
        let wish = wish.filter(|&wish| wish != held && subscriber.may_choose());
        match wish.filter(|&wish| self.exchange(index, held, wish)) {
            Some(wish) => wish,
            None => held,
        }
    }

    /// Exchanges a subscriber's address for another one, if that is free in its pool.
    fn exchange(&mut self, index: u32, held: Ipv4Addr, wish: Ipv4Addr) -> bool {
        let holder = Holder(SubscriberKey(self.at(index).key).to_token());
        let exchanged = self.pools.exchange(held, wish, holder);
        if exchanged {
            self.at_mut(index).held = Some(wish);
        }
        exchanged
    }

    /// Releases a subscriber's address to its pool.
    pub(crate) fn release(&mut self, index: u32) {
        let Self {
            subscribers, pools, ..
        } = self;
        let subscriber = subscribers.at(index).expect("the caller has it");
        if subscriber.is_client {
            return;
        }
        if let Some(address) = subscriber.held {
            let holder = Holder(SubscriberKey(subscriber.key).to_token());
            pools.release(address, holder);
        }
    }

    pub(crate) fn ipv4_up(&mut self, index: u32, settings: &Ipv4Settings, now: Instant) {
        self.ipv4_down(index);
        let subscriber = self.at_mut(index);
        let key = subscriber.key;
        let is_client = subscriber.is_client;
        let address = if is_client {
            settings.local
        } else {
            settings.peer
        };
        subscriber.addresses.v4 = address.to_bits();
        if is_client {
            subscriber.held = Some(address);
            self.events.push_back(Event::Client {
                subscriber: SubscriberKey(key),
                addresses: Some((settings.local, settings.peer)),
            });
        }
        let table = table(is_client);
        if !self.change(Step::Route(table, IpAddr::V4(address), 32, index)) {
            self.counters.routes_refused += 1;
            let network = Prefix::new(IpAddr::V4(address), 32).expect("as long as an address");
            self.waiting.add((table, network), SubscriberKey(key));
        }
        self.framed_routes(index, false, true);
        self.network_up(index, now);
    }

    pub(crate) fn ipv4_down(&mut self, index: u32) {
        let subscriber = self.at_mut(index);
        let (key, is_client) = (subscriber.key, subscriber.is_client);
        let bits = core::mem::take(&mut subscriber.addresses.v4);
        if bits == 0 {
            return;
        }
        self.publish(index);
        let address = IpAddr::V4(Ipv4Addr::from_bits(bits));
        let network = Prefix::new(address, 32).expect("as long as an address");
        let table = table(is_client);
        self.waiting.forget((table, network), SubscriberKey(key));
        if self.change(Step::Unroute(table, address, 32, index)) {
            // Another subscriber may wait for it as a network behind it.
            self.hand_over((table, network));
        }
        if is_client {
            self.events.push_back(Event::Client {
                subscriber: SubscriberKey(key),
                addresses: None,
            });
        }
        self.framed_routes(index, false, false);
    }

    pub(crate) fn ipv6_up(&mut self, index: u32, settings: &Ipv6Settings, now: Instant) {
        self.ipv6_down(index);
        let subscriber = self.at_mut(index);
        subscriber.v6 = Some(Box::new(Family::new([settings.local, settings.peer])));
        subscriber.v6_before = None;
        subscriber.addresses.interface = settings.peer.to_be_bytes();
        self.framed_routes(index, true, true);
        self.set_mtu(index);
        self.family_up(index, now);
        self.network_up(index, now);
    }

    pub(crate) fn ipv6_down(&mut self, index: u32) {
        if self.at(index).v6.is_some() {
            let accounted = self.at(index).accounted;
            let before = self.at(index).v6.as_deref().filter(|_| accounted);
            let before = before.map(Family::past);
            self.family_down(index);
            let one = self.at_mut(index);
            (one.v6, one.v6_before) = (None, before);
            self.at_mut(index).addresses.interface = [0; 8];
            self.publish(index);
            self.framed_routes(index, true, false);
        }
    }

    /// Updates a subscriber's entry in all paths, or removes it if no packets may pass.
    pub(crate) fn publish(&mut self, index: u32) {
        let subscriber = self.subscribers.at_mut(index);
        let subscriber = subscriber.expect("an index inside the edge names a subscriber");
        subscriber.count_versions(&mut self.versions);
        let session = subscriber.session;
        let is_open = subscriber.is_open(4) || subscriber.is_open(6);
        match self.endpoint.encapsulation(session).filter(|_| is_open) {
            Some((way, header)) => {
                let paths = usize::from(self.config.paths.max(1));
                let home = self.shaped.get(&index).map(|shaped| shaped.home);
                let subscriber = self.at_mut(index);
                let meters = &mut subscriber.meters;
                let meters = meters.get_or_insert_with(|| Meter::of_paths(paths));
                let meters = Arc::clone(meters);
                let mut facts = subscriber.facts(home, meters);
                self.wall(index, &mut facts);
                if !facts.is_client {
                    facts.translator = self.translator(index);
                }
                let entry = Entry::new(facts, way, header.as_ref());
                if self.config.paths > 1 {
                    let copy = Step::Put(index, Box::new(entry.clone()));
                    self.tell(Change(copy));
                }
                self.path.put(index, entry);
            }
            None if self.path.entry(index).is_some() => {
                self.change(Step::Remove(index));
            }
            None => {}
        }
    }

    pub(crate) fn set_name(&mut self, index: u32, name: &[u8]) {
        self.at_mut(index).name = name.into();
        if !self.taps.is_empty() {
            let key = SubscriberKey(self.at(index).key);
            self.tap_named(key, name);
        }
    }

    /// Adds a subscriber to the table of names.
    pub(crate) fn register_name(&mut self, index: u32) {
        let hash = self.hasher.hash_one(&self.at(index).name);
        let Self {
            by_name,
            subscribers,
            hasher,
            ..
        } = self;
        if by_name.find(hash, |&at| at == index).is_some() {
            return;
        }
        by_name.insert_unique(hash, index, |&at| {
            let one = subscribers
                .at(at)
                .expect("the table names only subscribers");
            hasher.hash_one(&one.name)
        });
    }

    pub(crate) fn forget_name(&mut self, index: u32) {
        let hash = self.hasher.hash_one(&self.at(index).name);
        if let Ok(entry) = self.by_name.find_entry(hash, |&at| at == index) {
            entry.remove();
        }
    }

    /// Subscribers admitted under this name, and our own clients that use it.
    pub fn find(&self, name: &[u8]) -> impl Iterator<Item = SubscriberKey> + '_ {
        let name: Box<[u8]> = name.into();
        let hash = self.hasher.hash_one(&name);
        self.by_name
            .iter_hash(hash)
            .filter_map(|&index| self.subscribers.at(index))
            .filter(move |one| one.name == name)
            .map(|one| SubscriberKey(one.key))
    }

    /// Ends a subscriber in order, for this reason. `false` if there is no such subscriber, or it is ending already.
    pub fn drop_subscriber(
        &mut self,
        subscriber: SubscriberKey,
        reason: End<A::Reason>,
        now: Instant,
    ) -> bool {
        let there = self.subscribers.get(subscriber.0);
        if there.is_none_or(|one| one.phase() == Phase::Ending) {
            return false;
        }
        self.end(subscriber.0.index, reason, now);
        true
    }
}
