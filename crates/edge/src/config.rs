//! Configuration that all subscribers of an edge share.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use base::Duration;

use crate::garden::Garden;
use crate::queue::Queues;
use crate::switch::Switching;
use crate::v6::{PrefixWish, Settings};

/// Limits and defaults of an [`crate::Edge`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Whether sessions in which we are the network (LNS) end here. Otherwise their frames are discarded.
    pub terminate: bool,
    /// Timers and options of the links to subscribers.
    pub ppp: ppp::Config,
    /// Our address in IPCP, one for all; also the source of the ICMP errors that we send.
    pub address: Ipv4Addr,
    /// Our IPv6 address, for ICMP errors alone; without it none are sent about IPv6 packets.
    pub address_v6: Ipv6Addr,
    /// DNS servers that subscribers get (RFC 1877).
    pub dns: [Option<Ipv4Addr>; 2],
    /// Whether IPv6CP is offered.
    pub ipv6: bool,
    /// What is advertised and leased by IPv6 on the links.
    pub v6: Arc<Settings>,
    /// The prefix that our clients ask for, where they also act on Router Advertisements; `None`: they do neither.
    pub uplink: Option<PrefixWish>,
    /// The path MTU to peers, in bytes. A packet that does not fit beside the tunnel's headers is fragmented inside the
    /// tunnel, or refused with an error that names the size that fits.
    pub path_mtu: u16,
    /// Whether the MSS of TCP connections is lowered to the size that fits (RFC 4459, section 3.2, gives the
    /// reason).
    pub clamp_mss: bool,
    /// Longest time until packets may flow, after the session came up or the link restarted; zero: unlimited.
    pub setup_timeout: Duration,
    /// Time between interim accounting entries, unless the profile has one; zero: none.
    pub interim_interval: Duration,
    /// Longest time without a data packet, unless the profile has one; zero: unlimited.
    pub idle_timeout: Duration,
    /// Longest session, unless the profile has a limit; zero: unlimited.
    pub session_timeout: Duration,
    /// Whether packets from one subscriber to another are dropped.
    pub isolate: bool,
    /// The filter of subscribers whose profile names none.
    pub filter: Option<Box<str>>,
    /// Templates and links of subscribers' queues, and who has which.
    pub queues: Arc<Queues>,
    /// The walled gardens.
    pub gardens: Arc<[Arc<Garden>]>,
    /// Whether a change of a connected subscriber makes an interim entry.
    pub interim_on_change: bool,
    /// Limit on subscribers, those being set up included.
    pub subscribers_max: u32,
    /// Limit on routes to subscribers: their own addresses, their prefixes, and the networks behind them.
    pub routes_max: u32,
    /// Limit on the queued packets of all shaped subscribers, in each direction.
    pub queue_packets_max: u32,
    /// Limit on their bytes.
    pub queue_octets_max: u64,
    /// Number of paths, one for each core that forwards packets; at least one.
    pub paths: u16,
    /// Whether a data message arrives on the path that the remainder of its session id by [`Config::paths`] names. Then
    /// the queues of a subscriber without a shared link are on that path.
    pub by_session: bool,
    /// Whether added and removed routes are reported: [`crate::Event::Network`].
    pub tells_networks: bool,
    /// Whether accounting entries are queued for [`crate::Edge::poll_account`].
    pub accounting: bool,
    /// Which sessions are handed over to which LNS.
    pub switching: Arc<Switching>,
    /// Names of the PPPoE interfaces by their ports, for NAS-Port-Id.
    pub interfaces: Arc<[Box<str>]>,
    /// Limit on remembered subscribers that ended.
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
            v6: Arc::default(),
            uplink: None,
            path_mtu: 1_500,
            clamp_mss: true,
            setup_timeout: Duration::from_secs(120),
            interim_interval: Duration::ZERO,
            idle_timeout: Duration::ZERO,
            session_timeout: Duration::ZERO,
            isolate: false,
            filter: None,
            queues: Arc::default(),
            gardens: Arc::default(),
            interim_on_change: false,
            subscribers_max: 1 << 17,
            routes_max: 1 << 19,
            queue_packets_max: 1 << 16,
            queue_octets_max: 64 << 20,
            paths: 1,
            by_session: false,
            tells_networks: false,
            accounting: false,
            switching: Arc::default(),
            interfaces: Arc::default(),
            history_max: 4_096,
            tick: Duration::from_millis(10),
        }
    }
}
