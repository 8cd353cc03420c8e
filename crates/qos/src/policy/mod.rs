//! The one file that an operator writes.

pub mod units;
