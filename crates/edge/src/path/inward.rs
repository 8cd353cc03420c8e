//! From a tunnel to the inside.
//!
//! Each header is read once. Nothing here allocates, reads a clock or makes text.

use base::{Instant, Route};
use filter::Direction;
use forward::{check, icmp, mss, source};
use l2tp::{DataIds, Endpoint};
use wire::ip::Header;
use wire::l2tp::{DataV2, DataV3, Packet, Sublayer};
use wire::ppp::{Frame, protocol};

use super::{Inside, Passed, Path, Taken};
use crate::counters::Discard;

/// Which version of IP a frame has, and the packet; `None` where it has none.
#[inline]
pub(crate) fn packet(frame: &[u8]) -> Option<(u8, &[u8])> {
    match Frame::parse(frame) {
        Ok(frame) if frame.protocol == protocol::IPV4 => Some((4, frame.information)),
        Ok(frame) if frame.protocol == protocol::IPV6 => Some((6, frame.information)),
        _ => None,
    }
}

/// Whether a datagram is a control message, or too short to be any (RFC 2661, section 3.1: T).
#[inline]
fn is_control(bytes: &[u8]) -> bool {
    bytes.first().is_none_or(|octet| octet & 0x80 != 0)
}

impl Path {
    /// Takes a datagram of a peer, if it is a packet of an open session, to the inside.
    #[inline]
    pub fn receive(
        &mut self,
        route: &Route,
        bytes: &[u8],
        now: Instant,
        inside: &mut impl Inside,
    ) -> Taken {
        let Some((place, version, packet)) = self.find_packet(route, bytes) else {
            self.counts().leave();
            return Taken::Left;
        };
        if self.copies.is_on() {
            self.copy(place, Passed::Outside(*route), false, [bytes, &[]]);
        }
        self.packet(place, version, packet, now, None, inside);
        Taken::Done
    }

    /// Whose packet of IP a datagram has, its version and the packet; `None` where the edge has to look at it.
    #[inline]
    fn find_packet<'a>(&self, route: &Route, bytes: &'a [u8]) -> Option<(u32, u8, &'a [u8])> {
        if is_control(bytes) {
            return None;
        }
        let (place, (version, packet)) = match wire::l2tp::parse(bytes) {
            Ok(Packet::DataV2(DataV2 {
                tunnel,
                session,
                sequence: None,
                payload,
                ..
            })) => {
                // A link's frame is told before its session is looked for.
                let packet = packet(payload)?;
                (self.find(DataIds::V2(tunnel, session), route)?, packet)
            }
            Ok(Packet::DataV3(data)) => {
                let (place, frame) = self.session_v3(route, &data)?;
                (place, packet(frame)?)
            }
            Ok(Packet::DataV2(_) | Packet::Control(_)) | Err(_) => return None,
        };
        let entry = self.entry(place)?;
        let passes = entry.is_open(version) && !entry.is_numbered;
        passes.then_some((place, version, packet))
    }

    #[inline]
    fn session_v3<'a>(&self, route: &Route, data: &DataV3<'a>) -> Option<(u32, &'a [u8])> {
        let place = self.find(DataIds::V3(data.session), route)?;
        let entry = self.entry(place)?;
        let cookie = entry.cookie.as_bytes();
        let (received, frame) = data.cookie(cookie.len())?;
        if received != cookie {
            return None;
        }
        if !entry.sublayer {
            return Some((place, frame));
        }
        let (sublayer, frame) = Sublayer::parse(frame)?;
        sublayer.sequence.is_none().then_some((place, frame))
    }

    /// Takes a packet from an open subscriber, or to us as a client. An endpoint is there to number what is told of it.
    pub(crate) fn packet(
        &mut self,
        place: u32,
        version: u8,
        packet: &[u8],
        now: Instant,
        endpoint: Option<&mut Endpoint>,
        inside: &mut impl Inside,
    ) {
        if let Some(Some(entry)) = self.entries.get_mut(place as usize)
            && entry.hear(now)
        {
            self.heard.push(entry.session);
        }
        if let Err(why) = self.packet_in(place, version, packet, inside) {
            self.drop_of(place, why);
            if let Discard::Forward(why) = why
                && let Some(error) = icmp::Error::of(why, 0)
                && let Ok(header) = Header::read(packet)
            {
                self.tell_subscriber(place, error, &header, packet, endpoint, now);
            }
        }
    }

    #[inline]
    fn packet_in(
        &mut self,
        place: u32,
        version: u8,
        packet: &[u8],
        inside: &mut impl Inside,
    ) -> Result<(), Discard> {
        let header = Header::read(packet).map_err(|why| Discard::Forward(why.into()))?;
        if header.version != version {
            return Err(Discard::OtherVersion);
        }
        // What is behind it is PPP's padding (RFC 1661, section 2).
        let packet = &packet[..header.total_length as usize];
        let Self {
            number,
            entries,
            routes,
            own,
            filters,
            scratch,
            clamp_mss,
            counts,
            ..
        } = self;
        let Some(Some(entry)) = entries.get(place as usize) else {
            return Err(Discard::NotOpen);
        };
        check::checksum(&header, packet).map_err(Discard::Forward)?;
        let reach = check::addresses(&header).map_err(Discard::Forward)?;
        if !entry.is_client {
            source::check(&entry.addresses, place, routes, &header, reach)
                .map_err(Discard::Forward)?;
        } else if version == 4
            && header.destination as u32 != entry.addresses.v4
            && own.lookup_v4(header.destination as u32) != Some(place)
        {
            return Err(Discard::Forward(forward::Discard::NoRoute));
        }
        if reach == check::Reach::Link {
            // To us, or to nobody: a subscriber's link has no other host.
            return Err(Discard::Forward(forward::Discard::BeyondScope));
        }
        if let Some(id) = entry.filter
            && !filters.pass(id, entry, &header, Direction::In, &counts[*number])
        {
            return Err(Discard::Filtered);
        }
        entry.meter(*number).pass_in(packet.len());
        counts[*number].pass_in();
        let packet = if *clamp_mss && mss::is_syn(&header) {
            scratch.clear();
            scratch.extend_from_slice(packet);
            mss::clamp(&header, scratch, entry.mtu, mss::Sum::Complete);
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

    #[cold]
    fn copy(&mut self, place: u32, passed: Passed, is_to: bool, parts: [&[u8]; 2]) {
        if let Some(Some(entry)) = self.entries.get(place as usize) {
            self.copies.copy(entry.subscriber(), passed, is_to, parts);
        }
    }
}
