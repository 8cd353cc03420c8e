//! `headend web`: pages and metrics of a running daemon over HTTP. It is a process of its own, a client of the control
//! socket; the daemon itself opens no HTTP.
//!
//! Start reading at `serve` (connections) and `api` (what each address answers).
//!
//! | file | purpose |
//! |---|---|
//! | `args` | the command line, and which of it may listen where |
//! | `parse` | parsers of what others send |
//! | `serve` | listening, connections, their limits |
//! | `sources` | the connections of each source address |
//! | `service` | the socket and the notification of a service manager |
//! | `tls` | certificates |
//! | `guard`, `token`, `login` | who may ask: host names, the token, forged requests |
//! | `paced` | a connection that ends when its peer stops reading |
//! | `link` | a connection to a daemon: one request at a time, rows as they came |
//! | `feeds` | one poll per second and kind, shared by all viewers |
//! | `lookups` | answers that many ask for at once, kept for a second |
//! | `api` | every address |
//! | `changes` | disconnecting and capturing a subscriber, the rate of a line |
//! | `metrics` | `/metrics`, from the rows' declarations |
//! | `fail` | errors as JSON |
//! | `assets` | the page |
#![forbid(unsafe_code)]

mod api;
mod args;
mod assets;
mod changes;
mod fail;
mod feeds;
mod guard;
mod link;
mod login;
mod lookups;
mod metrics;
mod paced;
pub mod parse;
mod serve;
mod service;
mod sources;
#[cfg(test)]
mod tests;
mod tls;
mod token;

use std::process::ExitCode;

use anyhow::Result;

pub use args::WebArgs;

/// Runs `headend web` until a signal ends it.
///
/// # Errors
/// The address cannot be used or may not be open, or a file has a fault.
pub fn run(args: &WebArgs) -> Result<ExitCode> {
    serve::run(args)
}
