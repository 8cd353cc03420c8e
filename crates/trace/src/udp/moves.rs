//! QUIC connections whose client has another address or port than before (RFC 9000 9), found by the server's connection
//! ID: a packet with a short header shows the ID, but not its length, which the server's long headers show.
//!
//! A client that changes its address on purpose takes a new connection ID (RFC 9000 9.5), which only the two ends know.
//! So the moves found here are those that a NAT made, or that the client did not notice.

use core::net::IpAddr;
use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::Datagram;
use crate::key::FlowKey;

/// Connection IDs that are remembered. At the limit, connections that start later are not recognised after a move.
const IDS_MAX: usize = 1 << 16;

/// Addresses and ports that connections moved to. At the limit, packets of further ones are flows of their own.
const MOVED_MAX: usize = 1 << 16;

/// Shorter IDs may be equal by chance.
const ID_MIN: usize = 4;
const ID_MAX: usize = wire::quic::ID_MAX;

/// A server's connection ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Home {
    server: (IpAddr, u16),
    realm: u32,
    id: [u8; ID_MAX],
    length: u8,
    flow: u32,
}

/// Addresses and ports that a flow's connection moved to.
#[derive(Debug, Clone, Copy)]
struct Moved {
    key: FlowKey,
    flow: u32,
    client_is_low: bool,
}

/// Where the packets of connections may come from.
#[derive(Debug)]
pub(super) struct Homes {
    seed: u64,
    ids: HashTable<Home>,
    /// Bit n is set if an ID has n octets.
    lengths: u32,
    moved: HashTable<Moved>,
}

/// A flow that a datagram of other addresses or ports belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// The flow's index.
    pub(super) flow: usize,
    pub(super) from_client: bool,
    /// It is the first datagram of these addresses and ports.
    pub(super) is_first: bool,
}

impl Homes {
    pub(super) fn new(seed: u64) -> Homes {
        Homes {
            seed,
            ids: HashTable::new(),
            lengths: 0,
            moved: HashTable::new(),
        }
    }

    /// The server at that end of a flow's key chose this connection ID.
    pub(super) fn learn(&mut self, flow: usize, key: &FlowKey, server_is_low: bool, id: &[u8]) {
        let server = (key.end(server_is_low), key.realm);
        if let Some(mut home) = home(server, id)
            && self.ids.len() < IDS_MAX
        {
            home.flow = flow as u32;
            self.lengths |= 1 << id.len();
            let seed = self.seed;
            let hash = hash(seed, &home);
            // An ID that a server uses twice stays with the first connection.
            self.ids
                .entry(
                    hash,
                    |other| is_same(other, &home),
                    |home| self::hash(seed, home),
                )
                .or_insert(home);
        }
    }

    /// The flow that a datagram of unknown addresses or ports belongs to.
    pub(super) fn find(&mut self, datagram: &Datagram, payload: &[u8]) -> Option<Found> {
        if self.ids.is_empty() {
            return None;
        }
        let hash = datagram.key.hash(self.seed);
        if let Some(moved) = self.moved.find(hash, |moved| moved.key == datagram.key) {
            return Some(Found {
                flow: moved.flow as usize,
                from_client: datagram.from_low == moved.client_is_low,
                is_first: false,
            });
        }
        let flow = self.by_id(datagram, payload)?;
        if self.moved.len() >= MOVED_MAX {
            return None;
        }
        let seed = self.seed;
        let moved = Moved {
            key: datagram.key,
            flow,
            client_is_low: datagram.from_low,
        };
        self.moved
            .insert_unique(hash, moved, |moved| moved.key.hash(seed));
        Some(Found {
            flow: flow as usize,
            from_client: true,
            is_first: true,
        })
    }

    /// The flow whose server chose the ID that a short header begins with. The longest ID counts.
    fn by_id(&self, datagram: &Datagram, payload: &[u8]) -> Option<u32> {
        let (first, rest) = payload.split_first()?;
        if first & 0xc0 != 0x40 {
            return None;
        }
        let server = (datagram.key.end(!datagram.from_low), datagram.key.realm);
        let lengths = (ID_MIN..=ID_MAX).rev();
        let mut lengths = lengths.filter(|length| self.lengths & 1 << length != 0);
        lengths.find_map(|length| {
            let wanted = home(server, rest.get(..length)?)?;
            let found = self
                .ids
                .find(hash(self.seed, &wanted), |home| is_same(home, &wanted))?;
            Some(found.flow)
        })
    }
}

/// The entry of an ID, without its flow; `None` if it is too short.
fn home((server, realm): ((IpAddr, u16), u32), octets: &[u8]) -> Option<Home> {
    let mut id = [0; ID_MAX];
    id.get_mut(..octets.len())?.copy_from_slice(octets);
    (octets.len() >= ID_MIN).then_some(Home {
        server,
        realm,
        id,
        length: octets.len() as u8,
        flow: 0,
    })
}

/// Whether two entries are of the same ID.
fn is_same(one: &Home, other: &Home) -> bool {
    let flow = other.flow;
    Home { flow, ..*one } == *other
}

fn hash(seed: u64, home: &Home) -> u64 {
    let mut hasher = FixedState::with_seed(seed).build_hasher();
    hasher.write(&home.id);
    hasher.write_u16(home.server.1);
    hasher.finish()
}

#[cfg(test)]
mod tests;
