//! What is the same for all subscribers of an edge.

use core::net::{Ipv4Addr, Ipv6Addr};

use base::Duration;

/// Limits and defaults of an [`crate::Edge`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Whether the L2TP sessions of an LNS end here; otherwise their frames are for nobody.
    pub terminate: bool,
    /// Timers and options of the links to subscribers.
    pub ppp: ppp::Config,
    /// Our address in IPCP, one for all; also the source of the ICMP errors that we send.
    pub address: Ipv4Addr,
    /// Our IPv6 address, for ICMP errors alone; without it none are sent about IPv6 packets.
    pub address_v6: Ipv6Addr,
    /// DNS servers that subscribers are told (RFC 1877).
    pub dns: [Option<Ipv4Addr>; 2],
    /// Whether IPv6CP is offered.
    pub ipv6: bool,
    /// The largest IP packet, in octets, that the way to a peer takes whole; what does not fit into it beside the
    /// tunnel's headers is fragmented within, or refused with the size that would fit.
    pub path_mtu: u16,
    /// Whether the MSS of TCP connections is lowered to what fits (RFC 4459, section 3.2, has why).
    pub clamp_mss: bool,
    /// A subscriber to whom no packet may flow so long after its session came up, or after its link began anew, is
    /// ended; zero: never.
    pub setup_timeout: Duration,
    /// How often an account is given while a subscriber is up, unless its profile says; zero: never.
    pub interim_interval: Duration,
    /// A subscriber without a packet of data for so long is ended, unless its profile says; zero: never.
    pub idle_timeout: Duration,
    /// A subscriber is ended after so long, unless its profile says; zero: never.
    pub session_timeout: Duration,
    /// The filter of those whose profile names none.
    pub filter: Option<Box<str>>,
    /// Subscribers at a time, with those that are being set up.
    pub subscribers_max: u32,
    /// Routes to subscribers, their own addresses and the networks behind them.
    pub routes_max: u32,
    /// Paths that packets may take, one for each core that passes them; at least one.
    pub paths: u16,
    /// Whether it is told which networks lead to subscribers: [`crate::Event::Network`].
    pub tells_networks: bool,
    /// Whether accounts are asked for by [`crate::Edge::poll_account`].
    pub accounting: bool,
    /// Ended subscribers that are remembered with the reason.
    pub history_max: usize,
    /// Resolution of the subscribers' timers.
    pub tick: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            terminate: false,
            ppp: ppp::Config::default(),
            address: Ipv4Addr::new(192, 0, 2, 1),
            address_v6: Ipv6Addr::UNSPECIFIED,
            dns: [None; 2],
            ipv6: true,
            path_mtu: 1_500,
            clamp_mss: true,
            setup_timeout: Duration::from_secs(120),
            interim_interval: Duration::ZERO,
            idle_timeout: Duration::ZERO,
            session_timeout: Duration::ZERO,
            filter: None,
            subscribers_max: 1 << 17,
            routes_max: 1 << 18,
            paths: 1,
            tells_networks: false,
            accounting: false,
            history_max: 4_096,
            tick: Duration::from_millis(10),
        }
    }
}
