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
    filled: usize,
    local: Option<IpAddr>,
}

impl RecvBatch {
    /// A batch of up to `slots` messages, at least one and at most 1,024.
    pub fn new(slots: usize) -> Self {
        let capacity = slots.clamp(1, 1024);
        let slots = RecvSlots::new(capacity, SLOT_BYTES, STRIDE_BYTES);
        Self {
            slots,
            capacity,
            filled: 0,
            local: None,
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
        (0..self.filled).flat_map(move |index| {
            let message = self.slots.message(index);
            let peer = message.peer.filter(|_| !message.truncated);
            let local = message.local.or(self.local);
            split(message.bytes, message.segment).filter_map(move |bytes| {
                Some(Received {
                    peer: peer?,
                    local,
                    bytes,
                })
            })
        })
    }
}

/// The datagrams of a message; one that is empty is a datagram too.
fn split(bytes: &[u8], segment: Option<usize>) -> impl Iterator<Item = &[u8]> {
    let size = segment.unwrap_or(bytes.len()).max(1);
    let empty = bytes.is_empty().then_some(bytes);
    bytes.chunks(size).chain(empty)
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
        batch.local = self.fixed_local();
        // Each failing try takes one error from the socket, which holds one at most
        // besides those that datagrams sent meanwhile cause.
        for _ in 0..3 {
            match batch.slots.receive(&self.fd) {
                Ok(messages) => {
                    batch.filled = messages;
                    return Ok(self.count(batch));
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(0),
                    Some(libc::EINTR) => {}
                    Some(
                        libc::ECONNREFUSED
                        | libc::EHOSTUNREACH
                        | libc::ENETUNREACH
                        | libc::EHOSTDOWN
                        | libc::ENETDOWN
                        | libc::ENOPROTOOPT
                        | libc::EPROTO
                        | libc::EMSGSIZE
                        | libc::EACCES,
                    ) => self.stats.receive_errors += 1,
                    _ => return Err(error),
                },
            }
        }
        Ok(0)
    }

    /// Books what a batch holds; returns its datagrams.
    fn count(&mut self, batch: &RecvBatch) -> usize {
        let mut datagrams = 0;
        for index in 0..batch.filled {
            let message = batch.slots.message(index);
            if message.truncated {
                self.stats.truncated += 1;
                continue;
            }
            let size = message.segment.unwrap_or(message.bytes.len()).max(1);
            let parts = message.bytes.len().div_ceil(size).max(1);
            self.stats.joined += u64::from(parts > 1);
            datagrams += parts;
        }
        self.stats.received += datagrams as u64;
        datagrams
    }
}
