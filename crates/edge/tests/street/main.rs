//! A street of subscribers at one edge, over networks that lose, repeat and reorder: PPPoE hosts on two VLANs, a LAC, LNSs
//! that take sessions over, a second PPPoE server, RADIUS servers, and a NAT with few ports. Hosts lose power, servers
//! die, VLANs vanish, and the configuration changes meanwhile. Afterwards nothing has leaked, and every session has one
//! end, one reason and one account.
//!
//! Start reading at `street`. `check` has the invariants.
#![forbid(unsafe_code)]

mod books;
mod chances;
mod check;
mod desk;
mod eap;
mod node;
mod radius;
mod runs;
mod street;
mod v6;
