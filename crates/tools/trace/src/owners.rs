//! The processes that the host's own connections belong to, as far as a capture of an interface has shown them.

use std::collections::HashMap;

use serde_json::{Value, json};

/// Connections whose processes are kept. Further ones have no names in the report at the end.
const KEPT_MAX: usize = 65_536;

/// A process that has a socket open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// Its command name (proc(5), `comm`).
    pub(super) name: String,
}

/// The owner of a socket, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) uid: u32,
    pub(super) process: Option<Process>,
}

impl Owner {
    /// `PID/NAME`, or the user where the process is not known.
    pub(super) fn words(&self) -> String {
        match &self.process {
            Some(process) => format!("{}/{}", process.pid, process.name),
            None => format!("uid {}", self.uid),
        }
    }

    /// As an object; `pid` and `name` are null where they may not be read.
    pub(super) fn object(&self) -> Value {
        let process = self.process.as_ref();
        json!({
            "uid": self.uid,
            "pid": process.map(|process| process.pid),
            "name": process.map(|process| process.name.as_str()),
        })
    }
}

/// Owners of the host's sockets at ends `a` and `b` of a connection. There is none for an end that is on another host, or
/// whose socket was closed before it was looked up.
pub(super) type Owners = [Option<Owner>; 2];

/// The owners of connections, by their first packets.
#[derive(Debug, Default)]
pub(super) struct Learnt(HashMap<u64, Owners>);

impl Learnt {
    /// Keeps the owners of a connection, if there is room.
    pub(super) fn keep(&mut self, first_packet: u64, owners: Owners) {
        if self.0.len() < KEPT_MAX {
            self.0.insert(first_packet, owners);
        }
    }

    /// Whether the owners of a connection are kept.
    pub(super) fn has(&self, first_packet: u64) -> bool {
        self.0.contains_key(&first_packet)
    }

    /// The owners of a connection as members of its line of JSON.
    pub(super) fn members(&self, first_packet: u64) -> [(&'static str, Value); 2] {
        let owners = self.0.get(&first_packet);
        let [a, b] = [0, 1].map(|end| Some(owners?[end].as_ref()?.object()));
        [("a_process", a.into()), ("b_process", b.into())]
    }

    /// The owners of a connection in words; `None` if none is known.
    pub(super) fn words(&self, first_packet: u64) -> Option<String> {
        let owners = self.0.get(&first_packet)?;
        let ends = ["a", "b"].into_iter().zip(owners);
        let ends = ends.filter_map(|(end, owner)| {
            let owner = owner.as_ref()?;
            Some(format!("{end} is {}", owner.words()))
        });
        Some(ends.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_has_the_owners_of_the_ends_on_this_host() {
        let process = Process {
            pid: 42,
            name: "server".to_owned(),
        };
        let owner = |process| Some(Owner { uid: 5, process });
        let mut learnt = Learnt::default();
        learnt.keep(7, [None, owner(Some(process))]);
        learnt.keep(8, [owner(None), None]);
        assert_eq!(learnt.words(7).as_deref(), Some("b is 42/server"));
        assert_eq!(learnt.words(8).as_deref(), Some("a is uid 5"));
        let [a, b] = learnt.members(7);
        assert_eq!(a, ("a_process", Value::Null));
        assert_eq!(
            b,
            ("b_process", json!({"uid": 5, "pid": 42, "name": "server"}))
        );
        assert_eq!(learnt.words(9), None);
        assert!(learnt.members(9).iter().all(|(_, value)| value.is_null()));
        assert!(learnt.has(8) && !learnt.has(9));
    }

    #[test]
    fn a_full_table_takes_no_more() {
        let mut learnt = Learnt::default();
        for first_packet in 0..KEPT_MAX as u64 + 5 {
            learnt.keep(first_packet, [None, None]);
        }
        assert!(learnt.has(KEPT_MAX as u64 - 1) && !learnt.has(KEPT_MAX as u64));
    }
}
