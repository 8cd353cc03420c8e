//! Receiving a batch of frames with one call.

use super::EtherSocket;
use crate::port::PortError;
use crate::sys::ether::RecvSlots;

/// The largest frame: the kernel may have joined several.
const SLOT_BYTES: usize = 65_536 + 64;

/// Distance of the slots: their starts must not compete for the same cache lines.
const STRIDE_BYTES: usize = SLOT_BYTES + 256;

/// A received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtherFrame<'a> {
    /// The frame from its destination address on, without the outermost VLAN tag.
    pub bytes: &'a [u8],
    /// The outermost VLAN tag (tag protocol, then priority and VLAN) if the frame had one.
    pub tag: Option<[u8; 4]>,
}

/// Buffers for the frames of one call, allocated once and used again. Memory is used only as far as slots were ever
/// filled.
pub struct EtherRecv {
    slots: RecvSlots,
    filled: usize,
}

impl EtherRecv {
    /// A batch of up to `slots` frames, at least one and at most 1,024.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        Self {
            slots: RecvSlots::new(slots.clamp(1, 1024), SLOT_BYTES, STRIDE_BYTES),
            filled: 0,
        }
    }

    /// Whether the last call filled it, so that more frames may be waiting.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.filled == self.slots.capacity()
    }

    /// The frames of the last call, in the order of their arrival.
    pub fn iter(&self) -> impl Iterator<Item = EtherFrame<'_>> {
        let frames = (0..self.filled).filter_map(|index| self.slots.frame(index));
        frames.map(|(bytes, tag)| EtherFrame { bytes, tag })
    }
}

impl EtherSocket {
    /// Receives the waiting frames with one call, up to the batch's slots. Returns their number.
    ///
    /// # Errors
    /// [`PortError::Down`] once when the interface goes down, [`PortError::Gone`] when it has vanished.
    pub fn receive(&mut self, batch: &mut EtherRecv) -> Result<usize, PortError> {
        batch.filled = 0;
        loop {
            match batch.slots.receive(&self.fd) {
                Ok(count) => {
                    batch.filled = count;
                    let whole = batch.iter().count();
                    self.stats.received += whole as u64;
                    self.stats.truncated += (count - whole) as u64;
                    return Ok(count);
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(0),
                    Some(libc::EINTR) => {}
                    _ => return Err(self.fault(error)),
                },
            }
        }
    }
}
