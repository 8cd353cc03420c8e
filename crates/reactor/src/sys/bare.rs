//! recvmmsg(2) and sendmmsg(2) without ancillary data.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use crate::sys::batch::{self, Headers};

/// Buffers for received messages.
pub(crate) struct Incoming(batch::Incoming<0>);

impl Incoming {
    pub(crate) fn new(slots: usize, size: usize) -> Self {
        Self(batch::Incoming::new(slots, size, size))
    }

    /// One non-blocking recvmmsg call. Returns the number of messages.
    pub(crate) fn receive(&mut self, socket: &OwnedFd) -> io::Result<usize> {
        self.0.receive(socket, 0)
    }

    /// A message of the last call.
    pub(crate) fn bytes(&self, index: usize) -> &[u8] {
        self.0.payload(index, self.0.length(index) as usize)
    }
}

/// Headers for messages to send.
pub(crate) struct Outgoing(Headers<0>);

impl Outgoing {
    pub(crate) fn new(slots: usize) -> Self {
        Self(Headers::new(slots))
    }

    /// One sendmmsg call on a connected socket. Returns how many of `messages` were sent.
    pub(crate) fn send<'a>(
        &mut self,
        socket: &OwnedFd,
        messages: impl Iterator<Item = &'a [u8]>,
    ) -> io::Result<usize> {
        self.0.send(socket, messages)
    }
}

impl<'a> batch::Outgoing<'a> for &'a [u8] {
    fn bytes(&self) -> &'a [u8] {
        self
    }

    fn peer(&self) -> Option<SocketAddr> {
        None
    }

    fn write_controls(&self, _: &mut [u64]) -> usize {
        0
    }
}
