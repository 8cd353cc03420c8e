//! Receives notifications of changes to links and queues (rtnetlink(7), RTNLGRP_LINK and RTNLGRP_TC). Start reading at
//! [`QueueMonitor::read`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::monitor::link;
use super::notified::Notified;
use crate::sys::socket::Instruction;

/// Queues, classes and filters: from `RTM_NEWQDISC` to `RTM_GETTFILTER`.
const QUEUES: core::ops::RangeInclusive<u16> = 36..=46;
/// `RTMGRP_TC`.
const GROUP: u32 = 8;

/// A change, by another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueNotice {
    /// The link with this index appeared, changed, or is gone.
    Link(u32),
    /// A queue, a class or a filter of the link with this index changed.
    Queues(u32),
    /// Notifications were lost, because they came faster than they were read. The reader has to look at everything.
    Overflow,
}

/// A socket that gets notifications of a network namespace.
#[derive(Debug)]
pub struct QueueMonitor {
    socket: Notified,
}

impl QueueMonitor {
    /// Opens it in the network namespace of the calling thread. Changes by the netlink socket with the port `own` are left
    /// out ([`Netlink::port`](super::Netlink::port)): there may be thousands.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open(own: u32) -> io::Result<Self> {
        let groups = libc::RTMGRP_LINK.cast_unsigned() | GROUP;
        let socket = Notified::open(groups, &without_own(own))?;
        Ok(Self { socket })
    }

    /// Reads a datagram and appends its notices to `out`. Returns `false` if there was none.
    ///
    /// # Errors
    /// The kernel's error for the socket.
    pub fn read(&mut self, out: &mut Vec<QueueNotice>) -> io::Result<bool> {
        self.socket.read(out, QueueNotice::Overflow, notice)
    }
}

impl AsFd for QueueMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn notice(kind: u16, body: &[u8]) -> Option<QueueNotice> {
    match kind {
        libc::RTM_NEWLINK | libc::RTM_DELLINK => {
            link(body).map(|link| QueueNotice::Link(link.index))
        }
        // The index of `struct tcmsg`.
        kind if QUEUES.contains(&kind) => {
            let index = body.get(4..8)?.try_into().ok()?;
            Some(QueueNotice::Queues(u32::from_ne_bytes(index)))
        }
        _ => None,
    }
}

/// A program that drops notifications about queues by the socket with this port. BPF loads in network byte order.
fn without_own(port: u32) -> Vec<Instruction> {
    const LOAD_WORD: u16 = 0x20;
    const LOAD_BYTE: u16 = 0x30;
    const IF_GREATER_OR_EQUAL: u16 = 0x35;
    const IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    // The lower byte of `nlmsg_type`; all types here are below 256.
    let low = if cfg!(target_endian = "little") { 4 } else { 5 };
    vec![
        (LOAD_BYTE, 0, 0, low),
        (IF_GREATER_OR_EQUAL, 0, 3, (*QUEUES.start()).into()),
        // `nlmsg_pid`.
        (LOAD_WORD, 0, 0, 12),
        (IF_EQUAL, 0, 1, u32::from_be_bytes(port.to_ne_bytes())),
        (RETURN, 0, 0, 0),
        (RETURN, 0, 0, u32::MAX),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Namespace;
    use crate::netlink::{Asked, Netlink};

    /// A first queue of kind `pfifo` (`RTM_NEWQDISC`), replacing another.
    fn queue(index: u32, limit: u32) -> Asked {
        let words = [0, index, 0x1_0000, u32::MAX, 0];
        let mut body: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
        for (kind, value) in [(1_u16, &b"pfifo\0\0\0"[..]), (2, &limit.to_ne_bytes())] {
            let length = if kind == 1 { 10 } else { 8_u16 };
            body.extend(length.to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(value);
        }
        Asked {
            kind: 36,
            flags: 0x500,
            body,
        }
    }

    #[test]
    fn links_and_queues_are_noticed_but_not_our_own_changes_of_queues() {
        // Without the privilege this test cannot check anything.
        let Ok(namespace) = Namespace::new() else {
            return;
        };
        namespace
            .run(|| {
                let mut own = Netlink::open().unwrap();
                let mut other = Netlink::open().unwrap();
                let mut monitor = QueueMonitor::open(own.port().unwrap()).unwrap();
                let mut notices = move || {
                    let mut out = Vec::new();
                    while monitor.read(&mut out).unwrap() {}
                    out
                };
                own.add_veth("a", "b", None).unwrap();
                let index = own.index("a").unwrap();
                assert!(notices().contains(&QueueNotice::Link(index)));
                assert!(own.change_all(&[queue(index, 10)]).unwrap().is_empty());
                assert_eq!(notices(), []);
                assert!(other.change_all(&[queue(index, 20)]).unwrap().is_empty());
                assert!(notices().contains(&QueueNotice::Queues(index)));
                own.delete("a").unwrap();
                assert!(notices().contains(&QueueNotice::Link(index)));
            })
            .unwrap();
    }
}
