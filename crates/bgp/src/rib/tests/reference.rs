//! Compares a rib with a plain computation of what it should hold and what each peer should have been sent, over random
//! sequences of events.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use wire::bgp::attr::code;

use super::*;

/// An event.
#[derive(Debug, Clone)]
enum Step {
    Announce {
        peer: u32,
        route: u32,
        prefixes: Vec<u32>,
    },
    Withdraw {
        peer: u32,
        prefixes: Vec<u32>,
    },
    Open {
        peer: u32,
    },
    Close {
        peer: u32,
        is_stale: bool,
    },
    EndOfRib {
        peer: u32,
    },
    Refresh {
        peer: u32,
    },
    Originate {
        prefix: u32,
    },
    Retract {
        prefix: u32,
    },
    Work {
        budget: usize,
    },
    Read {
        peer: u32,
        limit: usize,
    },
}

const PEERS: u32 = 5;
const PREFIXES: u32 = 12;

/// Peers 1 and 2 are external and share a group. Peer 3 is external with a group of its own, because our address
/// towards it differs. Peers 4 and 5 are internal; 5 is a client.
fn traits(peer: u32) -> PeerTraits {
    let mut traits = match peer {
        1..=3 => Net::traits(peer, 64_500 + peer),
        _ => Net::traits(peer, ASN),
    };
    if peer == 3 {
        traits.local_v4 = Some(Ipv4Addr::new(192, 0, 2, 253));
    }
    traits.is_client = peer == 5;
    traits
}

fn said(peer: u32, route: u32) -> Said {
    // Few values, so that ties and equal sets are common.
    let mut path = if peer <= 3 {
        vec![64_500 + peer]
    } else {
        vec![64_501 + route % 2]
    };
    path.extend((0..route / 2 % 3).map(|n| 64_900 + n));
    let mut said = Said::path(&path);
    if route.is_multiple_of(3) {
        said = said.number(code::MED, route % 4 * 10);
    }
    if peer > 3 {
        said = said.number(code::LOCAL_PREF, 100 + route % 2);
    }
    said
}

fn prefix(number: u32) -> Prefix {
    if number.is_multiple_of(4) {
        Prefix::v6(0x2001_0db8 << 96 | u128::from(number) << 80, 48)
    } else {
        Prefix::v4(0x0a00_0000 + (number << 8), 24)
    }
}

fn with_next_hop(said: Said, family: FamilyId) -> Said {
    match family {
        FamilyId::Ipv4Unicast => said,
        FamilyId::Ipv6Unicast => said.over(NextHop::V6("2001:db8::9".parse().expect("v6"), None)),
    }
}

fn step() -> impl Strategy<Value = Step> {
    let peer = || 1..=PEERS;
    let prefixes = || prop::collection::vec(0..PREFIXES, 1..6);
    prop_oneof![
        12 => (peer(), 0..12_u32, prefixes())
            .prop_map(|(peer, route, prefixes)| Step::Announce { peer, route, prefixes }),
        6 => (peer(), prefixes()).prop_map(|(peer, prefixes)| Step::Withdraw { peer, prefixes }),
        2 => peer().prop_map(|peer| Step::Open { peer }),
        2 => (peer(), any::<bool>()).prop_map(|(peer, is_stale)| Step::Close { peer, is_stale }),
        2 => peer().prop_map(|peer| Step::EndOfRib { peer }),
        2 => peer().prop_map(|peer| Step::Refresh { peer }),
        1 => (0..PREFIXES).prop_map(|prefix| Step::Originate { prefix }),
        1 => (0..PREFIXES).prop_map(|prefix| Step::Retract { prefix }),
        6 => (1..40_usize).prop_map(|budget| Step::Work { budget }),
        6 => (peer(), 1..200_usize).prop_map(|(peer, limit)| Step::Read { peer, limit }),
    ]
}

#[derive(Debug, Clone)]
struct Model {
    open: BTreeSet<u32>,
    /// By prefix and peer (0 is us): the kind of the route, and whether it is stale.
    routes: BTreeMap<u32, BTreeMap<u32, (u32, bool)>>,
}

/// What the decision process compares, in order; less is better.
fn rank(peer: u32, route: u32) -> (bool, std::cmp::Reverse<u32>, usize, u32, u32, bool, u32) {
    if peer == 0 {
        return (false, std::cmp::Reverse(0), 0, 0, 0, false, 0);
    }
    let raw = said(peer, route).raw;
    let path = attr::as_path(&raw);
    let med = attr::med(&raw).unwrap_or(0);
    let pref = attr::local_pref(&raw).unwrap_or(100);
    (
        true,
        std::cmp::Reverse(pref),
        path.length(),
        path.neighbour_as().unwrap_or(0),
        med,
        peer > 3,
        peer,
    )
}

impl Model {
    fn best(&self, prefix: u32) -> Option<(u32, u32)> {
        let routes = self.routes.get(&prefix)?;
        let all: Vec<_> = routes
            .iter()
            .map(|(&peer, &(route, _))| (peer, route, rank(peer, route)))
            .collect();
        // The steps before c, then c as RFC 4271 writes it, then the steps after c.
        let first = all.iter().map(|(.., r)| (r.0, r.1, r.2)).min()?;
        let tied: Vec<_> = all
            .iter()
            .filter(|(.., r)| (r.0, r.1, r.2) == first)
            .collect();
        let left = tied
            .iter()
            .filter(|m| !tied.iter().any(|n| n.2.3 == m.2.3 && n.2.4 < m.2.4));
        left.min_by_key(|(.., r)| (r.5, r.6))
            .map(|&&(peer, route, _)| (peer, route))
    }

    fn told(&self, to: u32, prefix: u32) -> Option<(u32, u32)> {
        let (from, route) = self.best(prefix)?;
        let is_inside = |peer: u32| peer > 3;
        let is_reflected = from == 5 || to == 5;
        let is_kept = from == to || is_inside(from) && is_inside(to) && !is_reflected;
        (!is_kept).then_some((from, route))
    }
}

struct Run {
    net: Net,
    model: Model,
}

impl Run {
    fn step(&mut self, step: &Step) {
        let Run { net, model } = self;
        match step {
            Step::Announce {
                peer,
                route,
                prefixes,
            } if model.open.contains(peer) => {
                self.announce(*peer, *route, prefixes);
            }
            Step::Withdraw { peer, prefixes } if model.open.contains(peer) => {
                for &number in prefixes {
                    net.unsay(*peer, &[&prefix(number).to_string()]);
                    model.routes.entry(number).or_default().remove(peer);
                }
            }
            Step::Open { peer } if !model.open.contains(peer) => {
                net.open_with(*peer, traits(*peer));
                model.open.insert(*peer);
            }
            Step::Close { peer, is_stale } if model.open.remove(peer) => {
                self.close(*peer, *is_stale);
            }
            Step::EndOfRib { peer } if model.open.contains(peer) => {
                for family in FamilyId::ALL {
                    net.rib.end_of_rib(PeerId(*peer), family);
                }
                for routes in model.routes.values_mut() {
                    routes.retain(|from, route| from != peer || !route.1);
                }
            }
            Step::Refresh { peer } => {
                for family in FamilyId::ALL {
                    net.rib.refresh(PeerId(*peer), family);
                }
            }
            Step::Originate { prefix: number } => {
                net.rib.originate(prefix(*number), &LocalRoute::default());
                model
                    .routes
                    .entry(*number)
                    .or_default()
                    .insert(0, (0, false));
            }
            Step::Retract { prefix: number } => {
                net.rib.retract(prefix(*number));
                model.routes.entry(*number).or_default().remove(&0);
            }
            Step::Work { budget } => {
                net.rib.work(*budget, net.now);
            }
            Step::Read { peer, limit } if model.open.contains(peer) => {
                let mut out = Vec::new();
                net.rib.fill(PeerId(*peer), &mut out, *limit, net.now);
                if let Some((ear, context)) = net.ears.get_mut(peer) {
                    ear.listen(&out, context);
                }
            }
            _ => {}
        }
    }

    fn announce(&mut self, peer: u32, route: u32, prefixes: &[u32]) {
        for family in FamilyId::ALL {
            let of_family = prefixes
                .iter()
                .map(|&n| prefix(n))
                .filter(|p| p.family() == family);
            let routes: Vec<Nlri> = of_family
                .map(|prefix| Nlri { prefix, path_id: 0 })
                .collect();
            if !routes.is_empty() {
                let said = with_next_hop(said(peer, route), family);
                self.net.say_routes(peer, &said, &routes);
            }
        }
        for &prefix in prefixes {
            let routes = self.model.routes.entry(prefix).or_default();
            routes.insert(peer, (route, false));
        }
    }

    fn close(&mut self, peer: u32, is_stale: bool) {
        let keep = match is_stale {
            true => Families::ALL,
            false => Families::NONE,
        };
        self.net.close(peer, keep);
        for routes in self.model.routes.values_mut() {
            routes.retain(|from, route| *from != peer || is_stale && !route.1);
            if let Some(route) = routes.get_mut(&peer) {
                route.1 = true;
            }
        }
    }

    fn check(&mut self) {
        let Run { net, model } = self;
        for _ in 0..4 {
            net.settle();
            for peer in model.open.clone() {
                net.read(peer, 100);
            }
        }
        for number in 0..PREFIXES {
            let best = net
                .rib
                .best(prefix(number))
                .map(|route| route.peer.map_or(0, |peer| peer.0));
            assert_eq!(
                best,
                model.best(number).map(|best| best.0),
                "best of {number}"
            );
        }
        for &to in &model.open {
            let ear = net.ear(to);
            for number in 0..PREFIXES {
                let told = ear.routes.get(&(prefix(number), 0));
                let wanted = model.told(to, number);
                assert_eq!(
                    told.is_some(),
                    wanted.is_some(),
                    "{number} to {to}: {told:?} {wanted:?}"
                );
                if let (Some(told), Some((from, route))) = (told, wanted) {
                    let mut path = if from == 0 {
                        vec![]
                    } else {
                        attr::as_path(&said(from, route).raw).asns().collect()
                    };
                    if to <= 3 {
                        path.insert(0, ASN);
                    }
                    let asns: Vec<u32> = attr::as_path(&told.attributes).asns().collect();
                    assert_eq!(asns, path, "{number} to {to}");
                }
            }
            for family in FamilyId::ALL {
                let heard = ear
                    .routes
                    .keys()
                    .filter(|key| key.0.family() == family)
                    .count();
                let counts = net.rib.peer_counts(PeerId(to), family);
                assert_eq!(counts.sent as usize, heard, "counted for {to}");
                let held = model.routes.iter().filter(|(n, routes)| {
                    prefix(**n).family() == family && routes.contains_key(&to)
                });
                assert_eq!(counts.received as usize, held.count());
                let mut shown = 0;
                net.rib
                    .walk_sent(PeerId(to), family, Default::default(), 10_000, |_, _, _| {
                        shown += 1
                    });
                assert_eq!(shown, heard);
            }
        }
    }

    /// In the end nothing may be left in memory.
    fn end(mut self) {
        for peer in 1..=PEERS {
            self.step(&Step::Close {
                peer,
                is_stale: false,
            });
        }
        for peer in 1..=PEERS {
            for family in FamilyId::ALL {
                self.net.rib.sweep_stale(PeerId(peer), family);
            }
        }
        for prefix in 0..PREFIXES {
            self.step(&Step::Retract { prefix });
        }
        self.net.settle();
        let memory = self.net.rib.memory();
        assert_eq!(
            (memory.attribute_sets, memory.path_count, memory.group_count),
            (0, 0, 0)
        );
        self.net.now = base::Instant::from_nanos(10_000_000_000);
        self.net.settle();
        for number in 0..PREFIXES {
            assert_eq!(
                self.net.rib.store.slot(prefix(number)),
                None,
                "a place is held"
            );
        }
        assert!((1..=PEERS).all(|peer| self.net.rib.store.peer(peer).is_none()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_rib_holds_and_tells_what_a_plain_computation_says(
        steps in prop::collection::vec(step(), 1..120)
    ) {
        let mut run = Run {
            net: Net::new(),
            model: Model { open: BTreeSet::new(), routes: BTreeMap::new() },
        };
        for peer in 1..=3 {
            run.step(&Step::Open { peer });
        }
        for (at, step) in steps.iter().enumerate() {
            run.step(step);
            if at % 40 == 39 {
                run.check();
            }
        }
        run.check();
        run.end();
    }
}
