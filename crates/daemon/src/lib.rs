//! `headend run`, the daemon. By default one thread runs one event loop that connects the sockets,
//! the L2TP endpoint, RADIUS, BGP and the control socket. If configured, further threads carry
//! packets only. The protocols are in crates of their own and do no I/O; this crate does it for
//! them.
//!
//! Start with `start`, then read `turn`, which is the loop.
//!
//! | file | contents |
//! |---|---|
//! | `start` | opens sockets, drops privileges |
//! | `core` | state shared by the loop and everything it serves |
//! | `turn` | one turn of the loop |
//! | `input` | datagrams from the sockets to the edge |
//! | `inside` | packets from and to the TUN device |
//! | `kernel` | compares the TUN device with what is wanted |
//! | `notices` | notifications of the kernel about links, addresses and routes |
//! | `health` | what became of each source: resting, lost, when it is tried again |
//! | `mend` | opens lost sources again, or ends the daemon in order |
//! | `addresses` | addresses of our own clients |
//! | `default_route` | the host's default route through one of our clients |
//! | `audit` | the audit log: admissions, refusals, changes and ends as JSON lines |
//! | `uplinks` | IPv6 of our clients on the host |
//! | `authority` | authentication and accounting of subscribers |
//! | `dialler` | credentials of sessions in which we are the client |
//! | `reload` | applies a configuration that was read again, and undoes that |
//! | `loader` | reads and prepares configurations on a thread of its own |
//! | `running` | the configuration in force |
//! | `translation` | translation of addresses (NAT): its logs, port forwarding |
//! | `routes` | the BGP speaker, its announcements, routes for the kernel |
//! | `shards` | packets on further cores |
//! | `rest` | decides whether to wait a moment for more datagrams |
//! | `sockets` | datagrams in and out, on shared sockets or one per tunnel |
//! | `capture` | copies of one subscriber's packets for `headend capture` |
//! | `check`, `config` | the configuration file |
//! | `source` | identifies the owner of a descriptor |
//! | `events` | passes the endpoint's events on |
//! | `supervisor` | reports to the service manager: ready, reloading, alive |
//! | `watchdog`, `hangs` | report handlers that took too long, and those that do not return |
//! | `server` | the control socket and its clients |
//! | `client` | input and output of one client, both bounded |
//! | `jobs` | carries out requests in bounded steps |
//! | `show` | writes the rows of a `show` in bounded steps |
//! | `snmp` | rows for an SNMP master agent, by AgentX |
//! | `history` | the state of each second of ten minutes and each minute of a day |
//! | `left` | batches that packet threads pass to the first thread |
//! | `waiting` | clients that wait for a tunnel, a session or a subscriber |
//! | `log` | where log lines go |
#![forbid(unsafe_code)]

mod addresses;
mod audit;
mod authority;
mod capture;
pub mod check;
mod client;
pub mod config;
mod core;
mod default_route;
mod dialler;
mod events;
mod handover;
mod hangs;
mod health;
mod history;
mod input;
mod inside;
mod jobs;
mod kernel;
mod left;
mod lines;
mod loader;
mod log;
mod mend;
mod notices;
mod ports;
mod rates;
mod redial;
mod reload;
mod rest;
mod routes;
mod running;
mod served;
mod server;
mod shards;
mod show;
mod snmp;
mod sockets;
mod source;
mod start;
mod supervisor;
mod translation;
mod turn;
mod uplinks;
mod waiting;
mod watchdog;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// Run the daemon.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// End when this parent process ends
    #[arg(long, value_name = "PID", hide = true)]
    with_parent: Option<i32>,
}

/// Runs until a signal ends it.
pub fn run(args: &RunArgs) -> Result<ExitCode> {
    if let Some(parent) = args.with_parent {
        end_with(parent)?;
    }
    let settings = match config::load(&args.config) {
        Ok(settings) => settings,
        Err(faults) => {
            eprintln!("{faults}");
            eprintln!(
                "headend: not started: {} in the configuration",
                if faults.len() == 1 {
                    "a fault".into()
                } else {
                    format!("{} faults", faults.len())
                }
            );
            return Ok(ExitCode::from(2));
        }
    };
    log::start(&settings.log)?;
    log::advice(&settings.advice);
    let mut daemon = start::start(&settings, &args.config)?;
    daemon.core.report_ready();
    daemon.run();
    let by_signal = daemon.finish();
    Ok(ExitCode::from(u8::from(!by_signal)))
}

/// Asks the kernel to end this process when `parent` ends.
fn end_with(parent: i32) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // The parent may have ended before the call above.
    if getppid() != Pid::from_raw(parent) {
        bail!("the parent process {parent} has ended");
    }
    Ok(())
}
