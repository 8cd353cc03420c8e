//! The host's default route through one of our own clients. It also adds a host route to the
//! client's LNS through the previous gateway; without that route, the tunnel's own packets would be
//! routed into the tunnel.
//!
//! A link that goes down takes its routes with it, and a DHCP client may get another gateway. After
//! each notification that may concern these routes, the daemon sets both again. Both have an origin of
//! their own ([`ORIGIN`]), by which a daemon finds the host route that a killed one left.
//!
//! Left out: IPv6, and routes to other LNSs, which the operator has to add.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context, Result, ensure};
use base::{Duration, Instant};
use edge::SubscriberKey;
use hashbrown::HashMap;
use reactor::netlink::{FoundRoute, Netlink, Notice, Route, Way};

/// The origin of these routes in the kernel (`proto 104` in `ip route`; iproute2 has no name for it).
const ORIGIN: u8 = 104;
/// Delay until another attempt to set the routes.
const RETRY: Duration = Duration::from_secs(5);
/// The kernel's main routing table.
const MAIN: u32 = 254;

/// A client's address, and the address of its LNS; none if its sessions do not run over IP.
pub(super) type Client = (Ipv4Addr, Option<IpAddr>);

/// The connected clients. One of them has the default route.
pub(super) struct DefaultRoute {
    /// The interface index of the TUN device.
    interface: u32,
    metric: u32,
    clients: HashMap<SubscriberKey, Client>,
    active: Option<Active>,
    /// When [`DefaultRoute::work`] is due.
    due: Option<Instant>,
    /// Another program or the kernel may have changed the routes.
    doubtful: bool,
    /// How often the routes were set again, after they were lost or led another way.
    restored: u64,
    /// Why there is no route, if one is wanted.
    reason: Option<String>,
}

/// The client that has the route, and the routes that were added for it.
struct Active {
    key: SubscriberKey,
    client: Client,
    routes: Vec<Route>,
}

impl DefaultRoute {
    pub(super) fn new(interface: u32, metric: u32) -> Self {
        Self {
            interface,
            metric,
            clients: HashMap::new(),
            active: None,
            due: None,
            doubtful: false,
            restored: 0,
            reason: None,
        }
    }

    /// Sets or removes a client.
    pub(super) fn set(&mut self, key: SubscriberKey, client: Option<Client>) {
        match client {
            Some(client) => self.clients.insert(key, client),
            None => self.clients.remove(&key),
        };
        self.due = Some(Instant::ZERO);
    }

    /// Takes a notification of the kernel; the routes are then set again `at` that time, if it may
    /// concern them.
    pub(super) fn notice(&mut self, notice: &Notice, at: Instant) {
        let may_concern = match notice {
            Notice::Link(link) => link.index != self.interface,
            Notice::LinkGone(index) | Notice::Address(index) => *index != self.interface,
            Notice::Route(route) => route.table == MAIN && self.leads_to_an_lns(route),
            Notice::Overflow => true,
        };
        if may_concern && !self.clients.is_empty() {
            self.doubtful = true;
            self.due = Some(self.due.map_or(at, |due| due.min(at)));
        }
    }

    /// Whether a route is a default route, or covers the LNS of the client with the route.
    fn leads_to_an_lns(&self, route: &FoundRoute) -> bool {
        let (to, length) = route.to;
        let (IpAddr::V4(to), Some(active)) = (to, &self.active) else {
            return to.is_ipv4();
        };
        let Some(IpAddr::V4(lns)) = active.client.1 else {
            return length == 0;
        };
        let differing = (to.to_bits() ^ lns.to_bits()).leading_zeros();
        differing >= length.into()
    }

    /// Adds the routes again: the kernel has dropped them, or the device has another interface index
    /// now.
    pub(super) fn again(&mut self, interface: u32, netlink: &mut Netlink) {
        self.remove(netlink);
        self.interface = interface;
        self.due = Some(Instant::ZERO);
    }

    /// When [`DefaultRoute::work`] is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether a client could have the route.
    pub(super) fn is_wanted(&self) -> bool {
        !self.clients.is_empty()
    }

    /// Whether a client has the route.
    pub(super) fn is_there(&self) -> bool {
        self.active.is_some()
    }

    /// How often the routes were set again.
    pub(super) fn restored(&self) -> u64 {
        self.restored
    }

    /// Why there is no route, although one is wanted.
    pub(super) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Updates the kernel's routes if that is due. The client that has the default route keeps it;
    /// when it disconnects, another client gets it.
    pub(super) fn work(&mut self, netlink: &mut Netlink, now: Instant) {
        if self.due.is_none_or(|at| at > now) {
            return;
        }
        self.due = None;
        let doubtful = core::mem::take(&mut self.doubtful);
        let before = self.active.take();
        if let Some(active) = before {
            let is_connected = self.clients.get(&active.key) == Some(&active.client);
            if is_connected && !doubtful {
                self.active = Some(active);
                return;
            }
            let lost = remove(&active.routes, netlink);
            if is_connected {
                return self.put(
                    active.key,
                    active.client,
                    Some((active.routes, lost)),
                    netlink,
                    now,
                );
            }
        }
        match self.clients.iter().next() {
            Some((&key, &client)) => self.put(key, client, None, netlink, now),
            None => self.reason = None,
        }
    }

    /// Gives a client the routes. `before`: its routes until now, and whether one of them was lost.
    fn put(
        &mut self,
        key: SubscriberKey,
        client: Client,
        before: Option<(Vec<Route>, bool)>,
        netlink: &mut Netlink,
        now: Instant,
    ) {
        let (address, lns) = client;
        let routes = match self.add(client, netlink) {
            Ok(routes) => routes,
            Err(error) => {
                let reason = format!("{error:#}");
                if self.reason.as_ref() != Some(&reason) {
                    tracing::warn!(
                        "cannot add the default route through client {address}: {reason}"
                    );
                }
                self.reason = Some(reason);
                self.due = Some(now + RETRY);
                return;
            }
        };
        match before {
            None => {
                tracing::info!(%address, lns = lns.map(tracing::field::display), "default route added through a client session")
            }
            Some((before, lost)) if lost || before != routes => {
                self.restored += 1;
                let gateway = routes.first().filter(|route| Some(route.to.0) == lns);
                let gateway = gateway.and_then(|route| route.way.via);
                tracing::info!(%address, lns = lns.map(tracing::field::display), ?gateway, "the routes to the LNS and through it were lost or led another way; they are set again");
            }
            Some(_) => {}
        }
        self.reason = None;
        self.active = Some(Active {
            key,
            client,
            routes,
        });
    }

    /// Removes the routes that were added.
    pub(super) fn remove(&mut self, netlink: &mut Netlink) {
        if let Some(active) = self.active.take() {
            remove(&active.routes, netlink);
        }
    }

    fn add(&self, (address, lns): Client, netlink: &mut Netlink) -> Result<Vec<Route>> {
        let kept = lns.map(|lns| self.keep_way(lns, netlink)).transpose()?;
        let mut routes = Vec::from_iter(kept.flatten());
        let way = Way {
            via: None,
            interface: self.interface,
        };
        let default = Route {
            to: (Ipv4Addr::UNSPECIFIED.into(), 0),
            way,
            metric: self.metric,
            source: Some(address.into()),
            origin: ORIGIN,
        };
        if let Err(error) = netlink.add(&default) {
            if let Some(kept) = routes.first() {
                let _ = netlink.remove(kept);
            }
            ensure!(
                error.kind() != ErrorKind::AlreadyExists,
                "the host has a default route of metric {}; set [client] default_route_metric to another value, or remove that route",
                self.metric
            );
            return Err(error.into());
        }
        routes.push(default);
        Ok(routes)
    }

    /// Keeps packets to the LNS on their present route. Returns the host route that it added for
    /// this; `None` if no route was needed.
    fn keep_way(&self, lns: IpAddr, netlink: &mut Netlink) -> Result<Option<Route>> {
        // An IPv4 default route does not affect IPv6 packets, nor packets to the host itself.
        if lns.is_ipv6() {
            return Ok(None);
        }
        // One that a killed daemon left may lead to a router that is gone.
        if netlink.remove_of((lns, 32), ORIGIN)? {
            tracing::info!(%lns, "removed a route to the LNS that an earlier daemon left");
        }
        let way = netlink.way_to(lns);
        let way = way.with_context(|| format!("no route to the LNS {lns}"))?;
        let Some(way) = way else {
            return Ok(None);
        };
        ensure!(
            way.interface != self.interface,
            "packets to the LNS {lns} would go through the tunnel to it: see [tun] routes"
        );
        let route = Route {
            to: (lns, 32),
            way,
            metric: 0,
            source: None,
            origin: ORIGIN,
        };
        match netlink.add(&route) {
            Ok(()) => Ok(Some(route)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
            Err(error) => {
                Err(error).with_context(|| format!("cannot add a route to the LNS {lns}"))
            }
        }
    }
}

/// Removes routes. Returns whether one of them did not exist any more: another program or the kernel
/// removed it.
fn remove(routes: &[Route], netlink: &mut Netlink) -> bool {
    let mut lost = false;
    for route in routes.iter().rev() {
        if let Err(error) = netlink.remove(route) {
            tracing::debug!(%error, "the route was already removed");
            lost = true;
        }
    }
    lost
}
