//! The order of packets to send.

use wire::pppoe::{Code, Writer};

use super::Endpoint;
use crate::route::Route;

impl Endpoint {
    /// Answers come first, in the order of their requests; then PADTs, then clients' packets.
    pub(super) fn next_transmit(&mut self, out: &mut Vec<u8>) -> Option<Route> {
        if let Some(route) = self.outbox.pop(out) {
            return Some(route);
        }
        if let Some((route, id)) = self.padts.pop_front() {
            Writer::new(out, Code::PADT, id).finish();
            self.counters.sent_padt += 1;
            return Some(route);
        }
        while let Some(key) = self.ready.pop_front() {
            if let Some(route) = self.write_client(key, out) {
                return Some(route);
            }
        }
        None
    }
}
