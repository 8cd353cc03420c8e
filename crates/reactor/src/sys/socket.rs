//! Socket options that rustix does not know.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::sys::check;
use crate::syscalls::{Call, SysCounts};

/// A socket option that takes a C int.
#[derive(Clone, Copy)]
pub(crate) enum IntOption {
    /// Receive the address that a datagram was sent to (IPv4).
    Ipv4PktInfo,
    /// Receive the address that a datagram was sent to (IPv6).
    Ipv6PktInfo,
    /// Receive datagrams of one flow joined, with the size of each.
    UdpGro,
}

pub(crate) fn set_int(socket: &OwnedFd, option: IntOption, value: libc::c_int) -> io::Result<()> {
    let (level, name) = match option {
        IntOption::Ipv4PktInfo => (libc::IPPROTO_IP, libc::IP_PKTINFO),
        IntOption::Ipv6PktInfo => (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
        IntOption::UdpGro => (libc::SOL_UDP, libc::UDP_GRO),
    };
    SysCounts::note(Call::Setsockopt);
    // SAFETY: the value's pointer and size are those of a C int, only read.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// Sends without checksums: a socket on which the kernel refuses to merge.
#[cfg(test)]
pub(crate) fn disable_checksums(socket: &OwnedFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the value's pointer and size are those of a C int, only read.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NO_CHECK,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    })
    .map(drop)
}
