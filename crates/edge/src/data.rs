//! The way of packets: from a tunnel to the inside, and from the inside into a tunnel.
//!
//! Each header is read once. Nothing here allocates, reads a clock or makes text.

use base::{Instant, Route};
use filter::Direction;
use forward::split::{Opened, Segments};
use forward::{check, fragment, icmp, mss, source};
use l2tp::Received;
use wire::ip::Header;
use wire::ppp::control::code;
use wire::ppp::{Frame, protocol};

use crate::counters::Discard;
use crate::edge::Edge;
use crate::subscriber::{Subscriber, SubscriberKey};
use crate::tap::Passed;

/// Where packets of subscribers go.
pub trait Inside {
    /// Takes an IP packet without padding.
    fn packet(&mut self, packet: &[u8]);
}

/// Where datagrams to peers go.
pub trait Outside {
    /// Begins a datagram on this way: its octets are to be appended to the buffer. `None` where there is no room.
    fn begin(&mut self, route: &Route) -> Option<&mut Vec<u8>>;

    /// Ends the datagram begun.
    fn commit(&mut self, route: &Route);
}

impl Edge {
    /// Takes a datagram of a peer: packets go to the inside, all else is heeded.
    pub fn receive(&mut self, route: Route, bytes: &[u8], now: Instant, inside: &mut impl Inside) {
        match self.endpoint.receive_data(&route, bytes, now) {
            Ok(Some(received)) => {
                if self.taps.is_on()
                    && let Some(index) = self.subscriber_of(received.session)
                    && let Some(subscriber) = self.subscribers.at(index)
                {
                    let passed = Passed::Outside(route);
                    self.taps.copy(subscriber, passed, false, [bytes, &[]]);
                }
                self.frame(received, bytes, now, inside);
            }
            Ok(None) => {
                // What was ignored is counted by the endpoint.
                let _ = self.handle_control(base::Datagram { route, bytes }, now);
            }
            Err(_) => {}
        }
    }

    fn frame(&mut self, received: Received, bytes: &[u8], now: Instant, inside: &mut impl Inside) {
        let Some(index) = self.subscriber_of(received.session) else {
            self.counters.discard(Discard::NotTerminated);
            return;
        };
        let octets = &bytes[received.start..received.end];
        let mut is_echo_reply = false;
        let version = match Frame::parse(octets) {
            Ok(frame) if frame.protocol == protocol::LCP => {
                is_echo_reply = frame.information.first() == Some(&code::ECHO_REPLY);
                None
            }
            Ok(frame) if frame.protocol == protocol::IPV4 => Some((4, frame.information)),
            Ok(frame) if frame.protocol == protocol::IPV6 => Some((6, frame.information)),
            _ => None,
        };
        if let Some((version, packet)) = version
            && self.is_open(index, version)
        {
            if let Err(why) = self.packet_in(index, version, packet, inside) {
                self.count_dropped(index, why);
                if let Discard::Forward(why) = why
                    && let Some(error) = icmp::Error::of(why, 0)
                    && let Ok(header) = Header::read(packet)
                {
                    self.tell_subscriber(index, error, &header, packet, now);
                }
            }
            return;
        }
        let handled = self.with_link(index, now, |link, ctx| link.handle(octets, ctx));
        match handled {
            Some(Err(why)) => self.counters.discard(Discard::Ppp(why)),
            Some(Ok(())) if is_echo_reply => self.counters.echo_replies += 1,
            Some(Ok(())) | None => {}
        }
    }

    fn is_open(&self, index: u32, version: u8) -> bool {
        self.at(index).is_open(version)
    }

    fn count_dropped(&mut self, index: u32, why: Discard) {
        self.counters.discard(why);
        if let Some(subscriber) = self.subscribers.at_mut(index) {
            subscriber.traffic.dropped += 1;
        }
    }

    /// A packet from a subscriber, or to us as a client.
    fn packet_in(
        &mut self,
        index: u32,
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
            subscribers,
            routes,
            filters,
            scratch,
            config,
            taps,
            ..
        } = self;
        let subscriber = subscribers.at_mut(index).expect("the caller found it");
        check::checksum(&header, packet).map_err(Discard::Forward)?;
        let reach = check::addresses(&header).map_err(Discard::Forward)?;
        if !subscriber.is_client {
            source::check(&subscriber.addresses, index, routes, &header, reach)
                .map_err(Discard::Forward)?;
        } else if version == 4 && header.destination as u32 != subscriber.addresses.v4 {
            return Err(Discard::Forward(forward::Discard::NoRoute));
        }
        if reach == check::Reach::Link {
            // To us, or to nobody: a subscriber's link has no other host.
            return Err(Discard::Forward(forward::Discard::BeyondScope));
        }
        if let Some(id) = subscriber.filter {
            let key = SubscriberKey(subscriber.key);
            if !filters.pass(id, key, &header, Direction::In) {
                return Err(Discard::Filtered);
            }
        }
        let traffic = &mut subscriber.traffic;
        traffic.packets_in += 1;
        traffic.octets_in += packet.len() as u64;
        subscriber.active = true;
        let packet = if config.clamp_mss && mss::is_syn(&header) {
            scratch.clear();
            scratch.extend_from_slice(packet);
            mss::clamp(&header, scratch, subscriber.mtu, mss::Sum::Complete);
            scratch
        } else {
            packet
        };
        if taps.is_on() {
            taps.copy(subscriber, Passed::Inside, false, [packet, &[]]);
        }
        inside.packet(packet);
        Ok(())
    }

    /// Takes what a TUN device gave, a [`wire::virtio::Header`] and a packet, to the subscriber whose it is.
    pub fn forward(&mut self, octets: &mut [u8], now: Instant, outside: &mut impl Outside) {
        let Ok(opened) = forward::split::open(octets) else {
            self.counters.discard(Discard::NotCut);
            return;
        };
        let header = match &opened {
            Opened::One(packet) => Header::read(packet),
            Opened::Several(segments) => Ok(*segments.ip()),
        };
        let header = match header {
            Ok(header) => header,
            Err(why) => {
                self.counters.discard(Discard::Forward(why.into()));
                return;
            }
        };
        let Some(index) = self.receiver(&header) else {
            self.nobody(&header, opened, now);
            return;
        };
        if !self.passes(index, &header) {
            self.count_dropped(index, Discard::Filtered);
            return;
        }
        let result = match opened {
            Opened::One(packet) => {
                let packet = &mut packet[..header.total_length as usize];
                self.packet_out(index, &header, packet, now, outside)
            }
            Opened::Several(segments) => self.segments_out(index, &header, &segments, now, outside),
        };
        if let Err(why) = result {
            self.count_dropped(index, why);
        }
    }

    #[inline]
    fn passes(&mut self, index: u32, header: &Header) -> bool {
        let Some(subscriber) = self.subscribers.at(index) else {
            return false;
        };
        let key = SubscriberKey(subscriber.key);
        subscriber
            .filter
            .is_none_or(|id| self.filters.pass(id, key, header, Direction::Out))
    }

    /// A packet that is for nobody: its sender is told.
    #[cold]
    fn nobody(&mut self, header: &Header, opened: Opened<'_>, now: Instant) {
        let why = forward::Discard::NoRoute;
        self.counters.discard(Discard::Forward(why));
        let Some(error) = icmp::Error::of(why, 0) else {
            return;
        };
        match opened {
            Opened::One(packet) => self.errors.tell_inside(error, header, packet, None, now),
            Opened::Several(segments) => {
                let mut first = Vec::new();
                segments.append(0, &mut first);
                self.errors.tell_inside(error, header, &first, None, now);
            }
        }
    }

    /// Whose packet it is: by its destination, or where we are the client by its source.
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
        index: u32,
        header: &Header,
        packet: &mut [u8],
        now: Instant,
        outside: &mut impl Outside,
    ) -> Result<(), Discard> {
        let subscriber = self.subscribers.at(index).ok_or(Discard::NotOpen)?;
        let mtu = subscriber.mtu;
        check_open(subscriber, header)?;
        match fragment::fit(header, header.total_length, mtu) {
            fragment::Fit::Whole => {}
            fragment::Fit::Split(mtu) => {
                for piece in fragment::split(header, packet, mtu) {
                    self.send(index, header.version, outside, |out| {
                        out.extend_from_slice(piece.header());
                        out.extend_from_slice(piece.content);
                    })?;
                }
                return Ok(());
            }
            fragment::Fit::TooBig(mtu) => {
                let error = icmp::Error::TooBig(mtu);
                let receiver = self.subscribers.at_mut(index);
                let bucket = receiver.map(|one| &mut one.bucket);
                self.errors.tell_inside(error, header, packet, bucket, now);
                return Err(Discard::Forward(forward::Discard::TooBig));
            }
        }
        if self.config.clamp_mss {
            mss::clamp(header, packet, mtu, mss::Sum::Complete);
        }
        self.send(index, header.version, outside, |out| {
            out.extend_from_slice(packet);
        })
    }

    fn segments_out(
        &mut self,
        index: u32,
        header: &Header,
        segments: &Segments<'_>,
        now: Instant,
        outside: &mut impl Outside,
    ) -> Result<(), Discard> {
        let subscriber = self.subscribers.at(index).ok_or(Discard::NotOpen)?;
        check_open(subscriber, header)?;
        let fit = fragment::fit(header, segments.length_max() as u32, subscriber.mtu);
        if fit != fragment::Fit::Whole {
            let mut segment = core::mem::take(&mut self.scratch);
            let mut result = Ok(());
            for n in 0..segments.count() {
                segment.clear();
                segments.append(n, &mut segment);
                let Ok(header) = Header::read(&segment) else {
                    continue;
                };
                result = self.packet_out(index, &header, &mut segment, now, outside);
                if result.is_err() {
                    break;
                }
            }
            self.scratch = segment;
            return result;
        }
        for n in 0..segments.count() {
            self.send(index, header.version, outside, |out| {
                segments.append(n, out);
            })?;
        }
        Ok(())
    }

    /// Puts the tunnel's headers before a packet, and counts it.
    #[inline]
    fn send(
        &mut self,
        index: u32,
        version: u8,
        outside: &mut impl Outside,
        packet: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Discard> {
        let Self {
            subscribers,
            endpoint,
            taps,
            ..
        } = self;
        let subscriber = subscribers.at_mut(index).ok_or(Discard::NotOpen)?;
        let header = endpoint
            .data_header(subscriber.session)
            .ok_or(Discard::NotOpen)?;
        let number = match version {
            4 => protocol::IPV4,
            _ => protocol::IPV6,
        };
        let (head, length) = subscriber.compression.head(number);
        let out = outside.begin(&header.route).ok_or(Discard::Backlog)?;
        let begun = out.len();
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(&head[..length]);
        let start = out.len();
        packet(out);
        let octets = (out.len() - start) as u64;
        if taps.is_on() {
            let passed = Passed::Outside(header.route);
            taps.copy(subscriber, Passed::Inside, true, [&out[start..], &[]]);
            taps.copy(subscriber, passed, true, [&out[begun..], &[]]);
        }
        outside.commit(&header.route);
        subscriber.traffic.packets_out += 1;
        subscriber.traffic.octets_out += octets;
        subscriber.active = true;
        Ok(())
    }

    /// What a subscriber's packets may have, once its link knows.
    pub(crate) fn set_mtu(&mut self, index: u32) {
        let path = self.config.path_mtu;
        let endpoint = &mut self.endpoint;
        let subscriber = self.subscribers.at_mut(index).expect("the caller has it");
        let overhead = endpoint.data_overhead(subscriber.session).unwrap_or(0);
        subscriber.compression = subscriber.link.compression();
        // Address, control and protocol number stand before the packet.
        let room = path.saturating_sub(overhead as u16 + 4);
        subscriber.mtu = subscriber.link.peer_mru().min(room);
    }
}

fn check_open(subscriber: &Subscriber, header: &Header) -> Result<(), Discard> {
    let is_open = subscriber.is_open(header.version);
    is_open.then_some(()).ok_or(Discard::NotOpen)
}
