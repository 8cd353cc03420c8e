//! Lists the links, addresses and routes of the kernel with dumps (rtnetlink(7), RFC 3549, section 2.3.2).
//!
//! A dump of a large table takes many reads. [`RouteDump`] makes one read per call, so that the caller can do other
//! work in between.

use std::io;
use std::net::IpAddr;

use rustix::net::{RecvFlags, SendFlags, netlink};

use super::{HEADER, Netlink, ROUTE_HEAD, Request, attribute, octets_to_address};
use crate::syscalls::{Call, enter};

/// The kernel fills the reader's buffer up to this size (`NLMSG_GOODSIZE` is smaller).
const READ: usize = 32_768;

/// How often a dump starts again if the table changed meanwhile (`NLM_F_DUMP_INTR`).
const TRIES: usize = 3;

/// An interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundLink {
    /// Its index.
    pub index: u32,
    /// Whether it is set up.
    pub is_up: bool,
}

/// A route of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundRoute {
    /// The destination: an address and a prefix length.
    pub to: (IpAddr, u8),
    /// The router; `None` for directly connected networks, and for routes with several routers.
    pub via: Option<IpAddr>,
    /// The index of the interface; 0 if the route names none.
    pub interface: u32,
    /// The routing table.
    pub table: u32,
    /// The program or protocol that added the route (`RTPROT_...`).
    pub protocol: u8,
    /// The metric.
    pub metric: u32,
}

/// Which routes to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteFilter {
    /// IPv4 rather than IPv6.
    pub is_ipv4: bool,
    /// The routing table.
    pub table: u32,
    /// Only routes of this origin.
    pub protocol: Option<u8>,
    /// Only routes through this interface.
    pub interface: Option<u32>,
}

impl RouteFilter {
    fn accepts(&self, route: &FoundRoute) -> bool {
        route.table == self.table
            && route.to.0.is_ipv4() == self.is_ipv4
            && self.protocol.is_none_or(|wanted| wanted == route.protocol)
            && self
                .interface
                .is_none_or(|wanted| wanted == route.interface)
    }

    fn request(&self) -> Request {
        let mut request = Request::new(libc::RTM_GETROUTE, libc::NLM_F_DUMP);
        let family = if self.is_ipv4 {
            libc::AF_INET
        } else {
            libc::AF_INET6
        };
        let mut head = [0; ROUTE_HEAD];
        head[0] = family as u8;
        head[4] = u8::try_from(self.table).unwrap_or(libc::RT_TABLE_COMPAT);
        head[5] = self.protocol.unwrap_or(libc::RTPROT_UNSPEC);
        request.0.extend(head);
        request.number(libc::RTA_TABLE, self.table);
        if let Some(interface) = self.interface {
            request.number(libc::RTA_OIF, interface);
        }
        request
    }
}

/// A dump of routes in progress.
#[derive(Debug)]
pub struct RouteDump {
    netlink: Netlink,
    filter: RouteFilter,
    buffer: Vec<u8>,
}

impl RouteDump {
    /// Starts a dump, on a socket of its own.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn start(filter: RouteFilter) -> io::Result<Self> {
        let mut netlink = Netlink::open()?;
        netlink.filter_strictly();
        netlink.send(filter.request())?;
        Ok(Self {
            netlink,
            filter,
            buffer: vec![0; READ],
        })
    }

    /// Reads a part, and appends its routes to `out`. Returns whether more is left.
    ///
    /// # Errors
    /// [`io::ErrorKind::Interrupted`] if the table changed so that the dump has to start again; else the kernel's
    /// error.
    pub fn read(&mut self, out: &mut Vec<FoundRoute>) -> io::Result<bool> {
        let filter = self.filter;
        let read = self.netlink.read_dump(&mut self.buffer, &mut |kind, body| {
            let route = (kind == libc::RTM_NEWROUTE).then(|| route(body)).flatten();
            out.extend(route.filter(|route| filter.accepts(route)));
        });
        if is_missing_table(&read) {
            Ok(false)
        } else {
            read
        }
    }
}

impl Netlink {
    /// The interface with this index, and its name; `None` if this network namespace has none.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn link(&mut self, index: u32) -> io::Result<Option<(FoundLink, String)>> {
        let mut found = None;
        let request = Request::link(libc::RTM_GETLINK, 0, index, None);
        let asked = self.converse(request, |kind, body| {
            if kind == libc::RTM_NEWLINK {
                found = super::monitor::link(body).zip(link_name(body));
            }
        });
        match asked {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            asked => asked.map(|()| found),
        }
    }

    /// The addresses of an interface, with their prefix lengths.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn addresses(&mut self, index: u32) -> io::Result<Vec<(IpAddr, u8)>> {
        // `struct ifaddrmsg`.
        let mut request = Request::new(libc::RTM_GETADDR, libc::NLM_F_DUMP);
        request.0.extend([0; 8]);
        self.dump(&request, |kind, body| {
            let head = body.get(..8).filter(|_| kind == libc::RTM_NEWADDR)?;
            let its = u32::from_ne_bytes(head[4..8].try_into().ok()?);
            let attributes = &body[8..];
            let own = attribute(attributes, libc::IFA_LOCAL);
            let own = own.or_else(|| attribute(attributes, libc::IFA_ADDRESS))?;
            (its == index).then_some((octets_to_address(own)?, head[1]))
        })
    }

    /// The routes that `filter` accepts.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn routes(&mut self, filter: RouteFilter) -> io::Result<Vec<FoundRoute>> {
        // Else it would list a million routes to find a few.
        self.filter_strictly();
        let found = self.dump(&filter.request(), |kind, body| {
            let route = (kind == libc::RTM_NEWROUTE).then(|| route(body)).flatten();
            route.filter(|route| filter.accepts(route))
        });
        if is_missing_table(&found) {
            return Ok(Vec::new());
        }
        found
    }

    pub(super) fn dump<T>(
        &mut self,
        request: &Request,
        mut take: impl FnMut(u16, &[u8]) -> Option<T>,
    ) -> io::Result<Vec<T>> {
        let mut buffer = vec![0; READ];
        for left in (0..TRIES).rev() {
            let mut out = Vec::new();
            self.send(Request(request.0.clone()))?;
            let read = loop {
                let mut hear = |kind, body: &[u8]| out.extend(take(kind, body));
                match self.read_dump(&mut buffer, &mut hear) {
                    Ok(true) => {}
                    other => break other,
                }
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted && left > 0 => {}
                other => return other.map(|_| out),
            }
        }
        Ok(Vec::new())
    }

    /// Asks the kernel to filter dumps itself (Linux 4.20). Older kernels list everything.
    fn filter_strictly(&self) {
        let (level, option) = (libc::SOL_NETLINK, libc::NETLINK_GET_STRICT_CHK);
        let set = crate::sys::socket::set_number(self.borrowed(), level, option, 1);
        drop(set);
    }

    pub(super) fn send(&mut self, mut request: Request) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        request.finish(self.sequence);
        enter(Call::Sendto)?;
        let to = netlink::SocketAddrNetlink::new(0, 0);
        rustix::net::sendto(&self.fd, &request.0, SendFlags::empty(), &to)?;
        Ok(())
    }

    /// Reads a part of a dump: one datagram with several messages. Returns whether more is left.
    fn read_dump(
        &mut self,
        buffer: &mut [u8],
        hear: &mut dyn FnMut(u16, &[u8]),
    ) -> io::Result<bool> {
        let length = loop {
            let read = enter(Call::Recvfrom)
                .and_then(|()| rustix::net::recv(&self.fd, &mut *buffer, RecvFlags::empty()));
            match read {
                Err(rustix::io::Errno::INTR) => {}
                result => break result?.0,
            }
        };
        let mut changed = false;
        for message in messages(&buffer[..length]) {
            if message.sequence != self.sequence {
                continue;
            }
            changed |= i32::from(message.flags) & libc::NLM_F_DUMP_INTR != 0;
            let is_done = i32::from(message.kind) == libc::NLMSG_DONE;
            if is_done || i32::from(message.kind) == libc::NLMSG_ERROR {
                let code = message.body.first_chunk::<4>();
                return match code.map_or(0, |code| i32::from_ne_bytes(*code)) {
                    0 if changed => Err(io::ErrorKind::Interrupted.into()),
                    0 => Ok(false),
                    code => Err(io::Error::from_raw_os_error(-code)),
                };
            }
            hear(message.kind, message.body);
        }
        Ok(true)
    }
}

/// Whether the kernel has no such routing table: it makes one with its first route.
fn is_missing_table<T>(result: &io::Result<T>) -> bool {
    let code = result.as_ref().err().and_then(io::Error::raw_os_error);
    code == Some(libc::ENOENT)
}

/// A netlink message.
pub(super) struct Message<'a> {
    pub(super) kind: u16,
    pub(super) flags: u16,
    pub(super) sequence: u32,
    pub(super) body: &'a [u8],
}

/// The messages of a datagram.
pub(super) fn messages(mut datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    core::iter::from_fn(move || {
        let (head, _) = datagram.split_first_chunk::<HEADER>()?;
        let length = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let body = datagram.get(HEADER..length)?;
        datagram = datagram
            .get(length.next_multiple_of(4)..)
            .unwrap_or_default();
        Some(Message {
            kind: u16::from_ne_bytes([head[4], head[5]]),
            flags: u16::from_ne_bytes([head[6], head[7]]),
            sequence: u32::from_ne_bytes([head[8], head[9], head[10], head[11]]),
            body,
        })
    })
}

/// The name in the message of a link.
fn link_name(body: &[u8]) -> Option<String> {
    let attributes = body.get(size_of::<[u32; 4]>()..)?;
    let name = attribute(attributes, libc::IFLA_IFNAME)?;
    let name = name.split(|&octet| octet == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// A route from the body of its message.
pub(super) fn route(body: &[u8]) -> Option<FoundRoute> {
    let (head, attributes) = body.split_first_chunk::<ROUTE_HEAD>()?;
    let any: IpAddr = match i32::from(head[0]) {
        libc::AF_INET => [0; 4].into(),
        libc::AF_INET6 => [0; 16].into(),
        _ => return None,
    };
    let number = |kind| {
        let value = attribute(attributes, kind)?.first_chunk::<4>()?;
        Some(u32::from_ne_bytes(*value))
    };
    let to = attribute(attributes, libc::RTA_DST).and_then(octets_to_address);
    let via = attribute(attributes, libc::RTA_GATEWAY);
    // `struct rtvia`: a family of two octets, then the address.
    let via = via.or_else(|| attribute(attributes, super::RTA_VIA)?.get(2..));
    Some(FoundRoute {
        to: (to.unwrap_or(any), head[1]),
        via: via.and_then(octets_to_address),
        interface: number(libc::RTA_OIF).unwrap_or(0),
        table: number(libc::RTA_TABLE).unwrap_or(head[4].into()),
        protocol: head[5],
        metric: number(libc::RTA_PRIORITY).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Namespace;
    use crate::netlink::{LearnedRoute, LearnedTable};

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    const OURS: RouteFilter = RouteFilter {
        is_ipv4: true,
        table: 254,
        protocol: Some(186),
        interface: None,
    };

    /// Runs `work` in a namespace with the interface `a`, 192.0.2.1/24, which is up.
    fn in_namespace(work: impl FnOnce(Netlink) + Send) {
        // Without the privilege these tests cannot check anything.
        let own = (address("192.0.2.1"), 24);
        if let Ok(namespace) = Namespace::with_interface(("a", "b"), own) {
            namespace.run(|| work(Netlink::open().unwrap())).unwrap();
        }
    }

    #[test]
    fn links_and_addresses_are_found() {
        in_namespace(|mut netlink| {
            let index = netlink.index("a").unwrap();
            assert_eq!(netlink.link(index + 1_000).unwrap(), None);
            let (link, name) = netlink.link(index).unwrap().unwrap();
            assert_eq!((link.index, link.is_up, &*name), (index, true, "a"));
            let [own, six] = [address("192.0.2.1"), address("2001:db8::1")];
            netlink.add_address("a", six, 128).unwrap();
            let found = netlink.addresses(link.index).unwrap();
            let all = [(own, 24), (six, 128)];
            assert!(all.iter().all(|one| found.contains(one)), "{found:?}");
            assert!(!found.contains(&(address("127.0.0.1"), 8)), "of lo");
            netlink.set_up("a", false).unwrap();
            assert!(!netlink.link(index).unwrap().unwrap().0.is_up);
        });
    }

    #[test]
    fn a_dump_lists_the_routes_of_its_filter_in_parts() {
        in_namespace(|mut netlink| {
            let (static_one, router) = (address("198.51.100.0"), address("192.0.2.9"));
            netlink.add_route(static_one, 24, None, "a").unwrap();
            let place = LearnedTable {
                table: 254,
                metric: 200,
            };
            let learned = |last| LearnedRoute {
                to: (IpAddr::from([203, 0, 113, last]), 32),
                via: Some(router),
            };
            let learned: Vec<_> = (0..=255).map(learned).collect();
            for part in learned.chunks(128) {
                assert_eq!(netlink.change_learned(place, part).unwrap().0, 0);
            }
            let found = netlink.routes(OURS).unwrap();
            assert_eq!(found.len(), 256);
            let is_right = |route: &FoundRoute| route.via == Some(router) && route.metric == 200;
            assert!(found.iter().all(is_right), "{:?}", found[0]);
            let mut dump = RouteDump::start(OURS).unwrap();
            let (mut parts, mut read) = (1, Vec::new());
            while dump.read(&mut read).unwrap() {
                parts += 1;
            }
            assert_eq!((read.len(), parts > 1), (256, true));
            let through = RouteFilter {
                protocol: Some(4),
                interface: Some(netlink.index("a").unwrap()),
                ..OURS
            };
            let found = netlink.routes(through).unwrap();
            let found: Vec<_> = found.iter().map(|route| route.to).collect();
            assert_eq!(found, [(static_one, 24)]);
        });
    }

    #[test]
    fn a_table_without_routes_is_empty() {
        in_namespace(|mut netlink| {
            for is_ipv4 in [true, false] {
                let unused = RouteFilter {
                    is_ipv4,
                    table: 4_711,
                    ..OURS
                };
                assert_eq!(netlink.routes(unused).unwrap(), []);
                let mut none = Vec::new();
                let mut dump = RouteDump::start(unused).unwrap();
                while dump.read(&mut none).unwrap() {}
                assert_eq!(none, []);
            }
        });
    }
}
