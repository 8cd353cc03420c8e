//! The control protocol: versioned lines of JSON over a Unix stream socket, as
//! docs/control-protocol.md has it. The types are shared by the daemon and by the
//! clients in this binary; `headend qos run` has verbs of its own in it.

pub(crate) mod client;
pub(crate) mod lines;
pub(crate) mod net;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod rows;
pub(crate) mod service;

/// The version of the protocol; a request of another version is refused.
pub(crate) const VERSION: u32 = 1;

/// The longest line that either side takes, in bytes.
pub(crate) const LINE_MAX: usize = 16 * 1024;

/// Where the control socket is if nobody says otherwise.
pub(crate) const DEFAULT_SOCKET: &str = "/run/headend.sock";
