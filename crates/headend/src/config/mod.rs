//! The configuration file: strict TOML, checked in full before anything is opened.
//!
//! An unknown key, a bad value or a duplicate is a [`Fault`] with its line and
//! key; all faults of a file are told at once. docs/configuration.md is the
//! operator's page on every key.

mod bgp;
mod fault;
mod listen;
mod peer;
mod radius;
mod reader;
mod secret;
mod sections;
mod subscribers;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use base::Duration;
use reactor::{PollerKind, StoreKind};

pub(crate) use self::bgp::{Announce, Bgp, Install};
pub(crate) use fault::Faults;
pub(crate) use radius::{Disconnects, Radius};
pub(crate) use subscribers::{Client, Subscribers, Tun, load_filters, load_users};

/// What a configuration file says, defaults filled in.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// `[control]`
    pub(crate) control: Control,
    /// `[lns]`: given when tunnels are accepted.
    pub(crate) lns: Option<Role>,
    /// `[lac]`: given when tunnels are originated.
    pub(crate) lac: Option<Role>,
    /// `[l2tp]`, and what `[lns]`, `[lac]`, `[limits]` and `[event]` say of it.
    pub(crate) l2tp: l2tp::Config,
    /// `[ppp]`, `[[pool]]`, `[users]`, `[client]` and `[tun]`
    pub(crate) subscribers: Subscribers,
    /// `[bgp]`
    pub(crate) bgp: Option<Bgp>,
    /// `[event]`
    pub(crate) event: Event,
    /// `[log]`
    pub(crate) log: Log,
    /// How long the end waits for peers to acknowledge their StopCCNs.
    pub(crate) shutdown_wait: Duration,
    /// What is no fault of the file, and maybe not meant so.
    pub(crate) advice: Faults,
}

/// The control socket.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    /// Where it is; mode 0660.
    pub(crate) socket: PathBuf,
    /// Connections at one time.
    pub(crate) clients: usize,
}

/// One end's sockets.
#[derive(Clone, Debug)]
pub(crate) struct Role {
    /// Addresses to bind; port 0 takes a free one.
    pub(crate) listen: Vec<Listen>,
    /// Whether a tunnel gets a socket of its own.
    pub(crate) sockets: Sockets,
}

/// An address to bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listen {
    pub(crate) addr: SocketAddr,
    /// Not written by the operator: a host without that address family does
    /// without it.
    pub(crate) optional: bool,
}

/// Whether tunnels share a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// All tunnels of a listen address on one socket.
    Shared,
    /// A connected socket for each tunnel.
    PerTunnel,
}

/// The event loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// What waits for readiness.
    pub(crate) poller: PollerKind,
    /// How descriptors are found.
    pub(crate) descriptors: StoreKind,
    /// Kernel receive buffer asked for, per shared socket, in bytes.
    pub(crate) receive_buffer_bytes: usize,
    /// Kernel send buffer asked for, per shared socket, in bytes.
    pub(crate) send_buffer_bytes: usize,
    /// Datagrams read or written with one system call.
    pub(crate) batch: usize,
    /// Cores that packets pass on.
    pub(crate) shards: u16,
    /// What decides which of them.
    pub(crate) steer: Steer,
}

/// What decides on which core a datagram's packet passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steer {
    /// Its session: few peers with many sessions are spread.
    Session,
    /// Its peer: datagrams of one peer stay together, and come joined.
    Peer,
}

/// Where log lines go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    pub(crate) level: tracing::level_filters::LevelFilter,
    pub(crate) to: LogTo,
    pub(crate) format: LogFormat,
}

/// The sink of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogTo {
    /// The journal if standard error is connected to it, else standard error.
    Auto,
    Stderr,
    Journal,
}

/// How a log line on standard error looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Reads and checks the file at `path`.
///
/// # Errors
/// Every fault found in it.
pub(crate) fn load(path: &Path) -> Result<Settings, Faults> {
    match std::fs::read(path) {
        Ok(bytes) => parse(path, &bytes),
        Err(error) => {
            let mut notes = fault::Notes::new("");
            notes.whole("", format!("cannot be read: {error}"));
            Err(notes.fail(path))
        }
    }
}

/// Checks `bytes`, which are those of the file at `path`.
///
/// # Errors
/// Every fault found in them.
pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Settings, Faults> {
    let source = match std::str::from_utf8(bytes) {
        Ok(source) => source,
        Err(error) => {
            let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let mut notes = fault::Notes::new(&valid);
            notes.at(valid.len(), "", "is not UTF-8 text from here on");
            return Err(notes.fail(path));
        }
    };
    let mut notes = fault::Notes::new(source);
    let (root, errors) = toml::de::DeTable::parse_recoverable(source);
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let message = match error.message() {
            "duplicate key" => {
                let key = source.get(span.clone()).unwrap_or_default();
                format!("{key} is given twice; give it once")
            }
            other => other.replace('\n', "; "),
        };
        notes.at(span.start, "", message);
    }
    if !notes.is_empty() {
        return Err(notes.fail(path));
    }
    let settings = sections::read(root.get_ref(), path, &mut notes);
    match settings {
        Some(mut settings) if notes.is_empty() => {
            settings.advice = notes.advice(path);
            Ok(settings)
        }
        _ => Err(notes.fail(path)),
    }
}
