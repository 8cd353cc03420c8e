use super::*;

const ROUTER: RouterSettings = RouterSettings::DEFAULT;
const LINK: LinkSettings = LinkSettings::DEFAULT;

fn lay_out(shape: &Shape, seed: u64) -> Topology {
    Topology::new(shape, seed, ROUTER, LINK)
}

fn degrees(topology: &Topology) -> Vec<usize> {
    let mut degrees = vec![0; topology.routers.len()];
    for link in &topology.links {
        degrees[link.a as usize] += 1;
        degrees[link.b as usize] += 1;
    }
    degrees
}

/// Whether every router can be reached from the first.
fn is_connected(topology: &Topology) -> bool {
    let mut group: Vec<usize> = (0..topology.routers.len()).collect();
    fn root(group: &mut [usize], mut at: usize) -> usize {
        while group[at] != at {
            group[at] = group[group[at]];
            at = group[at];
        }
        at
    }
    for link in &topology.links {
        let a = root(&mut group, link.a as usize);
        let b = root(&mut group, link.b as usize);
        group[a] = b;
    }
    let first = root(&mut group, 0);
    (0..group.len()).all(|at| root(&mut group, at) == first)
}

#[test]
fn regular_shapes_have_the_links_that_they_should() {
    let mesh = lay_out(&Shape::Mesh { routers: 20 }, 1);
    assert_eq!(mesh.links.len(), 190);
    assert!(degrees(&mesh).iter().all(|&degree| degree == 19));
    let ring = lay_out(&Shape::Ring { routers: 7 }, 1);
    assert!(degrees(&ring).iter().all(|&degree| degree == 2) && is_connected(&ring));
    assert_eq!(lay_out(&Shape::Ring { routers: 2 }, 1).links.len(), 1);
    let tree = lay_out(
        &Shape::Tree {
            routers: 13,
            fanout: 3,
        },
        1,
    );
    assert_eq!((tree.links.len(), is_connected(&tree)), (12, true));
    assert_eq!(degrees(&tree)[..2], [3, 4]);
}

#[test]
fn a_fabric_has_one_autonomous_system_for_each_pods_spines_and_each_leaf() {
    let clos = lay_out(
        &Shape::Clos {
            pods: 3,
            leaves: 4,
            spines: 2,
            cores: 4,
        },
        1,
    );
    assert_eq!(clos.routers.len(), 3 * 6 + 4);
    assert_eq!(clos.links.len(), 3 * (4 * 2 + 4));
    assert!(is_connected(&clos));
    let asn = |name: &str| clos.routers[clos.find(name).unwrap() as usize].asn;
    assert_eq!(asn("core1"), asn("core4"));
    assert_eq!(asn("spine2-1"), asn("spine2-2"));
    assert_ne!(asn("spine1-1"), asn("spine2-1"));
    assert_ne!(asn("leaf1-1"), asn("leaf1-2"));
    assert_ne!(asn("leaf1-1"), asn("leaf2-1"));
}

#[test]
fn a_random_graph_has_a_clique_on_top_and_every_other_network_a_provider() {
    let graph = lay_out(&Shape::Random(GraphShape::internet(3_000)), 7);
    assert!(is_connected(&graph));
    let tier = |index: u32| graph.routers[index as usize].tier;
    let mut providers = vec![0; graph.routers.len()];
    let mut seen = std::collections::HashSet::new();
    for link in &graph.links {
        assert!(seen.insert((link.a.min(link.b), link.a.max(link.b))));
        match link.relation {
            Relation::Customer => {
                assert!(link.a < link.b, "payment has no cycle");
                assert_ne!(tier(link.a), Tier::Stub);
                providers[link.b as usize] += 1;
            }
            Relation::Peer => assert!(tier(link.a) != Tier::Stub && tier(link.b) != Tier::Stub),
            Relation::Provider | Relation::Open => panic!("no such link is made"),
        }
    }
    for (index, &count) in providers.iter().enumerate() {
        assert_eq!(count == 0, tier(index as u32) == Tier::Top, "{index}");
    }
    let stubs = graph
        .routers
        .iter()
        .filter(|r| r.tier == Tier::Stub)
        .count();
    assert_eq!(stubs, 2_550);
    // Few networks are very large and most are small: the largest has a hundred times the links of
    // the median.
    let mut degrees = degrees(&graph);
    degrees.sort_unstable();
    assert!(degrees[1_500] <= 3 && degrees[2_999] >= 200, "{degrees:?}");
}

#[test]
fn a_random_graph_is_its_seeds() {
    let shape = Shape::Random(GraphShape::internet(500));
    assert_eq!(lay_out(&shape, 1).links, lay_out(&shape, 1).links);
    assert_ne!(lay_out(&shape, 1).links, lay_out(&shape, 2).links);
}

#[test]
fn relationships_are_read_as_caida_writes_them() {
    let text = "# source:topology|BGP\n1|2|0|bgp\n1|3|-1|bgp\n2|4|-1\n3|5|-1|mlp\n";
    let topology = Topology::from_caida(text.as_bytes(), ROUTER, LINK).unwrap();
    let tier = |name: &str| topology.routers[topology.find(name).unwrap() as usize].tier;
    assert_eq!(topology.links.len(), 4);
    assert_eq!(topology.links[0].relation, Relation::Peer);
    assert_eq!(topology.links[1].relation, Relation::Customer);
    assert_eq!(
        [tier("as1"), tier("as3"), tier("as5")],
        [Tier::Top, Tier::Transit, Tier::Stub]
    );
}

#[test]
fn a_wrong_line_of_relationships_is_named() {
    for (text, words) in [
        ("1|2|0\n1;3;0\n", "line 2: is not of the form"),
        ("1|2|5\n", "line 1: is not of the form"),
        ("0|2|0\n", "line 1: is not of the form"),
        ("7|7|0\n", "line 1: a network has no relation with itself"),
        (
            "1|2|0\n2|1|-1\n",
            "line 2: these two have a relation already",
        ),
    ] {
        let fault = Topology::from_caida(text.as_bytes(), ROUTER, LINK).unwrap_err();
        assert!(fault.to_string().starts_with(words), "{fault}");
    }
}

#[test]
fn a_cycle_of_providers_is_found_with_its_last_line() {
    let cycle = |text: &str| {
        let topology = Topology::from_caida(text.as_bytes(), ROUTER, LINK).unwrap();
        let cycle = topology.provider_cycle()?;
        let asn = |router: &u32| topology.routers[*router as usize].asn;
        let mut asns: Vec<u32> = cycle.routers.iter().map(asn).collect();
        let first = asns.iter().position(|asn| *asn == 1);
        asns.rotate_left(first.unwrap());
        Some((asns, cycle.line))
    };
    assert_eq!(cycle("1|2|-1\n2|3|-1\n1|3|-1\n3|4|0\n4|1|0\n"), None);
    let found = cycle("# a comment\n9|1|-1\n1|2|-1\n3|1|-1\n2|8|-1\n2|3|-1\n9|8|-1\n");
    assert_eq!(found, Some((vec![1, 2, 3], Some(6))));
}

#[test]
fn numbers_that_mean_something_else_are_left_out() {
    let numbers: Vec<u32> = (0..70_000).map(|index| nth_asn(1, index)).collect();
    assert!(!numbers.contains(&23_456) && !numbers.contains(&65_535));
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(nth_asn(65_534, 1), 65_536);
}
