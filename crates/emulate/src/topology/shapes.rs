//! Regular shapes: mesh, ring, tree, Clos.

use super::{Relation, RouterSettings, Shape, Tier, Topology, graph, nth_asn};

/// The first AS number in shapes that do not define their own.
const ASN_FIRST: u32 = 10_001;

/// Adds the routers and links of `shape`.
pub(super) fn lay_out(topology: &mut Topology, shape: &Shape, seed: u64, settings: RouterSettings) {
    match *shape {
        Shape::Explicit => {}
        Shape::Mesh { routers } => {
            line_up(topology, routers, settings);
            for a in 0..routers as u32 {
                for b in a + 1..routers as u32 {
                    topology.join(a, b, Relation::Open);
                }
            }
        }
        Shape::Ring { routers } => {
            line_up(topology, routers, settings);
            let n = routers as u32;
            // Two routers form a line: a second link would duplicate the first.
            let links = if n == 2 { 1 } else { n };
            for a in 0..links {
                topology.join(a, (a + 1) % n, Relation::Open);
            }
        }
        Shape::Tree { routers, fanout } => {
            line_up(topology, routers, settings);
            for child in 1..routers {
                let parent = (child - 1) / fanout.max(1);
                topology.join(parent as u32, child as u32, Relation::Open);
            }
        }
        Shape::Clos {
            pods,
            leaves,
            spines,
            cores,
        } => clos(topology, [pods, leaves, spines, cores], settings),
        Shape::Random(ref shape) => graph::grow(topology, shape, seed, settings),
    }
}

/// Adds routers r1, r2 and so on, each an autonomous system.
fn line_up(topology: &mut Topology, routers: usize, settings: RouterSettings) {
    for index in 0..routers {
        let asn = nth_asn(ASN_FIRST, index);
        topology.add_router(format!("r{}", index + 1), asn, Tier::Flat, settings);
    }
}

/// RFC 7938 section 5.2.1: one AS number for all cores, one for the spines of a pod, one for each
/// leaf. A path that goes down and up again would contain one of them twice, and is rejected as a
/// loop.
fn clos(
    topology: &mut Topology,
    [pods, leaves, spines, cores]: [usize; 4],
    settings: RouterSettings,
) {
    let mut add = |name: String, number: usize| {
        let asn = nth_asn(ASN_FIRST, number);
        topology
            .add_router(name, asn, Tier::Flat, settings)
            .expect("the names of a fabric differ")
    };
    let core: Vec<u32> = (0..cores)
        .map(|c| add(format!("core{}", c + 1), 0))
        .collect();
    let mut links = Vec::new();
    for pod in 0..pods {
        let spine: Vec<u32> = (0..spines)
            .map(|s| add(format!("spine{}-{}", pod + 1, s + 1), 1 + pod))
            .collect();
        // Core c connects to spine c modulo the number of spines.
        let above = core.iter().enumerate().map(|(c, &core)| (core, c));
        links.extend(
            above
                .filter(|_| spines > 0)
                .map(|(core, c)| (core, spine[c % spines])),
        );
        for leaf in 0..leaves {
            let name = format!("leaf{}-{}", pod + 1, leaf + 1);
            let leaf = add(name, 1 + pods + pod * leaves + leaf);
            links.extend(spine.iter().map(|&spine| (spine, leaf)));
        }
    }
    for (upper, lower) in links {
        topology.join(upper, lower, Relation::Open);
    }
}
