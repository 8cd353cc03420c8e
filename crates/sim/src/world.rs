//! Many nodes by address, driven on a virtual clock.

mod links;
mod report;
mod run;

use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut, Index};
use std::rc::Rc;

use base::{Instant, Route};

use crate::bind::{Addresses, Owner, Socket};
use crate::link::Wire;
use crate::log::Log;
use crate::node::{Held, Node};
use crate::recording::Entry;
use crate::{Bind, DatagramMachine, Link, NodeHandle, NodeId, Record, Recording, Rng};
use run::Flight;

/// Records that the log keeps unless told otherwise.
const LOG_LIMIT: usize = 4096;

/// Machines by address, the links between them, and one clock.
///
/// A machine is drained after every change to it: transmits, then events, then its
/// deadline. What is due at the same instant happens in a fixed order: deadlines by
/// node in the order they were added, then arrivals in the order they were sent.
///
/// Every two nodes are joined by a link of their own, each direction with its own
/// stream of chance, derived from the seed and the two names: adding a node changes
/// nothing between others.
pub struct World {
    seed: u64,
    now: Instant,
    steps: u64,
    /// Steps since time last moved on.
    steps_here: u64,
    /// Datagrams that met no link.
    unrouted: u64,
    nodes: Vec<Slot>,
    names: HashSet<String>,
    addresses: Addresses,
    default_link: Link,
    /// By sender and receiver.
    wires: HashMap<(NodeId, NodeId), Wire>,
    flights: BinaryHeap<Flight>,
    next_flight: u64,
    /// Each node's deadline.
    deadlines: BTreeSet<(Instant, NodeId)>,
    log: Log,
    decoder: Option<fn(&[u8]) -> String>,
    /// Kept for its memory.
    outbox: Vec<(Route, Rc<[u8]>)>,
}

/// A node and what the driver knows of it.
struct Slot {
    name: String,
    node: Box<dyn Node>,
    /// By number; `None` once closed.
    sockets: Vec<Option<Socket>>,
    deadline: Option<(Instant, &'static str)>,
    isolated: bool,
    /// Its timeouts since time last moved on.
    timeouts_here: u32,
    last_timeout: Instant,
}

impl World {
    /// An empty world at time zero whose links are [`Link::CLEAN`].
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            now: Instant::ZERO,
            steps: 0,
            steps_here: 0,
            unrouted: 0,
            nodes: Vec::new(),
            names: HashSet::new(),
            addresses: Addresses::default(),
            default_link: Link::CLEAN,
            wires: HashMap::new(),
            flights: BinaryHeap::new(),
            next_flight: 0,
            deadlines: BTreeSet::new(),
            log: Log::new(LOG_LIMIT),
            decoder: None,
            outbox: Vec::new(),
        }
    }

    /// The seed it was made with.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The virtual time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Arrivals and timeouts that happened: what the run cost.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Datagrams that met no link: no such address, a bad route, or too long.
    pub fn unrouted(&self) -> u64 {
        self.unrouted
    }

    /// A stream of chance for the test's own use, apart from every link's.
    pub fn rng(&self, label: &str) -> Rng {
        Rng::stream(self.seed, &[label])
    }

    // Nodes.

    /// Adds a machine; its sockets are numbered from 0 in the order given.
    ///
    /// # Panics
    /// The name or an address is in use.
    pub fn add<M: DatagramMachine, B: Into<Bind>>(
        &mut self,
        name: impl Into<String>,
        machine: M,
        sockets: impl IntoIterator<Item = B>,
    ) -> NodeHandle<M> {
        let name = name.into();
        let id = NodeId::new(self.nodes.len());
        assert!(
            self.names.insert(name.clone()),
            "the name {name:?} is in use"
        );
        self.nodes.push(Slot {
            name,
            node: Box::new(Held::new(machine)),
            sockets: Vec::new(),
            deadline: None,
            isolated: false,
            timeouts_here: 0,
            last_timeout: Instant::ZERO,
        });
        for bind in sockets {
            self.bind(id, bind);
        }
        self.settle(id);
        NodeHandle::new(id)
    }

    /// Opens one more socket; returns its number.
    ///
    /// # Panics
    /// The address is in use.
    pub fn bind(&mut self, node: impl Into<NodeId>, bind: impl Into<Bind>) -> u32 {
        self.open(node.into(), Socket::Bound(bind.into()))
    }

    /// Opens a socket for what `peer` sends to `local`; returns its number. It goes
    /// before a bound socket with that address.
    ///
    /// # Panics
    /// There is such a socket already.
    pub fn connect(&mut self, node: impl Into<NodeId>, local: SocketAddr, peer: SocketAddr) -> u32 {
        self.open(node.into(), Socket::Connected { local, peer })
    }

    /// Moves a socket to another address, as a NAT that forgot its mapping does.
    ///
    /// # Panics
    /// The node has no such socket, or the address is in use.
    pub fn rebind(&mut self, node: impl Into<NodeId>, socket: u32, bind: impl Into<Bind>) {
        let node = node.into();
        self.close(node, socket);
        let moved = Socket::Bound(bind.into());
        assert!(
            self.addresses.insert(moved, Owner { node, socket }),
            "{moved} is in use"
        );
        self.nodes[node.index()].sockets[socket as usize] = Some(moved);
    }

    /// Closes a socket: what is sent to it or from it ends there.
    ///
    /// # Panics
    /// The node has no such socket.
    pub fn close(&mut self, node: impl Into<NodeId>, socket: u32) {
        let slot = &mut self.nodes[node.into().index()];
        let closed = slot.sockets.get_mut(socket as usize).and_then(Option::take);
        let closed = closed.unwrap_or_else(|| panic!("{} has no socket {socket}", slot.name));
        self.addresses.remove(&closed);
    }

    fn open(&mut self, node: NodeId, socket: Socket) -> u32 {
        let sockets = &mut self.nodes[node.index()].sockets;
        let number = u32::try_from(sockets.len()).expect("fewer than 2^32 sockets");
        let owner = Owner {
            node,
            socket: number,
        };
        assert!(self.addresses.insert(socket, owner), "{socket} is in use");
        sockets.push(Some(socket));
        number
    }

    /// The address that the node sends from by default: its first open socket's.
    ///
    /// # Panics
    /// It has no open socket.
    pub fn address(&self, node: impl Into<NodeId>) -> SocketAddr {
        let slot = &self.nodes[node.into().index()];
        let first = slot
            .sockets
            .iter()
            .flatten()
            .next()
            .and_then(|s| s.source(None));
        first.unwrap_or_else(|| panic!("{} has no open socket", slot.name))
    }

    /// The name a node was added with.
    pub fn name(&self, node: impl Into<NodeId>) -> &str {
        &self.nodes[node.into().index()].name
    }

    // Machines.

    /// Calls the machine with the virtual time, then drains it.
    pub fn with<M: DatagramMachine, R>(
        &mut self,
        node: NodeHandle<M>,
        call: impl FnOnce(&mut M, Instant) -> R,
    ) -> R {
        let now = self.now;
        call(&mut self.get_mut(node), now)
    }

    /// Lends the machine out and drains it when it comes back. A recording notes a
    /// command. To read only, index: `world[lns]`.
    pub fn get_mut<M: DatagramMachine>(&mut self, node: NodeHandle<M>) -> Lent<'_, M> {
        let now = self.now;
        self.held_mut(node).recorder.note(now, || Entry::Command);
        Lent { world: self, node }
    }

    /// Puts another machine in a node's place, as when a host restarts, and returns the
    /// old one. Addresses, links, events and `on_event` stay; a recording ends.
    pub fn replace<M: DatagramMachine>(&mut self, node: NodeHandle<M>, machine: M) -> M {
        let held = self.held_mut(node);
        held.recorder.take();
        let old = std::mem::replace(&mut held.machine, machine);
        self.settle(node.id());
        old
    }

    /// Answers the machine's events as they come: `answer` may call the machine, and
    /// the event is kept all the same.
    pub fn on_event<M: DatagramMachine>(
        &mut self,
        node: NodeHandle<M>,
        answer: impl FnMut(&mut M, &M::Event, Instant) + 'static,
    ) {
        self.held_mut(node).on_event = Some(Box::new(answer));
    }

    /// The machine's events since last asked, oldest first. The last 1,048,576 are kept.
    pub fn take_events<M: DatagramMachine>(&mut self, node: NodeHandle<M>) -> Vec<M::Event> {
        self.take_timed_events(node)
            .into_iter()
            .map(|(_, event)| event)
            .collect()
    }

    /// As [`World::take_events`], each with its time.
    pub fn take_timed_events<M: DatagramMachine>(
        &mut self,
        node: NodeHandle<M>,
    ) -> Vec<(Instant, M::Event)> {
        self.held_mut(node).events.drain(..).collect()
    }

    /// What the machine discarded since last asked, oldest first. The last 1,048,576 are
    /// kept.
    pub fn take_discards<M: DatagramMachine>(&mut self, node: NodeHandle<M>) -> Vec<M::Discard> {
        self.held_mut(node)
            .discards
            .drain(..)
            .map(|(_, discard)| discard)
            .collect()
    }

    /// Records the machine's inputs from here on. For a replay into a fresh machine,
    /// begin right after adding it.
    pub fn record<M: DatagramMachine>(&mut self, node: NodeHandle<M>) {
        let now = self.now;
        self.held_mut(node).recorder.start(now);
    }

    /// Ends a recording; `None` if none was under way.
    pub fn take_recording<M: DatagramMachine>(&mut self, node: NodeHandle<M>) -> Option<Recording> {
        self.held_mut(node).recorder.take()
    }

    fn held<M: DatagramMachine>(&self, node: NodeHandle<M>) -> &Held<M> {
        let node: &dyn std::any::Any = &*self.nodes[node.id().index()].node;
        node.downcast_ref()
            .expect("a handle is used in the world that gave it out")
    }

    fn held_mut<M: DatagramMachine>(&mut self, node: NodeHandle<M>) -> &mut Held<M> {
        let node: &mut dyn std::any::Any = &mut *self.nodes[node.id().index()].node;
        node.downcast_mut()
            .expect("a handle is used in the world that gave it out")
    }

    // Log.

    /// The datagrams sent so far, oldest first, as far as the log keeps them.
    pub fn log(&self) -> impl DoubleEndedIterator<Item = &Record> + ExactSizeIterator {
        self.log.records().iter()
    }

    /// What one node sent, as far as the log keeps it; copies that links made are left out.
    pub fn sent_by(&self, node: impl Into<NodeId>) -> impl DoubleEndedIterator<Item = &Record> {
        let node = Some(node.into());
        self.log()
            .filter(move |record| record.from_node == node && !record.copy)
    }

    /// How many datagrams the log keeps (4,096 unless told otherwise); the oldest are
    /// forgotten first.
    pub fn set_log_limit(&mut self, records_max: usize) {
        self.log.set_limit(records_max);
    }

    /// How reports show a payload; without it they show hex. It must not panic.
    pub fn set_decoder(&mut self, decoder: fn(&[u8]) -> String) {
        self.decoder = Some(decoder);
    }
}

/// A machine on loan from its world, which drains it when this is dropped.
#[derive(Debug)]
pub struct Lent<'w, M: DatagramMachine> {
    world: &'w mut World,
    node: NodeHandle<M>,
}

impl<M: DatagramMachine> Deref for Lent<'_, M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.world[self.node]
    }
}

impl<M: DatagramMachine> DerefMut for Lent<'_, M> {
    fn deref_mut(&mut self) -> &mut M {
        &mut self.world.held_mut(self.node).machine
    }
}

impl<M: DatagramMachine> Drop for Lent<'_, M> {
    fn drop(&mut self) {
        // A machine that panicked is not asked for more.
        if !std::thread::panicking() {
            self.world.settle(self.node.id());
        }
    }
}

/// The machine, to read.
impl<M: DatagramMachine> Index<NodeHandle<M>> for World {
    type Output = M;

    fn index(&self, node: NodeHandle<M>) -> &M {
        &self.held(node).machine
    }
}
