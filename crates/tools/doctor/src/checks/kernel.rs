//! Devices, settings, cores and the clock.

use std::time::Duration;

use crate::finding::{Findings, State};
use crate::host::{Capability, Device, Host};
use crate::wants::{Protocol, Wants};

/// A clock before this time, 2026-01-01, is wrong: headend is newer.
const RELEASED_UNIX_S: u64 = 1_767_225_600;
/// A pending correction above this shows a clock that has just been found wrong. RADIUS accepts 300 s.
const OFFSET_MAX: Duration = Duration::from_secs(1);
/// Share of the table of connections, in percent, from which new flows are at risk.
const CONNTRACK_FULL_PERCENT: u64 = 90;

pub(super) fn tun(wants: &Wants, host: &Host, findings: &mut Findings) {
    let Some(name) = &wants.tun else {
        return findings
            .ok("The configuration has no [tun], so packets of subscribers go nowhere.");
    };
    match &host.tun {
        Device::Opens => findings.ok("/dev/net/tun opens."),
        Device::Missing if host.modules.contains("tun") => findings.fault(
            "/dev/net/tun does not exist, though the kernel has its driver.",
            "mkdir -p /dev/net && mknod /dev/net/tun c 10 200 && chmod 0666 /dev/net/tun",
        ),
        Device::Missing => findings.fault(
            "/dev/net/tun does not exist, and the kernel module tun is not loaded.",
            "modprobe tun && echo tun > /etc/modules-load.d/headend.conf",
        ),
        Device::NoDriver => findings.fault(
            "/dev/net/tun exists, but the kernel module tun is not loaded.",
            "modprobe tun && echo tun > /etc/modules-load.d/headend.conf",
        ),
        Device::Refused(error) => findings.fault(
            format!("/dev/net/tun cannot be opened: {error}."),
            "chmod 0666 /dev/net/tun  # or allow the device in the container or unit",
        ),
    }
    if host.interfaces.contains(name) && host.running.is_none() {
        findings.fault(
            format!(
                "An interface {name} exists already, and no headend runs with this configuration."
            ),
            format!("ip link delete {name}  # or give tun.name another name"),
        );
    }
}

/// The smallest MTU of an interface whose hosts get packets of 1,492 bytes (RFC 2516, section 7).
const ETHERNET_MTU: u32 = 1500;

/// The interfaces of PPPoE.
pub(super) fn ethernet(wants: &Wants, host: &Host, findings: &mut Findings) {
    for name in &wants.ethernet {
        let Some(found) = host.ethernet.get(name) else {
            findings.fault(
                format!("There is no interface {name}, which PPPoE needs."),
                "ip -brief link  # lists the names of the interfaces",
            );
            continue;
        };
        if !found.is_ethernet {
            findings.fault(
                format!("{name} is no Ethernet interface, so it cannot carry PPPoE."),
                "ip -brief link  # lists the names of the interfaces",
            );
        } else if !found.is_up {
            findings.fault(
                format!("{name} is down, so PPPoE hosts on it get no answer."),
                format!("ip link set {name} up"),
            );
        } else if found.mtu < ETHERNET_MTU {
            findings.advice(
                format!(
                    "The MTU of {name} is {}, so PPPoE hosts get packets of {} bytes at most.",
                    found.mtu,
                    found.mtu.saturating_sub(8)
                ),
                format!("ip link set {name} mtu 1508  # leaves room for packets of 1500 bytes"),
            );
        } else {
            findings.ok(format!("{name} is up, with an MTU of {}.", found.mtu));
        }
    }
}

pub(super) fn forwarding(wants: &Wants, host: &Host, findings: &mut Findings) {
    if !wants.forwards {
        return;
    }
    let persist = |setting: &str| {
        format!("sysctl -w {setting}=1 && echo {setting}=1 >> /etc/sysctl.d/90-headend.conf")
    };
    match host.number("net.ipv4.ip_forward") {
        Some(0) => findings.fault(
            "net.ipv4.ip_forward is 0, so this host drops packets between subscribers and networks.",
            persist("net.ipv4.ip_forward"),
        ),
        Some(_) => findings.ok("net.ipv4.ip_forward is on."),
        None => findings.advice(
            "net.ipv4.ip_forward cannot be read.",
            "sysctl net.ipv4.ip_forward",
        ),
    }
    if wants.forwards_v6 {
        match host.number("net.ipv6.conf.all.forwarding") {
            Some(0) => findings.advice(
                "net.ipv6.conf.all.forwarding is 0, so subscribers reach no IPv6 network.",
                persist("net.ipv6.conf.all.forwarding"),
            ),
            Some(_) => findings.ok("net.ipv6.conf.all.forwarding is on."),
            None => findings.advice(
                "This kernel has no IPv6, but [ppp] offers it.",
                "write ipv6 = false into [ppp]",
            ),
        }
    }
    reverse_path(host, findings);
}

/// The kernel uses the higher of the two settings (`ip-sysctl.rst`); 1 is strict.
fn reverse_path(host: &Host, findings: &mut Findings) {
    let all = host.number("net.ipv4.conf.all.rp_filter").unwrap_or(0);
    let default = host.number("net.ipv4.conf.default.rp_filter").unwrap_or(0);
    if all.max(default) == 1 {
        findings.advice(
            "rp_filter is strict, so the host drops replies that arrive over another link than the route back uses.",
            "sysctl -w net.ipv4.conf.all.rp_filter=2",
        );
    } else {
        findings.ok("rp_filter lets asymmetric routes pass.");
    }
}

pub(super) fn buffers(wants: &Wants, host: &Host, findings: &mut Findings) {
    if !wants
        .ports
        .iter()
        .any(|port| port.protocol == Protocol::Udp)
    {
        return;
    }
    for (side, setting, key, wanted) in [
        (
            "receive",
            "net.core.rmem_max",
            "event.receive_buffer_bytes",
            wants.receive_buffer_bytes,
        ),
        (
            "send",
            "net.core.wmem_max",
            "event.send_buffer_bytes",
            wants.send_buffer_bytes,
        ),
    ] {
        // A network namespace of its own does not show the setting.
        let limit = host.number(setting);
        if host.has(Capability::Admin) {
            findings.ok(format!(
                "CAP_NET_ADMIN allows {side} buffers of {wanted} bytes."
            ));
        } else if let Some(limit) = limit.filter(|limit| *limit < wanted) {
            findings.advice(
                format!("{key} is {wanted} bytes, but {setting} grants {limit}; bursts are lost."),
                format!("sysctl -w {setting}={wanted}"),
            );
        } else if let Some(limit) = limit {
            findings.ok(format!("{setting} is {limit}, enough for {key}."));
        }
    }
}

pub(super) fn conntrack(wants: &Wants, host: &Host, findings: &mut Findings) {
    let count = host.number("net.netfilter.nf_conntrack_count");
    let most = host.number("net.netfilter.nf_conntrack_max");
    let tunnels = wants.ports.iter().find(|port| port.key == "lns.listen");
    let (Some(count), Some(most), Some(port)) = (count, most, tunnels) else {
        return;
    };
    let port = port.address.port();
    let untracked = format!(
        "nft 'add table inet headend; add chain inet headend in {{ type filter hook prerouting priority raw; }}; \
         add rule inet headend in udp dport {port} notrack; \
         add chain inet headend out {{ type filter hook output priority raw; }}; \
         add rule inet headend out udp sport {port} notrack'"
    );
    if count.saturating_mul(100) >= most.saturating_mul(CONNTRACK_FULL_PERCENT) {
        findings.fault(
            format!("nf_conntrack follows {count} of at most {most} connections; a full table drops new tunnels."),
            untracked,
        );
    } else if count > 0 {
        findings.advice(
            format!(
                "nf_conntrack is active ({count} of {most} connections) and may follow every tunnel on UDP port {port}."
            ),
            untracked,
        );
    } else {
        findings.ok("nf_conntrack follows no connection.");
    }
}

pub(super) fn cores(wants: &Wants, host: &Host, findings: &mut Findings) {
    let (shards, cores) = (usize::from(wants.shards), host.cores);
    if shards > cores {
        findings.advice(
            format!("event.shards is {shards}, but headend may use {cores} cores; the shards take turns."),
            format!("write shards = {cores} into [event]"),
        );
    } else {
        findings.ok(format!(
            "headend may use {cores} cores; event.shards is {shards}."
        ));
    }
    if wants.io_uring && host.number("kernel.io_uring_disabled").unwrap_or(0) > 0 {
        findings.fault(
            "event.poller is \"io_uring\", which kernel.io_uring_disabled forbids.",
            "sysctl -w kernel.io_uring_disabled=0  # or write poller = \"epoll\" into [event]",
        );
    }
}

pub(super) fn clock(_: &Wants, host: &Host, findings: &mut Findings) {
    let clock = &host.clock;
    let synchronise = "timedatectl set-ntp true  # or apt-get install chrony";
    if clock.unix_s < RELEASED_UNIX_S {
        findings.fault(
            "The clock is before 2026, so RADIUS servers reject its time stamps.",
            synchronise,
        );
    }
    match clock.is_synchronised {
        Some(true) if clock.offset > OFFSET_MAX => findings.advice(
            format!(
                "The clock is synchronised, but {:.1} s of correction are left.",
                clock.offset.as_secs_f64()
            ),
            "chronyc makestep  # or systemctl restart systemd-timesyncd",
        ),
        Some(true) => findings.ok("The clock is synchronised."),
        Some(false) => findings.advice(
            "No time service synchronises the clock; accounting records carry its time.",
            synchronise,
        ),
        None => findings.push(
            State::Ok,
            "The kernel does not say whether the clock is synchronised.".into(),
            None,
        ),
    }
}
