//! What a speaker and its peers are set to.
//!
//! Settings that many peers have in common are one [`PeerSettings`] behind an `Arc`: a peer of its own costs its
//! address and its autonomous system.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use base::{Duration, Redacted};
use wire::bgp::{Families, PORT, Prefix, Role};

use crate::policy::{Policy, Roas};
use crate::rib::NextHopRule;

/// A speaker: one router.
#[derive(Clone, Debug)]
pub struct SpeakerConfig {
    /// Our autonomous system.
    pub asn: u32,
    /// Our BGP Identifier (RFC 6286): not 0.
    pub router_id: Ipv4Addr,
    /// Peers by address.
    pub peers: Vec<PeerConfig>,
    /// Peers by network: whoever connects from there.
    pub dynamic: Vec<DynamicConfig>,
    /// Whether this is a start after one whose forwarding state is still in place: the Restart State bit is sent, and
    /// what we announce waits for the peers' End-of-RIB, at most this long (RFC 4724, section 4.1).
    pub restarted: Option<Duration>,
    /// The cluster of a route reflector (RFC 4456); else it is the BGP Identifier.
    pub cluster_id: Option<Ipv4Addr>,
    /// Whether the best external route stays against one that is better by identifiers only (RFC 5004).
    pub prefers_oldest: bool,
    /// Which route origins are authorised (RFC 6811).
    pub roas: Arc<Roas>,
    /// Bounds of tables.
    pub limits: Limits,
}

impl SpeakerConfig {
    /// A speaker without peers.
    #[must_use]
    pub fn new(asn: u32, router_id: Ipv4Addr) -> Self {
        Self {
            asn,
            router_id,
            peers: Vec::new(),
            dynamic: Vec::new(),
            restarted: None,
            cluster_id: None,
            prefers_oldest: false,
            roas: Arc::default(),
            limits: Limits::default(),
        }
    }

    /// What is wrong with it, if anything: a key and why.
    ///
    /// # Errors
    /// The first fault, with the place of the peer that it is about.
    pub fn check(&self) -> Result<(), ConfigError> {
        let fault = |at, key, why| Err(ConfigError { at, key, why });
        if self.asn == 0 {
            return fault(Place::Speaker, "asn", "must not be 0 (RFC 7607)");
        }
        if self.router_id.is_unspecified() {
            return fault(Place::Speaker, "router_id", "must not be 0 (RFC 6286)");
        }
        for (peer, at) in self.peers.iter().zip(0..) {
            peer.settings.check(Place::Peer(at))?;
            if peer.remote_asn == RemoteAsn::Exactly(0) {
                return fault(Place::Peer(at), "remote_asn", "must not be 0 (RFC 7607)");
            }
            if self.peers[..at]
                .iter()
                .any(|other| other.remote == peer.remote)
            {
                return fault(Place::Peer(at), "remote", "is there twice");
            }
        }
        for (dynamic, at) in self.dynamic.iter().zip(0..) {
            dynamic.settings.check(Place::Dynamic(at))?;
        }
        Ok(())
    }
}

/// A fault in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} {why}")]
pub struct ConfigError {
    /// Whose setting it is.
    pub at: Place,
    /// The setting.
    pub key: &'static str,
    /// What is wrong with it.
    pub why: &'static str,
}

/// A part of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The speaker's own.
    Speaker,
    /// A peer, by its place in [`SpeakerConfig::peers`].
    Peer(usize),
    /// A network of peers, by its place in [`SpeakerConfig::dynamic`].
    Dynamic(usize),
}

/// Bounds of a speaker's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Peers that came by a network, over all networks.
    pub dynamic_peers_max: u32,
    /// Recent happenings that are kept to be shown.
    pub happenings_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            dynamic_peers_max: 100_000,
            happenings_max: 256,
        }
    }
}

/// One peer.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerConfig {
    /// What operators call it; its address where it has no name.
    pub name: Option<Box<str>>,
    /// Its address.
    pub remote: IpAddr,
    /// The port where it listens.
    pub port: u16,
    /// Our address towards it; the kernel's choice where there is none.
    pub local: Option<IpAddr>,
    /// Its autonomous system.
    pub remote_asn: RemoteAsn,
    /// All else.
    pub settings: Arc<PeerSettings>,
}

impl PeerConfig {
    /// A peer on the usual port.
    #[must_use]
    pub fn new(remote: IpAddr, remote_asn: RemoteAsn, settings: Arc<PeerSettings>) -> Self {
        Self {
            name: None,
            remote,
            port: PORT,
            local: None,
            remote_asn,
            settings,
        }
    }
}

/// Peers that need no configuration of their own: whoever connects from a network.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicConfig {
    /// Where they come from. Of two networks that fit, the longer prefix is taken.
    pub prefix: Prefix,
    /// Their autonomous systems.
    pub remote_asn: RemoteAsn,
    /// How many at a time; the next one is refused and counted.
    pub peers_max: u32,
    /// All else.
    pub settings: Arc<PeerSettings>,
}

/// Which autonomous systems a peer may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteAsn {
    /// Any.
    Any,
    /// Any but ours.
    External,
    /// Ours.
    Internal,
    /// This one.
    Exactly(u32),
}

impl RemoteAsn {
    /// Whether a peer of autonomous system `asn` is one of them, where `ours` is ours.
    #[must_use]
    pub const fn admits(self, asn: u32, ours: u32) -> bool {
        match self {
            Self::Any => true,
            Self::External => asn != ours,
            Self::Internal => asn == ours,
            Self::Exactly(one) => asn == one,
        }
    }
}

/// What peers may have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerSettings {
    /// Our autonomous system towards it, where it is not the speaker's.
    pub local_asn: Option<u32>,
    /// Wait for it to connect (PassiveTcpEstablishment).
    pub passive: bool,
    /// Whether it is started with the speaker.
    pub enabled: bool,
    /// The hold time that we offer, in seconds: 0 or at least 3.
    pub hold_time_s: u16,
    /// The shortest hold time that is accepted, in seconds; 0 is always measured by `hold_time_s` being 0 or not.
    pub hold_time_min_s: u16,
    /// Between KEEPALIVEs, in seconds, at least 1; never more than a third of the agreed hold time, which is also what
    /// holds where there is none.
    pub keepalive_s: Option<u16>,
    /// ConnectRetryTime, before its jitter.
    pub connect_retry: Duration,
    /// DelayOpenTime, where DelayOpen is on.
    pub delay_open: Option<Duration>,
    /// DampPeerOscillations: after a session that failed, Idle for `idle_hold`, twice as long each time. Where it is
    /// off, for `idle_hold` each time.
    pub damp_oscillations: bool,
    /// IdleHoldTime, before its jitter.
    pub idle_hold: Duration,
    /// The longest that IdleHoldTime grows to.
    pub idle_hold_max: Duration,
    /// A session that lasted so long was no oscillation.
    pub stable_after: Duration,
    /// CollisionDetectEstablishedState.
    pub collision_detect_established: bool,
    /// SendNOTIFICATIONwithoutOPEN.
    pub notify_without_open: bool,
    /// How long the stream may take nothing (RFC 9687); none: the longer of 8 minutes and two hold times.
    pub send_hold: Option<Duration>,
    /// The families that we offer.
    pub families: Families,
    /// Families of which we take several paths per prefix (RFC 7911).
    pub add_path_receive: Families,
    /// Families of which we send several paths per prefix.
    pub add_path_send: Families,
    /// Route refresh (RFC 2918), also the enhanced one (RFC 7313).
    pub refresh: bool,
    /// Messages of up to 65,535 octets (RFC 8654).
    pub extended_messages: bool,
    /// Graceful restart (RFC 4724), where it is on.
    pub graceful_restart: Option<GracefulSettings>,
    /// Our role (RFC 9234).
    pub role: Option<Role>,
    /// Insist on a role of the peer's.
    pub role_strict: bool,
    /// Whether an external peer's paths have to begin with its autonomous system (RFC 4271, section 6.3). Route servers'
    /// do not (RFC 7947), and are known by their role.
    pub enforce_first_as: bool,
    /// What TCP is asked for.
    pub transport: Transport,
    /// The most prefixes of each family that the peer may announce.
    pub prefix_limit: Option<PrefixLimit>,
    /// What becomes of its routes. None: all are taken from an internal peer, none from an external one (RFC 8212).
    pub import: Option<Arc<Policy>>,
    /// What becomes of routes to it; likewise.
    pub export: Option<Arc<Policy>>,
    /// MinRouteAdvertisementIntervalTimer (RFC 4271, section 9.2.1.1); zero: none.
    pub advertisement_interval: Duration,
    /// Whether it is a client of this route reflector (RFC 4456).
    pub is_client: bool,
    /// How often our own autonomous system may stand in a path that is taken.
    pub allow_own: u8,
    /// Of each prefix, so many paths are sent where several are, the best first; 0 for all.
    pub add_path_count: u16,
    /// What is done to next hops.
    pub next_hop: NextHopRule,
    /// Next hop for IPv4 routes where it is to be ourselves; none: our end of the connection.
    pub next_hop_v4: Option<Ipv4Addr>,
    /// Next hop for IPv6 routes where it is to be ourselves; none: our end of the connection.
    pub next_hop_v6: Option<Ipv6Addr>,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            local_asn: None,
            passive: false,
            enabled: true,
            hold_time_s: 90,
            hold_time_min_s: 3,
            keepalive_s: None,
            connect_retry: Duration::from_secs(10),
            delay_open: None,
            damp_oscillations: true,
            idle_hold: Duration::from_secs(1),
            idle_hold_max: Duration::from_secs(60),
            stable_after: Duration::from_secs(300),
            collision_detect_established: false,
            notify_without_open: true,
            send_hold: None,
            families: Families::IPV4,
            add_path_receive: Families::NONE,
            add_path_send: Families::NONE,
            refresh: true,
            extended_messages: true,
            graceful_restart: Some(GracefulSettings::default()),
            role: None,
            role_strict: false,
            enforce_first_as: true,
            transport: Transport::default(),
            prefix_limit: None,
            import: None,
            export: None,
            advertisement_interval: Duration::ZERO,
            is_client: false,
            allow_own: 0,
            add_path_count: 0,
            next_hop: NextHopRule::Standard,
            next_hop_v4: None,
            next_hop_v6: None,
        }
    }
}

impl PeerSettings {
    /// Whether a session under these settings may go on under others: what was agreed on would be the same.
    #[must_use]
    pub fn goes_on_under(&self, others: &Self) -> bool {
        let like = Self {
            passive: others.passive,
            enabled: others.enabled,
            connect_retry: others.connect_retry,
            delay_open: others.delay_open,
            damp_oscillations: others.damp_oscillations,
            idle_hold: others.idle_hold,
            idle_hold_max: others.idle_hold_max,
            stable_after: others.stable_after,
            collision_detect_established: others.collision_detect_established,
            notify_without_open: others.notify_without_open,
            send_hold: others.send_hold,
            enforce_first_as: others.enforce_first_as,
            import: others.import.clone(),
            export: others.export.clone(),
            ..self.clone()
        };
        like == *others
    }

    fn check(&self, at: Place) -> Result<(), ConfigError> {
        let fault = |key, why| Err(ConfigError { at, key, why });
        if matches!(self.hold_time_s, 1 | 2) {
            return fault("hold_time_s", "must be 0 or at least 3 (RFC 4271, 4.2)");
        }
        if self.keepalive_s == Some(0) {
            return fault("keepalive_s", "must be at least 1 (RFC 4271, 4.4)");
        }
        if self.local_asn == Some(0) {
            return fault("local_asn", "must not be 0 (RFC 7607)");
        }
        if self.families.is_empty() {
            return fault("families", "must not be empty");
        }
        if self.connect_retry == Duration::ZERO {
            return fault("connect_retry", "must not be 0");
        }
        if self
            .graceful_restart
            .is_some_and(|graceful| graceful.restart_time_s > 4_095)
        {
            return fault("restart_time_s", "must be at most 4095 (RFC 4724, 3)");
        }
        if self.role_strict && self.role.is_none() {
            return fault("role_strict", "needs a role");
        }
        Ok(())
    }
}

/// Graceful restart (RFC 4724).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GracefulSettings {
    /// How long after a restart of ours a peer keeps our routes, in seconds, at most 4,095.
    pub restart_time_s: u16,
    /// How long a peer's stale routes are kept at most, from its session's loss on.
    pub stale_max: Duration,
    /// Whether our forwarding state outlives us: the Forwarding State bit.
    pub forwarding: bool,
}

impl Default for GracefulSettings {
    fn default() -> Self {
        Self {
            restart_time_s: 120,
            stale_max: Duration::from_secs(360),
            forwarding: false,
        }
    }
}

/// What TCP is asked for. A driver sets it on what it connects and on what it accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transport {
    /// The key of TCP signatures (RFC 2385).
    pub md5: Option<Redacted<Vec<u8>>>,
    /// The TTL of what we send; the kernel's where there is none.
    pub ttl: Option<u8>,
    /// Segments with a lower TTL are dropped (GTSM, RFC 5082).
    pub ttl_min: Option<u8>,
}

impl Transport {
    /// GTSM for a peer at most so many hops away, 1 for a neighbour.
    #[must_use]
    pub const fn gtsm(md5: Option<Redacted<Vec<u8>>>, hops: u8) -> Self {
        Self {
            md5,
            ttl: Some(255),
            ttl_min: Some(255 - hops.saturating_sub(1)),
        }
    }
}

/// The most prefixes of a peer (RFC 4271, section 6.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixLimit {
    /// The session ends when there are more.
    pub prefixes_max: u32,
    /// When it may come back; never, until an operator says so, where there is none.
    pub restart_after: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(settings: PeerSettings) -> SpeakerConfig {
        let mut config = SpeakerConfig::new(65_000, Ipv4Addr::new(10, 0, 0, 1));
        let remote = IpAddr::from([10, 0, 0, 2]);
        config
            .peers
            .push(PeerConfig::new(remote, RemoteAsn::Any, Arc::new(settings)));
        config
    }

    fn fault(change: impl FnOnce(&mut PeerSettings)) -> Option<&'static str> {
        let mut settings = PeerSettings::default();
        change(&mut settings);
        config(settings).check().err().map(|error| error.key)
    }

    #[test]
    fn impossible_settings_are_named() {
        assert_eq!(fault(|_| ()), None);
        assert_eq!(fault(|s| s.hold_time_s = 2), Some("hold_time_s"));
        assert_eq!(fault(|s| s.keepalive_s = Some(0)), Some("keepalive_s"));
        assert_eq!(fault(|s| s.local_asn = Some(0)), Some("local_asn"));
        assert_eq!(fault(|s| s.families = Families::NONE), Some("families"));
        assert_eq!(fault(|s| s.role_strict = true), Some("role_strict"));
        let mut twice = config(PeerSettings::default());
        twice.peers.push(twice.peers[0].clone());
        let error = twice.check().unwrap_err();
        assert_eq!((error.at, error.key), (Place::Peer(1), "remote"));
    }

    #[test]
    fn gtsm_counts_hops_from_255() {
        let near = Transport::gtsm(None, 1);
        assert_eq!((near.ttl, near.ttl_min), (Some(255), Some(255)));
        assert_eq!(Transport::gtsm(None, 3).ttl_min, Some(253));
    }
}
