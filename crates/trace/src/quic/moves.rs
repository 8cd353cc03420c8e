//! A client's move to another address or port (RFC 9000 9).

use core::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Moves that are listed of a connection.
pub const MOVES_MAX: usize = 8;

/// A move of a connection's client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// The client's new address.
    pub address: IpAddr,
    /// The client's new port.
    pub port: u16,
    /// The first packet from there.
    pub packet: u64,
    /// Time from the flow's first packet to it, in nanoseconds.
    pub after: i64,
    /// Time since the flow's packet before it.
    pub silence: i64,
}
