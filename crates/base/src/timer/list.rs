//! SortedList, to be written.

/// Placeholder.
pub struct SortedList;
