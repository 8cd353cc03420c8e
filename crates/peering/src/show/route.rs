//! Rows of routes.

use std::collections::BTreeMap;

use base::Instant;
use bgp::rib::{Reason, RouteView};
use bgp::{PeerId, Speaker};
use wire::bgp::attr::{self, Origin, code};
use wire::bgp::{NextHop, Nlri, Prefix};

use control::reply::Rows;
use control::rows;

/// Attributes that have a field of their own, or are of the message and not of the route.
const SHOWN: [u8; 11] = [
    code::ORIGIN,
    code::AS_PATH,
    code::NEXT_HOP,
    code::MED,
    code::LOCAL_PREF,
    code::COMMUNITIES,
    code::EXT_COMMUNITIES,
    code::LARGE_COMMUNITIES,
    code::OTC,
    code::MP_REACH,
    code::MP_UNREACH,
];

fn origin(attributes: &[u8]) -> &'static str {
    match attr::origin(attributes) {
        Origin::Igp => "i",
        Origin::Egp => "e",
        Origin::Incomplete => "?",
    }
}

/// The routes of a prefix, a line each: all of them, or those of a peer.
pub(super) fn lines(
    speaker: &Speaker,
    prefix: Prefix,
    from: Option<PeerId>,
    now: Instant,
    out: &mut Rows<'_>,
) {
    for route in speaker.rib().routes(prefix) {
        if from.is_some() && route.peer != from {
            continue;
        }
        let attributes = route.attributes.unwrap_or(route.received);
        let marks = [
            (route.is_stale, 'S'),
            (route.attributes.is_some(), '*'),
            (route.is_best, '>'),
            (route.is_internal, 'i'),
        ];
        let status = marks
            .into_iter()
            .filter(|(is, _)| *is)
            .map(|(_, mark)| mark)
            .collect();
        let view = route.peer.and_then(|peer| speaker.neighbor(peer, now));
        out.push(&rows::BgpRoute {
            schema: rows::BgpRoute::SCHEMA,
            status,
            prefix: prefix.to_string(),
            next_hop: route.next_hop.map(NextHop::address),
            med: attr::med(attributes),
            local_pref: attr::local_pref(attributes),
            as_path: attr::as_path(attributes).to_string(),
            origin: origin(attributes),
            peer: view.map(|view| view.remote),
            best: route.is_best,
        });
    }
}

/// Writes the row of a route as it is advertised to a peer.
pub(super) fn sent(nlri: Nlri, attributes: &[u8], next_hop: NextHop, out: &mut Rows<'_>) {
    out.push(&rows::BgpRoute {
        schema: rows::BgpRoute::SCHEMA,
        status: "*>".into(),
        prefix: nlri.prefix.to_string(),
        next_hop: Some(next_hop.address()),
        med: attr::med(attributes),
        local_pref: attr::local_pref(attributes),
        as_path: attr::as_path(attributes).to_string(),
        origin: origin(attributes),
        peer: None,
        best: true,
    });
}

/// All about the routes of a prefix, the best one first.
pub(super) fn paths(speaker: &Speaker, prefix: Prefix, now: Instant, out: &mut Rows<'_>) {
    let rib = speaker.rib();
    let reasons = rib.reasons(prefix);
    let mut routes: Vec<(RouteView<'_>, Reason)> = rib.routes(prefix).zip(reasons).collect();
    routes.sort_by_key(|(route, _)| !route.is_best);
    let others: Vec<Reason> = routes
        .iter()
        .skip(1)
        .map(|(_, reason)| reason.clone())
        .collect();
    for (route, reason) in &routes {
        let because = match reason {
            Reason::Best => best_because(&others),
            other => other.to_string(),
        };
        let attributes = route.attributes.unwrap_or(route.received);
        let view = route.peer.and_then(|peer| speaker.neighbor(peer, now));
        let agreed = view.as_ref().and_then(|view| view.agreed.as_ref());
        out.push(&rows::BgpPath {
            schema: rows::BgpPath::SCHEMA,
            prefix: prefix.to_string(),
            best: route.is_best,
            because,
            peer: view.as_ref().map(|view| view.remote),
            peer_asn: agreed.map(|agreed| agreed.remote_asn),
            peer_router_id: agreed.map(|agreed| agreed.router_id),
            path_id: (route.path_id != 0).then_some(route.path_id),
            next_hop: route.next_hop.map(NextHop::address),
            as_path: attr::as_path(attributes).to_string(),
            origin: origin(attributes),
            med: attr::med(attributes),
            local_pref: attr::local_pref(attributes),
            communities: attr::communities(attributes)
                .map(|one| one.to_string())
                .collect(),
            ext_communities: attr::ext_communities(attributes)
                .map(|one| one.to_string())
                .collect(),
            large_communities: attr::large_communities(attributes)
                .map(|one| one.to_string())
                .collect(),
            otc: attr::otc(attributes),
            stale: route.is_stale,
            unknown: unknown(attributes),
        });
    }
}

/// Why the best is the best: what the others lost by.
fn best_because(others: &[Reason]) -> String {
    if others.is_empty() {
        return "the only route".into();
    }
    let mut lost: BTreeMap<String, usize> = BTreeMap::new();
    for reason in others {
        *lost.entry(reason.to_string()).or_default() += 1;
    }
    let times = |(reason, count): (String, usize)| match count {
        1 => reason,
        _ => format!("{reason} ({count} times)"),
    };
    let lost: Vec<String> = lost.into_iter().map(times).collect();
    format!("the others lost: {}", lost.join("; "))
}

fn unknown(attributes: &[u8]) -> BTreeMap<u8, String> {
    let others = attr::iter(attributes).filter(|one| !SHOWN.contains(&one.code));
    others
        .map(|one| (one.code, one.show().to_string()))
        .collect()
}
