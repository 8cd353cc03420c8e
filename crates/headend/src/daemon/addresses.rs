//! Addresses of our own clients: the host takes them as its own while their sessions have them.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use edge::SubscriberKey;
use hashbrown::HashMap;
use reactor::netlink::{LOCAL_MAX, Netlink};

/// Changes that wait for their turn; beyond, the next are left out and counted.
const WAITING_MAX: usize = 1 << 20;

/// The addresses, and the changes that the kernel was not told yet.
pub(super) struct Addresses {
    netlink: Netlink,
    /// The number of the TUN device.
    interface: u32,
    held: HashMap<SubscriberKey, Ipv4Addr>,
    waiting: VecDeque<(IpAddr, bool)>,
    refused: u64,
}

impl Addresses {
    /// None yet, of the device of this name.
    pub(super) fn open(device: &str) -> io::Result<Self> {
        let netlink = Netlink::open()?;
        Ok(Self {
            interface: netlink.index(device)?,
            netlink,
            held: HashMap::new(),
            waiting: VecDeque::new(),
            refused: 0,
        })
    }

    /// A client has this address from now on, or none.
    pub(super) fn set(&mut self, client: SubscriberKey, address: Option<Ipv4Addr>) {
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

    /// Whether changes wait for their turn.
    pub(super) fn has_changes(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Tells the kernel of changes, a turn's share.
    pub(super) fn work(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let share = self.waiting.len().min(LOCAL_MAX);
        let changes: Vec<_> = self.waiting.drain(..share).collect();
        let (refused, error) = match self.netlink.change_local(self.interface, &changes) {
            Ok(outcome) => outcome,
            Err(error) => (share as u32, Some(error)),
        };
        if let Some(error) = error
            && self.refused == 0
        {
            tracing::warn!(%error, "an address of a client could not be set; further ones are counted only");
        }
        self.refused += u64::from(refused);
    }

    /// How many the host has.
    pub(super) fn len(&self) -> u64 {
        (self.held.len() as u64).saturating_sub(self.waiting.len() as u64)
    }

    /// Changes that were refused.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }
}
