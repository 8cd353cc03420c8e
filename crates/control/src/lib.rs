//! The control protocol: versioned lines of JSON over a Unix stream socket, as
//! docs/control-protocol.md has it. The types are shared by the daemon and by the
//! clients in this binary; `headend qos run` has verbs of its own in it.

#![forbid(unsafe_code)]

pub mod client;
pub mod create;
pub mod lines;
pub mod net;
pub mod pace;
pub mod reply;
pub mod request;
pub mod rows;
pub mod service;

/// The version of the protocol; a request of another version is refused.
pub const VERSION: u32 = 1;

/// The longest line that either side takes, in bytes.
pub const LINE_MAX: usize = 16 * 1024;

/// Where the control socket is if nobody says otherwise.
pub const DEFAULT_SOCKET: &str = "/run/headend.sock";
