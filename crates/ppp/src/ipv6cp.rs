//! IPv6CP's options (RFC 5072, section 4): the interface identifier.
//!
//! Left out: IPv6-Compression-Protocol. Requests for it are rejected.

use base::snapshot::{Codec, Part};
use wire::ppp::control::{ConfigOption, Options, emit_option};
use wire::ppp::protocol;

use crate::config::{Config, Random};
use crate::event::Ipv6Settings;
use crate::layer::{Judgement, Negotiation};
use crate::snapshot;

const IDENTIFIER: u8 = 1;

/// The interface identifiers that a link may negotiate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Offer {
    /// Our identifier. 0 if the peer assigns it.
    pub local: u64,
    /// The identifier suggested to a peer that has none. 0: a random one.
    pub peer: u64,
    /// Whether the peer must use the identifier `peer`.
    pub peer_must: bool,
}

impl Ipv6Offer {
    /// We use the identifier `local`, and the peer chooses its own.
    #[must_use]
    pub const fn free(local: u64) -> Self {
        Self {
            local,
            peer: 0,
            peer_must: false,
        }
    }
}

impl Part for Ipv6Offer {
    const NAME: &'static str = "ipv6_offer";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let Self {
            local,
            peer,
            peer_must,
        } = self;
        snapshot::identifier(codec, 1, "local", local);
        snapshot::identifier(codec, 2, "peer", peer);
        codec.number(3, "peer_must", peer_must);
    }
}

/// The state of IPv6CP's negotiation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ipv6cp {
    /// The identifier that we request for ourselves.
    local: u64,
    /// The peer's identifier once agreed. Before that, the one to assign, or 0 for a random one.
    peer: u64,
    /// The peer must use the assigned identifier.
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

    /// The negotiated identifiers.
    pub(crate) fn settings(&self) -> Ipv6Settings {
        Ipv6Settings {
            local: self.local,
            peer: self.peer,
        }
    }

    /// The identifier to suggest to a peer.
    fn suggestion(&self, random: &mut dyn Random) -> Judgement {
        let first = match self.peer {
            0 => random_identifier(random),
            known => known,
        };
        // The first candidate is almost never zero or equal to ours.
        let fits = |identifier: &u64| ![0, self.local].contains(identifier);
        let identifier = [first, 1, 2].into_iter().find(fits);
        Judgement::suggest(&identifier.unwrap_or(first).to_be_bytes())
    }
}

/// A random identifier, which is therefore not universally unique (RFC 5072, section 4.1).
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
    const NAME: &'static str = "ipv6cp";

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

    /// A peer that omits its identifier is sent one, once (RFC 5072, section 4.1).
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

    /// Zero is not a valid identifier.
    fn is_complete(&self) -> bool {
        self.local != 0
    }

    fn adjust(&mut self, option: &ConfigOption<'_>, _config: &Config, random: &mut dyn Random) {
        if option.kind != IDENTIFIER {
            return;
        }
        // If the peer suggests zero or its own identifier, we request a new random one.
        match identifier(option.data) {
            Some(wanted) if wanted != 0 && wanted != self.peer => self.local = wanted,
            _ => self.local = random_identifier(random).max(1),
        }
    }

    /// IPv6 cannot run on a link without an identifier.
    fn withdraw(&mut self, kind: u8) -> bool {
        kind != IDENTIFIER
    }

    fn fields<C: Codec>(&mut self, codec: &mut C) {
        let Self {
            local,
            peer,
            peer_must,
        } = self;
        snapshot::identifier(codec, 21, "local", local);
        snapshot::identifier(codec, 22, "peer", peer);
        codec.number(23, "peer_must", peer_must);
    }
}
