//! Wheel, to be written.

/// Placeholder.
pub struct Wheel;
