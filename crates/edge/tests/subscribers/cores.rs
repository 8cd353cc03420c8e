//! Paths on further cores, whose turns come in an order that a seed decides.

use std::collections::VecDeque;

use edge::{Change, Path};

/// Numbers in an order that a seed decides.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }
}

/// A path on another core, with what it has not taken yet.
pub(crate) struct Core {
    pub(crate) path: Path,
    pub(crate) changes: VecDeque<Change>,
    pub(crate) applied: u64,
    pub(crate) unreported: u64,
}
