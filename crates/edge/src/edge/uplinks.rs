//! IPv6 on links where we are the client: solicitations and DHCPv6 messages of ours, and what the peer answers.
//!
//! The rules are in `v6::client`. What a client has is reported to the owner ([`Event::Uplink`]), and packets from its
//! addresses and from its delegated prefix go into its session.

use core::net::IpAddr;

use aaa::Prefix;
use base::Instant;
use wire::dhcpv6::{ALL_SERVERS, CLIENT_PORT, SERVER_PORT};
use wire::{ndp, udp};

use crate::access::Access;
use crate::edge::Edge;
use crate::event::Event;
use crate::key::SubscriberKey;
use crate::path::change::{Step, Table};
use crate::v6::{Outgoing, Part, Uplink, UplinkView, link_local};

impl<A: Access> Edge<A> {
    /// IPv6CP of a client is open: starts to solicit, if that is configured.
    pub(super) fn uplink_up(&mut self, index: u32, now: Instant) {
        let Some(wish) = self.config.uplink.clone() else {
            return;
        };
        let mut seed = [0; 32];
        for part in seed.chunks_exact_mut(8) {
            part.copy_from_slice(&self.random.u64().to_be_bytes());
        }
        if let Some(family) = self.at_mut(index).v6.as_deref_mut() {
            let [own, _] = family.identifiers;
            family.uplink = Some(Box::new(Uplink::new(own, Some(wish), seed, now)));
        }
    }

    /// IPv6CP of a client is down: everything is lost.
    pub(super) fn uplink_down(&mut self, index: u32) {
        for part in Part::ALL {
            self.own(index, part, None);
        }
        let family = self.at_mut(index).v6.as_deref_mut();
        if family.is_some_and(|family| family.uplink.take().is_some()) {
            self.events.push_back(Event::Uplink {
                subscriber: SubscriberKey(self.at(index).key),
                view: None,
            });
        }
    }

    /// What a client has by IPv6.
    #[must_use]
    pub fn uplink(&self, key: SubscriberKey) -> Option<UplinkView> {
        let subscriber = self.subscribers.get(key.0)?;
        let uplink = subscriber.v6.as_deref()?.uplink.as_deref()?;
        Some(uplink.view())
    }

    /// Changes a client's uplink, and does what follows.
    pub(super) fn with_uplink<T>(
        &mut self,
        index: u32,
        now: Instant,
        change: impl FnOnce(&mut Uplink) -> T,
    ) -> Option<T> {
        let family = self.at_mut(index).v6.as_deref_mut()?;
        let done = change(family.uplink.as_deref_mut()?);
        self.serve_uplink(index, now);
        Some(done)
    }

    /// Sends a client's packets, and applies what it has.
    fn serve_uplink(&mut self, index: u32, now: Instant) {
        let mut packet = Vec::new();
        loop {
            let Some(family) = self.at_mut(index).v6.as_deref_mut() else {
                return;
            };
            let own = link_local(family.identifiers[0]);
            let uplink = family.uplink.as_deref_mut();
            let Some(outgoing) = uplink.and_then(|uplink| uplink.poll_transmit(now)) else {
                break;
            };
            packet.clear();
            match outgoing {
                Outgoing::Solicitation => ndp::write_solicitation(own, &mut packet),
                Outgoing::Dhcp(message) => {
                    let addresses = [own, ALL_SERVERS];
                    ndp::write_packet(addresses, (udp::PROTOCOL, 6, 1), &mut packet, |out| {
                        let length = (8 + message.len()) as u16;
                        for word in [CLIENT_PORT, SERVER_PORT, length, 0] {
                            out.extend_from_slice(&word.to_be_bytes());
                        }
                        out.extend_from_slice(&message);
                    });
                }
            }
            self.send_on_link(index, &packet);
        }
        let family = self.at_mut(index).v6.as_deref_mut();
        let uplink = family.and_then(|family| family.uplink.as_deref_mut());
        let Some(view) = uplink.and_then(Uplink::poll_change) else {
            return;
        };
        let address = view.addresses.first();
        let address = address.and_then(|one| Prefix::new(one.address.into(), 128));
        let delegated = view.delegated.as_ref().map(|one| one.prefix);
        self.own(index, Part::Address, address);
        self.own(index, Part::Delegated, delegated);
        self.set_mtu(index);
        self.publish(index);
        self.events.push_back(Event::Uplink {
            subscriber: SubscriberKey(self.at(index).key),
            view: Some(Box::new(view)),
        });
    }

    /// Gives the delegated prefixes of all clients back. Call this before [`Edge::shut_down`], and send what
    /// [`Edge::poll_transmit`] has between both; no reply is awaited.
    pub fn release_uplinks(&mut self, now: Instant) {
        if self.config.uplink.is_none() {
            return;
        }
        let clients = self.subscribers.iter().filter(|(_, one)| one.is_client);
        let clients: Vec<u32> = clients.map(|(key, _)| key.index).collect();
        for index in clients {
            self.with_uplink(index, now, |uplink| uplink.release(now));
        }
    }

    /// Sets one of a client's own networks: packets from it go into the session.
    fn own(&mut self, index: u32, part: Part, new: Option<Prefix>) {
        let family = self.at_mut(index).v6.as_deref_mut();
        let Some(place) = family.map(|family| &mut family.held[part as usize]) else {
            return;
        };
        let before = core::mem::replace(place, new);
        if before == new {
            return;
        }
        let bounds = |one: Prefix| -> (IpAddr, u8) { (one.address(), one.length()) };
        if let Some((address, length)) = before.map(bounds) {
            self.change(Step::Unroute(Table::Own, address, length, index));
        }
        if let Some((address, length)) = new.map(bounds)
            && !self.change(Step::Route(Table::Own, address, length, index))
        {
            // Another client has it, or the table is full.
            self.counters.routes_refused += 1;
            if let Some(family) = self.at_mut(index).v6.as_deref_mut() {
                family.held[part as usize] = None;
            }
        }
    }
}
