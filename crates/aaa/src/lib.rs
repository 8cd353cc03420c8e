//! Authentication, authorisation and accounting of subscribers, without I/O.
//!
//! - [`profile`]: the settings of a subscriber's session, from any source.
//! - [`queue`]: what a source says about a subscriber's queues.
//! - [`tunnel`]: the tunnels in which a session is handed over.
//! - [`users`]: a file of local users, and checking a peer's credentials against it.
//! - [`pools`]: leases of IPv4 addresses.
//! - [`prefixes`]: leases of IPv6 prefixes.
//! - [`radius`]: a client of RADIUS servers.
//! - [`accounting`]: accounting records, and their delivery to a server.
//! - [`dynauth`]: requests from servers to disconnect subscribers, and to change their settings.
//! - [`realm`]: the realm in a name, and what is different for its users.
//! - [`throttle`]: waits after failed logins.
//! - [`change`]: a change of a connected subscriber's settings.
//!
//! Start reading at [`profile`], whose settings both [`users`] and [`radius`] produce.
//!
//! Left out: EAP without a server, "Authorize Only" (RFC 5176, section 3.2), diameter.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod accounting;
pub mod change;
pub mod dynauth;
pub mod pools;
pub mod prefixes;
pub mod profile;
pub mod queue;
pub mod radius;
pub mod realm;
pub mod throttle;
pub mod tunnel;
pub mod users;

pub use change::{Change, Walled};
pub use pools::Pools;
pub use prefixes::PrefixPools;
pub use profile::{Address, Ipv6, Prefix, Profile};
pub use queue::Queue;
pub use realm::{Realm, Realms};
pub use throttle::{Throttle, ThrottleConfig};
pub use tunnel::{Lns, TunnelTo, Tunnelled};
pub use users::Users;
