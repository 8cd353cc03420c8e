//! ICMP errors about dropped packets (RFC 792, RFC 1191, RFC 4443), to the inside and to subscribers.

use std::collections::VecDeque;

use base::Instant;
use forward::icmp::{Bucket, Error, LENGTH_MAX, Local, Rate, Sender};
use wire::ip::Header;

use super::handover::Kind;
use super::outward::numbered;
use super::{Headers, Passed, Path};
use crate::access::Encapsulation;
use crate::config::Config;

/// Limit on queued errors to the inside; the rate allows few.
const WAITING_MAX: usize = 256;

/// Composes errors, within a rate.
#[derive(Debug)]
pub(crate) struct Errors {
    sender: Sender,
    /// The rate for packets without a subscriber.
    nobody: Bucket,
    inside: VecDeque<Box<[u8]>>,
}

impl Errors {
    pub(crate) fn new(config: &Config) -> Self {
        let local = Local {
            v4: config.address,
            v6: config.address_v6,
        };
        Self {
            sender: Sender::new(local, Rate::default()),
            nobody: Bucket::default(),
            inside: VecDeque::new(),
        }
    }
}

impl<E: Encapsulation> Path<E> {
    /// The next ICMP error to the inside, as an IP packet, oldest first.
    pub fn poll_inside(&mut self) -> Option<Box<[u8]>> {
        self.errors.inside.pop_front()
    }

    /// Sends an error about a packet from the inside to its sender, within the rate of the subscriber that it was for.
    #[cold]
    pub(super) fn tell_inside(
        &mut self,
        error: Error,
        header: &Header,
        packet: &[u8],
        place: Option<u32>,
        now: Instant,
    ) {
        let mut out = [0; LENGTH_MAX];
        let entry = place.and_then(|place| self.entries.get_mut(place as usize)?.as_mut());
        let of = entry.as_ref().zip(place);
        let of = of.map(|(entry, place)| (entry.translator, (place, entry.generation())));
        let Errors {
            sender,
            nobody,
            inside,
        } = &mut self.errors;
        let bucket = entry.map_or(nobody, |entry| &mut entry.bucket);
        if inside.len() < WAITING_MAX
            && let Ok(length) = sender.write(error, header, packet, bucket, now, &mut out)
        {
            self.counts().tell();
            match of.filter(|_| self.nat.is_some() && header.version == 4) {
                Some((path, of)) if usize::from(path) != self.number => {
                    // The error quotes the packet with the address of the subscriber's inside.
                    let error = |to: &mut Vec<u8>| to.extend_from_slice(&out[..length]);
                    let _ = self.hand_over(path, of, Kind::Error, 4, error);
                }
                of => {
                    let place = of.map(|(_, (place, _))| place);
                    self.push_inside(place, &mut out[..length], now);
                }
            }
        }
    }

    /// Queues an error to the inside, translated if it is about a packet to a subscriber that is.
    pub(super) fn push_inside(&mut self, place: Option<u32>, error: &mut [u8], now: Instant) {
        if let Some(nat) = &mut self.nat
            && let Some(place) = place
        {
            nat.error(place, error, now);
        }
        if self.errors.inside.len() < WAITING_MAX {
            self.errors.inside.push_back((&*error).into());
        }
    }

    /// Sends a subscriber an error about its packet.
    #[cold]
    pub(super) fn tell_subscriber(
        &mut self,
        place: u32,
        error: Error,
        header: &Header,
        packet: &[u8],
        headers: Option<&mut impl Headers<E>>,
        now: Instant,
    ) {
        let mut out = [0; LENGTH_MAX];
        let Some(Some(entry)) = self.entries.get_mut(place as usize) else {
            return;
        };
        let bucket = &mut entry.bucket;
        let sender = &mut self.errors.sender;
        let Ok(length) = sender.write(error, header, packet, bucket, now, &mut out) else {
            return;
        };
        let numbered = match numbered(entry, headers) {
            Ok(header) => header,
            Err(_) => return,
        };
        let own = numbered.as_ref().map(AsRef::as_ref);
        self.send_own(place, header.version, own, &out[..length]);
        self.counts().tell();
    }

    /// Queues a packet of ours to a subscriber, behind `header` of the access, or the stored one. Returns whether there
    /// was room.
    pub(super) fn send_own(
        &mut self,
        place: u32,
        version: u8,
        header: Option<&[u8]>,
        packet: &[u8],
    ) -> bool {
        let Some(entry) = self.entry(place) else {
            return false;
        };
        let mut datagram = Vec::with_capacity(LENGTH_MAX + 32);
        entry.append_head(version, header, &mut datagram);
        datagram.extend_from_slice(packet);
        let (subscriber, route) = (entry.subscriber(), entry.way.route());
        E::complete(&route, &mut datagram, 0);
        if self.copies.is_on() {
            let passed = Passed::Outside(route);
            self.copies.copy(subscriber, passed, true, [&datagram, &[]]);
        }
        self.outgoing.push(route, &datagram, &[]).is_some()
    }
}
