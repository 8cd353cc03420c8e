//! The links between a world's nodes, changed while it runs.

use base::Instant;

use super::World;
use crate::link::{Interceptor, Wire};
use crate::{Link, LinkStats, NodeId, Rng, Verdict};

impl World {
    /// Sets the link between all nodes that have none of their own.
    pub fn set_default_link(&mut self, link: Link) {
        self.default_link = link;
    }

    /// Sets the link between two nodes, both ways.
    pub fn set_link(&mut self, a: impl Into<NodeId>, b: impl Into<NodeId>, link: Link) {
        let (a, b) = (a.into(), b.into());
        self.set_link_one_way(a, b, link);
        self.set_link_one_way(b, a, link);
    }

    /// Sets the link from one node to another.
    pub fn set_link_one_way(&mut self, from: impl Into<NodeId>, to: impl Into<NodeId>, link: Link) {
        self.wire(from.into(), to.into()).own = Some(link);
    }

    /// Cuts two nodes apart: nothing passes, and what is under way is lost if it would
    /// arrive before [`World::heal`].
    pub fn cut(&mut self, a: impl Into<NodeId>, b: impl Into<NodeId>) {
        let (a, b) = (a.into(), b.into());
        self.cut_one_way(a, b);
        self.cut_one_way(b, a);
    }

    /// Cuts one direction only.
    pub fn cut_one_way(&mut self, from: impl Into<NodeId>, to: impl Into<NodeId>) {
        self.wire(from.into(), to.into()).cut = true;
    }

    /// Undoes a cut, both ways.
    pub fn heal(&mut self, a: impl Into<NodeId>, b: impl Into<NodeId>) {
        let (a, b) = (a.into(), b.into());
        self.wire(a, b).cut = false;
        self.wire(b, a).cut = false;
    }

    /// Cuts a node from all others until [`World::rejoin`].
    pub fn isolate(&mut self, node: impl Into<NodeId>) {
        self.nodes[node.into().index()].isolated = true;
    }

    /// Ends an isolation.
    pub fn rejoin(&mut self, node: impl Into<NodeId>) {
        self.nodes[node.into().index()].isolated = false;
    }

    /// Takes out the next `n` datagrams from one node to another.
    pub fn drop_next(&mut self, from: impl Into<NodeId>, to: impl Into<NodeId>, n: u32) {
        self.wire(from.into(), to.into()).drop_next = n;
    }

    /// Shows every payload from one node to another, on entering the link, to `judge`,
    /// which decides; it replaces an earlier one.
    pub fn intercept(
        &mut self,
        from: impl Into<NodeId>,
        to: impl Into<NodeId>,
        judge: impl FnMut(&[u8], Instant) -> Verdict + 'static,
    ) {
        let interceptor: Interceptor = Box::new(judge);
        self.wire(from.into(), to.into()).interceptor = Some(interceptor);
    }

    /// Takes the interceptor away.
    pub fn stop_intercepting(&mut self, from: impl Into<NodeId>, to: impl Into<NodeId>) {
        self.wire(from.into(), to.into()).interceptor = None;
    }

    /// What the link from one node to another did.
    pub fn link_stats(&self, from: impl Into<NodeId>, to: impl Into<NodeId>) -> LinkStats {
        self.wires
            .get(&(from.into(), to.into()))
            .map(|wire| wire.stats)
            .unwrap_or_default()
    }

    pub(super) fn wire(&mut self, from: NodeId, to: NodeId) -> &mut Wire {
        let (seed, nodes) = (self.seed, &self.nodes);
        self.wires.entry((from, to)).or_insert_with(|| {
            let name = |id: NodeId| nodes[id.index()].name.as_str();
            Wire::new(Rng::stream(seed, &["link", name(from), name(to)]))
        })
    }
}
