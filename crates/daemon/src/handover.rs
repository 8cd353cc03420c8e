//! Tunnels to LNSs for sessions that are handed over: the edge wants them, the daemon has the sockets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use edge::NoRoute;

use super::core::Core;

/// Tunnels that are opened in a turn.
const TUNNELS: usize = 64;

impl Core {
    /// Opens the tunnels that the edge wants.
    pub(super) fn open_wanted(&mut self) {
        for _ in 0..TUNNELS {
            let Some(wanted) = self.edge.poll_wanted() else {
                return;
            };
            let Self {
                edge,
                sockets,
                reactor,
                now,
                ..
            } = self;
            let server = wanted.tunnel.server;
            let needs = edge.needs_route(&wanted);
            let route = match needs && is_ours(server.ip()) && sockets.listens_on(server.port()) {
                true => Err(NoRoute::OwnAddress),
                false if needs => sockets
                    .originate(server, wanted.tunnel.client, reactor)
                    .map_err(NoRoute::NoSocket),
                // The edge has the tunnel, or wants it no longer.
                false => Err(NoRoute::NoSocket("no tunnel is needed".to_owned())),
            };
            let socket = route.as_ref().ok().map(|route| route.socket);
            if let Err(NoRoute::OwnAddress) = route {
                tracing::warn!(lns = %server, "a session cannot be handed over to ourselves");
            }
            let is_used = edge.open_wanted(&wanted, route, *now);
            if let Some(socket) = socket.filter(|_| !is_used) {
                sockets.close(socket, reactor);
            }
        }
    }
}

/// Whether an address is one of this host's, so that datagrams to it come back: the kernel sends those from the address
/// itself.
fn is_ours(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let from = UdpSocket::bind((any, 0)).and_then(|socket| {
        // No datagram is sent.
        socket.connect((address, 1701))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == address)
}
