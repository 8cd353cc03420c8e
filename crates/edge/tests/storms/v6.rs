//! IPv6 in the storms: pools, what clients ask for on their links, and invariants of prefixes.

use core::net::{IpAddr, Ipv6Addr};
use std::collections::HashSet;

use aaa::Prefix;
use aaa::prefixes::PrefixSpec;
use base::Duration;
use edge::Edge;
use edge::v6::{Settings, link_local};
use sim::Rng;
use wire::dhcpv6::{ALL_SERVERS, Kind, Writer, code};
use wire::ndp;

use crate::state::subscribers;

pub(crate) fn prefix(text: &str) -> Prefix {
    let (address, length) = text.split_once('/').expect("a length");
    Prefix::new(
        address.parse().expect("an address"),
        length.parse().expect("a length"),
    )
    .expect("no bits behind its length")
}

/// What an edge serves: mostly everything, from pools that are small or large.
pub(crate) fn settings(rng: &mut Rng) -> Settings {
    let some = |rng: &mut Rng, name: &str| rng.chance(0.8).then(|| name.into());
    Settings {
        pool: some(rng, "links"),
        delegated_pool: some(rng, "homes"),
        address_pool: some(rng, "hosts"),
        interval: Duration::from_secs([5, 60, 600][rng.below(3) as usize]),
        valid_s: [60, 600, 86_400][rng.below(3) as usize],
        preferred_s: 30,
        interim_on_change: rng.chance(0.5),
        ..Settings::default()
    }
}

pub(crate) fn specs(rng: &mut Rng) -> Vec<PrefixSpec> {
    let sticky = rng.chance(0.5);
    let spec = |name: &str, ranges: [&str; 2], length, at: u64| PrefixSpec {
        name: name.into(),
        ranges: vec![prefix(ranges[at as usize])],
        length,
        excluded: Vec::new(),
        sticky,
    };
    vec![
        spec(
            "links",
            ["2001:db8:1::/62", "2001:db8:1::/48"],
            64,
            rng.below(2),
        ),
        spec(
            "homes",
            ["2001:db8:8000::/54", "2001:db8:8000::/40"],
            56,
            rng.below(2),
        ),
        spec(
            "hosts",
            ["2001:db8:2::/126", "2001:db8:2::/112"],
            128,
            rng.below(2),
        ),
    ]
}

/// A frame that a client's host may send on its link: a solicitation, or a message of DHCPv6.
pub(crate) fn frame(rng: &mut Rng, own: u64) -> Vec<u8> {
    let own = link_local(own);
    let mut frame = vec![0xff, 3, 0, 0x57];
    if rng.chance(0.2) {
        ndp::write_solicitation(own, &mut frame);
        return frame;
    }
    let kinds = [
        Kind::Solicit,
        Kind::Request,
        Kind::Request,
        Kind::Renew,
        Kind::Rebind,
        Kind::Release,
    ];
    let kind = kinds[rng.below(kinds.len() as u64) as usize];
    let to_us = matches!(kind, Kind::Request | Kind::Renew | Kind::Release);
    let mut content = Vec::new();
    let mut out = Writer::new(kind, [1, 2, 3], &mut content);
    out.option(
        code::CLIENT_ID,
        &[&[0, 3, 0, 1, 2, 0, 0, 0, 0], &[rng.below(2) as u8]],
    );
    if to_us {
        out.option(code::SERVER_ID, &[&Settings::default().duid]);
    }
    if rng.chance(0.3) {
        out.option(code::RAPID_COMMIT, &[]);
    }
    for code in [code::IA_PD, code::IA_NA] {
        if rng.chance(0.7) {
            out.association(code, [rng.below(2) as u32, 0, 0], |_| {});
        }
    }
    ndp::write_packet([own, ALL_SERVERS], (17, 6, 1), &mut frame, |out| {
        for word in [546, 547, content.len() as u16 + 8, 0] {
            out.extend_from_slice(&u16::to_be_bytes(word));
        }
        out.extend_from_slice(&content);
    });
    frame
}

/// Each prefix has one subscriber, which has its route; pools hold these and no others. Returns how many there are.
pub(crate) fn check(edge: &Edge) -> usize {
    let mut all = HashSet::new();
    for one in subscribers(edge).filter(|one| !one.is_client) {
        let leases = one.leases;
        for held in [leases.prefix, leases.delegated, leases.address]
            .into_iter()
            .flatten()
        {
            assert!(all.insert(held), "{held} is held twice");
            let holder = edge.prefixes().holder(held).expect("its pool knows");
            assert_eq!(holder.0, one.key.to_token());
            let IpAddr::V6(first) = held.address() else {
                panic!("{held}");
            };
            let inner = Ipv6Addr::from_bits(first.to_bits() | u128::from(held.length() < 128));
            assert_eq!(edge.at_address(inner.into()), Some(one.key), "{held}");
        }
    }
    let used: u32 = edge.prefixes().views().map(|pool| pool.used).sum();
    let held = used as usize + edge.prefixes().outside().held;
    assert_eq!(held, all.len(), "no prefix leaks");
    all.len()
}
