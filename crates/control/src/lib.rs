//! The control protocol: versioned lines of JSON over a Unix stream socket (docs/control-protocol.md). The daemon and
//! its clients share the types. `headend qos run` and emulations use the protocol with verbs of their own.

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

/// The longest line that either side accepts, in bytes.
pub const LINE_MAX: usize = 16 * 1024;

/// The default path of the control socket.
pub const DEFAULT_SOCKET: &str = "/run/headend.sock";
