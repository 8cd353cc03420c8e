//! Packets from subscribers to the inside.
//!
//! Each header is read once. Nothing on this path allocates, reads a clock or formats text.

use base::Instant;
use filter::Direction;
use forward::routes::Routes;
use forward::{check, icmp, mss, source};
use wire::ip::Header;
use wire::ppp::{Frame, protocol};

use super::entry::Lane;
use super::handover::Kind;
use super::nat::Translator;
use super::queues::To;
use super::{Entry, Headers, Inside, Nobody, Passed, Path, Taken};
use crate::access::Encapsulation;
use crate::counters::Discard;
use crate::v6::is_on_link;

/// The IP version of a frame, and its packet; `None` for any other frame.
#[inline]
pub(crate) fn packet(frame: &[u8]) -> Option<(u8, &[u8])> {
    match Frame::parse(frame) {
        Ok(frame) if frame.protocol == protocol::IPV4 => Some((4, frame.information)),
        Ok(frame) if frame.protocol == protocol::IPV6 => Some((6, frame.information)),
        _ => None,
    }
}

/// Where the session of a data message was found.
pub(super) enum Found {
    /// A subscriber's entry.
    Entry(u32),
    /// The half of a switched session.
    Leg(u32),
}

impl<E: Encapsulation> Path<E> {
    /// Forwards the packet of a datagram to the inside, if the session is open. Everything else is left to the
    /// edge.
    #[inline]
    pub fn receive(
        &mut self,
        route: &E::Route,
        bytes: &[u8],
        now: Instant,
        inside: &mut impl Inside,
    ) -> Taken {
        let found = E::locate(route, bytes, |id| self.find_either(id, route));
        let found = match found {
            Some((Found::Leg(place), frame)) => {
                if self.cross(place, route, frame, bytes, now) {
                    return Taken::Done;
                }
                None
            }
            Some((Found::Entry(place), frame)) => self.packet_of(place, frame),
            None => None,
        };
        let Some((place, version, packet)) = found else {
            self.counts().leave();
            return Taken::Left;
        };
        if self.copies.is_on() {
            self.copy(place, Passed::Outside(*route), false, [bytes, &[]]);
        }
        self.packet(place, version, packet, now, None::<&mut Nobody>, inside);
        Taken::Done
    }

    /// The subscriber whose session has this id, or the half of a switched session.
    #[inline]
    pub(super) fn find_either(&self, id: E::Id, route: &E::Route) -> Option<(Found, &E)> {
        if let Some((place, entry)) = self.find(id, route) {
            return Some((Found::Entry(place), &entry.way));
        }
        let (place, way) = self.crossings.find(id, route)?;
        Some((Found::Leg(place), way))
    }

    /// The subscriber, IP version and packet of a datagram; `None` if it is of no subscriber, or for the edge.
    #[inline]
    pub(super) fn find_packet<'a>(
        &self,
        route: &E::Route,
        bytes: &'a [u8],
    ) -> Option<(u32, u8, &'a [u8])> {
        let (place, frame) = E::locate(route, bytes, |id| {
            let (place, entry) = self.find(id, route)?;
            Some((place, &entry.way))
        })?;
        self.packet_of(place, frame)
    }

    /// The IP version and packet of a subscriber's frame; `None` if it is for the edge.
    #[inline]
    fn packet_of<'a>(&self, place: u32, frame: &'a [u8]) -> Option<(u32, u8, &'a [u8])> {
        let entry = self.entry(place)?;
        let (version, packet) = packet(frame)?;
        let passes =
            entry.is_open(version) && entry.is_fixed() && !(version == 6 && is_on_link(packet));
        passes.then_some((place, version, packet))
    }

    /// Forwards a packet from a subscriber, or to us as a client. `headers` composes the header of an error about it.
    pub(crate) fn packet(
        &mut self,
        place: u32,
        version: u8,
        packet: &[u8],
        now: Instant,
        headers: Option<&mut impl Headers<E>>,
        inside: &mut impl Inside,
    ) {
        if let Some(Some(entry)) = self.entries.get_mut(place as usize)
            && entry.hear(now)
        {
            self.heard.push(entry.way.session());
        }
        if let Err(why) = self.packet_in(place, version, packet, now, inside) {
            self.drop_of(place, why);
            if why == Discard::Filtered {
                self.walled(place, packet, headers, now);
            } else if let Discard::Forward(why) = why
                && let Some(error) = icmp::Error::of(why)
                && let Ok(header) = Header::read(packet)
            {
                self.tell_subscriber(place, error, &header, packet, headers, now);
            }
        }
    }

    #[inline]
    fn packet_in(
        &mut self,
        place: u32,
        version: u8,
        packet: &[u8],
        now: Instant,
        inside: &mut impl Inside,
    ) -> Result<(), Discard> {
        let header = Header::read(packet).map_err(|why| Discard::Forward(why.into()))?;
        if header.version != version {
            return Err(Discard::OtherVersion);
        }
        // The rest is PPP's padding (RFC 1661, section 2).
        let packet = &packet[..header.total_length as usize];
        let Self {
            number,
            entries,
            routes,
            own,
            filters,
            gardens,
            counts,
            nat,
            isolate,
            isolated,
            ..
        } = self;
        let Some(Some(entry)) = entries.get(place as usize) else {
            return Err(Discard::NotOpen);
        };
        check::checksum(&header, packet).map_err(Discard::Forward)?;
        may_send(entry, place, routes, own, &header)?;
        if let Some(id) = entry.filter
            && !filters.pass(
                id,
                entry.subscriber(),
                &header,
                Direction::In,
                &counts[*number],
            )
            && !(entry.garden).is_some_and(|garden| gardens.allow(garden, &header, Direction::In))
        {
            return Err(Discard::Filtered);
        }
        if (*isolate || *isolated > 0) && !entry.is_client() {
            let other = leads_to_another(place, routes, nat.as_deref(), &header);
            if other.is_some_and(|other| is_apart(entry, other, entries, *isolate)) {
                return Err(Discard::Isolated);
            }
        }
        if let Some(nat) = nat
            && !entry.is_client()
            && nat.covers(&header)
        {
            let of = (place, entry.generation());
            let (home, tag) = (entry.translator, entry.subscriber().to_token());
            if usize::from(home) != *number {
                return self.hand_over(home, of, Kind::Outbound, 4, |out| {
                    out.extend_from_slice(packet);
                });
            }
            let translated = nat.outbound((place, tag), &header, packet, now)?;
            return self.translated_in(place, translated, now, inside);
        }
        self.pass_in(place, &header, packet, now, inside)
    }

    /// Translates and forwards a packet that another path checked.
    pub(super) fn translate_in(
        &mut self,
        place: u32,
        packet: &[u8],
        now: Instant,
        inside: &mut impl Inside,
    ) -> Result<(), Discard> {
        let entry = self.entry(place).ok_or(Discard::NotOpen)?;
        let who = (place, entry.subscriber().to_token());
        let header = Header::read(packet).map_err(|why| Discard::Forward(why.into()))?;
        let nat = self.nat.as_mut().ok_or(Discard::Nat)?;
        let translated = nat.outbound(who, &header, packet, now)?;
        self.translated_in(place, translated, now, inside)
    }

    /// Forwards a translated packet, and fragments that waited for it.
    fn translated_in(
        &mut self,
        place: u32,
        translated: Option<Vec<u8>>,
        now: Instant,
        inside: &mut impl Inside,
    ) -> Result<(), Discard> {
        let mut result = Ok(());
        if let Some(buffer) = translated {
            if let Ok(header) = Header::read(&buffer) {
                result = self.pass_in(place, &header, &buffer, now, inside);
            }
            if let Some(nat) = &mut self.nat {
                nat.take_back(buffer);
            }
        }
        while let Some(nat) = &mut self.nat
            && let Some(piece) = nat.released(nat::Direction::Out, 0)
        {
            if let Ok(header) = Header::read(&piece) {
                let _ = self.pass_in(place, &header, &piece, now, inside);
            }
        }
        result
    }

    /// Forwards a packet that may pass.
    #[inline]
    fn pass_in(
        &mut self,
        place: u32,
        header: &Header,
        packet: &[u8],
        now: Instant,
        inside: &mut impl Inside,
    ) -> Result<(), Discard> {
        let Self {
            number,
            entries,
            scratch,
            clamp_mss,
            counts,
            ..
        } = self;
        let Some(Some(entry)) = entries.get(place as usize) else {
            return Err(Discard::NotOpen);
        };
        if let Some(lane) = entry.lane() {
            return self.shaped_in(place, lane, header, packet, now, inside);
        }
        entry.meter(*number).pass_in(packet.len());
        counts[*number].pass_in(packet.len());
        let packet = if *clamp_mss && mss::is_syn(header) {
            scratch.clear();
            scratch.extend_from_slice(packet);
            mss::clamp(header, scratch, entry.mtu, mss::Sum::Complete);
            scratch
        } else {
            packet
        };
        if self.copies.is_on() {
            self.copies
                .copy(entry.subscriber(), Passed::Inside, false, [packet, &[]]);
        }
        inside.packet(packet);
        Ok(())
    }

    /// The rest of the same, for a shaped subscriber.
    fn shaped_in(
        &mut self,
        place: u32,
        lane: Lane,
        header: &Header,
        packet: &[u8],
        now: Instant,
        inside: &mut impl Inside,
    ) -> Result<(), Discard> {
        let mut scratch = core::mem::take(&mut self.scratch);
        let mtu = self.entry(place).map_or(u16::MAX, |entry| entry.mtu);
        let packet = if self.clamp_mss && mss::is_syn(header) {
            scratch.clear();
            scratch.extend_from_slice(packet);
            mss::clamp(header, &mut scratch, mtu, mss::Sum::Complete);
            &scratch
        } else {
            packet
        };
        let to = To {
            lane,
            direction: hqos::Direction::Up,
            place,
            version: header.version,
        };
        let queue = |out: &mut Vec<u8>| out.extend_from_slice(packet);
        let result = match self.passes(to, packet.len(), now, queue) {
            true => self.pass_inside(place, packet, inside),
            false => Ok(()),
        };
        self.scratch = scratch;
        result
    }

    /// Counts a packet of a shaped subscriber and passes it to the inside.
    pub(super) fn pass_inside(
        &mut self,
        place: u32,
        packet: &[u8],
        inside: &mut impl Inside,
    ) -> Result<(), Discard> {
        let entry = self.entry(place).ok_or(Discard::NotOpen)?;
        entry.meter(self.number).pass_in(packet.len());
        let subscriber = entry.subscriber();
        self.counts().pass_in(packet.len());
        if self.copies.is_on() {
            self.copies
                .copy(subscriber, Passed::Inside, false, [packet, &[]]);
        }
        inside.packet(packet);
        Ok(())
    }

    #[cold]
    fn copy(&mut self, place: u32, passed: Passed<E::Route>, is_to: bool, parts: [&[u8]; 2]) {
        if let Some(Some(entry)) = self.entries.get(place as usize) {
            self.copies.copy(entry.subscriber(), passed, is_to, parts);
        }
    }
}

/// The other subscriber that a packet is for: the one with its address or network. `Some(None)` for an address of the NAT,
/// behind which another one is.
#[cold]
fn leads_to_another(
    place: u32,
    routes: &Routes,
    nat: Option<&Translator>,
    header: &Header,
) -> Option<Option<u32>> {
    let found = match header.version {
        4 => routes.lookup_v4(header.destination as u32),
        _ => routes.lookup_v6(header.destination),
    };
    match found.filter(|other| *other != place) {
        Some(other) => Some(Some(other)),
        None => nat.is_some_and(|nat| nat.owns(header)).then_some(None),
    }
}

/// Whether one of two subscribers is isolated. The other one is unknown behind an address of the NAT.
#[cold]
fn is_apart<E: Encapsulation>(
    entry: &Entry<E>,
    other: Option<u32>,
    entries: &[Option<Entry<E>>],
    default: bool,
) -> bool {
    let other = other.and_then(|other| entries.get(other as usize)?.as_ref());
    let both = [Some(entry), other].into_iter().flatten();
    both.map(Entry::isolate).any(|one| one.unwrap_or(default))
}

/// Whether a subscriber may send this packet, by its addresses.
#[inline]
fn may_send<E: Encapsulation>(
    entry: &Entry<E>,
    place: u32,
    routes: &Routes,
    own: &Routes,
    header: &Header,
) -> Result<(), Discard> {
    let reach = check::addresses(header).map_err(Discard::Forward)?;
    if !entry.is_client() {
        source::check(&entry.addresses, place, routes, header, reach).map_err(Discard::Forward)?;
    } else if header.version == 4
        && header.destination as u32 != entry.addresses.v4
        && own.lookup_v4(header.destination as u32) != Some(place)
    {
        return Err(Discard::Forward(forward::Discard::NoRoute));
    }
    if reach == check::Reach::Link {
        // A subscriber's link has no host but us.
        return Err(Discard::Forward(forward::Discard::BeyondScope));
    }
    Ok(())
}
