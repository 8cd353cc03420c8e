//! The `--socket` flag.

use std::path::PathBuf;

use anyhow::Result;
use control::DEFAULT_SOCKET;
use control::client::Client;

/// The daemon that a command connects to.
#[derive(Clone, Debug, clap::Args)]
pub struct Socket {
    /// The daemon's control socket
    #[arg(long = "socket", global = true, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    pub path: PathBuf,
}

impl Socket {
    /// Connects to the daemon.
    ///
    /// # Errors
    /// No daemon answers at the path.
    pub fn connect(&self) -> Result<Client> {
        Client::connect(&self.path)
    }
}
