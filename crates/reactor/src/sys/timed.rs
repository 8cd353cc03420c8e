//! Batches of messages with time stamps, traffic classes and the error queue.

use std::io;
use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use crate::sys::batch::{Headers, Incoming, Outgoing};
use crate::sys::control::{packet_info, plain, write_control, write_source};

/// Room for time stamps, a hop limit, a traffic class, packet info, and an error with its offender.
const CONTROL_WORDS: usize = 40;

/// Sets the number that a packet's time stamp will carry (Linux 6.13); not yet in every libc.
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

/// The kernel's description of a received message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Envelope {
    /// The sender; for an error, the destination of the packet.
    pub(crate) peer: Option<SocketAddr>,
    /// The address it was sent to.
    pub(crate) local: Option<IpAddr>,
    /// Its full length; the buffer may hold less.
    pub(crate) length: usize,
    /// `CLOCK_REALTIME` in nanoseconds.
    pub(crate) stamp: Option<u64>,
    pub(crate) hop_limit: Option<u8>,
    pub(crate) traffic_class: Option<u8>,
    pub(crate) error: Option<QueuedError>,
}

/// Buffers for a batch of messages, allocated once.
pub(crate) struct RecvSlots {
    slots: Incoming<CONTROL_WORDS>,
    size: usize,
}

impl RecvSlots {
    /// `size` bytes for each message.
    pub(crate) fn new(slots: usize, size: usize) -> Self {
        Self {
            slots: Incoming::new(slots, size, size),
            size,
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// One recvmmsg call, on the error queue if `errors`. Returns the number of messages.
    pub(crate) fn receive(&mut self, socket: &OwnedFd, errors: bool) -> io::Result<usize> {
        let queue = if errors { libc::MSG_ERRQUEUE } else { 0 };
        self.slots.receive(socket, libc::MSG_TRUNC | queue)
    }

    /// The bytes of a message, as far as there was room.
    pub(crate) fn bytes(&self, index: usize) -> &[u8] {
        let length = self.slots.length(index) as usize;
        self.slots.payload(index, length.min(self.size))
    }

    /// The kernel's description of a message of the last call.
    pub(crate) fn envelope(&self, index: usize) -> Envelope {
        let mut envelope = Envelope {
            peer: self.slots.name(index),
            length: self.slots.length(index) as usize,
            ..Envelope::default()
        };
        self.slots
            .each_control(index, |level, kind, data| envelope.note(level, kind, data));
        envelope
    }
}

impl Envelope {
    /// Reads one control message.
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
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                self.error = queued_error(data);
            }
            _ => self.local = packet_info(level, kind, data).or(self.local),
        }
    }
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
    /// The number that its time stamp will carry, if the kernel supports that.
    pub(crate) number: Option<u32>,
}

/// Headers for a batch of messages, allocated once.
pub(crate) struct SendSlots(Headers<CONTROL_WORDS>);

impl SendSlots {
    pub(crate) fn new(slots: usize) -> Self {
        Self(Headers::new(slots))
    }

    /// One sendmmsg call for as many of `messages` as there are slots. Returns the number sent; an error is about the
    /// first one.
    pub(crate) fn send<'a>(
        &mut self,
        socket: &OwnedFd,
        messages: impl Iterator<Item = Message<'a>>,
    ) -> io::Result<usize> {
        self.0.send(socket, messages)
    }
}

impl<'a> Outgoing<'a> for Message<'a> {
    fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    fn peer(&self) -> Option<SocketAddr> {
        Some(self.to)
    }

    fn write_controls(&self, buffer: &mut [u64]) -> usize {
        let (level, kind) = match self.to {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
        };
        let class = libc::c_int::from(self.traffic_class);
        let mut used = write_control(buffer, 0, level, kind, class);
        used += write_source(buffer, used, self.from);
        if let Some(number) = self.number {
            used += write_control(buffer, used, libc::SOL_SOCKET, SCM_TS_OPT_ID, number);
        }
        used
    }
}
