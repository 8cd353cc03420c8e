//! Which route is the best, and why: RFC 4271, section 9.1.2.2; RFC 4456, section 9; RFC 5004.

use proptest::prelude::*;
use wire::bgp::attr::code;

use super::*;
use crate::rib::Reason;

const P: &str = "10.0.0.0/8";

fn reasons(net: &Net) -> Vec<String> {
    net.rib
        .reasons(p(P))
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn internal(local_pref: u32, asns: &[u32]) -> Said {
    Said::path(asns).number(code::LOCAL_PREF, local_pref)
}

/// Peers 1 to 4 are in AS 64501 to 64504, peers 5 and 6 in ours.
fn net() -> Net {
    let mut net = Net::new();
    for n in 1..=6 {
        net.open(n, if n < 5 { 64_500 + n } else { ASN });
    }
    net
}

#[test]
fn each_step_decides_in_its_order_and_says_so() {
    let mut net = net();
    net.say(6, &internal(90, &[64_501]), &[P]);
    net.say(5, &internal(100, &[64_501]), &[P]);
    assert_eq!(reasons(&net), ["best", "local preference 90 < 100"]);
    net.say(1, &Said::path(&[64_501, 7, 8]), &[P]);
    assert_eq!(reasons(&net)[0], "AS path 3 > 1");
    net.say(1, &Said::path(&[64_501]), &[P]);
    assert_eq!(reasons(&net)[1], "internal, the best is external");
    let mut egp = Said::path(&[64_502]);
    egp.raw[3] = 1;
    net.say(2, &egp, &[P]);
    assert_eq!(reasons(&net)[1], "origin EGP > IGP");
    net.say(2, &Said::path(&[64_502]), &[P]);
    assert_eq!(reasons(&net)[1], "router id 1.1.1.2 > 1.1.1.1");
    net.rib.originate(p(P), &LocalRoute::default());
    assert_eq!(reasons(&net)[0], "the best is our own");
    assert_eq!(reasons(&net)[4], "best");
}

#[test]
fn a_med_counts_among_routes_of_one_neighbouring_as_only() {
    let mut net = net();
    // Two routes of AS 64501 through two of our peers, and one of AS 64502 with a higher MED.
    let said = |asn: u32, med: u32| internal(100, &[asn]).number(code::MED, med);
    net.say(5, &said(64_501, 20), &[P]);
    net.say(6, &said(64_501, 10), &[P]);
    assert_eq!(reasons(&net), ["MED 20 > 10 of AS 64501", "best"]);
    net.say(2, &Said::path(&[64_502]).number(code::MED, 30), &[P]);
    assert_eq!(
        reasons(&net)[0],
        "best",
        "an external route of another AS, whatever its MED"
    );
    assert_eq!(
        reasons(&net)[1],
        "MED 20 > 10 of AS 64501",
        "not by the best one"
    );
    // A missing MED counts as the lowest.
    net.unsay(2, &[P]);
    net.say(5, &internal(100, &[64_501]), &[P]);
    assert_eq!(reasons(&net), ["best", "MED 10 > 0 of AS 64501"]);
}

#[test]
fn reflected_routes_are_told_apart_by_originator_and_then_by_clusters() {
    let mut net = net();
    let said = |originator: u32, clusters: &[u8]| {
        internal(100, &[7])
            .number(code::ORIGINATOR_ID, originator)
            .with(code::CLUSTER_LIST, clusters)
    };
    net.say(5, &said(9, &[9, 9, 9, 9]), &[P]);
    net.say(6, &said(8, &[9, 9, 9, 9]), &[P]);
    assert_eq!(reasons(&net)[0], "router id 0.0.0.9 > 0.0.0.8");
    net.say(5, &said(8, &[9, 9, 9, 9, 8, 8, 8, 8]), &[P]);
    assert_eq!(reasons(&net)[0], "cluster list 2 > 1");
    net.say(5, &said(8, &[9, 9, 9, 9]), &[P]);
    assert_eq!(reasons(&net)[1], "peer address 192.0.2.6 > 192.0.2.5");
}

#[test]
fn an_older_external_route_stays_where_that_is_asked_for() {
    for prefers_oldest in [false, true] {
        let mut net = Net::with(|config| config.prefers_oldest = prefers_oldest);
        for n in 1..=3 {
            net.open(n, 64_500 + n);
        }
        for n in [3, 2, 1] {
            net.say(n, &Said::path(&[64_500 + n]), &[P]);
        }
        let best = net.rib.best(p(P)).and_then(|route| route.peer);
        assert_eq!(best, Some(PeerId(if prefers_oldest { 3 } else { 1 })));
        if prefers_oldest {
            assert_eq!(net.rib.reasons(p(P))[0], Reason::Older);
            net.say(2, &Said::path(&[]), &[P]);
            assert_eq!(
                net.rib.best(p(P)).and_then(|route| route.peer),
                Some(PeerId(2))
            );
        }
    }
}

#[test]
fn paths_of_one_peer_are_told_apart_by_their_identifiers() {
    let mut net = net();
    for path_id in [9, 4] {
        let nlri = Nlri {
            prefix: p(P),
            path_id,
        };
        net.say_routes(1, &Said::path(&[64_501]), &[nlri]);
    }
    let reasons = net.rib.reasons(p(P));
    assert!(
        reasons.contains(&Reason::PathId { own: 9, best: 4 }),
        "{reasons:?}"
    );
}

proptest! {
    #[test]
    fn the_best_route_does_not_depend_on_the_order_of_arrival(
        routes in prop::collection::vec((0..3_u32, 0..3_u32, 0..4_u32, 98..101_u32), 2..7),
        order in Just((0..6_usize).collect::<Vec<_>>()).prop_shuffle(),
        again in 0..6_usize,
    ) {
        let said = |at: usize| {
            let (asn, len, med, pref) = routes[at];
            let mut path = vec![64_601 + asn];
            path.extend((0..len / 2).map(|n| 64_900 + n));
            let said = Said::path(&path).number(code::MED, med * 10);
            if at >= 4 { said.number(code::LOCAL_PREF, pref) } else { said }
        };
        let mut bests = Vec::new();
        for order in [&(0..6).collect::<Vec<_>>(), &order] {
            let mut net = net();
            for &at in order.iter().filter(|&&at| at < routes.len()) {
                net.say(at as u32 + 1, &said(at), &[P]);
            }
            // One route is withdrawn and announced again.
            if again < routes.len() {
                net.unsay(again as u32 + 1, &[P]);
                net.say(again as u32 + 1, &said(again), &[P]);
            }
            bests.push(net.rib.best(p(P)).and_then(|route| route.peer));
            let reasons = net.rib.reasons(p(P));
            prop_assert_eq!(reasons.iter().filter(|reason| **reason == Reason::Best).count(), 1);
        }
        prop_assert_eq!(bests[0], bests[1]);
    }
}
