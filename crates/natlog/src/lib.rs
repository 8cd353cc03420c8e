//! Who had a NAT's external address and port at a time: a log of port blocks on disk (RFC 6888 section 4).
//!
//! A day has segments. The newest segment of all is a log: records of 32 bytes in order of time, each with a checksum,
//! appended. When it has [`Settings::segment_records`] records, or its day is over, its records are sorted by external
//! address, first port and time, and written to a new file, which replaces the log. A search in a sorted segment is a binary
//! search with one read of 32 bytes per step, so it needs no index in memory, and no memory that grows with the log.
//!
//! Each segment starts with a record of every block that is still allocated. So one segment answers a question, and old
//! segments can be deleted: [`Store::retain`].
//!
//! A crash may lose the records that the kernel had not written ([`Store::sync`]). A torn record at the log's end is cut
//! off when the log is opened. A sorted segment is renamed into place after it is complete on disk, and the log is deleted
//! only then.
//!
//! | file | what it has |
//! |---|---|
//! | `record` | a record's bytes |
//! | `runs` | sorted copies of an open log's records |
//! | `seal` | a full log becomes a segment on a thread |
//! | `segment` | sorted segments |
//! | `store` | the directory: appending, sealing, searching, retention |
//! | `names` | texts for subscribers, by the numbers that records have |
//! | `reader` | searches in a directory that another process writes |
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod names;
mod reader;
mod record;
mod runs;
mod seal;
mod segment;
mod store;
#[cfg(test)]
mod tests;

pub use reader::{Named, Reader};
pub use record::{Entry, Kind};
pub use store::{Settings, Store, StoreError};
