//! The result file: one JSON object, all numbers whole, times in nanoseconds. `docs/ping-results.md` describes every
//! key.
//!
//! A stream's samples are columns of equal length, so `pandas.DataFrame(stream["samples"])` is the table of its
//! packets. Sending times are stored as differences, which keeps 10,000,000 packets below 300 MB of text. Writing and
//! reading pass over the file once and hold only the result itself in memory. A file that is read and written again
//! is identical byte for byte.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{ReadError, read};
pub use write::write;

/// The value of `format`, the first key.
pub const FORMAT: &str = "headend-ping";
/// The value of `version`, the second key: a change that an older reader would misunderstand makes it greater.
pub const VERSION: u64 = 2;
/// The value of `schema`, the third key, which version 1 does not have.
pub const SCHEMA: &str = "ping.result/2";
/// Packets that a file may hold at most.
pub const SAMPLES_MAX: usize = 100_000_000;
