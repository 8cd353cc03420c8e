//! What a subscriber gets once it was let in: from the users file, or from a RADIUS server's Access-Accept.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr};

use base::Duration;

/// Which IPv4 address a subscriber is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Address {
    /// One of a pool (Framed-IP-Address 255.255.255.254, or none given).
    #[default]
    FromPool,
    /// The one that it asks for itself, where that is free (Framed-IP-Address 255.255.255.255).
    ItsOwn,
    /// This one.
    Fixed(Ipv4Addr),
}

/// A network: an address and how many of its first bits count. The others are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// A network; `None` if the length is longer than the address, or bits behind it are set.
    #[must_use]
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let (bits, width) = match address {
            IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        let beyond = bits.checked_shl(u32::from(length)).unwrap_or(0);
        (length <= width && beyond == 0).then_some(Self { address, length })
    }

    /// Its first address.
    #[must_use]
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// How many bits count.
    #[must_use]
    pub fn length(self) -> u8 {
        self.length
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// What a subscriber gets; what is not said is the edge's default.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Profile {
    /// Its IPv4 address.
    pub address: Address,
    /// The pool that it is from (Framed-Pool); none: the edge's first.
    pub pool: Option<Box<str>>,
    /// Networks behind it (Framed-Route, Framed-IPv6-Route).
    pub routes: Vec<Prefix>,
    /// The filter that its packets pass (Filter-Id).
    pub filter: Option<Box<str>>,
    /// It ends after so long (Session-Timeout).
    pub session_timeout: Option<Duration>,
    /// It ends after so long without a packet of data (Idle-Timeout).
    pub idle_timeout: Option<Duration>,
    /// It is accounted for so often while it is up (Acct-Interim-Interval).
    pub interim_interval: Option<Duration>,
    /// What the server wants to see in each record, in its order (Class).
    pub class: Vec<Box<[u8]>>,
    /// The name to account for, where it is not the one that was claimed (User-Name in an Access-Accept).
    pub name: Option<Box<str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_no_bits_behind_its_length() {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        for (text, length, good) in [
            ("10.0.0.0", 8, true),
            ("10.0.0.1", 8, false),
            ("10.0.0.1", 32, true),
            ("10.0.0.1", 33, false),
            ("0.0.0.0", 0, true),
            ("2001:db8::", 32, true),
            ("2001:db8::1", 127, false),
            ("2001:db8::1", 128, true),
            ("::", 129, false),
        ] {
            let network = Prefix::new(address(text), length);
            assert_eq!(network.is_some(), good, "{text}/{length}");
        }
    }
}
