//! Tests of the rib, and their common parts: peers that announce routes, and peers that store what they are sent.

mod decision;
mod outward;
mod policies;
mod reference;
mod serving;
mod slices;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use base::Instant;
use wire::bgp::attr::{self, code, flag};
use wire::bgp::{
    Families, FamilyId, HEADER_LEN, Kind, NextHop, Nlri, PeerKind, Prefix, Refresh, RouteRefresh,
    SegmentKind, Update, UpdateContext, UpdateWriter, frame,
};

use super::{LocalRoute, PeerId, PeerTraits, Received, Rib, RibConfig};
use crate::policy::Policy;

pub(super) const T0: Instant = Instant::ZERO;
pub(super) const ASN: u32 = 65_000;

/// Attributes of a route that a test announces.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) raw: Vec<u8>,
    pub(super) next_hop: NextHop,
}

impl Said {
    /// A route with that path, origin IGP and next hop 10.9.0.1.
    pub(super) fn path(asns: &[u32]) -> Self {
        let mut raw = Vec::new();
        attr::put(code::ORIGIN, &[0], &mut raw);
        attr::put_with(code::AS_PATH, &mut raw, |out| {
            for segment in asns.chunks(255) {
                out.extend_from_slice(&[SegmentKind::Sequence as u8, segment.len() as u8]);
                segment
                    .iter()
                    .for_each(|asn| out.extend_from_slice(&asn.to_be_bytes()));
            }
        });
        Said {
            raw,
            next_hop: NextHop::V4(Ipv4Addr::new(10, 9, 0, 1)),
        }
    }

    pub(super) fn with(mut self, kind: u8, value: &[u8]) -> Self {
        let flags = if attr::row(kind).is_known() {
            attr::row(kind).flags
        } else {
            flag::OPTIONAL_TRANSITIVE
        };
        attr::emit(flags, kind, value, &mut self.raw);
        self
    }

    pub(super) fn number(self, kind: u8, number: u32) -> Self {
        self.with(kind, &number.to_be_bytes())
    }

    pub(super) fn over(mut self, next_hop: NextHop) -> Self {
        self.next_hop = next_hop;
        self
    }
}

/// What a peer was sent for a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) attributes: Vec<u8>,
    pub(super) next_hop: IpAddr,
}

impl Heard {
    pub(super) fn path(&self) -> String {
        attr::as_path(&self.attributes).to_string()
    }
}

/// A peer's end of a session: what it was sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Ear {
    pub(super) routes: BTreeMap<(Prefix, u32), Heard>,
    /// UPDATE messages with routes.
    pub(super) updates: usize,
    /// Withdrawals of routes that it had not been sent.
    pub(super) noise: usize,
    pub(super) ends: Vec<FamilyId>,
    pub(super) marks: Vec<Refresh>,
}

impl Ear {
    pub(super) fn listen(&mut self, mut octets: &[u8], context: &UpdateContext) {
        while !octets.is_empty() {
            let (kind, body, len) = frame(octets, 65_535)
                .expect("sound")
                .expect("whole messages");
            octets = &octets[len..];
            if kind == Kind::RouteRefresh {
                self.marks
                    .push(RouteRefresh::read(body).expect("sound").refresh);
                continue;
            }
            assert_eq!(kind, Kind::Update);
            let update = Update::read(body, context).expect("a sound message");
            assert_eq!(update.faults(), [], "{update:?}");
            if let Some(family) = update.end_of_rib() {
                self.ends.push(family);
                continue;
            }
            self.updates += 1;
            for nlri in update.withdrawn() {
                let was_there = self.routes.remove(&(nlri.prefix, nlri.path_id)).is_some();
                self.noise += usize::from(!was_there);
            }
            for nlri in update.announced() {
                let next_hop = update.next_hop(nlri.prefix.family()).expect("a next hop");
                let heard = Heard {
                    attributes: update.attributes().to_vec(),
                    next_hop: next_hop.address(),
                };
                self.routes.insert((nlri.prefix, nlri.path_id), heard);
            }
        }
    }

    pub(super) fn get(&self, prefix: &str) -> Option<&Heard> {
        self.routes.get(&(p(prefix), 0))
    }

    pub(super) fn prefixes(&self) -> Vec<String> {
        self.routes
            .keys()
            .map(|(prefix, _)| prefix.to_string())
            .collect()
    }
}

fn kind(is_internal: bool) -> PeerKind {
    if is_internal {
        PeerKind::Internal
    } else {
        PeerKind::External
    }
}

pub(super) fn p(text: &str) -> Prefix {
    text.parse().expect("a prefix")
}

/// A rib and the other ends of its sessions.
pub(super) struct Net {
    pub(super) rib: Rib,
    pub(super) ears: BTreeMap<u32, (Ear, UpdateContext)>,
    pub(super) now: Instant,
}

impl Net {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut RibConfig)) -> Self {
        let mut config = RibConfig {
            asn: ASN,
            router_id: 0x0a00_0001,
            cluster_id: None,
            prefers_oldest: false,
            seed: 7,
        };
        change(&mut config);
        Net {
            rib: Rib::new(config),
            ears: BTreeMap::new(),
            now: T0,
        }
    }

    /// Default traits of peer `n` in an AS: both families, and policies that accept everything.
    pub(super) fn traits(n: u32, asn: u32) -> PeerTraits {
        let address = Ipv4Addr::from_bits(0xc000_0200 + n);
        let mut traits = PeerTraits::new(ASN, asn, 0x0101_0100 + n, address.into());
        traits.import = Policy::accept();
        traits.export = Policy::accept();
        traits.families = Families::ALL;
        traits.local_v4 = Some(Ipv4Addr::new(192, 0, 2, 254));
        traits.local_v6 = Some("2001:db8::fe".parse().expect("an address"));
        traits
    }

    pub(super) fn open(&mut self, n: u32, asn: u32) {
        self.open_with(n, Self::traits(n, asn));
    }

    pub(super) fn open_with(&mut self, n: u32, traits: PeerTraits) {
        let context = UpdateContext {
            four_octet: traits.four_octet,
            peer: kind(traits.is_internal()),
            add_path: FamilyId::ALL.map(|family| traits.add_path_tx.contains(family)),
            families: Families::ALL,
            first_as: None,
        };
        self.ears.insert(n, (Ear::default(), context));
        self.rib.open_peer(PeerId(n), traits);
    }

    pub(super) fn close(&mut self, n: u32, keep: Families) {
        self.ears.remove(&n);
        self.rib.close_peer(PeerId(n), keep);
    }

    /// Peer `n` announces.
    pub(super) fn say(&mut self, n: u32, said: &Said, prefixes: &[&str]) -> Received {
        let routes: Vec<Nlri> = prefixes
            .iter()
            .map(|text| Nlri {
                prefix: p(text),
                path_id: 0,
            })
            .collect();
        self.say_routes(n, said, &routes)
    }

    pub(super) fn say_routes(&mut self, n: u32, said: &Said, routes: &[Nlri]) -> Received {
        let has_ids = routes.iter().any(|nlri| nlri.path_id != 0);
        let writer = UpdateWriter {
            add_path: [has_ids; 2],
            ..UpdateWriter::default()
        };
        let mut out = Vec::new();
        let routes = routes.iter().copied();
        writer
            .announce(&said.raw, said.next_hop, routes, &mut out)
            .expect("fits");
        self.hear(n, &out, has_ids)
    }

    pub(super) fn unsay(&mut self, n: u32, prefixes: &[&str]) -> Received {
        let mut out = Vec::new();
        let routes = prefixes.iter().map(|text| Nlri {
            prefix: p(text),
            path_id: 0,
        });
        let family = p(prefixes[0]).family();
        UpdateWriter::default().withdraw(family, routes, &mut out);
        self.hear(n, &out, false)
    }

    /// The rib takes messages from a peer.
    pub(super) fn hear(&mut self, n: u32, mut octets: &[u8], has_ids: bool) -> Received {
        let mut all = Received::default();
        let is_internal = self.rib.store.source(n).is_internal;
        let context = UpdateContext {
            add_path: [has_ids; 2],
            peer: kind(is_internal),
            ..UpdateContext::default()
        };
        while !octets.is_empty() {
            let (_, body, len) = frame(octets, 65_535).expect("sound").expect("whole");
            assert_eq!(body.len(), len - HEADER_LEN);
            octets = &octets[len..];
            let update = Update::read(body, &context).expect("a sound message");
            assert_eq!(update.faults(), []);
            let some = self.rib.receive(PeerId(n), &update);
            all.announced += some.announced;
            all.withdrawn += some.withdrawn;
            all.denied += some.denied;
            all.loops += some.loops;
            all.leaks += some.leaks;
            all.refused += some.refused;
            all.is_over_limit |= some.is_over_limit;
        }
        all
    }

    pub(super) fn work(&mut self) {
        while self.rib.work(10_000, self.now) {
            self.serve(usize::MAX);
        }
    }

    /// Lets each ready peer read, in pieces of `limit` octets.
    pub(super) fn serve(&mut self, limit: usize) {
        while let Some(PeerId(n)) = self.rib.poll_ready() {
            self.read(n, limit);
        }
    }

    /// Lets a peer read everything.
    pub(super) fn read(&mut self, n: u32, limit: usize) {
        loop {
            let mut out = Vec::new();
            let has_more = self.rib.fill(PeerId(n), &mut out, limit, self.now);
            if let Some((ear, context)) = self.ears.get_mut(&n) {
                ear.listen(&out, context);
            }
            if !has_more {
                break;
            }
        }
    }

    /// Works and serves until nothing is left to do.
    pub(super) fn settle(&mut self) {
        self.work();
        self.serve(4_096);
        self.work();
        self.serve(4_096);
    }

    pub(super) fn ear(&self, n: u32) -> &Ear {
        &self.ears[&n].0
    }
}

#[test]
fn a_route_goes_from_one_peer_to_the_others_and_not_back() {
    let mut net = Net::new();
    for n in 1..=3 {
        net.open(n, 64_500 + n);
    }
    net.settle();
    let received = net.say(
        1,
        &Said::path(&[64_501, 64_999]),
        &["10.1.0.0/16", "10.2.0.0/16"],
    );
    assert_eq!((received.announced, received.withdrawn), (2, 0));
    net.settle();
    for n in [2, 3] {
        assert_eq!(net.ear(n).prefixes(), ["10.1.0.0/16", "10.2.0.0/16"]);
        assert_eq!(net.ear(n).updates, 1);
        let heard = net.ear(n).get("10.1.0.0/16").expect("told");
        assert_eq!(heard.path(), "65000 64501 64999");
        assert_eq!(heard.next_hop, IpAddr::from([192, 0, 2, 254]));
    }
    assert_eq!(net.ear(1).prefixes(), [""; 0]);
    assert_eq!(net.ear(1).ends, FamilyId::ALL);
    net.unsay(1, &["10.1.0.0/16"]);
    net.settle();
    assert_eq!(net.ear(2).prefixes(), ["10.2.0.0/16"]);
    net.close(1, Families::NONE);
    net.settle();
    assert_eq!(net.ear(3).prefixes(), [""; 0]);
    let memory = net.rib.memory();
    assert_eq!((memory.attribute_sets, memory.path_count), (0, 0));
    assert_eq!(
        net.rib.store.slot(p("10.1.0.0/16")),
        None,
        "its place was given back"
    );
}

#[test]
fn both_families_go_side_by_side_with_their_own_next_hops() {
    let mut net = Net::new();
    net.open(1, 64_501);
    net.open(2, 64_502);
    let six: IpAddr = "2001:db8::1".parse().expect("an address");
    net.say(
        1,
        &Said::path(&[64_501]).over(six.into()),
        &["2001:db8:1::/48", "2001:db8:2::/48"],
    );
    net.say(1, &Said::path(&[64_501]), &["10.1.0.0/16"]);
    net.settle();
    let ear = net.ear(2);
    assert_eq!(
        ear.prefixes(),
        ["10.1.0.0/16", "2001:db8:1::/48", "2001:db8:2::/48"]
    );
    let own: IpAddr = "2001:db8::fe".parse().expect("an address");
    assert_eq!(
        ear.get("2001:db8:2::/48").map(|heard| heard.next_hop),
        Some(own)
    );
    assert_eq!(
        net.rib
            .best(p("2001:db8:1::/48"))
            .and_then(|r| r.next_hop)
            .map(NextHop::address),
        Some(six)
    );
}
