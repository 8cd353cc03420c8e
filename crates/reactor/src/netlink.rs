//! Interfaces, addresses and routes by rtnetlink(7): the few requests that experiments and the daemon need.
//!
//! A [`Netlink`] works on the network namespace of the thread that opened it. `found` lists what the kernel has, and a
//! [`Monitor`] gets notifications of changes. Left out: all other requests.

mod found;
mod learned;
mod monitor;
mod notified;
mod queue_monitor;
mod queues;
mod sockets;

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use base::Duration;
use rustix::net::netdevice::name_to_index;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink,
};

use crate::clock::{now, sleep};
use crate::syscalls::{Call, enter};

pub use found::{FoundLink, FoundRoute, RouteDump, RouteFilter};
pub use learned::{LearnedRoute, LearnedTable, ORIGIN as LEARNED_ORIGIN};
pub use monitor::{Monitor, Notice};
pub use queue_monitor::{QueueMonitor, QueueNotice};
pub use queues::{Asked, Refused};
pub use sockets::{FoundSocket, Sockets};

/// `struct nlmsghdr`.
const HEADER: usize = 16;

/// A next hop of another address family (linux/rtnetlink.h). `libc` has the constant for glibc only.
const RTA_VIA: u16 = 18;

/// The most changes for one call of [`Netlink::change_local`]: all refusals fit the socket's buffer.
pub const LOCAL_MAX: usize = 128;

/// A netlink socket for one network namespace.
#[derive(Debug)]
pub struct Netlink {
    fd: OwnedFd,
    sequence: u32,
}

/// A route in the main table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destination: an address and a prefix length; length 0 is the default route.
    pub to: (IpAddr, u8),
    /// The router and interface.
    pub way: Way,
    /// Of several routes to one network, the kernel takes the one with the lowest metric.
    pub metric: u32,
    /// The source address of packets whose sender binds none; must be one of the host's own.
    pub source: Option<IpAddr>,
    /// The program that adds the route (`RTPROT_...`). If it is not 0, [`Netlink::remove`] removes only its routes.
    pub origin: u8,
}

/// The origin of routes that an administrator adds (`RTPROT_STATIC`).
pub const ORIGIN_STATIC: u8 = libc::RTPROT_STATIC;

/// The next hop of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The router; `None` for directly connected networks.
    pub via: Option<IpAddr>,
    /// The index of the interface.
    pub interface: u32,
}

/// A request under construction.
struct Request(Vec<u8>);

impl Request {
    fn new(kind: u16, flags: i32) -> Self {
        let mut bytes = vec![0; HEADER];
        let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        Self(bytes)
    }

    /// A request that the kernel answers only if it refuses it.
    fn unacknowledged(kind: u16, flags: i32) -> Self {
        let mut request = Self::new(kind, flags);
        let flags = (flags | libc::NLM_F_REQUEST) as u16;
        request.0[6..8].copy_from_slice(&flags.to_ne_bytes());
        request
    }

    /// Writes the length and the sequence number into the header.
    fn finish(&mut self, sequence: u32) {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
    }

    /// `struct ifinfomsg`.
    fn link(kind: u16, flags: i32, index: u32, up: Option<bool>) -> Self {
        let mut request = Self::new(kind, flags);
        request.0.extend(link_head(index, up));
        request
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let length = (4 + value.len()) as u16;
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    fn text(&mut self, kind: u16, value: &str) -> &mut Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes)
    }

    fn number(&mut self, kind: u16, value: u32) -> &mut Self {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// An attribute that contains the attributes that `fill` writes.
    fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.0.len();
        self.attribute(kind, &[]);
        fill(self);
        let length = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }
}

/// Bytes of `struct rtmsg`.
const ROUTE_HEAD: usize = 12;

impl Route {
    fn request(&self, kind: u16, flags: i32) -> Request {
        let (destination, prefix) = self.to;
        let mut request = Request::new(kind, flags);
        let scope = if self.way.via.is_some() || destination.is_ipv6() {
            libc::RT_SCOPE_UNIVERSE
        } else {
            libc::RT_SCOPE_LINK
        };
        let (table, origin) = (libc::RT_TABLE_MAIN, self.origin);
        // `struct rtmsg`.
        let head = [family(destination), prefix, 0, 0, table, origin, scope];
        request.0.extend(head);
        request.0.extend([libc::RTN_UNICAST, 0, 0, 0, 0]);
        if prefix > 0 {
            request.attribute(libc::RTA_DST, &octets(destination));
        }
        if let Some(via) = self.way.via {
            request.attribute(libc::RTA_GATEWAY, &octets(via));
        }
        if let Some(source) = self.source {
            request.attribute(libc::RTA_PREFSRC, &octets(source));
        }
        if self.metric > 0 {
            request.number(libc::RTA_PRIORITY, self.metric);
        }
        request.number(libc::RTA_OIF, self.way.interface);
        request
    }
}

/// The interface and the router among a route's attributes.
fn read_way(attributes: &[u8]) -> Option<Way> {
    let interface = attribute(attributes, libc::RTA_OIF)?.try_into().ok()?;
    let via = attribute(attributes, libc::RTA_GATEWAY);
    let via = via.map(|octets| octets_to_address(octets).ok_or(()));
    Some(Way {
        via: via.transpose().ok()?,
        interface: u32::from_ne_bytes(interface),
    })
}

/// `struct ifinfomsg`: the interface, and whether to set it up or down.
fn link_head(index: u32, up: Option<bool>) -> [u8; 16] {
    let mut head = [0; 16];
    head[4..8].copy_from_slice(&index.to_ne_bytes());
    let flag = libc::IFF_UP as u32;
    if let Some(up) = up {
        let value = if up { flag } else { 0 };
        head[8..12].copy_from_slice(&value.to_ne_bytes());
        head[12..16].copy_from_slice(&flag.to_ne_bytes());
    }
    head
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn family(address: IpAddr) -> u8 {
    let family = if address.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    family as u8
}

/// `IF_OPER_UP`.
const OPERATIONAL: u8 = 6;

/// `IFLA_VETH_INFO_PEER`, whose value is again a link.
const VETH_PEER: u16 = 1;

/// A netlink socket in the network namespace of the calling thread.
fn socket(protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    enter(Call::Socket)?;
    Ok(rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        protocol,
    )?)
}

impl Netlink {
    /// Opens a netlink socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open() -> io::Result<Self> {
        // Protocol 0 is rtnetlink.
        let fd = socket(None)?;
        Ok(Self { fd, sequence: 0 })
    }

    /// The socket's port, which the kernel puts into notifications of its changes.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn port(&self) -> io::Result<u32> {
        // The socket gets its port with its first message, or now; a second time is refused.
        enter(Call::Bind)?;
        let any = netlink::SocketAddrNetlink::new(0, 0);
        let _ = rustix::net::bind(&self.fd, &any);
        enter(Call::Getsockname)?;
        let address = rustix::net::getsockname(&self.fd)?;
        let address = netlink::SocketAddrNetlink::try_from(address);
        Ok(address.map_err(io::Error::from)?.pid())
    }

    /// Creates a pair of virtual Ethernet interfaces that are connected to each other: `name` here, `peer` in the
    /// namespace `peer_namespace`, or here too. Both are down.
    ///
    /// # Errors
    /// The kernel's error, for example that a name is taken or the privilege is missing.
    pub fn add_veth(
        &mut self,
        name: &str,
        peer: &str,
        peer_namespace: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let mut request = Request::link(libc::RTM_NEWLINK, flags, 0, None);
        request.text(libc::IFLA_IFNAME, checked(name)?);
        let peer = checked(peer)?;
        request.nest(libc::IFLA_LINKINFO, |info| {
            info.text(libc::IFLA_INFO_KIND, "veth");
            info.nest(libc::IFLA_INFO_DATA, |data| {
                data.nest(VETH_PEER, |link| {
                    link.0.extend(link_head(0, None));
                    link.text(libc::IFLA_IFNAME, peer);
                    if let Some(namespace) = peer_namespace {
                        let fd = namespace.as_raw_fd().cast_unsigned();
                        link.number(libc::IFLA_NET_NS_FD, fd);
                    }
                });
            });
        });
        self.ask(request)
    }

    /// Creates an IPv4-in-IPv4 tunnel interface (RFC 2003) between two addresses.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] if the kernel has no such tunnels; else the kernel's error.
    pub fn add_ipip(
        &mut self,
        name: &str,
        local: std::net::Ipv4Addr,
        remote: std::net::Ipv4Addr,
    ) -> io::Result<()> {
        // `IFLA_IPTUN_LOCAL` and `IFLA_IPTUN_REMOTE`.
        const LOCAL: u16 = 2;
        const REMOTE: u16 = 3;
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let mut request = Request::link(libc::RTM_NEWLINK, flags, 0, None);
        request.text(libc::IFLA_IFNAME, checked(name)?);
        request.nest(libc::IFLA_LINKINFO, |info| {
            info.text(libc::IFLA_INFO_KIND, "ipip");
            info.nest(libc::IFLA_INFO_DATA, |data| {
                data.attribute(LOCAL, &local.octets());
                data.attribute(REMOTE, &remote.octets());
            });
        });
        self.ask(request)
    }

    /// Deletes an interface; the peer of a virtual Ethernet interface goes with it.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn delete(&mut self, name: &str) -> io::Result<()> {
        self.change(libc::RTM_DELLINK, name, None, |_| {})
    }

    /// Renames an interface, which has to be down.
    ///
    /// # Errors
    /// The kernel's error, for example that the name is taken.
    pub fn rename(&mut self, name: &str, new: &str) -> io::Result<()> {
        let new = checked(new)?;
        self.change(libc::RTM_NEWLINK, name, None, |request| {
            request.text(libc::IFLA_IFNAME, new);
        })
    }

    /// Moves an interface to another network namespace. It loses its addresses and routes.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn move_to(&mut self, name: &str, namespace: impl AsFd) -> io::Result<()> {
        let fd = namespace.as_fd().as_raw_fd().cast_unsigned();
        self.change(libc::RTM_NEWLINK, name, None, |request| {
            request.number(libc::IFLA_NET_NS_FD, fd);
        })
    }

    /// Sets an interface up, or down.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_up(&mut self, name: &str, up: bool) -> io::Result<()> {
        self.change(libc::RTM_NEWLINK, name, Some(up), |_| {})
    }

    /// Waits for at most `limit` until an interface that is up transmits. When the other end of a wire has come up,
    /// the kernel silently drops packets for a moment, sometimes for a second.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`], or the kernel's error.
    pub fn wait_until_running(&mut self, name: &str, limit: Duration) -> io::Result<()> {
        let end = now() + limit;
        while self.operational_state(name)? != OPERATIONAL {
            if now() >= end {
                let text = format!("{name}: still not running after {limit:?}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// `IFLA_OPERSTATE` (RFC 2863 ifOperStatus).
    fn operational_state(&mut self, name: &str) -> io::Result<u8> {
        let request = Request::link(libc::RTM_GETLINK, 0, self.index(name)?, None);
        let mut state = 0;
        self.converse(request, |kind, body| {
            if kind == libc::RTM_NEWLINK {
                let attributes = body.get(size_of::<[u32; 4]>()..).unwrap_or_default();
                let found = attribute(attributes, libc::IFLA_OPERSTATE);
                state = found.and_then(|value| value.first().copied()).unwrap_or(0);
            }
        })?;
        Ok(state)
    }

    /// Sets an interface's MTU in bytes, without the link layer's header.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_mtu(&mut self, name: &str, mtu: u32) -> io::Result<()> {
        self.change(libc::RTM_NEWLINK, name, None, |request| {
            request.number(libc::IFLA_MTU, mtu);
        })
    }

    /// Adds an address to an interface. IPv6 addresses are usable at once: duplicate address detection is off.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn add_address(&mut self, name: &str, address: IpAddr, prefix: u8) -> io::Result<()> {
        let mut request = Request::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
        let flags = libc::IFA_F_NODAD as u8;
        // `struct ifaddrmsg`.
        request.0.extend([family(address), prefix, flags, 0]);
        request.0.extend(self.index(name)?.to_ne_bytes());
        request.attribute(libc::IFA_LOCAL, &octets(address));
        request.attribute(libc::IFA_ADDRESS, &octets(address));
        self.ask(request)
    }

    /// Removes an address from an interface.
    ///
    /// # Errors
    /// The kernel's error, for example that the interface has no such address.
    pub fn remove_address(&mut self, name: &str, address: IpAddr, prefix: u8) -> io::Result<()> {
        let mut request = Request::new(libc::RTM_DELADDR, 0);
        // `struct ifaddrmsg`.
        request.0.extend([family(address), prefix, 0, 0]);
        request.0.extend(self.index(name)?.to_ne_bytes());
        request.attribute(libc::IFA_LOCAL, &octets(address));
        request.attribute(libc::IFA_ADDRESS, &octets(address));
        self.ask(request)
    }

    /// Adds a route to a prefix through an interface, by the router `via` or directly.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn add_route(
        &mut self,
        destination: IpAddr,
        prefix: u8,
        via: Option<IpAddr>,
        name: &str,
    ) -> io::Result<()> {
        let interface = self.index(name)?;
        let route = Route {
            to: (destination, prefix),
            way: Way { via, interface },
            metric: 0,
            source: None,
            origin: ORIGIN_STATIC,
        };
        let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        self.ask(route.request(libc::RTM_NEWROUTE, flags))
    }

    /// Adds a route.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if there is a route to this network with the same metric; else the kernel's
    /// error.
    pub fn add(&mut self, route: &Route) -> io::Result<()> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        self.ask(route.request(libc::RTM_NEWROUTE, flags))
    }

    /// Removes a route.
    ///
    /// # Errors
    /// The kernel's error, for example that there is no such route.
    pub fn remove(&mut self, route: &Route) -> io::Result<()> {
        self.ask(route.request(libc::RTM_DELROUTE, 0))
    }

    /// Removes a route of this origin to a network from the main table, whichever way it leads. Returns whether there
    /// was one.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn remove_of(&mut self, (to, prefix): (IpAddr, u8), origin: u8) -> io::Result<bool> {
        let mut request = Request::new(libc::RTM_DELROUTE, 0);
        let (table, scope) = (libc::RT_TABLE_MAIN, libc::RT_SCOPE_NOWHERE);
        // `struct rtmsg`; the scope "nowhere" matches any.
        request
            .0
            .extend([family(to), prefix, 0, 0, table, origin, scope]);
        request.0.extend([0; ROUTE_HEAD - 7]);
        request.attribute(libc::RTA_DST, &octets(to));
        match self.ask(request) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
            asked => asked.map(|()| true),
        }
    }

    /// The next hop of packets to an address now; `None` if none leaves, because the address is the host's own or a
    /// route refuses it.
    ///
    /// # Errors
    /// The kernel's error, for example that there is no route.
    pub fn way_to(&mut self, address: IpAddr) -> io::Result<Option<Way>> {
        let mut request = Request::new(libc::RTM_GETROUTE, 0);
        let whole = (octets(address).len() * 8) as u8;
        // `struct rtmsg`.
        request.0.extend([family(address), whole]);
        request.0.extend([0; ROUTE_HEAD - 2]);
        request.attribute(libc::RTA_DST, &octets(address));
        let mut way = None;
        self.converse(request, |kind, body| {
            let is_way = kind == libc::RTM_NEWROUTE && body.get(7) == Some(&libc::RTN_UNICAST);
            let attributes = body.get(ROUTE_HEAD..).filter(|_| is_way);
            way = attributes.and_then(read_way);
        })?;
        Ok(way)
    }

    /// For each address, adds (`true`) or removes (`false`) a route in the table `local`, the kind that an
    /// interface's own address has. The host then takes packets to the address as its own. Programs may use such
    /// addresses as if the interface `index` had them, but lists of its addresses do not show them. Adding an address
    /// to an interface makes the kernel walk over all its addresses; such a route costs the same among ten and among
    /// 100,000.
    ///
    /// One system call carries all changes, and waits only for the kernel to make them. Returns how many the kernel
    /// refused, and its last error. Give at most [`LOCAL_MAX`].
    ///
    /// # Errors
    /// The kernel's error for the whole call.
    pub fn change_local(
        &mut self,
        index: u32,
        changes: &[(IpAddr, bool)],
    ) -> io::Result<(u32, Option<io::Error>)> {
        let requests = changes.iter();
        self.send_unacknowledged(requests.map(|&(address, add)| local_route(index, address, add)))
    }

    /// Sends requests at once. Returns how many the kernel refused, and its last error.
    fn send_unacknowledged(
        &mut self,
        requests: impl Iterator<Item = Request>,
    ) -> io::Result<(u32, Option<io::Error>)> {
        let mut bytes = Vec::new();
        for mut request in requests {
            self.sequence = self.sequence.wrapping_add(1);
            request.finish(self.sequence);
            bytes.extend(request.0);
        }
        enter(Call::Sendto)?;
        let to = netlink::SocketAddrNetlink::new(0, 0);
        rustix::net::sendto(&self.fd, &bytes, SendFlags::empty(), &to)?;
        self.refusals()
    }

    /// Reads the refusals of unacknowledged requests, which are available once the requests were sent.
    fn refusals(&mut self) -> io::Result<(u32, Option<io::Error>)> {
        let (mut count, mut last) = (0, None);
        let mut buffer = vec![0; 16_384];
        loop {
            let read = enter(Call::Recvfrom)
                .and_then(|()| rustix::net::recv(&self.fd, &mut buffer[..], RecvFlags::DONTWAIT));
            let length = match read {
                Ok((length, _)) => length,
                Err(rustix::io::Errno::AGAIN) => return Ok((count, last)),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if let Some(code) = refusal(&buffer[..length]) {
                count += 1;
                last = Some(io::Error::from_raw_os_error(code));
            }
        }
    }

    /// The index of an interface.
    ///
    /// # Errors
    /// `ENODEV` if there is no interface of this name.
    pub fn index(&self, name: &str) -> io::Result<u32> {
        Ok(name_to_index(&self.fd, checked(name)?)?)
    }

    fn change(
        &mut self,
        kind: u16,
        name: &str,
        up: Option<bool>,
        fill: impl FnOnce(&mut Request),
    ) -> io::Result<()> {
        let mut request = Request::link(kind, 0, self.index(name)?, up);
        fill(&mut request);
        self.ask(request)
    }

    /// Sends a request and waits for its acknowledgement.
    fn ask(&mut self, request: Request) -> io::Result<()> {
        self.converse(request, |_, _| {})
    }

    /// Sends a request, passes each answer to `hear` (its kind and the bytes after the header), and waits for the
    /// acknowledgement.
    fn converse(&mut self, request: Request, mut hear: impl FnMut(u16, &[u8])) -> io::Result<()> {
        self.send(request)?;
        let mut buffer = vec![0; 16_384];
        loop {
            let read = enter(Call::Recvfrom)
                .and_then(|()| rustix::net::recv(&self.fd, &mut buffer[..], RecvFlags::empty()));
            let (length, _) = match read {
                Err(rustix::io::Errno::INTR) => continue,
                result => result?,
            };
            if let Some(code) = acknowledged(&buffer[..length], self.sequence) {
                return match code {
                    0 => Ok(()),
                    code => Err(io::Error::from_raw_os_error(-code)),
                };
            }
            if let Some((head, body)) = buffer[..length].split_at_checked(HEADER) {
                hear(u16::from_ne_bytes([head[4], head[5]]), body);
            }
        }
    }
}

/// An unacknowledged request to add or remove a route in the table `local`.
fn local_route(index: u32, address: IpAddr, add: bool) -> Request {
    let (kind, flags) = if add {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        (libc::RTM_NEWROUTE, flags)
    } else {
        (libc::RTM_DELROUTE, 0)
    };
    let mut request = Request::unacknowledged(kind, flags);
    let scope = if address.is_ipv4() {
        libc::RT_SCOPE_HOST
    } else {
        libc::RT_SCOPE_UNIVERSE
    };
    let octets = octets(address);
    let length = (octets.len() * 8) as u8;
    let (table, origin) = (libc::RT_TABLE_LOCAL, libc::RTPROT_STATIC);
    // `struct rtmsg`.
    request
        .0
        .extend([family(address), length, 0, 0, table, origin, scope]);
    request.0.extend([libc::RTN_LOCAL, 0, 0, 0, 0]);
    request.attribute(libc::RTA_DST, &octets);
    request.number(libc::RTA_OIF, index);
    request
}

impl Netlink {
    fn borrowed(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The address in an attribute's value.
fn octets_to_address(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => <[u8; 4]>::try_from(octets).ok().map(IpAddr::from),
        _ => <[u8; 16]>::try_from(octets).ok().map(IpAddr::from),
    }
}

/// The value of the first attribute of a kind.
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let (head, rest) = attributes.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]])).checked_sub(4)?;
        let value = rest.get(..length)?;
        if u16::from_ne_bytes([head[2], head[3]]) == wanted {
            return Some(value);
        }
        attributes = rest.get(length.next_multiple_of(4)..)?;
    }
}

/// Refuses names that the kernel would truncate.
fn checked(name: &str) -> io::Result<&str> {
    let fits = !name.is_empty() && name.len() < libc::IFNAMSIZ && !name.contains(['/', '\0']);
    fits.then_some(name)
        .ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
}

/// The error code of an answer, if it is a refusal.
fn refusal(answer: &[u8]) -> Option<i32> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let code = i32::from_ne_bytes(answer.get(HEADER..HEADER + 4)?.try_into().ok()?);
    (i32::from(kind) == libc::NLMSG_ERROR && code != 0).then_some(-code)
}

/// The error code in the answer to request `sequence`: 0 for success; `None` if this is another answer.
fn acknowledged(answer: &[u8], sequence: u32) -> Option<i32> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let of = u32::from_ne_bytes(answer.get(8..12)?.try_into().ok()?);
    let code = i32::from_ne_bytes(answer.get(HEADER..HEADER + 4)?.try_into().ok()?);
    (i32::from(kind) == libc::NLMSG_ERROR && of == sequence).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_nested_lengths_include_what_is_within() {
        let mut request = Request::new(libc::RTM_NEWLINK, 0);
        request.nest(7, |inner| {
            inner.text(3, "abcd");
        });
        let attributes = &request.0[HEADER..];
        // RFC 3549 2.3.1: length, type, value. The padding does not count in an attribute's own length.
        assert_eq!(attributes[..2], 16_u16.to_ne_bytes());
        assert_eq!(attributes[4..6], 9_u16.to_ne_bytes());
        assert_eq!(attributes[8..], *b"abcd\0\0\0\0");
    }

    #[test]
    fn attributes_are_found_and_broken_ones_are_none() {
        let mut request = Request::new(libc::RTM_NEWLINK, 0);
        request.text(3, "ab").number(16, 6).number(16, 7);
        let attributes = &request.0[HEADER..];
        assert_eq!(attribute(attributes, 16), Some(&6_u32.to_ne_bytes()[..]));
        assert_eq!(attribute(attributes, 3), Some(&b"ab\0"[..]));
        assert_eq!(attribute(attributes, 4), None);
        for length in 0..attributes.len() {
            let _ = attribute(&attributes[..length], 4);
        }
        assert_eq!(attribute(&[0; 8], 4), None);
    }

    #[test]
    fn an_unknown_or_impossible_name_is_no_device() {
        let mut netlink = Netlink::open().unwrap();
        for name in [
            "no-such-if0",
            "",
            "a-name-longer-than-the-kernel-takes",
            "a/b",
        ] {
            let error = netlink.set_up(name, true).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{name}");
        }
    }

    #[test]
    fn an_answer_to_another_request_is_not_ours() {
        assert_eq!(acknowledged(&[], 1), None);
        let mut answer = vec![0; 36];
        answer[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        answer[8..12].copy_from_slice(&7_u32.to_ne_bytes());
        answer[16..20].copy_from_slice(&(-libc::EPERM).to_ne_bytes());
        assert_eq!(acknowledged(&answer, 1), None);
        assert_eq!(acknowledged(&answer, 7), Some(-libc::EPERM));
    }
}
