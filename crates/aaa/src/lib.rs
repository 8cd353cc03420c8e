//! Authentication, authorisation and accounting of subscribers, without I/O.
//!
//! - [`profile`]: what a subscriber gets, wherever that was written down.
//! - [`users`]: a file of local users, and what a claim to be one of them is worth.
//! - [`pools`]: who holds which IPv4 address.
//! - [`radius`]: a client of RADIUS servers.
//! - [`accounting`]: the account of a subscriber, and how its records reach a server.
//! - [`dynauth`]: what servers ask of us: to disconnect subscribers.
//!
//! Left out: MS-CHAP, EAP, CoA (RFC 5176, section 2.2), diameter.
#![forbid(unsafe_code)]

pub mod accounting;
pub mod dynauth;
pub mod pools;
pub mod profile;
pub mod radius;
pub mod users;

pub use pools::Pools;
pub use profile::{Address, Prefix, Profile};
pub use users::Users;
