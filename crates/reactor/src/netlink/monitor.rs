//! Receives notifications of changes to links, addresses and routes (rtnetlink(7), multicast groups). Start reading at
//! [`Monitor::read`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::found::{self, FoundLink, FoundRoute};
use super::notified::Notified;
use crate::sys::socket::Instruction;

/// A change, by this process or by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A link appeared or changed.
    Link(FoundLink),
    /// A link is gone.
    LinkGone(u32),
    /// An address of this interface was added or removed.
    Address(u32),
    /// A route was added or removed.
    Route(FoundRoute),
    /// Notifications were lost, because they came faster than they were read. The reader has to look at everything.
    Overflow,
}

/// A socket that gets notifications of a network namespace.
#[derive(Debug)]
pub struct Monitor {
    socket: Notified,
}

impl Monitor {
    /// Opens it in the network namespace of the calling thread. Route changes by the netlink sockets with the ports `own`
    /// are left out ([`Netlink::port`](super::Netlink::port)): there may be a million. Give at most 64 ports.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open(own: &[u32]) -> io::Result<Self> {
        let groups = libc::RTMGRP_LINK
            | libc::RTMGRP_IPV4_IFADDR
            | libc::RTMGRP_IPV6_IFADDR
            | libc::RTMGRP_IPV4_ROUTE
            | libc::RTMGRP_IPV6_ROUTE;
        let filter = if own.is_empty() {
            Vec::new()
        } else {
            without_own(own)
        };
        let socket = Notified::open(groups.cast_unsigned(), &filter)?;
        Ok(Self { socket })
    }

    /// Reads a datagram and appends its notices to `out`. Returns `false` if there was none.
    ///
    /// # Errors
    /// The kernel's error for the socket.
    pub fn read(&mut self, out: &mut Vec<Notice>) -> io::Result<bool> {
        self.socket.read(out, Notice::Overflow, notice)
    }
}

impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn notice(kind: u16, body: &[u8]) -> Option<Notice> {
    match kind {
        libc::RTM_NEWLINK => link(body).map(Notice::Link),
        libc::RTM_DELLINK => link(body).map(|link| Notice::LinkGone(link.index)),
        libc::RTM_NEWADDR | libc::RTM_DELADDR => {
            let index = body.get(4..8)?.try_into().ok()?;
            Some(Notice::Address(u32::from_ne_bytes(index)))
        }
        libc::RTM_NEWROUTE | libc::RTM_DELROUTE => found::route(body).map(Notice::Route),
        _ => None,
    }
}

/// A link from the body of its message (`struct ifinfomsg`).
pub(super) fn link(body: &[u8]) -> Option<FoundLink> {
    let word = |at: usize| {
        let word = body.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_ne_bytes(word))
    };
    Some(FoundLink {
        index: word(4)?,
        is_up: word(8)? & libc::IFF_UP as u32 != 0,
    })
}

/// A program that drops notifications about route changes by the sockets with these ports. BPF loads in network byte
/// order.
fn without_own(ports: &[u32]) -> Vec<Instruction> {
    const LOAD_WORD: u16 = 0x20;
    const LOAD_HALF: u16 = 0x28;
    const IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let kind = |kind: u16| u32::from(u16::from_be_bytes(kind.to_ne_bytes()));
    let tests = ports.len() as u8;
    let mut program = vec![
        (LOAD_HALF, 0, 0, 4),
        (IF_EQUAL, 1, 0, kind(libc::RTM_NEWROUTE)),
        (IF_EQUAL, 0, tests + 1, kind(libc::RTM_DELROUTE)),
        // `nlmsg_pid`.
        (LOAD_WORD, 0, 0, 12),
    ];
    // Each jumps to the last instruction.
    program.extend(ports.iter().zip((1..=tests).rev()).map(|(port, left)| {
        let port = u32::from_be_bytes(port.to_ne_bytes());
        (IF_EQUAL, left, 0, port)
    }));
    program.push((RETURN, 0, 0, u32::MAX));
    program.push((RETURN, 0, 0, 0));
    program
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::namespace::Namespace;
    use crate::netlink::{LearnedRoute, LearnedTable, Netlink};

    #[test]
    fn changes_are_noticed_but_not_our_own_of_learned_routes() {
        // Without the privilege this test cannot check anything.
        let Ok(namespace) = Namespace::new() else {
            return;
        };
        // Else it adds routes of its own meanwhile.
        for whose in ["all", "default"] {
            let _ = namespace.set(&format!("ipv6/conf/{whose}/disable_ipv6"), "1");
        }
        namespace
            .run(|| {
                let mut netlink = Netlink::open().unwrap();
                let mut learner = Netlink::open().unwrap();
                let own = learner.port().unwrap();
                let mut monitor = Monitor::open(&[1, own]).unwrap();
                let mut notices = move || {
                    let mut out = Vec::new();
                    while monitor.read(&mut out).unwrap() {}
                    out
                };
                // The kernel reports the carrier of a link when it likes.
                let routes = |mut notices: Vec<Notice>| {
                    let route = |notice| match notice {
                        Notice::Route(route) => Some((route.interface, route.protocol)),
                        _ => None,
                    };
                    notices.drain(..).filter_map(route).collect::<Vec<_>>()
                };
                netlink.add_veth("a", "b", None).unwrap();
                netlink.set_up("a", true).unwrap();
                let index = netlink.index("a").unwrap();
                assert!(notices().contains(&Notice::Link(FoundLink { index, is_up: true })));
                netlink.set_up("b", true).unwrap();
                notices();
                netlink
                    .add_address("a", "192.0.2.1".parse().unwrap(), 24)
                    .unwrap();
                assert!(notices().contains(&Notice::Address(index)));
                netlink
                    .add_route("198.51.100.0".parse().unwrap(), 24, None, "a")
                    .unwrap();
                assert_eq!(routes(notices()), [(index, 4)]);
                let place = LearnedTable {
                    table: 254,
                    metric: 200,
                };
                let route = LearnedRoute {
                    to: ("203.0.113.0".parse().unwrap(), 24),
                    via: Some("192.0.2.9".parse().unwrap()),
                };
                assert_eq!(learner.change_learned(place, &[route]).unwrap().0, 0);
                assert_eq!(routes(notices()), []);
                let gone = LearnedRoute { via: None, ..route };
                assert_eq!(netlink.change_learned(place, &[gone]).unwrap().0, 0);
                // By another socket.
                assert_eq!(routes(notices()), [(index, 186)]);
                netlink.delete("a").unwrap();
                assert!(notices().contains(&Notice::LinkGone(index)));
            })
            .unwrap();
    }

    #[test]
    fn notifications_that_were_lost_are_an_overflow_and_later_ones_arrive() {
        // Without the privilege this test cannot check anything.
        let Ok(namespace) = Namespace::new() else {
            return;
        };
        namespace
            .run(|| {
                let mut netlink = Netlink::open().unwrap();
                let mut monitor = Monitor::open(&[]).unwrap();
                netlink.add_veth("a", "b", None).unwrap();
                for n in 0..4_000_u16 {
                    let [high, low] = n.to_be_bytes();
                    let address = IpAddr::from([10, 0, high, low]);
                    netlink.add_address("a", address, 32).unwrap();
                }
                let mut notices = Vec::new();
                while monitor.read(&mut notices).unwrap() {}
                assert!(notices.contains(&Notice::Overflow));
                notices.clear();
                let index = netlink.index("a").unwrap();
                netlink.add_address("a", [192, 0, 2, 1].into(), 32).unwrap();
                while monitor.read(&mut notices).unwrap() {}
                assert!(notices.contains(&Notice::Address(index)));
            })
            .unwrap();
    }
}
