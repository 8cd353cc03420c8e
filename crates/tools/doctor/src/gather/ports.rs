//! Which of the configured addresses are free, and who has the others.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};

use crate::host::{Bind, Owner, PortFact};
use crate::wants::{Port, Protocol, Wants};

/// The process that listens on the control socket.
pub(super) fn daemon_behind(path: &Path) -> Option<u32> {
    let stream = UnixStream::connect(path).ok()?;
    let peer = sockopt::socket_peercred(&stream).ok()?;
    u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
}

/// Tries every address that the configuration names.
pub(super) fn facts(wants: &Wants) -> Vec<PortFact> {
    let listening = wants.ports.iter().map(|port| PortFact {
        address: port.address,
        protocol: port.protocol,
        key: port.key,
        is_optional: port.is_optional,
        bind: bind(port),
    });
    let sources = wants.sources.iter().map(|&ip| {
        let port = Port {
            address: SocketAddr::new(ip, 0),
            protocol: Protocol::Tcp,
            key: "bgp.neighbor.local_address",
            is_optional: false,
        };
        PortFact {
            address: port.address,
            protocol: port.protocol,
            key: port.key,
            is_optional: false,
            bind: bind(&port),
        }
    });
    listening.chain(sources).collect()
}

fn bind(port: &Port) -> Bind {
    match try_bind(port) {
        Ok(()) => Bind::Free,
        Err(Errno::ADDRINUSE) => Bind::Taken(owner(port)),
        Err(Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT) => Bind::NotHere,
        Err(Errno::ACCESS) => Bind::Refused,
        Err(error) => Bind::Failed(io::Error::from(error)),
    }
}

/// Binds as the daemon does, and closes the socket at once. It never listens, so it takes no connection.
fn try_bind(port: &Port) -> Result<(), Errno> {
    let family = match port.address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let kind = match port.protocol {
        Protocol::Udp => SocketType::DGRAM,
        Protocol::Tcp => SocketType::STREAM,
    };
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    if port.address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    if port.protocol == Protocol::Tcp {
        // Without it, connections of an earlier daemon would count.
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    rustix::net::bind(&socket, &port.address)
}

/// The process that has a port, if `/proc` shows it to us.
fn owner(port: &Port) -> Option<Owner> {
    let tables: [&str; 2] = match port.protocol {
        Protocol::Udp => ["udp", "udp6"],
        Protocol::Tcp => ["tcp", "tcp6"],
    };
    let inodes: Vec<u64> = tables
        .iter()
        .flat_map(|table| {
            let text = fs::read_to_string(format!("/proc/thread-self/net/{table}"));
            inodes_of(&text.unwrap_or_default(), port.address)
        })
        .collect();
    let links: Vec<String> = inodes.iter().map(|n| format!("socket:[{n}]")).collect();
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let Ok(descriptors) = fs::read_dir(entry.path().join("fd")) else {
            continue;
        };
        let mut targets = descriptors
            .flatten()
            .filter_map(|one| fs::read_link(one.path()).ok());
        if targets.any(|target| links.iter().any(|link| target.as_os_str() == link.as_str())) {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            let name = name.trim().to_owned();
            return Some(Owner { pid, name });
        }
    }
    None
}

/// The sockets in a table of `/proc/net` that keep `wanted` from being bound.
fn inodes_of(table: &str, wanted: SocketAddr) -> Vec<u64> {
    let rows = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let local = address(fields.get(1)?)?;
        let inode = fields.get(9)?.parse().ok()?;
        Some((local, inode))
    });
    let conflicts = |local: &SocketAddr| {
        let (one, other) = (local.ip(), wanted.ip());
        let any = one.is_unspecified() || other.is_unspecified();
        local.port() == wanted.port() && (one == other || any)
    };
    let found = rows.filter(|(local, _)| conflicts(local));
    found.map(|(_, inode)| inode).filter(|n| *n != 0).collect()
}

/// `0100007F:06A5`: words of the address in host byte order, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::new();
    for at in (0..ip.len()).step_by(8) {
        let word = u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let ip = match bytes.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        _ => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(address: SocketAddr) -> Port {
        Port {
            address,
            protocol: Protocol::Udp,
            key: "lns.listen",
            is_optional: false,
        }
    }

    #[test]
    fn a_taken_port_is_ours_when_we_have_it() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let taken = port(socket.local_addr().unwrap());
        let Bind::Taken(Some(owner)) = bind(&taken) else {
            panic!("{:?}", bind(&taken));
        };
        assert_eq!(owner.pid, std::process::id());
        drop(socket);
        assert!(matches!(bind(&taken), Bind::Free));
    }

    #[test]
    fn an_address_of_another_host_is_not_here() {
        let away = port("192.0.2.77:1701".parse().unwrap());
        assert!(matches!(bind(&away), Bind::NotHere), "{:?}", bind(&away));
    }

    #[test]
    fn rows_of_proc_net_conflict_by_port_and_address() {
        let table = "  sl  local_address rem_address st tx rx tr tm->when retrnsmt uid timeout inode\n\
                     1: 0100007F:06A5 00000000:0000 07 0:0 00:0 0 0 0 4711 2 0 0\n\
                     2: 00000000:06A6 00000000:0000 07 0:0 00:0 0 0 0 4712 2 0 0\n";
        let of = |text: &str| inodes_of(table, text.parse().unwrap());
        assert_eq!(of("127.0.0.1:1701"), [4711]);
        assert_eq!(of("0.0.0.0:1701"), [4711]);
        assert_eq!(of("192.0.2.1:1702"), [4712]);
        assert_eq!(of("127.0.0.2:1701"), Vec::<u64>::new());
    }
}
