//! How much waits in a queue.

use core::iter::Sum;

/// Packets and bytes that wait in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Their bytes on the line.
    pub bytes: u64,
}

impl Backlog {
    /// Counts a packet of `length` bytes in.
    #[inline]
    pub fn add(&mut self, length: u32) {
        self.packets += 1;
        self.bytes += u64::from(length);
    }

    /// Counts a packet of `length` bytes out.
    #[inline]
    pub fn remove(&mut self, length: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(length);
    }
}

impl Sum for Backlog {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            packets: sum.packets + one.packets,
            bytes: sum.bytes + one.bytes,
        })
    }
}
