//! Receiving and sending by memory that is shared with the kernel.
//!
//! Frames that cannot go by the rings take the calls instead: those longer than a slot of the receive ring, those
//! with an open checksum, and those longer than the interface's MTU, which the kernel refuses.

use std::os::fd::OwnedFd;

use base::Duration;
use rustix::net::sockopt::socket_error;

use super::frames::{Frames, OpenChecksum};
use super::{BATCH, Port, PortError, Received, cut};
use crate::clock;
use crate::sys::packet::{self, Arrival};
use crate::sys::packet_ring::{RecvRing, RingFrame};
use crate::sys::xdp::XdpSend;

/// Memory of a receive ring, if no size is given.
const MEMORY: usize = 1 << 20;

/// Bytes of an Ethernet header, and of a VLAN tag.
const ETHERNET: usize = 14;
const TAG: usize = 4;

/// How long to wait if the interface takes no more frames, since nothing reports when it does again.
const PAUSE: Duration = Duration::from_micros(50);

/// The rings of a port, as far as it has them.
#[derive(Default)]
pub(super) struct Rings {
    pub(super) receive: Option<RecvRing>,
    pub(super) send: Option<XdpSend>,
    pub(super) fallbacks: Vec<String>,
}

impl Rings {
    /// Makes both rings for interface `index`, or says why not.
    pub(super) fn open(socket: &OwnedFd, index: u32, mtu: u32, memory: Option<usize>) -> Self {
        let mut rings = Self::default();
        let frame = Frames::new(1, mtu).frame_max();
        match RecvRing::new(socket, frame, memory.unwrap_or(MEMORY)) {
            Ok(ring) => rings.receive = Some(ring),
            Err(error) => rings.fallbacks.push(format!(
                "frames are received by recvmmsg, since the kernel refuses a ring: {error}"
            )),
        }
        match XdpSend::new(index, mtu as usize + ETHERNET + TAG) {
            Ok(send) => rings.send = Some(send),
            Err(error) => rings.fallbacks.push(format!(
                "frames are sent by sendmmsg, since AF_XDP is not to be had: {error}"
            )),
        }
        rings
    }

    /// The first frames that go the same way, and whether this is the ring.
    pub(super) fn batch<'h>(
        &self,
        frames: &Frames,
        handles: &'h [u32],
        mtu: u32,
    ) -> (&'h [u32], bool) {
        let Some(send) = &self.send else {
            return (handles, false);
        };
        let handles = &handles[..handles.len().min(BATCH)];
        let is_plain = |&handle: &u32| {
            let frame = frames.get(handle);
            frames.open_checksum(handle).is_none()
                && has_room(frame, mtu)
                && frame.len() <= send.frame_max()
        };
        let first = handles.first().is_some_and(is_plain);
        let same = handles
            .iter()
            .take_while(|handle| is_plain(handle) == first);
        (&handles[..same.count()], first)
    }
}

/// Whether a link with this MTU takes a frame of this length. A first VLAN tag does not count.
fn has_room(frame: &[u8], mtu: u32) -> bool {
    let is_tagged = frame.get(12..14) == Some(&[0x81, 0]);
    frame.len() <= mtu as usize + ETHERNET + if is_tagged { TAG } else { 0 }
}

impl Port {
    /// As [`Port::receive`], from the ring.
    pub(super) fn receive_from_ring(
        &mut self,
        frames: &mut Frames,
        received: &mut Vec<Received>,
    ) -> Result<usize, PortError> {
        let Some(mut ring) = self.rings.receive.take() else {
            return Ok(0);
        };
        let mut count = 0;
        while count < BATCH
            && let Some(frame) = ring.take()
        {
            count += 1;
            self.sort_frame(&frame, frames, received);
        }
        self.rings.receive = Some(ring);
        if count == 0 {
            // What else would make it readable.
            match socket_error(&self.fd) {
                Ok(Ok(())) => {}
                Ok(Err(error)) | Err(error) => return Err(self.fault(error.into())),
            }
        }
        Ok(count)
    }

    /// Gives a frame of the ring a slot, or keeps it as a large one.
    fn sort_frame(
        &mut self,
        frame: &RingFrame<'_>,
        frames: &mut Frames,
        received: &mut Vec<Received>,
    ) {
        let (bytes, offload, tag) = (frame.bytes(), frame.offload(), frame.tag());
        self.stats.received += 1;
        self.stats.received_bytes += frame.length() as u64;
        let is_whole = bytes.len() == frame.length();
        if is_whole && offload.gso_type == packet::GSO_NONE && bytes.len() <= frames.frame_max() {
            let Some(handle) = frames.take() else {
                self.stats.no_room += 1;
                return;
            };
            let is_open = offload.flags & packet::NEEDS_CHECKSUM != 0;
            frames.store(
                handle,
                bytes,
                is_open.then_some(OpenChecksum {
                    start: offload.checksum_start,
                    offset: offload.checksum_offset,
                }),
            );
            if let Some(tag) = tag {
                frames.insert_tag(handle, tag);
            }
            received.push(Received::Frame(handle));
            return;
        }
        let index = self.large.len();
        let range = if is_whole {
            let length = bytes.len();
            let arrival = Arrival {
                length,
                offload,
                tag,
            };
            Some(self.recv_slots.keep(index, bytes, &arrival))
        } else if frame.is_left_to_recvmsg() {
            self.read_large(index, frame.length())
        } else {
            None
        };
        let Some(range) = range else {
            self.stats.missed += 1;
            return;
        };
        self.stats.received_large += 1;
        received.push(Received::Large(index));
        self.large.push((range, cut(&offload)));
    }

    /// Reads the frame of this length that did not fit the ring; `None` if the socket's buffer had no room for it.
    fn read_large(&mut self, index: usize, length: usize) -> Option<std::ops::Range<usize>> {
        loop {
            let arrival = self.recv_slots.receive_whole(&self.fd, index).ok()?;
            if arrival.length == length {
                return Some(self.recv_slots.keep(index, &[], &arrival));
            }
            // A frame whose slot in the ring was lost.
            self.stats.missed += 1;
        }
    }

    /// Sends plain frames by the ring, at most [`BATCH`]. Returns how many are done.
    pub(super) fn send_by_ring(
        &mut self,
        frames: &Frames,
        handles: &[u32],
    ) -> Result<usize, PortError> {
        let Some(ring) = &mut self.rings.send else {
            return Ok(0);
        };
        let all = handles.iter().map(|&handle| frames.get(handle));
        let count = all.clone().take_while(|frame| ring.put(frame)).count();
        let pushed = ring.push_out(count);
        let sent = pushed.taken - pushed.refused;
        self.stats.sent += sent as u64;
        self.stats.refused += pushed.refused as u64;
        self.stats.sent_bytes += all
            .take(pushed.taken)
            .map(|frame| frame.len() as u64)
            .sum::<u64>();
        match pushed.error {
            Some(error) => match error.raw_os_error() {
                Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => Err(self.fault(error)),
                _ if pushed.taken < handles.len() => {
                    self.stats.refused += 1;
                    Ok(pushed.taken + 1)
                }
                _ => Ok(pushed.taken),
            },
            None => {
                if pushed.taken < handles.len() {
                    clock::sleep(PAUSE);
                }
                Ok(pushed.taken)
            }
        }
    }
}
