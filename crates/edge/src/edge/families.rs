//! IPv6 on subscribers' links: prefixes that they hold, Router Advertisements, and packets to us on the link.
//!
//! Parts of RFC 4861, RFC 4862 and RFC 8415. Rules and state of one link are in the module `v6`. Prefixes of a link are leased when IPv6CP opens, those of DHCPv6
//! when the client asks; a fixed delegated prefix has its route from the start, for routers without DHCPv6. All are
//! released when IPv6CP goes down.

use core::net::{IpAddr, Ipv6Addr};

use aaa::pools::{Holder, Request};
use aaa::{Ipv6, Prefix, PrefixPools};
use base::{Duration, Instant};
use wire::ndp::{self, ALL_NODES, Advertisement, Router};
use wire::ppp::protocol;

use crate::access::{Access, Encapsulation};
use crate::counters::Discard;
use crate::edge::Edge;
use crate::event::Event;
use crate::key::SubscriberKey;
use crate::path::Passed;
use crate::path::change::{Step, Table};
use crate::subscriber::Phase;
use crate::v6::{Family, Part, RATE, SERVERS_MAX, V6Count, V6Counts, link_local};

/// Unsolicited advertisements that are sent sooner (MAX_INITIAL_RTR_ADVERTISEMENTS; RFC 4861, section 10).
const FIRST: u8 = 3;
/// The longest time between those (MAX_INITIAL_RTR_ADVERT_INTERVAL).
const FIRST_INTERVAL: Duration = Duration::from_secs(16);
/// The shortest time between two advertisements to all nodes (MIN_DELAY_BETWEEN_RAS).
const BETWEEN_MIN: Duration = Duration::from_secs(3);
/// The smallest MTU of IPv6 (RFC 8200, section 5).
const MTU_MIN: u16 = 1_280;

impl<A: Access> Edge<A> {
    /// The prefix pools.
    #[must_use]
    pub fn prefixes(&self) -> &PrefixPools {
        &self.prefixes
    }

    /// The prefix pools, for changes.
    pub fn prefixes_mut(&mut self) -> &mut PrefixPools {
        &mut self.prefixes
    }

    /// The counters of IPv6 on the links.
    #[must_use]
    pub fn v6_counts(&self) -> &V6Counts {
        &self.counters.v6
    }

    /// Whether a subscriber's profile or the configuration has any IPv6 prefix for it.
    pub(crate) fn serves_ipv6(&self, index: u32) -> bool {
        let has_source = |part| {
            let (fixed, pool) = self.source(index, part);
            fixed.is_some() || pool.is_some()
        };
        self.config.ipv6 && Part::ALL.into_iter().any(has_source)
    }

    /// Where a part comes from: a fixed prefix, or a pool.
    fn source(&self, index: u32, part: Part) -> (Option<Prefix>, Option<&str>) {
        let own: Option<&Ipv6> = self
            .at(index)
            .profile
            .as_deref()
            .and_then(|p| p.ipv6.as_deref());
        let settings = &self.config.v6;
        let (fixed, pool, default) = match part {
            Part::Link => (
                own.and_then(|own| own.prefix),
                own.and_then(|own| own.pool.as_deref()),
                &settings.pool,
            ),
            Part::Delegated => (
                own.and_then(|own| own.delegated),
                own.and_then(|own| own.delegated_pool.as_deref()),
                &settings.delegated_pool,
            ),
            Part::Address => (
                own.and_then(|own| own.address),
                own.and_then(|own| own.address_pool.as_deref()),
                &settings.address_pool,
            ),
        };
        (fixed, pool.or(default.as_deref()))
    }

    /// IPv6CP is open: leases what the link has from the start, and announces it.
    pub(crate) fn family_up(&mut self, index: u32, now: Instant) {
        if self.at(index).is_client {
            return self.uplink_up(index, now);
        }
        for part in Part::ALL {
            let is_fixed = self.source(index, part).0.is_some();
            if part == Part::Link || is_fixed {
                self.hold(index, part, None);
            }
        }
        if self.config.v6.advertise && self.serves_ipv6(index) {
            if let Some(family) = self.at_mut(index).v6.as_deref_mut() {
                family.first_left = FIRST;
            }
            self.advertise(index, None, now);
        }
    }

    /// IPv6CP is down: releases everything.
    pub(crate) fn family_down(&mut self, index: u32) {
        if self.at(index).is_client {
            return self.uplink_down(index);
        }
        for part in Part::ALL {
            self.let_go(index, part);
        }
    }

    /// What a subscriber would hold, without a reservation.
    pub(super) fn offer(&self, index: u32, part: Part, wish: Option<Prefix>) -> Option<Prefix> {
        if let Some(held) = self.held(index, part) {
            return Some(held);
        }
        let (fixed, pool) = self.source(index, part);
        if let Some(fixed) = fixed {
            return self.prefixes.holder(fixed).is_none().then_some(fixed);
        }
        let one = self.at(index);
        let request = Request {
            pool: Some(pool?),
            holder: Holder(SubscriberKey(one.key).to_token()),
            user: &one.name,
            sticky: false,
        };
        self.prefixes.look(&request, wish)
    }

    /// Whether a prefix is one that the subscriber could hold: its fixed one, or one of its pool, held or free.
    pub(super) fn could_hold(&self, index: u32, part: Part, prefix: Prefix) -> bool {
        match self.source(index, part) {
            (Some(fixed), _) => fixed == prefix,
            (None, Some(pool)) => self.prefixes.has(pool, prefix),
            (None, None) => false,
        }
    }

    /// Counts and reports a part that could not be offered, if the subscriber has a source for it.
    pub(super) fn none_to_offer(&mut self, index: u32, part: Part) {
        let (fixed, pool) = self.source(index, part);
        let pool = pool.map(Into::into);
        if fixed.is_some() || pool.is_some() {
            self.unavailable(index, part, pool);
        }
    }

    /// What a subscriber holds.
    pub(super) fn held(&self, index: u32, part: Part) -> Option<Prefix> {
        self.at(index).v6.as_deref()?.held[part as usize]
    }

    /// Leases a part, or returns what the subscriber has already. `None`, counted, if it cannot have any.
    pub(super) fn hold(&mut self, index: u32, part: Part, wish: Option<Prefix>) -> Option<Prefix> {
        if let Some(held) = self.held(index, part) {
            return Some(held);
        }
        let (fixed, pool) = self.source(index, part);
        let pool: Option<Box<str>> = pool.map(Into::into);
        let one = self.subscribers.at(index)?;
        let holder = Holder(SubscriberKey(one.key).to_token());
        let taken = match (fixed, pool.as_deref()) {
            (Some(fixed), _) => self.prefixes.claim(fixed, holder).map(|()| fixed),
            (None, None) => return None,
            (None, pool) => {
                let request = Request {
                    pool,
                    holder,
                    user: &one.name,
                    sticky: false,
                };
                self.prefixes.take(&request, wish)
            }
        };
        let Ok(prefix) = taken else {
            self.unavailable(index, part, pool);
            return None;
        };
        let (address, length) = (prefix.address(), prefix.length());
        if !self.change(Step::Route(Table::Subscribers, address, length, index)) {
            // A network behind another subscriber has it, or the table is full.
            self.counters.routes_refused += 1;
            self.prefixes.release(prefix, holder);
            self.unavailable(index, part, None);
            return None;
        }
        self.told_unavailable[part as usize] = false;
        let subscriber = self.at_mut(index);
        if let Some(family) = subscriber.v6.as_deref_mut() {
            family.held[part as usize] = Some(prefix);
        }
        if let (Part::Link, IpAddr::V6(address), 64) = (part, address, length) {
            let bits = (address.to_bits() >> 64) as u64;
            subscriber.addresses.v6 = bits.to_be_bytes();
            self.publish(index);
        }
        Some(prefix)
    }

    /// Counts a part that could not be leased, and reports the first of a series.
    fn unavailable(&mut self, index: u32, part: Part, pool: Option<Box<str>>) {
        self.counters.v6.count(V6Count::Unavailable);
        if !core::mem::replace(&mut self.told_unavailable[part as usize], true) {
            self.events.push_back(Event::NoPrefix {
                subscriber: SubscriberKey(self.at(index).key),
                pool,
            });
        }
    }

    /// Releases a part, if the subscriber holds it.
    pub(super) fn let_go(&mut self, index: u32, part: Part) {
        let subscriber = self.at_mut(index);
        let key = SubscriberKey(subscriber.key);
        let family = subscriber.v6.as_deref_mut();
        let Some(prefix) = family.and_then(|family| family.held[part as usize].take()) else {
            return;
        };
        if part == Part::Link && subscriber.addresses.v6 != [0; 8] {
            subscriber.addresses.v6 = [0; 8];
            self.publish(index);
        }
        let (address, length) = (prefix.address(), prefix.length());
        if self.change(Step::Unroute(Table::Subscribers, address, length, index)) {
            self.hand_over((Table::Subscribers, prefix));
        }
        self.prefixes.release(prefix, Holder(key.to_token()));
    }

    /// Sends a Router Advertisement to one node or to all (RFC 4861, section 6.2.3). Arms the timer of the next one.
    pub(super) fn advertise(&mut self, index: u32, to: Option<Ipv6Addr>, now: Instant) {
        // Another subscriber may have released a fixed prefix since.
        self.hold(index, Part::Link, None);
        let serves = self.config.v6.advertise && self.serves_ipv6(index);
        let random = self.random.u64();
        let settings = std::sync::Arc::clone(&self.config.v6);
        let managed = settings.dhcp && {
            let (fixed, pool) = self.source(index, Part::Address);
            fixed.is_some() || pool.is_some()
        };
        let subscriber = self.at_mut(index);
        let mtu = subscriber.mtu;
        let dns = subscriber.name_servers(&settings).to_vec();
        let Some(family) = subscriber.v6.as_deref_mut() else {
            return;
        };
        let prefix =
            family.held[Part::Link as usize].and_then(|prefix| advertised(prefix, &settings));
        let one = Advertisement {
            router: Router {
                hop_limit: 64,
                managed,
                other: settings.dhcp && (!dns.is_empty() || !settings.search.is_empty()),
                // A host without any prefix has no use for a default router.
                lifetime_s: if serves {
                    settings.router_lifetime_s
                } else {
                    0
                },
            },
            mtu: (mtu >= MTU_MIN).then_some(u32::from(mtu)),
            prefixes: prefix.as_slice(),
            servers: &dns,
            search: if dns.is_empty() {
                &[]
            } else {
                &settings.search
            },
            // RFC 8106, section 5.1: three times the longest interval.
            names_s: u32::from(settings.router_lifetime_s),
        };
        let source = link_local(family.identifiers[0]);
        if to.is_none() {
            family.advertised = Some(now);
            family.first_left = family.first_left.saturating_sub(1);
            if serves {
                let longest = match family.first_left {
                    0 => settings.interval,
                    _ => settings.interval.min(FIRST_INTERVAL),
                };
                family.advertise_at = now + between(longest, random);
            }
        }
        let mut packet = Vec::with_capacity(160);
        ndp::write_advertisement([source, to.unwrap_or(ALL_NODES)], &one, &mut packet);
        self.counters.v6.count(V6Count::Advertisements);
        self.send_on_link(index, &packet);
    }

    /// Answers a Router Solicitation: to its sender at once, or to all nodes as soon as the last such advertisement is
    /// old enough (RFC 4861, section 6.2.6).
    pub(super) fn solicited(&mut self, index: u32, from: Ipv6Addr, now: Instant) {
        self.counters.v6.count(V6Count::Solicitations);
        if !self.config.v6.advertise {
            return;
        }
        if !from.is_unspecified() {
            return self.advertise(index, Some(from), now);
        }
        let Some(family) = self.at_mut(index).v6.as_deref_mut() else {
            return;
        };
        match family.advertised.map(|at| at + BETWEEN_MIN) {
            Some(at) if at > now => family.advertise_at = family.advertise_at.min(at),
            Some(_) | None => self.advertise(index, None, now),
        }
        self.settle_timer(index);
    }

    /// Sends the next advertisements sooner, because their content has changed (RFC 4861, section 6.2.4). Who has got
    /// advertisements and shall get none any more gets one with a router lifetime of 0 (section 6.2.5).
    pub(super) fn advertise_again(&mut self, index: u32, now: Instant) {
        let serves = self.config.v6.advertise && self.serves_ipv6(index);
        let soonest = between(
            self.config.v6.interval.min(FIRST_INTERVAL),
            self.random.u64(),
        );
        let subscriber = self.at_mut(index);
        let is_client = subscriber.is_client;
        let family = subscriber.v6.as_deref_mut();
        let Some(family) = family.filter(|one| !is_client && (serves || one.advertised.is_some()))
        else {
            return;
        };
        family.first_left = FIRST;
        family.advertise_at = now + soonest;
        self.settle_timer(index);
    }

    /// Handles the deadlines of a subscriber's IPv6.
    pub(crate) fn family_due(&mut self, index: u32, now: Instant) {
        if self.at(index).phase() == Phase::Ending {
            return;
        }
        self.with_uplink(index, now, |uplink| uplink.handle_timeout(now));
        while let Some(family) = self.at_mut(index).v6.as_deref_mut()
            && let Some(wanted) = family.leases.expire(now)
        {
            self.counters.v6.count(V6Count::Expiries);
            self.give_back(index, Part::of(wanted));
            self.leases_changed(index, now);
        }
        let family = self.at_mut(index).v6.as_deref_mut();
        if let Some(family) = family.filter(|family| family.advertise_at <= now) {
            family.advertise_at = Instant::FAR_FUTURE;
            self.advertise(index, None, now);
        }
    }

    /// A lease of DHCPv6 ended. A fixed prefix stays routed to the subscriber.
    pub(super) fn give_back(&mut self, index: u32, part: Part) {
        if self.source(index, part).0.is_none() {
            self.let_go(index, part);
        }
    }

    /// Makes an interim accounting entry of changed leases, where that is configured.
    pub(super) fn leases_changed(&mut self, index: u32, now: Instant) {
        if self.config.v6.interim_on_change && self.at(index).up.is_some() {
            self.account_goes_on(index, now);
        }
    }

    /// Takes a token for an answer on a subscriber's link.
    pub(super) fn may_answer(&mut self, index: u32, now: Instant) -> bool {
        let family = self.at_mut(index).v6.as_deref_mut();
        family.is_some_and(|family| family.bucket.take(&RATE, now))
    }

    /// Sends a subscriber an IPv6 packet of ours.
    pub(super) fn send_on_link(&mut self, index: u32, packet: &[u8]) {
        let one = self.at(index);
        let (session, mut compression) = (one.session, one.compression);
        let key = SubscriberKey(one.key);
        let Some((header, route)) = self.endpoint.header(session) else {
            return;
        };
        compression.address |= !A::Encapsulation::has_address(&route);
        let (head, length) = compression.head(protocol::IPV6);
        let mut frame = Vec::with_capacity(length + packet.len());
        frame.extend_from_slice(&head[..length]);
        frame.extend_from_slice(packet);
        let Some(datagram) = self.outgoing.push(route, header.as_ref(), &frame) else {
            self.path.counts().discard(Discard::Backlog);
            return;
        };
        A::Encapsulation::complete(&route, datagram, 0);
        if self.path.copies.is_on() {
            let passed = Passed::Outside(route);
            self.path.copies.copy(key, passed, true, [datagram, &[]]);
        }
    }
}

/// The Prefix Information of a link's prefix. Hosts form addresses in a /64 alone (RFC 4862, section 5.5.3), so of a
/// shorter prefix the first /64 is advertised.
fn advertised(prefix: Prefix, settings: &crate::v6::Settings) -> Option<ndp::Prefix> {
    let IpAddr::V6(address) = prefix.address() else {
        return None;
    };
    Some(ndp::Prefix {
        address,
        length: prefix.length().max(64),
        on_link: true,
        autonomous: prefix.length() <= 64,
        valid_s: settings.valid_s,
        preferred_s: settings.preferred_s,
    })
}

/// A random time between a third of `longest` and all of it, but at least [`BETWEEN_MIN`] (RFC 4861, section 6.2.4).
fn between(longest: Duration, random: u64) -> Duration {
    let least = longest.as_nanos() / 3;
    let span = u128::from(longest.as_nanos() - least);
    let part = (span * u128::from(random >> 32)) >> 32;
    Duration::from_nanos(least + part as u64).max(BETWEEN_MIN)
}

impl<A: Access> crate::subscriber::Subscriber<A> {
    /// Its IPv6 name servers: its own, or the edge's.
    pub(crate) fn name_servers<'s>(&'s self, settings: &'s crate::v6::Settings) -> &'s [Ipv6Addr] {
        let own = self
            .profile
            .as_deref()
            .and_then(|profile| profile.ipv6.as_deref());
        let servers = match own {
            Some(own) if !own.dns.is_empty() => &own.dns[..],
            Some(_) | None => &settings.dns[..],
        };
        &servers[..servers.len().min(SERVERS_MAX)]
    }

    /// Our interface identifier and the peer's, while IPv6CP is open.
    pub(crate) fn identifiers(&self) -> Option<[u64; 2]> {
        let family: &Family = self.v6.as_deref()?;
        Some(family.identifiers)
    }
}
