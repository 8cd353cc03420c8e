//! `headend`: the binary. It glues the protocol crates to sockets, files and
//! people, and knows no protocol itself.
//!
//! | module | what it is |
//! |---|---|
//! | `bench` | `headend bench` |
//! | `cli` | the command line, one file a verb |
//! | `config` | the configuration file |
//! | `control` | the control protocol and its client |
//! | `daemon` | `headend run` |
//! | `demo` | `headend demo` |
//! | `filter` | `headend filter` |
//! | `lab` | `headend lab` |
//! | `ping` | `headend ping` |
//! | `qos` | `headend qos` |
//! | `text` | texts of files that an operator wrote |
//! | `trace` | `headend trace` |
#![forbid(unsafe_code)]

mod bench;
mod bgp;
mod cli;
mod config;
mod control;
mod daemon;
mod demo;
mod emulate;
mod filter;
mod lab;
mod ping;
mod qos;
mod text;
mod trace;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
