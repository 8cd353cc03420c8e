//! What holds of an edge at any time, and once everybody has gone.

use core::net::{IpAddr, Ipv6Addr};
use std::collections::{HashMap, HashSet};

use aaa::pools::Holder;
use edge::access::{Access, Served};
use edge::{Edge, Phase, SubscriberKey, SubscriberView};

use crate::books::same;
use crate::node::{Node, VLANS, vlan};

pub(crate) fn subscribers(edge: &Edge<Served>) -> impl Iterator<Item = SubscriberView<'_, Served>> {
    let mut cursor = 0;
    core::iter::from_fn(move || {
        let (next, view) = edge.next_subscriber(cursor)?;
        cursor = next;
        Some(view)
    })
}

/// What holds at any time.
pub(crate) fn check(node: &mut Node) {
    let edge = &node.edge;
    let mut phases = [0; Phase::ALL.len()];
    let mut held = HashMap::new();
    let mut up = HashSet::new();
    for one in subscribers(edge).filter(|one| !one.is_client) {
        phases[one.phase as usize] += 1;
        node.books.seen.insert(one.key);
        assert!(
            !node.books.gone.contains(&one.key),
            "{:?} is there after its end",
            one.key
        );
        assert!(
            Access::session(edge.endpoint(), one.session).is_some(),
            "no session"
        );
        if one.up.is_some() {
            up.insert(one.key);
        }
        if let Some(address) = one.address {
            let other = held.insert(address, one.key);
            assert_eq!(other, None, "{address} is held twice");
            let holder = edge.pools().holder(address);
            assert_eq!(holder, Some(Holder(one.key.to_token())), "{address}");
        }
    }
    let counted = Phase::ALL.map(|phase| edge.subscribers_in(phase));
    if edge.config().accounting {
        assert_eq!(counted, phases, "counts by phase and a walk");
    }
    let pools = edge.pools();
    let used: u32 = pools.views().map(|pool| pool.used).sum();
    assert_eq!(
        used as usize + pools.outside().held,
        held.len(),
        "no address leaks"
    );
    same("subscribers and events", &up, &node.books.up);
    node.books.check(edge.config().accounting);
    check_prefixes(edge);
    check_blocks(node);
    check_limits(node);
}

/// Each prefix has one subscriber; the pools hold these and no others.
fn check_prefixes(edge: &Edge<Served>) {
    let mut all = HashSet::new();
    for one in subscribers(edge).filter(|one| !one.is_client) {
        let leases = one.leases;
        for held in [leases.prefix, leases.delegated, leases.address]
            .into_iter()
            .flatten()
        {
            assert!(all.insert(held), "{held} is held twice");
            let holder = edge.prefixes().holder(held);
            assert_eq!(holder, Some(Holder(one.key.to_token())), "{held}");
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
}

/// Each port block has one subscriber, which is there.
fn check_blocks(node: &Node) {
    let Some(nat) = node.edge.nat() else { return };
    let blocks = &node.books.blocks;
    for block in blocks.values() {
        for port in [block.first, block.last] {
            let owner = nat.owner_of(block.external, port);
            assert_eq!(owner, Some(*block), "port {port} of {block:?}");
        }
        let key = SubscriberKey::from_token(block.tag);
        assert!(
            node.edge.subscriber(key).is_some(),
            "{block:?} is of nobody"
        );
    }
    let (mut cursor, mut count) = (0, 0);
    while let Some((next, one)) = nat.next_subscriber(cursor) {
        cursor = next;
        count += usize::from(one.blocks);
    }
    assert_eq!(
        count,
        blocks.len(),
        "blocks of subscribers, and blocks in the log"
    );
    assert!(nat.counters().mappings <= nat.config().limits.mappings_max);
}

/// Tables stay within their limits.
fn check_limits(node: &Node) {
    let edge = &node.edge;
    let config = edge.config();
    let counts = edge.counts();
    assert!(counts.subscribers <= config.subscribers_max as usize);
    assert!(counts.routes <= config.routes_max as usize);
    let hosts = edge.endpoint().pppoe();
    let limits = hosts.config().limits;
    assert!(
        hosts.count() <= limits.sessions_max as usize,
        "{}",
        hosts.count()
    );
    assert!(
        hosts.half_open() <= limits.half_open_max,
        "{}",
        hosts.half_open()
    );
    let half_open = hosts
        .sessions()
        .filter(|one| one.phase == pppoe::Phase::HalfOpen);
    assert_eq!(half_open.count(), hosts.half_open() as usize);
    // A VLAN or an interface that is gone has no sessions.
    for one in hosts
        .sessions()
        .filter(|one| one.role == pppoe::Role::Server)
    {
        let number = (0..VLANS).find(|&number| vlan(number) == one.route.vlans);
        assert!(
            node.has_vlan[number.expect("one of two") as usize],
            "{:?}",
            one.route
        );
        assert!(hosts.port(0).is_some(), "{:?}", one.route);
    }
}

/// Nobody is left, and nothing that belonged to a subscriber.
pub(crate) fn assert_nobody(node: &mut Node, name: &str) {
    check(node);
    let edge = &node.edge;
    let counts = edge.counts();
    assert_eq!((counts.subscribers, counts.routes), (0, 0), "{name}");
    assert_eq!(edge.endpoint().pppoe().count(), 0, "{name}");
    assert_eq!(edge.endpoint().pppoe().half_open(), 0, "{name}");
    assert_eq!(edge.endpoint().l2tp().counts().sessions, 0, "{name}");
    assert_eq!(edge.switch_counts().sessions, 0, "{name}");
    assert!(
        node.books.sessions.is_empty(),
        "{name}: {:?}",
        node.books.sessions
    );
    same(
        "subscribers that were seen and that ended",
        &node.books.seen,
        &{
            let seen = node
                .books
                .gone
                .iter()
                .filter(|key| node.books.seen.contains(key));
            seen.copied().collect()
        },
    );
    let ended: u64 = node.books.reasons.values().sum();
    assert_eq!(ended, counts.down, "{name}: every end has a reason");
    node.books.closed();
    if let Some(nat) = edge.nat() {
        let counters = nat.counters();
        assert_eq!(
            (counters.mappings, counters.subscribers, counters.sessions),
            (0, 0, 0)
        );
        let (free, waiting, all) = nat.blocks();
        assert_eq!(
            (free, waiting),
            (all, 0),
            "{name}: every port block is free"
        );
    }
}

/// No timer is left either.
pub(crate) fn assert_still(node: &Node, name: &str) {
    assert!(node.edge.is_quiet(), "{name}");
    assert_eq!(node.edge.poll_timeout(), None, "{name}");
    assert_eq!(
        node.edge.endpoint().l2tp().counts(),
        l2tp::Counts::default(),
        "{name}"
    );
}
