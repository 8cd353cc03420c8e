//! Addresses, ports and BGP.

use std::net::IpAddr;

use crate::finding::{Findings, State};
use crate::host::{Bind, Host, PortFact};
use crate::wants::Wants;

pub(super) fn ports(_: &Wants, host: &Host, findings: &mut Findings) {
    for port in &host.ports {
        one_port(port, host, findings);
    }
}

fn one_port(fact: &PortFact, host: &Host, findings: &mut Findings) {
    let PortFact { address, key, .. } = fact;
    let protocol = fact.protocol.name();
    let ip = address.ip();
    match &fact.bind {
        Bind::Free if address.port() == 0 => findings.ok(format!("{ip} ({key}) can be used.")),
        Bind::Free => findings.ok(format!("{protocol} {address} ({key}) is free.")),
        Bind::Taken(Some(owner)) if host.running == Some(owner.pid) => findings.ok(format!(
            "{protocol} {address} ({key}) is in use by this configuration's own headend, process {}.",
            owner.pid
        )),
        Bind::Taken(None) if host.running.is_some() => findings.push(
            State::Ok,
            format!("{protocol} {address} ({key}) is taken, and headend runs with this configuration."),
            None,
        ),
        Bind::Taken(Some(owner)) => findings.fault(
            format!(
                "{protocol} {address} ({key}) is taken by {}, process {}.",
                owner.name, owner.pid
            ),
            format!("kill {}  # or change {key}", owner.pid),
        ),
        Bind::Taken(None) => {
            let flag = match protocol {
                "UDP" => "u",
                _ => "t",
            };
            findings.fault(
                format!("{protocol} {address} ({key}) is taken by a process that this user cannot see."),
                format!("ss -l{flag}np 'sport = :{}'   # as root; then stop that process or change {key}", address.port()),
            );
        }
        Bind::NotHere if fact.is_optional => {
            findings.ok(format!("{ip} ({key}) is left out: this host lacks its address family."));
        }
        Bind::NotHere => findings.fault(
            format!("No interface of this host has the address {ip} ({key})."),
            format!("ip address add {ip}/{} dev INTERFACE  # or change {key}", bits(ip)),
        ),
        // The check of capabilities knows whose fault that is and what mends it.
        Bind::Refused => findings.push(
            State::Ok,
            format!("{protocol} {address} ({key}) is privileged, so this user could not try it."),
            None,
        ),
        Bind::Failed(error) => findings.fault(
            format!("{protocol} {address} ({key}) cannot be bound: {error}."),
            format!("change {key}"),
        ),
    }
}

pub(super) fn bits(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

pub(super) fn bgp(wants: &Wants, host: &Host, findings: &mut Findings) {
    if wants.bgp_signs {
        match &host.bgp.md5 {
            None => findings.ok("The kernel signs BGP sessions (TCP-MD5)."),
            Some(error) => findings.fault(
                format!("The kernel cannot sign BGP sessions (TCP-MD5): {error}."),
                "use a kernel with CONFIG_TCP_MD5SIG, or leave out secret of the neighbours on both sides",
            ),
        }
    }
    if wants.bgp_gtsm {
        match &host.bgp.gtsm {
            None => findings.ok("The kernel checks hop limits of BGP sessions (GTSM)."),
            Some(error) => findings.fault(
                format!("The kernel cannot check hop limits of BGP sessions (GTSM): {error}."),
                "leave out ttl_security_hops",
            ),
        }
    }
}
