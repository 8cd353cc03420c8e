//! Receiving packets with their times, and errors.

use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::clock::now;
use crate::datagram::is_about_an_earlier_datagram;
use crate::sys::timed::{Envelope, RecvSlots};
use crate::timed::{Family, QUOTE_BYTES, SocketKind, Stamp, TimedSocket};

/// How often receiving is tried again that failed for an error which an earlier packet caused.
const RETRIES: usize = 16;

/// A packet of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedPacket<'a> {
    /// An ICMP message or UDP payload, as far as the batch had room.
    pub bytes: &'a [u8],
    /// Its whole length in octets.
    pub length: usize,
    /// Who sent it.
    pub from: SocketAddr,
    /// The address it was sent to.
    pub to: Option<IpAddr>,
    /// When it came.
    pub arrived: Stamp,
    /// What was left of its time to live or hop limit.
    pub hop_limit: Option<u8>,
    /// Its TOS octet or traffic class.
    pub traffic_class: Option<u8>,
}

/// Who says that a packet did not get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorSource {
    /// This host, for example that the packet is larger than the path takes.
    Local,
    /// A router or the destination, by ICMP's or ICMPv6's type and code.
    Icmp {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
    },
}

/// What became of a packet that did not get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkError {
    /// When this was learned.
    pub at: Stamp,
    /// Who says so.
    pub source: ErrorSource,
    /// It as an error number of the system; see [`NetworkError::error`].
    pub errno: i32,
    /// More of it: the path's MTU when the packet is too big.
    pub info: u32,
    /// Where the packet was sent.
    pub to: Option<SocketAddr>,
    /// Who says so, if not this host.
    pub from: Option<IpAddr>,
    pub(super) quote: [u8; QUOTE_BYTES],
    pub(super) length: usize,
}

impl NetworkError {
    /// The packet's first octets, as far as they came back: at least 8 of the ICMP message, or what came back of UDP's
    /// payload.
    #[must_use]
    pub fn quote(&self) -> &[u8] {
        &self.quote[..self.length]
    }

    /// It as an error with a text.
    #[must_use]
    pub fn error(&self) -> io::Error {
        io::Error::from_raw_os_error(self.errno)
    }
}

/// Buffers for the packets of one call, allocated once and used again.
pub struct TimedBatch {
    slots: RecvSlots,
    packets: Vec<Received>,
    filled: usize,
}

struct Received {
    envelope: Envelope,
    from: SocketAddr,
    arrived: Stamp,
    /// Octets of an IP header in front.
    skip: usize,
}

impl TimedBatch {
    /// A batch of up to `slots` packets, at least one and at most 1,024, with room for `bytes` octets of each.
    #[must_use]
    pub fn new(slots: usize, bytes: usize) -> Self {
        let slots = slots.clamp(1, 1024);
        Self {
            slots: RecvSlots::new(slots, bytes.clamp(64, 65_536)),
            packets: Vec::with_capacity(slots),
            filled: 0,
        }
    }

    /// Whether the last call filled it, so that more may be waiting.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.filled == self.slots.capacity()
    }

    /// The packets of the last call, in the order of their arrival.
    pub fn iter(&self) -> impl Iterator<Item = TimedPacket<'_>> {
        self.packets.iter().enumerate().map(|(index, packet)| {
            let bytes = self.slots.bytes(index);
            TimedPacket {
                bytes: bytes.get(packet.skip..).unwrap_or_default(),
                length: packet.envelope.length.saturating_sub(packet.skip),
                from: packet.from,
                to: packet.envelope.local,
                arrived: packet.arrived,
                hop_limit: packet.envelope.hop_limit,
                traffic_class: packet.envelope.traffic_class,
            }
        })
    }
}

impl TimedSocket {
    /// Receives what is there, up to the batch's slots, with one call. Returns how many packets [`TimedBatch::iter`]
    /// will yield; none if nothing was there.
    ///
    /// # Errors
    /// What the kernel said of the socket itself; not what became of an earlier packet, which
    /// [`TimedSocket::send_times`] collects.
    pub fn recv(&mut self, batch: &mut TimedBatch) -> io::Result<usize> {
        batch.filled = 0;
        batch.packets.clear();
        for _ in 0..RETRIES {
            match batch.slots.receive(&self.fd, false) {
                Ok(count) => {
                    batch.filled = count;
                    self.open(batch);
                    return Ok(count);
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(0),
                    Some(libc::EINTR) => {}
                    Some(code) if is_about_an_earlier_datagram(code) => {}
                    _ => return Err(error),
                },
            }
        }
        Ok(0)
    }

    fn open(&mut self, batch: &mut TimedBatch) {
        self.clock.refresh();
        let own = self.clock.own(now());
        for index in 0..batch.filled {
            let envelope = batch.slots.envelope(index);
            let arrived = envelope
                .stamp
                .map_or(own, |real_ns| self.clock.convert(real_ns));
            self.stats.received_stamped += u64::from(arrived.by_kernel);
            let with_header = self.kind == SocketKind::Raw && self.family == Family::V4;
            let first = batch.slots.bytes(index).first().copied().unwrap_or(0);
            let skip = if with_header {
                usize::from(first & 0x0f) * 4
            } else {
                0
            };
            batch.packets.push(Received {
                envelope,
                // These families always name the sender.
                from: envelope.peer.unwrap_or(self.local),
                arrived,
                skip,
            });
        }
        self.stats.received += batch.filled as u64;
    }
}
