//! Which of an edge's paths translates a packet.
//!
//! | packet | path |
//! |---|---|
//! | from a subscriber | the subscriber's ([`Entry::translator`]), which the edge chooses once for a session |
//! | to a port of a block on demand | the one that has the block: the number of the block says which |
//! | to a forwarded port below the blocks, or to a port that follows from an inside address | the subscriber's |
//! | an ICMP error | the one of the port that it quotes |
//! | a fragment after the first one | the one that the datagram's addresses and identification name |
//!
//! A packet is handed over once for its translation. The path that gets it translates it or drops it, so that no packet goes
//! back and forth while paths learn of a change at different times. A packet between two subscribers' external ports leaves
//! to the inside with its source translated, and comes back as any packet to an external address.
//!
//! [`Entry::translator`]: super::Entry

use nat::{Fragmented, Home};
use wire::ip::Header;
use wire::virtio;

use super::Path;
use super::handover::{Kind, NOBODY};
use crate::access::Encapsulation;

impl<E: Encapsulation> Path<E> {
    /// The path that translates what a TUN device returned, if it is another one.
    pub(super) fn elsewhere(&self, octets: &[u8]) -> Option<u8> {
        let packet = octets.get(virtio::LENGTH..)?;
        let header = Header::read(packet).ok()?;
        let translator = self.nat.as_ref()?;
        if !translator.owns(&header) {
            return None;
        }
        let packet = packet.get(..header.total_length as usize)?;
        let path = match translator.nat.home(&header, packet) {
            Home::Here => return None,
            Home::Share(path) => u8::try_from(path).ok()?,
            Home::Inside(inside) => {
                let place = self.routes.lookup_v4(inside.to_bits())?;
                self.entry(place)?.translator
            }
        };
        (usize::from(path) != self.number).then_some(path)
    }

    /// Tells another path how the first fragment of a datagram was translated.
    pub(super) fn hand_fragmented(&mut self, path: u16, fragmented: Fragmented) {
        if let Ok(path) = u8::try_from(path) {
            self.handovers.push_fragmented(path, fragmented);
        }
    }

    /// Gives a packet that was translated, and whose session's frames are numbered, to the edge's own path.
    pub(super) fn hand_to_edge(&mut self, octets: &[u8]) {
        let packet = |out: &mut Vec<u8>| out.extend_from_slice(octets);
        if let Err(why) = self.hand_over(0, NOBODY, Kind::Inbound, 4, packet) {
            self.counts().discard(why);
        }
    }
}
