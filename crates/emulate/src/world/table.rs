//! Tables of routes in MRT files (RFC 6396): read to be announced, and written from a router's
//! routes.

use std::collections::HashMap;
use std::io::{self, Write};

use base::Instant;
use bgp::Speaker;
use bgp::rib::{Cursor, LocalRoute};
use capfile::mrt::{Body, Entry, Peer, PeerIndexTable, Writer, table_attributes};
use wire::bgp::attr::{self, code};
use wire::bgp::{FamilyId, PeerKind, Prefix, Update, UpdateContext, Verdict};

use super::World;

/// Entries of a table visited at a time.
const STEPS: u32 = 4_096;

/// The first route of a table record: its prefix, and its attributes without those meant for a
/// single neighbour.
pub(super) fn route(body: &Body<'_>) -> Option<(Prefix, LocalRoute)> {
    let (prefix, attributes, four_octet) = match body {
        Body::Rib(rib) if !rib.is_multicast => (rib.prefix, rib.entries().next()?.attributes, true),
        Body::TableDump(dump) => (dump.prefix, dump.attributes, false),
        Body::Rib(_)
        | Body::PeerIndexTable(_)
        | Body::RibGeneric { .. }
        | Body::Message(_)
        | Body::StateChange(_)
        | Body::Unknown { .. } => return None,
    };
    let context = UpdateContext {
        four_octet,
        peer: PeerKind::External,
        ..UpdateContext::default()
    };
    let update = Update::read_table_entry(attributes, prefix.family(), &context).ok()?;
    if update.verdict() != Verdict::Accept {
        return None;
    }
    let mut route = LocalRoute::default();
    for attribute in attr::iter(update.attributes()) {
        if !matches!(
            attribute.code,
            code::NEXT_HOP | code::MED | code::LOCAL_PREF
        ) {
            route.attributes.extend_from_slice(attribute.octets);
        }
    }
    Some((prefix, route))
}

impl World {
    /// Writes all routes of a router as an MRT table. For its own routes, the peer is the router
    /// itself.
    pub(crate) fn write_table(&self, router: u32, out: impl Write) -> io::Result<()> {
        let Some(speaker) = self.speaker(router) else {
            return Ok(());
        };
        let own = &self.scenario.topology.routers[router as usize];
        let (peers, places) = self.table_peers(router, speaker);
        let time_s = (self.now.since(Instant::ZERO).as_nanos() / 1_000_000_000) as u32;
        let mut writer = Writer::new(out);
        writer.peer_index_table(
            time_s,
            &PeerIndexTable {
                collector_id: own.address.to_bits(),
                view: own.name.as_bytes(),
                peers,
            },
        )?;
        let rib = speaker.rib();
        let mut sequence = 0;
        for family in FamilyId::ALL {
            let mut cursor = Some(Cursor::default());
            while let Some(at) = cursor {
                let mut prefixes = Vec::new();
                cursor = rib.walk(family, at, STEPS, |prefix| prefixes.push(prefix));
                for prefix in prefixes {
                    let entries: Vec<(u16, u32, Vec<u8>)> = rib
                        .routes(prefix)
                        .filter_map(|route| {
                            let place = match route.peer {
                                Some(peer) => *places.get(&peer.0)?,
                                None => 0,
                            };
                            let mapped = own.address.to_ipv6_mapped();
                            let next_hop = route
                                .next_hop
                                .or_else(|| family.own_next_hop(Some(own.address), Some(mapped)))?;
                            let mut octets = Vec::new();
                            table_attributes(route.received, next_hop, &mut octets);
                            Some((place, route.path_id, octets))
                        })
                        .collect();
                    let entries = entries.iter().map(|(place, path_id, octets)| Entry {
                        peer_index: *place,
                        originated_s: time_s,
                        path_id: *path_id,
                        attributes: octets,
                    });
                    writer.rib(time_s, sequence, prefix, false, entries)?;
                    sequence += 1;
                }
            }
        }
        writer.into_inner().flush()
    }

    /// The peers of a router's table, the router itself first, and the place of each by its number.
    fn table_peers(&self, router: u32, speaker: &Speaker) -> (Vec<Peer>, HashMap<u32, u16>) {
        let topology = &self.scenario.topology;
        let peer_of = |router: u32| {
            let router = &topology.routers[router as usize];
            Peer {
                router_id: router.address.to_bits(),
                address: router.address.into(),
                asn: router.asn,
            }
        };
        let mut peers = vec![peer_of(router)];
        let mut places = HashMap::new();
        for &(near, _) in self.lines.near(router) {
            let address = topology.routers[near as usize].address;
            let peer = speaker.peer(address.into());
            // An MRT table has no room for more peers.
            if let (Some(peer), Ok(place)) = (peer, u16::try_from(peers.len())) {
                places.insert(peer.0, place);
                peers.push(peer_of(near));
            }
        }
        (peers, places)
    }
}
