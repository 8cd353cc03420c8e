//! Prefetching: the processor loads the memory of many connections at once if the loads follow each other without other
//! work between them. With a million idle sessions in one process these loads are most of the cost.

use super::Speaker;

impl Speaker {
    /// Reads what [`receive_keepalive`](Self::receive_keepalive) will touch, and changes nothing. The value has no
    /// meaning; a caller adds up several and ignores the sum, so that they are loaded together.
    #[must_use]
    #[inline]
    pub fn touch(&self) -> u32 {
        self.conns.touch()
    }
}
