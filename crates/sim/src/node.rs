//! A machine in a world: the driver sees it without its type, the owner with its type.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

use base::{Datagram, Instant, Machine, Route};

use crate::recording::{Entry, Recorder};

/// A machine that a world can drive: it takes and sends datagrams.
///
/// Every such [`Machine`] implements it; there is nothing to write.
pub trait DatagramMachine:
    for<'a> Machine<Input<'a> = Datagram<'a>, Transmit = Route> + 'static
{
}

impl<M> DatagramMachine for M where
    M: for<'a> Machine<Input<'a> = Datagram<'a>, Transmit = Route> + 'static
{
}

/// A node of a world, of any type. Nodes are numbered in the order they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    pub(crate) fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("a world has fewer than 2^32 nodes"))
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node whose machine is an `M`; valid in the world that returned it.
pub struct NodeHandle<M> {
    id: NodeId,
    machine: PhantomData<fn() -> M>,
}

impl<M> NodeHandle<M> {
    pub(crate) fn new(id: NodeId) -> Self {
        Self {
            id,
            machine: PhantomData,
        }
    }

    /// The node without its type.
    pub fn id(self) -> NodeId {
        self.id
    }
}

impl<M> Clone for NodeHandle<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for NodeHandle<M> {}

impl<M> fmt::Debug for NodeHandle<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

impl<M> From<NodeHandle<M>> for NodeId {
    fn from(handle: NodeHandle<M>) -> Self {
        handle.id
    }
}

/// Events and discards kept for the owner, of each kind; beyond it the oldest are dropped and counted.
pub(crate) const INBOX_LIMIT: usize = 1 << 20;

/// Rounds of draining after one mutation; a machine that needs more never ends.
const DRAIN_LIMIT: u32 = 1 << 20;

/// The owner's reaction to an event, called before the event is stored.
pub(crate) type OnEvent<M> = Box<dyn FnMut(&mut M, &<M as Machine>::Event, Instant)>;

/// The driver's view of a machine.
pub(crate) trait Node: Any {
    /// `Err` is the machine's reason to discard.
    fn handle(&mut self, route: Route, bytes: &[u8], now: Instant) -> Result<(), String>;
    fn handle_timeout(&mut self, now: Instant);
    /// Takes all transmits, then all events, until both are drained.
    fn drain(&mut self, now: Instant, out: &mut Vec<(Route, Rc<[u8]>)>);
    fn poll_timeout(&self) -> Option<(Instant, &'static str)>;
    fn inbox(&self) -> InboxStats;
}

/// The contents and losses of a node's inboxes.
pub(crate) struct InboxStats {
    pub(crate) events: usize,
    pub(crate) discarded: u64,
    pub(crate) forgotten: u64,
}

/// A machine with its owner's inboxes.
pub(crate) struct Held<M: DatagramMachine> {
    pub(crate) machine: M,
    pub(crate) events: VecDeque<(Instant, M::Event)>,
    pub(crate) events_made: u64,
    pub(crate) discards: VecDeque<(Instant, M::Discard)>,
    pub(crate) on_event: Option<OnEvent<M>>,
    pub(crate) recorder: Recorder,
    discarded: u64,
    forgotten: u64,
    buffer: Vec<u8>,
}

impl<M: DatagramMachine> Held<M> {
    pub(crate) fn new(machine: M) -> Self {
        Self {
            machine,
            events: VecDeque::new(),
            events_made: 0,
            discards: VecDeque::new(),
            on_event: None,
            recorder: Recorder::default(),
            discarded: 0,
            forgotten: 0,
            buffer: Vec::new(),
        }
    }
}

impl<M: DatagramMachine> Node for Held<M> {
    fn handle(&mut self, route: Route, bytes: &[u8], now: Instant) -> Result<(), String> {
        self.recorder.note(now, || Entry::Datagram {
            route,
            bytes: bytes.to_vec(),
        });
        self.machine
            .handle(Datagram { route, bytes }, now)
            .map_err(|discard| {
                let reason = discard.to_string();
                self.discarded += 1;
                self.forgotten += keep(&mut self.discards, now, discard);
                reason
            })
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.recorder.note(now, || Entry::Timeout);
        self.machine.handle_timeout(now);
    }

    fn drain(&mut self, now: Instant, out: &mut Vec<(Route, Rc<[u8]>)>) {
        for _ in 0..DRAIN_LIMIT {
            self.buffer.clear();
            if let Some(route) = self.machine.poll_transmit(now, &mut self.buffer) {
                let bytes = &self.buffer;
                self.recorder.note(now, || Entry::Sent {
                    route,
                    bytes: bytes.clone(),
                });
                out.push((route, Rc::from(&self.buffer[..])));
            } else if let Some(event) = self.machine.poll_event() {
                if let Some(on_event) = &mut self.on_event {
                    on_event(&mut self.machine, &event, now);
                }
                self.events_made += 1;
                self.forgotten += keep(&mut self.events, now, event);
            } else {
                return;
            }
        }
        panic!("the machine still has transmits or events after {DRAIN_LIMIT} of them");
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.machine
            .poll_timeout()
            .filter(|(at, _)| *at < Instant::FAR_FUTURE)
    }

    fn inbox(&self) -> InboxStats {
        InboxStats {
            events: self.events.len(),
            discarded: self.discarded,
            forgotten: self.forgotten,
        }
    }
}

/// Stores `item`; returns how many old items were dropped for it.
fn keep<T>(inbox: &mut VecDeque<(Instant, T)>, now: Instant, item: T) -> u64 {
    let forgotten = inbox.len() >= INBOX_LIMIT && inbox.pop_front().is_some();
    inbox.push_back((now, item));
    u64::from(forgotten)
}
