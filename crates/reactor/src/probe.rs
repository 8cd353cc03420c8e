//! Facts about the host: the state of its clock, path MTUs, and ICMP errors of peers. Nothing here changes the host.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use base::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, sockopt,
};

use crate::sys::socket::set_number;

/// What the kernel knows about the system clock (adjtimex(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discipline {
    /// Whether a time service keeps the clock synchronised.
    pub is_synchronised: bool,
    /// The size of the correction that the kernel still has to make.
    pub offset: Duration,
    /// The largest error that the time service assumes.
    pub error_max: Duration,
}

/// Reads the state of the system clock and changes nothing.
///
/// # Errors
/// The kernel's error: some containers forbid the call.
pub fn discipline() -> io::Result<Discipline> {
    let timex = crate::sys::clock::read_discipline()?;
    let unit_ns = match timex.status & libc::STA_NANO {
        0 => 1_000,
        _ => 1,
    };
    let nanos = |value: u64, unit: u64| Duration::from_nanos(value.saturating_mul(unit));
    Ok(Discipline {
        is_synchronised: timex.status & libc::STA_UNSYNC == 0,
        offset: nanos(timex.offset.unsigned_abs(), unit_ns),
        error_max: nanos(u64::try_from(timex.maxerror).unwrap_or(0), 1_000),
    })
}

/// Lets calls on a connected socket return every ICMP error, also those that may pass, such as "host unreachable".
/// Its packets are not fragmented.
///
/// # Errors
/// The kernel's error.
pub fn report_network_errors(socket: &UdpSocket) -> io::Result<()> {
    if socket.local_addr()?.is_ipv4() {
        set_number(socket.as_fd(), libc::IPPROTO_IP, libc::IP_RECVERR, 1)?;
        sockopt::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DO)?;
    } else {
        set_number(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)?;
        sockopt::set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DO)?;
    }
    Ok(())
}

/// The path MTU that the kernel assumes for an address: that of the interface, unless a router has reported less.
///
/// # Errors
/// The kernel's error: there is no route.
pub fn path_mtu(to: IpAddr) -> io::Result<u32> {
    let any: IpAddr = match to {
        IpAddr::V4(_) => IpAddr::from([0_u8; 4]),
        IpAddr::V6(_) => IpAddr::from([0_u8; 16]),
    };
    let socket = UdpSocket::bind((any, 0))?;
    // The port does not matter: nothing is sent.
    socket.connect((to, 9))?;
    Ok(match to {
        IpAddr::V4(_) => sockopt::ip_mtu(&socket)?,
        IpAddr::V6(_) => sockopt::ipv6_mtu(&socket)?,
    })
}

/// How a packet of a given size asks for a sign that it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// An ICMP echo request, which the host answers with a reply of the same size.
    Echo,
    /// A UDP datagram to a port that is closed on most hosts (traceroute's), which the host answers with an ICMP error.
    ClosedPort,
}

/// What became of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The host answered.
    Arrived,
    /// A router has reported that the next link carries only packets of this many bytes.
    TooLarge(u32),
    /// It is larger than the interface's MTU, so it was not sent.
    NotSent,
    /// No answer within the time.
    Silence,
}

/// One packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Bytes, IP header included.
    pub size: u32,
    /// How it asks for an answer.
    pub way: Way,
    /// Whether it may be fragmented. If not, it is sent even beyond the path MTU that the kernel remembers.
    pub may_fragment: bool,
}

/// Sends one packet and waits for what becomes of it. The kernel remembers a smaller path MTU that a router reports, as
/// it does for all traffic.
///
/// # Errors
/// The kernel's error: no route, an unreachable host, or for [`Way::Echo`] that this user may open no ping socket.
pub fn send(to: IpAddr, probe: Probe, wait: Duration) -> io::Result<Fate> {
    let way = probe.way;
    let socket = probe_socket(to, probe)?;
    let packet = payload(to, probe);
    match rustix::net::send(&socket, &packet, SendFlags::empty()) {
        Ok(_) => {}
        Err(Errno::MSGSIZE) => return Ok(Fate::NotSent),
        Err(error) => return Err(error.into()),
    }
    let until = Instant::now() + std::time::Duration::from_nanos(wait.as_nanos());
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Fate::Silence);
        }
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Ok(Fate::Silence),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut reply = [0_u8; 64];
        // Each packet has a socket of its own, so what arrives here answers this packet.
        match rustix::net::recv(&socket, &mut reply, RecvFlags::DONTWAIT) {
            Ok(_) => return Ok(Fate::Arrived),
            Err(Errno::CONNREFUSED) if way == Way::ClosedPort => return Ok(Fate::Arrived),
            Err(Errno::MSGSIZE) => return Ok(Fate::TooLarge(path_mtu(to)?)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The first of traceroute's ports.
const CLOSED_PORT: u16 = 33_434;
/// Bytes of a header of ICMP echo, and of UDP.
const HEADER: u32 = 8;

/// A socket of its own for this packet, connected to `to`.
fn probe_socket(to: IpAddr, probe: Probe) -> io::Result<OwnedFd> {
    let (family, icmp) = match to {
        IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
        IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
    };
    let (protocol, port): (Option<Protocol>, u16) = match probe.way {
        Way::Echo => (Some(icmp), 0),
        Way::ClosedPort => (None, CLOSED_PORT),
    };
    let socket =
        rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, protocol)?;
    match to {
        IpAddr::V4(_) => {
            set_number(socket.as_fd(), libc::IPPROTO_IP, libc::IP_RECVERR, 1)?;
            let discovery = match probe.may_fragment {
                true => Ipv4PathMtuDiscovery::DONT,
                false => Ipv4PathMtuDiscovery::PROBE,
            };
            sockopt::set_ip_mtu_discover(&socket, discovery)?;
        }
        IpAddr::V6(_) => {
            set_number(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)?;
            let discovery = match probe.may_fragment {
                true => Ipv6PathMtuDiscovery::DONT,
                false => Ipv6PathMtuDiscovery::PROBE,
            };
            sockopt::set_ipv6_mtu_discover(&socket, discovery)?;
        }
    }
    rustix::net::connect(&socket, &SocketAddr::new(to, port))?;
    Ok(socket)
}

/// What follows the IP header, or for UDP the UDP header. The kernel fills in an echo's checksum and identifier.
fn payload(to: IpAddr, probe: Probe) -> Vec<u8> {
    let ip = if to.is_ipv4() { 20 } else { 40 };
    let data = probe.size.saturating_sub(ip + HEADER) as usize;
    match probe.way {
        Way::ClosedPort => vec![0; data],
        Way::Echo => {
            let mut packet = vec![0; data + HEADER as usize];
            // The types of an echo request (RFC 792, RFC 4443).
            packet[0] = if to.is_ipv4() { 8 } else { 128 };
            packet
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_discipline_can_be_read_without_privilege() {
        // A container may forbid the call; then that is the error.
        match discipline() {
            Ok(read) => assert!(read.error_max <= Duration::from_secs(1 << 20), "{read:?}"),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
    }

    #[test]
    fn loopback_has_the_mtu_of_its_interface() {
        let shown = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap();
        let mtu = path_mtu("127.0.0.1".parse().unwrap()).unwrap();
        // An IP packet is shorter than the 65,536 bytes of the interface.
        assert_eq!(mtu, shown.trim().parse::<u32>().unwrap().min(65_535));
    }

    #[test]
    fn a_closed_port_is_an_error_of_the_next_call() {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap();
        let closed = free.local_addr().unwrap();
        drop(free);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(closed).unwrap();
        report_network_errors(&socket).unwrap();
        socket.send(b"x").unwrap();
        let error = socket.recv(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_packet_arrives_up_to_the_mtu_and_is_not_sent_beyond() {
        let to = "127.0.0.1".parse().unwrap();
        let fate = |size, way, may_fragment| {
            let probe = Probe {
                size,
                way,
                may_fragment,
            };
            send(to, probe, Duration::from_secs(5))
        };
        let mtu = path_mtu(to).unwrap();
        for size in [28, 1_500, mtu.min(60_000)] {
            for may_fragment in [false, true] {
                let one = fate(size, Way::ClosedPort, may_fragment).unwrap();
                assert_eq!(one, Fate::Arrived, "{size} bytes");
                // Not every user may open a ping socket.
                match fate(size, Way::Echo, may_fragment) {
                    Ok(fate) => assert_eq!(fate, Fate::Arrived, "{size} bytes"),
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
                }
            }
        }
        let one = fate(65_536, Way::ClosedPort, false).unwrap();
        assert_eq!(one, Fate::NotSent);
    }
}
