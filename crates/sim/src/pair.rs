//! Two machines over one link: the world that most scenarios need.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::{Deref, DerefMut};

use base::Instant;

use crate::{DatagramMachine, Link, NodeHandle, World};

/// The address of a pair's machine `a`: `192.0.2.1:1701`.
pub const ADDRESS_A: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 1701);

/// The address of a pair's machine `b`: `192.0.2.2:1701`.
pub const ADDRESS_B: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 1701);

/// A [`World`] of two nodes, "a" at [`ADDRESS_A`] and "b" at [`ADDRESS_B`]. It has all methods of a world. For calls
/// with a handle, name the world: `pair.world.take_discards(pair.a)`.
#[derive(Debug)]
pub struct Pair<A, B> {
    /// The world of both nodes.
    pub world: World,
    /// The first node's handle.
    pub a: NodeHandle<A>,
    /// The second node's handle.
    pub b: NodeHandle<B>,
}

impl<A: DatagramMachine, B: DatagramMachine> Pair<A, B> {
    /// Joins `a` and `b` by `link`, the same both ways.
    pub fn new(seed: u64, link: Link, a: A, b: B) -> Self {
        let mut world = World::new(seed);
        world.set_default_link(link);
        let a = world.add("a", a, [ADDRESS_A]);
        let b = world.add("b", b, [ADDRESS_B]);
        Self { world, a, b }
    }

    /// The first machine.
    pub fn a(&self) -> &A {
        &self.world[self.a]
    }

    /// The second machine.
    pub fn b(&self) -> &B {
        &self.world[self.b]
    }

    /// Calls the first machine; see [`World::with`].
    pub fn with_a<R>(&mut self, call: impl FnOnce(&mut A, Instant) -> R) -> R {
        self.world.with(self.a, call)
    }

    /// Calls the second machine; see [`World::with`].
    pub fn with_b<R>(&mut self, call: impl FnOnce(&mut B, Instant) -> R) -> R {
        self.world.with(self.b, call)
    }

    /// The first machine's events since the last call.
    pub fn events_a(&mut self) -> Vec<A::Event> {
        self.world.take_events(self.a)
    }

    /// The second machine's events since the last call.
    pub fn events_b(&mut self) -> Vec<B::Event> {
        self.world.take_events(self.b)
    }

    /// Cuts the link both ways.
    pub fn cut_link(&mut self) {
        self.world.cut(self.a, self.b);
    }

    /// Restores the link both ways.
    pub fn heal_link(&mut self) {
        self.world.heal(self.a, self.b);
    }
}

impl<A, B> Deref for Pair<A, B> {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl<A, B> DerefMut for Pair<A, B> {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.world
    }
}
