//! The line through which a subscriber connects, as reported to RADIUS servers.

use aaa::radius::{Line, Tunnel};
use edge::{Access, Edge, Numbers, SubscriberKey};

/// A subscriber's line, borrowed while a request is built.
pub(super) struct Place<'a> {
    port: u32,
    port_id: String,
    numbers: Option<&'a Numbers>,
    tunnel: Option<Tunnel<'a>>,
}

impl<'a> Place<'a> {
    pub(super) fn new(
        edge: &'a Edge,
        subscriber: SubscriberKey,
        place: edge::access::L2tpPlace,
        numbers: Option<&'a Numbers>,
    ) -> Self {
        let tunnel = edge.endpoint().peer(place).and_then(|peer| {
            let (client, server) = peer.addresses?;
            Some(Tunnel {
                client,
                server,
                client_name: peer.name,
                server_name: peer.own_name,
                call: place.session_id,
            })
        });
        Self {
            port: subscriber.to_token() as u32,
            port_id: place.to_string(),
            numbers,
            tunnel,
        }
    }

    pub(super) fn line(&self) -> Line<'_> {
        Line {
            port: self.port,
            port_id: &self.port_id,
            calling: self.numbers.map_or(b"", |numbers| &numbers.calling),
            called: self.numbers.map_or(b"", |numbers| &numbers.called),
            tunnel: self.tunnel,
        }
    }
}
