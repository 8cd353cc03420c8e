//! Hosts written by hand, and what the checks say about them.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::finding::State;
use crate::host::*;
use crate::wants::{FileUse, Port, Protocol};

/// An LNS with a TUN device, BGP on port 179, a RADIUS server and an accounting store.
fn wants() -> Wants {
    let port = |address: &str, protocol, key| Port {
        address: address.parse().unwrap(),
        protocol,
        key,
        is_optional: false,
    };
    Wants {
        ports: vec![
            port("0.0.0.0:1701", Protocol::Udp, "lns.listen"),
            port("0.0.0.0:179", Protocol::Tcp, "bgp.listen"),
        ],
        tun: Some("headend0".into()),
        forwards: true,
        forwards_v6: true,
        bgp_signs: true,
        receive_buffer_bytes: 64 << 20,
        send_buffer_bytes: 4 << 20,
        descriptors: (100, 2_000),
        shards: 2,
        path_mtu: 1_500,
        files: vec![("/run/headend/c.sock".into(), FileUse::Socket)],
        ..Wants::default()
    }
}

/// A host on which `wants` lacks nothing.
fn healthy() -> Host {
    let ports = wants().ports;
    let free = |port: &Port| PortFact {
        address: port.address,
        protocol: port.protocol,
        key: port.key,
        is_optional: false,
        bind: Bind::Free,
    };
    let settings = [
        ("net.ipv4.ip_forward", "1"),
        ("net.ipv6.conf.all.forwarding", "1"),
        ("net.ipv4.conf.all.rp_filter", "2"),
        ("net.core.rmem_max", "212992"),
    ];
    Host {
        user: User {
            name: "headend".into(),
            uid: 990,
            groups: vec![980],
            capabilities: u64::MAX,
        },
        descriptors: 1 << 20,
        cores: 4,
        sysctls: settings
            .map(|(name, value)| (name, value.to_owned()))
            .into(),
        ports: ports.iter().map(free).collect(),
        clock: Clock {
            is_synchronised: Some(true),
            offset: Duration::ZERO,
            unix_s: 1_800_000_000,
        },
        servers: vec![server(Answer::Verified {
            to: "Status-Server",
            is_signed: true,
            round_trip: Duration::from_micros(800),
        })],
        ..Host::default()
    }
}

fn server(answer: Answer) -> ServerFact {
    ServerFact {
        name: "one".into(),
        address: "192.0.2.9:1812".parse().unwrap(),
        is_accounting: false,
        requires_signature: true,
        answer,
    }
}

fn file(used: FileUse, path: &str, bits: u32, uid: u32) -> FileFact {
    let mode = |bits, is_directory| Mode {
        bits,
        uid,
        gid: uid,
        is_directory,
    };
    FileFact {
        path: PathBuf::from(path),
        used,
        file: Some(mode(bits, false)),
        directory: Some(mode(0o755, true)),
        closed: None,
        free_bytes: Some(8 << 30),
        is_read_only: false,
        has_secret: used == FileUse::Secret,
    }
}

/// The findings of that state, each as `check: sentence | mend`.
fn of_state(wants: &Wants, host: &Host, state: State) -> Vec<String> {
    let all = super::all(wants, host).into_iter();
    let mend = |finding: &Finding| finding.mend.clone().unwrap_or_default();
    all.filter(|one| one.state == state)
        .map(|one| format!("{}: {} | {}", one.check, one.text, mend(&one)))
        .collect()
}

/// Requires that each expected text is part of the finding at its place, and that there are no others.
fn compare(found: &[String], expected: &[&[&str]]) {
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, parts) in found.iter().zip(expected) {
        for part in *parts {
            assert!(found.contains(part), "{part:?} is not in {found:?}");
        }
    }
}

#[test]
fn a_healthy_host_has_neither_faults_nor_advice() {
    let (wants, host) = (wants(), healthy());
    compare(&of_state(&wants, &host, State::Fault), &[]);
    compare(&of_state(&wants, &host, State::Advice), &[]);
    assert!(of_state(&wants, &host, State::Ok).len() >= 12);
}

/// A container: no capability, no TUN device, few descriptors, small buffers, one core.
#[test]
fn a_container_without_privileges_gets_the_commands_that_mend_it() {
    let wants = wants();
    let mut host = healthy();
    host.user.capabilities = 0;
    host.binary = "/usr/bin/headend".into();
    host.tun = Device::Missing;
    host.descriptors = 64;
    host.cores = 1;
    host.sysctls.insert("net.ipv4.ip_forward", "0".into());
    host.sysctls
        .insert("net.ipv6.conf.all.forwarding", "0".into());
    compare(
        &of_state(&wants, &host, State::Fault),
        &[
            &[
                "capabilities",
                "headend lacks CAP_NET_ADMIN",
                "[tun]",
                "setcap cap_net_bind_service,cap_net_admin+ep /usr/bin/headend  #",
            ],
            &[
                "CAP_NET_BIND_SERVICE",
                "port 179 of bgp.listen",
                "setcap cap_net_bind_service,cap_net_admin+ep",
            ],
            &["descriptors", "is 64", "need 100", "ulimit -Hn 2000"],
            &["tun", "does not exist", "modprobe tun"],
            &[
                "forwarding",
                "net.ipv4.ip_forward is 0",
                "sysctl -w net.ipv4.ip_forward=1",
            ],
        ],
    );
    compare(
        &of_state(&wants, &host, State::Advice),
        &[
            &["CAP_NET_RAW", "ping_group_range"],
            &[
                "net.ipv6.conf.all.forwarding is 0",
                "sysctl -w net.ipv6.conf.all.forwarding=1",
            ],
            &[
                "event.receive_buffer_bytes is 67108864",
                "grants 212992",
                "sysctl -w net.core.rmem_max=67108864",
            ],
            &["event.shards is 2", "1 cores", "shards = 1"],
        ],
    );
}

/// A host where another LNS runs, whose clock is wrong, and whose RADIUS servers fail in four ways.
#[test]
fn a_busy_host_names_who_is_in_the_way_and_what_each_server_does() {
    let mut wants = wants();
    wants.bgp_gtsm = true;
    let mut host = healthy();
    host.ports[0].bind = Bind::Taken(Some(Owner {
        pid: 812,
        name: "xl2tpd".into(),
    }));
    host.ports[1].bind = Bind::NotHere;
    host.interfaces.insert("headend0".into());
    host.clock.unix_s = 0;
    host.clock.is_synchronised = Some(false);
    host.sysctls
        .insert("net.netfilter.nf_conntrack_count", "262000".into());
    host.sysctls
        .insert("net.netfilter.nf_conntrack_max", "262144".into());
    host.bgp.md5 = Some(io::Error::from_raw_os_error(92));
    host.bgp.gtsm = Some(io::Error::from_raw_os_error(92));
    host.servers = vec![
        server(Answer::WrongSecret {
            to: "Access-Request",
        }),
        server(Answer::Silence),
        server(Answer::Unreachable(io::ErrorKind::ConnectionRefused.into())),
        server(Answer::Verified {
            to: "Access-Request",
            is_signed: false,
            round_trip: Duration::ZERO,
        }),
        server(Answer::Malformed),
    ];
    compare(
        &of_state(&wants, &host, State::Fault),
        &[
            &[
                "An interface headend0 exists already",
                "ip link delete headend0",
            ],
            &[
                "nf_conntrack follows 262000 of at most 262144",
                "udp dport 1701 notrack",
            ],
            &["clock is before 2026", "timedatectl set-ntp true"],
            &[
                "UDP 0.0.0.0:1701 (lns.listen) is taken by xl2tpd, process 812",
                "kill 812",
            ],
            &["No interface of this host has the address 0.0.0.0 (bgp.listen)"],
            &["TCP-MD5", "CONFIG_TCP_MD5SIG"],
            &["GTSM", "ttl_security_hops"],
            &[
                "the secrets differ",
                "compare the secret of [[radius.server]] one",
            ],
            &["is silent", "tcpdump -ni any udp port 1812"],
            &["is not running", "port as closed"],
            &["without Message-Authenticator", "post-auth"],
            &["no RADIUS reply", "authentication = \"192.0.2.9:1812\""],
        ],
    );
    // A headend that runs with this configuration has its own ports and device.
    host.running = Some(812);
    let faults = of_state(&wants, &host, State::Fault);
    assert!(
        !faults
            .iter()
            .any(|one| one.contains("process 812") || one.contains("headend0"))
    );
}

/// Files and a unit that keep the daemon from what it needs.
fn hardened() -> Host {
    let mut host = healthy();
    let mut closed = file(FileUse::Read, "/srv/closed/filters.txt", 0o644, 0);
    closed.closed = Some("/srv/closed".into());
    let mut gone = file(FileUse::Secret, "/etc/headend/secret", 0o600, 0);
    gone.file = None;
    let mut full = file(FileUse::Store, "/var/spool/headend/a.redb", 0o600, 990);
    full.free_bytes = Some(1 << 20);
    let mut frozen = file(FileUse::Socket, "/run/headend/c.sock", 0o600, 990);
    frozen.is_read_only = true;
    let mut nowhere = file(FileUse::Socket, "/run/gone/c.sock", 0o600, 990);
    nowhere.directory = None;
    host.files = vec![
        closed,
        gone,
        file(FileUse::Secret, "/etc/headend/users.toml", 0o600, 0),
        file(FileUse::Secret, "/etc/headend/open", 0o604, 0),
        full,
        frozen,
        nowhere,
        file(FileUse::Socket, "/run/c.sock", 0o600, 0),
        file(FileUse::Store, "/var/a.redb", 0o600, 0),
    ];
    let keys = [
        ("User", "headend"),
        ("PrivateDevices", "yes"),
        ("ProtectSystem", "strict"),
        ("RuntimeDirectory", "headend"),
        ("RestrictAddressFamilies", "AF_UNIX AF_INET AF_INET6"),
    ];
    host.unit = Some(Unit {
        path: "/etc/systemd/system/headend.service".into(),
        keys: keys.map(|(key, value)| (key.into(), value.into())).into(),
    });
    host.user.capabilities = 0;
    host
}

/// PPPoE on three interfaces: one is missing, one is down, and one has a small MTU.
#[test]
fn interfaces_of_pppoe_and_what_they_need_are_checked() {
    let mut wants = wants();
    wants.ethernet = ["gone", "down", "small"].map(str::to_owned).into();
    let mut host = hardened();
    wants.ports.clear();
    wants.tun = None;
    wants.files.clear();
    host.files.clear();
    for (name, is_up, mtu) in [("down", false, 1500), ("small", true, 1400)] {
        let interface = Interface {
            is_ethernet: true,
            is_up,
            mtu,
        };
        host.ethernet.insert(name.into(), interface);
    }
    let faults = of_state(&wants, &host, State::Fault);
    let of_pppoe: Vec<String> = faults
        .into_iter()
        .filter(|one| one.contains("PPPoE") || one.contains("AF_PACKET"))
        .collect();
    compare(
        &of_pppoe,
        &[
            &[
                "capabilities",
                "lacks CAP_NET_RAW",
                "AmbientCapabilities=CAP_NET_RAW",
            ],
            &["unit", "forbids AF_NETLINK AF_PACKET"],
            &["ethernet", "no interface gone"],
            &["ethernet", "down is down", "ip link set down up"],
        ],
    );
    let advice = of_state(&wants, &host, State::Advice);
    let small = advice
        .iter()
        .find(|one| one.contains("MTU of small is 1400"));
    assert!(small.is_some_and(|one| one.contains("1392")), "{advice:?}");
}

#[test]
fn a_hardened_host_names_the_file_or_the_line_of_the_unit() {
    let mut wants = wants();
    let store = "/var/spool/headend/a.redb".into();
    wants.files.push((store, FileUse::Store));
    let host = hardened();
    compare(
        &of_state(&wants, &host, State::Fault),
        &[
            &[
                "CAP_NET_ADMIN",
                "mkdir -p /etc/systemd/system/headend.service.d &&",
                "AmbientCapabilities=CAP_NET_BIND_SERVICE CAP_NET_ADMIN",
            ],
            &[
                "CAP_NET_BIND_SERVICE",
                "AmbientCapabilities=CAP_NET_BIND_SERVICE CAP_NET_ADMIN",
            ],
            &["headend.service hides /dev/net/tun", "PrivateDevices=no"],
            &["forbids AF_NETLINK", "RestrictAddressFamilies=AF_NETLINK"],
            &[
                "makes /var/spool/headend read-only",
                "ReadWritePaths=/var/spool/headend",
            ],
            &["may not enter /srv/closed", "chmod a+x /srv/closed"],
            &["/etc/headend/secret does not exist"],
            &[
                "cannot read the file with secrets /etc/headend/users.toml (mode 0600)",
                "chgrp headend",
            ],
            &["1 MiB left"],
            &["mounted read-only", "remount,rw /run/headend"],
            &[
                "directory /run/gone",
                "install -d -o headend -m 0750 /run/gone",
            ],
            &[
                "cannot create the control socket /run/c.sock",
                "install -d -o headend",
            ],
            &[
                "cannot write the accounting store /var/a.redb",
                "chown headend /var/a.redb",
            ],
        ],
    );
    let advice = of_state(&wants, &host, State::Advice);
    assert!(
        advice
            .iter()
            .any(|one| one.contains("chmod o= /etc/headend/open"))
    );
}

/// A path that lets packets of `passes` bytes through.
fn path(used: PathUse, passes: u32, limit: Limit) -> PathFact {
    PathFact {
        to: "192.0.2.40".parse().unwrap(),
        used,
        mtu: Ok(1_500),
        probed: Ok(Probed::Passes { passes, limit }),
    }
}

#[test]
fn a_narrow_path_names_the_keys_and_a_black_hole_is_a_fault() {
    let wants = wants();
    let mut host = healthy();
    let lost = Limit::Silent {
        is_fragmented: false,
    };
    let split = Limit::Silent {
        is_fragmented: true,
    };
    host.paths = vec![
        path(PathUse::Tunnel, 1_500, Limit::Interface),
        path(PathUse::Tunnel, 1_400, Limit::Reported),
        path(PathUse::Tunnel, 1_404, lost),
        path(PathUse::Tunnel, 1_404, split),
        path(PathUse::Radius, 1_400, lost),
        path(PathUse::Radius, 1_000, lost),
        path(PathUse::Bgp, 1_400, Limit::Reported),
        path(PathUse::Bgp, 1_400, split),
    ];
    host.paths_left = 3;
    let keys = "write path_mtu = 1404 and mru = 1366 into [ppp]";
    compare(
        &of_state(&wants, &host, State::Fault),
        &[
            &[
                "carries 1404 bytes (larger ones vanish",
                "packets are lost",
                keys,
            ],
            &[
                "a BGP session stalls",
                "sysctl -w net.ipv4.tcp_mtu_probing=1",
            ],
        ],
    );
    compare(
        &of_state(&wants, &host, State::Advice),
        &[
            &[
                "a router reports it",
                "ppp.path_mtu is 1500; larger packets are fragmented",
                "write path_mtu = 1400 and mru = 1362 into [ppp]",
            ],
            &["larger packets are fragmented", keys],
            &["longer RADIUS packets are lost", "tracepath -n 192.0.2.40"],
        ],
    );
    host.sysctls.insert("net.ipv4.tcp_mtu_probing", "1".into());
    let faults = of_state(&wants, &host, State::Fault);
    assert!(!faults.iter().any(|one| one.contains("BGP")), "{faults:#?}");
    let fine = of_state(&wants, &host, State::Ok);
    assert!(fine.iter().any(|one| one.contains("paths to 3 more hosts")));
}

#[test]
fn a_host_that_answers_nothing_is_no_proof_of_a_path() {
    let wants = wants();
    let mut host = healthy();
    let mut silent = path(PathUse::Tunnel, 0, Limit::Interface);
    silent.probed = Ok(Probed::Unanswered);
    let mut far = path(PathUse::Tunnel, 0, Limit::Interface);
    far.probed = Err(io::ErrorKind::HostUnreachable.into());
    let mut narrow = path(PathUse::Tunnel, 0, Limit::Interface);
    narrow.probed = Ok(Probed::Unanswered);
    narrow.mtu = Ok(1_280);
    host.paths = vec![silent, far, narrow];
    compare(
        &of_state(&wants, &host, State::Advice),
        &[
            &[
                "a smaller one further on would not be seen",
                "ping -c 3 192.0.2.40  #",
            ],
            &["192.0.2.40 cannot be reached", "ip route get 192.0.2.40"],
            &["write path_mtu = 1280 and mru = 1242 into [ppp]"],
        ],
    );
}
