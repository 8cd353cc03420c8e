//! Community ID, version 1: a hash of a flow's ends, by which Zeek, Suricata, Arkime and others name it.
//!
//! <https://github.com/corelight/community-id-spec>: the SHA-1 of seed, addresses, protocol, a zero octet and ports, the
//! lower end first, as Base64 after `1:`. The seed is 0.

use core::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};

/// The Community ID of a TCP (6) or UDP (17) flow between two ends, in either order.
#[must_use]
pub fn community_id(protocol: u8, one: (IpAddr, u16), other: (IpAddr, u16)) -> String {
    let (low, high) = if one <= other {
        (one, other)
    } else {
        (other, one)
    };
    let mut hash = Sha1::new();
    hash.update([0, 0]);
    for (address, _) in [low, high] {
        match address {
            IpAddr::V4(address) => hash.update(address.octets()),
            IpAddr::V6(address) => hash.update(address.octets()),
        }
    }
    hash.update([protocol, 0]);
    for (_, port) in [low, high] {
        hash.update(port.to_be_bytes());
    }
    format!("1:{}", STANDARD.encode(hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The baseline of the specification, for captures of its repository.
    #[test]
    fn the_published_vectors_come_out() {
        for (protocol, one, other, expected) in [
            (
                6,
                ("128.232.110.120", 34855),
                ("66.35.250.204", 80),
                "1:LQU9qZlK+B5F3KDmev6m5PMibrg=",
            ),
            (
                6,
                ("66.35.250.204", 80),
                ("128.232.110.120", 34855),
                "1:LQU9qZlK+B5F3KDmev6m5PMibrg=",
            ),
            (
                17,
                ("192.168.1.52", 54585),
                ("8.8.8.8", 53),
                "1:d/FP5EW3wiY1vCndhwleRRKHowQ=",
            ),
            (
                6,
                ("2607:f8b0:400c:c03::1a", 25),
                ("2001:470:e5bf:dead:4957:2174:e82c:4887", 63943),
                "1:/qFaeAR+gFe1KYjMzVDsMv+wgU4=",
            ),
        ] {
            let end = |(address, port): (&str, u16)| (address.parse().unwrap(), port);
            assert_eq!(community_id(protocol, end(one), end(other)), expected);
        }
    }
}
