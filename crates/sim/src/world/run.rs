//! How a world moves on: the next arrival or deadline, one at a time.

use std::cmp::Reverse;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use base::{Duration, Instant, Route};

use super::World;
use crate::capture::{header_bytes, payload_max};
use crate::link::Carried;
use crate::log::RecordId;
use crate::{DatagramMachine, Fate, NodeHandle, NodeId, Record};

/// Steps at one instant; more is a loop that no time passes in.
const STEPS_AT_ONCE_MAX: u64 = 10_000_000;

/// Timeouts of one node at one instant; more is a deadline that firing does not clear.
const TIMEOUTS_AT_ONCE_MAX: u32 = 10_000;

/// A datagram under way.
pub(super) struct Flight {
    due: Instant,
    /// Breaks ties: in the order of sending.
    number: u64,
    from: SocketAddr,
    to: SocketAddr,
    /// The link it is on; `None` if injected.
    wire: Option<(NodeId, NodeId)>,
    bytes: Rc<[u8]>,
    record: RecordId,
}

/// The heap's greatest is the flight that is due first.
impl Ord for Flight {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        Reverse((self.due, self.number)).cmp(&Reverse((other.due, other.number)))
    }
}

impl PartialOrd for Flight {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Flight {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Flight {}

impl World {
    /// When the next thing happens, if anything is left to happen.
    pub fn next_wake_up(&self) -> Option<Instant> {
        let deadline = self.deadlines.first().map(|(at, _)| *at);
        let arrival = self.flights.peek().map(|flight| flight.due);
        let next = deadline.into_iter().chain(arrival).min()?;
        Some(next.max(self.now))
    }

    /// Jumps to the next arrival or deadline and lets it happen; `false` if nothing is
    /// left to happen.
    pub fn step(&mut self) -> bool {
        let Some(at) = self.next_wake_up() else {
            return false;
        };
        self.steps += 1;
        self.steps_here = if at > self.now {
            1
        } else {
            self.steps_here + 1
        };
        assert!(
            self.steps_here <= STEPS_AT_ONCE_MAX,
            "time stands still at {:?}",
            self.now
        );
        self.now = at;
        match self.deadlines.first() {
            Some(&(due, node)) if due <= at => self.time_out(node),
            _ => self.arrive(),
        }
        true
    }

    /// Runs until `end`, what is due then included; the time is then `end`.
    pub fn run_until(&mut self, end: Instant) {
        while self.step_before(end) {}
        self.now = self.now.max(end);
    }

    /// Runs for `span`.
    pub fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    /// Runs until nothing is under way and no deadline is left, at most for `limit`;
    /// whether it got there. The time is then that of the last thing that happened.
    ///
    /// A machine with a keepalive timer is never idle: see [`World::run_while`].
    #[must_use = "false says that something is still to happen"]
    pub fn run_until_idle(&mut self, limit: Duration) -> bool {
        let end = self.now + limit;
        while self.step_before(end) {}
        self.next_wake_up().is_none()
    }

    /// Runs while `condition` holds, at most for `limit`; whether it ended. It is asked
    /// once before and then after every step.
    #[must_use = "false says that the condition still holds"]
    pub fn run_while(
        &mut self,
        mut condition: impl FnMut(&World) -> bool,
        limit: Duration,
    ) -> bool {
        let end = self.now + limit;
        while condition(self) {
            if !self.step_before(end) {
                self.now = self.now.max(end);
                return !condition(self);
            }
        }
        true
    }

    /// Runs until `condition` holds.
    ///
    /// # Panics
    /// `limit` has passed without: the message says `what` and when.
    #[track_caller]
    pub fn expect(&mut self, what: &str, limit: Duration, condition: impl Fn(&World) -> bool) {
        let reached = self.run_while(|world| !condition(world), limit);
        assert!(reached, "not within {limit:?}, by {:?}: {what}", self.now);
    }

    /// Takes the first event that `wanted` holds for, running until there is one, at
    /// most for `limit`; other events stay.
    pub fn wait_event<M: DatagramMachine>(
        &mut self,
        node: NodeHandle<M>,
        limit: Duration,
        mut wanted: impl FnMut(&M::Event) -> bool,
    ) -> Option<M::Event> {
        let end = self.now + limit;
        // Events that were refused, counted from the machine's first, are not asked about
        // again.
        let mut refused = 0;
        loop {
            let held = self.held_mut(node);
            let first = held.events_made - held.events.len() as u64;
            let skipped = usize::try_from(refused.max(first) - first).unwrap_or(usize::MAX);
            let found = held
                .events
                .iter()
                .skip(skipped)
                .position(|(_, event)| wanted(event));
            if let Some(at) = found {
                return held.events.remove(skipped + at).map(|(_, event)| event);
            }
            refused = held.events_made;
            if !self.step_before(end) {
                self.now = self.now.max(end);
                return None;
            }
        }
    }

    /// Lets a datagram from any address, a forged one too, arrive at once, whatever the
    /// links are.
    pub fn inject(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let to_node = self.addresses.find(from, to).map(|owner| owner.node);
        let fate = Fate::InFlight { due: self.now };
        let bytes = Rc::from(bytes);
        let record = Record {
            sent: self.now,
            from,
            to,
            from_node: None,
            to_node,
            copy: false,
            bytes,
            fate,
        };
        self.take_off(record, None, self.now);
    }

    fn step_before(&mut self, end: Instant) -> bool {
        self.next_wake_up().is_some_and(|at| at <= end) && self.step()
    }

    fn time_out(&mut self, node: NodeId) {
        let slot = &mut self.nodes[node.index()];
        let again = slot.last_timeout == self.now;
        slot.timeouts_here = if again { slot.timeouts_here + 1 } else { 1 };
        slot.last_timeout = self.now;
        assert!(
            slot.timeouts_here <= TIMEOUTS_AT_ONCE_MAX,
            "{} does not clear its deadline {:?} at {:?}",
            slot.name,
            slot.deadline,
            self.now,
        );
        slot.node.handle_timeout(self.now);
        self.settle(node);
    }

    /// Hands the flight that is due to the socket that has its address by now.
    fn arrive(&mut self) {
        let flight = self
            .flights
            .pop()
            .expect("a step was due and it was no deadline");
        let Flight {
            from,
            to,
            wire,
            bytes,
            record,
            ..
        } = flight;
        let isolated = wire.is_some_and(|(from, to)| self.is_isolated(from, to));
        let owner = self.addresses.find(from, to);
        if let Some(wire) = wire.and_then(|key| self.wires.get_mut(&key)) {
            if wire.cut || isolated {
                wire.stats.cut += 1;
                self.log.settle(record, Fate::Cut);
                return;
            }
            match owner {
                Some(_) => wire.stats.delivered += 1,
                None => wire.stats.gone += 1,
            }
        }
        let Some(owner) = owner else {
            self.log.settle(record, Fate::NoSuchAddress);
            return;
        };
        let route = Route {
            peer: from,
            local: Some(to.ip()),
            socket: owner.socket,
        };
        let node = &mut self.nodes[owner.node.index()].node;
        let fate = match node.handle(route, &bytes, self.now) {
            Ok(()) => Fate::Delivered { at: self.now },
            Err(reason) => Fate::Discarded {
                at: self.now,
                reason,
            },
        };
        self.log.settle(record, fate);
        self.settle(owner.node);
    }

    /// Drains a node that changed: transmits, events, then its deadline.
    pub(super) fn settle(&mut self, id: NodeId) {
        let mut outbox = std::mem::take(&mut self.outbox);
        let slot = &mut self.nodes[id.index()];
        slot.node.drain(self.now, &mut outbox);
        let deadline = slot.node.poll_timeout();
        let (old, new) = (slot.deadline.map(|(at, _)| at), deadline.map(|(at, _)| at));
        slot.deadline = deadline;
        if old != new {
            old.map(|at| self.deadlines.remove(&(at, id)));
            new.map(|at| self.deadlines.insert((at, id)));
        }
        for (route, bytes) in outbox.drain(..) {
            self.send(id, route, bytes);
        }
        self.outbox = outbox;
    }

    /// Puts a datagram on the link to the node that has the address.
    fn send(&mut self, from_node: NodeId, route: Route, bytes: Rc<[u8]>) {
        let to = route.peer;
        let sockets = &self.nodes[from_node.index()].sockets;
        let socket = sockets.get(route.socket as usize).copied().flatten();
        let source = socket.and_then(|socket| socket.source(route.local));
        let from = source.filter(|from| from.is_ipv4() == to.is_ipv4());
        let to_node = from
            .and_then(|from| self.addresses.find(from, to))
            .map(|o| o.node);
        let mut record = Record {
            sent: self.now,
            from: from.unwrap_or((Ipv4Addr::UNSPECIFIED, 0).into()),
            to,
            from_node: Some(from_node),
            to_node,
            copy: false,
            bytes,
            fate: Fate::NoSuchAddress,
        };
        let to_node = match (from, to_node) {
            (None, _) => return self.end_unrouted(record, Fate::BadRoute),
            (Some(_), _) if record.bytes.len() > payload_max(to) => {
                return self.end_unrouted(record, Fate::TooLong);
            }
            (Some(_), None) => return self.end_unrouted(record, Fate::NoSuchAddress),
            (Some(_), Some(to_node)) => to_node,
        };
        let isolated = self.is_isolated(from_node, to_node);
        let (default, now) = (self.default_link, self.now);
        let wire = self.wire(from_node, to_node);
        match wire.carry(default, &record.bytes, header_bytes(to), isolated, now) {
            Err(fate) => {
                record.fate = fate;
                self.log.push(record);
            }
            Ok(Carried {
                arrival,
                copy_arrival,
                replaced,
            }) => {
                if let Some(bytes) = replaced {
                    record.bytes = Rc::from(bytes);
                }
                let copy = Record {
                    copy: true,
                    ..record.clone()
                };
                self.take_off(record, Some((from_node, to_node)), arrival);
                if let Some(due) = copy_arrival {
                    self.take_off(copy, Some((from_node, to_node)), due);
                }
            }
        }
    }

    fn end_unrouted(&mut self, record: Record, fate: Fate) {
        self.unrouted += 1;
        self.log.push(Record { fate, ..record });
    }

    fn take_off(&mut self, mut record: Record, wire: Option<(NodeId, NodeId)>, due: Instant) {
        record.fate = Fate::InFlight { due };
        let (from, to, bytes) = (record.from, record.to, Rc::clone(&record.bytes));
        let number = self.next_flight;
        self.next_flight += 1;
        let record = self.log.push(record);
        self.flights.push(Flight {
            due,
            number,
            from,
            to,
            wire,
            bytes,
            record,
        });
    }

    fn is_isolated(&self, from: NodeId, to: NodeId) -> bool {
        self.nodes[from.index()].isolated || self.nodes[to.index()].isolated
    }
}
