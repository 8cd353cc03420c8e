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
/// The value of `version`, the second key. It is raised for a change that older readers would misunderstand.
pub const VERSION: u64 = 1;
/// The most packets in a file.
pub const SAMPLES_MAX: usize = 100_000_000;
