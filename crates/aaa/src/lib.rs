//! Authentication, authorisation and accounting of subscribers, without I/O.
//!
//! - [`profile`]: what a subscriber gets, wherever that was written down.
//!
//! Left out: MS-CHAP, EAP, CoA (RFC 5176, section 2.2), diameter.
#![forbid(unsafe_code)]

pub mod profile;

pub use profile::{Address, Prefix, Profile};
