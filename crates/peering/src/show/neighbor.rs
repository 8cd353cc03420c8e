//! Rows of peers.

use std::collections::BTreeMap;

use base::{Duration, Instant};
use bgp::fsm::State;
use bgp::peer::{Counts, Origin};
use bgp::speaker::NeighborView;
use bgp::{CloseReason, RemoteAsn, Speaker};
use wire::bgp::{Families, FamilyId};

use super::answer::by_family;
use control::reply::Rows;
use control::rows;

/// Seconds to the millisecond.
pub(super) fn seconds(span: Duration) -> f64 {
    (span.as_nanos() as f64 / 1e6).round() / 1e3
}

fn asn(view: &NeighborView) -> Option<u32> {
    let agreed = view.agreed.as_ref().map(|agreed| agreed.remote_asn);
    agreed.or(match view.expected_asn {
        RemoteAsn::Exactly(asn) => Some(asn),
        RemoteAsn::Any | RemoteAsn::External | RemoteAsn::Internal => None,
    })
}

fn received(counts: &Counts) -> BTreeMap<&'static str, u64> {
    BTreeMap::from([
        ("open", counts.opens_in.into()),
        ("update", counts.updates_in),
        ("notification", counts.notifications_in.into()),
        ("keepalive", counts.keepalives_in),
        ("route_refresh", counts.refreshes_in.into()),
    ])
}

fn sent(counts: &Counts) -> BTreeMap<&'static str, u64> {
    BTreeMap::from([
        ("open", counts.opens_out.into()),
        ("update", counts.updates_out),
        ("notification", counts.notifications_out.into()),
        ("keepalive", counts.keepalives_out),
        ("route_refresh", counts.refreshes_out.into()),
    ])
}

/// A line.
pub(super) fn line(view: &NeighborView, speaker: &Speaker, now: Instant, out: &mut Rows<'_>) {
    let counts = |of: fn(&bgp::rib::PeerCounts) -> u32| -> u64 {
        let all = Families::ALL.iter();
        all.map(|family| u64::from(of(&speaker.rib().peer_counts(view.id, family))))
            .sum()
    };
    let (prefixes_in, prefixes_out) = (
        counts(|counts| counts.received),
        counts(|counts| counts.sent),
    );
    let state_or_prefixes = match view.state {
        State::Established => prefixes_in.to_string(),
        State::Idle if matches!(view.last_end, Some(CloseReason::PrefixLimit { .. })) => {
            "Idle (prefixes)".into()
        }
        State::Idle if !view.is_started => "Idle (stopped)".into(),
        state => state.name().into(),
    };
    out.push(&rows::BgpNeighbor {
        schema: rows::BgpNeighbor::SCHEMA,
        address: view.remote,
        name: view.name.as_deref(),
        version: 4,
        asn: asn(view),
        messages_in: received(&view.counts).values().sum(),
        messages_out: sent(&view.counts).values().sum(),
        since_s: view.since.map(|at| seconds(now.since(at))),
        state: view.state.name(),
        state_or_prefixes,
        prefixes_in,
        prefixes_out,
    });
}

/// All about it.
pub(super) fn detail(view: &NeighborView, speaker: &Speaker, now: Instant, out: &mut Rows<'_>) {
    let agreed = view.agreed.as_ref();
    let timed = agreed.filter(|agreed| agreed.hold_time_s > 0);
    let counts = |family| speaker.rib().peer_counts(view.id, family);
    let capabilities = agreed.map_or(Vec::new(), |agreed| {
        let all = [
            ("four-octet-as", agreed.four_octet),
            ("route-refresh", agreed.refresh),
            ("extended-messages", agreed.extended),
            ("add-path-in", !agreed.add_path_in.is_empty()),
            ("add-path-out", !agreed.add_path_out.is_empty()),
            ("graceful-restart", agreed.graceful.is_some()),
        ];
        all.into_iter()
            .filter(|(_, is_there)| *is_there)
            .map(|(name, _)| name)
            .collect()
    });
    let malformed = view.malformed.as_ref();
    out.push(&rows::BgpNeighborDetail {
        schema: rows::BgpNeighborDetail::SCHEMA,
        address: view.remote,
        name: view.name.as_deref(),
        origin: match view.origin {
            Origin::Configured => "configured",
            Origin::Dynamic(_) => "dynamic",
        },
        asn: asn(view),
        local_asn: agreed.map(|agreed| agreed.local_asn),
        router_id: agreed.map(|agreed| agreed.router_id),
        state: view.state.name(),
        is_started: view.is_started,
        since_s: view.since.map(|at| seconds(now.since(at))),
        local: view.connection.map(|(local, _)| local),
        remote: view.connection.map(|(_, remote)| remote),
        outgoing: view.outgoing,
        hold_time_s: Some(agreed.map_or(view.hold_time_s, |agreed| agreed.hold_time_s)),
        keepalive_s: timed.map(|agreed| agreed.keepalive_s),
        heard_s_ago: view.heard.map(|at| seconds(now.since(at))),
        hold_left_s: view.hold_left.map(seconds),
        next_try_s: view.next_try.map(|at| seconds(at.since(now))),
        retries: view.retry_counter,
        families: agreed.map_or(Vec::new(), |agreed| {
            agreed.families.iter().map(FamilyId::key).collect()
        }),
        capabilities,
        role: agreed
            .and_then(|agreed| agreed.role)
            .map(|role| role.to_string()),
        graceful_restart_s: agreed
            .and_then(|agreed| agreed.graceful)
            .map(|graceful| graceful.time_s),
        stale_left_s: view.stale_until.map(|at| seconds(at.since(now))),
        prefixes_in: by_family(|family| counts(family).received.into()),
        prefixes_out: by_family(|family| counts(family).sent.into()),
        messages_in: received(&view.counts),
        messages_out: sent(&view.counts),
        ups: view.counts.ups,
        collisions: view.counts.collisions,
        is_blocked: view.is_blocked,
        last_end: view.last_end.as_ref().map(ToString::to_string),
        malformed: view.counts.malformed,
        malformed_s_ago: malformed.map(|malformed| seconds(now.since(malformed.at))),
        malformed_because: malformed.map(|malformed| &*malformed.why),
        malformed_octets: malformed.map(|malformed| hexadecimal(&malformed.octets)),
    });
}

/// How near it is to the end of its hold time, if it has one.
pub(super) fn hold(view: &NeighborView, now: Instant, out: &mut Rows<'_>) {
    let (Some(left), Some(heard)) = (view.hold_left, view.heard) else {
        return;
    };
    let agreed = view.agreed.as_ref();
    out.push(&rows::BgpHold {
        schema: rows::BgpHold::SCHEMA,
        peer: view.remote,
        hold_time_s: agreed.map_or(view.hold_time_s, |agreed| agreed.hold_time_s),
        heard_s_ago: seconds(now.since(heard)),
        hold_left_s: seconds(left),
    });
}

/// Octets as digits.
pub(super) fn hexadecimal(octets: &[u8]) -> String {
    use std::fmt::Write;
    octets.iter().fold(
        String::with_capacity(2 * octets.len()),
        |mut text, octet| {
            // Writing to a string does not fail.
            let _ = write!(text, "{octet:02x}");
            text
        },
    )
}
