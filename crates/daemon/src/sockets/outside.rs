//! Writes datagrams and frames that carry packets directly into the send buffers.

use edge::access::Either::{First, Second};
use reactor::Reactor;

use super::Sockets;
use crate::ports::Ports;
use crate::served::Route;

/// The sockets and ports, and the reactor that watches them.
pub(crate) struct Outside<'a> {
    pub(crate) sockets: &'a mut Sockets,
    pub(crate) ports: &'a mut Ports,
    pub(crate) reactor: &'a mut Reactor,
}

impl edge::Outside<Route> for Outside<'_> {
    #[inline]
    fn begin(&mut self, route: &Route) -> Option<&mut Vec<u8>> {
        let route = match route {
            First(route) => route,
            Second(route) => return self.ports.begin(route, self.reactor),
        };
        if self.sockets.needs_room(route.socket) {
            self.sockets.make_room(route.socket, self.reactor);
            if self.sockets.needs_room(route.socket) {
                return None;
            }
        }
        Some(self.sockets.begin(route.socket))
    }

    #[inline]
    fn commit(&mut self, route: &Route) {
        match route {
            First(route) => self.sockets.commit(route),
            Second(route) => self.ports.commit(route),
        }
    }
}
