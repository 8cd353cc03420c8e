//! What a server is told of where a subscriber is.

use aaa::radius::{Line, Tunnel};
use edge::{Edge, Numbers, SubscriberKey};
use l2tp::TunnelKey;

/// Where a subscriber is, held while a request is made of it.
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
        ids: (u32, u32),
        tunnel: TunnelKey,
        numbers: Option<&'a Numbers>,
    ) -> Self {
        let view = edge.endpoint().tunnel(tunnel);
        let own_name = edge.endpoint().config().host_name.as_bytes();
        let tunnel = view.and_then(|view| {
            Some(Tunnel {
                client: view.route.peer.ip(),
                server: view.route.local?,
                client_name: view.host_name.as_bytes(),
                server_name: own_name,
                call: ids.1,
            })
        });
        Self {
            port: subscriber.to_token() as u32,
            port_id: format!("l2tp {}/{}", ids.0, ids.1),
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
