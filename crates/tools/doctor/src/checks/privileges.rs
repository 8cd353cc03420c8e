//! What the daemon's user may do: capabilities and descriptors.

use crate::finding::Findings;
use crate::host::{Capability, Host};
use crate::wants::{Port, Wants};

/// Ports below this one are privileged unless a setting says otherwise (ip(7)).
const PRIVILEGED: u64 = 1024;

pub(super) fn capabilities(wants: &Wants, host: &Host, findings: &mut Findings) {
    admin(wants, host, findings);
    bind_service(wants, host, findings);
    raw(wants, host, findings);
}

/// The command that gives the daemon all capabilities that the configuration needs: `setcap` takes away those that it
/// does not name.
fn grant(wants: &Wants, host: &Host) -> String {
    let mut names = Vec::new();
    if low_port(wants, host).is_some() {
        names.push(Capability::BindService.name());
    }
    if !admin_purposes(wants).is_empty() {
        names.push(Capability::Admin.name());
    }
    if !wants.ethernet.is_empty() {
        names.push(Capability::Raw.name());
    }
    match &host.unit {
        Some(unit) => {
            let names = names.join(" ");
            let lines = [
                format!("AmbientCapabilities={names}"),
                format!("CapabilityBoundingSet={names}"),
            ];
            super::unit::drop_in(unit, &lines)
        }
        None => {
            let file = host.binary.display();
            let names = names.join(",").to_lowercase();
            format!("setcap {names}+ep {file}  # or start headend as root")
        }
    }
}

/// What needs CAP_NET_ADMIN.
fn admin_purposes(wants: &Wants) -> Vec<&'static str> {
    let mut purposes = Vec::new();
    if wants.tun.is_some() {
        purposes.push("[tun]");
    }
    if wants.installs {
        purposes.push("bgp.install");
    }
    purposes
}

/// A privileged port of the configuration.
fn low_port<'a>(wants: &'a Wants, host: &Host) -> Option<&'a Port> {
    let start = host.number("net.ipv4.ip_unprivileged_port_start");
    let start = start.unwrap_or(PRIVILEGED);
    wants.ports.iter().find(|port| {
        let number = u64::from(port.address.port());
        number != 0 && number < start
    })
}

fn admin(wants: &Wants, host: &Host, findings: &mut Findings) {
    let purposes = admin_purposes(wants);
    let user = &host.user.name;
    if purposes.is_empty() {
        findings.ok("The configuration needs no CAP_NET_ADMIN.");
    } else if host.has(Capability::Admin) {
        let purposes = purposes.join(" and ");
        findings.ok(format!("{user} has CAP_NET_ADMIN, which {purposes} needs."));
    } else {
        let purposes = purposes.join(" and ");
        findings.fault(
            format!("{user} lacks CAP_NET_ADMIN, which {purposes} needs."),
            grant(wants, host),
        );
    }
}

fn bind_service(wants: &Wants, host: &Host, findings: &mut Findings) {
    let Some(port) = low_port(wants, host) else {
        return;
    };
    let (user, number, key) = (&host.user.name, port.address.port(), port.key);
    if host.has(Capability::BindService) {
        findings.ok(format!(
            "{user} has CAP_NET_BIND_SERVICE, which port {number} of {key} needs."
        ));
    } else {
        findings.fault(
            format!("{user} lacks CAP_NET_BIND_SERVICE, which port {number} of {key} needs."),
            grant(wants, host),
        );
    }
}

/// The daemon needs packet sockets for PPPoE alone; `headend ping` and `headend qos run` need raw sockets.
fn raw(wants: &Wants, host: &Host, findings: &mut Findings) {
    if !wants.ethernet.is_empty() {
        let user = &host.user.name;
        return match host.has(Capability::Raw) {
            true => findings.ok(format!("{user} has CAP_NET_RAW, which PPPoE needs.")),
            false => findings.fault(
                format!("{user} lacks CAP_NET_RAW, which PPPoE needs."),
                grant(wants, host),
            ),
        };
    }
    let range = host.sysctls.get("net.ipv4.ping_group_range");
    let range: Vec<u64> = range
        .iter()
        .flat_map(|text| text.split_whitespace())
        .filter_map(|word| word.parse().ok())
        .collect();
    let pings = match range[..] {
        [low, high] => {
            let mut groups = host.user.groups.iter().map(|&gid| u64::from(gid));
            groups.any(|gid| (low..=high).contains(&gid))
        }
        _ => false,
    };
    let user = &host.user.name;
    match (host.has(Capability::Raw), pings) {
        (true, _) => findings.ok(format!(
            "{user} has CAP_NET_RAW, which headend ping and headend qos run use."
        )),
        (false, true) => findings.ok(format!(
            "{user} lacks CAP_NET_RAW, but its group may open ping sockets; only headend qos run needs more."
        )),
        (false, false) => findings.advice(
            format!(
                "{user} lacks CAP_NET_RAW; the daemon does not need it, but headend ping to a host without a responder does."
            ),
            "sysctl -w net.ipv4.ping_group_range=\"0 2147483647\"",
        ),
    }
}

pub(super) fn descriptors(wants: &Wants, host: &Host, findings: &mut Findings) {
    let (few, many) = wants.descriptors;
    let limit = host.descriptors;
    let mend = |wanted: u64| match &host.unit {
        Some(unit) => super::unit::drop_in(unit, &[format!("LimitNOFILE={wanted}")]),
        None => format!("ulimit -Hn {wanted}  # in the shell that starts headend, as root"),
    };
    let shown = match limit {
        u64::MAX => "unlimited".to_owned(),
        limit => limit.to_string(),
    };
    if limit < few {
        findings.fault(
            format!(
                "The limit of descriptors is {shown}; the configured sockets and neighbours need {few}."
            ),
            mend(many.max(1024)),
        );
    } else if limit < many {
        findings.advice(
            format!(
                "The limit of descriptors is {shown}; tunnels, peers and servers at their configured limits need {many}."
            ),
            raise(host, many, &mend),
        );
    } else {
        findings.ok(format!(
            "The limit of descriptors is {shown}; the configuration needs at most {many}."
        ));
    }
}

/// A limit above `fs.nr_open` needs that raised first.
fn raise(host: &Host, wanted: u64, mend: &dyn Fn(u64) -> String) -> String {
    match host.number("fs.nr_open") {
        Some(open) if open < wanted => {
            format!("sysctl -w fs.nr_open={wanted} && {}", mend(wanted))
        }
        _ => mend(wanted),
    }
}
