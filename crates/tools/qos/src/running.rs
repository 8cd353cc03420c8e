//! Requests to a running `headend qos run`.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};

use super::rows::{HostsAsked, RateChange, Verb};
use control::client::Client;
use control::request::Nothing;
use control::rows::{QOS_SHOWN, QosHost, QosHosts, QosNodeRow, QosRate, QosReloaded, QosRun};

/// The default path of the control socket.
pub(super) const SOCKET: &str = "/run/headend-qos.sock";

/// A connection to a running shaper.
pub(super) struct Running(Client);

/// The shaper that a command connects to.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Control {
    /// The shaper's control socket
    #[arg(long = "socket", alias = "control", value_name = "PATH", default_value = SOCKET)]
    path: PathBuf,
}

impl Control {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn connect(&self) -> Result<Running> {
        Running::connect(&self.path)
    }
}

impl Running {
    /// Connects to the shaper whose control socket is at `path`.
    ///
    /// # Errors
    /// Says what to do about it, where that is known.
    pub(super) fn connect(path: &Path) -> Result<Self> {
        let shown = path.display();
        let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => anyhow!(
                "nothing runs at {shown}; start it with \"headend qos run --policy FILE --lan IF --wan IF\", \
                 or name its socket with --socket PATH"
            ),
            ErrorKind::PermissionDenied => {
                anyhow!("{shown} may only be used by its owner and group; use their account, or sudo")
            }
            _ => anyhow!("cannot connect to {shown}: {error}"),
        })?;
        Ok(Self(Client::new(stream)))
    }

    /// The shaper's present state.
    ///
    /// # Errors
    /// The shaper has ended, or speaks another version of the protocol.
    pub(super) fn show(&mut self) -> Result<QosRun> {
        let mut run: Option<QosRun> = None;
        self.0.rows(&Verb::Show(Nothing {}), |row| {
            let Some(run) = &mut run else {
                run = Some(serde_json::from_str(row).context(ANOTHER)?);
                return Ok(());
            };
            let QosNodeRow { node, .. } = serde_json::from_str(row).context(ANOTHER)?;
            let way = match node.way.as_str() {
                "up" => &mut run.up,
                _ => &mut run.down,
            };
            way.nodes.push(node);
            Ok(())
        })?;
        let mut run = run.context(ANOTHER)?;
        QOS_SHOWN.schema.clone_into(&mut run.schema);
        Ok(run)
    }

    /// Makes the shaper reload its policy.
    ///
    /// # Errors
    /// The faults of the policy, one per line; the shaper then keeps the old policy.
    pub(super) fn reload(&mut self) -> Result<QosReloaded> {
        self.0.one(&Verb::Reload(Nothing {}))
    }
}

impl Running {
    /// Changes rates; returns those in force.
    ///
    /// # Errors
    /// The shaper refuses a rate, with its reason.
    pub(super) fn rate(&mut self, change: RateChange) -> Result<QosRate> {
        self.0.one(&Verb::Rate(change))
    }

    /// The hosts with the highest rates, and the sums over all.
    ///
    /// # Errors
    /// As [`Running::show`].
    pub(super) fn hosts(&mut self, count: u64) -> Result<(QosHosts, Vec<QosHost>)> {
        let mut sums: Option<QosHosts> = None;
        let mut hosts = Vec::new();
        let asked = HostsAsked { count: Some(count) };
        self.0.rows(&Verb::Hosts(asked), |row| {
            if sums.is_none() {
                sums = Some(serde_json::from_str(row).context(ANOTHER)?);
            } else {
                hosts.push(serde_json::from_str(row).context(ANOTHER)?);
            }
            Ok(())
        })?;
        Ok((sums.context(ANOTHER)?, hosts))
    }
}

const ANOTHER: &str = "its reply is that of another version of headend";
