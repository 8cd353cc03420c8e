//! What peers are sent: RFC 4271, section 5.1; RFC 1997; RFC 4456; RFC 9234, section 5; RFC 8212.

use wire::bgp::Role;
use wire::bgp::attr::code;

use super::*;

const P: &str = "10.0.0.0/8";

fn find(heard: &Heard, code: u8) -> Option<Vec<u8>> {
    attr::find(&heard.attributes, code).map(|attribute| attribute.value.to_vec())
}

fn told(net: &mut Net, n: u32) -> Option<Heard> {
    net.settle();
    net.ear(n).get(P).cloned()
}

#[test]
fn external_peers_get_no_local_preference_and_no_med_of_others_and_our_next_hop() {
    let mut net = Net::new();
    net.open(1, 64_501);
    net.open(2, 64_502);
    net.open(3, ASN);
    net.say(1, &Said::path(&[64_501]).number(code::MED, 5), &[P]);
    let outside = told(&mut net, 2).expect("told");
    assert_eq!(outside.path(), "65000 64501");
    assert_eq!(
        (find(&outside, code::MED), find(&outside, code::LOCAL_PREF)),
        (None, None)
    );
    assert_eq!(outside.next_hop, IpAddr::from([192, 0, 2, 254]));
    let inside = told(&mut net, 3).expect("told");
    assert_eq!(inside.path(), "64501");
    assert_eq!(attr::med(&inside.attributes), Some(5));
    assert_eq!(attr::local_pref(&inside.attributes), Some(100));
    assert_eq!(
        inside.next_hop,
        IpAddr::from([10, 9, 0, 1]),
        "a third party's"
    );
}

#[test]
fn next_hops_follow_the_rule_of_the_peer() {
    let mut net = Net::new();
    net.open(1, 64_501);
    let mut own = Net::traits(2, ASN);
    own.next_hop = crate::rib::NextHopRule::Own;
    net.open_with(2, own);
    let mut unchanged = Net::traits(3, 64_503);
    unchanged.next_hop = crate::rib::NextHopRule::Unchanged;
    net.open_with(3, unchanged);
    net.say(1, &Said::path(&[64_501]), &[P]);
    assert_eq!(
        told(&mut net, 2).map(|heard| heard.next_hop),
        Some([192, 0, 2, 254].into())
    );
    assert_eq!(
        told(&mut net, 3).map(|heard| heard.next_hop),
        Some([10, 9, 0, 1].into())
    );
}

#[test]
fn our_own_routes_go_out_with_our_as_and_our_next_hop() {
    let mut net = Net::new();
    net.open(1, 64_501);
    net.open(2, ASN);
    let mut attributes = Vec::new();
    attr::put_number(code::MED, 7, &mut attributes);
    let route = LocalRoute {
        attributes,
        next_hop: None,
    };
    net.rib.originate(p(P), &route);
    let outside = told(&mut net, 1).expect("told");
    assert_eq!(
        (outside.path(), attr::med(&outside.attributes)),
        ("65000".into(), Some(7))
    );
    let inside = told(&mut net, 2).expect("told");
    assert_eq!(
        (inside.path(), inside.next_hop),
        (String::new(), [192, 0, 2, 254].into())
    );
    assert!(net.rib.retract(p(P)) && !net.rib.retract(p(P)));
    assert_eq!(told(&mut net, 1), None);
}

#[test]
fn well_known_communities_keep_routes_in() {
    let cases: [(u32, [bool; 2]); 4] = [
        (0xffff_ff01, [true, false]),
        (0xffff_ff02, [false, false]),
        (0xffff_ff03, [true, false]),
        (0xffff_ff04, [true, true]),
    ];
    for (community, [inside, outside]) in cases {
        let mut net = Net::new();
        net.open(1, 64_501);
        net.open(2, ASN);
        net.open(3, 64_503);
        net.say(
            1,
            &Said::path(&[64_501]).number(code::COMMUNITIES, community),
            &[P],
        );
        assert_eq!(
            told(&mut net, 2).is_some(),
            inside,
            "{community:x} to the inside"
        );
        assert_eq!(
            told(&mut net, 3).is_some(),
            outside,
            "{community:x} to the outside"
        );
    }
}

#[test]
fn a_reflector_passes_on_between_clients_and_others_and_writes_who_and_where() {
    // Clients are 1 and 2, non-clients 3 and 4 (RFC 4456, section 6).
    for (from, to) in [(1, vec![2, 3, 4]), (3, vec![1, 2])] {
        let mut net = Net::new();
        for n in 1..=4 {
            let mut traits = Net::traits(n, ASN);
            traits.is_client = n <= 2;
            net.open_with(n, traits);
        }
        net.say(from, &Said::path(&[7]).number(code::LOCAL_PREF, 100), &[P]);
        net.settle();
        let heard: Vec<u32> = (1..=4).filter(|&n| net.ear(n).get(P).is_some()).collect();
        assert_eq!(heard, to, "from {from}");
        let one = net.ear(to[0]).get(P).expect("told");
        assert_eq!(
            attr::originator_id(&one.attributes),
            Some(0x0101_0100 + from)
        );
        assert!(attr::cluster_list(&one.attributes).eq([0x0a00_0001]));
        assert_eq!(one.next_hop, IpAddr::from([10, 9, 0, 1]));
    }
}

#[test]
fn what_was_here_before_is_not_taken_again() {
    let mut net = Net::new();
    net.open(1, 64_501);
    net.open(2, ASN);
    assert_eq!(net.say(1, &Said::path(&[64_501, ASN]), &[P]).loops, 1);
    let inside = || Said::path(&[7]).number(code::LOCAL_PREF, 100);
    assert_eq!(
        net.say(2, &inside().number(code::ORIGINATOR_ID, 0x0a00_0001), &[P])
            .loops,
        1
    );
    assert_eq!(
        net.say(2, &inside().number(code::CLUSTER_LIST, 0x0a00_0001), &[P])
            .loops,
        1
    );
    assert_eq!(net.rib.counts(FamilyId::Ipv4Unicast), (0, 0));
    // A route that was accepted before is removed.
    assert_eq!(net.say(1, &Said::path(&[64_501]), &[P]).announced, 1);
    assert_eq!(net.say(1, &Said::path(&[64_501, ASN]), &[P]).loops, 1);
    assert_eq!(net.rib.best(p(P)), None);
    let mut lenient = Net::traits(3, 64_503);
    lenient.allow_own = 1;
    net.open_with(3, lenient);
    assert_eq!(net.say(3, &Said::path(&[64_503, ASN]), &[P]).announced, 1);
    assert_eq!(net.say(3, &Said::path(&[64_503, ASN, ASN]), &[P]).loops, 1);
}

#[test]
fn a_route_that_leads_to_ourselves_is_not_taken() {
    let mut net = Net::new();
    let mut traits = Net::traits(1, 64_501);
    let (own_v4, own_v6) = ([192, 0, 2, 77], "2001:db8::77".parse().expect("an address"));
    traits.local_v4 = Some(own_v4.into());
    traits.local_v6 = Some(own_v6);
    net.open_with(1, traits);
    let to = |next_hop| Said::path(&[64_501]).over(next_hop);
    let own = [
        (NextHop::V4(own_v4.into()), P),
        (NextHop::V6(own_v6, None), "2001:db8:7::/48"),
    ];
    for (next_hop, prefix) in own {
        let some = net.say(1, &to(next_hop), &[prefix]);
        assert_eq!((some.announced, some.loops), (0, 1), "{prefix}");
    }
    let other = NextHop::V4([192, 0, 2, 78].into());
    assert_eq!(net.say(1, &to(other), &[P]).announced, 1);
}

#[test]
fn without_a_policy_external_peers_are_told_and_believed_nothing() {
    let mut net = Net::new();
    net.open(1, 64_501);
    let address = IpAddr::from([192, 0, 2, 9]);
    let mut bare = PeerTraits::new(ASN, 64_502, 9, address);
    bare.local_v4 = Some(Ipv4Addr::new(192, 0, 2, 254));
    net.open_with(2, bare);
    net.say(1, &Said::path(&[64_501]), &[P]);
    assert_eq!(told(&mut net, 2), None);
    assert_eq!(
        net.say(2, &Said::path(&[64_502]), &["10.1.0.0/16"]).denied,
        1
    );
    assert_eq!(net.rib.best(p("10.1.0.0/16")), None);
    assert_eq!(
        net.rib.reasons(p("10.1.0.0/16"))[0].to_string(),
        "denied by import policy"
    );
}

const ROLES: [Role; 5] = [
    Role::Provider,
    Role::RouteServer,
    Role::RouteServerClient,
    Role::Customer,
    Role::Peer,
];

/// A rib with peer 1, towards which we have a role, and peer 2, towards which we have another role or none.
fn with_roles(first: Role, second: Option<Role>) -> Net {
    let mut net = Net::new();
    for (n, role) in [(1, Some(first)), (2, second)] {
        let mut traits = Net::traits(n, 64_500 + n);
        traits.role = role;
        net.open_with(n, traits);
    }
    net
}

#[test]
fn routes_with_otc_come_in_as_rfc_9234_has_it() {
    // Our role, the AS in the attribute, and whether the route is a leak (section 5, ingress 1 and 2).
    let cases = [
        (Role::Provider, 64_501, true),
        (Role::Provider, 7, true),
        (Role::RouteServer, 64_501, true),
        (Role::Peer, 64_501, false),
        (Role::Peer, 7, true),
        (Role::Customer, 7, false),
        (Role::RouteServerClient, 7, false),
    ];
    for (role, otc, is_leak) in cases {
        let mut net = with_roles(role, None);
        let received = net.say(1, &Said::path(&[64_501]).number(code::OTC, otc), &[P]);
        assert_eq!(received.leaks == 1, is_leak, "{role:?} {otc}");
        assert_eq!(received.announced == 0, is_leak);
        let heard = told(&mut net, 2).and_then(|heard| attr::otc(&heard.attributes));
        assert_eq!(heard, (!is_leak).then_some(otc), "preserved unchanged");
    }
}

#[test]
fn routes_go_out_by_their_roles_as_rfc_9234_has_it() {
    for from in ROLES {
        for to in ROLES {
            let mut net = with_roles(from, Some(to));
            net.say(1, &Said::path(&[64_501]), &[P]);
            let heard = told(&mut net, 2);
            // From a provider, a peer or a route server, a route without the attribute gets it (ingress 3).
            let is_marked = matches!(from, Role::Customer | Role::Peer | Role::RouteServerClient);
            let goes_up = matches!(to, Role::Customer | Role::Peer | Role::RouteServerClient);
            assert_eq!(heard.is_none(), is_marked && goes_up, "{from:?} to {to:?}");
            let Some(heard) = heard else {
                continue;
            };
            let is_downward = matches!(to, Role::Provider | Role::Peer | Role::RouteServer);
            let otc = match (is_marked, is_downward) {
                (true, _) => Some(64_501),
                (false, true) => Some(ASN),
                (false, false) => None,
            };
            assert_eq!(attr::otc(&heard.attributes), otc, "{from:?} to {to:?}");
        }
    }
}

#[test]
fn peers_of_two_octet_numbers_and_unknown_attributes_are_served_as_their_rfcs_say() {
    let mut net = Net::new();
    net.open(1, 64_501);
    let mut old = Net::traits(2, 64_502);
    old.four_octet = false;
    net.open_with(2, old);
    net.say(1, &Said::path(&[64_501, 100_000]).with(99, &[1, 2]), &[P]);
    let heard = told(&mut net, 2).expect("told");
    assert_eq!(heard.path(), "65000 64501 100000", "through AS4_PATH");
    let unknown = attr::find(&heard.attributes, 99).expect("passed on");
    assert_ne!(unknown.flags & attr::flag::PARTIAL, 0);
}
