//! Invariants of an edge at any time, and after everything has ended.

use std::collections::HashSet;
use std::net::IpAddr;

use aaa::accounting::TerminateCause;
use edge::{Edge, Phase, Refusal, SubscriberView};
use l2tp::SessionState;

use crate::node::Node;
use crate::v6;

pub(crate) fn subscribers(edge: &Edge) -> impl Iterator<Item = SubscriberView<'_>> {
    let mut cursor = 0;
    core::iter::from_fn(move || {
        let (next, view) = edge.next_subscriber(cursor)?;
        cursor = next;
        Some(view)
    })
}

pub(crate) fn sessions(edge: &Edge) -> impl Iterator<Item = l2tp::SessionView<'_>> {
    let mut cursor = 0;
    core::iter::from_fn(move || {
        let (next, view) = edge.endpoint().next_session(cursor)?;
        cursor = next;
        Some(view)
    })
}

/// Held pool addresses.
pub(crate) fn used(edge: &Edge) -> u32 {
    edge.pools().views().map(|pool| pool.used).sum()
}

/// Invariants at any time.
pub(crate) fn check(node: &Node, is_client_side: bool) {
    let edge = &node.edge;
    let (mut in_pools, mut routes_max, mut held) = (0, 0, HashSet::new());
    let mut phases = [0; Phase::ALL.len()];
    for one in subscribers(edge) {
        phases[one.phase as usize] += 1;
        assert_eq!(one.is_client, is_client_side);
        let session = edge.endpoint().session(one.session);
        let session = session.unwrap_or_else(|| panic!("{:?} has no session", one.key));
        assert_eq!(session.state, SessionState::Established);
        let twin = edge
            .subscriber_in(one.session)
            .expect("it has a subscriber");
        assert_eq!(twin.key, one.key);
        let is_in = matches!(one.phase, Phase::Networks | Phase::Up);
        if is_in && !one.name.is_empty() {
            let mut found = edge.find(one.name);
            assert!(
                found.any(|key| key == one.key),
                "{:?} is not found",
                one.key
            );
        }
        let is_up = node.books.is_up(one.key);
        assert_eq!(is_up, one.up.is_some());
        assert!(one.phase != Phase::Up || is_up);
        if let Some(address) = one.address.filter(|_| !is_client_side) {
            assert!(held.insert(address), "{address} is held twice");
            in_pools += u32::from(address.octets()[0] == 10);
            assert_eq!(edge.at_address(IpAddr::V4(address)), Some(one.key));
        }
        if one.link.is_open(false) {
            let address = one.address.expect("IPCP is open");
            let found = edge.at_address(IpAddr::V4(address));
            assert_eq!(found, Some(one.key), "packets to {address}");
        }
        let networks = one.profile.map_or(0, |profile| profile.routes.len());
        routes_max += networks + 1;
    }
    routes_max += v6::check(edge);
    let counted = Phase::ALL.map(|phase| edge.subscribers_in(phase));
    assert_eq!(counted, phases, "counts by phase and a walk");
    assert_eq!(used(edge), in_pools, "addresses of pools");
    assert!(edge.counts().routes <= routes_max, "{:?}", edge.counts());
    let up = subscribers(edge).filter(|one| one.up.is_some()).count();
    assert_eq!(node.books.up(), up);
    node.books.check(is_client_side);
    let counts = edge.counts();
    let ends = node.books.ends.len() as u64;
    assert_eq!((counts.up, counts.down), (node.books.came_up, ends));
    for cause in TerminateCause::ALL {
        let told = node.books.ends.iter();
        let told = told.filter(|end| end.terminate_cause() == cause).count() as u64;
        assert_eq!(counts.ends.of(cause), told, "{}", cause.name());
    }
    let without_answer = counts.refusals.of(Refusal::Timeout) + counts.too_many;
    assert_eq!(
        counts.refusals.total(),
        counts.refused + counts.without_address + without_answer
    );
}

/// Nothing is left but internal state that no view shows.
pub(crate) fn assert_empty(node: &Node, name: &str) {
    let edge = &node.edge;
    check(node, false);
    let counts = edge.counts();
    assert_eq!((counts.subscribers, counts.routes), (0, 0), "{name}");
    assert_eq!(used(edge), 0, "{name}");
    assert_eq!(edge.endpoint().counts(), Default::default(), "{name}");
    assert!(edge.is_quiet(), "{name}");
    assert_eq!(edge.poll_timeout(), None, "{name}");
    for number in 0..=u8::MAX {
        let user = format!("user{number}");
        assert_eq!(edge.find(user.as_bytes()).count(), 0, "{name}: {user}");
        for address in [
            [10, 0, 0, number],
            [10, 77, 0, number],
            [172, 16, 0, number],
        ] {
            assert_eq!(edge.at_address(IpAddr::from(address)), None, "{name}");
        }
    }
}
