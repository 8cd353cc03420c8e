//! Settings of a NAT, and which of them contradict each other.

use base::Duration;

use crate::range::Range;
use crate::share::Share;

/// Which remote hosts may send to a mapping (RFC 4787 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Filtering {
    /// All: RFC 4787 REQ-8, RFC 6888 REQ-7.
    #[default]
    EndpointIndependent,
    /// Those at an address that the mapping has sent to.
    AddressDependent,
}

/// Idle time-outs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// UDP mappings: 5 minutes (RFC 4787 REQ-5c), at least 2 (REQ-5).
    pub udp: Duration,
    /// ICMP query mappings: 60 seconds, the least (RFC 5508 REQ-2).
    pub icmp: Duration,
    /// Established TCP connections: 2 hours and 4 minutes, the least (RFC 5382 REQ-5).
    pub tcp_established: Duration,
    /// TCP connections that are opening: 4 minutes; may be less (RFC 7857 section 2.1).
    pub tcp_opening: Duration,
    /// TCP connections that are closing, or were reset: 4 minutes, the least (RFC 5382 REQ-5, RFC 7857 section 2.2).
    pub tcp_closing: Duration,
    /// Whether packets from outside refresh UDP and ICMP mappings too (RFC 4787 REQ-6a).
    pub inbound_refreshes: bool,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            udp: Duration::from_secs(300),
            icmp: Duration::from_secs(60),
            tcp_established: Duration::from_secs(2 * 3600 + 4 * 60),
            tcp_opening: Duration::from_secs(240),
            tcp_closing: Duration::from_secs(240),
            inbound_refreshes: false,
        }
    }
}

/// Limits of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Mappings of all subscribers.
    pub mappings_max: u32,
    /// Connections and remote addresses beyond the first of each mapping.
    pub sessions_max: u32,
    /// The same, of one mapping.
    pub sessions_per_mapping: u32,
    /// Subscribers at once.
    pub subscribers_max: u32,
    /// Port blocks of one subscriber.
    pub blocks_per_subscriber: u16,
    /// Mappings of one subscriber, of all protocols.
    pub mappings_per_subscriber: u32,
    /// New mappings of one subscriber in a second, and how many it may make at once after a pause; 0 for no limit.
    pub new_per_second: u32,
    /// Ports of UDP and ICMP that wait after their time-out (RFC 6888 REQ-8). Beyond it they are free at once.
    pub held_ports_max: u32,
    /// Fragmented datagrams that are being translated. The oldest gives way.
    pub fragmented_max: u32,
    /// Fragments that wait for their datagram's first one.
    pub waiting_fragments_max: u32,
    /// Control connections of FTP that are followed.
    pub ftp_controls_max: u32,
    /// Events that wait for the caller. No port block is allocated beyond it, so no allocation is missing in the log.
    pub events_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            mappings_max: 1_000_000,
            sessions_max: 500_000,
            sessions_per_mapping: 1024,
            subscribers_max: 65_536,
            blocks_per_subscriber: 8,
            mappings_per_subscriber: 8192,
            new_per_second: 0,
            held_ports_max: 200_000,
            fragmented_max: 4096,
            waiting_fragments_max: 256,
            ftp_controls_max: 4096,
            events_max: 65_536,
        }
    }
}

/// Ports that follow from the inside address, so that nobody has to log them (RFC 7422).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deterministic {
    /// The inside addresses (I), in the order of their port ranges.
    pub inside: Vec<Range>,
    /// The dynamic pool factor (D): how many shares of an address's ports are left for blocks on demand.
    pub dynamic: u16,
}

/// A destination that is not translated (RFC 6888 REQ-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exempt {
    /// Destination addresses.
    pub addresses: Range,
    /// Destination ports, of TCP and UDP; `None` for every packet.
    pub ports: Option<(u16, u16)>,
}

/// Settings of a NAT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// External addresses, contiguous or not (RFC 6888 REQ-3).
    pub externals: Vec<Range>,
    /// The first port of port blocks: 1,024 or more. Ports below it are only for port forwarding.
    pub port_first: u16,
    /// Ports of a block on demand.
    pub block_ports: u16,
    /// Ports by inside address, if wanted.
    pub deterministic: Option<Deterministic>,
    /// Which remote hosts may send to a mapping.
    pub filtering: Filtering,
    /// Idle time-outs.
    pub timeouts: Timeouts,
    /// How long a port of UDP or ICMP stays out of use after its time-out, and a block after its last port: 120 s (RFC
    /// 6888 REQ-8).
    pub hold: Duration,
    /// Whether a subscriber whose external address has no free block may get one of another address ("soft" pairing, RFC
    /// 7857 section 4).
    pub soft_pairing: bool,
    /// Whether a subscriber may send to the external port of another (RFC 4787 REQ-9, which asks for it).
    pub hairpinning: bool,
    /// Destinations that are not translated.
    pub exempt: Vec<Exempt>,
    /// Whether the addresses in commands of active FTP are translated (RFC 5382 REQ-6).
    pub ftp: bool,
    /// Limits.
    pub limits: Limits,
    /// Which of several NATs with the same external addresses it is ([`Config::share`]).
    pub share: Share,
    /// Random numbers of the caller: they key hash tables and choose ports (RFC 7857 section 9).
    pub seed: [u64; 3],
}

impl Config {
    /// The defaults, with these external addresses.
    #[must_use]
    pub fn new(externals: Vec<Range>, seed: [u64; 3]) -> Self {
        Self {
            externals,
            port_first: 1024,
            block_ports: 512,
            deterministic: None,
            filtering: Filtering::default(),
            timeouts: Timeouts::default(),
            hold: Duration::from_secs(120),
            soft_pairing: false,
            hairpinning: true,
            exempt: Vec::new(),
            ftp: false,
            limits: Limits::default(),
            share: Share::default(),
            seed,
        }
    }

    /// Whether the settings fit together and keep to the RFCs' minima.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_pool()?;
        self.check_timeouts()?;
        let limits = &self.limits;
        let tables = [
            limits.mappings_max,
            limits.sessions_max,
            limits.subscribers_max,
        ];
        if tables.iter().any(|&max| max == 0 || max > 1 << 30) {
            return Err(ConfigError::Limit);
        }
        match limits.blocks_per_subscriber {
            0 => Err(ConfigError::Limit),
            _ => Ok(()),
        }
    }

    fn check_pool(&self) -> Result<(), ConfigError> {
        let total: u64 = self.externals.iter().map(Range::len).sum();
        match total {
            0 => return Err(ConfigError::NoExternals),
            1..=ADDRESSES_MAX => {}
            _ => return Err(ConfigError::ManyExternals(total)),
        }
        let mut sorted = self.externals.clone();
        sorted.sort();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0].overlaps(&pair[1])) {
            return Err(ConfigError::Overlap(pair[0], pair[1]));
        }
        if self.port_first < 1024 {
            return Err(ConfigError::PortFirst(self.port_first));
        }
        let ports = 65_536 - u32::from(self.port_first);
        if self.block_ports < 16 || u32::from(self.block_ports) > ports {
            return Err(ConfigError::BlockPorts(self.block_ports));
        }
        self.check_deterministic(total, ports)?;
        // Neighbouring addresses start with neighbouring NATs: so many have a block of some address.
        let blocks = u64::from(self.division().dynamic);
        let served = (total + blocks).saturating_sub(1);
        match blocks > 0 && served < u64::from(self.share.of()) {
            true => Err(ConfigError::FewBlocks(self.share.of(), served)),
            false => Ok(()),
        }
    }

    /// How the ports of each address are divided.
    pub(crate) fn division(&self) -> Division {
        let first = u32::from(self.port_first);
        let ports = 65_536 - first;
        let (fixed, fixed_ports) = match &self.deterministic {
            None => (0, 0),
            Some(deterministic) => {
                let inside: u64 = deterministic.inside.iter().map(Range::len).sum();
                let outside: u64 = self.externals.iter().map(Range::len).sum();
                let ratio = inside.div_ceil(outside) as u32;
                (ratio, ports / (ratio + u32::from(deterministic.dynamic)))
            }
        };
        let split = first + fixed * fixed_ports;
        // Without a dynamic share there are no blocks on demand, even if ports are left over.
        let dynamic = match &self.deterministic {
            Some(deterministic) if deterministic.dynamic == 0 => 0,
            _ => (65_536 - split) / u32::from(self.block_ports),
        };
        Division {
            first,
            fixed,
            fixed_ports,
            split,
            dynamic,
        }
    }

    fn check_deterministic(&self, total: u64, ports: u32) -> Result<(), ConfigError> {
        let Some(deterministic) = &self.deterministic else {
            return Ok(());
        };
        let inside: u64 = deterministic.inside.iter().map(Range::len).sum();
        let shares = inside.div_ceil(total) + u64::from(deterministic.dynamic);
        if inside == 0 || u64::from(ports) / shares < 16 {
            return Err(ConfigError::Compression(inside, total));
        }
        Ok(())
    }

    fn check_timeouts(&self) -> Result<(), ConfigError> {
        let times = &self.timeouts;
        let least = [
            ("udp", times.udp, 120),
            ("icmp", times.icmp, 60),
            ("tcp_established", times.tcp_established, 7440),
            ("tcp_opening", times.tcp_opening, 6),
            ("tcp_closing", times.tcp_closing, 240),
        ];
        for (name, value, seconds) in least {
            if value < Duration::from_secs(seconds) || value > Duration::from_secs(TIMEOUT_MAX) {
                return Err(ConfigError::Timeout(name, seconds));
            }
        }
        match self.hold > Duration::from_secs(TIMEOUT_MAX) {
            true => Err(ConfigError::Timeout("hold", 0)),
            false => Ok(()),
        }
    }
}

impl Config {
    /// The settings of one of several NATs. Limits of tables are divided; limits of a subscriber, and the number of
    /// subscribers, are the same for each.
    #[must_use]
    pub fn share(&self, share: Share) -> Self {
        let limits = self.limits;
        let [one, two, three] = self.seed;
        let own = u64::from(share.number()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self {
            limits: Limits {
                mappings_max: share.part(limits.mappings_max),
                sessions_max: share.part(limits.sessions_max),
                held_ports_max: share.part(limits.held_ports_max),
                fragmented_max: share.part(limits.fragmented_max),
                waiting_fragments_max: share.part(limits.waiting_fragments_max),
                events_max: share.part(limits.events_max),
                ftp_controls_max: share.part(limits.ftp_controls_max),
                ..limits
            },
            share,
            seed: [one, two, three ^ own],
            ..self.clone()
        }
    }
}

/// External addresses of one NAT.
pub const ADDRESSES_MAX: u64 = 16_384;
/// The longest time-out in seconds: a week.
pub const TIMEOUT_MAX: u64 = 604_800;

/// The division of an address's ports: those for forwarding only, `fixed` shares of `fixed_ports`, and from `split` on
/// `dynamic` blocks on demand, those of all NATs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Division {
    pub(crate) first: u32,
    pub(crate) fixed: u32,
    pub(crate) fixed_ports: u32,
    pub(crate) split: u32,
    pub(crate) dynamic: u32,
}

/// Settings that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// There is no external address.
    #[error("no external address")]
    NoExternals,
    /// More external addresses than [`ADDRESSES_MAX`].
    #[error("{0} external addresses, {ADDRESSES_MAX} is the most")]
    ManyExternals(u64),
    /// Two ranges of external addresses share an address.
    #[error("the external addresses {0} and {1} overlap")]
    Overlap(Range, Range),
    /// Port blocks would contain system ports.
    #[error("port blocks start at port {0}, 1024 is the least")]
    PortFirst(u16),
    /// A block is too small or too large.
    #[error("blocks of {0} ports, 16 is the least, and a block has to fit above the first port")]
    BlockPorts(u16),
    /// Several NATs, of which some would have no block on demand.
    #[error(
        "the port blocks are enough for {1} of {0} cores: give more external addresses, or smaller blocks"
    )]
    FewBlocks(u16, u64),
    /// Deterministic shares of fewer than 16 ports, or no inside address.
    #[error("{0} inside addresses on {1} external ones: each needs 16 ports or more")]
    Compression(u64, u64),
    /// A time-out below its RFC's minimum, or above a week.
    #[error("time-out {0}: at least {1} s, at most a week")]
    Timeout(&'static str, u64),
    /// A limit of 0, or one above 2^30.
    #[error("a limit is 0 or above 2^30")]
    Limit,
    /// A setting by which tables were made: it is the same as long as the NAT exists.
    #[error("needs a restart")]
    Fixed,
}
