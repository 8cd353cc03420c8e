//! Batches of datagrams: their destination, and how the kernel joined them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use crate::sys::batch::{self, Headers, Incoming};
use crate::sys::control::{packet_info, plain, write_control, write_source};

/// Room for one packet-info and one segment-size message, with the kernel's alignment.
const CONTROL_WORDS: usize = 10;

/// The kernel's description of a received message.
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
    slots: Incoming<CONTROL_WORDS>,
    stride: u32,
}

impl RecvSlots {
    /// `stride` bytes apart, `size` of them used for each message.
    pub(crate) fn new(slots: usize, size: usize, stride: usize) -> Self {
        Self {
            slots: Incoming::new(slots, size, stride),
            stride: stride as u32,
        }
    }

    /// One recvmmsg call. Returns the number of messages.
    pub(crate) fn receive(&mut self, socket: &OwnedFd) -> io::Result<usize> {
        self.slots.receive(socket, 0)
    }

    /// A message of the last call.
    pub(crate) fn message(&self, index: usize) -> Message {
        let mut message = Message {
            peer: self.slots.name(index),
            local: None,
            length: self.slots.length(index).min(self.stride),
            segment: None,
            truncated: self.slots.is_truncated(index),
        };
        self.slots.each_control(index, |level, kind, data| {
            if (level, kind) == (libc::SOL_UDP, libc::UDP_GRO) {
                let size = plain::<libc::c_int>(data);
                message.segment = size
                    .and_then(|size| u32::try_from(size).ok())
                    .filter(|&size| size > 0);
            } else if let Some(local) = packet_info(level, kind, data) {
                message.local = Some(local);
            }
        });
        message
    }

    /// The first `length` bytes of a message's payload.
    pub(crate) fn payload(&self, index: usize, length: usize) -> &[u8] {
        self.slots.payload(index, length)
    }
}

/// One message to send: a range of the payload, and its destination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) start: usize,
    pub(crate) length: usize,
    /// The receiver; `None` on a connected socket.
    pub(crate) peer: Option<SocketAddr>,
    /// The source address; `None` lets the kernel choose.
    pub(crate) local: Option<IpAddr>,
    /// The size of each datagram, if the payload is several datagrams.
    pub(crate) segment: Option<u16>,
}

/// Headers for a batch of messages, allocated once.
pub(crate) struct SendSlots(Headers<CONTROL_WORDS>);

impl SendSlots {
    pub(crate) fn new(slots: usize) -> Self {
        Self(Headers::new(slots))
    }

    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// One sendmmsg call for as many of `messages` as there are slots. Returns the number sent; an error is about the
    /// first one.
    pub(crate) fn send(
        &mut self,
        socket: &OwnedFd,
        payload: &[u8],
        messages: &[Outgoing],
    ) -> io::Result<usize> {
        let messages = messages.iter().map(|message| Part { payload, message });
        self.0.send(socket, messages)
    }
}

/// A message and the payload that it is a range of.
struct Part<'a> {
    payload: &'a [u8],
    message: &'a Outgoing,
}

impl<'a> batch::Outgoing<'a> for Part<'a> {
    fn bytes(&self) -> &'a [u8] {
        let Outgoing { start, length, .. } = *self.message;
        &self.payload[start..start + length]
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.message.peer
    }

    fn write_controls(&self, buffer: &mut [u64]) -> usize {
        let mut used = write_source(buffer, 0, self.message.local);
        if let Some(size) = self.message.segment {
            used += write_control(buffer, used, libc::SOL_UDP, libc::UDP_SEGMENT, size);
        }
        used
    }
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
}
