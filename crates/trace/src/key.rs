//! The key of a connection, the same for both directions: addresses and ports.

use core::net::{IpAddr, Ipv6Addr};
use foldhash::fast::FixedState;
use std::hash::{BuildHasher, Hasher};

/// Addresses and ports of a connection, the same for both its directions: the lower end comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FlowKey {
    /// The lower end's address, in halves; IPv4 as ::ffff:a.b.c.d.
    low: [u64; 2],
    /// The higher end's address.
    high: [u64; 2],
    /// The lower end's port above the higher end's.
    ports: u32,
    /// Keeps flows in different tunnels apart: 0, or a number made of the tunnel's identifiers.
    pub realm: u32,
}

impl FlowKey {
    /// The key of a packet, and whether its sender is the lower end.
    #[must_use]
    #[inline]
    pub fn new(
        source: &[u8; 16],
        source_port: u16,
        destination: &[u8; 16],
        destination_port: u16,
        realm: u32,
    ) -> (FlowKey, bool) {
        let mut key = FlowKey::default();
        let from_low = key.set(source, source_port, destination, destination_port, realm);
        (key, from_low)
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

    /// Makes it the key of a packet, and returns whether the sender is the lower end.
    #[inline(always)]
    pub(crate) fn set(
        &mut self,
        source: &[u8; 16],
        source_port: u16,
        destination: &[u8; 16],
        destination_port: u16,
        realm: u32,
    ) -> bool {
        let (source, destination) = (halves(source), halves(destination));
        let from_low = (source, source_port) <= (destination, destination_port);
        self.realm = realm;
        if from_low {
            (self.low, self.high) = (source, destination);
            self.ports = u32::from(source_port) << 16 | u32::from(destination_port);
        } else {
            (self.low, self.high) = (destination, source);
            self.ports = u32::from(destination_port) << 16 | u32::from(source_port);
        }
        from_low
    }

    /// Address and port of one end.
    #[must_use]
    pub fn end(&self, low: bool) -> (IpAddr, u16) {
        let (address, port) = if low {
            (self.low, self.low_port())
        } else {
            (self.high, self.high_port())
        };
        let bits = u128::from(address[0]) << 64 | u128::from(address[1]);
        (Ipv6Addr::from_bits(bits).to_canonical(), port)
    }

    /// A hash that is the same for both directions. The same seed gives the same hash on every
    /// machine, so that several machines agree on the part that a flow belongs to. Otherwise use an
    /// unpredictable seed, so that a hostile capture cannot fill one bucket.
    #[must_use]
    #[inline]
    pub fn hash(&self, seed: u64) -> u64 {
        let mut hasher = FixedState::with_seed(seed).build_hasher();
        hasher.write_u64(self.low[0] ^ self.high[0].rotate_left(17));
        hasher.write_u64(self.low[1]);
        hasher.write_u64(self.high[1]);
        hasher.write_u64(u64::from(self.ports) << 32 | u64::from(self.realm));
        hasher.finish()
    }

    /// Reads one number of it.
    #[inline]
    pub(crate) const fn touch(&self) -> u64 {
        self.low[1]
    }

    /// Everything in it, as numbers.
    pub(crate) const fn parts(&self) -> [u64; 6] {
        let ([a, b], [c, d]) = (self.low, self.high);
        [a, b, c, d, self.ports as u64, self.realm as u64]
    }

    /// Reverses [`FlowKey::parts`].
    pub(crate) const fn from_parts([a, b, c, d, ports, realm]: [u64; 6]) -> FlowKey {
        FlowKey {
            low: [a, b],
            high: [c, d],
            ports: ports as u32,
            realm: realm as u32,
        }
    }
}

#[inline]
fn halves(address: &[u8; 16]) -> [u64; 2] {
    let (high, low) = address.split_at(8);
    let half = |octets: &[u8]| u64::from_be_bytes(octets.try_into().unwrap_or_default());
    [half(high), half(low)]
}
