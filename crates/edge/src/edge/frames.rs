//! Datagrams from peers and packets from the inside. The path forwards most; the edge handles the others: control
//! messages, frames of links, packets of sessions whose header changes.

use base::Instant;
use wire::ppp::control::code;
use wire::ppp::{Frame, protocol};

use crate::access::Access;
use crate::counters::Discard;
use crate::edge::Edge;
use crate::key::SubscriberKey;
use crate::path::{self, Inside, Outside, Passed, Taken};
use crate::v6::is_on_link;

impl<A: Access> Edge<A> {
    /// Takes a datagram from a peer. Forwards its packet to the inside, or handles its control message or frame.
    #[inline]
    pub fn receive(
        &mut self,
        route: A::Route,
        bytes: &[u8],
        now: Instant,
        inside: &mut impl Inside,
    ) {
        match self.path.receive(&route, bytes, now, inside) {
            Taken::Done => self.heed_heard(now),
            Taken::Left => self.receive_left(route, bytes, now, inside),
        }
    }

    /// Takes a datagram that a path left to the edge.
    pub fn receive_left(
        &mut self,
        route: A::Route,
        bytes: &[u8],
        now: Instant,
        inside: &mut impl Inside,
    ) {
        let Some((session, frame)) = self.endpoint.receive(&route, bytes, now) else {
            self.heed(now);
            return;
        };
        if self.switched_frame(session, frame) {
            self.heed(now);
            return;
        }
        let Some(index) = self.subscriber_of(session) else {
            self.path.counts().discard(Discard::NotTerminated);
            return;
        };
        if self.path.copies.is_on() {
            let key = SubscriberKey(self.at(index).key);
            let passed = Passed::Outside(route);
            self.path.copies.copy(key, passed, false, [bytes, &[]]);
        }
        self.frame(index, frame, now, inside);
    }

    fn frame(&mut self, index: u32, octets: &[u8], now: Instant, inside: &mut impl Inside) {
        self.settle_header(index);
        if let Some((version, packet)) = path::packet(octets)
            && self.at(index).is_open(version)
        {
            if version == 6 && is_on_link(packet) {
                return self.link_packet(index, packet, now, inside);
            }
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
        if self.config.switching.is_on && self.at(index).up.is_none() {
            self.switches.keep_request(index, octets);
        }
        let handled = self.with_link(index, now, |link, ctx| link.handle(octets, ctx));
        match handled {
            Some(Err(why)) => self.path.counts().discard(Discard::Ppp(why)),
            Some(Ok(())) if is_echo_reply => self.counters.echo_replies += 1,
            Some(Ok(())) | None => {}
        }
    }

    /// Updates the path if the header of our frames changed. Any frame can cause that: a peer of L2TP that starts to
    /// number its frames wants ours numbered too (RFC 2661, section 5.4).
    fn settle_header(&mut self, index: u32) {
        let Some(entry) = self.path.entry(index) else {
            return;
        };
        if self.endpoint.is_fixed(self.at(index).session) != entry.is_fixed() {
            self.set_mtu(index);
            self.publish(index);
        }
    }

    /// Forwards what a TUN device returned, a [`wire::virtio::Header`] and a packet, to its subscriber.
    #[inline]
    pub fn forward(
        &mut self,
        octets: &mut [u8],
        now: Instant,
        outside: &mut impl Outside<A::Route>,
    ) {
        let endpoint = Some(&mut self.endpoint);
        let taken = self.path.forward_by(octets, now, endpoint, outside);
        debug_assert_eq!(taken, Taken::Done, "there is an endpoint");
    }

    /// Passes frames of switched sessions, and errors about packets, to `outside`, as `Path::pour` does. What is not
    /// passed here comes from [`Edge::poll_transmit`].
    #[inline]
    pub fn pour(&mut self, outside: &mut impl Outside<A::Route>) -> u64 {
        self.path.pour(outside)
    }

    /// Another path received a packet of a session.
    pub fn heard(&mut self, session: A::Session, now: Instant) {
        self.endpoint.heard(session, now);
    }

    fn heed_heard(&mut self, now: Instant) {
        while let Some(session) = self.path.poll_heard() {
            self.endpoint.heard(session, now);
        }
    }

    /// Computes a subscriber's MTU, once its link has negotiated it.
    pub(crate) fn set_mtu(&mut self, index: u32) {
        let path = self.config.path_mtu;
        let endpoint = &mut self.endpoint;
        let subscriber = self.subscribers.at_mut(index).expect("the caller has it");
        let room = endpoint.packet_max(subscriber.session, path);
        subscriber.compression = subscriber.link.compression();
        let v6 = subscriber.v6.as_deref();
        let advertised = v6.and_then(|family| family.uplink.as_deref()?.mtu());
        let most = room.min(advertised.unwrap_or(room));
        subscriber.mtu = subscriber.link.peer_mru().min(most);
    }
}
