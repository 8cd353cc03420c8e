//! Turns offloads off while packets are shaped, and back on afterwards.
//!
//! A separate process does both. It turns offloads on again when its standard input ends, which happens when the shaper
//! ends or is killed; the shaper itself has no privilege left by then. Signals from the terminal do not reach it.
//!
//! What it turned off is in a `record`. If it was killed as well, the next keeper finds that and turns on again what was
//! on before. While packets are shaped, the keeper looks after each notification of the kernel about an interface, and
//! turns off again what another program has turned on.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use reactor::Signals;
use reactor::netlink::{Monitor, Notice};
use reactor::port::offloads::{OffloadsOff, Scope};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::lock;
use super::record::{Record, Records};
use crate::system;

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
    // Before anything is turned off, so that no change is missed.
    let monitor = Monitor::open(&[]);
    let records = Records::open()
        .map_err(|error| {
            eprintln!("headend qos: {error}: if the process that keeps offloads off is killed, they stay off (advice)");
        })
        .ok();
    let scope = if args.lro { Scope::Lro } else { Scope::All };
    let mut off = Vec::new();
    let mut said = String::new();
    for name in &args.interfaces {
        match Kept::turn_off(name, scope, records.as_ref()) {
            Ok(kept) => {
                said += "off ";
                said += &kept.names();
                off.push(kept);
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
    if let Some(records) = &records {
        restore_left(records);
    }
    if let Ok(monitor) = monitor {
        keep(&mut off, monitor);
    }
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    drop(off);
    Ok(ExitCode::SUCCESS)
}

/// An interface whose offloads are off, with their record.
struct Kept<'a> {
    /// Taken when they are on again.
    off: Option<OffloadsOff>,
    name: &'a str,
    index: u32,
    records: Option<&'a Records>,
}

impl<'a> Kept<'a> {
    fn turn_off(
        name: &'a str,
        scope: Scope,
        records: Option<&'a Records>,
    ) -> std::io::Result<Self> {
        let index = system::interface(name).map_or(0, |interface| interface.index);
        let left = records.and_then(|records| records.read(index));
        let left = left.filter(|left| left.name == name);
        let left = left.as_ref().map_or("", |left| &left.offloads);
        let off = OffloadsOff::find(name, left, scope)?;
        let mut kept = Self {
            off: None,
            name,
            index,
            records,
        };
        let off = kept.off.insert(off);
        // From here on, the next start can restore them.
        note(off, (index, name), records);
        off.turn_off()?;
        Ok(kept)
    }

    /// Writes the record.
    fn note(&self) {
        if let Some(off) = &self.off {
            note(off, (self.index, self.name), self.records);
        }
    }

    fn names(&self) -> String {
        let names = self.off.iter().flat_map(OffloadsOff::turned_off);
        names.collect::<Vec<_>>().join(", ")
    }

    /// Turns off again what another program has turned on.
    fn look(&mut self) {
        let looked = self.off.as_mut().map(OffloadsOff::keep_off);
        if let Some(Ok(names)) = looked
            && !names.is_empty()
        {
            self.note();
            let (name, names) = (self.name, names.join(", "));
            eprintln!(
                "headend qos: {name}: another program turned on {names}; off again while packets are shaped"
            );
        }
    }
}

fn note(off: &OffloadsOff, (index, name): (u32, &str), records: Option<&Records>) {
    let record = Record {
        index,
        name: name.to_owned(),
        offloads: off.turned_off().collect::<Vec<_>>().join(", "),
    };
    if let Some(Err(error)) = records.map(|records| records.write(&record)) {
        eprintln!(
            "headend qos: {name}: {error}: if this process is killed, offloads stay off (advice)"
        );
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.off = None;
        if let Some(records) = self.records {
            records.remove(self.index);
        }
    }
}

/// Looks at the offloads after each notification about an interface, until standard input has something.
fn keep(off: &mut [Kept<'_>], mut monitor: Monitor) {
    let stdin = std::io::stdin();
    let mut notices = Vec::new();
    loop {
        let mut ready = [
            PollFd::new(&stdin, PollFlags::IN),
            PollFd::new(&monitor, PollFlags::IN),
        ];
        let waited = poll(&mut ready, None);
        let [of_stdin, of_monitor] = ready.map(|one| !one.revents().is_empty());
        match waited {
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) if of_stdin => return,
            Ok(_) => {}
        }
        if of_monitor {
            notices.clear();
            loop {
                match monitor.read(&mut notices) {
                    Ok(true) => {}
                    Ok(false) => break,
                    // The descriptor would stay ready.
                    Err(_) => return,
                }
            }
            let is_about = |kept: &Kept<'_>| {
                notices.iter().any(|notice| match notice {
                    Notice::Link(link) => link.index == kept.index,
                    Notice::Overflow => true,
                    _ => false,
                })
            };
            let changed = off.iter_mut().filter(|kept| is_about(kept));
            changed.for_each(Kept::look);
        }
    }
}

/// Turns on again what shapers left off that were killed together with their keepers.
fn restore_left(records: &Records) {
    for left in records.all() {
        // Ours are locked by the shaper, and others' by theirs.
        let Ok(_lock) = lock::lock(left.index) else {
            continue;
        };
        let (name, names) = (&left.name, &left.offloads);
        let is_there = system::interface(name).is_some_and(|found| found.index == left.index);
        if is_there && OffloadsOff::find(name, names, Scope::All).map(drop).is_ok() {
            eprintln!("headend qos: {name}: on again after a shaper that was killed: {names}");
        }
        records.remove(left.index);
    }
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
