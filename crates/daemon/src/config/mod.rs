//! The configuration file: strict TOML, checked in full before anything is opened.
//!
//! An unknown key, a bad value or a duplicate is a fault with its line, column
//! and key. An operator sees all faults of a file at once. docs/configuration.md is the
//! operator's page on every key.
#![allow(missing_docs, reason = "docs/configuration.md describes each key")]

mod bgp;
mod listen;
mod peer;
mod radius;
mod sections;
mod subscribers;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use base::Duration;
use reactor::{PollerKind, StoreKind};

pub use self::bgp::{Announce, Bgp, Install};
pub use radius::{Disconnects, Radius};
pub use settings::Faults;
pub use subscribers::{Client, Subscribers, Tun, load_filters, load_users};

/// What a configuration file says, defaults filled in.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `[control]`
    pub control: Control,
    /// `[lns]`: given when tunnels are accepted.
    pub lns: Option<Role>,
    /// `[lac]`: given when tunnels are originated.
    pub lac: Option<Role>,
    /// `[l2tp]`, and what `[lns]`, `[lac]`, `[limits]` and `[event]` say of it.
    pub l2tp: l2tp::Config,
    /// `[ppp]`, `[[pool]]`, `[users]`, `[client]` and `[tun]`
    pub subscribers: Subscribers,
    /// `[bgp]`
    pub bgp: Option<Bgp>,
    /// `[event]`
    pub event: Event,
    /// `[log]`
    pub log: Log,
    /// How long the end waits for peers to acknowledge their StopCCNs.
    pub shutdown_wait: Duration,
    /// What is no fault of the file, and maybe not meant so.
    pub advice: Faults,
}

/// The control socket.
#[derive(Clone, Debug)]
pub struct Control {
    /// Where it is; mode 0660.
    pub socket: PathBuf,
    /// Connections at one time.
    pub clients: usize,
}

/// One end's sockets.
#[derive(Clone, Debug)]
pub struct Role {
    /// Addresses to bind; port 0 takes a free one.
    pub listen: Vec<Listen>,
    /// Whether a tunnel gets a socket of its own.
    pub sockets: Sockets,
}

/// An address to bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    pub addr: SocketAddr,
    /// Not written by the operator: a host without that address family does
    /// without it.
    pub optional: bool,
}

/// Whether tunnels share a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sockets {
    /// All tunnels of a listen address on one socket.
    Shared,
    /// A connected socket for each tunnel.
    PerTunnel,
}

/// The event loop.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// What waits for readiness.
    pub poller: PollerKind,
    /// How descriptors are found.
    pub descriptors: StoreKind,
    /// Kernel receive buffer asked for, per shared socket, in bytes.
    pub receive_buffer_bytes: usize,
    /// Kernel send buffer asked for, per shared socket, in bytes.
    pub send_buffer_bytes: usize,
    /// Datagrams read or written with one system call.
    pub batch: usize,
    /// Cores that packets pass on.
    pub shards: u16,
    /// What decides which of them.
    pub steer: Steer,
}

/// What decides on which core a datagram's packet passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steer {
    /// Its session: few peers with many sessions are spread.
    Session,
    /// Its peer: datagrams of one peer stay together, and come joined.
    Peer,
}

/// Where log lines go.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    pub level: tracing::level_filters::LevelFilter,
    pub to: LogTo,
    pub format: LogFormat,
}

/// The sink of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogTo {
    /// The journal if standard error is connected to it, else standard error.
    Auto,
    Stderr,
    Journal,
}

/// How a log line on standard error looks.
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

/// Checks `bytes`, which are those of the file at `path`.
///
/// # Errors
/// Every fault found in them.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Settings, Faults> {
    let notes = settings::Notes::with_secrets(settings::utf8(path, bytes)?);
    let root = settings::document(&notes);
    let read = root.and_then(|root| sections::read(&root, path, &notes));
    let (mut settings, advice) = notes.finish(read).map_err(|faults| faults.of(path))?;
    settings.advice = advice.of(path);
    Ok(settings)
}

/// The names of protocols and services on this machine. Where it has none, the well-known names remain.
pub(crate) fn names() -> filter::Names {
    let [protocols, services] = settings::network_names();
    filter::Names::read(&protocols, &services)
}
