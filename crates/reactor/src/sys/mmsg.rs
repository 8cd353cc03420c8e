//! recvmmsg(2) and sendmmsg(2) with their address and ancillary data.

use std::io;
use std::mem::{self, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use crate::sys::check;
use crate::syscalls::{Call, SysCounts};

/// Room for one packet-info and one segment-size message, as the kernel aligns them.
const CONTROL_WORDS: usize = 10;

type Control = [u64; CONTROL_WORDS];

/// An IPv4 or IPv6 socket address as the kernel writes it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union RawAddress {
    family: libc::sa_family_t,
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl RawAddress {
    pub(crate) fn zeroed() -> Self {
        // SAFETY: all zeros is a valid value of each of the union's plain C structs.
        unsafe { mem::zeroed() }
    }

    /// Writes `address`; returns its length.
    pub(crate) fn set(&mut self, address: SocketAddr) -> libc::socklen_t {
        match address {
            SocketAddr::V4(address) => {
                self.v4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: address.port().to_be(),
                    sin_addr: in_addr(*address.ip()),
                    sin_zero: [0; 8],
                };
                size_of::<libc::sockaddr_in>() as libc::socklen_t
            }
            SocketAddr::V6(address) => {
                self.v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: address.flowinfo(),
                    sin6_addr: in6_addr(*address.ip()),
                    sin6_scope_id: address.scope_id(),
                };
                size_of::<libc::sockaddr_in6>() as libc::socklen_t
            }
        }
    }

    pub(crate) fn get(&self) -> Option<SocketAddr> {
        // SAFETY: the union was zeroed or written whole, so that every variant's
        // bytes are initialised; all of them start with the family.
        unsafe {
            match i32::from(self.family) {
                libc::AF_INET => {
                    let ip = Ipv4Addr::from(self.v4.sin_addr.s_addr.to_ne_bytes());
                    Some(SocketAddrV4::new(ip, u16::from_be(self.v4.sin_port)).into())
                }
                libc::AF_INET6 => {
                    let ip = Ipv6Addr::from(self.v6.sin6_addr.s6_addr);
                    let port = u16::from_be(self.v6.sin6_port);
                    let (flow, scope) = (self.v6.sin6_flowinfo, self.v6.sin6_scope_id);
                    Some(SocketAddrV6::new(ip, port, flow, scope).into())
                }
                _ => None,
            }
        }
    }
}

fn in_addr(ip: Ipv4Addr) -> libc::in_addr {
    libc::in_addr {
        s_addr: u32::from_ne_bytes(ip.octets()),
    }
}

fn in6_addr(ip: Ipv6Addr) -> libc::in6_addr {
    libc::in6_addr {
        s6_addr: ip.octets(),
    }
}

pub(crate) fn empty_header() -> libc::mmsghdr {
    // SAFETY: all zeros (null pointers, no lengths) is a valid `mmsghdr`.
    unsafe { mem::zeroed() }
}

/// What the kernel said of one received message.
pub(crate) struct Message {
    /// The sender; `None` if the address family is unknown.
    pub(crate) peer: Option<SocketAddr>,
    /// The address it was sent to, if the socket reports it.
    pub(crate) local: Option<IpAddr>,
    /// Bytes of payload: one datagram, or several of `segment` bytes each.
    pub(crate) length: u32,
    /// Size of the joined datagrams, if they were joined.
    pub(crate) segment: Option<u32>,
    /// The payload did not fit.
    pub(crate) truncated: bool,
}

/// Buffers for a batch of messages, allocated once.
pub(crate) struct RecvSlots {
    // The headers point into the other vectors, which never grow.
    headers: Vec<libc::mmsghdr>,
    _vectors: Vec<libc::iovec>,
    names: Vec<RawAddress>,
    controls: Vec<Control>,
    payload: Vec<u8>,
    stride: usize,
    /// Headers that the kernel has written to.
    used: usize,
}

// SAFETY: the pointers lead only to memory that the struct itself owns.
unsafe impl Send for RecvSlots {}

impl RecvSlots {
    /// `stride` bytes apart, `size` of them used for each message.
    pub(crate) fn new(slots: usize, size: usize, stride: usize) -> Self {
        let mut payload = vec![0_u8; slots * stride];
        let mut names = vec![RawAddress::zeroed(); slots];
        let mut controls = vec![[0; CONTROL_WORDS]; slots];
        let mut vectors: Vec<libc::iovec> = payload
            .chunks_exact_mut(stride)
            .map(|chunk| libc::iovec {
                iov_base: chunk.as_mut_ptr().cast(),
                iov_len: size.min(stride),
            })
            .collect();
        let mut headers = vec![empty_header(); slots];
        for (i, header) in headers.iter_mut().enumerate() {
            header.msg_hdr.msg_name = (&raw mut names[i]).cast();
            header.msg_hdr.msg_iov = &raw mut vectors[i];
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = (&raw mut controls[i]).cast();
        }
        let used = slots;
        Self {
            headers,
            _vectors: vectors,
            names,
            controls,
            payload,
            stride,
            used,
        }
    }

    /// One recvmmsg call. Returns how many messages came.
    pub(crate) fn receive(&mut self, socket: &OwnedFd) -> io::Result<usize> {
        for header in &mut self.headers[..self.used] {
            header.msg_hdr.msg_namelen = size_of::<RawAddress>() as libc::socklen_t;
            header.msg_hdr.msg_controllen = size_of::<Control>() as _;
        }
        self.used = 0;
        SysCounts::note(Call::Recvmmsg);
        // SAFETY: the headers point to buffers of the lengths they say, which this
        // struct owns and nothing else refers to during the call.
        let result = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        self.used = check(result)?;
        Ok(self.used)
    }

    /// A message of the last call.
    pub(crate) fn message(&self, index: usize) -> Message {
        let header = &self.headers[..self.used][index];
        let (local, segment) = self.ancillary(index);
        Message {
            // Without a name the buffer holds that of an earlier message.
            peer: self.names[index]
                .get()
                .filter(|_| header.msg_hdr.msg_namelen > 0),
            local,
            length: header.msg_len.min(self.stride as u32),
            segment,
            truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
        }
    }

    /// The first `length` bytes of a message's payload.
    pub(crate) fn payload(&self, index: usize, length: usize) -> &[u8] {
        let start = index * self.stride;
        &self.payload[start..start + length]
    }

    /// The local address and the segment size of a message.
    fn ancillary(&self, index: usize) -> (Option<IpAddr>, Option<u32>) {
        let (mut local, mut segment) = (None, None);
        let mut header = self.headers[index].msg_hdr;
        header.msg_control = self.controls[index].as_ptr().cast_mut().cast();
        // SAFETY: the kernel wrote `msg_controllen` bytes of well-formed ancillary
        // data into the aligned buffer, and data of each kind has the kernel's type.
        unsafe {
            let mut next = libc::CMSG_FIRSTHDR(&raw const header);
            while let Some(control) = next.as_ref() {
                let data = libc::CMSG_DATA(next);
                match (control.cmsg_level, control.cmsg_type) {
                    (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                        let info = ptr::read_unaligned(data.cast::<libc::in_pktinfo>());
                        let ip = Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes());
                        local = Some(IpAddr::V4(ip));
                    }
                    (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                        let info = ptr::read_unaligned(data.cast::<libc::in6_pktinfo>());
                        let ip = Ipv6Addr::from(info.ipi6_addr.s6_addr);
                        local = (!ip.is_multicast()).then_some(IpAddr::V6(ip));
                    }
                    (libc::SOL_UDP, libc::UDP_GRO) => {
                        let size = ptr::read_unaligned(data.cast::<libc::c_int>());
                        segment = u32::try_from(size).ok().filter(|&size| size > 0);
                    }
                    _ => {}
                }
                next = libc::CMSG_NXTHDR(&raw const header, next);
            }
        }
        (local, segment)
    }
}

/// One message to send: a range of the payload, and where it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) start: usize,
    pub(crate) length: usize,
    /// The receiver; `None` on a connected socket.
    pub(crate) peer: Option<SocketAddr>,
    /// The address to send from, where the kernel is not to choose.
    pub(crate) local: Option<IpAddr>,
    /// The size that the payload is to be cut to, if it is several datagrams.
    pub(crate) segment: Option<u16>,
}

/// Headers for a batch of messages, allocated once.
pub(crate) struct SendSlots {
    headers: Vec<libc::mmsghdr>,
    vectors: Vec<libc::iovec>,
    names: Vec<RawAddress>,
    controls: Vec<Control>,
}

// SAFETY: the pointers are used only within `send`, which sets them first.
unsafe impl Send for SendSlots {}

impl SendSlots {
    pub(crate) fn new(slots: usize) -> Self {
        let vector = libc::iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        };
        Self {
            headers: vec![empty_header(); slots],
            vectors: vec![vector; slots],
            names: vec![RawAddress::zeroed(); slots],
            controls: vec![[0; CONTROL_WORDS]; slots],
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.headers.len()
    }

    /// One sendmmsg call for as many of `messages` as there are slots. Returns how
    /// many of them were sent; an error is about the first one.
    pub(crate) fn send(
        &mut self,
        socket: &OwnedFd,
        payload: &[u8],
        messages: &[Outgoing],
    ) -> io::Result<usize> {
        let count = messages.len().min(self.capacity());
        for (index, message) in messages[..count].iter().enumerate() {
            self.fill(index, payload, message);
        }
        SysCounts::note(Call::Sendmmsg);
        // SAFETY: the headers point to parts of `payload`, which the kernel only
        // reads, and to this struct's buffers, with the lengths they say.
        check(unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                count as libc::c_uint,
                (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
            )
        })
    }

    fn fill(&mut self, index: usize, payload: &[u8], message: &Outgoing) {
        let bytes = &payload[message.start..message.start + message.length];
        self.vectors[index] = libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        let controls = write_controls(&mut self.controls[index], message);
        let name_length = message.peer.map_or(0, |peer| self.names[index].set(peer));
        let header = &mut self.headers[index].msg_hdr;
        header.msg_name = if name_length == 0 {
            ptr::null_mut()
        } else {
            (&raw mut self.names[index]).cast()
        };
        header.msg_namelen = name_length;
        header.msg_iov = &raw mut self.vectors[index];
        header.msg_iovlen = 1;
        header.msg_control = if controls == 0 {
            ptr::null_mut()
        } else {
            (&raw mut self.controls[index]).cast()
        };
        header.msg_controllen = controls as _;
    }
}

/// Writes the source address and segment size of `message`; returns the length.
fn write_controls(buffer: &mut Control, message: &Outgoing) -> usize {
    let mut used = write_source(buffer, 0, message.local);
    if let Some(size) = message.segment {
        used += write_control(buffer, used, libc::SOL_UDP, libc::UDP_SEGMENT, size);
    }
    used
}

/// Writes the address to send from, if there is one, at `offset`; returns the space it takes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_does_not_fit_is_marked_truncated() {
        let (a, b) = std::os::unix::net::UnixDatagram::pair().unwrap();
        a.send(&[1; 16]).unwrap();
        a.send(&[2; 17]).unwrap();
        let mut slots = RecvSlots::new(4, 16, 64);
        assert_eq!(slots.receive(&b.into()).unwrap(), 2);
        let (first, second) = (slots.message(0), slots.message(1));
        assert_eq!((first.length, first.truncated), (16, false));
        assert_eq!((second.length, second.truncated), (16, true));
        assert_eq!(slots.payload(0, 16), [1; 16]);
    }

    #[test]
    fn socket_addresses_survive_the_way_to_the_kernel_and_back() {
        for text in ["192.0.2.1:1701", "[2001:db8::1]:65535", "[fe80::1%7]:1"] {
            let address: SocketAddr = text.parse().unwrap();
            let mut raw = RawAddress::zeroed();
            raw.set(address);
            assert_eq!(raw.get(), Some(address));
        }
        assert_eq!(RawAddress::zeroed().get(), None);
    }
}
