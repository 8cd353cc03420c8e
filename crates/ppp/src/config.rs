//! Configuration that all links of an owner share: timers, limits and authentication protocols.

use base::Duration;
use wire::ppp::{chap, mschap, protocol};

/// An authentication protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Authentication {
    /// PAP (RFC 1334).
    Pap,
    /// CHAP with MD5 (RFC 1994).
    ChapMd5,
    /// MS-CHAP version 2 (RFC 2759).
    MsChapV2,
    /// EAP (RFC 3748), whose methods only the owner's server knows. As a client we do not authenticate by it.
    Eap,
}

impl Authentication {
    /// The data of LCP's Authentication-Protocol option (RFC 1661, section 6.2).
    pub(crate) fn option(self) -> &'static [u8] {
        const PAP: [u8; 2] = protocol::PAP.to_be_bytes();
        const CHAP: [u8; 2] = protocol::CHAP.to_be_bytes();
        const CHAP_MD5: [u8; 3] = [CHAP[0], CHAP[1], chap::MD5];
        const MS_CHAP_V2: [u8; 3] = [CHAP[0], CHAP[1], mschap::ALGORITHM];
        const EAP: [u8; 2] = protocol::EAP.to_be_bytes();
        match self {
            Self::Pap => &PAP,
            Self::ChapMd5 => &CHAP_MD5,
            Self::MsChapV2 => &MS_CHAP_V2,
            Self::Eap => &EAP,
        }
    }

    /// The protocol that an option's data names. `None` if it is unknown.
    pub(crate) fn from_option(data: &[u8]) -> Option<Self> {
        [Self::Pap, Self::ChapMd5, Self::MsChapV2, Self::Eap]
            .into_iter()
            .find(|known| known.option() == data)
    }
}

/// Timers, limits and options of all links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The Restart timer (RFC 1661, section 4.6), also for PAP's requests and CHAP's challenges. 3 s.
    pub restart: Duration,
    /// Configure-Requests without an answer before a layer gives up. 10.
    pub configure_max: u8,
    /// Terminate-Requests without an answer before a layer finishes. 2.
    pub terminate_max: u8,
    /// Configure-Naks before an option is rejected instead. 5.
    pub failure_max: u8,
    /// Longest time from LCP's opening to the owner's answer; zero: unlimited. 30 s.
    pub authentication_max: Duration,
    /// Limit on a peer's control packets per second. Packets above it are ignored. Unknown protocols may use a quarter
    /// of it. Zero: unlimited. 100.
    pub control_max_per_s: u16,
    /// Time between Echo-Requests to a peer that is up; zero: none. 60 s.
    pub echo_interval: Duration,
    /// Unanswered Echo-Requests before a link is ended. 3.
    pub echo_max: u8,
    /// Time between challenges to a peer that is up; zero: none.
    pub rechallenge_interval: Duration,
    /// The MRU that we ask peers for. 1,500 is the default, which needs no option.
    pub mru: u16,
    /// Authentication protocols that a peer may use, in order of preference. Empty: it need not authenticate.
    pub authenticate: Vec<Authentication>,
    /// Our name in CHAP's challenges.
    pub name: Vec<u8>,
    /// Whether to offer PFC and ACFC (RFC 1661, sections 6.5 and 6.6). Offers from peers are always accepted.
    pub compress: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            restart: Duration::from_secs(3),
            configure_max: 10,
            terminate_max: 2,
            failure_max: 5,
            authentication_max: Duration::from_secs(30),
            control_max_per_s: 100,
            echo_interval: Duration::from_secs(60),
            echo_max: 3,
            rechallenge_interval: Duration::ZERO,
            mru: 1_500,
            authenticate: Vec::new(),
            name: b"headend".to_vec(),
            compress: false,
        }
    }
}

/// Random numbers for links: magic numbers, challenges, interface identifiers.
pub trait Random {
    /// Fills a buffer.
    fn fill(&mut self, octets: &mut [u8]);

    /// A number other than zero.
    fn number(&mut self) -> u32 {
        loop {
            let mut octets = [0; 4];
            self.fill(&mut octets);
            match u32::from_be_bytes(octets) {
                0 => {}
                number => return number,
            }
        }
    }
}
