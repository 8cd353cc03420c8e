//! A node without a protocol: a test writes and reads its datagrams by hand.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;

use base::{Datagram, Instant, Machine, Route};

/// Sends what the test gives it, and reports what it receives.
///
/// Use it for a peer that sends what none of our machines would send.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    outgoing: VecDeque<(Route, Vec<u8>)>,
    heard: VecDeque<Heard>,
}

/// A datagram that a [`Probe`] received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Its source and destination; sending along it is a reply.
    pub route: Route,
    /// The UDP payload.
    pub bytes: Vec<u8>,
}

impl Heard {
    /// Who sent it.
    pub fn from(&self) -> SocketAddr {
        self.route.peer
    }
}

impl Probe {
    /// Sends `bytes` to `peer` from socket 0.
    pub fn send(&mut self, peer: SocketAddr, bytes: &[u8]) {
        self.send_along(
            Route {
                peer,
                local: None,
                socket: 0,
            },
            bytes,
        );
    }

    /// Sends `bytes` along `route`: with the route of a [`Heard`], a reply.
    pub fn send_along(&mut self, route: Route, bytes: &[u8]) {
        self.outgoing.push_back((route, bytes.to_vec()));
    }
}

impl Machine for Probe {
    type Input<'a> = Datagram<'a>;
    type Transmit = Route;
    type Event = Heard;
    type Discard = Infallible;

    fn handle(&mut self, input: Datagram<'_>, _now: Instant) -> Result<(), Infallible> {
        self.heard.push_back(Heard {
            route: input.route,
            bytes: input.bytes.to_vec(),
        });
        Ok(())
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Route> {
        let (route, bytes) = self.outgoing.pop_front()?;
        out.extend_from_slice(&bytes);
        Some(route)
    }

    fn poll_event(&mut self) -> Option<Heard> {
        self.heard.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        None
    }
}
