//! Rows of RADIUS servers, and of accounting records in delivery.

use aaa::dynauth::Cause;
use aaa::radius::Discard;

use super::{Rows, Step, micros, seconds};
use crate::authority::Radius;
use crate::core::Core;
use control::rows;

/// The row of a server and one of its purposes; after the last one, the row of totals.
pub(super) fn next(core: &Core, cursor: u32, out: &mut Rows) -> Step {
    let Some(radius) = core.authority.radius() else {
        return Step::End;
    };
    let Some(service) = radius.client().services().nth(cursor as usize) else {
        totals(radius, out);
        return Step::End;
    };
    let counters = &service.counters;
    let ignored = Discard::NAMES.into_iter().zip(counters.discards);
    out.push(&rows::RadiusServer {
        schema: rows::RadiusServer::SCHEMA,
        name: service.name,
        purpose: service.purpose.name(),
        address: service.address,
        state: if service.dead_since.is_some() {
            "dead"
        } else {
            "alive"
        },
        dead_s: service
            .dead_since
            .map(|since| seconds(core.now.since(since))),
        outstanding: service.outstanding,
        sockets: service.sockets,
        rtt_last_us: service.rtt_last.map(micros),
        rtt_us: service.rtt_smoothed.map(micros),
        requests: counters.requests,
        retransmissions: counters.retransmissions,
        timeouts: counters.timeouts,
        given_up: counters.given_up,
        accepts: counters.accepts,
        unusable_accepts: counters.unusable_accepts,
        rejects: counters.rejects,
        challenges: counters.challenges,
        recorded: counters.recorded,
        attributes_ignored: counters.attributes_ignored,
        intervals_raised: counters.intervals_raised,
        queues_left_out: counters.queues_left_out,
        deaths: counters.deaths,
        ignored: ignored.clone().map(|(_, count)| count).sum(),
        ignored_because: ignored.filter(|(_, count)| *count > 0).collect(),
    });
    Step::From(cursor + 1)
}

fn totals(radius: &Radius, out: &mut Rows) {
    let requests = radius.client().totals();
    let (records, store, lost) = radius.totals();
    out.push(&rows::Radius {
        schema: rows::Radius::SCHEMA,
        outstanding: requests.outstanding,
        waiting: requests.waiting,
        refused: requests.refused,
        failed: requests.failed,
        unknown_server: requests.unknown_server,
        records_held: records.held,
        records_in_flight: records.in_flight,
        records_delivered: records.delivered,
        records_failures: records.failures,
        records_given_up: records.given_up,
        records_lost: lost,
        store: store.map(|store| rows::Store {
            stored: store.stored,
            stored_octets: store.stored_octets,
            open: store.drafts,
            pending: store.pending,
            commits: store.commits,
            commit_last_us: micros(store.commit_last.into()),
            commit_longest_us: micros(store.commit_longest.into()),
            refused: store.refused_full + store.refused_behind + store.refused_length,
        }),
        disconnects: radius.disconnects().map(|counters| rows::Disconnects {
            requests: counters.requests,
            acks: counters.acks,
            naks: counters.naks,
            changes: counters.changes,
            change_acks: counters.change_acks,
            change_naks: counters.change_naks,
            refused_because: (Cause::ALL.iter().map(|cause| cause.name()))
                .zip(counters.causes)
                .filter(|(_, count)| *count > 0)
                .collect(),
            repeated: counters.repeated,
            unknown_client: counters.unknown_client,
            malformed: counters.malformed,
            unauthentic: counters.unauthentic,
            stale: counters.stale,
            busy: counters.busy + counters.in_progress,
        }),
    });
}
