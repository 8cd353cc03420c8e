//! Packets from the inside to subscribers.
//!
//! Each header is read once. Nothing on this path allocates, reads a clock or formats text.

use base::Instant;
use filter::Direction;
use forward::split::{Opened, Segments};
use forward::{fragment, icmp, mss};
use wire::ip::Header;
use wire::virtio;

use super::handover::{Kind, NOBODY};
use super::queues::To;
use super::{Entry, Headers, Nobody, Outside, Passed, Path, Taken};
use crate::access::Encapsulation;
use crate::counters::Discard;

impl<E: Encapsulation> Path<E> {
    /// Forwards what a TUN device returned, a [`wire::virtio::Header`] and a packet, to its subscriber.
    pub fn forward(
        &mut self,
        octets: &mut [u8],
        now: Instant,
        outside: &mut impl Outside<E::Route>,
    ) -> Taken {
        let taken = self.forward_by(octets, now, None::<&mut Nobody>, outside);
        if taken == Taken::Left {
            self.counts().leave();
        }
        taken
    }

    /// The same. With `headers` no packet is left to the edge.
    pub(crate) fn forward_by(
        &mut self,
        octets: &mut [u8],
        now: Instant,
        headers: Option<&mut impl Headers<E>>,
        outside: &mut impl Outside<E::Route>,
    ) -> Taken {
        let Some(nat) = &mut self.nat else {
            return self.forward_one(octets, now, headers, outside);
        };
        if nat.has_others()
            && let Some(path) = self.elsewhere(octets)
        {
            let packet = |out: &mut Vec<u8>| out.extend_from_slice(octets);
            if let Err(why) = self.hand_over(path, NOBODY, Kind::Inbound, 4, packet) {
                self.counts().discard(why);
            }
            return Taken::Done;
        }
        self.forward_here(octets, now, headers, outside)
    }

    /// The same for a packet that no other path translates.
    pub(super) fn forward_here(
        &mut self,
        octets: &mut [u8],
        now: Instant,
        mut headers: Option<&mut impl Headers<E>>,
        outside: &mut impl Outside<E::Route>,
    ) -> Taken {
        match self.nat.as_mut().map(|nat| nat.inbound(octets, now)) {
            None | Some(Ok(true)) => {}
            Some(Ok(false)) => return Taken::Done,
            Some(Err(why)) => {
                self.counts().discard(why);
                return Taken::Done;
            }
        }
        let taken = self.forward_one(octets, now, headers.as_deref_mut(), outside);
        self.forward_released(now, headers, outside);
        taken
    }

    /// Forwards fragments that waited for a first one, and lets another path do so.
    #[inline]
    pub(super) fn forward_released(
        &mut self,
        now: Instant,
        mut headers: Option<&mut impl Headers<E>>,
        outside: &mut impl Outside<E::Route>,
    ) {
        while let Some(nat) = &mut self.nat
            && let Some(mut piece) = nat.released(nat::Direction::In, virtio::LENGTH)
        {
            let headers = headers.as_deref_mut();
            if self.forward_one(&mut piece, now, headers, outside) == Taken::Left {
                self.hand_to_edge(&piece);
            }
        }
        if let Some(nat) = &mut self.nat
            && let Some((path, fragmented)) = nat.fragmented.take()
        {
            self.hand_fragmented(path, fragmented);
        }
    }

    /// The same, after translation.
    fn forward_one(
        &mut self,
        octets: &mut [u8],
        now: Instant,
        headers: Option<&mut impl Headers<E>>,
        outside: &mut impl Outside<E::Route>,
    ) -> Taken {
        let opened = match forward::split::open(octets) {
            Ok(opened) => opened,
            Err(_) => {
                self.counts().discard(Discard::NotCut);
                return Taken::Done;
            }
        };
        let header = match &opened {
            Opened::One(packet) => Header::read(packet),
            Opened::Several(segments) => Ok(*segments.ip()),
        };
        let header = match header {
            Ok(header) => header,
            Err(why) => {
                self.counts().discard(Discard::Forward(why.into()));
                return Taken::Done;
            }
        };
        let Some(place) = self.receiver(&header) else {
            self.nobody(&header, opened, now);
            return Taken::Done;
        };
        let Some(Some(entry)) = self.entries.get(place as usize) else {
            self.counts().discard(Discard::NotOpen);
            return Taken::Done;
        };
        if !entry.is_fixed() && headers.is_none() {
            if matches!(opened, Opened::One(_)) {
                // `open` completed its checksum.
                octets[virtio::FLAGS] = 0;
            }
            return Taken::Left;
        }
        if let Some(id) = entry.filter {
            let counts = &self.counts[self.number];
            if !self
                .filters
                .pass(id, entry.subscriber(), &header, Direction::Out, counts)
                && !(entry.garden)
                    .is_some_and(|garden| self.gardens.allow(garden, &header, Direction::Out))
            {
                self.drop_of(place, Discard::Filtered);
                return Taken::Done;
            }
        }
        let result = match opened {
            Opened::One(packet) => {
                let packet = &mut packet[..header.total_length as usize];
                self.packet_out(place, &header, packet, now, headers, outside)
            }
            Opened::Several(segments) => {
                self.segments_out(place, &header, &segments, now, headers, outside)
            }
        };
        if let Err(why) = result {
            self.drop_of(place, why);
        }
        Taken::Done
    }

    /// Drops a packet without a subscriber, and sends its sender an error.
    #[cold]
    fn nobody(&mut self, header: &Header, opened: Opened<'_>, now: Instant) {
        let why = forward::Discard::NoRoute;
        self.counts().discard(Discard::Forward(why));
        let Some(error) = icmp::Error::of(why) else {
            return;
        };
        match opened {
            Opened::One(packet) => self.tell_inside(error, header, packet, None, now),
            Opened::Several(segments) => {
                let mut first = Vec::new();
                segments.append(0, &mut first);
                self.tell_inside(error, header, &first, None, now);
            }
        }
    }

    /// The subscriber of a packet: by its destination, or by its source if we are the client.
    #[inline]
    fn receiver(&self, header: &Header) -> Option<u32> {
        let found = match header.version {
            4 => self.routes.lookup_v4(header.destination as u32),
            _ => self.routes.lookup_v6(header.destination),
        };
        found.or_else(|| match header.version {
            4 => self.own.lookup_v4(header.source as u32),
            _ => self.own.lookup_v6(header.source),
        })
    }

    fn packet_out(
        &mut self,
        place: u32,
        header: &Header,
        packet: &mut [u8],
        now: Instant,
        mut headers: Option<&mut impl Headers<E>>,
        outside: &mut impl Outside<E::Route>,
    ) -> Result<(), Discard> {
        let mtu = self.open_entry(place, header)?.mtu;
        match fragment::fit(header, header.total_length, mtu) {
            fragment::Fit::Whole => {}
            fragment::Fit::Split(mtu) => {
                for piece in fragment::split(header, packet, mtu) {
                    let headers = headers.as_deref_mut();
                    let one = (header.version, piece.length());
                    self.send(place, one, now, headers, outside, |out| {
                        out.extend_from_slice(piece.header());
                        out.extend_from_slice(piece.content);
                    })?;
                }
                return Ok(());
            }
            fragment::Fit::TooBig(mtu) => {
                let error = icmp::Error::TooBig(mtu);
                self.tell_inside(error, header, packet, Some(place), now);
                return Err(Discard::Forward(forward::Discard::TooBig));
            }
        }
        if self.clamp_mss {
            mss::clamp(header, packet, mtu, mss::Sum::Complete);
        }
        let one = (header.version, packet.len());
        self.send(place, one, now, headers, outside, |out| {
            out.extend_from_slice(packet);
        })
    }

    fn segments_out(
        &mut self,
        place: u32,
        header: &Header,
        segments: &Segments<'_>,
        now: Instant,
        mut headers: Option<&mut impl Headers<E>>,
        outside: &mut impl Outside<E::Route>,
    ) -> Result<(), Discard> {
        let mtu = self.open_entry(place, header)?.mtu;
        let fit = fragment::fit(header, segments.length_max() as u32, mtu);
        if fit != fragment::Fit::Whole {
            let mut segment = core::mem::take(&mut self.scratch);
            let mut result = Ok(());
            for n in 0..segments.count() {
                segment.clear();
                segments.append(n, &mut segment);
                let Ok(header) = Header::read(&segment) else {
                    continue;
                };
                let headers = headers.as_deref_mut();
                result = self.packet_out(place, &header, &mut segment, now, headers, outside);
                if result.is_err() {
                    break;
                }
            }
            self.scratch = segment;
            return result;
        }
        for n in 0..segments.count() {
            let headers = headers.as_deref_mut();
            let one = (header.version, segments.length(n).unwrap_or(0));
            self.send(place, one, now, headers, outside, |out| {
                segments.append(n, out);
            })?;
        }
        Ok(())
    }

    #[inline]
    fn open_entry(&self, place: u32, header: &Header) -> Result<&Entry<E>, Discard> {
        let entry = self.entry(place).ok_or(Discard::NotOpen)?;
        entry
            .is_open(header.version)
            .then_some(entry)
            .ok_or(Discard::NotOpen)
    }

    /// Sends a packet of this version and length, or queues it if its subscriber is shaped.
    #[inline]
    fn send(
        &mut self,
        place: u32,
        (version, octets): (u8, usize),
        now: Instant,
        headers: Option<&mut impl Headers<E>>,
        outside: &mut impl Outside<E::Route>,
        packet: impl Fn(&mut Vec<u8>),
    ) -> Result<(), Discard> {
        let entry = self.entry(place).ok_or(Discard::NotOpen)?;
        if let Some(lane) = entry.lane() {
            let to = To {
                lane,
                direction: hqos::Direction::Down,
                place,
                version,
            };
            return match self.passes(to, octets, now, &packet) {
                true => self.leave(place, version, headers, outside, packet),
                false => Ok(()),
            };
        }
        self.send_now(place, version, headers, outside, packet)
    }

    /// Sends a packet that leaves its queue. If its session's frames are numbered, only the edge's own path can.
    pub(super) fn leave(
        &mut self,
        place: u32,
        version: u8,
        headers: Option<&mut impl Headers<E>>,
        outside: &mut impl Outside<E::Route>,
        packet: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Discard> {
        let entry = self.entry(place).ok_or(Discard::NotOpen)?;
        if headers.is_none() && !entry.is_fixed() {
            let generation = entry.generation();
            return self.hand_over(0, (place, generation), Kind::Numbered, version, packet);
        }
        self.send_now(place, version, headers, outside, packet)
    }

    /// Sends a packet behind its headers, and counts it.
    #[inline]
    pub(super) fn send_now(
        &mut self,
        place: u32,
        version: u8,
        headers: Option<&mut impl Headers<E>>,
        outside: &mut impl Outside<E::Route>,
        packet: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Discard> {
        let entry = self.entry(place).ok_or(Discard::NotOpen)?;
        let header = numbered(entry, headers)?;
        let route = entry.way.route();
        let out = outside.begin(&route).ok_or(Discard::Backlog)?;
        let begun = out.len();
        entry.append_head(version, header.as_ref().map(AsRef::as_ref), out);
        let start = out.len();
        packet(out);
        let octets = (out.len() - start) as u64;
        entry.meter(self.number).pass_out(1, octets);
        self.counts().pass_out(octets);
        E::complete(&route, out, begun);
        if self.copies.is_on() {
            let subscriber = entry.subscriber();
            let copies = &mut self.copies;
            copies.copy(subscriber, Passed::Inside, true, [&out[start..], &[]]);
            copies.copy(
                subscriber,
                Passed::Outside(route),
                true,
                [&out[begun..], &[]],
            );
        }
        outside.commit(&route);
        Ok(())
    }
}

/// The header of a session whose frames have different ones; a fixed one is in the entry.
#[inline]
pub(super) fn numbered<E: Encapsulation>(
    entry: &Entry<E>,
    headers: Option<&mut impl Headers<E>>,
) -> Result<Option<E::Header>, Discard> {
    if entry.is_fixed() {
        return Ok(None);
    }
    let header = headers.and_then(|headers| headers.header(entry.way.session()));
    header.map(Some).ok_or(Discard::NotOpen)
}
