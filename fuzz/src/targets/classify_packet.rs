//! Classifiers on arbitrary packets: compiled rules agree with the rules, maps agree with arithmetic.

use core::net::{Ipv4Addr, Ipv6Addr};

use qos::classify::{Filter, FlowMatch, Hash, Key, KeySet, Map, Mark, Match, Ports, Prefix};
use wire::flow::{Dscp, Keys};

/// Takes 64 octets that define rules and a map, and a frame.
///
/// # Panics
/// If a class is not that of the first matching rule, or not the map's.
pub fn target(data: &[u8]) {
    let Some((head, frame)) = data.split_first_chunk::<64>() else {
        return;
    };
    let mut keys = Keys::read_frame(frame);
    keys.mark = word(head, 0);
    let rules = [rule(head, &keys, 4), rule(head, &keys, 24)];
    let filter = Filter::new(rules.into_iter().zip(1..));
    let expected = rules.iter().position(|rule| rule.matches(&keys));
    assert_eq!(filter.class(&keys), expected.map(|index| index as u32 + 1));

    let map = Map {
        key: Key::ALL[usize::from(head[44]) % Key::ALL.len()],
        mask: word(head, 45),
        xor: word(head, 49),
        rshift: u32::from(head[53] % 40),
        addend: word(head, 54),
        divisor: u32::from(head[58]),
        baseclass: word(head, 60),
    };
    let value = u64::from((map.key.value(&keys) & map.mask) ^ map.xor) >> map.rshift;
    let value = (value + u64::from(map.addend)) & 0xffff_ffff;
    let value = value % u64::from(map.divisor).max(1 << 32 >> (32 * u64::from(map.divisor != 0)));
    let class = (map.baseclass & 0xffff_0000) as u64 | (u64::from(map.baseclass) + value) & 0xffff;
    assert_eq!(u64::from(map.class(&keys)), class);

    let set = KeySet::of(&Key::ALL[..usize::from(head[59]) % Key::ALL.len()]);
    let hash = Hash::new(
        set,
        u32::from(head[58]),
        u64::from(word(head, 45)),
        map.baseclass,
    );
    assert!(head[58] == 0 || hash.bucket(&keys) < u32::from(head[58]));
    assert_eq!(hash.class(&keys) >> 16, map.baseclass >> 16);
}

/// A rule from 20 octets, with the packet's own values in it if the octets ask for them.
fn rule(head: &[u8; 64], keys: &Keys, at: usize) -> Match {
    let asked = |of: u8, own: &wire::flow::Flow| FlowMatch {
        src: flag(of, 0).then(|| prefix(word(head, at), own.source)),
        dst: flag(of, 1).then(|| prefix(word(head, at + 4), own.destination)),
        proto: flag(of, 2).then_some(if flag(of, 3) { own.protocol as u8 } else { of }),
        proto_src: flag(of, 4).then_some(Ports {
            low: 0,
            high: u16::from(head[at + 8]) << 8,
        }),
        proto_dst: flag(of, 5).then_some(Ports::one(if flag(of, 6) {
            own.destination_port
        } else {
            u16::from(head[at + 8])
        })),
    };
    let others = head[at + 9];
    Match {
        outer: asked(head[at + 10], &keys.outer),
        tunnel: asked(head[at + 11], &keys.inner),
        innermost: asked(head[at + 12], keys.innermost()),
        dscp: flag(others, 0).then_some(Dscp::of(head[at + 13])),
        mark: flag(others, 1).then_some(Mark {
            value: word(head, at + 14),
            mask: u32::from(head[at + 18]),
        }),
        vlan: flag(others, 2).then_some(u16::from(head[at + 19])),
    }
}

/// A prefix of an address, or an all-zero one.
fn prefix(bits: u32, address: [u8; 16]) -> Prefix {
    let address = Ipv6Addr::from(if bits & 1 == 0 { address } else { [0; 16] });
    let found = match address.to_ipv4_mapped() {
        Some(address) => {
            let length = (bits >> 8) % 33;
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            let address = Ipv4Addr::from_bits(address.to_bits() & mask);
            Prefix::new(address.into(), length as u8)
        }
        None => {
            let length = (bits >> 8) % 129;
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            let address = Ipv6Addr::from_bits(address.to_bits() & mask);
            Prefix::new(address.into(), length as u8)
        }
    };
    found.expect("no bits behind it")
}

fn flag(octet: u8, bit: u32) -> bool {
    octet >> bit & 1 == 1
}

fn word(head: &[u8; 64], at: usize) -> u32 {
    u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}
