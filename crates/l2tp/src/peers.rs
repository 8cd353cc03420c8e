//! Peers by address, each with its tunnels and its config ids.

use core::hash::BuildHasher;
use core::net::IpAddr;

use base::first_free::FirstFree;
use base::slab::{Key, Slab};
use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::config::PeerLookup;
use crate::pool::NIL;

/// The record of one address.
pub(crate) struct Peer {
    pub(crate) addr: IpAddr,
    /// Tunnels in any state but held.
    pub(crate) tunnels: u32,
    /// Those of them for which our SCCRQ is unanswered: ties are possible.
    pub(crate) opening: u32,
    /// The first of this peer's tunnels; they are linked.
    pub(crate) first_tunnel: u32,
    /// Tunnels ever opened with it.
    pub(crate) opened_total: u64,
    pub(crate) config_ids: Option<Box<FirstFree>>,
}

/// The table of peers. A peer is removed with its last tunnel.
pub(crate) struct Peers {
    peers: Slab<Peer>,
    by_address: HashTable<u32>,
    hasher: FixedState,
    lookup: PeerLookup,
}

impl Peers {
    pub(crate) fn new(lookup: PeerLookup, seed: u64) -> Self {
        Self {
            peers: Slab::new(),
            by_address: HashTable::new(),
            hasher: FixedState::with_seed(seed),
            lookup,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.peers.len()
    }

    /// Finds a peer by its address: O(1), or the walk of the design of 2013.
    pub(crate) fn find(&self, addr: IpAddr) -> Option<u32> {
        match self.lookup {
            PeerLookup::Hash => {
                let hash = self.hasher.hash_one(addr);
                self.by_address
                    .find(hash, |&index| self.at(index).addr == addr)
                    .copied()
            }
            PeerLookup::List => self
                .peers
                .iter()
                .find(|(_, peer)| peer.addr == addr)
                .map(|(key, _)| key.index),
        }
    }

    /// Finds a peer or creates its record.
    pub(crate) fn find_or_add(&mut self, addr: IpAddr) -> u32 {
        if let Some(index) = self.find(addr) {
            return index;
        }
        let key = self.peers.insert(Peer {
            addr,
            tunnels: 0,
            opening: 0,
            first_tunnel: NIL,
            opened_total: 0,
            config_ids: None,
        });
        if self.lookup == PeerLookup::Hash {
            let Self {
                peers,
                by_address,
                hasher,
                ..
            } = self;
            by_address.insert_unique(hasher.hash_one(addr), key.index, |&index| {
                hasher.hash_one(peers.at(index).expect("the table names only peers").addr)
            });
        }
        key.index
    }

    pub(crate) fn at(&self, index: u32) -> &Peer {
        self.peers.at(index).expect("a tunnel's peer is there")
    }

    pub(crate) fn at_mut(&mut self, index: u32) -> &mut Peer {
        self.peers.at_mut(index).expect("a tunnel's peer is there")
    }

    /// Forgets a peer without tunnels.
    pub(crate) fn remove_if_unused(&mut self, index: u32) {
        let peer = self.at(index);
        if peer.tunnels > 0 {
            return;
        }
        let (addr, key) = (peer.addr, self.peers.key_at(index));
        if self.lookup == PeerLookup::Hash {
            let hash = self.hasher.hash_one(addr);
            if let Ok(entry) = self.by_address.find_entry(hash, |&at| at == index) {
                entry.remove();
            }
        }
        key.and_then(|key: Key| self.peers.remove(key));
    }

    /// The first peer at `index` or after it.
    pub(crate) fn next_from(&self, index: u32) -> Option<(u32, &Peer)> {
        self.peers.next_from(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lookups_find_the_same_peers() {
        for lookup in [PeerLookup::Hash, PeerLookup::List] {
            let mut peers = Peers::new(lookup, 1);
            let addr = |n: u8| IpAddr::from([192, 0, 2, n]);
            let indices: Vec<u32> = (0..50).map(|n| peers.find_or_add(addr(n))).collect();
            assert_eq!(peers.find_or_add(addr(7)), indices[7]);
            assert_eq!(peers.len(), 50);
            peers.remove_if_unused(indices[7]);
            assert_eq!(peers.find(addr(7)), None);
            assert_eq!(peers.find(addr(8)), Some(indices[8]));
            peers.at_mut(indices[8]).tunnels = 1;
            peers.remove_if_unused(indices[8]);
            assert_eq!(peers.find(addr(8)), Some(indices[8]));
        }
    }
}
