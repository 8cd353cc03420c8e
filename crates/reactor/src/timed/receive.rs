//! Receives packets with their time stamps, and errors.

use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::clock::now;
use crate::datagram::is_about_an_earlier_datagram;
use crate::sys::timed::{Envelope, RecvSlots};
use crate::timed::{Family, QUOTE_BYTES, SocketKind, Stamp, TimedSocket};

/// How often to retry receiving after an error that an earlier packet caused.
const RETRIES: usize = 16;

/// A packet of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedPacket<'a> {
    /// An ICMP message or UDP payload, as far as the batch had room.
    pub bytes: &'a [u8],
    /// Its full length in bytes.
    pub length: usize,
    /// The sender.
    pub from: SocketAddr,
    /// The address it was sent to.
    pub to: Option<IpAddr>,
    /// When it arrived.
    pub arrived: Stamp,
    /// Its remaining time to live or hop limit.
    pub hop_limit: Option<u8>,
    /// Its TOS octet or traffic class.
    pub traffic_class: Option<u8>,
}

/// The source of an error report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorSource {
    /// This host, for example because the packet exceeds the path MTU.
    Local,
    /// A router or the destination, by type and code of ICMP or ICMPv6.
    Icmp {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
    },
}

/// An error report about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkError {
    /// When it was received.
    pub at: Stamp,
    /// The source of the report.
    pub source: ErrorSource,
    /// The OS error number; see [`NetworkError::error`].
    pub errno: i32,
    /// Further information: the path MTU if the packet was too big.
    pub info: u32,
    /// The packet's destination.
    pub to: Option<SocketAddr>,
    /// The reporting host, if not this one.
    pub from: Option<IpAddr>,
    pub(super) quote: [u8; QUOTE_BYTES],
    pub(super) length: usize,
}

impl NetworkError {
    /// The packet's first bytes, as far as the report has them: at least 8 bytes of the ICMP message, or the returned
    /// part of UDP's payload.
    #[must_use]
    pub fn quote(&self) -> &[u8] {
        &self.quote[..self.length]
    }

    /// The error with a text.
    #[must_use]
    pub fn error(&self) -> io::Error {
        io::Error::from_raw_os_error(self.errno)
    }
}

/// Buffers for the packets of one call, allocated once and reused.
pub struct TimedBatch {
    slots: RecvSlots,
    packets: Vec<Received>,
    filled: usize,
}

struct Received {
    envelope: Envelope,
    from: SocketAddr,
    arrived: Stamp,
    /// Bytes of an IP header before each packet.
    skip: usize,
}

impl TimedBatch {
    /// A batch of up to `slots` packets, at least one and at most 1,024, with room for `bytes` bytes of each.
    #[must_use]
    pub fn new(slots: usize, bytes: usize) -> Self {
        let slots = slots.clamp(1, 1024);
        Self {
            slots: RecvSlots::new(slots, bytes.clamp(64, 65_536)),
            packets: Vec::with_capacity(slots),
            filled: 0,
        }
    }

    /// Whether the last call filled it, so that more packets may be waiting.
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
    /// Receives the waiting packets with one call, up to the batch's slots. Returns the number of packets that
    /// [`TimedBatch::iter`] yields; 0 if none was waiting.
    ///
    /// # Errors
    /// The kernel's error for the socket itself. Errors about earlier packets are left to
    /// [`TimedSocket::send_times`].
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
