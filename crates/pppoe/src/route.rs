//! Where a frame comes from or goes to.

use core::fmt;

use wire::pppoe::{Mac, Vlans};

/// The source of a received frame, or the destination of a frame to send: all of Ethernet's header that the machine
/// needs. The other address is the port's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// The owner's number of the interface.
    pub port: u16,
    /// The other station.
    pub peer: Mac,
    /// The VLAN ids of the frame.
    pub vlans: Vlans,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "port {} vlan {} mac {}",
            self.port, self.vlans, self.peer
        )
    }
}

/// A frame as the machine receives it.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its source.
    pub route: Route,
    /// Whether it was sent to the broadcast address.
    pub is_broadcast: bool,
    /// The octets from the PPPoE header on. Padding after the packet is ignored.
    pub bytes: &'a [u8],
}
