//! Loads of a batch's records before they are needed.
//!
//! A translation reads three records, each of which is probably in no cache at a million mappings, and each needs the one
//! before. For one packet after the other that is three waits a packet. [`Nat::touch`] reads the first record of all
//! packets of a batch, then the second of all, then the third, so that the processor waits for many at once.

use core::hint::black_box;

use wire::ip::{Header, Upper};

use super::{Direction, Nat};
use crate::pool::{NONE, Protocol};

/// Packets whose loads are under way at once; a core has 10 to 16 buffers for them.
const AT_ONCE: usize = 16;

/// A packet as [`Nat::touch`] needs it: inside or external address, port and protocol.
type Endpoint = (Direction, u32, u16, Protocol);

fn endpoint(direction: Direction, header: &Header) -> Option<Endpoint> {
    let protocol = match header.protocol {
        wire::tcp::PROTOCOL => Protocol::Tcp,
        wire::udp::PROTOCOL => Protocol::Udp,
        // The identifier of a query is not in the header that was read.
        _ => return None,
    };
    let (address, port) = match direction {
        Direction::Out => (header.source as u32, header.source_port),
        Direction::In => (header.destination as u32, header.destination_port),
    };
    (header.version == 4 && header.upper == Upper::Ports)
        .then_some((direction, address, port, protocol))
}

impl Nat {
    /// Loads the records of the packets that the caller translates next. It changes nothing; it is worth its time for
    /// batches of four packets and more.
    pub fn touch<'a>(&self, packets: impl IntoIterator<Item = (Direction, &'a Header)>) {
        let mut packets = packets.into_iter();
        loop {
            let mut batch = [None; AT_ONCE];
            let mut count = 0;
            for (direction, header) in packets.by_ref().take(AT_ONCE) {
                batch[count] = endpoint(direction, header);
                count += 1;
            }
            if count == 0 {
                return;
            }
            self.touch_some(&batch[..count]);
        }
    }

    fn touch_some(&self, batch: &[Option<Endpoint>]) {
        let mut first = 0;
        for &(direction, address, port, protocol) in batch.iter().flatten() {
            first ^= match direction {
                Direction::Out => self.by_inside.touch(self.hash(address, port, protocol)),
                Direction::In => {
                    let index = self.pool.index_of(address);
                    let located = index.and_then(|index| self.pool.locate(index, port));
                    located.map_or(0, |(block, _)| u64::from(self.pool.block(block).owner))
                }
            };
        }
        black_box(first);
        let mut mappings = [NONE; AT_ONCE];
        for (to, one) in mappings.iter_mut().zip(batch) {
            let Some((direction, address, port, protocol)) = *one else {
                continue;
            };
            *to = match direction {
                // A mapping whose hash agrees is the right one, but for one in 2^32.
                Direction::Out => {
                    let hash = self.hash(address, port, protocol);
                    self.by_inside.find(hash, |_| true)
                }
                Direction::In => {
                    let index = self.pool.index_of(address);
                    index.and_then(|index| self.pool.mapping(index, port, protocol))
                }
            }
            .unwrap_or(NONE);
        }
        let mut last = 0;
        for &mapping in &mappings {
            if let Some(mapping) = self.mappings.get(mapping as usize) {
                last ^= mapping.last;
            }
        }
        black_box(last);
    }
}
