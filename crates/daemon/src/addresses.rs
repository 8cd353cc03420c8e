//! Addresses of the daemon's own client sessions. While a session has an address, the daemon adds
//! it to the host through netlink.
//!
//! Start with [`Addresses::set`], which queues a change, and [`Addresses::work`], which applies the
//! queue.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use super::default_route::{Client, DefaultRoute};
use edge::SubscriberKey;
use hashbrown::HashMap;
use reactor::netlink::{LOCAL_MAX, Netlink};

/// Limit of queued changes; further changes are dropped and counted.
const WAITING_MAX: usize = 1 << 20;

/// The addresses, and the changes not yet sent to the kernel.
pub(super) struct Addresses {
    netlink: Netlink,
    /// The interface index of the TUN device.
    interface: u32,
    held: HashMap<SubscriberKey, Ipv4Addr>,
    waiting: VecDeque<(IpAddr, bool)>,
    refused: u64,
    default_route: Option<DefaultRoute>,
}

impl Addresses {
    /// Opens netlink for the device of this name, with no addresses yet. With a metric, one client
    /// also gets the host's default route.
    pub(super) fn open(device: &str, default_metric: Option<u32>) -> io::Result<Self> {
        let netlink = Netlink::open()?;
        let interface = netlink.index(device)?;
        let default_route = default_metric.map(|metric| DefaultRoute::new(interface, metric));
        Ok(Self {
            interface,
            default_route,
            netlink,
            held: HashMap::new(),
            waiting: VecDeque::new(),
            refused: 0,
        })
    }

    /// Sets or removes a client's address.
    pub(super) fn set(&mut self, client: SubscriberKey, has: Option<Client>) {
        if let Some(default_route) = &mut self.default_route {
            default_route.set(client, has);
        }
        let address = has.map(|(address, _)| address);
        let before = match address {
            Some(address) => self.held.insert(client, address),
            None => self.held.remove(&client),
        };
        if before == address {
            return;
        }
        let gone = before.map(|address| (address.into(), false));
        let new = address.map(|address| (address.into(), true));
        for change in [gone, new].into_iter().flatten() {
            if self.waiting.len() < WAITING_MAX {
                self.waiting.push_back(change);
            } else {
                self.refused += 1;
            }
        }
    }

    /// Queues every address again: the kernel has dropped them, or the device was made again and has
    /// this interface index.
    pub(super) fn again(&mut self, interface: u32) {
        self.interface = interface;
        self.waiting.clear();
        let held = self
            .held
            .values()
            .map(|address| (IpAddr::V4(*address), true));
        self.waiting.extend(held.take(WAITING_MAX));
        if let Some(default_route) = &mut self.default_route {
            default_route.again(interface, &mut self.netlink);
        }
    }

    /// Whether changes are queued.
    pub(super) fn has_changes(&self) -> bool {
        let of_default = self.default_route.as_ref();
        !self.waiting.is_empty() || of_default.is_some_and(DefaultRoute::has_changes)
    }

    /// Sends one turn's share of the queued changes to the kernel.
    pub(super) fn work(&mut self) {
        if !self.waiting.is_empty() {
            self.change_addresses();
        }
        // The default route needs a source address, so the addresses are added first.
        if let Some(default_route) = &mut self.default_route
            && self.waiting.is_empty()
        {
            default_route.work(&mut self.netlink);
        }
    }

    fn change_addresses(&mut self) {
        let share = self.waiting.len().min(LOCAL_MAX);
        let changes: Vec<_> = self.waiting.drain(..share).collect();
        let (refused, error) = match self.netlink.change_local(self.interface, &changes) {
            Ok(outcome) => outcome,
            Err(error) => (share as u32, Some(error)),
        };
        if let Some(error) = error
            && self.refused == 0
        {
            tracing::warn!(%error, "a client's address could not be set; further failures are only counted");
        }
        self.refused += u64::from(refused);
    }

    /// Number of addresses that the clients have.
    pub(super) fn wanted(&self) -> u64 {
        self.held.len() as u64
    }

    /// Number of addresses on the host.
    pub(super) fn len(&self) -> u64 {
        (self.held.len() as u64).saturating_sub(self.waiting.len() as u64)
    }

    /// Number of changes the kernel refused.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// Whether one of our clients has the host's default route.
    pub(super) fn has_default_route(&self) -> bool {
        let route = self.default_route.as_ref();
        route.is_some_and(DefaultRoute::is_there)
    }
}

impl Drop for Addresses {
    /// The kernel removes all other routes together with the device.
    fn drop(&mut self) {
        if let Some(default_route) = &mut self.default_route {
            default_route.remove(&mut self.netlink);
        }
    }
}

#[cfg(test)]
mod tests;
