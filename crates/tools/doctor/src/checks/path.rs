//! Paths to L2TP peers, RADIUS servers and BGP neighbours: the largest packet that each carries.

use crate::finding::{Findings, State};
use crate::host::{Host, Limit, PathFact, PathUse, Probed};
use crate::wants::Wants;

/// The least MTU of an IPv6 path (RFC 8200, section 5): RADIUS packets up to this size are to pass in one piece.
const SMALL_MTU: u32 = 1_280;

/// L2TPv2's header without sequence numbers, UDP's, and those of PPP.
const TUNNEL_HEADERS: u32 = 6 + 8 + 4;

pub(super) fn paths(wants: &Wants, host: &Host, findings: &mut Findings) {
    for fact in &host.paths {
        one(fact, wants, host, findings);
    }
    if host.paths_left > 0 {
        let text = format!(
            "The paths to {} more hosts were not tried; --peer ADDRESS tries one.",
            host.paths_left
        );
        findings.push(State::Ok, text, None);
    }
}

fn one(fact: &PathFact, wants: &Wants, host: &Host, findings: &mut Findings) {
    let to = fact.to;
    let kernel = match fact.mtu {
        Ok(bytes) => bytes,
        Err(ref error) => {
            let bits = super::network::bits(to);
            return findings.fault(
                format!("There is no route to {to}: {error}."),
                format!("ip route add {to}/{bits} via GATEWAY"),
            );
        }
    };
    match fact.probed {
        Err(ref error) => findings.advice(
            format!("{to} cannot be reached: {error}."),
            format!("ip route get {to}"),
        ),
        Ok(Probed::Unanswered) => unanswered(fact, kernel, wants, findings),
        Ok(Probed::Passes { passes, limit }) => match fact.used {
            PathUse::Tunnel => tunnel(fact, (passes, limit), wants, findings),
            PathUse::Radius => radius(fact, (passes, limit), findings),
            PathUse::Bgp => bgp(fact, (passes, limit), host, findings),
        },
    }
}

/// Only the kernel's value is known.
fn unanswered(fact: &PathFact, kernel: u32, wants: &Wants, findings: &mut Findings) {
    let to = fact.to;
    let text = format!(
        "{to} answers neither an ICMP echo nor a datagram to a closed port, so only this host's own MTU of {kernel} bytes \
         is known; a smaller one further on would not be seen."
    );
    match fact.used {
        PathUse::Tunnel if kernel < wants.path_mtu => findings.advice(text, settings(fact, kernel)),
        PathUse::Tunnel => findings.advice(text, format!("ping -c 3 {to}  # once {to} lets it in")),
        PathUse::Radius | PathUse::Bgp => findings.push(State::Ok, text, None),
    }
}

/// The keys that keep packets of a tunnel, and what subscribers send into it, within `bytes`.
fn settings(fact: &PathFact, bytes: u32) -> String {
    let ip = if fact.to.is_ipv4() { 20 } else { 40 };
    let inside = bytes.saturating_sub(ip + TUNNEL_HEADERS);
    format!("write path_mtu = {bytes} and mru = {inside} into [ppp]")
}

/// What limits the path, as the middle of a sentence.
fn because(limit: Limit) -> &'static str {
    match limit {
        Limit::Interface => "this host's interface limits it",
        Limit::Reported => "a router reports it",
        Limit::Silent { .. } => "larger ones vanish, and no router reports why",
    }
}

fn good((passes, limit): (u32, Limit), fact: &PathFact, findings: &mut Findings) {
    let (to, why) = (fact.to, because(limit));
    findings.ok(match limit {
        Limit::Interface => format!("Packets of {passes} bytes reach {to} unfragmented."),
        _ => format!("Packets of {passes} bytes reach {to} unfragmented; {why}."),
    });
}

/// The daemon lets routers fragment its tunnels' packets (it clears the DF bit).
fn tunnel(fact: &PathFact, found: (u32, Limit), wants: &Wants, findings: &mut Findings) {
    let (to, wanted, (passes, limit)) = (fact.to, wants.path_mtu, found);
    if passes >= wanted {
        return good(found, fact, findings);
    }
    let text = format!(
        "The path to {to} carries {passes} bytes ({}), but",
        because(limit)
    );
    match limit {
        Limit::Silent {
            is_fragmented: false,
        } => findings.fault(
            format!("{text} ppp.path_mtu is {wanted}; larger packets are lost, even if they may be fragmented."),
            settings(fact, passes),
        ),
        _ => findings.advice(
            format!("{text} ppp.path_mtu is {wanted}; larger packets are fragmented."),
            settings(fact, passes),
        ),
    }
}

fn radius(fact: &PathFact, found: (u32, Limit), findings: &mut Findings) {
    let (to, (passes, limit)) = (fact.to, found);
    if passes >= SMALL_MTU {
        return good(found, fact, findings);
    }
    let lost = Limit::Silent {
        is_fragmented: false,
    };
    let fate = if limit == lost { "lost" } else { "fragmented" };
    findings.advice(
        format!(
            "The path to {to} carries {passes} bytes ({}); longer RADIUS packets are {fate}.",
            because(limit)
        ),
        format!("tracepath -n {to}  # shows the link; raise its MTU to 1500"),
    );
}

/// TCP learns reported values. It finds out silent ones only if a setting of the kernel says so.
fn bgp(fact: &PathFact, found: (u32, Limit), host: &Host, findings: &mut Findings) {
    let (to, (passes, limit)) = (fact.to, found);
    let probes = host.number("net.ipv4.tcp_mtu_probing").unwrap_or(0) != 0;
    if probes || !matches!(limit, Limit::Silent { .. }) {
        return good(found, fact, findings);
    }
    findings.fault(
        format!(
            "The path to {to} carries {passes} bytes ({}), so a BGP session stalls at its first long message.",
            because(limit)
        ),
        "sysctl -w net.ipv4.tcp_mtu_probing=1",
    );
}
