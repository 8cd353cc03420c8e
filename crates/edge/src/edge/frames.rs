//! Datagrams of peers, and packets of the inside: most go by the path; the others are the edge's own to look at.

use base::{Datagram, Instant, Route};
use l2tp::Received;
use wire::ppp::control::code;
use wire::ppp::{Frame, protocol};

use crate::counters::Discard;
use crate::edge::Edge;
use crate::key::SubscriberKey;
use crate::path::{self, Inside, Outside, Passed, Taken};

impl Edge {
    /// Takes a datagram of a peer: packets go to the inside, all else is heeded.
    #[inline]
    pub fn receive(&mut self, route: Route, bytes: &[u8], now: Instant, inside: &mut impl Inside) {
        match self.path.receive(&route, bytes, now, inside) {
            Taken::Done => self.heed_heard(now),
            Taken::Left => self.receive_left(route, bytes, now, inside),
        }
    }

    /// Takes a datagram that a path left.
    pub fn receive_left(
        &mut self,
        route: Route,
        bytes: &[u8],
        now: Instant,
        inside: &mut impl Inside,
    ) {
        match self.endpoint.receive_data(&route, bytes, now) {
            Ok(Some(received)) => {
                let Some(index) = self.subscriber_of(received.session) else {
                    self.path.counts().discard(Discard::NotTerminated);
                    return;
                };
                if self.path.copies.is_on() {
                    let key = SubscriberKey(self.at(index).key);
                    let passed = Passed::Outside(route);
                    self.path.copies.copy(key, passed, false, [bytes, &[]]);
                }
                self.frame(index, received, bytes, now, inside);
            }
            Ok(None) => {
                // What was ignored is counted by the endpoint.
                let _ = self.handle_control(Datagram { route, bytes }, now);
            }
            Err(_) => {}
        }
    }

    fn frame(
        &mut self,
        index: u32,
        received: Received,
        bytes: &[u8],
        now: Instant,
        inside: &mut impl Inside,
    ) {
        let octets = &bytes[received.start..received.end];
        self.number(index);
        if let Some((version, packet)) = path::packet(octets)
            && self.at(index).is_open(version)
        {
            let endpoint = Some(&mut self.endpoint);
            self.path
                .packet(index, version, packet, now, endpoint, inside);
            return;
        }
        let frame = Frame::parse(octets).ok();
        let is_echo_reply = frame.is_some_and(|frame| {
            frame.protocol == protocol::LCP && frame.information.first() == Some(&code::ECHO_REPLY)
        });
        self.heed_wish(index, octets);
        let handled = self.with_link(index, now, |link, ctx| link.handle(octets, ctx));
        match handled {
            Some(Err(why)) => self.path.counts().discard(Discard::Ppp(why)),
            Some(Ok(())) if is_echo_reply => self.counters.echo_replies += 1,
            Some(Ok(())) | None => {}
        }
    }

    /// A peer that begins to number its frames wants ours numbered, and one that ceases wants them without (RFC 2661,
    /// section 5.4): whatever the frame is.
    fn number(&mut self, index: u32) {
        let Some(entry) = self.path.entry(index) else {
            return;
        };
        if self.endpoint.is_numbered(self.at(index).session) != entry.is_numbered() {
            self.set_mtu(index);
            self.publish(index);
        }
    }

    /// Takes what a TUN device gave, a [`wire::virtio::Header`] and a packet, to the subscriber whose it is.
    #[inline]
    pub fn forward(&mut self, octets: &mut [u8], now: Instant, outside: &mut impl Outside) {
        let endpoint = Some(&mut self.endpoint);
        let taken = self.path.forward_by(octets, now, endpoint, outside);
        debug_assert_eq!(taken, Taken::Done, "there is an endpoint");
    }

    /// Something came of a session by another path.
    pub fn heard(&mut self, session: l2tp::SessionKey, now: Instant) {
        self.endpoint.heard(session, now);
    }

    fn heed_heard(&mut self, now: Instant) {
        while let Some(session) = self.path.poll_heard() {
            self.endpoint.heard(session, now);
        }
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
