//! Turns offloads off while packets are shaped, and back on afterwards.
//!
//! A separate process does both. It turns offloads on again when its standard input ends, which happens when the shaper
//! ends or is killed; the shaper itself has no privilege left by then. The process reads nothing else, and signals from
//! the terminal do not reach it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use reactor::Signals;
use reactor::port::offloads::OffloadsOff;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// The subcommand that starts the keeper process.
pub(crate) const VERB: &str = "keep-offloads-off";

/// Keep offloads of interfaces off until standard input ends.
#[derive(Debug, clap::Args)]
pub(crate) struct KeeperArgs {
    /// Only those whose work cannot be undone
    #[arg(long)]
    lro: bool,
    interfaces: Vec<String>,
}

/// Runs the keeper process. It prints one line per interface with the offloads that are off, or one line with an error.
pub(crate) fn run(args: &KeeperArgs) -> Result<ExitCode> {
    // Signals are meant for the shaper; this process ends when the shaper does.
    let _blocked = Signals::new()?;
    keep_net_admin_only()?;
    let mut off = Vec::new();
    let mut said = String::new();
    for name in &args.interfaces {
        let off_now = if args.lro {
            OffloadsOff::lro(name)
        } else {
            OffloadsOff::new(name)
        };
        match off_now {
            Ok(offloads) => {
                said += "off ";
                said += &offloads.turned_off().collect::<Vec<_>>().join(", ");
                off.push(offloads);
            }
            Err(error) => {
                said = format!("{name}: {}", explained(&error));
                off.clear();
                break;
            }
        }
        said.push('\n');
    }
    // A write fails only after the shaper has ended.
    let _ = std::io::stdout().write_all(said.as_bytes());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    drop(off);
    Ok(ExitCode::SUCCESS)
}

/// Drops every privilege except the one needed to set offloads.
fn keep_net_admin_only() -> Result<()> {
    let kept = rustix::thread::capabilities(None)?.permitted & CapabilitySet::NET_ADMIN;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

fn explained(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "switching offloads off takes root or CAP_NET_ADMIN".to_owned()
        }
        _ => format!("its offloads cannot be switched off: {error}"),
    }
}

/// The process that keeps offloads off. Dropping it turns them on again.
pub(super) struct Keeper {
    child: Child,
    /// The offloads that were turned off, for each interface.
    pub(super) turned_off: [String; 2],
}

impl Keeper {
    /// Turns the offloads of both interfaces off; only LRO if `keep` is set.
    ///
    /// # Errors
    /// A privilege or an interface is missing. Nothing has changed in that case.
    pub(super) fn start(interfaces: [&str; 2], keep: bool) -> Result<Self> {
        let program = std::env::current_exe().context("our own path")?;
        let child = Command::new(program)
            .args(["qos", VERB])
            .args(keep.then_some("--lro"))
            .arg("--")
            .args(interfaces)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("cannot start the process that keeps offloads off")?;
        let mut keeper = Self {
            child,
            turned_off: Default::default(),
        };
        let stdout = keeper.child.stdout.take().context("its output")?;
        let mut lines = BufReader::new(stdout).lines();
        for off in &mut keeper.turned_off {
            let line = lines.next().transpose()?.unwrap_or_default();
            match line.strip_prefix("off ") {
                Some(names) => names.clone_into(off),
                None if line.is_empty() => bail!("the process that keeps offloads off has ended"),
                None => bail!("{line}"),
            }
        }
        Ok(keeper)
    }

    /// Turns on the offloads that were on before.
    pub(super) fn restore(self) {
        drop(self);
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        match self.child.wait() {
            Ok(status) if status.success() => {}
            Ok(status) => eprintln!(
                "headend qos: offloads may still be off: their keeper ended with {status}"
            ),
            Err(error) => eprintln!("headend qos: offloads may still be off: {error}"),
        }
    }
}
