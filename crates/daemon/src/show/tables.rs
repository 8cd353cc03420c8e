//! Rows of the endpoint's tables and counters.

use base::Instant;
use edge::access::Either::First;
use l2tp::{Codes, Endpoint, PeerView, Pseudowire, SessionEnd, SessionView, TunnelEnd, TunnelView};

use super::{Rows, Step, seconds};
use crate::core::Core;
use crate::sockets;
use control::rows;

pub(super) fn tunnel(view: &TunnelView, now: Instant, out: &mut Rows) {
    let state: &dyn std::fmt::Display = if view.closing {
        &"closing"
    } else {
        &view.state
    };
    out.push(&rows::Tunnel {
        schema: rows::Tunnel::SCHEMA,
        id: view.id,
        remote_id: view.remote_id,
        version: view.version.number(),
        state,
        role: if view.originated { "lac" } else { "lns" },
        peer: view.route.peer,
        local: view.route.local,
        host_name: view.host_name,
        config_id: view.config_id,
        sessions: view.sessions,
        age_s: seconds(now.since(view.created)),
        up_s: view.up.map(|up| seconds(now.since(up))),
        window: view.peer_window,
        cwnd: view.cwnd,
        outstanding: view.outstanding,
        rx: view.received,
        tx: view.sent,
        retransmissions: view.retransmissions,
        duplicates: view.duplicates,
    });
}

pub(super) fn session(view: &SessionView, core: &Core, out: &mut Rows) {
    let now = core.now;
    let key = First(view.key);
    let to_lns = core.edge.switched_to(key);
    let subscriber = to_lns.and_then(|key| core.edge.subscriber(key));
    let own_half = subscriber.map(|one| one.place.to_string());
    let subscriber = subscriber.or_else(|| core.edge.subscriber_in(key));
    let far = subscriber.and_then(|one| core.edge.switched(one.key)?.place);
    let other = own_half.or_else(|| far.map(|place| place.to_string()));
    let name = subscriber.map(|subscriber| String::from_utf8_lossy(subscriber.name));
    let called = view
        .details
        .map_or(&[][..], |details| &details.called_number);
    out.push(&rows::Session {
        schema: rows::Session::SCHEMA,
        id: view.id,
        remote_id: view.remote_id,
        tunnel: view.tunnel_id,
        version: view.version.number(),
        role: &view.role,
        state: &view.state,
        pseudowire: Pseudowire::from_number(view.pseudowire).map_or("other", Pseudowire::name),
        age_s: seconds(now.since(view.created)),
        up_s: view.up.map(|up| seconds(now.since(up))),
        other,
        called_number: &String::from_utf8_lossy(called),
        subscriber: name.as_deref(),
        phase: subscriber.map(|subscriber| subscriber.phase.name()),
        address: subscriber.and_then(|subscriber| subscriber.address),
        octets_in: subscriber.map(|subscriber| subscriber.traffic.octets_in),
        octets_out: subscriber.map(|subscriber| subscriber.traffic.octets_out),
    });
}

pub(super) fn peer(view: &PeerView, out: &mut Rows) {
    out.push(&rows::Peer {
        schema: rows::Peer::SCHEMA,
        address: view.addr,
        tunnels: view.tunnels,
        opened_total: view.opened_total,
    });
}

pub(super) fn ended_tunnel(endpoint: &Endpoint, cursor: u32, now: Instant, out: &mut Rows) -> Step {
    let Some(ended) = endpoint.ended_tunnel(cursor as usize) else {
        return Step::End;
    };
    let (result, error) = match &ended.reason {
        TunnelEnd::Peer(notice) => (Some(notice.result), notice.error),
        reason => codes(reason.codes(ended.version)),
    };
    out.push(&rows::Ended {
        schema: rows::Ended::SCHEMA,
        tunnel: ended.id,
        session: None,
        version: ended.version.number(),
        peer: Some(ended.route.peer),
        ended_s_ago: seconds(now.since(ended.ended)),
        reason: &ended.reason,
        result,
        error,
    });
    Step::From(cursor + 1)
}

pub(super) fn ended_session(
    endpoint: &Endpoint,
    cursor: u32,
    now: Instant,
    out: &mut Rows,
) -> Step {
    let Some(ended) = endpoint.ended_session(cursor as usize) else {
        return Step::End;
    };
    let (result, error) = match &ended.reason {
        SessionEnd::Peer(notice) => (Some(notice.result), notice.error),
        reason => codes(reason.codes(ended.version)),
    };
    out.push(&rows::Ended {
        schema: rows::Ended::SCHEMA,
        tunnel: ended.tunnel_id,
        session: Some(ended.id),
        version: ended.version.number(),
        peer: None,
        ended_s_ago: seconds(now.since(ended.ended)),
        reason: &ended.reason,
        result,
        error,
    });
    Step::From(cursor + 1)
}

/// The Result Code and Error Code that we sent, if any.
fn codes(codes: Option<Codes>) -> (Option<u16>, Option<u16>) {
    codes.map_or((None, None), |codes| (Some(codes.result), codes.error))
}

/// The counters of waits after failed logins and of the audit log, if they are configured.
fn login_counters(core: &Core, push: &mut impl FnMut(&dyn std::fmt::Display, u64)) {
    if let Some(throttle) = core.authority.throttle() {
        push(&"logins_throttled", throttle.throttled);
        push(&"logins_throttle_evicted", throttle.evicted);
    }
    if let Some([written, lost]) = crate::audit::counters() {
        push(&"audit_lines", written);
        push(&"audit_lines_lost", lost);
    }
}

/// The counters of PPPoE, if there are interfaces.
fn pppoe_counters(core: &Core, push: &mut impl FnMut(&dyn std::fmt::Display, u64)) {
    if core.ports.len() > 0 {
        for (name, value) in core.edge.endpoint().pppoe().counters().rows() {
            push(&format_args!("pppoe_{name}"), value);
        }
    }
}

/// Counters of sessions that are handed over, of IPv6 on the links, and of the edge's discards.
fn edge_counters(core: &Core, push: &mut impl FnMut(&dyn std::fmt::Display, u64)) {
    let switched = core.edge.switch_counts();
    push(&"switched_sessions", switched.sessions);
    push(&"switched_taken", switched.taken);
    push(&"switched_failed_over", switched.failed_over);
    push(&"switched_not_taken", switched.not_taken);
    push(&"switched_own_address", switched.own_address);
    push(&"switched_speeds_reported", switched.speeds_reported);
    push(&"switched_frames_not_held", switched.not_held);
    for what in edge::v6::V6Count::ALL {
        let count = core.edge.v6_counts().of(what);
        push(&format_args!("ipv6_{}", what.name()), count);
    }
    for why in edge::Discard::all() {
        push(
            &format_args!("edge_{}", why.name()),
            core.edge.discarded(why),
        );
    }
}

pub(super) fn counters(core: &Core, out: &mut Rows) {
    let mut push = |name: &dyn std::fmt::Display, value: u64| {
        out.push(&rows::Counter {
            schema: rows::Counter::SCHEMA,
            name,
            value,
        });
    };
    for (name, value) in core.edge.endpoint().l2tp().counters() {
        push(&name, value);
    }
    pppoe_counters(core, &mut push);
    if let Some(routes) = &core.routes {
        let counts = routes.counts();
        push(&"bgp_connections", counts.connections.into());
        push(&"bgp_connections_blocked", counts.blocked.into());
        push(&"bgp_connections_refused", counts.refused);
        push(&"bgp_connections_short", counts.short);
        push(&"bgp_octets_in", counts.octets_in);
        push(&"bgp_octets_out", counts.octets_out);
    }
    let others = core.shards.sum();
    let udp = sockets::add(core.sockets.stats(), others.udp);
    push(&"udp_received", udp.received);
    push(&"udp_sent", udp.sent);
    push(&"udp_truncated", udp.truncated);
    push(&"udp_receive_errors", udp.receive_errors);
    push(&"udp_send_blocked", udp.blocked);
    push(
        &"udp_send_dropped",
        core.sockets.dropped + others.send_dropped,
    );
    let counts = core.edge.counts();
    push(&"subscribers", counts.subscribers as u64);
    push(&"subscribers_came_up", counts.up);
    push(&"subscribers_ended", counts.down);
    push(&"subscribers_refused", counts.refused);
    push(&"subscribers_without_address", counts.without_address);
    push(&"subscribers_too_many", counts.too_many);
    push(&"subscriber_routes", counts.routes as u64);
    push(&"subscriber_routes_refused", counts.routes_refused);
    push(&"subscriber_queue_faults", counts.queue_faults);
    login_counters(core, &mut push);
    push(&"lcp_echo_replies", counts.echo_replies);
    push(&"icmp_errors_sent", counts.icmp_errors);
    edge_counters(core, &mut push);
    let written = core.inside.written().with(others.written);
    push(&"tun_read", written.read);
    push(&"tun_written", written.calls);
    push(&"tun_refused", written.refused);
    push(&"tun_missing", core.inside.nowhere + others.nowhere);
    if let Some(clients) = &core.inside.clients {
        push(&"client_addresses", clients.len());
        push(&"client_addresses_refused", clients.refused());
        push(
            &"client_default_route",
            u64::from(
                clients
                    .default_route()
                    .is_some_and(|route| route.is_there()),
            ),
        );
    }
}
