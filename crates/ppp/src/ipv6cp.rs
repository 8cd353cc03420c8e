//! IPv6CP's options (RFC 5072, section 4): the interface identifier.
//!
//! Left out: IPv6-Compression-Protocol, which is rejected.

use wire::ppp::control::{ConfigOption, Options, emit_option};
use wire::ppp::protocol;

use crate::config::{Config, Random};
use crate::event::Ipv6Settings;
use crate::layer::{Judgement, Negotiation};

const IDENTIFIER: u8 = 1;

/// What interface identifiers a link may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Offer {
    /// Ours; 0 where the peer is to say it.
    pub local: u64,
    /// What a peer gets that has none; 0: a random one.
    pub peer: u64,
    /// Whether the peer must take that one.
    pub peer_must: bool,
}

impl Ipv6Offer {
    /// Ours is what is given here, the peer's what it likes.
    #[must_use]
    pub const fn free(local: u64) -> Self {
        Self {
            local,
            peer: 0,
            peer_must: false,
        }
    }
}

/// What IPv6CP negotiates.
#[derive(Clone, Debug)]
pub(crate) struct Ipv6cp {
    offer: Ipv6Offer,
    local: u64,
    peer: u64,
}

impl Ipv6cp {
    pub(crate) fn new(offer: Ipv6Offer) -> Self {
        Self {
            offer,
            local: offer.local,
            peer: 0,
        }
    }

    /// What was agreed on.
    pub(crate) fn settings(&self) -> Ipv6Settings {
        Ipv6Settings {
            local: self.local,
            peer: self.peer,
        }
    }

    /// What to suggest to a peer.
    fn suggestion(&self, random: &mut dyn Random) -> Judgement {
        let mut identifier = self.offer.peer;
        while identifier == 0 || identifier == self.local {
            let mut octets = [0; 8];
            random.fill(&mut octets);
            // Not a universally unique one (RFC 5072, section 4.1).
            octets[0] &= !2;
            identifier = u64::from_be_bytes(octets);
        }
        Judgement::suggest(&identifier.to_be_bytes())
    }
}

fn identifier(data: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(data.try_into().ok()?))
}

impl Negotiation for Ipv6cp {
    const PROTOCOL: u16 = protocol::IPV6CP;

    fn request(&self, out: &mut Vec<u8>) {
        emit_option(out, IDENTIFIER, &self.local.to_be_bytes());
    }

    /// The table of RFC 5072, section 4.1.
    fn judge(&mut self, option: &ConfigOption<'_>, random: &mut dyn Random) -> Judgement {
        if option.kind != IDENTIFIER {
            return Judgement::Reject;
        }
        match identifier(option.data) {
            Some(0) if self.local == 0 => Judgement::Reject,
            Some(0) | None => self.suggestion(random),
            Some(same) if same == self.local => self.suggestion(random),
            Some(other) if self.offer.peer_must && other != self.offer.peer => {
                self.suggestion(random)
            }
            Some(_) => Judgement::Agree,
        }
    }

    fn agree(&mut self, request: Options<'_>) {
        for option in request {
            if let Some(agreed) = identifier(option.data) {
                self.peer = agreed;
            }
        }
    }

    fn adjust(&mut self, option: &ConfigOption<'_>, _config: &Config, random: &mut dyn Random) {
        if option.kind != IDENTIFIER {
            return;
        }
        // One that collides with the peer's own, or is none, is answered by a new one.
        match identifier(option.data) {
            Some(wanted) if wanted != 0 && wanted != self.peer => self.local = wanted,
            _ => self.local = u64::from(random.number()),
        }
    }

    /// Without an identifier there is no IPv6 on the link.
    fn withdraw(&mut self, _kind: u8) -> bool {
        false
    }
}
