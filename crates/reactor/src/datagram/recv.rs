//! Receiving a batch with one call.

use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::datagram::UdpSocket;
use crate::sys::mmsg::RecvSlots;

/// The largest message the kernel hands over: a UDP datagram, or several joined.
const SLOT_BYTES: usize = 65_536;

/// Slots are this far apart so that their beginnings do not compete for the same
/// lines of the processor's cache.
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
/// Each slot takes the largest message there is, so that none is cut short; memory
/// is used only as far as it was ever filled.
pub struct RecvBatch {
    slots: RecvSlots,
    capacity: usize,
    /// The messages of the last call that were received whole.
    messages: Vec<Envelope>,
    filled: usize,
}

/// A message of the last call: its slot, its length, and what it is cut into.
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

    /// Whether the last call filled it, so that more may be waiting.
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
            // An empty datagram is one too.
            let empty = bytes.is_empty().then_some(bytes);
            let parts = bytes.chunks(envelope.segment as usize).chain(empty);
            parts.map(move |bytes| Received { peer, local, bytes })
        })
    }
}

impl UdpSocket {
    /// Receives what is there, up to the batch's slots, with one call. Returns how
    /// many datagrams [`RecvBatch::iter`] will yield; none if nothing was there.
    ///
    /// An error that an earlier datagram caused (a peer's port was closed) is
    /// collected and counted, and does not stop the loop.
    ///
    /// # Errors
    /// What the kernel said of the socket itself.
    pub fn recv(&mut self, batch: &mut RecvBatch) -> io::Result<usize> {
        batch.filled = 0;
        batch.messages.clear();
        // Each failing try takes one error from the socket, which holds one at most
        // besides those that datagrams sent meanwhile cause.
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

    /// Reads what the kernel said of each message; returns the datagrams in them.
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

/// Whether an error received on a socket was caused by a datagram sent before (ip(7),
/// `IP_RECVERR`; ICMP errors on connected sockets).
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
