//! Attribute sets, each stored once: canonical octets, and what the decision process needs of them.

use wire::bgp::attr::{self, Community, code};
use wire::bgp::{AsPath, FamilyId, NextHop, Place};

use crate::rib::chunked::Chunked;
use crate::rib::hash;
use crate::rib::index::Index;
use crate::rib::number::NONE;

/// LOCAL_PREF of a route without it. RFC 4271 leaves the value open; this is the common choice.
pub(crate) const LOCAL_PREF_DEFAULT: u32 = 100;

/// What is needed of an attribute set again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Digest {
    pub(crate) local_pref: u32,
    /// 0 if there is none, as RFC 4271, section 9.1.2.2 c has it.
    pub(crate) med: u32,
    /// The neighbouring AS; 0 if the path is empty or starts with a set.
    pub(crate) neighbour: u32,
    /// ORIGINATOR_ID (RFC 4456), 0 if there is none.
    pub(crate) originator: u32,
    /// Only To Customer (RFC 9234), 0 if there is none.
    pub(crate) otc: u32,
    /// The path length of RFC 4271, section 9.1.2.2 a.
    pub(crate) path_len: u16,
    pub(crate) origin: u8,
    pub(crate) cluster_len: u8,
    /// Bits of the constants below.
    pub(crate) flags: u8,
}

impl Digest {
    pub(crate) const NO_EXPORT: u8 = 1;
    pub(crate) const NO_ADVERTISE: u8 = 2;
    pub(crate) const NO_EXPORT_SUBCONFED: u8 = 4;

    /// Reads a canonical set.
    pub(crate) fn read(raw: &[u8]) -> Self {
        let mut digest = Digest {
            local_pref: LOCAL_PREF_DEFAULT,
            ..Digest::default()
        };
        for attribute in attr::iter(raw) {
            let value = attribute.value;
            match attribute.code {
                code::ORIGIN => digest.origin = value.first().copied().unwrap_or(2),
                code::AS_PATH => {
                    let path = AsPath::new(value);
                    digest.path_len = path.length().min(u16::MAX.into()) as u16;
                    digest.neighbour = path.neighbour_as().unwrap_or(0);
                }
                code::MED => digest.med = word(value).unwrap_or(0),
                code::LOCAL_PREF => {
                    digest.local_pref = word(value).unwrap_or(LOCAL_PREF_DEFAULT);
                }
                code::COMMUNITIES => digest.flags |= well_known(value),
                code::ORIGINATOR_ID => digest.originator = word(value).unwrap_or(0),
                code::CLUSTER_LIST => {
                    digest.cluster_len = (value.len() / 4).min(u8::MAX.into()) as u8;
                }
                code::OTC => digest.otc = word(value).unwrap_or(0),
                _ => {}
            }
        }
        digest
    }
}

fn word(value: &[u8]) -> Option<u32> {
    value
        .first_chunk()
        .map(|&octets| u32::from_be_bytes(octets))
}

/// The well-known communities that restrict advertisement (RFC 1997).
fn well_known(value: &[u8]) -> u8 {
    let mut flags = 0;
    for community in value.as_chunks::<4>().0 {
        flags |= match Community(u32::from_be_bytes(*community)) {
            Community::NO_EXPORT => Digest::NO_EXPORT,
            Community::NO_ADVERTISE => Digest::NO_ADVERTISE,
            Community::NO_EXPORT_SUBCONFED => Digest::NO_EXPORT_SUBCONFED,
            _ => 0,
        };
    }
    flags
}

/// An attribute set: its canonical octets, and the next hop of families that carry it in MP_REACH_NLRI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathAttributes<'a> {
    /// 0, 16 or 32 octets.
    pub(crate) next_hop: &'a [u8],
    pub(crate) raw: &'a [u8],
}

impl PathAttributes<'_> {
    /// The next hop without its link-local address, which has no meaning on other links.
    pub(crate) fn next_hop(&self, family: FamilyId) -> Option<NextHop> {
        match family.place() {
            Place::Fields => attr::next_hop(self.raw).map(NextHop::V4),
            Place::Multiprotocol => {
                let next_hop = family.read_next_hop(self.next_hop)?;
                Some(next_hop.address().into())
            }
        }
    }
}

#[derive(Debug)]
struct Set {
    /// The next hop's octets, then the canonical ones.
    octets: Box<[u8]>,
    /// How many users there are; in a free slot, the next free slot.
    refs: u32,
    hash: u32,
    digest: Digest,
    next_hop_len: u8,
}

impl Set {
    fn attributes(&self) -> PathAttributes<'_> {
        let (next_hop, raw) = self.octets.split_at(self.next_hop_len.into());
        PathAttributes { next_hop, raw }
    }
}

/// All attribute sets. An index is valid between [`hold`](Self::hold) and [`release`](Self::release).
#[derive(Debug)]
pub(crate) struct AttributeStore {
    sets: Chunked<Set>,
    index: Index,
    free: u32,
    seed: u64,
    octets: usize,
}

impl AttributeStore {
    pub(crate) const fn new(seed: u64) -> Self {
        AttributeStore {
            sets: Chunked::new(),
            index: Index::new(),
            free: NONE,
            seed,
            octets: 0,
        }
    }

    /// How many sets are stored.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Memory held in bytes, without the allocator's own.
    pub(crate) fn memory(&self) -> usize {
        self.sets.memory() + self.octets + self.index.allocation_size()
    }

    /// Finds or adds a set. A new set has no user yet.
    pub(crate) fn intern(&mut self, attributes: PathAttributes<'_>) -> u32 {
        let hash = hash::octets(self.seed, attributes.next_hop, attributes.raw);
        let found = self.index.find(hash, |&id| {
            let set = &self.sets[id];
            set.hash == hash as u32 && set.attributes() == attributes
        });
        if let Some(&id) = found {
            return id;
        }
        let mut octets = Vec::with_capacity(attributes.next_hop.len() + attributes.raw.len());
        octets.extend_from_slice(attributes.next_hop);
        octets.extend_from_slice(attributes.raw);
        self.octets += octets.len();
        let set = Set {
            octets: octets.into_boxed_slice(),
            refs: 0,
            hash: hash as u32,
            digest: Digest::read(attributes.raw),
            next_hop_len: attributes.next_hop.len() as u8,
        };
        let id = match self.free {
            NONE => self.sets.push(set),
            id => {
                self.free = self.sets[id].refs;
                self.sets[id] = set;
                id
            }
        };
        self.index
            .insert_unique(hash, id, |&id| hash::widen(self.sets[id].hash));
        id
    }

    pub(crate) fn hold(&mut self, id: u32) {
        self.sets[id].refs += 1;
    }

    /// Counts one user less, and frees the set after the last one.
    pub(crate) fn release(&mut self, id: u32) {
        let set = &mut self.sets[id];
        set.refs -= 1;
        if set.refs > 0 {
            return;
        }
        self.octets -= set.octets.len();
        set.octets = Box::default();
        set.next_hop_len = 0;
        set.refs = self.free;
        let hash = set.hash;
        self.free = id;
        if let Ok(entry) = self
            .index
            .find_entry(hash::widen(hash), |&found| found == id)
        {
            entry.remove();
        }
    }

    #[inline]
    pub(crate) fn digest(&self, id: u32) -> &Digest {
        &self.sets[id].digest
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> PathAttributes<'_> {
        self.sets[id].attributes()
    }
}
