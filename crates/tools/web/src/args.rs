//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use cli::Socket;

/// Serve pages and metrics of a running daemon.
#[derive(Clone, Debug, clap::Args)]
pub struct WebArgs {
    #[command(flatten)]
    pub(crate) socket: Socket,
    /// The control socket of "headend qos run", for the page of queues
    #[arg(long, value_name = "PATH")]
    pub(crate) qos_socket: Option<PathBuf>,
    /// The address and port to listen on; port 0 takes any free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
}
