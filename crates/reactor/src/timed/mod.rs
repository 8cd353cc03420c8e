//! Sockets whose packets the kernel timestamps, both ways.
//!
//! [`TimedSocket::send`] numbers each packet. [`TimedSocket::send_times`] returns later when the numbered packet
//! left. [`TimedSocket::recv`] returns when a packet arrived, with its hop limit and traffic class.
//! [`TimedSocket::errors`] returns the errors that routers and hosts report, as [`NetworkError`]s and not as failures
//! of a call. The descriptor is readable for both; [`crate::Readiness::error`] means that an error or a time stamp is
//! waiting.
//!
//! ICMP uses ping sockets, which need no privilege if `net.ipv4.ping_group_range` includes the caller's group, and
//! raw sockets otherwise. With both, messages are pure ICMP without an IP header.
//!
//! Left out: hardware time stamps, and IP options.

mod filter;
mod receive;
mod send;
mod stamp;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU16, Ordering};

use libc::c_int;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketFlags, SocketType, ipproto};

pub use receive::{ErrorSource, NetworkError, TimedBatch, TimedPacket};
pub use send::{Outgoing, Sent};
pub use stamp::Stamp;

use crate::buffers::{self, BufferReport, BufferSide};
use crate::sys::socket::{attach_filter, bind_to_device, set_number};
use crate::sys::timed::{RecvSlots, SendSlots};
use crate::syscalls::{Call, enter};
use stamp::RealClock;

/// Messages in one system call.
const SLOTS: usize = 64;

/// Bytes kept of a packet that an error is about: enough for ICMP's and UDP's headers and a time stamp.
const QUOTE_BYTES: usize = 64;

/// Errors kept until [`TimedSocket::errors`] is called; further ones are counted and dropped.
const ERRORS_MAX: usize = 1_024;

/// Software time stamps both ways; those of sent packets carry a number and not the packet.
const FLAGS: libc::c_uint = libc::SOF_TIMESTAMPING_TX_SOFTWARE
    | libc::SOF_TIMESTAMPING_RX_SOFTWARE
    | libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_OPT_ID
    | libc::SOF_TIMESTAMPING_OPT_TSONLY;

/// IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() {
            Self::V4
        } else {
            Self::V6
        }
    }
}

/// Options of a socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimedOptions {
    /// The source address; for UDP it is that of `bind`.
    pub source: Option<IpAddr>,
    /// The interface to send and receive through.
    pub interface: Option<String>,
    /// Time to live, or hop limit; the kernel's default if `None`.
    pub hop_limit: Option<u8>,
    /// Receive buffer in bytes; the kernel's default if `None`.
    pub recv_buffer_bytes: Option<usize>,
    /// Send buffer in bytes; the kernel's default if `None`.
    pub send_buffer_bytes: Option<usize>,
    /// Refuses packets that would need fragmenting, here and at routers.
    pub dont_fragment: bool,
    /// For ICMP on a raw socket: the identifier of its requests; chosen by the kernel or the process if `None`.
    pub identifier: Option<u16>,
}

/// The kind of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SocketKind {
    /// Sends ICMP echo requests without privilege. The kernel writes identifier and checksum.
    Ping,
    /// Sends any ICMP message unchanged, except for ICMPv6's checksum.
    Raw,
    /// UDP.
    Udp,
}

/// Counters of a socket, and how many of its packets the kernel timestamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TimedStats {
    /// Packets sent.
    pub sent: u64,
    /// Packets sent whose time stamp has arrived.
    pub sent_stamped: u64,
    /// Packets received.
    pub received: u64,
    /// Packets received with a time stamp.
    pub received_stamped: u64,
    /// Errors for [`TimedSocket::errors`].
    pub errors: u64,
    /// Errors dropped because nobody called [`TimedSocket::errors`].
    pub errors_lost: u64,
    /// How often the real clock was found to have been set.
    pub clock_steps: u64,
}

/// A non-blocking socket for ICMP or UDP with time stamps.
pub struct TimedSocket {
    fd: OwnedFd,
    kind: SocketKind,
    family: Family,
    local: SocketAddr,
    identifier: u16,
    clock: RealClock,
    stats: TimedStats,
    /// The number of the next packet.
    next: u32,
    /// Whether the kernel takes numbers; otherwise it counts by itself.
    numbers: bool,
    /// The number of the packet that the kernel counts as 0.
    base: u32,
    send_slots: SendSlots,
    error_slots: RecvSlots,
    errors: VecDeque<NetworkError>,
    receive_buffer: Option<BufferReport>,
    send_buffer: Option<BufferReport>,
}

impl std::fmt::Debug for TimedSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TimedSocket")
            .field("kind", &self.kind)
            .field("local", &self.local)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// Discards what arrived for others while the socket had no packet filter yet.
fn discard_early(fd: &OwnedFd) {
    // With the filter, only our own replies arrive, and nothing has been sent: the queue becomes empty.
    while enter(Call::Recvfrom).is_ok()
        && rustix::net::recv(fd, &mut [0_u8; 1][..], RecvFlags::DONTWAIT).is_ok()
    {}
}

impl TimedSocket {
    /// Opens a socket for ICMP (RFC 792) or ICMPv6 (RFC 4443): a ping socket if permitted, else a raw one.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] if neither is permitted; else the kernel's error.
    pub fn icmp(family: Family, options: &TimedOptions) -> io::Result<Self> {
        match open(family, SocketType::DGRAM, Some(icmp_protocol(family))) {
            Ok(fd) => Self::icmp_on(fd, SocketKind::Ping, family, options),
            Err(_) => Self::icmp_raw(family, options),
        }
    }

    /// Opens a raw socket for ICMP or ICMPv6.
    ///
    /// # Errors
    /// As [`TimedSocket::icmp`].
    pub fn icmp_raw(family: Family, options: &TimedOptions) -> io::Result<Self> {
        let fd = open(family, SocketType::RAW, Some(icmp_protocol(family)))?;
        Self::icmp_on(fd, SocketKind::Raw, family, options)
    }

    fn icmp_on(
        fd: OwnedFd,
        kind: SocketKind,
        family: Family,
        options: &TimedOptions,
    ) -> io::Result<Self> {
        let any = match family {
            Family::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Family::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let mut socket = Self::set_up(fd, kind, family, options)?;
        if kind == SocketKind::Raw {
            socket.identifier = options.identifier.unwrap_or_else(fresh_identifier);
            attach_filter(
                socket.fd.as_fd(),
                &filter::echo_replies(family, socket.identifier),
            )?;
            discard_early(&socket.fd);
            if let Some(source) = options.source {
                socket.bind(SocketAddr::new(source, 0))?;
            }
            socket.local.set_ip(options.source.unwrap_or(any));
        } else {
            socket.bind(SocketAddr::new(options.source.unwrap_or(any), 0))?;
            socket.identifier = socket.local.port();
        }
        Ok(socket)
    }

    /// Opens a UDP socket at `address`; port 0 lets the kernel choose. IPv6 sockets take IPv6 alone.
    ///
    /// # Errors
    /// The kernel's error, for example that the address is in use.
    pub fn udp(address: SocketAddr, options: &TimedOptions) -> io::Result<Self> {
        let family = Family::of(address.ip());
        let fd = open(family, SocketType::DGRAM, None)?;
        if family == Family::V6 {
            set_number(fd.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
        }
        let mut socket = Self::set_up(fd, SocketKind::Udp, family, options)?;
        socket.bind(address)?;
        Ok(socket)
    }

    fn set_up(
        fd: OwnedFd,
        kind: SocketKind,
        family: Family,
        options: &TimedOptions,
    ) -> io::Result<Self> {
        if let Some(interface) = &options.interface {
            bind_to_device(fd.as_fd(), interface)?;
        }
        for (level, name, value) in numbers(family, options) {
            set_number(fd.as_fd(), level, name, value)?;
        }
        ask_for_stamps(fd.as_fd(), FLAGS)?;
        let sized = |side, bytes: Option<usize>| {
            bytes
                .map(|bytes| buffers::size(&fd, side, bytes))
                .transpose()
        };
        let receive_buffer = sized(BufferSide::Receive, options.recv_buffer_bytes)?;
        let send_buffer = sized(BufferSide::Send, options.send_buffer_bytes)?;
        let local = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        Ok(Self {
            fd,
            kind,
            family,
            local,
            identifier: 0,
            clock: RealClock::new(),
            stats: TimedStats::default(),
            next: 0,
            numbers: true,
            base: 0,
            send_slots: SendSlots::new(SLOTS),
            error_slots: RecvSlots::new(SLOTS, QUOTE_BYTES),
            errors: VecDeque::new(),
            receive_buffer,
            send_buffer,
        })
    }

    fn bind(&mut self, address: SocketAddr) -> io::Result<()> {
        enter(Call::Bind)?;
        rustix::net::bind(&self.fd, &address)?;
        enter(Call::Getsockname)?;
        let local = rustix::net::getsockname(&self.fd)?;
        self.local = SocketAddr::try_from(local).map_err(io::Error::from)?;
        Ok(())
    }

    /// The kind of the socket.
    #[must_use]
    pub fn kind(&self) -> SocketKind {
        self.kind
    }

    /// Its family.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// The local address; for ICMP without a port.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The identifier of ICMP echo requests whose replies arrive here; 0 for UDP. Requests on a raw socket must carry
    /// it; on a ping socket the kernel inserts it.
    #[must_use]
    pub fn identifier(&self) -> u16 {
        self.identifier
    }

    /// Its counters so far.
    #[must_use]
    pub fn stats(&self) -> TimedStats {
        TimedStats {
            clock_steps: self.clock.steps(),
            ..self.stats
        }
    }

    /// The result of the request for a receive buffer; `None` if there was none.
    #[must_use]
    pub fn receive_buffer(&self) -> Option<BufferReport> {
        self.receive_buffer
    }

    /// The result of the request for a send buffer; `None` if there was none.
    #[must_use]
    pub fn send_buffer(&self) -> Option<BufferReport> {
        self.send_buffer
    }
}

impl AsFd for TimedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn ask_for_stamps(fd: BorrowedFd<'_>, flags: libc::c_uint) -> io::Result<()> {
    set_number(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as c_int)
}

fn icmp_protocol(family: Family) -> Protocol {
    match family {
        Family::V4 => ipproto::ICMP,
        Family::V6 => ipproto::ICMPV6,
    }
}

fn open(family: Family, kind: SocketType, protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    let family = match family {
        Family::V4 => AddressFamily::INET,
        Family::V6 => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    enter(Call::Socket)?;
    Ok(rustix::net::socket_with(family, kind, flags, protocol)?)
}

/// An identifier that no other socket of this process has, and another process is unlikely to have.
fn fresh_identifier() -> u16 {
    static COUNT: AtomicU16 = AtomicU16::new(0);
    let nth = COUNT.fetch_add(1, Ordering::Relaxed);
    (std::process::id() as u16).wrapping_add(nth.wrapping_mul(0x9e37))
}

/// The numeric options: level, name, value.
fn numbers(family: Family, options: &TimedOptions) -> Vec<(c_int, c_int, c_int)> {
    let mut list = match family {
        Family::V4 => vec![
            (libc::IPPROTO_IP, libc::IP_RECVERR, 1),
            (libc::IPPROTO_IP, libc::IP_RECVTTL, 1),
            (libc::IPPROTO_IP, libc::IP_RECVTOS, 1),
            (libc::IPPROTO_IP, libc::IP_PKTINFO, 1),
        ],
        Family::V6 => vec![
            (libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1),
            (libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, 1),
            (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1),
            (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1),
        ],
    };
    let (level, limit, discover, does, dont) = match family {
        Family::V4 => (
            libc::IPPROTO_IP,
            libc::IP_TTL,
            libc::IP_MTU_DISCOVER,
            libc::IP_PMTUDISC_DO,
            libc::IP_PMTUDISC_DONT,
        ),
        Family::V6 => (
            libc::IPPROTO_IPV6,
            libc::IPV6_UNICAST_HOPS,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_PMTUDISC_DO,
            libc::IPV6_PMTUDISC_DONT,
        ),
    };
    let discovery = if options.dont_fragment { does } else { dont };
    list.push((level, discover, discovery));
    list.extend(
        options
            .hop_limit
            .map(|hops| (level, limit, c_int::from(hops))),
    );
    list
}

#[cfg(test)]
mod tests;
