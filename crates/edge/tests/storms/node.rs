//! An edge as a machine of a simulated world, with what its owner does.

use std::collections::VecDeque;

use base::{Datagram, Instant, Machine, Route};
use edge::{Edge, Event, Inside, Outside};

use crate::authority::Authority;
use crate::books::Books;

/// An edge, and its owner.
pub(crate) struct Node {
    pub(crate) edge: Edge,
    authority: Authority,
    pub(crate) books: Books,
    /// Packets that came out of it, counted.
    pub(crate) inside: Packets,
    pub(crate) outside: Datagrams,
}

/// Counts what it takes.
#[derive(Default)]
pub(crate) struct Packets(pub(crate) u64);

impl Inside for Packets {
    fn packet(&mut self, _: &[u8]) {
        self.0 += 1;
    }
}

/// Datagrams that wait to be sent.
#[derive(Default)]
pub(crate) struct Datagrams {
    begun: Vec<u8>,
    sent: VecDeque<(Route, Vec<u8>)>,
}

impl Datagrams {
    pub(crate) fn push(&mut self, route: Route, octets: Vec<u8>) {
        self.sent.push_back((route, octets));
    }
}

impl Outside for Datagrams {
    fn begin(&mut self, _: &Route) -> Option<&mut Vec<u8>> {
        self.begun.clear();
        Some(&mut self.begun)
    }

    fn commit(&mut self, route: &Route) {
        self.sent.push_back((*route, self.begun.clone()));
    }
}

impl Node {
    pub(crate) fn new(edge: Edge, authority: Authority) -> Self {
        Self {
            edge,
            authority,
            books: Books::default(),
            inside: Packets::default(),
            outside: Datagrams::default(),
        }
    }

    /// What the owner does after every mutation.
    fn work(&mut self, now: Instant) {
        loop {
            while let Some(question) = self.edge.poll_question() {
                self.authority.take(question, now);
            }
            self.authority.answer(&mut self.edge, now);
            while let Some(account) = self.edge.poll_account() {
                self.books.account(account);
            }
            // An answer may be followed by a question at once.
            match self.edge.poll_question() {
                Some(question) => self.authority.take(question, now),
                None => break,
            }
        }
    }

    /// A packet of the inside.
    pub(crate) fn forward(&mut self, packet: &[u8], now: Instant) {
        let mut octets = vec![0; wire::virtio::LENGTH];
        octets.extend_from_slice(packet);
        self.edge.forward(&mut octets, now, &mut self.outside);
    }
}

impl Machine for Node {
    type Input<'a> = Datagram<'a>;
    type Transmit = Route;
    type Event = Event;
    type Discard = core::convert::Infallible;

    fn handle(&mut self, input: Datagram<'_>, now: Instant) -> Result<(), Self::Discard> {
        self.edge
            .receive(input.route, input.bytes, now, &mut self.inside);
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.edge.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Route> {
        self.work(now);
        if let Some(route) = self.edge.poll_transmit(now, out) {
            return Some(route);
        }
        let (route, octets) = self.outside.sent.pop_front()?;
        out.extend_from_slice(&octets);
        Some(route)
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.edge.poll_event()?;
        self.books.event(&event);
        Some(event)
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let authority = self.authority.poll_timeout().map(|at| (at, "authority"));
        [self.edge.poll_timeout(), authority]
            .into_iter()
            .flatten()
            .min_by_key(|&(at, _)| at)
    }
}
