//! IPv6 of our own clients on the host (`[client] prefix`): a default route through the session, the client's address,
//! and the delegated prefix.
//!
//! The prefix becomes a route that rejects packets to its unused parts, so that they do not go back to the peer (RFC 7084,
//! WPD-5). With `prefix_interface`, an interface gets the first address of its first /64. [`Uplinks::set`] takes what a
//! client has, [`Uplinks::work`] changes the host.

use std::net::{IpAddr, Ipv6Addr};

use base::{Duration, Instant};
use edge::SubscriberKey;
use edge::v6::UplinkView;
use hashbrown::HashMap;
use reactor::netlink::{Netlink, Route, Way};

/// The origin of the routes in the kernel, as of the IPv4 default route.
const ORIGIN: u8 = 104;
/// Delay until another attempt after the kernel refused a change.
const RETRY: Duration = Duration::from_secs(5);
/// The metric of the route that rejects packets: anything else goes first.
const REJECT_METRIC: u32 = u32::MAX;
/// The most clients with changes on the host; those above are logged and left out.
const CLIENTS_MAX: usize = 1_024;

/// A change of the host that a client needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    /// The default route.
    Default,
    /// The client's own address, on the TUN device.
    Address(Ipv6Addr),
    /// Rejects packets to the rest of the delegated prefix.
    Reject(Ipv6Addr, u8),
    /// The address of `prefix_interface`.
    Lan(Ipv6Addr),
}

/// What the host has for a client, and should have.
#[derive(Default)]
struct Client {
    wanted: Vec<Item>,
    present: Vec<Item>,
}

/// The clients and their changes.
pub(super) struct Uplinks {
    netlink: Netlink,
    /// The name and the interface index of the TUN device.
    name: String,
    device: u32,
    /// The metric of the default route; `None`: no default route.
    metric: Option<u32>,
    lan: Option<String>,
    clients: HashMap<SubscriberKey, Client>,
    due: Option<Instant>,
    /// The last failure, which is logged once.
    reason: Option<String>,
}

impl Uplinks {
    /// Opens netlink for the device of this name.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn open(
        device: &str,
        metric: Option<u32>,
        lan: Option<String>,
    ) -> std::io::Result<Self> {
        let netlink = Netlink::open()?;
        Ok(Self {
            device: netlink.index(device)?,
            name: device.to_owned(),
            netlink,
            metric,
            lan,
            clients: HashMap::new(),
            due: None,
            reason: None,
        })
    }

    /// The device has another interface index, and the kernel dropped its routes.
    pub(super) fn again(&mut self, device: u32) {
        self.device = device;
        for client in self.clients.values_mut() {
            client
                .present
                .retain(|item| matches!(item, Item::Reject(..) | Item::Lan(_)));
        }
        self.due = Some(Instant::ZERO);
    }

    /// Takes what a client has; `None`: nothing any more.
    pub(super) fn set(&mut self, key: SubscriberKey, view: Option<&UplinkView>) {
        let wanted = view.map_or_else(Vec::new, |view| self.items(view));
        if self.clients.len() >= CLIENTS_MAX && !self.clients.contains_key(&key) {
            tracing::warn!("too many clients with IPv6; the host gets no routes of further ones");
            return;
        }
        self.clients.entry(key).or_default().wanted = wanted;
        self.due = Some(Instant::ZERO);
    }

    /// When [`Uplinks::work`] is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Changes the host, if that is due.
    pub(super) fn work(&mut self, now: Instant) {
        if self.due.is_none_or(|at| at > now) {
            return;
        }
        self.due = None;
        let keys: Vec<_> = self.clients.keys().copied().collect();
        for key in keys {
            if let Err(reason) = self.settle(key) {
                if self.reason.as_ref() != Some(&reason) {
                    tracing::warn!(%reason, "IPv6 of a client could not be set on the host");
                }
                self.reason = Some(reason);
                self.due = Some(now + RETRY);
            }
        }
        if self.due.is_none() {
            self.reason = None;
        }
        self.clients
            .retain(|_, client| !client.wanted.is_empty() || !client.present.is_empty());
    }

    /// What a client needs on the host.
    fn items(&self, view: &UplinkView) -> Vec<Item> {
        let mut items = Vec::new();
        let own = view.addresses.first();
        items.extend(own.map(|one| Item::Address(one.address)));
        let delegated = view.delegated.as_ref();
        let delegated = delegated.and_then(|one| match one.prefix.address() {
            IpAddr::V6(address) => Some((address, one.prefix.length())),
            IpAddr::V4(_) => None,
        });
        if let Some((address, length)) = delegated {
            items.push(Item::Reject(address, length));
            if self.lan.is_some() && length <= 64 {
                items.push(Item::Lan(Ipv6Addr::from_bits(address.to_bits() | 1)));
            }
        }
        if view.is_default && self.metric.is_some() {
            items.push(Item::Default);
        }
        items
    }

    /// Changes the host for one client: what is not wanted first, in reverse.
    fn settle(&mut self, key: SubscriberKey) -> Result<(), String> {
        let Some(client) = self.clients.get(&key) else {
            return Ok(());
        };
        let (wanted, mut present) = (client.wanted.clone(), client.present.clone());
        let leave: Vec<_> = present
            .iter()
            .rev()
            .filter(|item| !wanted.contains(item))
            .copied()
            .collect();
        for item in leave {
            // One that is gone already is as good.
            let _ = self.apply(item, false);
            present.retain(|other| *other != item);
        }
        let mut outcome = Ok(());
        for item in wanted {
            if present.contains(&item) {
                continue;
            }
            match self.apply(item, true) {
                Ok(()) => {
                    tracing::info!(%item, "IPv6 of a client is set on the host");
                    present.push(item);
                }
                Err(error) => outcome = Err(format!("{item}: {error}")),
            }
        }
        if let Some(client) = self.clients.get_mut(&key) {
            client.present = present;
        }
        outcome
    }

    fn apply(&mut self, item: Item, add: bool) -> std::io::Result<()> {
        let route = |to, interface, metric| Route {
            to,
            way: Way {
                via: None,
                interface,
            },
            metric,
            // The kernel takes the device's address, which the client has.
            source: None,
            origin: ORIGIN,
        };
        let route = match item {
            Item::Address(address) => {
                let name = &self.name;
                return change_address(&mut self.netlink, name, (address, 128), add);
            }
            Item::Lan(address) => {
                let Some(lan) = &self.lan else {
                    return Ok(());
                };
                return change_address(&mut self.netlink, lan, (address, 64), add);
            }
            Item::Default => {
                let to = (Ipv6Addr::UNSPECIFIED.into(), 0);
                route(to, self.device, self.metric.unwrap_or(0))
            }
            Item::Reject(address, length) => {
                // A route to the loopback device rejects packets.
                let loopback = self.netlink.index("lo")?;
                route((address.into(), length), loopback, REJECT_METRIC)
            }
        };
        match add {
            true => self.netlink.add(&route),
            false => self.netlink.remove(&route),
        }
    }
}

fn change_address(
    netlink: &mut Netlink,
    name: &str,
    (address, length): (Ipv6Addr, u8),
    add: bool,
) -> std::io::Result<()> {
    match add {
        true => netlink.add_address(name, address.into(), length),
        false => netlink.remove_address(name, address.into(), length),
    }
}

impl Drop for Uplinks {
    /// Removes everything from the host.
    fn drop(&mut self) {
        let present = self.clients.drain().flat_map(|(_, client)| client.present);
        for item in present.collect::<Vec<_>>() {
            // The device may have gone with its routes.
            let _ = self.apply(item, false);
        }
    }
}

impl std::fmt::Display for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default route"),
            Self::Address(address) => write!(f, "address {address}"),
            Self::Reject(address, length) => write!(f, "delegated prefix {address}/{length}"),
            Self::Lan(address) => write!(f, "address {address}/64 of the inside"),
        }
    }
}
