//! recvmmsg(2) and sendmmsg(2) with time stamps, traffic classes and the error queue.

use std::io;
use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use crate::sys::check;
use crate::sys::mmsg::{RawAddress, empty_header, write_control, write_source};
use crate::syscalls::{Call, SysCounts};

/// Room for time stamps, a hop limit, a traffic class, packet info, and an error with its offender.
const CONTROL_WORDS: usize = 40;

type Control = [u64; CONTROL_WORDS];

/// Gives a packet the number that its time stamp will carry (Linux 6.13); not yet in every libc.
const SCM_TS_OPT_ID: libc::c_int = 81;

/// An entry of the error queue (ip(7), `IP_RECVERR`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedError {
    pub(crate) errno: u32,
    pub(crate) origin: u8,
    pub(crate) kind: u8,
    pub(crate) code: u8,
    pub(crate) info: u32,
    pub(crate) data: u32,
    pub(crate) offender: Option<IpAddr>,
}

/// What the kernel said of one received message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Envelope {
    /// The sender, or of an error the address that was sent to.
    pub(crate) peer: Option<SocketAddr>,
    /// The address it was sent to.
    pub(crate) local: Option<IpAddr>,
    /// Its whole length, of which the buffer may hold less.
    pub(crate) length: usize,
    /// `CLOCK_REALTIME` in nanoseconds.
    pub(crate) stamp: Option<u64>,
    pub(crate) hop_limit: Option<u8>,
    pub(crate) traffic_class: Option<u8>,
    pub(crate) error: Option<QueuedError>,
}

/// Buffers for a batch of messages, allocated once.
pub(crate) struct RecvSlots {
    // The headers point into the other vectors, which never grow.
    headers: Vec<libc::mmsghdr>,
    _vectors: Vec<libc::iovec>,
    names: Vec<RawAddress>,
    controls: Vec<Control>,
    payload: Vec<u8>,
    size: usize,
    /// Headers that the kernel has written to.
    used: usize,
}

// SAFETY: the pointers lead only to memory that the struct itself owns.
unsafe impl Send for RecvSlots {}

impl RecvSlots {
    /// `size` bytes for each message.
    pub(crate) fn new(slots: usize, size: usize) -> Self {
        let mut payload = vec![0_u8; slots * size];
        let mut names = vec![RawAddress::zeroed(); slots];
        let mut controls = vec![[0; CONTROL_WORDS]; slots];
        let mut vectors: Vec<libc::iovec> = payload
            .chunks_exact_mut(size)
            .map(|chunk| libc::iovec {
                iov_base: chunk.as_mut_ptr().cast(),
                iov_len: size,
            })
            .collect();
        let mut headers = vec![empty_header(); slots];
        for (i, header) in headers.iter_mut().enumerate() {
            header.msg_hdr.msg_name = (&raw mut names[i]).cast();
            header.msg_hdr.msg_iov = &raw mut vectors[i];
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = (&raw mut controls[i]).cast();
        }
        Self {
            headers,
            _vectors: vectors,
            names,
            controls,
            payload,
            size,
            used: slots,
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.headers.len()
    }

    /// One recvmmsg call, on the error queue if `errors`. Returns how many messages came.
    pub(crate) fn receive(&mut self, socket: &OwnedFd, errors: bool) -> io::Result<usize> {
        for header in &mut self.headers[..self.used] {
            header.msg_hdr.msg_namelen = size_of::<RawAddress>() as libc::socklen_t;
            header.msg_hdr.msg_controllen = size_of::<Control>() as _;
        }
        self.used = 0;
        let queue = if errors { libc::MSG_ERRQUEUE } else { 0 };
        SysCounts::note(Call::Recvmmsg);
        // SAFETY: the headers point to buffers of the lengths they say, which this
        // struct owns and nothing else refers to during the call.
        let result = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as libc::c_uint,
                (libc::MSG_DONTWAIT | libc::MSG_TRUNC | queue) as _,
                ptr::null_mut(),
            )
        };
        self.used = check(result)?;
        Ok(self.used)
    }

    /// The octets of a message, as far as there was room.
    pub(crate) fn bytes(&self, index: usize) -> &[u8] {
        let length = (self.headers[..self.used][index].msg_len as usize).min(self.size);
        let start = index * self.size;
        &self.payload[start..start + length]
    }

    /// What the kernel said of a message of the last call.
    pub(crate) fn envelope(&self, index: usize) -> Envelope {
        let raw = &self.headers[..self.used][index];
        let named = raw.msg_hdr.msg_namelen > 0;
        let mut envelope = Envelope {
            // Without a name the buffer holds that of an earlier message.
            peer: self.names[index].get().filter(|_| named),
            length: raw.msg_len as usize,
            ..Envelope::default()
        };
        let mut header = raw.msg_hdr;
        header.msg_control = self.controls[index].as_ptr().cast_mut().cast();
        // SAFETY: the kernel wrote `msg_controllen` bytes of well-formed ancillary data into the aligned buffer; the
        // slice covers the data of one message of it, whose length includes its header.
        unsafe {
            let mut next = libc::CMSG_FIRSTHDR(&raw const header);
            while let Some(control) = next.as_ref() {
                let data = libc::CMSG_DATA(next);
                let before = data.offset_from(next.cast::<u8>()) as usize;
                let length = control.cmsg_len.saturating_sub(before as _);
                let data = std::slice::from_raw_parts(data, length as _);
                envelope.note(control.cmsg_level, control.cmsg_type, data);
                next = libc::CMSG_NXTHDR(&raw const header, next);
            }
        }
        envelope
    }
}

impl Envelope {
    /// Takes one control message in.
    fn note(&mut self, level: libc::c_int, kind: libc::c_int, data: &[u8]) {
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => self.stamp = software_stamp(data),
            (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                self.hop_limit = plain::<libc::c_int>(data).map(|value| value as u8);
            }
            (libc::IPPROTO_IP, libc::IP_TOS) => self.traffic_class = data.first().copied(),
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                self.traffic_class = plain::<libc::c_int>(data).map(|value| value as u8);
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                self.local = plain::<libc::in_pktinfo>(data)
                    .map(|info| IpAddr::V4(Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes())));
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                self.local = plain::<libc::in6_pktinfo>(data)
                    .map(|info| Ipv6Addr::from(info.ipi6_addr.s6_addr))
                    .filter(|ip| !ip.is_multicast())
                    .map(IpAddr::V6);
            }
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                self.error = queued_error(data);
            }
            _ => {}
        }
    }
}

/// A value of one of the kernel's plain types that control messages carry.
trait Plain: Copy {}
impl Plain for libc::c_int {}
impl Plain for libc::in_pktinfo {}
impl Plain for libc::in6_pktinfo {}
impl Plain for libc::timespec {}
impl Plain for libc::sock_extended_err {}
impl Plain for libc::sockaddr_in {}
impl Plain for libc::sockaddr_in6 {}

fn plain<T: Plain>(data: &[u8]) -> Option<T> {
    // SAFETY: there are enough bytes, and any bytes are a value of each of the types that are `Plain`.
    (data.len() >= size_of::<T>()).then(|| unsafe { ptr::read_unaligned(data.as_ptr().cast()) })
}

/// The first of the three stamps, which is the software's; none if it is zero.
fn software_stamp(data: &[u8]) -> Option<u64> {
    let time = plain::<libc::timespec>(data)?;
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanos = u64::try_from(time.tv_nsec).ok()?;
    let stamp = seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?;
    (stamp > 0).then_some(stamp)
}

fn queued_error(data: &[u8]) -> Option<QueuedError> {
    let error = plain::<libc::sock_extended_err>(data)?;
    let address = data.get(size_of::<libc::sock_extended_err>()..)?;
    let family = address
        .first_chunk::<2>()
        .map(|raw| i32::from(u16::from_ne_bytes(*raw)));
    let offender = match family {
        Some(libc::AF_INET) => plain::<libc::sockaddr_in>(address)
            .map(|raw| IpAddr::V4(Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes()))),
        Some(libc::AF_INET6) => plain::<libc::sockaddr_in6>(address)
            .map(|raw| IpAddr::V6(Ipv6Addr::from(raw.sin6_addr.s6_addr))),
        _ => None,
    };
    Some(QueuedError {
        errno: error.ee_errno,
        origin: error.ee_origin,
        kind: error.ee_type,
        code: error.ee_code,
        info: error.ee_info,
        data: error.ee_data,
        offender,
    })
}

/// One message to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) to: SocketAddr,
    pub(crate) from: Option<IpAddr>,
    pub(crate) traffic_class: u8,
    /// The number that its time stamp shall carry, if the kernel takes one.
    pub(crate) number: Option<u32>,
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

    /// One sendmmsg call for as many of `messages` as there are slots. Returns how many of them were sent; an error is
    /// about the first one.
    pub(crate) fn send<'a>(
        &mut self,
        socket: &OwnedFd,
        messages: impl Iterator<Item = Message<'a>>,
    ) -> io::Result<usize> {
        let mut count = 0;
        for (index, message) in messages.take(self.capacity()).enumerate() {
            self.fill(index, &message);
            count = index + 1;
        }
        SysCounts::note(Call::Sendmmsg);
        // SAFETY: the headers point to the messages' bytes, which live for `'a` and are only read, and to this
        // struct's buffers, with the lengths they say.
        check(unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                count as libc::c_uint,
                (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
            )
        })
    }

    fn fill(&mut self, index: usize, message: &Message<'_>) {
        self.vectors[index] = libc::iovec {
            iov_base: message.bytes.as_ptr().cast_mut().cast(),
            iov_len: message.bytes.len(),
        };
        let control = &mut self.controls[index];
        let (level, kind) = match message.to {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
        };
        let class = libc::c_int::from(message.traffic_class);
        let mut used = write_control(control, 0, level, kind, class);
        used += write_source(control, used, message.from);
        if let Some(number) = message.number {
            used += write_control(control, used, libc::SOL_SOCKET, SCM_TS_OPT_ID, number);
        }
        let header = &mut self.headers[index].msg_hdr;
        header.msg_namelen = self.names[index].set(message.to);
        header.msg_name = (&raw mut self.names[index]).cast();
        header.msg_iov = &raw mut self.vectors[index];
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = used as _;
    }
}
