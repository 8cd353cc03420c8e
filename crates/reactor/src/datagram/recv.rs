//! Receiving a batch with one call.

use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::datagram::UdpSocket;
use crate::sys::mmsg::RecvSlots;

/// The largest message from the kernel: a UDP datagram, or several joined.
const SLOT_BYTES: usize = 65_536;

/// Distance of the slots: their starts must not compete for the same cache lines.
const STRIDE_BYTES: usize = SLOT_BYTES + 320;

/// A datagram of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// Who sent it.
    pub peer: SocketAddr,
    /// The address it was sent to.
    pub local: Option<IpAddr>,
    /// Its payload.
    pub bytes: &'a [u8],
}

/// Buffers for the datagrams of one call, allocated once and used again.
///
/// Each slot takes the largest possible message, so none is truncated. Memory is used only as far as slots were ever
/// filled.
pub struct RecvBatch {
    slots: RecvSlots,
    capacity: usize,
    /// The complete messages of the last call.
    messages: Vec<Envelope>,
    filled: usize,
}

/// A message of the last call: its slot, its length, and the size of its datagrams.
#[derive(Clone, Copy)]
struct Envelope {
    peer: SocketAddr,
    local: Option<IpAddr>,
    slot: u32,
    length: u32,
    segment: u32,
}

impl RecvBatch {
    /// A batch of up to `slots` messages, at least one and at most 1,024.
    pub fn new(slots: usize) -> Self {
        let capacity = slots.clamp(1, 1024);
        let slots = RecvSlots::new(capacity, SLOT_BYTES, STRIDE_BYTES);
        Self {
            slots,
            capacity,
            messages: Vec::with_capacity(capacity),
            filled: 0,
        }
    }

    /// How many messages it can take.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether the last call filled it, so that more datagrams may be waiting.
    pub fn is_full(&self) -> bool {
        self.filled == self.capacity
    }

    /// The datagrams of the last call, in the order of their arrival.
    pub fn iter(&self) -> impl Iterator<Item = Received<'_>> {
        self.messages.iter().flat_map(|envelope| {
            let &Envelope { peer, local, .. } = envelope;
            let bytes = self
                .slots
                .payload(envelope.slot as usize, envelope.length as usize);
            // An empty datagram counts too.
            let empty = bytes.is_empty().then_some(bytes);
            let parts = bytes.chunks(envelope.segment as usize).chain(empty);
            parts.map(move |bytes| Received { peer, local, bytes })
        })
    }
}

impl UdpSocket {
    /// Receives the waiting datagrams with one call, up to the batch's slots. Returns the number of datagrams that
    /// [`RecvBatch::iter`] yields; 0 if none was waiting.
    ///
    /// An error that an earlier datagram caused (a peer's port was closed) is counted, and does not stop the loop.
    ///
    /// # Errors
    /// The kernel's error for the socket itself.
    pub fn recv(&mut self, batch: &mut RecvBatch) -> io::Result<usize> {
        batch.filled = 0;
        batch.messages.clear();
        // Each failing call takes one error from the socket. It holds one at most, besides those that datagrams sent
        // meanwhile cause.
        for _ in 0..3 {
            match batch.slots.receive(&self.fd) {
                Ok(messages) => {
                    batch.filled = messages;
                    return Ok(self.open(batch));
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(0),
                    Some(libc::EINTR) => {}
                    Some(code) if is_about_an_earlier_datagram(code) => {
                        self.stats.receive_errors += 1;
                    }
                    _ => return Err(error),
                },
            }
        }
        Ok(0)
    }

    /// Reads the kernel's description of each message; returns the number of datagrams.
    fn open(&mut self, batch: &mut RecvBatch) -> usize {
        let fixed_local = self.fixed_local();
        let mut datagrams = 0;
        for slot in 0..batch.filled {
            let message = batch.slots.message(slot);
            let (false, Some(peer)) = (message.truncated, message.peer) else {
                self.stats.truncated += 1;
                continue;
            };
            let length = message.length;
            let segment = message.segment.unwrap_or(length).max(1);
            let parts = length.div_ceil(segment).max(1);
            self.stats.joined += u64::from(parts > 1);
            datagrams += parts as usize;
            let local = message.local.or(fixed_local);
            let slot = slot as u32;
            batch.messages.push(Envelope {
                peer,
                local,
                slot,
                length,
                segment,
            });
        }
        self.stats.received += datagrams as u64;
        datagrams
    }
}

/// Whether an error received on a socket was caused by a datagram sent earlier (ip(7), `IP_RECVERR`; ICMP errors on
/// connected sockets).
pub(crate) fn is_about_an_earlier_datagram(code: i32) -> bool {
    matches!(
        code,
        libc::ECONNREFUSED
            | libc::EHOSTUNREACH
            | libc::ENETUNREACH
            | libc::EHOSTDOWN
            | libc::ENETDOWN
            | libc::ENONET
            | libc::ENOPROTOOPT
            | libc::EPROTO
            | libc::EOPNOTSUPP
            | libc::EMSGSIZE
            | libc::EACCES
    )
}
