//! Which sessions are handed over to which LNS: the tunnels of the configuration, and the order in which the LNSs of a
//! set are tried.
//!
//! Implements parts of RFC 2868, sections 3.8 (preference) and 3.7 (sessions that share a tunnel).

use core::net::IpAddr;
use core::ops::RangeInclusive;
use std::sync::Arc;

use aaa::realm;
use aaa::{Lns, Prefix};
use base::Duration;
use hashbrown::HashMap;
use wire::pppoe::Vlans;

use crate::access::Peer;

/// What the configuration says about handing sessions over.
#[derive(Clone, Debug)]
pub struct Switching {
    /// Whether subscribers can be handed over after they gave a name. If so, their requests of LCP and their proofs are
    /// kept until they are admitted.
    pub is_on: bool,
    /// The tunnels, in the order of the configuration.
    pub tunnels: Vec<NamedTunnel>,
    /// Longest wait for one LNS before the next is tried.
    pub patience: Duration,
    /// How long an LNS is tried last after it did not answer.
    pub avoid: Duration,
    /// Limit on the tunnels that are remembered, open or avoided.
    pub tunnels_max: usize,
}

impl Default for Switching {
    fn default() -> Self {
        Self {
            is_on: false,
            tunnels: Vec::new(),
            patience: Duration::from_secs(5),
            avoid: Duration::from_secs(60),
            tunnels_max: 4_096,
        }
    }
}

/// A tunnel of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTunnel {
    /// Its name.
    pub name: Box<str>,
    /// The LNSs that may take its sessions.
    pub lns: Arc<[Lns]>,
    /// The realms of the subscribers that are handed over, in lower case.
    pub realms: Vec<Box<str>>,
    /// The lines whose sessions are handed over before PPP.
    pub lines: Vec<LineRule>,
}

/// The VLAN ids of an outer and an inner tag.
pub type VlanIds = [Option<RangeInclusive<u16>>; 2];

/// Conditions on the line that a session arrives on. Each condition that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineRule {
    /// The number of the PPPoE interface.
    pub interface: Option<u16>,
    /// The VLAN tags on it, one of these sets.
    pub vlans: Vec<VlanIds>,
    /// The network of the peer's address: of a LAC.
    pub peer: Option<Prefix>,
    /// Our address that its tunnel arrived at.
    pub local: Option<IpAddr>,
    /// The peer's name for itself.
    pub host_name: Option<Box<str>>,
}

impl LineRule {
    fn is_of(&self, peer: Option<&Peer<'_>>, port: Option<(u16, Vlans)>) -> bool {
        let of_port = match port {
            Some((number, vlans)) => {
                self.interface.is_none_or(|wanted| wanted == number)
                    && (self.vlans.is_empty() || self.vlans.iter().any(|ids| holds(ids, vlans)))
            }
            None => self.interface.is_none() && self.vlans.is_empty(),
        };
        let addresses = peer.and_then(|peer| peer.addresses);
        let (remote, own) = addresses.unzip();
        let name = self.host_name.as_deref().map(str::as_bytes);
        of_port
            && self.local.is_none_or(|local| own == Some(local))
            && (self.peer).is_none_or(|network| remote.is_some_and(|one| network.contains(one)))
            && name.is_none_or(|name| peer.is_some_and(|peer| peer.name == name))
    }
}

fn holds(ids: &VlanIds, vlans: Vlans) -> bool {
    let tags = [vlans.outer(), vlans.inner()];
    ids.iter().zip(tags).all(|(ids, tag)| match (ids, tag) {
        (Some(ids), Some(tag)) => ids.contains(&tag),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    })
}

/// The tunnels of a configuration by what leads to them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    names: HashMap<Box<str>, usize>,
    realms: HashMap<Box<[u8]>, usize>,
    has_lines: bool,
}

impl Index {
    pub(crate) fn new(switching: &Switching) -> Self {
        let mut index = Self::default();
        for (place, tunnel) in switching.tunnels.iter().enumerate() {
            index.names.entry(tunnel.name.clone()).or_insert(place);
            for realm in &tunnel.realms {
                let realm: Box<[u8]> = realm.as_bytes().into();
                index.realms.entry(realm).or_insert(place);
            }
            index.has_lines |= !tunnel.lines.is_empty();
        }
        index
    }

    /// The tunnel with this name.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// The tunnel for a user's realm.
    pub(crate) fn of_user(&self, name: &[u8]) -> Option<usize> {
        if self.realms.is_empty() {
            return None;
        }
        let realm = realm::split(name).1?.to_ascii_lowercase();
        self.realms.get(&*realm).copied()
    }

    /// Whether any session is handed over by its line.
    pub(crate) fn has_lines(&self) -> bool {
        self.has_lines
    }
}

impl Switching {
    /// The first tunnel for sessions of this line.
    pub(crate) fn of_line(
        &self,
        peer: Option<&Peer<'_>>,
        port: Option<(u16, Vlans)>,
    ) -> Option<usize> {
        let takes = |tunnel: &NamedTunnel| tunnel.lines.iter().any(|rule| rule.is_of(peer, port));
        self.tunnels.iter().position(takes)
    }
}

/// The order in which LNSs are tried, the last one first: by preference, those that did not answer lately behind all
/// others. Equals are shuffled.
pub(crate) fn order(
    lns: &[Lns],
    is_avoided: impl Fn(&Lns) -> bool,
    mut random: impl FnMut() -> u64,
) -> Vec<Lns> {
    let mut all: Vec<(bool, u32, u64, &Lns)> = lns
        .iter()
        .map(|one| (is_avoided(one), one.preference, random(), one))
        .collect();
    all.sort_by_key(|(avoided, preference, tie, _)| (*avoided, *preference, *tie));
    all.into_iter().rev().map(|(.., one)| one.clone()).collect()
}

/// Counters of sessions that are handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounts {
    /// Sessions that an LNS has now.
    pub sessions: u64,
    /// Sessions that an LNS took.
    pub taken: u64,
    /// Calls that an LNS refused or did not answer, so that the next was tried.
    pub failed_over: u64,
    /// Sessions that no LNS took.
    pub not_taken: u64,
    /// LNSs that were left out because their address is our own.
    pub own_address: u64,
    /// New speeds of lines that were reported to LNSs.
    pub speeds_reported: u64,
    /// Frames that were dropped because too many arrived before the LNS answered.
    pub not_held: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use aaa::TunnelTo;

    fn lns(address: &str, preference: u32) -> Lns {
        Lns {
            tunnel: Arc::new(TunnelTo::new(address.parse().unwrap())),
            preference,
            private_group: Box::default(),
        }
    }

    /// RFC 2868, section 3.8: "the tunnel with the lowest value is preferred"; equals share the load.
    #[test]
    fn the_lowest_preference_comes_first_and_equals_share() {
        let all = [
            lns("192.0.2.3:1701", 20),
            lns("192.0.2.1:1701", 10),
            lns("192.0.2.2:1701", 10),
        ];
        let mut first = [0; 2];
        let mut seed = 0_u64;
        for _ in 0..100 {
            let random = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                seed >> 33
            };
            let order = order(&all, |_| false, random);
            assert_eq!(order[0].preference, 20, "tried last");
            let at = all[1..].iter().position(|one| *one == order[2]);
            first[at.expect("one of the preferred")] += 1;
        }
        assert!(first.iter().all(|&count| count > 25), "{first:?}");
    }

    #[test]
    fn an_lns_that_did_not_answer_is_tried_last() {
        let all = [lns("192.0.2.1:1701", 10), lns("192.0.2.2:1701", 20)];
        let order = order(&all, |one| one.preference == 10, || 0);
        assert_eq!(order[1].preference, 20);
        assert_eq!(order[0].preference, 10);
    }

    #[test]
    fn realms_are_compared_without_case() {
        let tunnel = |name: &str, realm: &str| NamedTunnel {
            name: name.into(),
            lns: Arc::new([]),
            realms: vec![realm.into()],
            lines: Vec::new(),
        };
        let switching = Switching {
            tunnels: vec![tunnel("a", "isp.example"), tunnel("b", "other.example")],
            ..Switching::default()
        };
        let index = Index::new(&switching);
        assert_eq!(index.of_user(b"ann@Other.Example"), Some(1));
        assert_eq!(index.of_user(b"ann@isp.example"), Some(0));
        assert_eq!(index.of_user(b"ann@elsewhere"), None);
        assert_eq!(index.of_user(b"ann"), None);
        assert_eq!(index.named("b"), Some(1));
    }

    #[test]
    fn each_condition_of_a_line_must_hold() {
        let rule = LineRule {
            interface: Some(1),
            vlans: vec![[Some(100..=199), None]],
            ..LineRule::default()
        };
        assert!(rule.is_of(None, Some((1, Vlans::one(150)))));
        assert!(!rule.is_of(None, Some((2, Vlans::one(150)))));
        assert!(!rule.is_of(None, Some((1, Vlans::one(200)))));
        assert!(!rule.is_of(None, Some((1, Vlans::two(150, 7)))));
        assert!(!rule.is_of(None, None));
        let peer = Peer {
            name: b"lac1",
            own_name: b"lns",
            addresses: Some((
                "192.0.2.9".parse().unwrap(),
                "198.51.100.1".parse().unwrap(),
            )),
        };
        let rule = LineRule {
            host_name: Some("lac1".into()),
            peer: Prefix::new("192.0.2.0".parse().unwrap(), 24),
            ..LineRule::default()
        };
        assert!(rule.is_of(Some(&peer), None));
        let other = Peer {
            name: b"lac2",
            ..peer
        };
        assert!(!rule.is_of(Some(&other), None));
        assert!(!rule.is_of(None, Some((1, Vlans::NONE))));
    }
}
