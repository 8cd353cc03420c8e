//! Configuration of an endpoint.

use base::timer::TimerKind;
use base::{Duration, Redacted};
use wire::l2tp::DigestType;

/// Configuration of an endpoint, checked by [`Config::validate`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Host Name AVP that we send, 1 to 255 octets (RFC 2661 4.4.3).
    pub host_name: String,
    /// Vendor Name AVP that we send, at most 255 octets; empty sends none.
    pub vendor_name: String,
    /// Router ID AVP of L2TPv3 (RFC 3931 5.4.3).
    pub router_id: u32,
    /// Whether SCCRQs are answered: whether this is an LNS.
    pub accept: bool,
    /// The supported protocol versions.
    pub versions: Versions,
    /// Secret for tunnel authentication, AVP hiding and message digests.
    pub secret: Option<Redacted<Vec<u8>>>,
    /// Hide those AVPs that may be hidden; needs a secret.
    pub hide: bool,
    /// Receive Window Size that we advertise, at least 1.
    pub receive_window: u16,
    /// Put a Tie Breaker AVP into our SCCRQs, so that there is one tunnel to a peer.
    pub tie_breaker: bool,
    /// Idle time before a HELLO, less a random part of up to an eighth, so that tunnels
    /// do not synchronise (RFC 3931 4.4); zero sends none.
    pub hello_interval: Duration,
    /// Retransmission of control messages (RFC 2661 5.8).
    pub retransmit: Retransmit,
    /// How long a closed tunnel is kept for late duplicates.
    pub hold: Duration,
    /// How long a tunnel stays open without a session; zero: no limit.
    pub idle_tunnel: Duration,
    /// How long a tunnel or a session may take to be established.
    pub setup_timeout: Duration,
    /// The size limit of every table.
    pub limits: Limits,
    /// Which timer store.
    pub timers: TimerKind,
    /// The tick of the timer wheel.
    pub tick: Duration,
    /// How a peer's record is found by its address.
    pub peer_lookup: PeerLookup,
    /// Whether tunnels get a config id.
    pub config_ids: ConfigIds,
    /// How an OCRQ is answered.
    pub outgoing_calls: OutgoingCalls,
    /// Pseudowire types offered and taken in L2TPv3: those whose frames the owner carries.
    pub pseudowires: Vec<Pseudowire>,
    /// Length of the cookie that we assign in L2TPv3: 0, 4 or 8 octets.
    pub cookie_len: u8,
    /// The algorithm of the Message Digest AVP that we send.
    pub digest: DigestType,
}

/// The supported protocol versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// L2TPv2, RFC 2661.
    pub v2: bool,
    /// L2TPv3 over UDP, RFC 3931.
    pub v3: bool,
}

/// Retransmission of control messages (RFC 2661 5.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmit {
    /// Wait before the first retransmission; doubles from there.
    pub first: Duration,
    /// The longest wait; the RFC requires at least 8 s.
    pub cap: Duration,
    /// Retransmissions before the tunnel is closed.
    pub tries: u8,
}

/// Limits of all tables. Refusals and removals at a limit are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tunnels in any state but held; a further SCCRQ gets StopCCN 2, error 4.
    pub tunnels: u32,
    /// Tunnels opened by peers and not yet established, or refused and not yet settled; a further SCCRQ evicts
    /// the oldest of them.
    pub half_open: u32,
    /// Half-open tunnels of one source: an IPv4 address or an IPv6 /64. A further SCCRQ from there is ignored.
    pub half_open_per_source: u32,
    /// Above this number of half-open tunnels, an SCCRQ draws two datagrams at most: the answer and one
    /// retransmission.
    pub half_open_flood: u32,
    /// All sessions; a further ICRQ or OCRQ gets CDN 4.
    pub sessions: u32,
    /// Sessions of one tunnel.
    pub sessions_per_tunnel: u32,
    /// Closed tunnels kept; above the limit the oldest is removed.
    pub held: u32,
    /// Ended tunnels and sessions whose reasons are kept, each.
    pub history: u32,
}

/// How a peer's record is found by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerLookup {
    /// A hash table: O(1).
    Hash,
    /// A walk over a list, as in the design of 2013; kept for comparison.
    List,
}

/// Whether tunnels get an id that is sequential and unique for one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigIds {
    /// None.
    Off,
    /// The first free one, O(1).
    FirstFree,
    /// The first free one, found by a peer look-up and a walk over that peer's tunnels for each candidate, as
    /// in the design of 2013; kept for comparison.
    Probe,
}

/// How an OCRQ is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutgoingCalls {
    /// CDN 4: no facilities.
    Refuse,
    /// OCRP and OCCN at once, for a LAC without bearers.
    Answer,
    /// OCRP, and an event that asks the owner to place the call.
    Ask,
}

/// A pseudowire type (RFC 3931 5.4.4; IANA's registry).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pseudowire {
    /// Ethernet VLAN, 0x0004 (RFC 4719).
    Vlan,
    /// Ethernet port, 0x0005 (RFC 4719).
    Ethernet,
    /// PPP, 0x0007.
    Ppp,
}

impl Pseudowire {
    /// The number on the wire.
    pub const fn number(self) -> u16 {
        match self {
            Self::Vlan => 4,
            Self::Ethernet => 5,
            Self::Ppp => 7,
        }
    }

    /// The type with this number.
    pub const fn from_number(number: u16) -> Option<Self> {
        match number {
            4 => Some(Self::Vlan),
            5 => Some(Self::Ethernet),
            7 => Some(Self::Ppp),
            _ => None,
        }
    }

    /// Its name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vlan => "vlan",
            Self::Ethernet => "ethernet",
            Self::Ppp => "ppp",
        }
    }
}

/// A fault of a [`Config`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct ConfigFault {
    /// The field at fault.
    pub key: &'static str,
    /// The fault, and the values that are allowed.
    pub message: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            host_name: "headend".into(),
            vendor_name: "headend".into(),
            router_id: 1,
            accept: false,
            versions: Versions { v2: true, v3: true },
            secret: None,
            hide: false,
            receive_window: 32,
            tie_breaker: false,
            hello_interval: Duration::from_secs(60),
            retransmit: Retransmit {
                first: Duration::from_secs(1),
                cap: Duration::from_secs(8),
                tries: 5,
            },
            hold: Duration::from_secs(31),
            idle_tunnel: Duration::ZERO,
            setup_timeout: Duration::from_secs(60),
            limits: Limits {
                tunnels: 262_144,
                half_open: 65_536,
                half_open_per_source: 16_384,
                half_open_flood: 1_024,
                sessions: 524_288,
                sessions_per_tunnel: 65_535,
                held: 65_536,
                history: 1_024,
            },
            timers: TimerKind::Wheel,
            tick: Duration::from_millis(8),
            peer_lookup: PeerLookup::Hash,
            config_ids: ConfigIds::Off,
            outgoing_calls: OutgoingCalls::Refuse,
            pseudowires: vec![Pseudowire::Ppp],
            cookie_len: 8,
            digest: DigestType::HmacMd5,
        }
    }
}

impl Config {
    /// Checks the values.
    ///
    /// # Errors
    /// The first field at fault, and the values that are allowed.
    pub fn validate(&self) -> Result<(), ConfigFault> {
        let fault = |key, message: &str| {
            Err(ConfigFault {
                key,
                message: message.into(),
            })
        };
        if !(1..=255).contains(&self.host_name.len()) {
            return fault("host_name", "must have 1 to 255 octets");
        }
        if self.vendor_name.len() > 255 {
            return fault("vendor_name", "must have at most 255 octets");
        }
        if !self.versions.v2 && !self.versions.v3 {
            return fault("versions", "must name 2, 3 or both");
        }
        if self.secret.as_ref().is_some_and(|s| s.reveal().is_empty()) {
            return fault("secret", "must not be empty");
        }
        if self.hide && self.secret.is_none() {
            return fault("hide", "needs a secret");
        }
        if self.receive_window == 0 {
            return fault("receive_window", "must be 1 or more (RFC 2661 5.8)");
        }
        if self.retransmit.first == Duration::ZERO {
            return fault("retransmit.first", "must be more than 0");
        }
        if self.retransmit.cap < self.retransmit.first {
            return fault("retransmit.cap", "must not be below the first interval");
        }
        if self.retransmit.tries == 0 {
            return fault("retransmit.tries", "must be 1 or more");
        }
        if self.tick == Duration::ZERO {
            return fault("tick", "must be more than 0");
        }
        if !matches!(self.cookie_len, 0 | 4 | 8) {
            return fault("cookie_len", "must be 0, 4 or 8 (RFC 3931 4.1)");
        }
        if self.versions.v3 && self.pseudowires.is_empty() {
            return fault("pseudowires", "must name one or more for L2TPv3");
        }
        let limits = &self.limits;
        if limits.tunnels == 0 || limits.tunnels > crate::ids::MAX_TUNNELS {
            return fault("limits.tunnels", "must be 1 to 1048576");
        }
        if limits.half_open_per_source == 0 {
            return fault("limits.half_open_per_source", "must be 1 or more");
        }
        if limits.sessions == 0 || limits.sessions > crate::ids::MAX_SESSIONS {
            return fault("limits.sessions", "must be 1 to 1048576");
        }
        Ok(())
    }
}
