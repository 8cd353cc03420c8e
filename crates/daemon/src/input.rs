//! Passes datagrams from the sockets to the endpoint.
//!
//! In most turns the endpoint gets a batch as it was read. A full batch means that the socket's
//! buffer may overflow while replies are made and sent. In that case all pending datagrams are
//! first read into memory and then handled in parts, a slice of time in each turn; reading a datagram costs a
//! fraction of answering it.

use base::{Duration, Route};
use edge::access::Either::{First, Second};
use reactor::{Ready, RecvBatch};

use super::core::{Core, Handlers};
use super::health::Outcome;

/// Batches read from one socket in a turn before other sockets get theirs.
const READS: usize = 64;

/// Limit of datagrams kept; further ones wait in the socket's buffer.
const KEPT_MAX: usize = 32_768;

/// Limit in bytes of datagrams kept.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// Datagrams of many sockets that are handled in a turn as they are read; further ones are kept.
const AT_ONCE: u64 = 512;

/// Datagrams that are handled between two looks at the clock.
const PART: usize = 64;

/// A datagram that was read and not yet handled.
struct Kept {
    route: Route,
    start: u32,
    length: u32,
}

/// Reads the frames of a PPPoE interface, and handles them until the slice is over. Further ones wait in the socket's
/// buffer.
pub(super) fn receive_frames(
    number: u32,
    ready: Ready,
    core: &mut Core,
    handlers: &Handlers,
    span: Duration,
) -> (Outcome, u64) {
    let slice = core.reactor.slice(span);
    let mut total = 0;
    loop {
        let has_more = match core.ports.receive(number) {
            Ok(has_more) => has_more,
            Err(error) => return (Outcome::Lost(error), total),
        };
        core.reactor.lap(handlers.port_read);
        let Core {
            edge,
            ports,
            inside,
            now,
            ..
        } = core;
        edge.touch(|| ports.ahead(number));
        let count = ports.each(number, |route, packet| {
            edge.receive(Second(route), packet, *now, inside);
        });
        core.reactor.lap_many(handlers.port_input, count);
        total += count;
        if !has_more {
            core.reactor.drained(ready.token);
            return (Outcome::Again, total);
        }
        if slice.is_over() {
            return (Outcome::Again, total);
        }
    }
}

/// Reads the sockets.
pub(super) struct Input {
    received: RecvBatch,
    bytes: Vec<u8>,
    kept: Vec<Kept>,
    /// How many of `kept` are already handled.
    handled: usize,
    /// Datagrams read since the last [`Input::take_count`].
    count: u64,
    /// Datagrams handled in this turn right after they were read.
    at_once: u64,
    /// How long kept datagrams may be handled in a turn.
    span: Duration,
}

impl Input {
    /// Reads up to `batch` messages with one system call.
    pub(super) fn new(batch: usize, span: Duration) -> Self {
        Self {
            received: RecvBatch::new(batch),
            bytes: Vec::new(),
            kept: Vec::new(),
            handled: 0,
            count: 0,
            at_once: 0,
            span,
        }
    }

    /// Counts frames that [`receive_frames`] handled.
    pub(super) fn add(&mut self, frames: u64) {
        self.count += frames;
    }

    /// Starts a turn.
    pub(super) fn begin(&mut self) {
        self.at_once = 0;
    }

    /// Datagrams read since the last call.
    pub(super) fn take_count(&mut self) -> u64 {
        core::mem::take(&mut self.count)
    }

    /// Whether datagrams are waiting.
    pub(super) fn has_kept(&self) -> bool {
        self.handled < self.kept.len()
    }

    fn has_room(&self) -> bool {
        self.kept.len() < KEPT_MAX && self.bytes.len() < KEPT_BYTES_MAX
    }

    /// Reads a socket that is ready.
    pub(super) fn receive(
        &mut self,
        number: u32,
        ready: Ready,
        core: &mut Core,
        handlers: &Handlers,
    ) -> Outcome {
        for _ in 0..READS {
            if !self.has_room() {
                return Outcome::Again;
            }
            match core.sockets.receive(number, &mut self.received) {
                Ok(true) => {}
                Ok(false) => return Outcome::Again,
                Err(error) => return error.into(),
            }
            let is_last = !self.received.is_full();
            if is_last && !self.has_kept() && self.at_once < AT_ONCE {
                core.reactor.lap(handlers.read);
                self.handle_received(number, core, handlers);
            } else {
                self.keep(number, core);
                core.reactor.lap(handlers.read);
            }
            if is_last {
                core.reactor.drained(ready.token);
                return Outcome::Again;
            }
        }
        Outcome::Again
    }

    fn handle_received(&mut self, number: u32, core: &mut Core, handlers: &Handlers) {
        let mut datagrams = 0;
        let sockets = &core.sockets;
        let ahead = || {
            self.received.iter().map(|datagram| {
                let route = Route {
                    peer: datagram.peer,
                    local: datagram.local,
                    socket: sockets.number_for(number, datagram.peer),
                };
                (First(route), datagram.bytes)
            })
        };
        core.edge.touch(ahead);
        for datagram in self.received.iter() {
            let route = Route {
                peer: datagram.peer,
                local: datagram.local,
                socket: core.sockets.number_for(number, datagram.peer),
            };
            handle(route, datagram.bytes, core);
            datagrams += 1;
        }
        core.reactor.lap_many(handlers.input, datagrams);
        self.count += datagrams;
        self.at_once += datagrams;
    }

    fn keep(&mut self, number: u32, core: &Core) {
        let Self {
            received,
            bytes,
            kept,
            count,
            ..
        } = self;
        for datagram in received.iter() {
            let route = Route {
                peer: datagram.peer,
                local: datagram.local,
                socket: core.sockets.number_for(number, datagram.peer),
            };
            let start = bytes.len() as u32;
            bytes.extend_from_slice(datagram.bytes);
            let length = datagram.bytes.len() as u32;
            *count += 1;
            kept.push(Kept {
                route,
                start,
                length,
            });
        }
    }

    /// Handles kept datagrams until the slice is over, and at least a part of them.
    pub(super) fn work(&mut self, core: &mut Core, handlers: &Handlers) {
        let slice = core.reactor.slice(self.span);
        let mut count = 0;
        while self.has_kept() && (count == 0 || !slice.is_over()) {
            let end = self.kept.len().min(self.handled + PART);
            for datagram in &self.kept[self.handled..end] {
                let start = datagram.start as usize;
                let bytes = &self.bytes[start..start + datagram.length as usize];
                handle(datagram.route, bytes, core);
            }
            count += (end - self.handled) as u64;
            self.handled = end;
        }
        if count > 0 {
            core.reactor.lap_many(handlers.input, count);
        }
        if !self.has_kept() {
            self.kept.clear();
            self.bytes.clear();
            self.handled = 0;
        }
    }
}

fn handle(route: Route, bytes: &[u8], core: &mut Core) {
    if core.sockets.refuses(route.socket, bytes) {
        return;
    }
    core.edge
        .receive(First(route), bytes, core.now, &mut core.inside);
}
