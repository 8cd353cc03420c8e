//! IPv6 on a link where we are the client: what its router advertises, and the prefix that its DHCPv6 server delegates.
//! Values and rules only; `edge::uplinks` sends the packets.
//!
//! | file | what it does |
//! |---|---|
//! | `router` | Router Solicitations and Advertisements, as a host |
//! | `prefix` | a DHCPv6 client for a delegated prefix |
//! | `fsm` | its states |
//! | `retransmit` | when its messages are sent again |

mod fsm;
mod prefix;
mod retransmit;
mod router;
#[cfg(test)]
mod tests;

use core::net::Ipv6Addr;

use base::Instant;
use wire::ndp;

pub use prefix::{Delegated, PrefixClient, PrefixEvent, PrefixWish, Unheeded};
pub use router::{Formed, RouterClient};

use super::SERVERS_MAX;

/// Both clients of one link.
pub(crate) struct Uplink {
    router: RouterClient,
    prefix: Option<PrefixClient>,
    /// Whether the view changed since it was last taken.
    is_changed: bool,
}

/// What a link's client has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UplinkView {
    /// Whether the peer is a default router.
    pub is_default: bool,
    /// The addresses that were formed from advertised prefixes.
    pub addresses: Vec<Formed>,
    /// The delegated prefix.
    pub delegated: Option<Delegated>,
    /// The name servers, of DHCPv6 first.
    pub dns: Vec<Ipv6Addr>,
    /// The state of the exchange for a prefix; empty if none is asked for.
    pub state: &'static str,
}

/// A packet to send on the link.
pub(crate) enum Outgoing {
    /// A Router Solicitation.
    Solicitation,
    /// A DHCPv6 message to all servers.
    Dhcp(Vec<u8>),
}

impl Uplink {
    /// The clients of a link that came up, with our interface identifier there.
    pub(crate) fn new(
        identifier: u64,
        wish: Option<PrefixWish>,
        seed: [u8; 32],
        now: Instant,
    ) -> Self {
        let mut router = RouterClient::new(identifier, seed, now);
        let mut prefix = wish.map(|wish| PrefixClient::new(wish, router.seed()));
        if let Some(prefix) = &mut prefix {
            prefix.start(now);
        }
        Self {
            router,
            prefix,
            is_changed: false,
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        let prefix = self.prefix.as_ref().and_then(PrefixClient::poll_timeout);
        let all = self.router.poll_timeout().into_iter().chain(prefix);
        all.min().unwrap_or(Instant::FAR_FUTURE)
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.is_changed |= self.router.handle_timeout(now);
        if let Some(prefix) = &mut self.prefix {
            prefix.handle_timeout(now);
        }
        self.heed();
    }

    pub(crate) fn advertised(
        &mut self,
        (router, options): (ndp::Router, ndp::Options<'_>),
        link_mtu: u16,
        now: Instant,
    ) {
        self.router.advertised(router, options, link_mtu, now);
        self.is_changed = true;
    }

    /// # Errors
    /// The message was ignored.
    pub(crate) fn receive(&mut self, content: &[u8], now: Instant) -> Result<(), Unheeded> {
        let prefix = self.prefix.as_mut().ok_or(Unheeded::Kind)?;
        let received = prefix.receive(content, now);
        self.heed();
        received
    }

    /// Gives the prefix back.
    pub(crate) fn release(&mut self, now: Instant) {
        if let Some(prefix) = &mut self.prefix {
            prefix.release(now);
        }
        self.heed();
    }

    /// The next packet to send.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing> {
        if self.router.poll_solicitation() {
            return Some(Outgoing::Solicitation);
        }
        let mut message = Vec::new();
        let prefix = self.prefix.as_mut()?;
        prefix
            .poll_transmit(now, &mut message)
            .then_some(Outgoing::Dhcp(message))
    }

    /// What the client has, if that changed since the last call.
    pub(crate) fn poll_change(&mut self) -> Option<UplinkView> {
        core::mem::take(&mut self.is_changed).then(|| self.view())
    }

    /// The MTU that the router advertised.
    pub(crate) fn mtu(&self) -> Option<u16> {
        self.router.mtu()
    }

    pub(crate) fn view(&self) -> UplinkView {
        let prefix = self.prefix.as_ref();
        let delegated = prefix.and_then(PrefixClient::delegated).cloned();
        let mut dns = delegated
            .as_ref()
            .map_or_else(Vec::new, |one| one.dns.clone());
        for server in self.router.servers() {
            if dns.len() < SERVERS_MAX && !dns.contains(&server) {
                dns.push(server);
            }
        }
        UplinkView {
            is_default: self.router.is_default(),
            addresses: self.router.addresses().to_vec(),
            delegated,
            dns,
            state: prefix.map_or("", PrefixClient::state),
        }
    }

    fn heed(&mut self) {
        while self
            .prefix
            .as_mut()
            .and_then(PrefixClient::poll_event)
            .is_some()
        {
            self.is_changed = true;
        }
    }
}
