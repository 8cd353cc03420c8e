//! Ancillary data of messages: socket control messages, read and written.

use std::mem::{self, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

use crate::sys::address::{in_addr, in6_addr};

/// Calls `f` with level, type and data of each control message that the kernel wrote for `header`, whose buffer is
/// now at `buffer`.
pub(super) fn each_control(
    header: &libc::msghdr,
    buffer: &[u64],
    mut f: impl FnMut(libc::c_int, libc::c_int, &[u8]),
) {
    let mut header = *header;
    header.msg_control = buffer.as_ptr().cast_mut().cast();
    header.msg_controllen = header.msg_controllen.min(size_of_val(buffer) as _);
    // SAFETY: the first `msg_controllen` bytes of the aligned buffer are well-formed ancillary data or zeros; a slice
    // covers the data of one message of it, whose length includes its header.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(&raw const header);
        while let Some(control) = next.as_ref() {
            let data = libc::CMSG_DATA(next);
            let before = data.offset_from(next.cast::<u8>()) as usize;
            let length = control.cmsg_len.saturating_sub(before as _);
            let data = std::slice::from_raw_parts(data, length as _);
            f(control.cmsg_level, control.cmsg_type, data);
            next = libc::CMSG_NXTHDR(&raw const header, next);
        }
    }
}

/// The destination address of a message, if this control message has it.
pub(super) fn packet_info(level: libc::c_int, kind: libc::c_int, data: &[u8]) -> Option<IpAddr> {
    match (level, kind) {
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => plain::<libc::in_pktinfo>(data)
            .map(|info| Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()).into()),
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => plain::<libc::in6_pktinfo>(data)
            .map(|info| Ipv6Addr::from(info.ipi6_addr.s6_addr))
            .filter(|ip| !ip.is_multicast())
            .map(IpAddr::V6),
        _ => None,
    }
}

/// A plain kernel type in control messages.
pub(super) trait Plain: Copy {}
impl Plain for libc::c_int {}
impl Plain for libc::in_pktinfo {}
impl Plain for libc::in6_pktinfo {}
impl Plain for libc::timespec {}
impl Plain for libc::sock_extended_err {}
impl Plain for libc::sockaddr_in {}
impl Plain for libc::sockaddr_in6 {}

/// The value at the start of a message's data, if it is complete.
pub(super) fn plain<T: Plain>(data: &[u8]) -> Option<T> {
    // SAFETY: there are enough bytes, and any bytes are a value of each of the types that are `Plain`.
    (data.len() >= size_of::<T>()).then(|| unsafe { ptr::read_unaligned(data.as_ptr().cast()) })
}

/// Writes the source address, if there is one, at `offset`; returns the space it takes.
pub(crate) fn write_source(buffer: &mut [u64], offset: usize, source: Option<IpAddr>) -> usize {
    match source {
        Some(IpAddr::V4(ip)) => {
            let info = libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: in_addr(ip),
                ipi_addr: in_addr(Ipv4Addr::UNSPECIFIED),
            };
            write_control(buffer, offset, libc::IPPROTO_IP, libc::IP_PKTINFO, info)
        }
        Some(IpAddr::V6(ip)) => {
            let info = libc::in6_pktinfo {
                ipi6_addr: in6_addr(ip),
                ipi6_ifindex: 0,
            };
            write_control(buffer, offset, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info)
        }
        None => 0,
    }
}

/// Writes one message at `offset`, a multiple of 8; returns the space it takes.
pub(crate) fn write_control<T: Copy>(
    buffer: &mut [u64],
    offset: usize,
    level: libc::c_int,
    kind: libc::c_int,
    value: T,
) -> usize {
    const HEADER: usize = size_of::<libc::cmsghdr>();
    let space = HEADER + size_of::<T>().next_multiple_of(size_of::<usize>());
    assert!(
        offset.is_multiple_of(8) && offset + space <= size_of_val(buffer),
        "room for all messages"
    );
    // SAFETY: the space lies within the buffer, which is aligned for a `cmsghdr`, as
    // are all offsets; all zeros is a valid `cmsghdr`.
    unsafe {
        let start = buffer.as_mut_ptr().cast::<u8>().add(offset);
        let mut header: libc::cmsghdr = mem::zeroed();
        header.cmsg_len = (HEADER + size_of::<T>()) as _;
        header.cmsg_level = level;
        header.cmsg_type = kind;
        start.cast::<libc::cmsghdr>().write(header);
        start.add(HEADER).cast::<T>().write_unaligned(value);
    }
    space
}
