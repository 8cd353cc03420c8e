//! Facts about the host: the state of its clock, path MTUs, and ICMP errors of peers. Nothing here changes the host.

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsFd;

use base::Duration;
use rustix::net::sockopt;
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};

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
}
