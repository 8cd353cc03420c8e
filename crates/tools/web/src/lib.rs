//! `headend web`: pages and metrics of a running daemon over HTTP. It is a process of its own, a client of the control
//! socket; the daemon itself opens no HTTP.
//!
//! Start reading at `serve` (connections) and `api` (what each address answers).
//!
//! | file | purpose |
//! |---|---|
//! | `args` | the command line |
//! | `serve` | listening, connections, their limits |
//! | `paced` | a connection that ends when its peer stops reading |
//! | `link` | a connection to a daemon: one request at a time, rows as they came |
//! | `feeds` | one poll per second and kind, shared by all viewers |
//! | `lookups` | answers that many ask for at once, kept for a second |
//! | `api` | the addresses below `/api/` |
//! | `fail` | errors as JSON |
//! | `assets` | the page |
#![forbid(unsafe_code)]

mod api;
mod args;
mod assets;
mod fail;
mod feeds;
mod link;
mod lookups;
mod paced;
mod serve;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::Result;

pub use args::WebArgs;

/// Runs `headend web` until a signal ends it.
///
/// # Errors
/// The address cannot be used.
pub fn run(args: &WebArgs) -> Result<ExitCode> {
    serve::run(args)
}
