//! A random graph of autonomous systems: a clique at the top, transit networks below it, stubs at
//! the edge.
//!
//! A network chooses its providers in proportion to the customers that they already have
//! (preferential attachment). A few networks therefore become very large and most stay small, as in
//! the measured Internet. Providers always precede their customers in the order, so the provider
//! relation has no cycles.
//!
//! Left out: geography, siblings, exchange points as places.

use sim::Rng;

use super::{Relation, RouterSettings, Tier, Topology, nth_asn};

/// Parameters of a random graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GraphShape {
    /// Number of autonomous systems.
    pub routers: usize,
    /// How many of them form the clique at the top.
    pub top: usize,
    /// Share of stubs, 0 to 1.
    pub stub_share: f64,
    /// Mean number of providers of a network below the top, at least 1.
    pub providers_mean: f64,
    /// Mean number of peers that a transit network chooses, besides its providers.
    pub peers_mean: f64,
}

impl GraphShape {
    /// Shares and means close to those of the Internet of the 2020s, for `routers` networks.
    #[must_use]
    pub fn internet(routers: usize) -> Self {
        Self {
            routers,
            top: (routers / 100).clamp(1, 15),
            stub_share: 0.85,
            providers_mean: 2.0,
            peers_mean: 4.0,
        }
    }
}

/// Probability that a provider or peer is drawn uniformly and not by its number of customers, so
/// that small networks grow too.
const EVEN: f64 = 0.15;
/// Limit of providers of one network.
const PROVIDERS_MAX: usize = 8;
/// Limit of peers that one network chooses, not counting peers that choose it.
const PEERS_MAX: usize = 64;

/// Adds the networks of `shape` to `topology`, named as1, as2 and so on.
pub(super) fn grow(
    topology: &mut Topology,
    shape: &GraphShape,
    seed: u64,
    settings: RouterSettings,
) {
    let n = shape.routers;
    let top = shape.top.clamp(1, n.max(1)).min(n);
    let stubs = ((n as f64 * shape.stub_share) as usize).min(n - top);
    let carriers = n - stubs;
    for index in 0..n {
        let asn = nth_asn(1, index);
        let tier = match index {
            i if i < top => Tier::Top,
            i if i < carriers => Tier::Transit,
            _ => Tier::Stub,
        };
        topology.add_router(format!("as{asn}"), asn, tier, settings);
    }
    let mut rng = Rng::stream(seed, &["graph"]);
    for a in 0..top as u32 {
        for b in a + 1..top as u32 {
            topology.join(a, b, Relation::Peer);
        }
    }
    // Each customer link adds its provider once more, so a uniform draw from this list is a draw by
    // degree.
    let mut drawn: Vec<u32> = (0..top as u32).collect();
    let mut chosen = Vec::new();
    for customer in top..n {
        let candidates = customer.min(carriers);
        let wanted = geometric(&mut rng, shape.providers_mean - 1.0) + 1;
        choose(
            &mut rng,
            &drawn,
            candidates,
            wanted.min(PROVIDERS_MAX),
            &mut chosen,
        );
        for &provider in &chosen {
            topology.join(provider, customer as u32, Relation::Customer);
        }
        drawn.extend_from_slice(&chosen);
    }
    peer(topology, &mut rng, shape, [top, carriers], &drawn);
}

/// Adds peerings among transit networks that have no link with each other yet.
fn peer(
    topology: &mut Topology,
    rng: &mut Rng,
    shape: &GraphShape,
    [top, carriers]: [usize; 2],
    drawn: &[u32],
) {
    let mut near: Vec<Vec<u32>> = vec![Vec::new(); carriers];
    for link in &topology.links {
        if (link.b as usize) < carriers {
            near[link.a as usize].push(link.b);
            near[link.b as usize].push(link.a);
        }
    }
    let mut chosen = Vec::new();
    for a in top..carriers {
        // Half of the mean, since other networks choose this one as well.
        let wanted = geometric(rng, shape.peers_mean / 2.0).min(PEERS_MAX);
        choose(rng, drawn, carriers, wanted, &mut chosen);
        for &b in &chosen {
            let apart = b as usize >= top && b as usize != a && !near[a].contains(&b);
            if apart {
                near[a].push(b);
                near[b as usize].push(a as u32);
                topology.join(a as u32, b, Relation::Peer);
            }
        }
    }
}

/// Up to `wanted` different numbers below `candidates`, most of them weighted by how often they
/// were drawn before.
fn choose(rng: &mut Rng, drawn: &[u32], candidates: usize, wanted: usize, chosen: &mut Vec<u32>) {
    chosen.clear();
    // Two draws for each number wanted, so that the loop ends even if few candidates exist.
    for _ in 0..2 * wanted {
        if chosen.len() == wanted {
            break;
        }
        let one = if rng.chance(EVEN) {
            rng.below(candidates as u64) as u32
        } else {
            drawn[rng.below(drawn.len() as u64) as usize]
        };
        if (one as usize) < candidates && !chosen.contains(&one) {
            chosen.push(one);
        }
    }
    if chosen.is_empty() && wanted > 0 {
        chosen.push(rng.below(candidates as u64) as u32);
    }
}

/// A random number from 0 up with the given mean, geometrically distributed.
fn geometric(rng: &mut Rng, mean: f64) -> usize {
    let further = mean.max(0.0) / (1.0 + mean.max(0.0));
    let mut count = 0;
    while count < 1_000 && rng.chance(further) {
        count += 1;
    }
    count
}
