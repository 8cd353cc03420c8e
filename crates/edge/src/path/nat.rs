//! Translation of subscribers' IPv4 addresses (the crate `nat`), between the filter and the inside.
//!
//! A packet from a subscriber is translated after the filter, so that filters name inside addresses, and before its queue.
//! A packet from the inside to an external address is translated before its subscriber is looked up. A packet between two
//! subscribers' external addresses goes to the inside with both ends translated, and comes back as any other. So does an ICMP
//! error of ours about a translated packet.
//!
//! Of several paths each has a NAT of its own, with a part of the port blocks; `translators` says which one translates a
//! packet.

use base::Instant;
use nat::{
    Direction, Forward, ForwardError, ForwardRequest, Fragmented, Nat, Range, SubscriberId, Sum,
    Verdict,
};
use wire::ip::Header;
use wire::packet::Fragment;
use wire::virtio;

use super::Path;
use crate::access::Encapsulation;
use crate::counters::Discard;

/// With fewer mappings, they are in the cache.
const TOUCH_MIN: u32 = 8_000;

/// A NAT and the subscribers that it translates.
#[derive(Debug)]
pub(crate) struct Translator {
    pub(crate) nat: Nat,
    has_others: bool,
    /// Inside addresses that are translated.
    inside: Vec<Range>,
    /// By the subscriber's place.
    members: Vec<Option<SubscriberId>>,
    /// Members that left and whose ports are not freed yet.
    leaving: Vec<SubscriberId>,
    /// What another path has to know about the fragmented datagram whose first fragment was translated last.
    pub(super) fragmented: Option<(u16, Fragmented)>,
    /// Buffer for a packet that is translated.
    buffer: Vec<u8>,
}

impl Translator {
    pub(crate) fn new(nat: Nat, inside: Vec<Range>) -> Self {
        Self {
            has_others: nat.config().share.has_others(),
            nat,
            inside,
            members: Vec::new(),
            leaving: Vec::new(),
            fragmented: None,
            buffer: Vec::new(),
        }
    }

    /// Whether it is worth while to load mappings of a batch of packets.
    pub(super) fn is_large(&self) -> bool {
        self.nat.mappings() >= TOUCH_MIN
    }

    /// Whether other paths have NATs too.
    #[inline]
    pub(super) fn has_others(&self) -> bool {
        self.has_others
    }

    /// Inside addresses that are translated.
    pub(super) fn inside(&self) -> &[Range] {
        &self.inside
    }

    #[inline]
    pub(super) fn covers(&self, header: &Header) -> bool {
        let source = header.source as u32;
        header.version == 4 && self.inside.iter().any(|one| one.position(source).is_some())
    }

    /// The member at a place, which joins with its first packet.
    fn member(&mut self, place: u32, tag: u64, source: u32) -> Option<SubscriberId> {
        let index = place as usize;
        if self.members.len() <= index {
            self.members.resize(index + 1, None);
        }
        if self.members[index].is_none() {
            self.members[index] = self.nat.join(tag, source.into());
        }
        self.members[index]
    }

    /// Translates these inside addresses from now on.
    pub(crate) fn set_inside(&mut self, inside: Vec<Range>) {
        self.inside = inside;
    }

    /// Forwards a port, to the subscriber at a place if there is one.
    pub(crate) fn forward(
        &mut self,
        subscriber: Option<(u32, u64)>,
        wish: &ForwardRequest,
        now: Instant,
    ) -> Result<Forward, ForwardError> {
        self.free(now);
        let inside = wish.inside.to_bits();
        let subscriber = subscriber.and_then(|(place, tag)| self.member(place, tag, inside));
        self.nat.forward(
            &ForwardRequest {
                subscriber,
                ..*wish
            },
            now,
        )
    }

    /// A subscriber has gone.
    pub(super) fn part(&mut self, place: u32) {
        let member = self.members.get_mut(place as usize);
        self.leaving.extend(member.and_then(Option::take));
    }

    fn free(&mut self, now: Instant) {
        for member in self.leaving.drain(..) {
            self.nat.leave(member, now);
        }
    }

    /// Translates a packet from a subscriber. The result is the translated packet, which the caller gives back with
    /// [`Translator::take_back`]; `None` for one that waits.
    pub(super) fn outbound(
        &mut self,
        (place, tag): (u32, u64),
        header: &Header,
        packet: &[u8],
        now: Instant,
    ) -> Result<Option<Vec<u8>>, Discard> {
        self.free(now);
        let source = header.source as u32;
        let member = self.member(place, tag, source).ok_or(Discard::Nat)?;
        let mut buffer = core::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.extend_from_slice(packet);
        let mut header = *header;
        if self.nat.is_ftp(&header)
            && self.nat.outbound_ftp(member, &header, &mut buffer, now)
            && let Ok(changed) = Header::read(&buffer)
        {
            header = changed;
        }
        match self
            .nat
            .outbound(member, &header, &mut buffer, Sum::Complete, now)
        {
            Ok(Verdict::Translated | Verdict::Hairpin | Verdict::Untouched) => Ok(Some(buffer)),
            Ok(Verdict::Held) => {
                self.buffer = buffer;
                Ok(None)
            }
            Err(_) => {
                self.buffer = buffer;
                Err(Discard::Nat)
            }
        }
    }

    pub(super) fn take_back(&mut self, buffer: Vec<u8>) {
        self.buffer = buffer;
    }

    /// Whether a packet is for one of the external addresses.
    pub(super) fn owns(&self, header: &Header) -> bool {
        header.version == 4 && self.nat.owns((header.destination as u32).into())
    }

    /// Translates what a TUN device returned, if it is to an external address. `false` if the packet waits.
    pub(super) fn inbound(&mut self, octets: &mut [u8], now: Instant) -> Result<bool, Discard> {
        let Some(tun) = virtio::Header::parse(octets) else {
            return Ok(true);
        };
        let packet = &mut octets[virtio::LENGTH..];
        let Ok(header) = Header::read(packet) else {
            return Ok(true);
        };
        if !self.owns(&header) {
            return Ok(true);
        }
        self.free(now);
        let sum = match tun.needs_checksum() {
            true => Sum::Partial,
            false => Sum::Complete,
        };
        let packet = &mut packet[..header.total_length as usize];
        match self.nat.inbound(&header, packet, sum, now) {
            Ok(verdict) => {
                if self.has_others && header.fragment == Fragment::First {
                    self.fragmented = self.nat.fragmented(&header, packet);
                }
                Ok(verdict != Verdict::Held)
            }
            Err(_) => Err(Discard::Nat),
        }
    }

    /// A fragment that waited, behind `head` octets of zero.
    pub(super) fn released(&mut self, wanted: Direction, head: usize) -> Option<Vec<u8>> {
        let mut out = vec![0; head];
        match self.nat.poll_released(&mut out) {
            Some((direction, _)) if direction == wanted => Some(out),
            _ => None,
        }
    }

    /// Translates an ICMP error of ours about a packet to a subscriber.
    pub(super) fn error(&mut self, place: u32, error: &mut [u8], now: Instant) {
        let member = self.members.get(place as usize).copied().flatten();
        if let Some(member) = member
            && let Ok(header) = Header::read(error)
        {
            // Without a mapping the packet was not translated, nor is the error.
            let _ = self
                .nat
                .outbound(member, &header, error, Sum::Complete, now);
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.free(now);
        self.nat.handle_timeout(now);
    }

    pub(crate) fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        match self.leaving.is_empty() {
            true => self.nat.poll_timeout(),
            false => Some((Instant::ZERO, "nat")),
        }
    }
}

impl<E: Encapsulation> Path<E> {
    /// Loads the mappings of packets in datagrams from subscribers.
    pub(super) fn touch_nat<'a>(&mut self, datagrams: impl Iterator<Item = (E::Route, &'a [u8])>) {
        // Outside of `self`, whose sessions are looked up meanwhile.
        let Some(mut translator) = self.nat.take() else {
            return;
        };
        let Translator { nat, members, .. } = &mut *translator;
        let packets = datagrams.filter_map(|(route, bytes)| {
            let (place, version, packet) = self.find_packet(&route, bytes)?;
            let member = members.get(place as usize).copied().flatten();
            (version == 4).then_some((member, packet))
        });
        nat.touch(Direction::Out, packets);
        self.nat = Some(translator);
    }

    /// The subscriber at a place has gone: its ports will be free.
    pub(super) fn part_nat(&mut self, place: u32) {
        if let Some(translator) = &mut self.nat {
            translator.part(place);
        }
    }

    /// Does what the NAT has to do by now. [`Path::poll_timeout`] says when.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(translator) = &mut self.nat {
            translator.handle_timeout(now);
        }
    }

    /// When [`Path::handle_timeout`] is due, and for which timer.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.nat.as_ref()?.poll_timeout()
    }

    /// The next event of the NAT, oldest first.
    pub fn poll_nat_event(&mut self) -> Option<nat::Event> {
        self.nat.as_mut()?.nat.poll_event()
    }
}
