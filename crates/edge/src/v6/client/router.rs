//! What a client learns from the Router Advertisements of its link (RFC 4861, sections 6.3.4 and 6.3.7; RFC 4862, section
//! 5.5.3; RFC 8106, section 5), without I/O.
//!
//! On a point-to-point link there is one router, and the interface identifier of IPv6CP is unique, so no duplicate
//! address detection is needed (RFC 5072, section 5). Left out: preferences and routes (RFC 4191), and the on-link flag,
//! because every packet goes to the peer.

#[cfg(test)]
mod tests;

use core::net::Ipv6Addr;

use base::{Duration, Instant};
use wire::ndp::{Option as NdpOption, Options, Prefix as Advertised, Router as Fixed};

use crate::random::Random;
use crate::v6::SERVERS_MAX;

/// MAX_RTR_SOLICITATIONS, RTR_SOLICITATION_INTERVAL and MAX_RTR_SOLICITATION_DELAY (RFC 4861, section 10).
const SOLICITATIONS: u8 = 3;
const INTERVAL: Duration = Duration::from_secs(4);
const DELAY_MAX: Duration = Duration::from_secs(1);
/// The shortest valid lifetime that an advertisement can set, so that nobody can end an address by one packet (RFC 4862,
/// section 5.5.3).
const VALID_LEAST: Duration = Duration::from_secs(7_200);
/// The most addresses that are formed.
const ADDRESSES_MAX: usize = 4;
/// The smallest MTU of IPv6.
const MTU_LEAST: u32 = 1_280;

/// An address that the client formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formed {
    /// The address: the prefix and our interface identifier.
    pub address: Ipv6Addr,
    /// Until when it is preferred.
    pub preferred_until: Instant,
    /// Until when it is valid.
    pub valid_until: Instant,
}

/// The state of a link's router, as its host sees it.
pub struct RouterClient {
    identifier: u64,
    random: Random,
    left: u8,
    solicit_at: Instant,
    is_ready: bool,
    default_until: Option<Instant>,
    mtu: Option<u16>,
    addresses: Vec<Formed>,
    servers: Vec<(Ipv6Addr, Instant)>,
    /// Prefixes without room for an address.
    refused: u64,
}

impl RouterClient {
    /// A host with this interface identifier. Its first solicitation is due within a second.
    #[must_use]
    pub fn new(identifier: u64, seed: [u8; 32], now: Instant) -> Self {
        let mut random = Random::new(seed);
        let share = u128::from(random.u64() >> 32);
        let delay = (u128::from(DELAY_MAX.as_nanos()) * share) >> 32;
        Self {
            identifier,
            random,
            left: SOLICITATIONS,
            solicit_at: now + Duration::from_nanos(delay as u64),
            is_ready: false,
            default_until: None,
            mtu: None,
            addresses: Vec::new(),
            servers: Vec::new(),
            refused: 0,
        }
    }

    /// Whether the peer is a default router.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        self.default_until.is_some()
    }

    /// The link's MTU as advertised, if it is usable.
    #[must_use]
    pub const fn mtu(&self) -> Option<u16> {
        self.mtu
    }

    /// The addresses that were formed.
    #[must_use]
    pub fn addresses(&self) -> &[Formed] {
        &self.addresses
    }

    /// The advertised name servers.
    pub fn servers(&self) -> impl Iterator<Item = Ipv6Addr> + '_ {
        self.servers.iter().map(|(server, _)| *server)
    }

    /// Prefixes for which no address was formed because there were too many.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Whether a Router Solicitation is to be sent now. Answers `true` once for each.
    pub fn poll_solicitation(&mut self) -> bool {
        core::mem::take(&mut self.is_ready)
    }

    /// When [`RouterClient::handle_timeout`] is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let addresses = self.addresses.iter().map(|one| one.valid_until);
        let servers = self.servers.iter().map(|(_, until)| *until);
        let ends = addresses.chain(servers).chain(self.default_until);
        let next = ends.chain([self.solicit_at]).min()?;
        (next != Instant::FAR_FUTURE).then_some(next)
    }

    /// Solicits, and drops what has expired. Returns whether anything was dropped.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        if self.solicit_at <= now {
            self.solicit_at = Instant::FAR_FUTURE;
            if self.left > 0 {
                self.left -= 1;
                self.is_ready = true;
                if self.left > 0 {
                    self.solicit_at = now + INTERVAL;
                }
            }
        }
        let before = (self.addresses.len(), self.servers.len(), self.default_until);
        self.addresses.retain(|one| one.valid_until > now);
        self.servers.retain(|(_, until)| *until > now);
        self.default_until = self.default_until.filter(|until| *until > now);
        before != (self.addresses.len(), self.servers.len(), self.default_until)
    }

    /// Takes a valid Router Advertisement of the peer. `link_mtu` is what PPP agreed on.
    pub fn advertised(&mut self, router: Fixed, options: Options<'_>, link_mtu: u16, now: Instant) {
        self.default_until = match router.lifetime_s {
            0 => None,
            seconds => {
                // "the host MUST desist from sending additional solicitations" (RFC 4861, section 6.3.7), but one is
                // sent in any case.
                if self.left < SOLICITATIONS {
                    self.left = 0;
                    self.solicit_at = Instant::FAR_FUTURE;
                } else {
                    self.left = 1;
                }
                Some(now + Duration::from_secs(seconds.into()))
            }
        };
        for option in options {
            match option {
                NdpOption::Mtu(mtu) if mtu >= MTU_LEAST && mtu <= link_mtu.into() => {
                    self.mtu = Some(mtu as u16);
                }
                NdpOption::Prefix(prefix) if prefix.autonomous => self.form(&prefix, now),
                NdpOption::Servers(seconds, servers) => {
                    for server in servers {
                        self.server(Ipv6Addr::from(*server), seconds, now);
                    }
                }
                NdpOption::Mtu(_) | NdpOption::Prefix(_) | NdpOption::Other(..) => {}
            }
        }
    }

    /// RFC 4862, section 5.5.3.
    fn form(&mut self, prefix: &Advertised, now: Instant) {
        let is_link_local = prefix.address.is_unicast_link_local();
        // The prefix and an identifier of 64 bits must be an address.
        if is_link_local || prefix.address.is_multicast() || prefix.length != 64 {
            return;
        }
        if prefix.preferred_s > prefix.valid_s {
            return;
        }
        let network = prefix.address.to_bits() >> 64 << 64;
        let address = Ipv6Addr::from_bits(network | u128::from(self.identifier));
        let preferred_until = after(prefix.preferred_s, now);
        let valid_until = after(prefix.valid_s, now);
        if let Some(one) = self.addresses.iter_mut().find(|one| one.address == address) {
            one.preferred_until = preferred_until;
            let least = now + VALID_LEAST;
            if valid_until > least || valid_until > one.valid_until {
                one.valid_until = valid_until;
            } else if one.valid_until > least {
                one.valid_until = least;
            }
            return;
        }
        if prefix.valid_s == 0 {
            return;
        }
        if self.addresses.len() >= ADDRESSES_MAX {
            self.refused += 1;
            return;
        }
        self.addresses.push(Formed {
            address,
            preferred_until,
            valid_until,
        });
    }

    /// RFC 8106, section 5.1.
    fn server(&mut self, server: Ipv6Addr, seconds: u32, now: Instant) {
        self.servers.retain(|(one, _)| *one != server);
        if seconds > 0 && self.servers.len() < SERVERS_MAX {
            self.servers.push((server, after(seconds, now)));
        }
    }

    /// A number for another machine of this link.
    pub(super) fn seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        for part in seed.chunks_exact_mut(8) {
            part.copy_from_slice(&self.random.u64().to_be_bytes());
        }
        seed
    }
}

fn after(seconds: u32, now: Instant) -> Instant {
    match seconds {
        u32::MAX => Instant::FAR_FUTURE,
        seconds => now + Duration::from_secs(seconds.into()),
    }
}
