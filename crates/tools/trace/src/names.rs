//! Names of hosts and ports, for `--names` and the like.
//!
//! Ports are looked up in /etc/services, and hosts by the system's resolver, through `getent hosts`, one at a time and
//! each once. If that program is missing or has no name, the address is printed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::fs;
use std::net::IpAddr;
use std::process::{Command, Stdio};

use trace::text::Names;

/// Limit of cached host names; beyond it, the cache is emptied.
const HOSTS_MAX: usize = 1 << 16;

/// Looks names up.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    hosts: Option<RefCell<HashMap<IpAddr, String>>>,
    ports: HashMap<u16, String>,
    short: bool,
}

impl Lookup {
    pub(super) fn new(hosts: bool, ports: bool, short: bool) -> Lookup {
        let services = || fs::read_to_string("/etc/services").unwrap_or_default();
        Lookup {
            hosts: hosts.then(RefCell::default),
            ports: if ports {
                services_of(&services())
            } else {
                HashMap::new()
            },
            short,
        }
    }

    fn host_name(&self, address: IpAddr) -> String {
        let output = Command::new("getent")
            .args(["hosts", &address.to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output();
        let output = output.map(|output| output.stdout).unwrap_or_default();
        let line = String::from_utf8_lossy(&output);
        let name = line.split_whitespace().nth(1);
        // A name server's answer is printed on a terminal and used in file names.
        let name = name.filter(|name| name.chars().all(|c| c.is_ascii_graphic() && c != '/'));
        match name {
            Some(name) if self.short => name.split('.').next().unwrap_or(name).to_owned(),
            Some(name) => name.to_owned(),
            None => address.to_string(),
        }
    }
}

impl Names for Lookup {
    fn host(&self, address: IpAddr, out: &mut dyn Write) -> fmt::Result {
        let Some(hosts) = &self.hosts else {
            return write!(out, "{address}");
        };
        let mut hosts = hosts.borrow_mut();
        if hosts.len() >= HOSTS_MAX {
            hosts.clear();
        }
        let name = hosts
            .entry(address)
            .or_insert_with(|| self.host_name(address));
        out.write_str(name)
    }

    fn port(&self, port: u16, out: &mut dyn Write) -> fmt::Result {
        match self.ports.get(&port) {
            Some(name) => out.write_str(name),
            None => write!(out, "{port}"),
        }
    }
}

/// The TCP services of /etc/services, by port.
fn services_of(text: &str) -> HashMap<u16, String> {
    let mut ports = HashMap::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or("");
        let mut words = line.split_whitespace();
        let (Some(name), Some(port)) = (words.next(), words.next()) else {
            continue;
        };
        if let Some(port) = port.strip_suffix("/tcp")
            && let Ok(port) = port.parse()
        {
            ports.entry(port).or_insert_with(|| name.to_owned());
        }
    }
    ports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_of_a_tcp_port_counts() {
        let ports =
            services_of("# x\nhttp 80/tcp www # web\nwww2\t80/tcp\ndomain 53/udp\nbad 99999/tcp\n");
        assert_eq!(ports.get(&80).map(String::as_str), Some("http"));
        assert_eq!(ports.len(), 1);
    }
}
