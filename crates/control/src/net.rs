//! A network in CIDR notation, as a supply of source addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An address prefix such as `127.1.0.0/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Net {
    addr: IpAddr,
    length: u8,
}

impl Net {
    /// How many addresses [`Net::nth`] gives before it starts again.
    pub fn addresses(&self) -> u64 {
        let bits = self.host_bits();
        if self.leaves_out_ends() {
            (1 << bits) - 2
        } else {
            1 << bits.min(63)
        }
    }

    /// The `n`-th address, starting over after the last. Of an IPv4 network the
    /// network and the broadcast address are left out.
    pub fn nth(&self, n: u64) -> IpAddr {
        let offset = u128::from(n % self.addresses()) + u128::from(self.leaves_out_ends());
        match self.addr {
            IpAddr::V4(ip) => Ipv4Addr::from_bits(ip.to_bits() | offset as u32).into(),
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() | offset).into(),
        }
    }

    /// Whether these are IPv4 addresses.
    pub fn is_ipv4(&self) -> bool {
        self.addr.is_ipv4()
    }

    fn host_bits(&self) -> u32 {
        let width = if self.is_ipv4() { 32 } else { 128 };
        width - u32::from(self.length)
    }

    fn leaves_out_ends(&self) -> bool {
        self.is_ipv4() && self.host_bits() >= 2
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr, self.length)
    }
}

impl FromStr for Net {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let example = "write it like 127.1.0.0/16";
        let (addr, length) = text
            .split_once('/')
            .ok_or_else(|| format!("\"{text}\" has no prefix length; {example}"))?;
        let addr: IpAddr = addr
            .parse()
            .map_err(|_| format!("\"{addr}\" is no IP address; {example}"))?;
        let width = if addr.is_ipv4() { 32 } else { 128 };
        let length: u8 = length
            .parse()
            .ok()
            .filter(|length| *length <= width)
            .ok_or_else(|| format!("/{length} is no prefix length; it must be 0 to {width}"))?;
        let host_bits = u32::from(width - length);
        let outside = match addr {
            IpAddr::V4(ip) => u64::from(ip.to_bits()) & ((1 << host_bits) - 1) != 0,
            IpAddr::V6(ip) => {
                let mask = 1_u128.checked_shl(host_bits).unwrap_or(0).wrapping_sub(1);
                ip.to_bits() & mask != 0
            }
        };
        if outside {
            return Err(format!(
                "{addr} has bits set beyond its prefix of {length}; {example}"
            ));
        }
        Ok(Self { addr, length })
    }
}

impl TryFrom<String> for Net {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Net> for String {
    fn from(net: Net) -> String {
        net.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> Net {
        text.parse().unwrap()
    }

    #[test]
    fn gives_host_addresses_in_turn_and_starts_again() {
        let addrs: Vec<String> = (0..3)
            .map(|n| net("10.0.0.0/30").nth(n).to_string())
            .collect();
        assert_eq!(addrs, ["10.0.0.1", "10.0.0.2", "10.0.0.1"]);
        assert_eq!(net("127.0.0.1/32").nth(9).to_string(), "127.0.0.1");
        assert_eq!(net("2001:db8::/64").nth(1).to_string(), "2001:db8::1");
        assert_eq!(net("0.0.0.0/0").addresses(), (1 << 32) - 2);
        assert_eq!(net("::/0").nth(5).to_string(), "::5");
    }

    #[test]
    fn refuses_what_is_no_network() {
        for text in [
            "10.0.0.0",
            "10.0.0.0/33",
            "10.0.0.1/24",
            "host/8",
            "::1/64",
            "1.2.3.4/-1",
        ] {
            assert!(text.parse::<Net>().is_err(), "{text}");
        }
    }
}
