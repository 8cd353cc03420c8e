//! IPCP's options (RFC 1332; name servers of RFC 1877).
//!
//! Left out: header compression and NetBIOS name servers, which are rejected.

use core::net::Ipv4Addr;

use wire::ppp::control::{ConfigOption, Options, emit_option};
use wire::ppp::protocol;

use crate::config::{Config, Random};
use crate::event::Ipv4Settings;
use crate::layer::{Judgement, Negotiation};

const ADDRESS: u8 = 3;
/// Primary and secondary DNS server (RFC 1877, sections 1.1 and 1.3).
const DNS: [u8; 2] = [129, 131];

/// What IPv4 addresses a link may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Offer {
    /// Our address; unspecified where the peer is to say it (client side).
    pub local: Ipv4Addr,
    /// The peer's address; unspecified where the peer knows it (client side).
    pub peer: Ipv4Addr,
    /// DNS servers for the peer (network side).
    pub dns: [Option<Ipv4Addr>; 2],
    /// Whether to ask the peer for DNS servers (client side).
    pub ask_dns: bool,
}

impl Ipv4Offer {
    /// A client's: the peer is asked for everything.
    pub const ASK: Self = Self {
        local: Ipv4Addr::UNSPECIFIED,
        peer: Ipv4Addr::UNSPECIFIED,
        dns: [None; 2],
        ask_dns: true,
    };
}

/// What IPCP negotiates.
#[derive(Clone, Debug)]
pub(crate) struct Ipcp {
    offer: Ipv4Offer,
    /// Our address as we ask for it.
    local: Ipv4Addr,
    /// The peer does not take our address option.
    unnumbered: bool,
    /// Name servers as we ask for them; none where the peer rejects it.
    asked: [Option<Ipv4Addr>; 2],
    /// The peer's address as agreed.
    peer: Ipv4Addr,
}

impl Ipcp {
    pub(crate) fn new(offer: Ipv4Offer) -> Self {
        Self {
            offer,
            local: offer.local,
            unnumbered: false,
            asked: [offer.ask_dns.then_some(Ipv4Addr::UNSPECIFIED); 2],
            peer: offer.peer,
        }
    }

    /// What was agreed on.
    pub(crate) fn settings(&self) -> Ipv4Settings {
        let told = self
            .asked
            .map(|dns| dns.filter(|dns| !dns.is_unspecified()));
        Ipv4Settings {
            local: self.local,
            peer: self.peer,
            dns: match self.offer.ask_dns {
                true => told,
                false => self.offer.dns,
            },
        }
    }
}

fn address(data: &[u8]) -> Option<Ipv4Addr> {
    let octets: [u8; 4] = data.try_into().ok()?;
    Some(Ipv4Addr::from(octets))
}

impl Negotiation for Ipcp {
    const PROTOCOL: u16 = protocol::IPCP;

    fn request(&self, out: &mut Vec<u8>) {
        if !self.unnumbered {
            emit_option(out, ADDRESS, &self.local.octets());
        }
        for (kind, dns) in DNS.into_iter().zip(self.asked) {
            if let Some(dns) = dns {
                emit_option(out, kind, &dns.octets());
            }
        }
    }

    fn judge(&mut self, option: &ConfigOption<'_>, _random: &mut dyn Random) -> Judgement {
        let wanted = address(option.data);
        let ours = match option.kind {
            ADDRESS if self.offer.peer.is_unspecified() => {
                return match wanted {
                    Some(address) if !address.is_unspecified() => Judgement::Agree,
                    _ => Judgement::Reject,
                };
            }
            ADDRESS => Some(self.offer.peer),
            kind if kind == DNS[0] => self.offer.dns[0],
            kind if kind == DNS[1] => self.offer.dns[1],
            _ => None,
        };
        match ours {
            None => Judgement::Reject,
            Some(ours) if wanted == Some(ours) => Judgement::Agree,
            Some(ours) => Judgement::suggest(&ours.octets()),
        }
    }

    /// RFC 1332, section 3.3: a peer that does not say its address is told it.
    fn missing(&self, request: Options<'_>) -> Option<(u8, [u8; 4])> {
        let mut request = request;
        let named = request.any(|option| option.kind == ADDRESS);
        let known = !self.offer.peer.is_unspecified();
        (known && !named).then_some((ADDRESS, self.offer.peer.octets()))
    }

    fn agree(&mut self, request: Options<'_>) {
        self.peer = self.offer.peer;
        for option in request {
            if option.kind == ADDRESS
                && let Some(address) = address(option.data)
            {
                self.peer = address;
            }
        }
    }

    fn adjust(&mut self, option: &ConfigOption<'_>, _config: &Config, _random: &mut dyn Random) {
        let Some(wanted) = address(option.data).filter(|wanted| !wanted.is_unspecified()) else {
            return;
        };
        match option.kind {
            // The network's side has its address from its operator, not from a subscriber.
            ADDRESS if self.offer.local.is_unspecified() => self.local = wanted,
            kind => {
                for (known, asked) in DNS.into_iter().zip(&mut self.asked) {
                    if kind == known && asked.is_some() {
                        *asked = Some(wanted);
                    }
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
                for (known, asked) in DNS.into_iter().zip(&mut self.asked) {
                    if kind == known {
                        *asked = None;
                    }
                }
            }
        }
        true
    }
}
