//! Reads datagrams, and sends them in batches.

use std::io;
use std::net::SocketAddr;

use base::Route;
use reactor::{Interest, Reactor, RecvBatch, SendOutcome};

use super::{Shared, Sockets, own_place};

impl Sockets {
    /// Reads a batch from the socket `number`; `false` if there is no such socket now.
    pub(crate) fn receive(&mut self, number: u32, batch: &mut RecvBatch) -> io::Result<bool> {
        let socket = match self.shared.get_mut(number as usize) {
            Some(shared) => &mut shared.socket,
            None => match own_place(number).and_then(|place| self.own.at_mut(place)) {
                Some(own) => &mut own.socket,
                None => return Ok(false),
            },
        };
        socket.receive(batch)
    }

    /// The number of the socket that a datagram from `peer` on socket `number` belongs to.
    ///
    /// A tunnel's own socket has the address of the shared one. Before it was connected, it may
    /// have received datagrams for the shared one.
    pub(crate) fn number_for(&self, number: u32, peer: SocketAddr) -> u32 {
        match own_place(number).and_then(|place| self.own.at(place)) {
            Some(own) if own.peer != peer => own.parent,
            _ => number,
        }
    }

    /// Whether a send buffer is full, so that no more datagrams should be composed.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked > 0
    }

    /// Whether queued datagrams must be sent before one for socket `number` can be queued; see
    /// [`Sockets::make_room`].
    pub(crate) fn needs_room(&self, number: u32) -> bool {
        match self.shared.get(number as usize) {
            Some(shared) => shared.out.is_full(),
            None => !self.spare.is_empty() && (self.spare_for != number || self.spare.is_full()),
        }
    }

    /// Sends queued datagrams to make room for one for socket `number`.
    pub(crate) fn make_room(&mut self, number: u32, reactor: &mut Reactor) {
        if (number as usize) < self.shared.len() {
            self.flush_shared(number as usize, reactor);
        } else {
            self.flush_spare();
        }
    }

    /// Queues a datagram; there must be room.
    pub(crate) fn push(&mut self, route: Route, bytes: &[u8]) {
        let out = match self.shared.get_mut(route.socket as usize) {
            Some(shared) => &mut shared.out,
            None => {
                self.spare_for = route.socket;
                &mut self.spare
            }
        };
        // An acknowledgement is the shortest message. It can end a run of datagrams that leave together, but not begin one.
        if wire::l2tp::is_zlb(bytes) {
            out.push_late(bytes, route.peer, route.local);
        } else {
            out.push(bytes, route.peer, route.local);
        }
    }

    /// Starts a datagram, for which there must be room. The caller appends its bytes.
    pub(super) fn begin(&mut self, number: u32) -> &mut Vec<u8> {
        match self.shared.get_mut(number as usize) {
            Some(shared) => shared.out.begin(),
            None => self.spare.begin(),
        }
    }

    /// Finishes the started datagram.
    pub(super) fn commit(&mut self, route: &Route) {
        match self.shared.get_mut(route.socket as usize) {
            Some(shared) => shared.out.commit(route.peer, route.local),
            None => {
                self.spare_for = route.socket;
                self.spare.commit(route.peer, route.local);
            }
        }
    }

    /// Whether any queued datagram could be sent now.
    pub(crate) fn has_queued(&self) -> bool {
        let waits = |shared: &Shared| !shared.blocked && !shared.out.is_empty();
        !self.spare.is_empty() || self.shared.iter().any(waits)
    }

    /// Sends queued datagrams on every socket that is not blocked.
    pub(crate) fn flush(&mut self, reactor: &mut Reactor) {
        self.flush_spare();
        for number in 0..self.shared.len() {
            if !self.shared[number].out.is_empty() && !self.shared[number].blocked {
                self.flush_shared(number, reactor);
            }
        }
    }

    /// The send buffer of socket `number` has room again.
    pub(crate) fn writable(&mut self, number: u32, reactor: &mut Reactor) {
        if self
            .shared
            .get(number as usize)
            .is_some_and(|shared| shared.blocked)
        {
            self.flush_shared(number as usize, reactor);
        }
    }

    /// What socket `number` is to be watched for after a rest.
    pub(crate) fn interest(&self, number: u32) -> Interest {
        let shared = self.shared.get(number as usize);
        match shared.is_some_and(|shared| shared.blocked) {
            true => Interest::BOTH,
            false => Interest::READ,
        }
    }

    /// The number of a socket that cannot be watched any more, and why. It would never send again.
    pub(crate) fn take_failed(&mut self) -> Option<(u32, io::Error)> {
        self.failed.take()
    }

    fn flush_shared(&mut self, number: usize, reactor: &mut Reactor) {
        let shared = &mut self.shared[number];
        let outcome = shared.socket.send(&mut shared.out);
        if outcome.blocked != shared.blocked {
            shared.blocked = outcome.blocked;
            let interest = if outcome.blocked {
                Interest::BOTH
            } else {
                Interest::READ
            };
            if outcome.blocked {
                self.blocked += 1;
            } else {
                self.blocked -= 1;
            }
            let watched = shared
                .token
                .map(|token| reactor.set_interest(token, interest));
            if let Some(Err(error)) = watched {
                self.failed = Some((number as u32, error));
            }
        }
        self.note(outcome);
    }

    /// Sends the queue of a tunnel's own socket. Datagrams that do not fit are dropped; the tunnel
    /// retransmits them.
    pub(super) fn flush_spare(&mut self) {
        if self.spare.is_empty() {
            return;
        }
        let place = own_place(self.spare_for);
        if let Some(own) = place.and_then(|place| self.own.at_mut(place)) {
            let outcome = own.socket.send(&mut self.spare);
            self.note(outcome);
        }
        self.dropped += self.spare.clear() as u64;
    }

    fn note(&mut self, outcome: SendOutcome) {
        self.dropped += outcome.dropped as u64;
        if let Some(error) = outcome.last_error() {
            self.last_error = Some(error);
        }
    }
}
