//! IPCP's options (RFC 1332; name servers of RFC 1877).
//!
//! Left out: header compression and NetBIOS name servers. Requests for them are rejected.

use core::net::Ipv4Addr;

use base::snapshot::{Codec, Part};
use wire::ppp::control::{ConfigOption, Options, emit_option};
use wire::ppp::protocol;

use crate::config::{Config, Random};
use crate::event::Ipv4Settings;
use crate::layer::{Judgement, Negotiation};
use crate::snapshot;

const ADDRESS: u8 = 3;
/// Primary and secondary DNS server (RFC 1877, sections 1.1 and 1.3).
const DNS: [u8; 2] = [129, 131];

/// The IPv4 addresses that a link may negotiate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Offer {
    /// Our address. Unspecified if the peer assigns it (client side).
    pub local: Ipv4Addr,
    /// The peer's address. Unspecified if the peer knows it (client side).
    pub peer: Ipv4Addr,
    /// DNS servers for the peer (network side).
    pub dns: [Option<Ipv4Addr>; 2],
    /// Whether to ask the peer for DNS servers (client side).
    pub ask_dns: bool,
}

impl Ipv4Offer {
    /// A client's offer: it requests every value from the peer.
    pub const ASK: Self = Self {
        local: Ipv4Addr::UNSPECIFIED,
        peer: Ipv4Addr::UNSPECIFIED,
        dns: [None; 2],
        ask_dns: true,
    };

    /// No address and no wish, for a snapshot to be read into.
    pub(crate) const BLANK: Self = Self {
        ask_dns: false,
        ..Self::ASK
    };
}

impl Part for Ipv4Offer {
    const NAME: &'static str = "ipv4_offer";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let Self {
            local,
            peer,
            dns: [dns_1, dns_2],
            ask_dns,
        } = self;
        snapshot::ipv4(codec, 1, "local", local);
        snapshot::ipv4(codec, 2, "peer", peer);
        for (number, name, dns) in [(3, "dns_1", dns_1), (4, "dns_2", dns_2)] {
            let mut bits = dns.map(Ipv4Addr::to_bits);
            codec.maybe(number, name, &mut bits);
            *dns = bits.map(Ipv4Addr::from_bits);
        }
        codec.number(5, "ask_dns", ask_dns);
    }
}

/// The state of IPCP's negotiation.
#[derive(Clone, Debug)]
pub(crate) struct Ipcp {
    /// The address that we request for ourselves. Unspecified until the peer has assigned one.
    local: Ipv4Addr,
    /// The peer's address. Unspecified until the peer has sent it.
    peer: Ipv4Addr,
    /// DNS servers assigned to the peer, or received from it. Unspecified where there is none.
    dns: [Ipv4Addr; 2],
    /// The peer assigns our address.
    learns: bool,
    /// The peer chooses its own address.
    peer_chooses: bool,
    /// The peer rejects our address option.
    unnumbered: bool,
    /// The DNS servers that we request: both at first, later without those that the peer rejected.
    asks: [bool; 2],
    /// The peer assigns our DNS servers.
    learns_dns: bool,
}

impl Ipcp {
    pub(crate) fn new(offer: Ipv4Offer) -> Self {
        let none = Ipv4Addr::UNSPECIFIED;
        Self {
            local: offer.local,
            peer: offer.peer,
            dns: match offer.ask_dns {
                true => [none; 2],
                false => offer.dns.map(|dns| dns.unwrap_or(none)),
            },
            learns: offer.local.is_unspecified(),
            peer_chooses: offer.peer.is_unspecified(),
            unnumbered: false,
            asks: [offer.ask_dns; 2],
            learns_dns: offer.ask_dns,
        }
    }

    /// Without any value, for a snapshot to be read into.
    pub(crate) const BLANK: Self = Self {
        local: Ipv4Addr::UNSPECIFIED,
        peer: Ipv4Addr::UNSPECIFIED,
        dns: [Ipv4Addr::UNSPECIFIED; 2],
        learns: false,
        peer_chooses: false,
        unnumbered: false,
        asks: [false; 2],
        learns_dns: false,
    };

    /// The address that a request asks for, if it differs from the address that we would assign.
    pub(crate) fn wish(&self, request: Options<'_>) -> Option<Ipv4Addr> {
        named(request).filter(|&wanted| !self.peer_chooses && wanted != self.peer)
    }

    /// Changes the address assigned to the peer.
    pub(crate) fn set_peer(&mut self, peer: Ipv4Addr) {
        self.peer = peer;
    }

    /// The negotiated values.
    pub(crate) fn settings(&self) -> Ipv4Settings {
        Ipv4Settings {
            local: self.local,
            peer: self.peer,
            dns: self.dns.map(|dns| (!dns.is_unspecified()).then_some(dns)),
        }
    }

    /// The index of the DNS server that an option names, if we request that server.
    fn asked_dns(&self, kind: u8) -> Option<usize> {
        let nth = DNS.iter().position(|&known| known == kind)?;
        self.asks[nth].then_some(nth)
    }

    /// The DNS server to assign to the peer for an option.
    fn dns_for_peer(&self, kind: u8) -> Option<Ipv4Addr> {
        let nth = DNS.iter().position(|&known| known == kind)?;
        let dns = self.dns[nth];
        (!self.learns_dns && !dns.is_unspecified()).then_some(dns)
    }
}

/// The address that a request names. 0.0.0.0 names none (RFC 1332, section 3.3).
pub(crate) fn named(mut request: Options<'_>) -> Option<Ipv4Addr> {
    let named = request.find(|option| option.kind == ADDRESS)?;
    address(named.data).filter(|wanted| !wanted.is_unspecified())
}

fn address(data: &[u8]) -> Option<Ipv4Addr> {
    let octets: [u8; 4] = data.try_into().ok()?;
    Some(Ipv4Addr::from(octets))
}

impl Negotiation for Ipcp {
    const PROTOCOL: u16 = protocol::IPCP;
    const NAME: &'static str = "ipcp";

    fn request(&self, out: &mut Vec<u8>) {
        if !self.unnumbered {
            emit_option(out, ADDRESS, &self.local.octets());
        }
        for ((kind, asks), dns) in DNS.into_iter().zip(self.asks).zip(self.dns) {
            if asks {
                emit_option(out, kind, &dns.octets());
            }
        }
    }

    fn judge(&mut self, option: &ConfigOption<'_>, _random: &mut dyn Random) -> Judgement {
        let wanted = address(option.data);
        let ours = match option.kind {
            ADDRESS if self.peer_chooses => {
                return match wanted {
                    Some(address) if !address.is_unspecified() => Judgement::Agree,
                    _ => Judgement::Reject,
                };
            }
            ADDRESS => Some(self.peer),
            kind => self.dns_for_peer(kind),
        };
        match ours {
            None => Judgement::Reject,
            Some(ours) if wanted == Some(ours) => Judgement::Agree,
            Some(ours) => Judgement::suggest(&ours.octets()),
        }
    }

    /// RFC 1332, section 3.3: a peer that omits its address is sent one in a Nak.
    fn missing(
        &self,
        mut request: Options<'_>,
        _naks: u8,
        _random: &mut dyn Random,
    ) -> Option<(u8, Judgement)> {
        let named = self.peer_chooses || request.any(|option| option.kind == ADDRESS);
        (!named).then(|| (ADDRESS, Judgement::suggest(&self.peer.octets())))
    }

    fn agree(&mut self, mut request: Options<'_>) {
        if self.peer_chooses {
            let named = request.find(|option| option.kind == ADDRESS);
            let chosen = named.and_then(|option| address(option.data));
            self.peer = chosen.unwrap_or(Ipv4Addr::UNSPECIFIED);
        }
    }

    /// If the peer acknowledges a request without an address, it has not assigned us one.
    fn is_complete(&self) -> bool {
        !self.local.is_unspecified()
    }

    fn adjust(&mut self, option: &ConfigOption<'_>, _config: &Config, _random: &mut dyn Random) {
        let Some(wanted) = address(option.data).filter(|wanted| !wanted.is_unspecified()) else {
            return;
        };
        match option.kind {
            // Only a client accepts an address from the peer. On the network side the operator sets our address.
            ADDRESS if self.learns => self.local = wanted,
            kind => {
                if let Some(nth) = self.asked_dns(kind) {
                    self.dns[nth] = wanted;
                }
            }
        }
    }

    fn withdraw(&mut self, kind: u8) -> bool {
        match kind {
            ADDRESS => {
                self.unnumbered = true;
                return !self.local.is_unspecified();
            }
            kind => {
                if let Some(nth) = self.asked_dns(kind) {
                    self.asks[nth] = false;
                    self.dns[nth] = Ipv4Addr::UNSPECIFIED;
                }
            }
        }
        true
    }

    fn fields<C: Codec>(&mut self, codec: &mut C) {
        let Self {
            local,
            peer,
            dns: [dns_1, dns_2],
            learns,
            peer_chooses,
            unnumbered,
            asks: [asks_1, asks_2],
            learns_dns,
        } = self;
        snapshot::ipv4(codec, 21, "local", local);
        snapshot::ipv4(codec, 22, "peer", peer);
        snapshot::ipv4(codec, 23, "dns_1", dns_1);
        snapshot::ipv4(codec, 24, "dns_2", dns_2);
        codec.number(25, "learns", learns);
        codec.number(26, "peer_chooses", peer_chooses);
        codec.number(27, "unnumbered", unnumbered);
        codec.number(28, "asks_1", asks_1);
        codec.number(29, "asks_2", asks_2);
        codec.number(30, "learns_dns", learns_dns);
    }
}
