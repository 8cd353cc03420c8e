//! What is the same for all links of an owner: timers, limits, and what is asked of peers.

use base::Duration;
use wire::ppp::{chap, protocol};

/// How a peer shows who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Authentication {
    /// PAP (RFC 1334).
    Pap,
    /// CHAP with MD5 (RFC 1994).
    ChapMd5,
}

impl Authentication {
    /// The data of LCP's Authentication-Protocol option (RFC 1661, section 6.2).
    pub(crate) fn option(self) -> &'static [u8] {
        const PAP: [u8; 2] = protocol::PAP.to_be_bytes();
        const CHAP: [u8; 2] = protocol::CHAP.to_be_bytes();
        const CHAP_MD5: [u8; 3] = [CHAP[0], CHAP[1], chap::MD5];
        match self {
            Self::Pap => &PAP,
            Self::ChapMd5 => &CHAP_MD5,
        }
    }

    /// What such an option asks for; `None` if we do not know it.
    pub(crate) fn from_option(data: &[u8]) -> Option<Self> {
        [Self::Pap, Self::ChapMd5]
            .into_iter()
            .find(|known| known.option() == data)
    }
}

/// Timers and limits of all links, and what is asked of peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The Restart timer (RFC 1661, section 4.6), also for PAP's requests and CHAP's challenges. 3 s.
    pub restart: Duration,
    /// Configure-Requests without an answer before a layer gives up. 10.
    pub configure_max: u8,
    /// Terminate-Requests without an answer before a layer is down. 2.
    pub terminate_max: u8,
    /// Configure-Naks before an option is rejected instead. 5.
    pub failure_max: u8,
    /// How long authentication may take, from LCP's opening to the owner's answer; zero: as long as it likes. 30 s.
    pub authentication_max: Duration,
    /// Control packets of a peer that are heeded in any one second, and so answered; a quarter of them may be of unknown
    /// protocols. Zero: all. 100.
    pub control_max_per_s: u16,
    /// How often a peer that is up is asked whether it is there, by Echo-Request; zero: never. 60 s.
    pub echo_interval: Duration,
    /// Echo-Requests without an answer before a link is given up. 3.
    pub echo_max: u8,
    /// How often a peer is challenged anew once it is up; zero: never.
    pub rechallenge_interval: Duration,
    /// The largest packet that we take; a peer is asked for no larger ones. 1,500 is the default that needs no option.
    pub mru: u16,
    /// Ways to authenticate that a peer may use, the first one asked for first; none: it need not.
    pub authenticate: Vec<Authentication>,
    /// Our name in CHAP's challenges.
    pub name: Vec<u8>,
    /// Whether to offer PFC and ACFC (RFC 1661, sections 6.5 and 6.6). What peers offer is always agreed to.
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

/// Where links have their random numbers from: magic numbers, challenges, interface identifiers.
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
