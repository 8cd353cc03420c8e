//! Addresses of the daemon's own client sessions. While a session has an address, the daemon adds
//! it to the host through netlink. After a notification that another program changed one, the daemon
//! lists the kernel's addresses and adds those that are missing.
//!
//! Start with [`Addresses::set`], which queues a change, and [`Addresses::work`], which applies the
//! queue.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use base::{Duration, Instant};
use edge::SubscriberKey;
use hashbrown::{HashMap, HashSet};
use reactor::netlink::{LOCAL_MAX, Netlink, Notice, RouteDump, RouteFilter};

use super::default_route::{Client, DefaultRoute};

/// Limit of queued changes; further changes are dropped and counted.
const WAITING_MAX: usize = 1 << 20;
/// Delay from a notification to the comparison, so that one comparison covers several changes.
const SETTLE: Duration = Duration::from_millis(20);
/// Delay after a comparison that failed.
const RETRY: Duration = Duration::from_secs(5);
/// The kernel's routing table of the host's own addresses.
const LOCAL: u32 = 255;

/// The addresses, and the changes not yet sent to the kernel.
pub(super) struct Addresses {
    netlink: Netlink,
    /// The interface index of the TUN device.
    interface: u32,
    held: HashMap<SubscriberKey, Ipv4Addr>,
    waiting: VecDeque<(IpAddr, bool)>,
    refused: u64,
    /// When the next comparison starts, and the one in progress.
    look_at: Option<Instant>,
    look: Option<Look>,
    /// How many were added again since the start, because another program had removed them.
    restored: u64,
    default_route: Option<DefaultRoute>,
}

/// A comparison of the addresses with those that the kernel has. Each step reads a part of the list.
struct Look {
    dump: RouteDump,
    part: Vec<reactor::netlink::FoundRoute>,
    found: HashSet<IpAddr>,
    /// Addresses that were set since the start of the list.
    fresh: HashSet<IpAddr>,
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
            look_at: None,
            look: None,
            restored: 0,
        })
    }

    /// The port of the netlink socket that sets the addresses.
    pub(super) fn netlink_port(&self) -> io::Result<u32> {
        self.netlink.port()
    }

    /// Takes a notification of the kernel.
    pub(super) fn notice(&mut self, notice: &Notice, now: Instant) {
        let may_concern = match notice {
            Notice::Route(route) => route.table == LOCAL && route.interface == self.interface,
            Notice::Overflow => true,
            Notice::Link(_) | Notice::LinkGone(_) | Notice::Address(_) => false,
        };
        if may_concern && !self.held.is_empty() {
            self.look_at.get_or_insert(now + SETTLE);
        }
        if let Some(default_route) = &mut self.default_route {
            default_route.notice(notice, now + SETTLE);
        }
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
        if let (Some(look), Some(new)) = (&mut self.look, address) {
            look.fresh.insert(new.into());
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
        (self.look_at, self.look) = (None, None);
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

    /// Whether [`Addresses::work`] has something to do now.
    pub(super) fn has_work(&self, now: Instant) -> bool {
        let is_busy = !self.waiting.is_empty() || self.look.is_some();
        is_busy || self.due().is_some_and(|at| at <= now)
    }

    /// When [`Addresses::work`] has something to do, if it has nothing now.
    pub(super) fn due(&self) -> Option<Instant> {
        let route = self.default_route.as_ref().and_then(DefaultRoute::due);
        self.look_at.into_iter().chain(route).min()
    }

    /// Does one turn's share: sends queued changes to the kernel, or reads a part of what it has.
    pub(super) fn work(&mut self, now: Instant) {
        if !self.waiting.is_empty() {
            return self.change_addresses();
        }
        // The default route needs a source address, so the addresses are added first.
        if let Some(default_route) = &mut self.default_route {
            default_route.work(&mut self.netlink, now);
        }
        if let Err(error) = self.compare(now) {
            let device = self.interface;
            tracing::warn!(device, %error, "the clients' addresses cannot be compared with the kernel's");
            (self.look, self.look_at) = (None, Some(now + RETRY));
        }
    }

    /// Starts a comparison that is due, or continues one.
    fn compare(&mut self, now: Instant) -> io::Result<()> {
        if self.look.is_none() && self.look_at.is_some_and(|at| at <= now) {
            self.look_at = None;
            self.look = Some(Look::start(self.interface)?);
        }
        let Some(look) = &mut self.look else {
            return Ok(());
        };
        match look.read() {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            // The table changed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                (self.look, self.look_at) = (None, Some(now + SETTLE));
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        let Some(look) = self.look.take() else {
            return Ok(());
        };
        let is_missing =
            |address: &IpAddr| !look.found.contains(address) && !look.fresh.contains(address);
        let held = self.held.values().map(|address| IpAddr::V4(*address));
        let missing = held.filter(is_missing).map(|address| (address, true));
        let before = self.waiting.len();
        self.waiting.extend(missing.take(WAITING_MAX));
        let count = self.waiting.len() - before;
        self.restored += count as u64;
        if count > 0 {
            tracing::info!(
                addresses = count,
                "the kernel had lost addresses of clients; they are set again"
            );
        }
        Ok(())
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

    /// Number of addresses that were added again, because another program had removed them.
    pub(super) fn restored(&self) -> u64 {
        self.restored
    }

    /// The host's default route, if one of our clients is to have it.
    pub(super) fn default_route(&self) -> Option<&DefaultRoute> {
        self.default_route.as_ref()
    }
}

impl Look {
    fn start(interface: u32) -> io::Result<Self> {
        let filter = RouteFilter {
            is_ipv4: true,
            table: LOCAL,
            protocol: None,
            interface: Some(interface),
        };
        Ok(Self {
            dump: RouteDump::start(filter)?,
            part: Vec::new(),
            found: HashSet::new(),
            fresh: HashSet::new(),
        })
    }

    /// Reads a part. Returns whether more is left.
    fn read(&mut self) -> io::Result<bool> {
        let more = self.dump.read(&mut self.part)?;
        let found = self.part.drain(..).filter(|route| route.to.1 == 32);
        self.found.extend(found.map(|route| route.to.0));
        Ok(more)
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
