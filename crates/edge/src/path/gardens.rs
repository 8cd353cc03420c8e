//! Answers to subscribers in walled gardens, about packets that the garden's filter refused.

use base::Instant;
use forward::icmp::Error;
use forward::portal::{Answer, LENGTH_MAX};
use wire::ip::Header;

use super::outward::numbered;
use super::{Headers, Path};
use crate::access::Encapsulation;
use crate::garden::ANSWERS;

impl<E: Encapsulation> Path<E> {
    /// Answers a packet of a subscriber that was refused, if the subscriber is in a garden: a web request with a redirect,
    /// and any other packet with an ICMP error. Both have a rate; what exceeds it gets no answer.
    #[cold]
    pub(super) fn walled(
        &mut self,
        place: u32,
        packet: &[u8],
        headers: Option<&mut impl Headers<E>>,
        now: Instant,
    ) {
        let Some(Some(entry)) = self.entries.get_mut(place as usize) else {
            return;
        };
        let gardens = &self.gardens;
        let garden = entry.garden.and_then(|garden| gardens.get(garden));
        let Some(garden) = garden else {
            return;
        };
        let Ok(header) = Header::read(packet) else {
            return;
        };
        let packet = &packet[..header.total_length as usize];
        let mut out = [0; LENGTH_MAX];
        let length = match garden.portal.answer(self.seed, &header, packet, &mut out) {
            Answer::Reply(length) if entry.bucket.take(&ANSWERS, now) => length,
            Answer::Reply(_) | Answer::Silent => return,
            Answer::Refused => {
                self.tell_subscriber(place, Error::Prohibited, &header, packet, headers, now);
                return;
            }
        };
        let Ok(own) = numbered(entry, headers) else {
            return;
        };
        let own = own.as_ref().map(AsRef::as_ref);
        if self.send_own(place, header.version, own, &out[..length]) {
            self.counts().wall();
        }
    }
}
