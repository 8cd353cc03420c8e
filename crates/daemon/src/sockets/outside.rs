//! Writes datagrams that carry packets directly into the send buffers.

use base::Route;
use reactor::Reactor;

use super::Sockets;

/// The sockets, and the reactor that watches them.
pub(crate) struct Outside<'a> {
    pub(crate) sockets: &'a mut Sockets,
    pub(crate) reactor: &'a mut Reactor,
}

impl edge::Outside for Outside<'_> {
    fn begin(&mut self, route: &Route) -> Option<&mut Vec<u8>> {
        if self.sockets.needs_room(route.socket) {
            self.sockets.make_room(route.socket, self.reactor);
            if self.sockets.needs_room(route.socket) {
                return None;
            }
        }
        Some(self.sockets.begin(route.socket))
    }

    fn commit(&mut self, route: &Route) {
        self.sockets.commit(route);
    }
}
