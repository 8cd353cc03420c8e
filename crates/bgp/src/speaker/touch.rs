//! Reading ahead: a processor waits for the memory of many connections at once if it is asked for them one right after
//! the other, with nothing between. With a million idle sessions in one process that is most of what they cost.

use super::Speaker;
use crate::table::ConnId;

impl Speaker {
    /// Reads what a KEEPALIVE of the connection touches, and changes nothing. The answer has no meaning; a caller that
    /// adds several up, and lets the sum be, reads them together.
    #[must_use]
    #[inline]
    pub fn touch(&self, conn: ConnId) -> u32 {
        self.conns.touch(conn)
    }
}
