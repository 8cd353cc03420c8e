//! Learns the processes of connections while their sockets are open, for the report at the end.

use super::processes::{Ends, Processes};
use crate::owners::Learnt;

/// Connections that wait for the names of their processes.
const PENDING_MAX: usize = 4_096;

/// Searches that a connection waits for.
const SEARCHES: u8 = 3;

/// Connections whose sockets are known, and those whose processes are known too.
#[derive(Debug, Default)]
pub(super) struct Learning {
    pub(super) learnt: Learnt,
    pending: Vec<(u64, Ends, u8)>,
}

impl Learning {
    /// The sockets of a connection have been looked up.
    pub(super) fn add(&mut self, first_packet: u64, ends: Ends) {
        if ends != Ends::default() && self.pending.len() < PENDING_MAX {
            self.pending.push((first_packet, ends, 0));
        }
    }

    /// Whether the sockets of a connection have been found.
    pub(super) fn has(&self, first_packet: u64) -> bool {
        let mut pending = self.pending.iter();
        self.learnt.has(first_packet) || pending.any(|(other, ..)| *other == first_packet)
    }

    /// Takes the names that the latest search found; `is_last` if no other follows.
    pub(super) fn settle(&mut self, processes: &Processes, is_last: bool) {
        let Learning { learnt, pending } = self;
        pending.retain_mut(|(first_packet, ends, searches)| {
            *searches += 1;
            let owners = [ends.a, ends.b].map(|socket| processes.owner(socket));
            let mut known = owners.iter().flatten();
            let is_named = known.all(|owner| owner.process.is_some());
            if !is_named && *searches < SEARCHES && !is_last {
                return true;
            }
            learnt.keep(*first_packet, owners);
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, TcpListener, TcpStream};

    use super::*;

    #[test]
    fn processes_are_kept_after_their_sockets_are_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let end = |stream: &TcpStream| -> (IpAddr, u16) {
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
        let mut learning = Learning::default();
        learning.add(7, ends);
        learning.add(8, Ends::default());
        processes.search();
        drop((client, server));
        learning.settle(&processes, false);
        assert!(learning.pending.is_empty());
        let words = learning.learnt.words(7).unwrap();
        let own = format!("a is {}/", std::process::id());
        assert!(
            words.starts_with(&own) && words.contains(", b is "),
            "{words}"
        );
        assert!(!learning.learnt.has(8));
    }
}
