//! Batches of whole Ethernet frames on packet sockets (packet(7)), with the VLAN tags that the kernel removed.

use std::io;
use std::mem::size_of;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr;

use crate::sys::batch::{Headers, Incoming, Outgoing};
use crate::sys::packet;
use crate::sys::socket::set_number;

/// Words for one `tpacket_auxdata` with its header.
const CONTROL_WORDS: usize = 6;

/// Asks the kernel for the tags that it removes, and for no frames that we send.
pub(crate) fn describe(socket: &OwnedFd) -> io::Result<()> {
    let fd = socket.as_fd();
    set_number(fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1)?;
    set_number(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)
}

/// Buffers for a batch of received frames, allocated once.
pub(crate) struct RecvSlots(Incoming<CONTROL_WORDS>);

impl RecvSlots {
    /// `stride` bytes apart, `size` of them used for each frame.
    pub(crate) fn new(slots: usize, size: usize, stride: usize) -> Self {
        Self(Incoming::new(slots, size, stride))
    }

    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// One recvmmsg call. Returns the number of frames.
    pub(crate) fn receive(&mut self, socket: &OwnedFd) -> io::Result<usize> {
        self.0.receive(socket, 0)
    }

    /// A frame of the last call, and the tag that the kernel removed from it; `None` if it was truncated.
    pub(crate) fn frame(&self, index: usize) -> Option<(&[u8], Option<[u8; 4]>)> {
        if self.0.is_truncated(index) {
            return None;
        }
        let mut tag = None;
        self.0.each_control(index, |level, kind, data| {
            let is_auxdata = (level, kind) == (libc::SOL_PACKET, libc::PACKET_AUXDATA);
            if is_auxdata && data.len() >= size_of::<libc::tpacket_auxdata>() {
                // SAFETY: there are enough bytes, and any bytes are a value of this struct of plain numbers.
                let data: libc::tpacket_auxdata =
                    unsafe { ptr::read_unaligned(data.as_ptr().cast()) };
                tag = packet::tag(&data);
            }
        });
        let length = self.0.length(index) as usize;
        Some((self.0.payload(index, length), tag))
    }
}

/// Headers for a batch of frames to send, allocated once.
pub(crate) struct SendSlots(Headers<1>);

/// A frame on a socket that is bound to its interface.
struct Frame<'a>(&'a [u8]);

impl<'a> Outgoing<'a> for Frame<'a> {
    fn bytes(&self) -> &'a [u8] {
        self.0
    }

    fn peer(&self) -> Option<SocketAddr> {
        None
    }

    fn write_controls(&self, _: &mut [u64]) -> usize {
        0
    }
}

impl SendSlots {
    pub(crate) fn new(slots: usize) -> Self {
        Self(Headers::new(slots))
    }

    /// One sendmmsg call for as many of `frames` as there are slots. Returns the number sent; an error is about the
    /// first one.
    pub(crate) fn send<'a>(
        &mut self,
        socket: &OwnedFd,
        frames: impl Iterator<Item = &'a [u8]>,
    ) -> io::Result<usize> {
        self.0.send(socket, frames.map(Frame))
    }
}
