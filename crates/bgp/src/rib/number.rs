//! Numbers that stand for slots, paths and attribute sets.

/// The number that stands for no slot, no path and no attribute set.
pub(super) const NONE: u32 = u32::MAX;
