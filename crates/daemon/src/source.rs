//! Identifies a watched descriptor.

use std::fmt;

/// The kind and number of a watched descriptor, packed into the 64 bits that the reactor keeps for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Signals,
    Listener,
    /// A UDP socket, by its number.
    Udp(u32),
    /// A PPPoE interface, by its number.
    Port(u32),
    /// A queue of the TUN device.
    Tun(u32),
    /// A socket to a RADIUS server, by its index.
    Radius(u32),
    /// The socket for Disconnect-Requests.
    Disconnect,
    /// The event by which other threads wake this one.
    Shards,
    /// A connection or listener of the BGP speaker, by the speaker's own number.
    Bgp,
    /// A control client, by its index.
    Client(u32),
    /// Notifications of the kernel about the TUN device.
    Kernel,
    /// The file of accounting records. It has no descriptor here: a thread of its own writes it.
    Store,
    /// The event by which the thread that reads configurations wakes this one.
    Loader,
    /// The connection to an SNMP master agent.
    Snmp,
}

impl Source {
    pub(super) fn to_bits(self) -> u64 {
        let (kind, number) = match self {
            Source::Signals => (0, 0),
            Source::Listener => (1, 0),
            Source::Udp(number) => (2, number),
            Source::Client(number) => (3, number),
            Source::Tun(number) => (4, number),
            Source::Radius(place) => (5, place),
            Source::Disconnect => (6, 0),
            Source::Shards => (7, 0),
            Source::Bgp => (8, 0),
            Source::Kernel => (9, 0),
            Source::Store => (10, 0),
            Source::Loader => (11, 0),
            Source::Port(number) => (12, number),
            Source::Snmp => (13, 0),
        };
        kind << 32 | u64::from(number)
    }

    /// The number by which a thread that watches the loop knows it; 0 is none.
    pub(super) fn work(self) -> u64 {
        self.to_bits() + 1
    }

    pub(super) fn from_bits(bits: u64) -> Self {
        let number = bits as u32;
        match bits >> 32 {
            0 => Source::Signals,
            1 => Source::Listener,
            2 => Source::Udp(number),
            4 => Source::Tun(number),
            5 => Source::Radius(number),
            6 => Source::Disconnect,
            7 => Source::Shards,
            8 => Source::Bgp,
            9 => Source::Kernel,
            10 => Source::Store,
            11 => Source::Loader,
            12 => Source::Port(number),
            13 => Source::Snmp,
            _ => Source::Client(number),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Signals => f.write_str("signals"),
            Source::Listener => f.write_str("control socket"),
            Source::Udp(number) => write!(f, "udp socket {number}"),
            Source::Port(number) => write!(f, "pppoe interface {number}"),
            Source::Tun(number) => write!(f, "tun queue {number}"),
            Source::Radius(place) => write!(f, "radius socket {place}"),
            Source::Disconnect => f.write_str("radius disconnect"),
            Source::Shards => f.write_str("packet threads"),
            Source::Bgp => f.write_str("bgp connections"),
            Source::Client(place) => write!(f, "control client {place}"),
            Source::Kernel => f.write_str("netlink"),
            Source::Store => f.write_str("accounting store"),
            Source::Loader => f.write_str("configuration thread"),
            Source::Snmp => f.write_str("snmp master agent"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_survives_the_reactor() {
        for source in [
            Source::Signals,
            Source::Listener,
            Source::Udp(u32::MAX),
            Source::Client(7),
            Source::Port(9),
            Source::Tun(1),
            Source::Radius(2),
            Source::Disconnect,
            Source::Shards,
            Source::Bgp,
            Source::Kernel,
            Source::Store,
            Source::Loader,
            Source::Snmp,
        ] {
            assert_eq!(Source::from_bits(source.to_bits()), source);
        }
    }
}
