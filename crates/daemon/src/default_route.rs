//! The host's default route through one of our own clients. It also adds a host route to the
//! client's LNS through the previous gateway; without that route, the tunnel's own packets would be
//! routed into the tunnel.
//!
//! Left out: IPv6, and routes to other LNSs, which the operator has to add.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context, Result, ensure};
use edge::SubscriberKey;
use hashbrown::HashMap;
use reactor::netlink::{Netlink, Route, Way};

/// A client's address, and the address of its LNS.
pub(super) type Client = (Ipv4Addr, IpAddr);

/// The connected clients. One of them has the default route.
pub(super) struct DefaultRoute {
    /// The interface index of the TUN device.
    interface: u32,
    metric: u32,
    clients: HashMap<SubscriberKey, Client>,
    active: Option<Active>,
    changed: bool,
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
            changed: false,
        }
    }

    /// Sets or removes a client.
    pub(super) fn set(&mut self, key: SubscriberKey, client: Option<Client>) {
        match client {
            Some(client) => self.clients.insert(key, client),
            None => self.clients.remove(&key),
        };
        self.changed = true;
    }

    /// Adds the routes again: the kernel has dropped them, or the device has another interface index
    /// now.
    pub(super) fn again(&mut self, interface: u32, netlink: &mut Netlink) {
        self.remove(netlink);
        self.interface = interface;
        self.changed = true;
    }

    pub(super) fn has_changes(&self) -> bool {
        self.changed
    }

    /// Whether a client has the route.
    pub(super) fn is_there(&self) -> bool {
        self.active.is_some()
    }

    /// Updates the kernel's routes. The client that has the default route keeps it; when it
    /// disconnects, another client gets it.
    pub(super) fn work(&mut self, netlink: &mut Netlink) {
        if !core::mem::take(&mut self.changed) {
            return;
        }
        if let Some(active) = &self.active {
            if self.clients.get(&active.key) == Some(&active.client) {
                return;
            }
            self.remove(netlink);
        }
        let Some((&key, &client)) = self.clients.iter().next() else {
            return;
        };
        let (address, lns) = client;
        match self.add(client, netlink) {
            Ok(routes) => {
                tracing::info!(%address, %lns, "default route added through a client session");
                self.active = Some(Active {
                    key,
                    client,
                    routes,
                });
            }
            Err(error) => {
                tracing::warn!("cannot add the default route through client {address}: {error:#}")
            }
        }
    }

    /// Removes the routes that were added.
    pub(super) fn remove(&mut self, netlink: &mut Netlink) {
        for route in self.active.take().iter().flat_map(|one| &one.routes).rev() {
            // If the route does not exist any more, another program removed it.
            if let Err(error) = netlink.remove(route) {
                tracing::debug!(%error, "the route was already removed");
            }
        }
    }

    fn add(&self, (address, lns): Client, netlink: &mut Netlink) -> Result<Vec<Route>> {
        let mut routes = Vec::from_iter(self.keep_way(lns, netlink)?);
        let way = Way {
            via: None,
            interface: self.interface,
        };
        let default = Route {
            to: (Ipv4Addr::UNSPECIFIED.into(), 0),
            way,
            metric: self.metric,
            source: Some(address.into()),
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
