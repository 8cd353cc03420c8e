//! Who talks to whom: the key under which both directions of a connection are found.

use core::net::{IpAddr, Ipv6Addr};
use foldhash::fast::FixedState;
use std::hash::{BuildHasher, Hasher};

/// Addresses and ports of a connection, the same for both its directions: the lower end comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowKey {
    /// The lower end's address; IPv4 as ::ffff:a.b.c.d.
    pub low: u128,
    /// The higher end's address.
    pub high: u128,
    /// The lower end's port above the higher end's.
    ports: u32,
    /// What else keeps flows apart: 0, or a number made of the tunnel that carries it.
    pub realm: u32,
}

impl FlowKey {
    /// The key of a packet, and whether its sender is the lower end.
    #[must_use]
    pub fn new(
        source: &[u8; 16],
        source_port: u16,
        destination: &[u8; 16],
        destination_port: u16,
        realm: u32,
    ) -> (FlowKey, bool) {
        let (source, destination) = (
            u128::from_be_bytes(*source),
            u128::from_be_bytes(*destination),
        );
        let from_low = (source, source_port) <= (destination, destination_port);
        let (low, high, low_port, high_port) = if from_low {
            (source, destination, source_port, destination_port)
        } else {
            (destination, source, destination_port, source_port)
        };
        let ports = u32::from(low_port) << 16 | u32::from(high_port);
        (
            FlowKey {
                low,
                high,
                ports,
                realm,
            },
            from_low,
        )
    }

    /// The lower end's port.
    #[must_use]
    pub const fn low_port(&self) -> u16 {
        (self.ports >> 16) as u16
    }

    /// The higher end's port.
    #[must_use]
    pub const fn high_port(&self) -> u16 {
        self.ports as u16
    }

    /// Address and port of one end.
    #[must_use]
    pub fn end(&self, low: bool) -> (IpAddr, u16) {
        let (address, port) = if low {
            (self.low, self.low_port())
        } else {
            (self.high, self.high_port())
        };
        (Ipv6Addr::from_bits(address).to_canonical(), port)
    }

    /// A hash of both directions alike. The same seed gives the same hash on every machine, so that the parts of a
    /// capture agree on whose a flow is; where nobody has to agree, a seed that nobody can guess keeps a hostile
    /// capture from filling one bucket.
    #[must_use]
    pub fn hash(&self, seed: u64) -> u64 {
        let mut hasher = FixedState::with_seed(seed).build_hasher();
        hasher.write_u128(self.low);
        hasher.write_u128(self.high);
        hasher.write_u64(u64::from(self.ports) << 32 | u64::from(self.realm));
        hasher.finish()
    }

    pub(crate) const fn ports(&self) -> u32 {
        self.ports
    }

    pub(crate) const fn from_parts(low: u128, high: u128, ports: u32, realm: u32) -> FlowKey {
        FlowKey {
            low,
            high,
            ports,
            realm,
        }
    }
}
