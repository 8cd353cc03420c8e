//! The processes that the host's own connections belong to: the kernel names a connection's socket (sock_diag(7)), and
//! `/proc/PID/fd` the processes that have it open.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};

use reactor::netlink::{FoundSocket, Sockets};

use crate::owners::{Owner, Process};

/// Files of processes that one search looks at. Sockets of further ones have no name.
const FILES_MAX: usize = 200_000;

/// Searches for the process of a socket: one that no search found belongs to a process of another user, or to none.
const SEARCHES: u8 = 3;

/// Names that are kept. Beyond it, all are forgotten and found again.
const NAMES_MAX: usize = 65_536;

/// The host's sockets at the ends of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) a: Option<FoundSocket>,
    pub(super) b: Option<FoundSocket>,
}

enum Name {
    Found(Process),
    /// Searches so far.
    Missing(u8),
}

/// The sockets and processes of this host.
pub(super) struct Processes {
    sockets: Sockets,
    /// The interface's index.
    interface: u32,
    names: HashMap<u32, Name>,
}

impl Processes {
    /// `None` if the kernel does not name sockets.
    pub(super) fn new(interface: u32) -> Option<Processes> {
        Some(Processes {
            sockets: Sockets::open().ok()?,
            interface,
            names: HashMap::new(),
        })
    }

    /// The host's sockets at both ends of a connection.
    pub(super) fn ends(&mut self, a: (IpAddr, u16), b: (IpAddr, u16)) -> Ends {
        let (a, b) = (SocketAddr::from(a), SocketAddr::from(b));
        let mut find = |local, remote| {
            let found = self.sockets.find(local, remote, self.interface).ok()??;
            // A connection that has ended has no inode any more.
            (found.inode != 0).then_some(found)
        };
        let ends = Ends {
            a: find(a, b),
            b: find(b, a),
        };
        if self.names.len() >= NAMES_MAX {
            self.names.clear();
        }
        for socket in [ends.a, ends.b].into_iter().flatten() {
            let name = self.names.entry(socket.inode);
            name.or_insert(Name::Missing(0));
        }
        ends
    }

    /// Searches for the processes of sockets that have no name yet, if there are any.
    pub(super) fn search(&mut self) {
        let is_wanted =
            |name: &Name| matches!(name, Name::Missing(searches) if *searches < SEARCHES);
        let mut wanted = self.names.values().filter(|name| is_wanted(name)).count();
        if wanted == 0 {
            return;
        }
        let mut files = 0;
        let numbers = |path: &str| {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        };
        'processes: for pid in numbers("/proc") {
            for file in numbers(&format!("/proc/{pid}/fd")) {
                files += 1;
                if wanted == 0 || files > FILES_MAX {
                    break 'processes;
                }
                let Ok(link) = fs::read_link(format!("/proc/{pid}/fd/{file}")) else {
                    continue;
                };
                let inode = link.to_str().and_then(inode);
                let Some(name) = inode.and_then(|inode| self.names.get_mut(&inode)) else {
                    continue;
                };
                if is_wanted(name) {
                    wanted -= 1;
                    *name = Name::Found(Process {
                        pid,
                        name: comm(pid),
                    });
                }
            }
        }
        for name in self.names.values_mut() {
            if let Name::Missing(searches) = name {
                *searches = searches.saturating_add(1);
            }
        }
    }

    /// The owner of a socket.
    pub(super) fn owner(&self, socket: Option<FoundSocket>) -> Option<Owner> {
        let FoundSocket { inode, uid } = socket?;
        let process = match self.names.get(&inode) {
            Some(Name::Found(process)) => Some(process.clone()),
            _ => None,
        };
        Some(Owner { uid, process })
    }
}

/// The inode in the target of a link such as `socket:[1234]`.
fn inode(link: &str) -> Option<u32> {
    let number = link.strip_prefix("socket:[")?.strip_suffix(']')?;
    number.parse().ok()
}

/// The name of a process. It may contain anything, so control characters are replaced.
fn comm(pid: u32) -> String {
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = String::from_utf8_lossy(&name);
    let name = name.trim_end_matches('\n');
    name.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn both_ends_of_a_connection_to_oneself_are_this_process() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let end = |stream: &TcpStream| {
            let address = stream.local_addr().unwrap();
            (address.ip(), address.port())
        };
        let Some(mut processes) = Processes::new(0) else {
            return;
        };
        let ends = processes.ends(end(&client), end(&server));
        // A kernel without inet_diag has no answer.
        if ends == Ends::default() {
            return;
        }
        assert_ne!(ends.a, ends.b);
        assert_eq!(processes.owner(ends.a).unwrap().process, None);
        processes.search();
        for socket in [ends.a, ends.b] {
            let process = processes.owner(socket).unwrap().process.unwrap();
            assert_eq!(process.pid, std::process::id());
            assert!(!process.name.is_empty());
        }
        let stranger = ("192.0.2.1".parse().unwrap(), 9);
        assert_eq!(processes.ends(stranger, end(&server)), Ends::default());
        assert_eq!(processes.owner(None), None);
    }

    #[test]
    fn only_sockets_have_an_inode_that_counts() {
        assert_eq!(inode("socket:[4711]"), Some(4711));
        for link in [
            "pipe:[4711]",
            "socket:[",
            "socket:[x]",
            "/dev/null",
            "socket:[99999999999]",
        ] {
            assert_eq!(inode(link), None, "{link}");
        }
    }
}
