//! Socket options that rustix lacks.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use libc::c_int;
use std::net::IpAddr;

use crate::sys::check;
use crate::syscalls::{Call, enter};

/// The longest key of a signature, in bytes (RFC 2385 leaves it open; Linux takes 80).
pub const MD5_KEY_MAX: usize = 80;

/// A socket option that takes a C int.
#[derive(Clone, Copy)]
pub(crate) enum IntOption {
    /// Receive the address that a datagram was sent to (IPv4).
    Ipv4PktInfo,
    /// Receive the address that a datagram was sent to (IPv6).
    Ipv6PktInfo,
    /// Receive datagrams of one flow joined, with their size.
    UdpGro,
}

pub(crate) fn set_int(socket: &OwnedFd, option: IntOption, value: libc::c_int) -> io::Result<()> {
    let (level, name) = match option {
        IntOption::Ipv4PktInfo => (libc::IPPROTO_IP, libc::IP_PKTINFO),
        IntOption::Ipv6PktInfo => (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
        IntOption::UdpGro => (libc::SOL_UDP, libc::UDP_GRO),
    };
    enter(Call::Setsockopt)?;
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

/// Sets an option to a value of the type that the kernel expects.
///
/// Only for types without padding and without pointers: the kernel reads their bytes.
pub(super) fn set_plain<T: Copy>(
    socket: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    value: &T,
) -> io::Result<()> {
    enter(Call::Setsockopt)?;
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

/// Reads an option of the type that the kernel writes.
///
/// Only for types of which any bytes are a value.
pub(crate) fn get_plain<T: Copy>(
    socket: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut length = size_of::<T>() as libc::socklen_t;
    enter(Call::Getsockopt)?;
    // SAFETY: the pointers are to the value and its size, which the kernel writes.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            value.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    check(result)?;
    if (length as usize) < size_of::<T>() {
        // An older kernel, whose value is shorter.
        return Err(io::ErrorKind::Unsupported.into());
    }
    // SAFETY: the kernel has written the whole value.
    Ok(unsafe { value.assume_init() })
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

/// Restricts the socket to this interface.
pub(crate) fn bind_to_device(socket: BorrowedFd<'_>, interface: &str) -> io::Result<()> {
    let mut name = [0_u8; libc::IFNAMSIZ];
    let bytes = interface.as_bytes();
    if bytes.is_empty() || bytes.len() >= name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    name[..bytes.len()].copy_from_slice(bytes);
    set_plain(socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, &name)
}

/// The lowest hop limit that an IPv6 socket accepts (linux/in6.h; libc lacks it).
pub(crate) const IPV6_MINHOPCOUNT: c_int = 73;

/// `struct tcp_md5sig` of linux/tcp.h.
#[derive(Clone, Copy)]
#[repr(C)]
struct Md5Signature {
    address: [u8; 128],
    flags: u8,
    prefix_len: u8,
    key_len: u16,
    interface: c_int,
    key: [u8; MD5_KEY_MAX],
}

/// Requires TCP signatures (RFC 2385) with the peers of a network; an empty key ends that.
pub(crate) fn set_md5(
    socket: BorrowedFd<'_>,
    (address, bits): (IpAddr, u8),
    key: &[u8],
) -> io::Result<()> {
    if key.len() > MD5_KEY_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut signature = Md5Signature {
        address: [0; 128],
        flags: 1, // TCP_MD5SIG_FLAG_PREFIX
        prefix_len: bits,
        key_len: key.len() as u16,
        interface: 0,
        key: [0; MD5_KEY_MAX],
    };
    let (family, octets, at) = match address {
        IpAddr::V4(ip) => (libc::AF_INET, ip.octets().to_vec(), 4),
        IpAddr::V6(ip) => (libc::AF_INET6, ip.octets().to_vec(), 8),
    };
    signature.address[..2].copy_from_slice(&(family as u16).to_ne_bytes());
    signature.address[at..at + octets.len()].copy_from_slice(&octets);
    signature.key[..key.len()].copy_from_slice(key);
    let set = set_plain(socket, libc::IPPROTO_TCP, libc::TCP_MD5SIG_EXT, &signature);
    signature.key.fill(0);
    std::hint::black_box(&signature);
    set
}

/// An instruction of a packet filter (BPF): code, jumps when true and false, operand.
pub type Instruction = (u16, u8, u8, u32);

/// Makes the kernel drop packets that `program` does not accept.
pub(crate) fn attach_filter(socket: BorrowedFd<'_>, program: &[Instruction]) -> io::Result<()> {
    attach(socket, program, libc::SO_ATTACH_FILTER)
}

/// Lets `program` choose the socket for a datagram among the sockets of one address.
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
    enter(Call::Setsockopt)?;
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

/// Sends without checksums: the kernel refuses to merge on such a socket.
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
