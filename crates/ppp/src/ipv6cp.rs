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
    /// Ours as we ask for it.
    local: u64,
    /// The peer's as agreed; before that, what it is to have, 0 if a random one.
    peer: u64,
    /// The peer has to take that one.
    peer_must: bool,
}

impl Ipv6cp {
    pub(crate) fn new(offer: Ipv6Offer) -> Self {
        Self {
            local: offer.local,
            peer: offer.peer,
            peer_must: offer.peer_must,
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
        let first = match self.peer {
            0 => random_identifier(random),
            known => known,
        };
        // The first is as good as always neither zero nor ours.
        let fits = |identifier: &u64| ![0, self.local].contains(identifier);
        let identifier = [first, 1, 2].into_iter().find(fits);
        Judgement::suggest(&identifier.unwrap_or(first).to_be_bytes())
    }
}

/// A random one, and so not a universally unique one (RFC 5072, section 4.1).
fn random_identifier(random: &mut dyn Random) -> u64 {
    let mut octets = [0; 8];
    random.fill(&mut octets);
    octets[0] &= !2;
    u64::from_be_bytes(octets)
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
            Some(other) if self.peer_must && other != self.peer => self.suggestion(random),
            Some(_) => Judgement::Agree,
        }
    }

    /// A peer that names none is told one, once (RFC 5072, section 4.1).
    fn missing(
        &self,
        mut request: Options<'_>,
        naks: u8,
        random: &mut dyn Random,
    ) -> Option<(u8, Judgement)> {
        let named = request.any(|option| option.kind == IDENTIFIER);
        (!named && naks == 0).then(|| (IDENTIFIER, self.suggestion(random)))
    }

    fn agree(&mut self, mut request: Options<'_>) {
        if !self.peer_must {
            let named = request.find(|option| option.kind == IDENTIFIER);
            self.peer = named
                .and_then(|option| identifier(option.data))
                .unwrap_or(0);
        }
    }

    /// Zero is no identifier.
    fn is_complete(&self) -> bool {
        self.local != 0
    }

    fn adjust(&mut self, option: &ConfigOption<'_>, _config: &Config, random: &mut dyn Random) {
        if option.kind != IDENTIFIER {
            return;
        }
        // One that collides with the peer's own, or is none, is answered by a new one.
        match identifier(option.data) {
            Some(wanted) if wanted != 0 && wanted != self.peer => self.local = wanted,
            _ => self.local = random_identifier(random).max(1),
        }
    }

    /// Without an identifier there is no IPv6 on the link.
    fn withdraw(&mut self, kind: u8) -> bool {
        kind != IDENTIFIER
    }
}
