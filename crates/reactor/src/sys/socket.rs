//! Socket options that rustix does not know.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use libc::c_int;

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

/// Sets an option to a value of the type that the kernel takes for it.
///
/// Only for types without padding and without pointers: the kernel reads their bytes.
fn set_plain<T: Copy>(
    socket: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    value: &T,
) -> io::Result<()> {
    SysCounts::note(Call::Setsockopt);
    // SAFETY: the pointer and size are those of `value`, which is only read.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// Sets an option that takes a C int, by its level and name.
pub(crate) fn set_number(
    socket: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    value: c_int,
) -> io::Result<()> {
    set_plain(socket, level, name, &value)
}

/// Sends and receives through this interface alone.
pub(crate) fn bind_to_device(socket: BorrowedFd<'_>, interface: &str) -> io::Result<()> {
    let mut name = [0_u8; libc::IFNAMSIZ];
    let bytes = interface.as_bytes();
    if bytes.is_empty() || bytes.len() >= name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    name[..bytes.len()].copy_from_slice(bytes);
    set_plain(socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, &name)
}

/// An instruction of a packet filter (BPF): code, jumps when true and false, operand.
pub type Instruction = (u16, u8, u8, u32);

/// Lets the kernel drop what `program` does not accept.
pub(crate) fn attach_filter(socket: BorrowedFd<'_>, program: &[Instruction]) -> io::Result<()> {
    attach(socket, program, libc::SO_ATTACH_FILTER)
}

/// Lets `program` say which of the sockets of one address gets a datagram.
pub(crate) fn attach_steering(socket: BorrowedFd<'_>, program: &[Instruction]) -> io::Result<()> {
    attach(socket, program, libc::SO_ATTACH_REUSEPORT_CBPF)
}

fn attach(socket: BorrowedFd<'_>, program: &[Instruction], name: c_int) -> io::Result<()> {
    let mut filter: Vec<libc::sock_filter> = program
        .iter()
        .map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k })
        .collect();
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: filter.as_mut_ptr(),
    };
    SysCounts::note(Call::Setsockopt);
    // SAFETY: `program` points to as many instructions as it says, which outlive the call and are only read.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
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
