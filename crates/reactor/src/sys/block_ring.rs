//! A packet socket's receive ring (`PACKET_MMAP`, packet(7)), in its third version: the kernel fills blocks with frames
//! of any length and hands over a whole block, or a partly filled one after a time-out. So a capture wakes up once for
//! many frames, and short frames take little room.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::mapping::{Mapping, load, store};
use super::socket::{set_number, set_plain};

/// Bytes of a block. It holds the longest frame that a local stack makes (a TCP segment before it is cut, 512 KiB at
/// most) with room to spare.
pub(crate) const BLOCK: usize = 1 << 20;

/// Where a block's status is in its descriptor (`struct tpacket_block_desc`).
const STATUS: usize = 8;

/// The ring of a socket.
pub(crate) struct BlockRing {
    memory: Mapping,
    blocks: usize,
    /// The block that the kernel fills now, or hands over next.
    next: usize,
}

/// A block that this process owns. It returns to the kernel when this is dropped.
pub(crate) struct RingBlock<'r> {
    ring: &'r mut BlockRing,
}

impl BlockRing {
    /// Makes a ring of about `memory` bytes. The kernel hands over a block that has frames after `timeout_ms` at most.
    pub(crate) fn new(socket: &OwnedFd, memory: usize, timeout_ms: u32) -> io::Result<Self> {
        let fd = socket.as_fd();
        let version = libc::tpacket_versions::TPACKET_V3 as libc::c_int;
        set_number(fd, libc::SOL_PACKET, libc::PACKET_VERSION, version)?;
        // The kernel fills one block while this process reads another.
        let blocks = (memory / BLOCK).clamp(2, 2_048);
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            // Only its alignment matters in this version: frames have their own lengths.
            tp_frame_size: BLOCK as u32,
            tp_frame_nr: blocks as u32,
            tp_retire_blk_tov: timeout_ms,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set_plain(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        Ok(Self {
            memory: Mapping::of(socket, blocks * BLOCK, 0)?,
            blocks,
            next: 0,
        })
    }

    /// Bytes of the ring.
    pub(crate) fn length(&self) -> usize {
        self.memory.length()
    }

    /// The oldest block that the kernel has handed over; `None` if there is none.
    pub(crate) fn take(&mut self) -> Option<RingBlock<'_>> {
        let status = load(self.memory.shared(self.next * BLOCK + STATUS));
        (status & libc::TP_STATUS_USER != 0).then_some(RingBlock { ring: self })
    }
}

impl RingBlock<'_> {
    /// The block with its descriptor.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.ring.memory.bytes(self.ring.next * BLOCK, BLOCK)
    }
}

impl Drop for RingBlock<'_> {
    fn drop(&mut self) {
        let status = self.ring.memory.shared(self.ring.next * BLOCK + STATUS);
        store(status, libc::TP_STATUS_KERNEL);
        self.ring.next = (self.ring.next + 1) % self.ring.blocks;
    }
}
