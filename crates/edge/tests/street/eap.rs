//! A PPPoE host that authenticates by EAP with MD5-Challenge (RFC 3748, section 5.4). Its PPP agrees to everything and
//! repeats its own requests every few seconds.

use core::convert::Infallible;
use core::net::{IpAddr, Ipv4Addr};
use std::collections::VecDeque;

use base::{Datagram, Duration, Instant, Machine, Route};
use pppoe::{Dial, Endpoint, Frame as EtherFrame, SessionKey};
use wire::ppp::chap::md5_response;
use wire::ppp::control::{Control, code, emit};
use wire::ppp::{Frame, protocol};
use wire::pppoe::Mac;

use crate::node::{EDGE, ROGUE, ip, mac, vlan};
use crate::radius::PASSWORD;

const AGAIN: Duration = Duration::from_secs(3);

/// The host.
pub(crate) struct EapHost {
    endpoint: Endpoint,
    name: Vec<u8>,
    session: Option<SessionKey>,
    /// Whether LCP's request and IPCP's were acknowledged, and whether EAP succeeded.
    agreed: [bool; 3],
    address: Ipv4Addr,
    /// How often IPCP opened.
    pub(crate) successes: u64,
    again_at: Option<Instant>,
    sent: VecDeque<(Route, Vec<u8>)>,
}

impl EapHost {
    pub(crate) fn new(name: &str, seed: [u8; 32]) -> Self {
        let mut endpoint = Endpoint::new(pppoe::Config::default(), seed);
        let port = pppoe::PortConfig {
            server: false,
            ..pppoe::PortConfig::default()
        };
        endpoint.add_port(0, port);
        Self {
            endpoint,
            name: name.into(),
            session: None,
            agreed: [false; 3],
            address: Ipv4Addr::UNSPECIFIED,
            successes: 0,
            again_at: None,
            sent: VecDeque::new(),
        }
    }

    /// Calls the edge, unless a session is there.
    pub(crate) fn dial(&mut self, number: u32, now: Instant) {
        if self.endpoint.count() == 0 {
            let dial = Dial {
                ac_name: Some(b"street"[..].into()),
                ..Dial::default()
            };
            (self.endpoint.dial(0, vlan(number), dial, now)).expect("nothing is full");
        }
    }

    /// Hangs up.
    pub(crate) fn close(&mut self, now: Instant) {
        self.endpoint.shut_down(now);
        self.endpoint.handle_timeout(now);
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.endpoint.count() == 0
    }

    fn put(&mut self, route: pppoe::Route, bytes: &[u8]) {
        let number = (0..crate::node::VLANS).find(|&number| vlan(number) == route.vlans);
        let number = number.expect("it dialled in one of the VLANs");
        let stations = match route.peer {
            Mac::BROADCAST => vec![EDGE, ROGUE],
            Mac([.., station]) => vec![station],
        };
        for station in stations {
            let route = Route {
                peer: (ip(station), 2_000 + number as u16).into(),
                local: None,
                socket: 1 + number,
            };
            self.sent.push_back((route, bytes.to_vec()));
        }
    }

    /// Sends a control packet.
    fn say(&mut self, protocol: u16, code: u8, identifier: u8, data: &[u8]) {
        let Some((header, route)) = self.session.and_then(|one| self.endpoint.header(one)) else {
            return;
        };
        let mut bytes = header.to_vec();
        bytes.extend_from_slice(&protocol.to_be_bytes());
        emit(&mut bytes, code, identifier, |out| {
            out.extend_from_slice(data)
        });
        wire::pppoe::complete(&mut bytes, 0);
        self.put(route, &bytes);
    }

    /// Sends the requests that were not acknowledged.
    fn ask(&mut self, now: Instant) {
        let [lcp, ipcp, eap] = self.agreed;
        if !lcp {
            self.say(protocol::LCP, code::CONFIGURE_REQUEST, 1, &[]);
        }
        if eap && !ipcp {
            let address = [&[3, 6][..], &self.address.octets()].concat();
            self.say(protocol::IPCP, code::CONFIGURE_REQUEST, 1, &address);
        }
        self.again_at = Some(now + AGAIN);
    }

    fn hear(&mut self, frame: &[u8], now: Instant) {
        let Ok(frame) = Frame::parse(frame) else {
            return;
        };
        let Ok(packet) = Control::parse(frame.information) else {
            return;
        };
        let (id, data) = (packet.identifier, packet.data);
        match (frame.protocol, packet.code) {
            (protocol::LCP | protocol::IPCP, code::CONFIGURE_REQUEST) => {
                if frame.protocol == protocol::LCP {
                    self.agreed = [false; 3];
                }
                self.say(frame.protocol, code::CONFIGURE_ACK, id, data);
                self.ask(now);
            }
            (protocol::LCP, code::CONFIGURE_ACK) => self.agreed[0] = true,
            (protocol::IPCP, code::CONFIGURE_ACK) => {
                self.successes += u64::from(!self.agreed[1]);
                self.agreed[1] = true;
            }
            (protocol::IPCP, code::CONFIGURE_NAK) => {
                if let Some([3, 6, a, b, c, d]) = data.first_chunk() {
                    self.address = [*a, *b, *c, *d].into();
                    self.ask(now);
                }
            }
            (protocol::LCP, code::ECHO_REQUEST) => {
                self.say(protocol::LCP, code::ECHO_REPLY, id, &[0; 4]);
            }
            (_, code::TERMINATE_REQUEST) if frame.protocol != protocol::EAP => {
                self.say(frame.protocol, code::TERMINATE_ACK, id, &[]);
            }
            (protocol::IPV6CP, _) => {
                let rejected = [&frame.protocol.to_be_bytes()[..], frame.information].concat();
                self.say(protocol::LCP, code::PROTOCOL_REJECT, id, &rejected);
            }
            (protocol::EAP, 1) => self.answer_eap(id, data),
            (protocol::EAP, 3) => {
                self.agreed[2] = true;
                self.ask(now);
            }
            _ => {}
        }
    }

    fn answer_eap(&mut self, id: u8, data: &[u8]) {
        match data {
            [1, ..] => {
                let name = [&[1], &self.name[..]].concat();
                self.say(protocol::EAP, 2, id, &name);
            }
            [4, 16, challenge @ ..] if challenge.len() >= 16 => {
                let response = md5_response(id, PASSWORD, &challenge[..16]);
                self.say(protocol::EAP, 2, id, &[&[4, 16], &response[..]].concat());
            }
            _ => self.say(protocol::EAP, 2, id, &[3, 4]),
        }
    }
}

impl Machine for EapHost {
    type Input<'a> = Datagram<'a>;
    type Transmit = Route;
    type Event = Infallible;
    type Discard = Infallible;

    fn handle(&mut self, input: Datagram<'_>, now: Instant) -> Result<(), Infallible> {
        let Datagram { route, bytes } = input;
        let (1.., IpAddr::V4(peer)) = (route.socket, route.peer.ip()) else {
            return Ok(());
        };
        let route = pppoe::Route {
            port: 0,
            peer: mac(peer.octets()[3]),
            vlans: vlan(route.socket - 1),
        };
        match self.endpoint.receive_data(&route, bytes, now) {
            Ok(Some((session, frame))) => {
                if self.session == Some(session) {
                    self.hear(frame, now);
                }
            }
            Ok(None) => {
                let frame = EtherFrame {
                    route,
                    is_broadcast: false,
                    bytes,
                };
                // What is ignored is counted.
                let _ = self.endpoint.handle(frame, now);
            }
            Err(_) => {}
        }
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        if self.again_at.is_some_and(|at| at <= now) {
            self.again_at = None;
            if self.session.is_some() {
                self.ask(now);
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Route> {
        let mut bytes = Vec::new();
        while let Some(route) = self.endpoint.poll_transmit(now, &mut bytes) {
            let bytes = core::mem::take(&mut bytes);
            self.put(route, &bytes);
        }
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                pppoe::Event::SessionUp { session } => {
                    self.session = Some(session);
                    self.agreed = [false; 3];
                    self.address = Ipv4Addr::UNSPECIFIED;
                    self.ask(now);
                }
                pppoe::Event::SessionDown { .. } => {
                    (self.session, self.again_at) = (None, None);
                }
            }
        }
        let (route, bytes) = self.sent.pop_front()?;
        out.extend_from_slice(&bytes);
        Some(route)
    }

    fn poll_event(&mut self) -> Option<Infallible> {
        None
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let again = self.again_at.map(|at| (at, "again"));
        let all = [self.endpoint.poll_timeout(), again];
        all.into_iter().flatten().min_by_key(|&(at, _)| at)
    }
}
