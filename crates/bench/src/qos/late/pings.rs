//! Runs `headend ping` and its responder as processes, and reads each packet's lateness from the
//! result file.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use base::Duration;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::super::scheduled::Account;
use super::{INTERVAL, Late};

/// A process that is killed when this is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file that is removed when this is dropped.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Sends `packets` of each of `streams` streams to a responder on loopback.
///
/// # Errors
/// One of the processes cannot be started, or fails.
pub(super) fn run(streams: u32, packets: u32) -> Result<Late> {
    let program = std::env::current_exe()?;
    let responder = Command::new(&program)
        .args(["ping", "--responder", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start a responder")?;
    let mut responder = Process(responder);
    let port = port(&mut responder.0)?;
    let name = format!("headend-bench-qos-{}.json", std::process::id());
    let file = Temporary(std::env::temp_dir().join(name));
    let hosts = (0..streams).map(|stream| format!("127.0.0.1,udp={port},name=s{stream}"));
    let pinger = Command::new(&program)
        .args(["ping", "-q", "-W", "1", "-i"])
        .arg(INTERVAL.as_secs_f64().to_string())
        .args(["-c", &packets.to_string(), "-o"])
        .arg(&file.0)
        .args(hosts)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start headend ping")?;
    let mut pinger = Process(pinger);
    let waited = wait(&mut pinger.0)?;
    Ok(Late {
        waited,
        ..read(&file.0)?
    })
}

/// The port that the responder's first line names.
fn port(responder: &mut Child) -> Result<u16> {
    let stdout = responder.stdout.take().context("no standard output")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let port = line.trim().rsplit_once(':').map(|(_, port)| port.parse());
    match port {
        Some(Ok(port)) => Ok(port),
        _ => bail!("the responder says no port: {line:?}"),
    }
}

/// Waits until it ends successfully. Returns how long its first thread, which sends, was ready to
/// run without a core.
fn wait(pinger: &mut Child) -> Result<Option<Duration>> {
    let pid = Pid::from_child(pinger);
    // The kernel's counters disappear when the exit status is collected.
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid), ended)?;
    let directory = format!("/proc/{0}/task/{0}", pid.as_raw_nonzero());
    let account = Account::of(&directory);
    let status = pinger.wait()?;
    // Status 1 means that a stream had no reply, which does not matter here.
    if !matches!(status.code(), Some(0 | 1)) {
        let said = pinger.stderr.take().map(std::io::read_to_string);
        let said = said.transpose()?.unwrap_or_default();
        bail!("headend ping: {status}: {}", said.trim());
    }
    Ok(account.map(Account::waited_in_all))
}

fn read(file: &Path) -> Result<Late> {
    let opened = File::open(file).with_context(|| file.display().to_string())?;
    let outcome = ping::file::read(opened)?;
    let rows = outcome.streams.iter().flat_map(|stream| stream.rows());
    let mut late = Late::new(rows.map(|row| row.late_ns()).collect());
    let streams = outcome.streams.iter();
    late.skipped = streams.map(|stream| stream.summary.skipped).sum();
    Ok(late)
}
