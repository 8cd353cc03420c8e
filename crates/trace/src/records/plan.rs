//! Which packets and flows are analysed, and what keeps flows apart.

use wire::packet::Layer;

use crate::analyzer::Config;
use crate::key::FlowKey;

/// The choices that each packet's analysis looks at; made of [`Options`](crate::Options).
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub(crate) config: Config,
    /// Number of the first packet to analyse.
    pub(crate) first: u64,
    /// Number of the last packet to analyse.
    pub(crate) last: u64,
    /// Part K, from 0, of N; N is 1 for the whole capture.
    pub(crate) part: (u32, u32),
    /// Tunnels keep flows with the same addresses apart.
    pub(crate) realm: bool,
    /// Verify checksums.
    pub(crate) checksums: bool,
}

impl Plan {
    /// Seed of the hashes of flows.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.config.seed
    }

    /// Whether the flow belongs to the part that is analysed.
    #[must_use]
    pub fn has(&self, key: &FlowKey) -> bool {
        self.has_hash(key.hash(self.config.seed))
    }

    /// Whether the flow with that hash belongs to the part that is analysed.
    #[inline]
    pub(crate) fn has_hash(&self, hash: u64) -> bool {
        let (part, parts) = self.part;
        parts <= 1 || hash % u64::from(parts) == u64::from(part)
    }

    /// A number that keeps flows with the same addresses and ports apart if they are in different tunnels; 0 outside of
    /// tunnels, and for all unless [`Options::tunnels_apart`](crate::Options::tunnels_apart) is set.
    #[inline]
    #[must_use]
    pub fn realm_of(&self, layers: &[Layer]) -> u32 {
        if self.realm && !layers.is_empty() {
            realm(layers)
        } else {
            0
        }
    }
}

/// A number for the tunnel that carries a packet, the same in both directions: it is a hash of the fields that both
/// directions share, which are VLANs, outer addresses and some tunnels' identifiers.
#[cold]
#[inline(never)]
fn realm(layers: &[Layer]) -> u32 {
    // FNV-1a: all parts of a capture must compute the same number, on any machine.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |value: u64| {
        for octet in value.to_be_bytes() {
            hash = (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for layer in layers {
        match *layer {
            Layer::Vlan { id, .. } => mix(1 << 32 | u64::from(id)),
            Layer::Pppoe { session } => mix(2 << 32 | u64::from(session)),
            Layer::Vxlan { vni } => mix(3 << 32 | u64::from(vni)),
            Layer::Geneve { vni } => mix(4 << 32 | u64::from(vni)),
            Layer::Gre { key: Some(key) } => mix(5 << 32 | u64::from(key)),
            Layer::Ipv4 {
                source,
                destination,
            } => {
                let (low, high) =
                    ordered(u32::from_be_bytes(source), u32::from_be_bytes(destination));
                mix(u64::from(low) << 32 | u64::from(high));
            }
            Layer::Ipv6 {
                source,
                destination,
            } => {
                let (low, high) = ordered(
                    u128::from_be_bytes(source),
                    u128::from_be_bytes(destination),
                );
                for part in [low >> 64, low, high >> 64, high] {
                    mix(part as u64);
                }
            }
            // The two directions of L2TP, PPTP and GTP have identifiers of their own: see `realms`.
            Layer::Mpls { .. }
            | Layer::Ppp
            | Layer::Gre { key: None }
            | Layer::Pptp { .. }
            | Layer::L2tp { .. }
            | Layer::Gtp { .. }
            | Layer::EtherIp => {}
        }
    }
    // 0 means no tunnel.
    (hash ^ hash >> 32) as u32 | 1
}

fn ordered<T: Ord>(one: T, other: T) -> (T, T) {
    if one <= other {
        (one, other)
    } else {
        (other, one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_of_a_tunnel_are_one_realm() {
        let there = [
            Layer::Vlan {
                id: 5,
                tpid: 0x8100,
            },
            Layer::Ipv4 {
                source: [1, 2, 3, 4],
                destination: [9, 8, 7, 6],
            },
            Layer::L2tp {
                version: 2,
                tunnel: 1,
                session: 2,
            },
        ];
        let mut back = there;
        back[1] = Layer::Ipv4 {
            source: [9, 8, 7, 6],
            destination: [1, 2, 3, 4],
        };
        back[2] = Layer::L2tp {
            version: 2,
            tunnel: 77,
            session: 88,
        };
        assert_eq!(realm(&there), realm(&back));
        back[0] = Layer::Vlan {
            id: 6,
            tpid: 0x8100,
        };
        assert_ne!(realm(&there), realm(&back));
    }
}
