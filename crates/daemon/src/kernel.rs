//! Keeps the TUN device as the configuration describes it: its addresses, the routes of pools and of
//! `[tun] routes`, and its offloads.
//!
//! The kernel drops the routes of a device that is set down, and another program may remove an
//! address or turn an offload off. [`Keeper`] compares the device with the configuration at start,
//! after each notification about the device, and after notifications were lost. It restores what is
//! missing, and logs this. If an operator set the device down, it leaves the device down. It follows
//! a device that is renamed, and reports one that left the network namespace. Left out: learned
//! routes, which `routes` installs.
//!
//! Start with [`Keeper::check`].

use std::io;
use std::net::IpAddr;

use anyhow::{Context, Result};
use base::{Duration, Instant};
use reactor::netlink::{FoundLink, Netlink, Notice, RouteFilter};
use reactor::port::offloads::{Settings, Switch};
use reactor::tun::{Tun, TunOptions};

use crate::config;

/// Delay from a notification to the comparison, so that one comparison covers several changes.
const SETTLE: Duration = Duration::from_millis(20);
/// Interval of comparisons while something cannot be set.
const RETRY: Duration = Duration::from_secs(5);
/// The kernel's main routing table.
const MAIN: u32 = 254;

/// An address or network, with the length of its prefix.
type Network = (IpAddr, u8);

/// The device as the configuration describes it.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) name: String,
    mtu: u32,
    /// Whether subscribers' sessions end here, so that we send ICMP errors.
    terminates: bool,
    addresses: Vec<Network>,
    routes: Vec<Network>,
    /// Offloads that the device had when it was made. Without them the kernel cuts up every packet for us.
    offloads: Vec<Switch>,
    options: TunOptions,
}

impl Wanted {
    pub(super) fn of(settings: &config::Subscribers) -> Option<Self> {
        let tun = settings.tun.as_ref()?;
        let edge = &settings.edge;
        let mut addresses = Vec::new();
        if edge.terminate {
            addresses.push((edge.address.into(), 32));
            if !edge.address_v6.is_unspecified() {
                addresses.push((edge.address_v6.into(), 128));
            }
        }
        let pools = settings.pools.iter().flat_map(|pool| &pool.ranges);
        let pools = pools.flat_map(|range| range.networks());
        let prefixes = settings.prefix_pools.iter().flat_map(|pool| &pool.ranges);
        let routes = pools
            .chain(prefixes.copied())
            .chain(tun.routes.iter().copied());
        let routes = routes.map(|network| (network.address(), network.length()));
        let externals = settings.nat.iter().flat_map(config::Nat::networks);
        Some(Self {
            name: tun.name.clone(),
            mtu: tun.mtu.into(),
            terminates: edge.terminate,
            addresses,
            routes: routes.chain(externals).collect(),
            offloads: Vec::new(),
            options: TunOptions {
                offloads: true,
                queues: usize::from(edge.paths),
            },
        })
    }

    /// Number of addresses.
    pub(super) fn addresses(&self) -> usize {
        self.addresses.len()
    }

    /// Number of routes.
    pub(super) fn routes(&self) -> usize {
        self.routes.len()
    }

    /// Number of offloads.
    pub(super) fn offloads(&self) -> usize {
        self.offloads.len()
    }

    /// Creates the device with its addresses and routes. Returns its queues.
    pub(super) fn make(&mut self) -> Result<Vec<Tun>> {
        let queues = Tun::open_queues(&self.name, &self.options)?;
        // The kernel has replaced `%d` by a number.
        self.name = queues[0].name().to_owned();
        let has = queues[0].offloads();
        let offloads = [(has.checksum, Switch::TxChecksum), (has.tcp, Switch::Tso)];
        let offloads = offloads.into_iter().filter(|(has, _)| *has);
        self.offloads = offloads.map(|(_, switch)| switch).collect();
        self.set_up()
            .with_context(|| format!("cannot set up the device {}", self.name))?;
        Ok(queues)
    }

    fn set_up(&self) -> Result<()> {
        let mut netlink = Netlink::open()?;
        let name = self.name.as_str();
        netlink.set_mtu(name, self.mtu)?;
        if self.terminates {
            take_errors(name);
        }
        netlink.set_up(name, true)?;
        for &(address, length) in &self.addresses {
            netlink.add_address(name, address, length)?;
        }
        for &(network, length) in &self.routes {
            netlink
                .add_route(network, length, None, name)
                .with_context(|| format!("route to {network}/{length}"))?;
        }
        Ok(())
    }
}

/// Lets the kernel accept ICMP errors from us. They arrive through the device with one of the
/// host's own addresses as source, which the kernel rejects by default.
fn take_errors(name: &str) {
    let key = format!("/proc/sys/net/ipv4/conf/{name}/accept_local");
    if let Err(error) = std::fs::write(&key, "1") {
        tracing::warn!(%key, %error, "senders will get no ICMP error for packets that are too large");
    }
}

/// What the kernel lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) addresses: Vec<Network>,
    pub(super) routes: Vec<Network>,
    pub(super) offloads: Vec<Switch>,
}

impl Missing {
    fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.routes.is_empty() && self.offloads.is_empty()
    }
}

/// What was set again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Restored {
    pub(super) addresses: u64,
    pub(super) routes: u64,
    pub(super) offloads: u64,
}

/// The state of the device at the last comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Up,
    /// An operator or a program set it down; packets are dropped.
    Down,
    /// It was deleted, or moved to another network namespace.
    Gone,
}

/// What a comparison found out for the rest of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Same,
    /// The device was down: what other parts of the daemon set on it is lost.
    CameBack,
    /// The device is gone.
    Gone,
}

/// Compares the device with what is wanted, and sets again what is missing.
pub(super) struct Keeper {
    pub(super) wanted: Wanted,
    /// The name of the device now.
    name: String,
    index: u32,
    check_at: Option<Instant>,
    pub(super) link: Link,
    /// The device was down since the last comparison, so routes that others set are gone too.
    was_down: bool,
    pub(super) missing: Missing,
    /// Why something is still missing.
    pub(super) reason: Option<String>,
    /// How many were set again since the start.
    pub(super) restored: Restored,
}

impl Keeper {
    /// For a device that was just made.
    pub(super) fn open(wanted: Wanted) -> Result<Self> {
        Ok(Self {
            index: Netlink::open()?.index(&wanted.name)?,
            name: wanted.name.clone(),
            wanted,
            check_at: Some(Instant::ZERO),
            link: Link::Up,
            was_down: false,
            missing: Missing::default(),
            reason: None,
            restored: Restored::default(),
        })
    }

    /// The name of the device now.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The interface index of the device.
    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// When [`Keeper::check`] is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.check_at
    }

    /// Takes a notification; [`Keeper::check`] is then due if it is about the device.
    pub(super) fn notice(&mut self, notice: &Notice, now: Instant) {
        let is_ours = match notice {
            Notice::Link(FoundLink { index, is_up }) if *index == self.index => {
                self.was_down |= !is_up;
                true
            }
            Notice::Link(_) => false,
            Notice::LinkGone(index) | Notice::Address(index) => *index == self.index,
            Notice::Route(route) => route.interface == self.index,
            Notice::Overflow => true,
        };
        if is_ours {
            self.check_at.get_or_insert(now + SETTLE);
        }
    }

    /// Networks that are to be routed to the device as well, from now on.
    pub(super) fn want_routes(&mut self, networks: &[Network], now: Instant) {
        let routes = &mut self.wanted.routes;
        let known: hashbrown::HashSet<Network> = routes.iter().copied().collect();
        let before = routes.len();
        routes.extend(networks.iter().filter(|network| !known.contains(*network)));
        if routes.len() > before {
            self.check_at = Some(now);
        }
    }

    /// The device was made again.
    pub(super) fn made(&mut self, wanted: Wanted, now: Instant) -> io::Result<()> {
        self.wanted = wanted;
        self.index = Netlink::open()?.index(&self.wanted.name)?;
        self.name.clone_from(&self.wanted.name);
        (self.link, self.was_down) = (Link::Up, false);
        self.check_at = Some(now + SETTLE);
        Ok(())
    }

    /// Compares wanted with found if that is due.
    pub(super) fn check(&mut self, now: Instant) -> Found {
        if self.check_at.is_none_or(|at| at > now) {
            return Found::Same;
        }
        self.check_at = None;
        let before = self.link;
        let compared = self.compare();
        self.reason = compared.as_ref().err().map(ToString::to_string);
        if let Err(error) = &compared {
            tracing::warn!(device = %self.name, %error, "the device cannot be compared with what is wanted");
        }
        if self.link != before {
            self.log_link();
        }
        if compared.is_err() || (self.link == Link::Up && !self.missing.is_empty()) {
            self.check_at = Some(now + RETRY);
        }
        match self.link {
            Link::Gone => Found::Gone,
            Link::Up if core::mem::take(&mut self.was_down) => Found::CameBack,
            Link::Up | Link::Down => Found::Same,
        }
    }

    fn log_link(&self) {
        let device = &self.name;
        match self.link {
            Link::Up => tracing::info!(%device, "the device is up"),
            Link::Down => {
                tracing::warn!(%device, "the device was set down: subscribers' packets are dropped until it is up");
            }
            Link::Gone => tracing::warn!(%device, "the device is gone"),
        }
    }

    fn compare(&mut self) -> io::Result<()> {
        let mut netlink = Netlink::open()?;
        self.link = match netlink.link(self.index)? {
            None => Link::Gone,
            Some((link, name)) => {
                if name != self.name {
                    let before = core::mem::replace(&mut self.name, name);
                    tracing::warn!(before, device = %self.name, "the device was renamed");
                }
                match link.is_up {
                    true => Link::Up,
                    false => Link::Down,
                }
            }
        };
        self.was_down |= self.link == Link::Down;
        if self.link == Link::Gone {
            self.missing = self.all();
            return Ok(());
        }
        self.missing = self.find(&mut netlink)?;
        if self.link == Link::Up && !self.missing.is_empty() {
            self.set_missing(&mut netlink)?;
        }
        Ok(())
    }

    fn all(&self) -> Missing {
        Missing {
            addresses: self.wanted.addresses.clone(),
            routes: self.wanted.routes.clone(),
            offloads: self.wanted.offloads.clone(),
        }
    }

    fn find(&self, netlink: &mut Netlink) -> io::Result<Missing> {
        let addresses = netlink.addresses(self.index)?;
        let mut routes = Vec::new();
        for is_ipv4 in [true, false] {
            let wanted = &self.wanted.routes;
            if wanted
                .iter()
                .any(|(network, _)| network.is_ipv4() == is_ipv4)
            {
                let found = netlink.routes(RouteFilter {
                    is_ipv4,
                    table: MAIN,
                    protocol: None,
                    interface: Some(self.index),
                })?;
                routes.extend(found.into_iter().map(|route| route.to));
            }
        }
        let mut missing = self.all();
        missing.addresses.retain(|one| !addresses.contains(one));
        let routes: hashbrown::HashSet<Network> = routes.into_iter().collect();
        missing.routes.retain(|one| !routes.contains(one));
        let settings = Settings::of(&self.name)?;
        let is_off = |one: &Switch| settings.is_on(*one).is_ok_and(|is_on| is_on != Some(true));
        missing.offloads.retain(is_off);
        Ok(missing)
    }

    fn set_missing(&mut self, netlink: &mut Netlink) -> io::Result<()> {
        let name = self.name.as_str();
        let (mut addresses, mut routes, mut offloads) = (0_u64, 0_u64, 0_u64);
        let mut failure = None;
        let mut is_set = |set: io::Result<()>, count: &mut u64| {
            let is_set = set.is_ok();
            *count += u64::from(is_set);
            failure = set.err().or(failure.take());
            is_set
        };
        self.missing.addresses.retain(|&(address, length)| {
            !is_set(netlink.add_address(name, address, length), &mut addresses)
        });
        self.missing.routes.retain(|&(network, length)| {
            !is_set(netlink.add_route(network, length, None, name), &mut routes)
        });
        let settings = Settings::of(name)?;
        self.missing.offloads.retain(|&offload| {
            let set = settings.set(offload, true).and_then(|is_set| match is_set {
                true => Ok(()),
                false => Err(io::ErrorKind::Unsupported.into()),
            });
            !is_set(set, &mut offloads)
        });
        self.restored.addresses += addresses;
        self.restored.routes += routes;
        self.restored.offloads += offloads;
        if addresses + routes + offloads > 0 {
            tracing::info!(device = %name, addresses, routes, offloads, "the device had lost addresses, routes or offloads; they are set again");
        }
        failure.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests;
