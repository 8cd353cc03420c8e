//! Routes: those that routers originate, and where each router's routes to the watched addresses
//! lead.

use std::path::Path;

use base::Instant;
use bgp::Speaker;
use bgp::rib::{LocalRoute, Rib};
use capfile::mrt;
use wire::bgp::attr::{self, code};
use wire::bgp::{Prefix, SegmentKind};

use super::World;
use crate::observer::{Observer, Sight};
use crate::outcomes::Route;

/// Originates a prefix, with the AS `origin` behind the router's own if one is given.
pub(super) fn originate(speaker: &mut Speaker, prefix: Prefix, origin: Option<u32>) {
    let mut route = LocalRoute::default();
    if let Some(origin) = origin {
        attr::put_with(code::AS_PATH, &mut route.attributes, |out| {
            out.extend([SegmentKind::Sequence as u8, 1]);
            out.extend(origin.to_be_bytes());
        });
    }
    speaker.originate(prefix, &route);
}

impl World {
    /// Notes which best routes of a router have changed, and where its routes to watched addresses
    /// lead now.
    pub(super) fn look(&mut self, router: u32, speaker: &mut Speaker) {
        let now = self.now;
        let (mut changes, mut watched) = (0, false);
        while let Some(change) = speaker.poll_change() {
            changes += 1;
            watched |= self.observer.is_watched(change.prefix);
        }
        self.observer.changed(router, changes, now);
        if watched {
            let asn = self.scenario.topology.routers[router as usize].asn;
            believe(&mut self.observer, router, asn, speaker.rib(), now);
        }
    }

    /// Looks at every router again, since more addresses are watched.
    pub(crate) fn look_again(&mut self) {
        let routers = self.scenario.topology.routers.iter().zip(0..);
        for (own, router) in routers {
            if let Some(speaker) = &self.nodes[router as usize].speaker {
                believe(&mut self.observer, router, own.asn, speaker.rib(), self.now);
            }
        }
    }

    /// Notes that a router that has failed has no routes.
    pub(super) fn forget_beliefs(&mut self, router: u32) {
        for watch in 0..self.observer.watches.len() {
            self.observer
                .believes(watch, router, Sight::default(), self.now);
        }
    }

    /// A router announces the routes of a table.
    ///
    /// The first route of each prefix is taken; unreadable routes are left out. The file existed
    /// when the scenario was read. If it has a fault now, the replay ends there.
    pub(super) fn replay(&mut self, router: u32, file: &Path, routes_max: usize) {
        let Some(speaker) = &mut self.nodes[router as usize].speaker else {
            return;
        };
        let Some(mut reader) = std::fs::File::open(file)
            .ok()
            .and_then(|f| mrt::Reader::open(f).ok())
        else {
            return;
        };
        let mut routes = 0;
        while let Ok(Some(record)) = reader.next_record() {
            if routes == routes_max {
                break;
            }
            if let Some((prefix, route)) = super::table::route(&record.body) {
                speaker.originate(prefix, &route);
                routes += 1;
            }
        }
        self.wake(router);
    }
}

/// Notes where a router's longest match leads, for every watched address.
fn believe(observer: &mut Observer, router: u32, asn: u32, rib: &Rib, now: Instant) {
    for number in 0..observer.watches.len() {
        let watch = &observer.watches[number];
        let best = watch.prefixes.iter().find_map(|prefix| {
            let best = rib.best(*prefix)?;
            Some((*prefix, best.peer, best.attributes?, best.next_hop))
        });
        let sight = best.map_or_else(Sight::default, |(prefix, peer, attributes, next_hop)| {
            let path = attr::as_path(attributes);
            let (belief, length) = watch.judge(asn, peer.is_none(), path.asns());
            let route = Route {
                prefix,
                next_hop: next_hop.filter(|_| peer.is_some()).map(|hop| hop.address()),
                origin: if path.is_empty() {
                    Some(asn)
                } else {
                    path.origin_as()
                },
                path: path.to_string().into(),
            };
            Sight {
                belief,
                length,
                route: Some(route),
            }
        });
        observer.believes(number, router, sight, now);
    }
}
