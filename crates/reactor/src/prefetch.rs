//! Loads the headers of packets into the processor's cache before they are read.
//!
//! A packet that a network card or another core has written is often in memory only. Memory takes longer to answer than
//! a whole packet takes to classify. So the owner of a batch calls [`headers`] for the packet [`PACKETS`] further on,
//! and reads the present one meanwhile.

use crate::sys::prefetch::line;

/// How many packets further on to load headers: what is read until then takes about as long as memory takes to answer.
pub const PACKETS: usize = 8;

/// Bytes in a cache line.
const LINE: usize = 64;

/// Starts to load the first two cache lines of a packet, which hold its headers even in most tunnels.
#[inline]
pub fn headers(packet: &[u8]) {
    for at in [0, LINE] {
        if let Some(byte) = packet.get(at) {
            line(byte);
        }
    }
}
