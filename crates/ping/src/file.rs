//! The file of a result: one JSON object, all numbers whole, times in nanoseconds. `docs/ping-results.md` has every key.
//!
//! A stream's samples are columns of the same length, so that `pandas.DataFrame(stream["samples"])` is the table of
//! its packets; times of sending are differences, which keeps 10,000,000 packets below 300 MB of text. Writing and
//! reading go through the file once and hold what is kept in memory anyway. What is read and written again is the
//! same, octet for octet.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{ReadError, read};
pub use write::write;

/// The value of `format`, the first key.
pub const FORMAT: &str = "headend-ping";
/// The value of `version`, the second key: a change that an older reader would misunderstand makes it greater.
pub const VERSION: u64 = 1;
/// Packets that a file may hold at most.
pub const SAMPLES_MAX: usize = 100_000_000;
