//! Settings of a speaker and its peers.
//!
//! Peers share one [`PeerSettings`] behind an `Arc` if their settings are equal, so a further peer costs little more
//! than its address and AS.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use base::{Duration, Redacted};
use hashbrown::{HashMap, HashSet};
use wire::bgp::{Families, PORT, Prefix, Role};

use crate::policy::{Policy, Roas};
use crate::rib::NextHopRule;

/// The settings of a speaker: one router.
#[derive(Clone, Debug)]
pub struct SpeakerConfig {
    /// Our autonomous system.
    pub asn: u32,
    /// Our BGP Identifier (RFC 6286): not 0.
    pub router_id: Ipv4Addr,
    /// Configured peers.
    pub peers: Vec<PeerConfig>,
    /// Networks of dynamic peers.
    pub dynamic: Vec<DynamicConfig>,
    /// Whether this is a restart during which the forwarding state was preserved. Then the Restart State bit is sent,
    /// and our announcements wait for the peers' End-of-RIB, at most this long (RFC 4724, section 4.1).
    pub restarted: Option<Duration>,
    /// The cluster identifier of a route reflector (RFC 4456); by default the BGP Identifier.
    pub cluster_id: Option<Ipv4Addr>,
    /// Whether the current best external route wins against one that is better by identifiers only (RFC 5004).
    pub prefers_oldest: bool,
    /// The authorised route origins (RFC 6811).
    pub roas: Arc<Roas>,
    /// Limits of tables.
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

    /// Replaces what is equal in `old` by what `old` has: policies, settings of peers, and authorisations. A speaker
    /// that goes from `old` to this configuration need not compare those term by term.
    pub fn share(&mut self, old: &Self) {
        if self.roas == old.roas {
            self.roas = Arc::clone(&old.roas);
        }
        let mut known = HashMap::new();
        let peers = old.peers.iter().map(|peer| (peer.remote, &peer.settings));
        let peers: HashMap<IpAddr, &Arc<PeerSettings>> = peers.collect();
        for peer in &mut self.peers {
            if let Some(old) = peers.get(&peer.remote) {
                share(&mut peer.settings, old, &mut known);
            }
        }
        for new in &mut self.dynamic {
            let mut olds = old.dynamic.iter();
            if let Some(old) = olds.find(|old| old.prefix == new.prefix) {
                share(&mut new.settings, &old.settings, &mut known);
            }
        }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// The first fault: the key, why it is wrong, and which part has it.
    pub fn check(&self) -> Result<(), ConfigError> {
        let fault = |at, key, why| Err(ConfigError { at, key, why });
        if self.asn == 0 {
            return fault(Place::Speaker, "asn", "must not be 0 (RFC 7607)");
        }
        if self.router_id.is_unspecified() {
            return fault(Place::Speaker, "router_id", "must not be 0 (RFC 6286)");
        }
        let mut remotes = HashSet::new();
        for (peer, at) in self.peers.iter().zip(0..) {
            peer.settings.check(Place::Peer(at))?;
            if peer.remote_asn == RemoteAsn::Exactly(0) {
                return fault(Place::Peer(at), "remote_asn", "must not be 0 (RFC 7607)");
            }
            if !remotes.insert(peer.remote) {
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
    /// The part that has the setting.
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
    /// A peer, by its index in [`SpeakerConfig::peers`].
    Peer(usize),
    /// A network of peers, by its index in [`SpeakerConfig::dynamic`].
    Dynamic(usize),
}

/// Limits of a speaker's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most dynamic peers, over all networks.
    pub dynamic_peers_max: u32,
    /// The most dynamic peers that are held back without a place in their network.
    pub held_peers_max: u32,
    /// The most recent events that are stored for operators; by default 16 for each peer, at least 1,024 and at most
    /// 65,536.
    pub recent_events_max: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            dynamic_peers_max: 100_000,
            held_peers_max: 10_000,
            recent_events_max: None,
        }
    }
}

/// One peer.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerConfig {
    /// The name for operators; by default the address.
    pub name: Option<Box<str>>,
    /// Its address.
    pub remote: IpAddr,
    /// The port on which it listens.
    pub port: u16,
    /// Our address towards it; by default the kernel chooses.
    pub local: Option<IpAddr>,
    /// Its autonomous system.
    pub remote_asn: RemoteAsn,
    /// All other settings.
    pub settings: Arc<PeerSettings>,
}

impl PeerConfig {
    /// A peer on the standard port.
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

/// Dynamic peers: any host of a network may connect.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicConfig {
    /// Their network. If several networks contain a host, the longest prefix applies.
    pub prefix: Prefix,
    /// Their autonomous systems.
    pub remote_asn: RemoteAsn,
    /// The most of them at a time. Further connections are refused and counted.
    pub peers_max: u32,
    /// All other settings.
    pub settings: Arc<PeerSettings>,
}

/// The autonomous systems that a peer may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteAsn {
    /// Any.
    Any,
    /// Any except ours.
    External,
    /// Ours.
    Internal,
    /// This one.
    Exactly(u32),
}

impl RemoteAsn {
    /// Whether a peer may have the autonomous system `asn` if ours is `ours`.
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

/// Settings that peers may share.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerSettings {
    /// Our autonomous system towards the peer, if it is not the speaker's.
    pub local_asn: Option<u32>,
    /// Wait for the peer to connect (PassiveTcpEstablishment).
    pub passive: bool,
    /// Whether the peer is started with the speaker.
    pub enabled: bool,
    /// The hold time that we offer, in seconds: 0 or at least 3.
    pub hold_time_s: u16,
    /// The shortest hold time that is accepted, in seconds. Whether a hold time of 0 is accepted depends on
    /// `hold_time_s` only.
    pub hold_time_min_s: u16,
    /// The time between KEEPALIVEs in seconds, at least 1. It is limited to a third of the negotiated hold time, which
    /// is also the default.
    pub keepalive_s: Option<u16>,
    /// ConnectRetryTime, before its jitter.
    pub connect_retry: Duration,
    /// DelayOpenTime, if DelayOpen is on.
    pub delay_open: Option<Duration>,
    /// DampPeerOscillations: after a failed session the peer stays in Idle for `idle_hold`, twice as long each time. If
    /// this is off, the time is always `idle_hold`.
    pub damp_oscillations: bool,
    /// IdleHoldTime, before its jitter.
    pub idle_hold: Duration,
    /// The longest IdleHoldTime.
    pub idle_hold_max: Duration,
    /// A session that lasted this long does not count as an oscillation.
    pub stable_after: Duration,
    /// CollisionDetectEstablishedState.
    pub collision_detect_established: bool,
    /// SendNOTIFICATIONwithoutOPEN.
    pub notify_without_open: bool,
    /// How long the stream may accept no data (RFC 9687); by default 8 minutes, or two hold times if that is longer.
    pub send_hold: Option<Duration>,
    /// The families that we offer.
    pub families: Families,
    /// Families for which we accept several paths per prefix (RFC 7911).
    pub add_path_receive: Families,
    /// Families for which we send several paths per prefix.
    pub add_path_send: Families,
    /// Route refresh (RFC 2918), including enhanced refresh (RFC 7313).
    pub refresh: bool,
    /// Messages of up to 65,535 octets (RFC 8654).
    pub extended_messages: bool,
    /// Graceful restart (RFC 4724), if it is on.
    pub graceful_restart: Option<GracefulSettings>,
    /// Our role (RFC 9234).
    pub role: Option<Role>,
    /// Require the peer to state a role.
    pub role_strict: bool,
    /// Whether an external peer's paths have to start with its autonomous system (RFC 4271, section 6.3). This does not
    /// apply to route servers (RFC 7947), which are known by their role.
    pub enforce_first_as: bool,
    /// TCP options.
    pub transport: Transport,
    /// The most prefixes of each family that the peer may announce.
    pub prefix_limit: Option<PrefixLimit>,
    /// The import policy. Without one, all routes of internal peers are accepted, and none of external peers (RFC
    /// 8212).
    pub import: Option<Arc<Policy>>,
    /// The export policy; the same defaults apply.
    pub export: Option<Arc<Policy>>,
    /// MinRouteAdvertisementIntervalTimer (RFC 4271, section 9.2.1.1); zero turns it off.
    pub advertisement_interval: Duration,
    /// Whether the peer is a client of this route reflector (RFC 4456).
    pub is_client: bool,
    /// How often our own autonomous system may be in a path that is accepted.
    pub allow_own: u8,
    /// How many paths of each prefix are sent if several are sent, the best first; 0 for all.
    pub add_path_count: u16,
    /// How next hops are changed.
    pub next_hop: NextHopRule,
    /// Our next hop for IPv4 routes; by default our end of the connection.
    pub next_hop_v4: Option<Ipv4Addr>,
    /// Our next hop for IPv6 routes; by default our end of the connection.
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

/// Which pairs of policies are equal; policies are known by their addresses.
type Equal = HashMap<(*const Policy, *const Policy), bool>;

/// As [`SpeakerConfig::share`], for one peer.
fn share(new: &mut Arc<PeerSettings>, old: &Arc<PeerSettings>, known: &mut Equal) {
    let mut same = |new: &Option<Arc<Policy>>, old: &Option<Arc<Policy>>| {
        let (new, old) = (new.as_ref()?, old.as_ref()?);
        let pair = (Arc::as_ptr(new), Arc::as_ptr(old));
        let is_equal = *known.entry(pair).or_insert_with(|| new == old);
        (is_equal && !Arc::ptr_eq(new, old)).then(|| Arc::clone(old))
    };
    if let Some(import) = same(&new.import, &old.import) {
        Arc::make_mut(new).import = Some(import);
    }
    if let Some(export) = same(&new.export, &old.export) {
        Arc::make_mut(new).export = Some(export);
    }
    if new == old {
        *new = Arc::clone(old);
    }
}

impl PeerSettings {
    /// Whether a session with these settings may continue with others, because all negotiated settings are equal.
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
    /// How long a peer keeps our routes after we restart, in seconds, at most 4,095.
    pub restart_time_s: u16,
    /// The longest time for which a peer's stale routes are kept after its session is lost.
    pub stale_max: Duration,
    /// Whether our forwarding state survives a restart: the Forwarding State bit.
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

/// TCP options. A driver sets them on connections that it opens or accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transport {
    /// The key of TCP signatures (RFC 2385).
    pub md5: Option<Redacted<Vec<u8>>>,
    /// The TTL of sent segments; by default the kernel's.
    pub ttl: Option<u8>,
    /// Segments with a lower TTL are dropped (GTSM, RFC 5082).
    pub ttl_min: Option<u8>,
}

impl Transport {
    /// GTSM for a peer at most `hops` hops away; 1 for a neighbour.
    #[must_use]
    pub const fn gtsm(md5: Option<Redacted<Vec<u8>>>, hops: u8) -> Self {
        Self {
            md5,
            ttl: Some(255),
            ttl_min: Some(255 - hops.saturating_sub(1)),
        }
    }
}

/// The most prefixes that a peer may announce (RFC 4271, section 6.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixLimit {
    /// The session ends when there are more.
    pub prefixes_max: u32,
    /// When the peer may connect again. Without this it stays in Idle until an operator starts it.
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
    #[test]
    fn a_new_configuration_shares_what_is_equal() {
        let policy = |accepts: bool| {
            let policy = if accepts {
                Policy::accept()
            } else {
                Policy::deny()
            };
            Some(Arc::new(Policy::clone(&policy)))
        };
        let settings = |import, hold_time_s| PeerSettings {
            import: policy(import),
            export: policy(false),
            hold_time_s,
            ..PeerSettings::default()
        };
        let old = config(settings(true, 90));
        let shared = |new: PeerSettings| {
            let mut new = config(new);
            new.share(&old);
            let [old, new] = [&old, &new].map(|config| Arc::clone(&config.peers[0].settings));
            let is_same = |old: &Option<Arc<Policy>>, new: &Option<Arc<Policy>>| {
                Arc::ptr_eq(old.as_ref().unwrap(), new.as_ref().unwrap())
            };
            (
                Arc::ptr_eq(&old, &new),
                is_same(&old.import, &new.import),
                is_same(&old.export, &new.export),
            )
        };
        assert_eq!(shared(settings(true, 90)), (true, true, true));
        assert_eq!(shared(settings(true, 30)), (false, true, true));
        assert_eq!(shared(settings(false, 90)), (false, false, true));
    }
}
