//! A toy protocol to drive worlds with: stop-and-wait with an echo.
//!
//! A sender gives each message a number and repeats it until the echo comes, every
//! second, at most `TRIES_MAX` times. An echoer sends back whatever comes.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;

use base::{Datagram, Duration, Instant, Machine, Route};

pub(crate) const RETRY: Duration = Duration::from_secs(1);
pub(crate) const TRIES_MAX: u32 = 10;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The echo of this number came.
    Acked(u32),
    /// It never came.
    GaveUp(u32),
    /// An echoer saw this number, for the first time or again.
    Echoed(u32),
}

/// A number that is not awaited.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stale(pub(crate) u32);

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "number {} is not awaited", self.0)
    }
}

impl std::error::Error for Stale {}

#[derive(Default)]
pub(crate) struct Toy {
    peer: Option<SocketAddr>,
    next: u32,
    queue: VecDeque<u32>,
    tries: u32,
    due: Option<Instant>,
    out: VecDeque<(Route, u32)>,
    events: VecDeque<Event>,
    /// How often the driver asked for the deadline.
    pub(crate) polls: Cell<u32>,
}

impl Toy {
    pub(crate) fn sender(peer: SocketAddr) -> Self {
        Self {
            peer: Some(peer),
            ..Self::default()
        }
    }

    pub(crate) fn echoer() -> Self {
        Self::default()
    }

    /// Does nothing but time out.
    pub(crate) fn idle(due: Option<Instant>) -> Self {
        Self {
            due,
            ..Self::default()
        }
    }

    /// Queues `n` messages.
    pub(crate) fn send(&mut self, n: u32, now: Instant) {
        for _ in 0..n {
            self.queue.push_back(self.next);
            self.next += 1;
        }
        if self.due.is_none() {
            self.transmit(now);
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    fn transmit(&mut self, now: Instant) {
        let (Some(&number), Some(peer)) = (self.queue.front(), self.peer) else {
            self.due = None;
            return;
        };
        self.tries += 1;
        self.due = Some(now + RETRY);
        self.out.push_back((
            Route {
                peer,
                local: None,
                socket: 0,
            },
            number,
        ));
    }

    fn finish(&mut self, event: Event, now: Instant) {
        self.queue.pop_front();
        self.tries = 0;
        self.events.push_back(event);
        self.transmit(now);
    }
}

impl Machine for Toy {
    type Input<'a> = Datagram<'a>;
    type Transmit = Route;
    type Event = Event;
    type Discard = Stale;

    fn handle(&mut self, input: Datagram<'_>, now: Instant) -> Result<(), Stale> {
        let number = input.bytes.try_into().map_or(u32::MAX, u32::from_be_bytes);
        if self.peer.is_none() {
            self.out.push_back((input.route, number));
            self.events.push_back(Event::Echoed(number));
            return Ok(());
        }
        if self.queue.front() != Some(&number) {
            return Err(Stale(number));
        }
        self.finish(Event::Acked(number), now);
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        match self.queue.front() {
            Some(&number) if self.tries == TRIES_MAX => self.finish(Event::GaveUp(number), now),
            Some(_) => self.transmit(now),
            None => self.due = None,
        }
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Route> {
        let (route, number) = self.out.pop_front()?;
        out.extend_from_slice(&number.to_be_bytes());
        Some(route)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.polls.set(self.polls.get() + 1);
        self.due.map(|due| (due, "retry"))
    }
}
