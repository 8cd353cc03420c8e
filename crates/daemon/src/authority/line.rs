//! The line through which a subscriber connects, as reported to RADIUS servers.

use crate::served::{Edge, Far};
use aaa::radius::{Line, PortType, Tunnel};
use edge::access::Either::{First, Second};
use edge::access::PppoePlace;
use edge::{Access, Numbers, SubscriberKey};

/// A subscriber's line, borrowed while a request is built.
pub(super) struct Place<'a> {
    kind: PortType,
    port: u32,
    port_id: String,
    numbers: Option<&'a Numbers>,
    tunnel: Option<Tunnel<'a>>,
}

fn port_type(place: PppoePlace) -> PortType {
    let vlans = place.route.vlans;
    match (vlans.outer(), vlans.inner()) {
        (None, _) => PortType::PppoeOverEthernet,
        (Some(_), None) => PortType::PppoeOverVlan,
        (Some(_), Some(_)) => PortType::PppoeOverQinQ,
    }
}

/// Interface and VLANs of a PPPoE session, and its id: `eth1.100.7:513`.
fn port_id(place: PppoePlace, interfaces: &[Box<str>]) -> String {
    let route = place.route;
    let name = interfaces.get(usize::from(route.port));
    let name = name.map_or("pppoe", |name| name);
    match route.vlans.is_none() {
        true => format!("{name}:{}", place.session_id),
        false => format!("{name}.{}:{}", route.vlans, place.session_id),
    }
}

impl<'a> Place<'a> {
    pub(super) fn new(
        edge: &'a Edge,
        subscriber: SubscriberKey,
        place: crate::served::Place,
        numbers: Option<&'a Numbers>,
    ) -> Self {
        let tunnel = match place {
            First(place) => edge.endpoint().l2tp().peer(place).and_then(|peer| {
                let (client, server) = peer.addresses?;
                Some(Tunnel {
                    client: Some(client),
                    server,
                    client_name: peer.name,
                    server_name: peer.own_name,
                    assignment: b"",
                    call: place.session_id,
                })
            }),
            Second(_) => None,
        };
        Self {
            kind: place.second().map_or(PortType::Virtual, port_type),
            port: subscriber.to_token() as u32,
            port_id: match place {
                First(place) => place.to_string(),
                Second(place) => port_id(place, &edge.config().interfaces),
            },
            numbers,
            tunnel,
        }
    }

    /// The same for a session that an LNS has: the tunnel to that LNS takes the place of the one it came in (RFC 2867,
    /// section 2).
    pub(super) fn with_far(mut self, far: Option<&'a Far>) -> Self {
        if let Some(far) = far {
            self.tunnel = Some(Tunnel {
                client: far.client,
                server: far.tunnel.server.ip(),
                client_name: &far.client_name,
                server_name: &far.server_name,
                assignment: far.tunnel.assignment.as_bytes(),
                call: far.place.first().map_or(0, |place| place.session_id),
            });
        }
        self
    }

    pub(super) fn line(&self) -> Line<'_> {
        Line {
            kind: self.kind,
            port: self.port,
            port_id: &self.port_id,
            calling: self.numbers.map_or(b"", |numbers| &numbers.calling),
            access: self.numbers.map_or(b"", |numbers| &numbers.line),
            called: self.numbers.map_or(b"", |numbers| &numbers.called),
            tunnel: self.tunnel,
        }
    }
}
