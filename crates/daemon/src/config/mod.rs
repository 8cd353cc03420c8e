//! The configuration file: strict TOML, checked in full before anything is opened.
//!
//! An unknown key, a bad value or a duplicate is a fault with its line, column and key. All faults of a file are
//! reported at once. docs/configuration.md documents every key. Start reading at [`load`].
#![allow(missing_docs, reason = "docs/configuration.md describes each key")]

mod audit;
mod bgp;
pub(crate) mod effect;
mod garden;
mod ipv6;
mod listen;
mod nat;
mod peer;
mod pppoe;
mod queue;
mod radius;
mod realm;
mod sections;
mod snmp;
mod subscribers;
#[cfg(test)]
mod tests;
mod tunnel;
mod vlans;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use base::Duration;
use reactor::{PollerKind, StoreKind};

pub use self::audit::Audit;
pub use self::bgp::{Announce, Bgp, Install};
pub use self::nat::{Forward as NatForward, Log as NatLog, Nat};
pub use self::pppoe::{Interface as PppoeInterface, Pppoe};
pub use self::snmp::{Master, Snmp};
pub use self::vlans::VlanRange;
pub use radius::{Disconnects, Radius};
pub use settings::Faults;
use settings::Record;
pub use subscribers::{
    Client, ClientPppoe, FiltersFile, Subscribers, Tun, UsersFile, load_users, parse_filters,
};

/// The settings of a configuration file, with defaults filled in.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `[control]`
    pub control: Control,
    /// `[lns]`: present if the daemon accepts tunnels.
    pub lns: Option<Role>,
    /// `[lac]`: present if the daemon originates tunnels.
    pub lac: Option<Role>,
    /// `[l2tp]`, and the L2TP settings of `[lns]`, `[lac]`, `[limits]` and `[event]`.
    pub l2tp: l2tp::Config,
    /// `[ppp]`, `[[pool]]`, `[users]`, `[client]` and `[tun]`
    pub subscribers: Subscribers,
    /// `[pppoe]`: present if the daemon serves Ethernet interfaces.
    pub pppoe: Option<Pppoe>,
    /// `[bgp]`
    pub bgp: Option<Bgp>,
    /// `[snmp]`
    pub snmp: Option<Snmp>,
    /// `[event]`
    pub event: Event,
    /// `[log]`
    pub log: Log,
    /// `[audit]`: present if there is an audit log.
    pub audit: Option<Audit>,
    /// How long a shutdown waits for peers to acknowledge their StopCCNs.
    pub shutdown_wait: Duration,
    /// Warnings: settings that are valid but may be unintended.
    pub advice: Faults,
    /// The keys and values of the file, for a comparison with another reading.
    pub record: Record,
}

/// The control socket.
#[derive(Clone, Debug)]
pub struct Control {
    /// The path of the socket, which has mode 0660.
    pub socket: PathBuf,
    /// Largest number of simultaneous connections.
    pub clients: usize,
}

/// The sockets of one role.
#[derive(Clone, Debug)]
pub struct Role {
    /// Addresses to bind. Port 0 picks a free port.
    pub listen: Vec<Listen>,
    /// Whether each tunnel gets its own socket.
    pub sockets: Sockets,
}

/// An address to bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    pub addr: SocketAddr,
    /// The address is a default, not written by the operator. A host without this address family skips it.
    pub optional: bool,
}

/// Whether tunnels share a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sockets {
    /// All tunnels of a listen address share one socket.
    Shared,
    /// A connected socket for each tunnel.
    PerTunnel,
}

/// The event loop.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The mechanism that waits for readiness.
    pub poller: PollerKind,
    /// The data structure that stores descriptors.
    pub descriptors: StoreKind,
    /// Kernel receive buffer requested for each shared socket, in bytes.
    pub receive_buffer_bytes: usize,
    /// Kernel send buffer requested for each shared socket, in bytes.
    pub send_buffer_bytes: usize,
    /// Datagrams read or written by one system call.
    pub batch: usize,
    /// How long one kind of work may take before the others have their turn.
    pub slice: Duration,
    /// How long it may take until it is reported.
    pub overrun: Duration,
    /// How long it may take until it is reported although it has not returned. Zero: it is not reported.
    pub hang: Duration,
    /// Number of cores that forward packets.
    pub shards: u16,
    /// How the core for a packet is chosen.
    pub steer: Steer,
}

/// How the core that forwards a datagram's packet is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steer {
    /// By session. This spreads the load of a few peers with many sessions.
    Session,
    /// By peer. Datagrams of one peer stay together, so the kernel can deliver them joined (GRO).
    Peer,
}

/// The destination and format of log lines.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    pub level: tracing::level_filters::LevelFilter,
    pub to: LogTo,
    pub format: LogFormat,
}

/// The destination of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogTo {
    /// The journal if standard error is connected to it, otherwise standard error.
    Auto,
    Stderr,
    Journal,
}

/// The format of log lines on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// Reads and checks the file at `path`.
///
/// # Errors
/// Every fault found in it.
pub fn load(path: &Path) -> Result<Settings, Faults> {
    parse(path, settings::text_of(path)?.as_bytes())
}

/// Checks `bytes`, the contents of the file at `path`.
///
/// # Errors
/// Every fault found in them.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Settings, Faults> {
    let notes = settings::Notes::with_secrets(settings::utf8(path, bytes)?).recording();
    let root = settings::document(&notes);
    let read = root.and_then(|root| sections::read(&root, path, &notes));
    let record = notes.recorded();
    let (mut settings, advice) = notes.finish(read).map_err(|faults| faults.of(path))?;
    (settings.advice, settings.record) = (advice.of(path), record);
    Ok(settings)
}

impl Settings {
    /// All interfaces of PPPoE: those with subscribers, and that of our own client.
    #[must_use]
    pub fn pppoe_interfaces(&self) -> Vec<PppoeInterface> {
        pppoe_interfaces(self.pppoe.as_ref(), self.subscribers.client.as_ref())
    }
}

fn pppoe_interfaces(pppoe: Option<&Pppoe>, client: Option<&Client>) -> Vec<PppoeInterface> {
    let served = pppoe.into_iter().flat_map(|pppoe| &pppoe.interfaces);
    let mut all: Vec<_> = served.cloned().collect();
    if let Some(line) = client.and_then(|client| client.pppoe.as_ref())
        && all.iter().all(|one| one.name != line.interface)
    {
        let range = VlanRange::of(line.vlans);
        all.push(PppoeInterface::client(&line.interface, range));
    }
    all
}

/// The names of protocols and services on this machine, or only the well-known names if the machine has none.
pub(crate) fn names() -> filter::Names {
    let [protocols, services] = settings::network_names();
    filter::Names::read(&protocols, &services)
}
