//! What an operator configures.

use base::Duration;
use wire::pppoe::{Mac, Vlans};

/// The largest PPP payload without RFC 4638: Ethernet's 1,500 bytes less PPPoE's header and PPP's protocol field.
pub(crate) const PAYLOAD_STANDARD: u16 = 1492;
/// Bytes of an Ethernet payload that PPPoE's header and PPP's protocol field take.
pub(crate) const OVERHEAD: u16 = 8;
/// The longest AC-Name or Service-Name.
const NAME_MAX: usize = 255;
/// The most bytes that all Service-Names may have together, with their tag headers: a PADO must have room for them.
const SERVICES_MAX: usize = 1_000;

/// The configuration of an endpoint. Client sessions use only `max_payload`, `timer_tick` and `limits.sessions_max`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// AC-Name: 1 to 255 bytes.
    pub ac_name: Box<[u8]>,
    /// The Service-Names offered, each of 1 to 255 bytes. Empty: any name is accepted, and returned as it was sent.
    pub services: Vec<Box<[u8]>>,
    /// Whether an empty Service-Name, which asks for any service, is accepted.
    pub accept_any_service: bool,
    /// The largest PPP payload agreed by PPP-Max-Payload (RFC 4638), in bytes; at 1492 or below the tag is ignored. The
    /// port's MTU less 8 is a further limit.
    pub max_payload: u16,
    /// Limits on sessions and on the rates of their set-up.
    pub limits: Limits,
    /// What happens to a request over `sessions_per_mac_max`.
    pub over_mac_limit: OverLimit,
    /// Hosts that get no answer.
    pub blacklist: Vec<MacPrefix>,
    /// How long a PADO waits, by the number of sessions, so that an access concentrator with fewer answers first. The
    /// last step whose `from_sessions` is reached applies. Sorted by `from_sessions`. Empty: no delay.
    pub pado_delay: Vec<DelayStep>,
    /// How long an AC-Cookie is valid.
    pub cookie_lifetime: Duration,
    /// How long an accepted session may stay without a PPP frame of its host.
    pub setup_timeout: Duration,
    /// PADTs per second that answer data of unknown sessions; 0: none.
    pub unknown_padts_per_s: u32,
    /// The resolution of timers. A change does not apply to an endpoint that exists.
    pub timer_tick: Duration,
}

/// Limits. A rate allows a burst of one second's worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sessions of all ports, both roles.
    pub sessions_max: u32,
    /// Sessions of one host, that is of one port, MAC address and VLANs; 0: no limit.
    pub sessions_per_mac_max: u32,
    /// Sessions of one line: of one Agent-Circuit-Id and Agent-Remote-Id, or else of one port's VLANs; 0: no limit. A
    /// host without either has no line.
    pub sessions_per_line_max: u32,
    /// Accepted sessions without a PPP frame of their host; a further PADR is ignored. 0: no limit.
    pub half_open_max: u32,
    /// PADRs answered per second; further ones are ignored, and hosts repeat them. 0: no limit.
    pub padrs_per_s: u32,
    /// PADRs of one host answered per second; repeated ones do not count. 0: no limit.
    pub padrs_per_mac_per_s: u32,
    /// PADIs answered per second; further ones are ignored. 0: no limit.
    pub padis_per_s: u32,
    /// PADIs of one host answered per second. 0: no limit.
    pub padis_per_mac_per_s: u32,
    /// PADIs of one port's VLAN answered per second, or of its untagged hosts, so that a flood in one VLAN leaves the rest
    /// of `padis_per_s` to the others. 0: no limit.
    pub padis_per_vlan_per_s: u32,
    /// PADOs that wait for their delay at the same time; further PADIs are ignored.
    pub pados_delayed_max: u32,
}

/// What happens to a request of a host that has `sessions_per_mac_max` sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverLimit {
    /// The request is refused.
    Refuse,
    /// The host's oldest session ends, which lets a host that restarted back in at once.
    ReplaceOldest,
}

/// A step of the PADO delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayStep {
    /// Applies from this number of sessions on.
    pub from_sessions: u32,
    /// How long a PADO waits; `None`: PADIs are not answered.
    pub delay: Option<Duration>,
}

/// MAC addresses that have the same first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacPrefix {
    /// The address; bits outside of the mask do not count.
    pub mac: Mac,
    /// The bits that count.
    pub mask: Mac,
}

impl MacPrefix {
    /// One address.
    #[must_use]
    pub const fn host(mac: Mac) -> Self {
        Self {
            mac,
            mask: Mac([0xff; 6]),
        }
    }

    /// All addresses that have the first `bits` bits of `mac`; above 48, the address itself.
    #[must_use]
    pub fn new(mac: Mac, bits: u8) -> Self {
        let [_, _, mask @ ..] = (!0_u64)
            .checked_shl(48_u32.saturating_sub(bits.into()))
            .unwrap_or(0)
            .to_be_bytes();
        Self {
            mac,
            mask: Mac(mask),
        }
    }

    /// Whether an address is one of them.
    #[must_use]
    pub fn contains(&self, mac: Mac) -> bool {
        let pairs = self.mac.0.iter().zip(mac.0).zip(self.mask.0);
        pairs.fold(0, |differs, ((own, other), mask)| {
            differs | ((own ^ other) & mask)
        }) == 0
    }
}

/// The configuration of a port. `None`: the endpoint's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// The interface's MTU in bytes.
    pub mtu: u16,
    /// Bytes of the MTU that two VLAN tags take. Drivers leave room for one tag beside the MTU.
    pub two_tags_take: u16,
    /// Whether PADI and PADR are answered.
    pub server: bool,
    /// AC-Name.
    pub ac_name: Option<Box<[u8]>>,
    /// The Service-Names offered.
    pub services: Option<Vec<Box<[u8]>>>,
}

impl Default for PortConfig {
    fn default() -> Self {
        Self {
            mtu: 1500,
            two_tags_take: 0,
            server: true,
            ac_name: None,
            services: None,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ac_name: b"headend".as_slice().into(),
            services: Vec::new(),
            accept_any_service: true,
            max_payload: 1500,
            limits: Limits::default(),
            over_mac_limit: OverLimit::ReplaceOldest,
            blacklist: Vec::new(),
            pado_delay: Vec::new(),
            cookie_lifetime: Duration::from_secs(60),
            setup_timeout: Duration::from_secs(30),
            unknown_padts_per_s: 1_000,
            timer_tick: Duration::from_millis(1),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions_max: 65_534,
            sessions_per_mac_max: 1,
            sessions_per_line_max: 0,
            half_open_max: 10_000,
            padrs_per_s: 5_000,
            padrs_per_mac_per_s: 5,
            padis_per_s: 10_000,
            padis_per_mac_per_s: 5,
            padis_per_vlan_per_s: 5_000,
            pados_delayed_max: 4_096,
        }
    }
}

/// A value of a [`Config`] or a [`PortConfig`] that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigFault {
    /// AC-Name.
    #[error("ac_name has {0} bytes; it must have 1 to 255")]
    AcName(usize),
    /// A Service-Name.
    #[error("a service has {0} bytes; it must have 1 to 255")]
    Service(usize),
    /// All Service-Names.
    #[error("the services have {0} bytes together with 4 for each; at most 1000 fit into a PADO")]
    Services(usize),
    /// No session could be accepted.
    #[error("sessions_max is 0; it must be 1 or more")]
    SessionsMax,
    /// The MTU of a port.
    #[error("the MTU is {0}; it must be 576 or more")]
    Mtu(u16),
    /// The steps of the PADO delay.
    #[error(
        "pado_delay: {0} sessions do not come after {1}; each step must have more than the step before"
    )]
    DelayOrder(u32, u32),
    /// A host would always answer too late.
    #[error("pado_delay is {delay:?}, which is not less than the cookie's lifetime {lifetime:?}")]
    DelayOverLifetime {
        /// The longest delay.
        delay: Duration,
        /// The cookie's lifetime.
        lifetime: Duration,
    },
    /// A duration that must not be zero.
    #[error("{0} is zero")]
    Zero(&'static str),
}

impl Config {
    /// Checks the values.
    ///
    /// # Errors
    /// The first value that cannot be used.
    pub fn validate(&self) -> Result<(), ConfigFault> {
        check_name(&self.ac_name)?;
        check_services(&self.services)?;
        if self.limits.sessions_max == 0 {
            return Err(ConfigFault::SessionsMax);
        }
        for (name, value) in [
            ("cookie_lifetime", self.cookie_lifetime),
            ("setup_timeout", self.setup_timeout),
            ("timer_tick", self.timer_tick),
        ] {
            if value == Duration::ZERO {
                return Err(ConfigFault::Zero(name));
            }
        }
        for pair in self.pado_delay.windows(2) {
            let (before, after) = (pair[0].from_sessions, pair[1].from_sessions);
            if after <= before {
                return Err(ConfigFault::DelayOrder(after, before));
            }
        }
        let longest = self.pado_delay.iter().filter_map(|step| step.delay).max();
        match longest {
            Some(delay) if delay >= self.cookie_lifetime => Err(ConfigFault::DelayOverLifetime {
                delay,
                lifetime: self.cookie_lifetime,
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// The wait of a PADO while there are `sessions` sessions; `None`: there is no answer.
    pub(crate) fn delay(&self, sessions: usize) -> Option<Duration> {
        let reached = |step: &&DelayStep| step.from_sessions as usize <= sessions;
        match self.pado_delay.iter().take_while(reached).last() {
            Some(step) => step.delay,
            None => Some(Duration::ZERO),
        }
    }
}

impl PortConfig {
    /// Checks the values.
    ///
    /// # Errors
    /// The first value that cannot be used.
    pub fn validate(&self) -> Result<(), ConfigFault> {
        if let Some(name) = &self.ac_name {
            check_name(name)?;
        }
        if let Some(services) = &self.services {
            check_services(services)?;
        }
        if self.mtu < 576 {
            return Err(ConfigFault::Mtu(self.mtu));
        }
        Ok(())
    }

    /// The largest PPP payload that a frame with these tags has room for.
    fn room(&self, vlans: Vlans) -> u16 {
        let tags = match vlans.inner() {
            Some(_) => self.two_tags_take,
            None => 0,
        };
        self.mtu.saturating_sub(OVERHEAD + tags)
    }

    /// The largest PPP payload without PPP-Max-Payload.
    pub(crate) fn payload_standard(&self, vlans: Vlans) -> u16 {
        PAYLOAD_STANDARD.min(self.room(vlans))
    }

    /// The PPP payload that follows from `asked`, the host's PPP-Max-Payload, and our own limit: "min
    /// (PPP-Max-Payload-Tag, Interface MTU-8)" (RFC 4638, section 5.1). `None`: no more than the standard one.
    pub(crate) fn payload_over(&self, asked: Option<u16>, own: u16, vlans: Vlans) -> Option<u16> {
        let payload = asked?.min(own).min(self.room(vlans));
        (payload > PAYLOAD_STANDARD).then_some(payload)
    }
}

fn check_name(name: &[u8]) -> Result<(), ConfigFault> {
    match name.len() {
        1..=NAME_MAX => Ok(()),
        len => Err(ConfigFault::AcName(len)),
    }
}

fn check_services(services: &[Box<[u8]>]) -> Result<(), ConfigFault> {
    if let Some(name) = services
        .iter()
        .find(|name| !(1..=NAME_MAX).contains(&name.len()))
    {
        return Err(ConfigFault::Service(name.len()));
    }
    let bytes = services.iter().map(|name| name.len() + 4).sum();
    if bytes > SERVICES_MAX {
        return Err(ConfigFault::Services(bytes));
    }
    Ok(())
}
