//! Rows of subscribers, connected and disconnected.

use std::net::Ipv4Addr;

use crate::served::{Edge, Place, SubscriberView, SwitchedView};
use aaa::queue::Way;
use base::{Duration, Instant};
use edge::SubscriberKey;
use edge::access::Either;
use edge::access::Either::{First, Second};
use edge::v6::link_local;
use hqos::View;
use l2tp::{SessionView, TunnelView};

use super::queues::{Answer, Question};
use super::{Rows, Step, What, micros, seconds};
use crate::core::Core;
use control::request::{State, SubscriberFilter};
use control::rows;

/// The subscriber at or after the cursor, if it matches.
pub(super) fn next(
    core: &Core,
    filter: &mut SubscriberFilter,
    cursor: u32,
    out: &mut Rows,
) -> Step {
    if filter.limit == Some(0) {
        return Step::End;
    }
    let Some((next, view)) = core.edge.next_subscriber(cursor) else {
        return Step::End;
    };
    if is_wanted(filter, &view) {
        line(core, &view, out);
        filter.limit = filter.limit.map(|left| left.saturating_sub(1));
    }
    Step::From(next)
}

pub(super) fn is_wanted(filter: &SubscriberFilter, view: &SubscriberView) -> bool {
    let has = |text: &String| {
        let text = text.as_bytes();
        text.is_empty() || view.name.windows(text.len()).any(|part| part == text)
    };
    filter.name.as_ref().is_none_or(has)
        && filter.state.is_none_or(|state| is_in(state, view.phase))
        && filter
            .tunnel
            .is_none_or(|tunnel| tunnel_id(view.place) == tunnel)
}

fn is_in(state: State, phase: edge::Phase) -> bool {
    match state {
        State::Link => phase == edge::Phase::Link,
        State::Asking => phase == edge::Phase::Asking,
        State::Networks => phase == edge::Phase::Networks,
        State::Up => phase == edge::Phase::Up,
        State::Ending => phase == edge::Phase::Ending,
    }
}

fn traffic(traffic: edge::Traffic) -> rows::Traffic {
    rows::Traffic {
        packets_in: traffic.packets_in,
        octets_in: traffic.octets_in,
        packets_out: traffic.packets_out,
        octets_out: traffic.octets_out,
        dropped: traffic.dropped,
    }
}

fn texts(prefixes: &[aaa::Prefix]) -> Vec<String> {
    prefixes.iter().map(ToString::to_string).collect()
}

/// The filter that is in force for a subscriber, be it the default one.
fn filter_name<'a>(core: &'a Core, view: &SubscriberView) -> Option<&'a str> {
    let set = core.edge.filters().set();
    Some(set.get(view.filter?)?.name())
}

/// Rates, template and link of a subscriber's queues, with their sources.
pub(crate) fn queue(setting: Option<&edge::Setting>) -> rows::SubscriberQueue<'_> {
    let Some(setting) = setting else {
        return rows::SubscriberQueue::default();
    };
    let from = |source: Option<edge::Source>| source.map(edge::Source::name);
    let [down, up] = setting.rate_sources;
    rows::SubscriberQueue {
        rate_down_bps: setting.rate_bps(Way::Down),
        rate_up_bps: setting.rate_bps(Way::Up),
        template: Some(&setting.template),
        link: setting.link.as_deref(),
        rate_down_from: from(down),
        rate_up_from: from(up),
        template_from: from(setting.template_source),
        link_from: from(setting.link_source),
    }
}

/// Filter, garden, times and networks of a subscriber.
pub(crate) fn policy<'a>(core: &'a Core, view: &SubscriberView<'a>) -> rows::SubscriberPolicy<'a> {
    let profile = view.profile;
    let times = times(core, view);
    rows::SubscriberPolicy {
        filter: filter_name(core, view),
        garden: profile.and_then(|profile| profile.garden.as_deref()),
        session_timeout_s: times.session_timeout_s,
        idle_timeout_s: times.idle_timeout_s,
        interim_interval_s: times.interim_interval_s,
        routes: texts(profile.map_or(&[], |profile| &profile.routes)),
    }
}

/// What a queue holds and has done.
fn queue_now(view: &View) -> rows::QueueNow {
    rows::QueueNow {
        backlog_packets: view.packets,
        backlog_octets: view.octets,
        passed: view.counts.passed,
        waited: view.counts.queued,
        dropped: view.counts.dropped,
        marked: view.counts.marked,
        delay_p50_us: view.p50.map(micros),
        delay_p99_us: view.p99.map(micros),
    }
}

pub(super) fn line(core: &Core, view: &SubscriberView, out: &mut Rows) {
    let tunnel = tunnel_of(&core.edge, view);
    out.push(&rows::Subscriber {
        schema: rows::Subscriber::SCHEMA,
        name: &String::from_utf8_lossy(view.name),
        state: view.phase.name(),
        role: role(view),
        address: view.address,
        prefix: view.leases.prefix.map(|one| one.to_string()),
        delegated: view.leases.delegated.map(|one| one.to_string()),
        address_v6: view.leases.address.map(|one| one.address()),
        interface_id: view.ipv6.map(|both| interface_id(view, both)),
        ipv6cp: view.link.view().ipv6.map(|(state, _)| state.name()),
        dhcpv6: view.ipv6.map(|_| dhcpv6(core, view)),
        access: access(view.place),
        tunnel: tunnel_id(view.place),
        session: session_id(view.place),
        peer: match view.place {
            First(_) => tunnel.map(|tunnel| tunnel.route.peer.to_string()),
            Second(place) => Some(format!(
                "{} {}",
                core.line_name(place.route),
                place.route.peer
            )),
        },
        lns: (core.edge.switched(view.key)).map(|far| far.tunnel.server.to_string()),
        filter: filter_name(core, view),
        rate_down_bps: queue(view.queue).rate_down_bps,
        rate_up_bps: queue(view.queue).rate_up_bps,
        template: queue(view.queue).template,
        link: queue(view.queue).link,
        age_s: seconds(core.now.since(view.created)),
        up_s: view.up.map(|up| seconds(core.now.since(up))),
        echo_rtt_us: view.link.echo_rtt_us(),
        traffic: traffic(view.traffic),
    });
}

/// These subscribers in detail, then the last ended sessions of their name.
pub(crate) struct Details {
    keys: Vec<SubscriberKey>,
    name: Box<[u8]>,
    history: u32,
    question: Question,
}

impl Details {
    pub(crate) fn new(keys: Vec<SubscriberKey>, name: Box<[u8]>, history: u32) -> Self {
        Self {
            keys,
            name,
            history,
            question: Question::default(),
        }
    }

    pub(super) fn next(&mut self, core: &mut Core, cursor: u32, out: &mut Rows) -> Step {
        let Some(&key) = self.keys.get(cursor as usize) else {
            return Step::Then(What::EndedSubscribers {
                name: Some(core::mem::take(&mut self.name)),
                left: self.history,
            });
        };
        let queues = match self.question.ask(core, key, 0) {
            Answer::Later => return Step::From(cursor),
            Answer::Nothing => None,
            Answer::Views(views) => Some(views),
        };
        detail(core, key, queues.as_deref(), out);
        Step::From(cursor + 1)
    }
}

/// Everything about one subscriber, if it still exists.
fn detail(core: &Core, key: SubscriberKey, queues: Option<&[View; 2]>, out: &mut Rows) {
    let Some(view) = core.edge.subscriber(key) else {
        return;
    };
    let session = view.session.first();
    let session = session.and_then(|session| core.edge.endpoint().l2tp().session(session));
    let tunnel = tunnel_of(&core.edge, &view);
    let profile = view.profile;
    let ending = view.ending;
    let link = view.link.view();
    let left = |end: Option<Instant>| end.map(|at| seconds(at.since(core.now)));
    out.push(&rows::Detail {
        schema: rows::Detail::SCHEMA,
        name: &String::from_utf8_lossy(view.name),
        state: view.phase.name(),
        role: role(&view),
        ending: ending.as_ref().map(|end| end as &dyn std::fmt::Display),
        tunnel: tunnel.as_ref().map(|tunnel| tunnel_part(tunnel, core.now)),
        session: session.as_ref().map(session_part),
        pppoe: view
            .session
            .second()
            .and_then(|session| pppoe_part(core, session)),
        lns: core.edge.switched(key).map(|far| lns_part(core, &far)),
        ppp: ppp(&link),
        ipv4: ipv4(&view, &link),
        ipv6: view.ipv6.map(|[local, peer]| rows::Ipv6 {
            local: link_local(local),
            peer: link_local(peer),
            prefix: view.leases.prefix.map(|one| one.to_string()),
            delegated: view.leases.delegated.map(|one| one.to_string()),
            address: view.leases.address.map(|one| one.address()),
            interface_id: interface_id(&view, [local, peer]),
            dhcpv6: dhcpv6(core, &view),
            delegated_left_s: left(view.lease_ends[1]),
            address_left_s: left(view.lease_ends[0]),
        }),
        mtu: view.mtu,
        routes: texts(profile.map_or(&[], |profile| &profile.routes)),
        routes_missing: texts(&core.edge.missing_routes(key)),
        filter: filter_name(core, &view),
        garden: profile.and_then(|profile| profile.garden.as_deref()),
        queue: queue(view.queue),
        queue_down: queues.map(|[down, _]| queue_now(down)),
        queue_up: queues.map(|[_, up]| queue_now(up)),
        account: core.authority.account(view.account),
        times: times(core, &view),
        echo_rtt_us: view.link.echo_rtt_us(),
        traffic: traffic(view.traffic),
    });
}

/// The ended session at the cursor, newest first, if its user has this name.
pub(super) fn ended(core: &Core, name: Option<&[u8]>, cursor: u32, out: &mut Rows) -> Step {
    let Some(ended) = core.edge.ended(cursor as usize) else {
        return Step::End;
    };
    if name.is_none_or(|name| *ended.name == *name) {
        out.push(&rows::EndedSubscriber {
            schema: rows::EndedSubscriber::SCHEMA,
            name: &String::from_utf8_lossy(&ended.name),
            access: access(ended.place),
            tunnel: tunnel_id(ended.place),
            session: session_id(ended.place),
            address: ended.address,
            account: core.authority.account(ended.account),
            ended_s_ago: seconds(core.now.since(ended.ended)),
            age_s: seconds(ended.ended.since(ended.created)),
            up_s: ended.up.map(|up| seconds(ended.ended.since(up))),
            reason: &ended.reason,
            terminate_cause: ended.reason.terminate_cause() as u32,
            traffic: traffic(ended.traffic),
        });
    }
    Step::From(cursor + 1)
}

/// The interface identifier of a subscriber, of ours and the peer's, in four groups (RFC 5072, section 4.1).
fn interface_id(view: &SubscriberView, [local, peer]: [u64; 2]) -> String {
    let bits = if view.is_client { local } else { peer };
    let [a, b, c, d] = [48, 32, 16, 0].map(|shift| (bits >> shift) as u16);
    format!("{a:x}:{b:x}:{c:x}:{d:x}")
}

/// What DHCPv6 has come to on a link whose IPv6CP is open.
fn dhcpv6(core: &Core, view: &SubscriberView) -> &'static str {
    if view.is_client {
        let uplink = core.edge.uplink(view.key);
        let state = uplink.map(|uplink| uplink.state);
        return state.filter(|state| !state.is_empty()).unwrap_or("none");
    }
    match view.lease_ends {
        [None, None] => "none",
        _ => "leased",
    }
}

/// The access protocol of a session.
fn access(place: Place) -> &'static str {
    match place {
        First(_) => "l2tp",
        Second(_) => "pppoe",
    }
}

/// Our id of a session's tunnel; 0 if it has none.
pub(crate) fn tunnel_id(place: Place) -> u32 {
    place.first().map_or(0, |place| place.tunnel_id)
}

/// Our id of a session.
pub(crate) fn session_id(place: Place) -> u32 {
    match place {
        First(place) => place.session_id,
        Second(place) => place.session_id.into(),
    }
}

/// What identifies the line of a PPPoE session.
fn pppoe_part(core: &Core, session: pppoe::SessionKey) -> Option<rows::PppoePart<'_>> {
    let view = core.edge.endpoint().pppoe().session(session)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(rows::PppoePart {
        id: view.id,
        interface: core.ports.name(view.route.port.into()).unwrap_or_default(),
        vlans: view
            .route
            .vlans
            .outer()
            .into_iter()
            .chain(view.route.vlans.inner())
            .collect(),
        mac: view.route.peer.to_string(),
        service: text(view.service_name),
        ac_name: text(view.ac_name),
        circuit_id: view.line.and_then(|line| line.circuit_id()).map(text),
        remote_id: view.line.and_then(|line| line.remote_id()).map(text),
        max_payload: view.max_payload,
    })
}

/// The LNS that has a session, or is called.
fn lns_part<'a>(core: &'a Core, far: &SwitchedView<'a>) -> rows::LnsPart<'a> {
    let endpoint = core.edge.endpoint().l2tp();
    let place = far.place.and_then(Either::first);
    let tunnel = place.and_then(|place| endpoint.tunnel(place.tunnel));
    let session = place.and_then(|place| {
        let session = endpoint.find_session(place.tunnel, place.session_id)?;
        endpoint.session(session)
    });
    rows::LnsPart {
        address: far.tunnel.server,
        state: if place.is_some() { "has it" } else { "calling" },
        host_name: tunnel.map(|tunnel| tunnel.host_name),
        tunnel: place.map(|place| place.tunnel_id),
        session: place.map(|place| place.session_id),
        remote_session: session.map(|session| session.remote_id),
    }
}

fn role(view: &SubscriberView) -> &'static str {
    if view.is_client { "client" } else { "network" }
}

fn tunnel_of<'a>(edge: &'a Edge, view: &SubscriberView) -> Option<TunnelView<'a>> {
    let endpoint = edge.endpoint().l2tp();
    endpoint.tunnel(endpoint.session(view.session.first()?)?.tunnel)
}

fn tunnel_part<'a>(tunnel: &'a TunnelView, now: Instant) -> rows::TunnelPart<'a> {
    rows::TunnelPart {
        id: tunnel.id,
        remote_id: tunnel.remote_id,
        version: tunnel.version.number(),
        state: &tunnel.state,
        role: if tunnel.originated { "lac" } else { "lns" },
        peer: tunnel.route.peer,
        local: tunnel.route.local,
        host_name: tunnel.host_name,
        up_s: tunnel.up.map(|up| seconds(now.since(up))),
    }
}

fn session_part<'a>(session: &'a SessionView) -> rows::SessionPart<'a> {
    let number = |octets: &'a [u8]| std::str::from_utf8(octets).unwrap_or("");
    let details = session.details;
    rows::SessionPart {
        id: session.id,
        remote_id: session.remote_id,
        role: &session.role,
        state: &session.state,
        calling_number: details.map_or("", |details| number(&details.calling_number)),
        called_number: details.map_or("", |details| number(&details.called_number)),
        sequencing: session.sequencing,
        local_cookie_octets: session.local_cookie.as_bytes().len(),
        remote_cookie_octets: session.remote_cookie.as_bytes().len(),
    }
}

fn ppp(link: &ppp::LinkView) -> rows::Ppp {
    rows::Ppp {
        lcp: rows::Lcp {
            state: link.lcp.name(),
            local: lcp_side(&link.local),
            peer: lcp_side(&link.peer),
        },
        ipcp: link.ipv4.map(|(state, _)| state.name()),
        ipv6cp: link.ipv6.map(|(state, _)| state.name()),
        authenticated: link.is_authenticated,
        claims: link.claims,
        echoes_unanswered: link.echoes_unanswered,
    }
}

fn lcp_side(side: &ppp::LcpOptions) -> rows::LcpSide {
    rows::LcpSide {
        mru: side.mru,
        magic: (side.magic != 0).then(|| format!("{:#010x}", side.magic)),
        authentication: side.authentication.map(|way| match way {
            ppp::Authentication::Pap => "pap",
            ppp::Authentication::ChapMd5 => "chap-md5",
            ppp::Authentication::MsChapV2 => "mschapv2",
            ppp::Authentication::Eap => "eap",
        }),
        pfc: side.compression.protocol,
        acfc: side.compression.address,
    }
}

fn ipv4<'a>(view: &SubscriberView<'a>, link: &ppp::LinkView) -> rows::Ipv4<'a> {
    let open = link.ipv4.filter(|(state, _)| *state == ppp::State::Opened);
    let other = open.map(|(_, settings)| {
        if view.is_client {
            settings.peer
        } else {
            settings.local
        }
    });
    let dns = open.map_or([None; 2], |(_, settings)| settings.dns);
    rows::Ipv4 {
        address: view.address,
        other: other.filter(|address| *address != Ipv4Addr::UNSPECIFIED),
        dns: dns.into_iter().flatten().collect(),
        pool: view.profile.and_then(|profile| profile.pool.as_deref()),
    }
}

fn times(core: &Core, view: &SubscriberView) -> rows::Times {
    let limits = core.edge.limits(view.key);
    let limit = |of: fn(edge::Limits) -> Duration| {
        let span = limits.map(of).filter(|&span| span != Duration::ZERO);
        span.map(seconds)
    };
    rows::Times {
        age_s: seconds(core.now.since(view.created)),
        up_s: view.up.map(|up| seconds(core.now.since(up))),
        session_timeout_s: limit(|limits| limits.session),
        session_left_s: view.ends.map(|at| seconds(at.since(core.now))),
        idle_timeout_s: limit(|limits| limits.idle),
        interim_interval_s: limit(|limits| limits.interim),
    }
}
