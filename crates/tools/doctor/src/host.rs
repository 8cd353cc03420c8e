//! The facts about a host that checks read. Data only: `gather` fills it in, and tests write it by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::wants::{FileUse, Protocol};

/// Everything that the checks know about a host.
#[derive(Debug, Default)]
pub(crate) struct Host {
    pub(crate) user: User,
    /// The path of the running binary.
    pub(crate) binary: PathBuf,
    pub(crate) tun: Device,
    /// Loaded kernel modules, and drivers of devices in `/proc/misc`.
    pub(crate) modules: BTreeSet<String>,
    /// Settings below `/proc/sys`, by their dotted name.
    pub(crate) sysctls: BTreeMap<&'static str, String>,
    /// Hard limit of open descriptors of the daemon.
    pub(crate) descriptors: u64,
    /// Cores that this process may use.
    pub(crate) cores: usize,
    /// Names of the network interfaces.
    pub(crate) interfaces: BTreeSet<String>,
    /// The interfaces of PPPoE that exist, by their names.
    pub(crate) ethernet: BTreeMap<String, Interface>,
    pub(crate) ports: Vec<PortFact>,
    /// The process that answers on the configured control socket.
    pub(crate) running: Option<u32>,
    pub(crate) clock: Clock,
    pub(crate) servers: Vec<ServerFact>,
    pub(crate) files: Vec<FileFact>,
    pub(crate) paths: Vec<PathFact>,
    /// Hosts whose paths were not tried, because there are too many.
    pub(crate) paths_left: usize,
    pub(crate) bgp: BgpFacts,
    /// The systemd unit that starts the daemon.
    pub(crate) unit: Option<Unit>,
}

impl Host {
    /// A setting below `/proc/sys` as a number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.sysctls.get(name)?.trim().parse().ok()
    }

    /// Whether the daemon's user has this capability.
    pub(crate) fn has(&self, capability: Capability) -> bool {
        self.user.capabilities & capability.bit() != 0
    }
}

/// The capabilities that headend uses (capabilities(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capability {
    BindService,
    Admin,
    Raw,
}

impl Capability {
    pub(crate) fn bit(self) -> u64 {
        1 << match self {
            Self::BindService => 10,
            Self::Admin => 12,
            Self::Raw => 13,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BindService => "CAP_NET_BIND_SERVICE",
            Self::Admin => "CAP_NET_ADMIN",
            Self::Raw => "CAP_NET_RAW",
        }
    }
}

/// The user that runs the daemon.
#[derive(Clone, Debug, Default)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) groups: Vec<u32>,
    /// The capabilities that the daemon starts with, a bit per capability.
    pub(crate) capabilities: u64,
}

/// A network interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interface {
    pub(crate) is_ethernet: bool,
    pub(crate) is_up: bool,
    /// The largest packet, in bytes.
    pub(crate) mtu: u32,
}

/// What opening a device gave.
#[derive(Debug, Default)]
pub(crate) enum Device {
    #[default]
    Opens,
    Missing,
    /// It exists, but the kernel has no driver for it.
    NoDriver,
    Refused(io::Error),
}

/// Whether an address and port can be bound.
#[derive(Debug)]
pub(crate) struct PortFact {
    pub(crate) address: SocketAddr,
    pub(crate) protocol: Protocol,
    /// The section and key that name it.
    pub(crate) key: &'static str,
    pub(crate) is_optional: bool,
    pub(crate) bind: Bind,
}

/// What binding gave.
#[derive(Debug)]
pub(crate) enum Bind {
    Free,
    Taken(Option<Owner>),
    /// No interface has this address.
    NotHere,
    /// The port is privileged, and we may not bind it.
    Refused,
    Failed(io::Error),
}

/// The process that has a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) pid: u32,
    pub(crate) name: String,
}

/// The state of the system clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// Whether the kernel counts the clock as synchronised; `None` if it does not tell.
    pub(crate) is_synchronised: Option<bool>,
    /// The correction that is still to be made.
    pub(crate) offset: Duration,
    /// Seconds since 1970.
    pub(crate) unix_s: u64,
}

/// What a RADIUS server answered.
#[derive(Debug)]
pub(crate) struct ServerFact {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    /// Whether this is the server's accounting address.
    pub(crate) is_accounting: bool,
    pub(crate) requires_signature: bool,
    pub(crate) answer: Answer,
}

/// The result of a probe of a RADIUS server.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The Response Authenticator is right.
    Verified {
        /// The kind of request that was answered.
        to: &'static str,
        /// Whether the reply has a correct Message-Authenticator.
        is_signed: bool,
        round_trip: Duration,
    },
    /// A reply arrived whose Response Authenticator or Message-Authenticator is wrong.
    WrongSecret {
        to: &'static str,
    },
    /// A reply arrived that is no RADIUS reply.
    Malformed,
    Silence,
    /// An ICMP error, or no route.
    Unreachable(io::Error),
}

/// A file or directory that the configuration names.
#[derive(Debug)]
pub(crate) struct FileFact {
    pub(crate) path: PathBuf,
    pub(crate) used: FileUse,
    /// What stat(2) gave; `None` if the file does not exist.
    pub(crate) file: Option<Mode>,
    /// The same for its directory.
    pub(crate) directory: Option<Mode>,
    /// A directory above that the user may not enter.
    pub(crate) closed: Option<PathBuf>,
    /// Free bytes of the file system.
    pub(crate) free_bytes: Option<u64>,
    pub(crate) is_read_only: bool,
    /// Whether the file holds a secret itself.
    pub(crate) has_secret: bool,
}

/// Owner and permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) bits: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) is_directory: bool,
}

impl Mode {
    /// Whether `user` has all of the permissions `wanted` (4 read, 2 write, 1 enter).
    pub(crate) fn allows(&self, user: &User, wanted: u32) -> bool {
        let shift = match () {
            () if user.uid == 0 => return true,
            () if user.uid == self.uid => 6,
            () if user.groups.contains(&self.gid) => 3,
            () => 0,
        };
        (self.bits >> shift) & wanted == wanted
    }
}

/// The largest packet on the path to a peer.
#[derive(Debug)]
pub(crate) struct PathFact {
    pub(crate) to: IpAddr,
    pub(crate) used: PathUse,
    /// The kernel's value in bytes: that of the interface, or smaller if a router reported less.
    pub(crate) mtu: io::Result<u32>,
    /// What packets of several sizes gave; an error means that the host cannot be reached.
    pub(crate) probed: io::Result<Probed>,
}

/// What a host at the end of a path is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathUse {
    /// An L2TP peer.
    Tunnel,
    /// A RADIUS server.
    Radius,
    /// A BGP neighbour.
    Bgp,
}

/// What packets of several sizes gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probed {
    /// The host answers none of the packets, so only the kernel's value is known.
    Unanswered,
    /// Packets of up to this many bytes arrive unfragmented.
    Passes { passes: u32, limit: Limit },
}

/// What limits the size of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The interface of this host.
    Interface,
    /// A link of a router that reports it.
    Reported,
    /// Something that reports nothing.
    Silent {
        /// Whether larger packets arrive if they may be fragmented.
        is_fragmented: bool,
    },
}

/// What the kernel offers BGP sessions.
#[derive(Debug, Default)]
pub(crate) struct BgpFacts {
    /// The error of requiring TCP-MD5 signatures.
    pub(crate) md5: Option<io::Error>,
    /// The error of requiring a hop limit (GTSM).
    pub(crate) gtsm: Option<io::Error>,
}

/// The settings of a systemd unit that matter; drop-ins are applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) path: PathBuf,
    /// The last value of each key, or all values of a list in one.
    pub(crate) keys: BTreeMap<String, String>,
}

impl Unit {
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str)
    }

    /// Whether a boolean key is on.
    pub(crate) fn is_on(&self, key: &str) -> bool {
        matches!(self.get(key), Some("yes" | "true" | "on" | "1"))
    }
}
