//! A packet socket's receive ring (`PACKET_MMAP`, packet(7)), in its second version: a slot for each frame, which
//! its reader sees at once. The third version hands over blocks of frames, a partly filled one after a millisecond
//! or more; a shaper must not add that to its delay.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::mapping::{Mapping, load, store};
use super::packet::{Offload, named_tag};
use super::socket::{set_number, set_plain};

/// Bytes of a block of the ring, which the kernel allocates as a whole.
const BLOCK: usize = 1 << 17;

/// Bytes of a slot before the frame, rounded up.
const HEAD: usize = 128;

/// The ring of a socket.
pub(crate) struct RecvRing {
    memory: Mapping,
    /// Bytes of a slot, slots of a block, and slots in all.
    slot: usize,
    per_block: usize,
    count: usize,
    /// The slot that the kernel fills next, or has filled.
    next: usize,
}

/// A received frame in its slot. The slot returns to the kernel when this is dropped.
pub(crate) struct RingFrame<'r> {
    ring: &'r mut RecvRing,
    at: usize,
    header: libc::tpacket2_hdr,
}

impl RecvRing {
    /// Makes a ring of about `memory` bytes for frames of up to `frame` bytes. The socket must describe frames
    /// (`PACKET_VNET_HDR`) already; a longer frame is left to recvmsg as well.
    pub(crate) fn new(socket: &OwnedFd, frame: usize, memory: usize) -> io::Result<Self> {
        let fd = socket.as_fd();
        let slot = (frame + HEAD).next_multiple_of(16);
        let blocks = (memory / BLOCK).clamp(1, 1_024);
        let per_block = BLOCK / slot;
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set_number(fd, libc::SOL_PACKET, libc::PACKET_VERSION, version)?;
        set_number(fd, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, 1)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot as u32,
            tp_frame_nr: (blocks * per_block) as u32,
        };
        set_plain(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        Ok(Self {
            memory: Mapping::of(socket, blocks * BLOCK, 0)?,
            slot,
            per_block,
            count: blocks * per_block,
            next: 0,
        })
    }

    /// The oldest frame; `None` if all were taken.
    pub(crate) fn take(&mut self) -> Option<RingFrame<'_>> {
        let at = self.next / self.per_block * BLOCK + self.next % self.per_block * self.slot;
        // `tp_status` is the header's first field.
        if load(self.memory.shared(at)) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let header = self.memory.read(at);
        Some(RingFrame {
            ring: self,
            at,
            header,
        })
    }
}

impl RingFrame<'_> {
    /// Its bytes, as far as they fit the slot.
    pub(crate) fn bytes(&self) -> &[u8] {
        let start = usize::from(self.header.tp_mac);
        let length = (self.header.tp_snaplen as usize).min(self.ring.slot.saturating_sub(start));
        self.ring.memory.bytes(self.at + start, length)
    }

    /// Its length on the link.
    pub(crate) fn length(&self) -> usize {
        self.header.tp_len as usize
    }

    /// Whether recvmsg has the whole frame.
    pub(crate) fn is_left_to_recvmsg(&self) -> bool {
        self.header.tp_status & libc::TP_STATUS_COPY != 0
    }

    /// The kernel's description, which is stored before the frame.
    pub(crate) fn offload(&self) -> Offload {
        let start = usize::from(self.header.tp_mac);
        let at = self.at + start.saturating_sub(size_of::<Offload>());
        Offload::of(self.ring.memory.bytes(at, size_of::<Offload>()))
    }

    /// The VLAN tag that the kernel removed.
    pub(crate) fn tag(&self) -> Option<[u8; 4]> {
        let header = &self.header;
        named_tag(header.tp_status, header.tp_vlan_tpid, header.tp_vlan_tci)
    }
}

impl Drop for RingFrame<'_> {
    fn drop(&mut self) {
        store(self.ring.memory.shared(self.at), libc::TP_STATUS_KERNEL);
        self.ring.next = (self.ring.next + 1) % self.ring.count;
    }
}
