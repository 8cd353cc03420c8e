//! An edge as a machine of a simulated world, with the tasks of its owner.

use std::collections::VecDeque;

use base::{Datagram, Instant, Machine, Route};
use edge::{Change, Edge, Event, Inside, Outside, Path, Taken};

use crate::authority::Authority;
use crate::books::Books;

/// An edge, and its owner.
pub(crate) struct Node {
    pub(crate) edge: Edge,
    /// The latest time so far.
    now: Instant,
    /// Paths on other cores, each with the changes that it has not applied yet.
    others: Vec<(Path, VecDeque<Change>)>,
    /// Changes handed out to them.
    told: u64,
    /// Datagrams and packets received so far.
    came: usize,
    authority: Authority,
    pub(crate) books: Books,
    /// Packets that the edge forwarded to the inside.
    pub(crate) inside: Packets,
    pub(crate) outside: Datagrams,
}

/// Counts the packets it receives.
#[derive(Default)]
pub(crate) struct Packets(pub(crate) u64);

impl Inside for Packets {
    fn packet(&mut self, _: &[u8]) {
        self.0 += 1;
    }
}

/// Datagrams waiting to be sent.
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
        let paths = usize::from(edge.config().paths);
        let others = (1..paths).map(|number| (edge.replica(number), VecDeque::new()));
        Self {
            others: others.collect(),
            now: Instant::ZERO,
            told: 0,
            came: 0,
            edge,
            authority,
            books: Books::default(),
            inside: Packets::default(),
            outside: Datagrams::default(),
        }
    }

    /// The owner's work after every change.
    fn work(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.exchange();
        if self.edge.is_parting() || self.edge.is_moving() {
            self.tell(true);
        }
        loop {
            while let Some(question) = self.edge.poll_question() {
                self.authority.take(question, now);
            }
            self.authority.answer(&mut self.edge, now);
            while let Some(account) = self.edge.poll_account() {
                self.books.account(account);
            }
            // An answer may cause another question at once.
            match self.edge.poll_question() {
                Some(question) => self.authority.take(question, now),
                None => break,
            }
        }
    }

    /// A packet from the inside.
    pub(crate) fn forward(&mut self, packet: &[u8], now: Instant) {
        let mut octets = vec![0; wire::virtio::LENGTH];
        octets.extend_from_slice(packet);
        let mut outside = core::mem::take(&mut self.outside);
        let taken = match self.other() {
            Some((path, _)) => path.forward(&mut octets, now, &mut outside),
            None => Taken::Left,
        };
        if taken == Taken::Left {
            self.edge.forward(&mut octets, now, &mut outside);
        }
        self.outside = outside;
    }

    /// The path whose turn it is, unless it is the edge's own. In three of four cases it has applied all
    /// changes.
    fn other(&mut self) -> Option<&mut (Path, VecDeque<Change>)> {
        self.came += 1;
        self.tell(!self.came.is_multiple_of(4));
        let turn = self.came % (self.others.len() + 1);
        self.others.get_mut(turn.checked_sub(1)?)
    }

    /// Hands out changes, to be applied now or later.
    fn tell(&mut self, now: bool) {
        self.exchange();
        while let Some(change) = self.edge.poll_change() {
            for (_, waiting) in &mut self.others {
                waiting.push_back(change.clone());
            }
            self.told += 1;
        }
        if now {
            for (path, waiting) in &mut self.others {
                waiting.drain(..).for_each(|change| path.apply(change));
                path.retry_handovers(self.now, &mut self.outside, &mut self.inside);
            }
            self.exchange();
            self.edge.applied(self.told, self.now);
        }
    }

    /// Gives each path what others have for it.
    fn exchange(&mut self) {
        let Self {
            edge,
            others,
            inside,
            outside,
            now,
            ..
        } = self;
        loop {
            let mut batches = Vec::new();
            edge.poll_handovers(&mut batches);
            others
                .iter_mut()
                .for_each(|(path, _)| path.poll_handovers(&mut batches));
            if batches.is_empty() {
                return;
            }
            for (to, batch) in &batches {
                match to.checked_sub(1) {
                    Some(other) => others[other].0.take_handover(batch, *now, outside, inside),
                    None => edge.take_handover(batch, *now, outside, inside),
                }
            }
        }
    }

    /// Subscribers and routes of the other paths, once they have applied all changes.
    pub(crate) fn others(&mut self) -> Vec<(usize, usize)> {
        self.tell(true);
        let others = self.others.iter();
        others
            .map(|(path, _)| (path.len(), path.routes()))
            .collect()
    }
}

impl Machine for Node {
    type Input<'a> = Datagram<'a>;
    type Transmit = Route;
    type Event = Event;
    type Discard = core::convert::Infallible;

    fn handle(&mut self, input: Datagram<'_>, now: Instant) -> Result<(), Self::Discard> {
        let Datagram { route, bytes } = input;
        let mut inside = core::mem::take(&mut self.inside);
        let mut heard = Vec::new();
        let taken = match self.other() {
            Some((path, _)) => {
                let taken = path.receive(&route, bytes, now, &mut inside);
                while let Some(session) = path.poll_heard() {
                    heard.push(session);
                }
                taken
            }
            None => {
                self.edge.receive(route, bytes, now, &mut inside);
                Taken::Done
            }
        };
        if taken == Taken::Left {
            self.edge.receive_left(route, bytes, now, &mut inside);
        }
        for session in heard {
            self.edge.heard(session, now);
        }
        self.inside = inside;
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.edge.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Route> {
        self.work(now);
        while (self.edge).drain(now, &mut self.outside, &mut self.inside) {}
        for (path, _) in &mut self.others {
            while path.drain(now, &mut self.outside, &mut self.inside) {}
        }
        self.exchange();
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
        let others = self.others.iter().map(|(path, _)| path.next_deadline());
        let drain = others.chain([self.edge.next_drain()]).flatten().min();
        let drain = drain.map(|at| (at, "queues"));
        [self.edge.poll_timeout(), drain, authority]
            .into_iter()
            .flatten()
            .min_by_key(|&(at, _)| at)
    }
}
