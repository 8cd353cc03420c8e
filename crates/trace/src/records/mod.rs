//! From the records of a capture file to TCP segments and connections. No I/O, no threads.
//!
//! | module | what it does |
//! |---|---|
//! | `plan` | which packets and flows are analysed |
//! | `decoder` | decodes a record into a segment |
//! | `decoded` | the decoded segments, and their order by flow |
//! | `fragments` | puts the fragments of TCP segments together |
//! | `machine` | analyses blocks of records on one thread |
//! | `watch` | the trait of observers that see each packet |
//! | `realms` | which sessions of a tunnel belong together |
//! | `tally` | counts packets by kind, encapsulation and reason for skipping |
//!
//! [`crate::capture`] reads the files and runs several decoders at a time. Start reading at `machine`.

pub(crate) mod decoded;
pub(crate) mod decoder;
pub(crate) mod fragments;
pub(crate) mod machine;
pub(crate) mod plan;
mod realms;
pub(crate) mod tally;
pub(crate) mod watch;
