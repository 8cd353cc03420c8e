//! OrderedTree, to be written.

/// Placeholder.
pub struct OrderedTree;
