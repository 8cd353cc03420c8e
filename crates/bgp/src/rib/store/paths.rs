//! Paths: the peer that a route came from, and its attributes. Prefixes that were announced alike share one path, so a
//! route in the table is the number of a path.

use super::attrs::AttributeStore;
use crate::rib::chunked::Chunked;
use crate::rib::hash;
use crate::rib::index::Index;
use crate::rib::number::NONE;

/// The number of the peer that stands for routes of our own.
pub(crate) const LOCAL: u32 = 0x00ff_ffff;

/// A path, which routes of many prefixes can share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathInfo {
    /// The peer's number times 256, plus the number of its session or refresh.
    source: u32,
    /// The path identifier as received (RFC 7911); 0 without one.
    pub(crate) path_id: u32,
    /// The attributes as received.
    pub(crate) received: u32,
    /// The attributes after the import policy; [`NONE`] if that denied the route.
    pub(crate) attributes: u32,
    /// How many users there are; in a free slot, the next free slot.
    refs: u32,
}

impl PathInfo {
    pub(crate) const fn new(peer: u32, epoch: u8, path_id: u32) -> Self {
        PathInfo {
            source: peer << 8 | epoch as u32,
            path_id,
            received: NONE,
            attributes: NONE,
            refs: 0,
        }
    }

    pub(crate) const fn with(mut self, received: u32, attributes: u32) -> Self {
        self.received = received;
        self.attributes = attributes;
        self
    }

    #[inline]
    pub(crate) const fn peer(&self) -> u32 {
        self.source >> 8
    }

    #[inline]
    pub(crate) const fn epoch(&self) -> u8 {
        self.source as u8
    }

    /// Whether the decision may choose it.
    #[inline]
    pub(crate) const fn is_eligible(&self) -> bool {
        self.attributes != NONE
    }

    fn hash(&self, seed: u64) -> u64 {
        let source = u64::from(self.source) << 32 | u64::from(self.path_id);
        hash::numbers(seed, [source, self.received.into(), self.attributes.into()])
    }

    fn is_same(&self, other: &PathInfo) -> bool {
        (self.source, self.path_id, self.received, self.attributes)
            == (
                other.source,
                other.path_id,
                other.received,
                other.attributes,
            )
    }
}

/// All paths in use, each once. The store is a user of the attribute sets that they name.
#[derive(Debug)]
pub(crate) struct PathStore {
    paths: Chunked<PathInfo>,
    index: Index,
    free: u32,
    seed: u64,
}

impl PathStore {
    pub(crate) const fn new(seed: u64) -> Self {
        PathStore {
            paths: Chunked::new(),
            index: Index::new(),
            free: NONE,
            seed,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// All numbers are below this.
    pub(crate) fn end(&self) -> u32 {
        self.paths.len()
    }

    pub(crate) fn memory(&self) -> usize {
        self.paths.memory() + self.index.allocation_size()
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> &PathInfo {
        &self.paths[id]
    }

    /// Finds or adds a path, and counts one more user.
    pub(crate) fn intern(&mut self, path: PathInfo, attributes: &mut AttributeStore) -> u32 {
        let hash = path.hash(self.seed);
        if let Some(&id) = self.index.find(hash, |&id| self.paths[id].is_same(&path)) {
            self.paths[id].refs += 1;
            return id;
        }
        attributes.hold(path.received);
        if path.attributes != NONE {
            attributes.hold(path.attributes);
        }
        let path = PathInfo { refs: 1, ..path };
        let id = match self.free {
            NONE => self.paths.push(path),
            id => {
                self.free = self.paths[id].refs;
                self.paths[id] = path;
                id
            }
        };
        let seed = self.seed;
        self.index
            .insert_unique(hash, id, |&id| self.paths[id].hash(seed));
        id
    }

    #[inline]
    pub(crate) fn hold(&mut self, id: u32, times: u32) {
        self.paths[id].refs += times;
    }

    /// Counts one user less, and frees the path after the last one.
    #[inline]
    pub(crate) fn release(&mut self, id: u32, attributes: &mut AttributeStore) {
        let path = &mut self.paths[id];
        path.refs -= 1;
        if path.refs == 0 {
            self.free(id, attributes);
        }
    }

    #[cold]
    fn free(&mut self, id: u32, attributes: &mut AttributeStore) {
        let path = self.paths[id];
        let hash = path.hash(self.seed);
        if let Ok(entry) = self.index.find_entry(hash, |&found| found == id) {
            entry.remove();
        }
        attributes.release(path.received);
        if path.attributes != NONE {
            attributes.release(path.attributes);
        }
        // A free slot keeps nothing of its old path.
        self.paths[id] = PathInfo {
            refs: self.free,
            ..PathInfo::new(LOCAL, 0, 0)
        };
        self.free = id;
    }
}
