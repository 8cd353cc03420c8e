//! The command lines that the single subject of a measurement and the members of a mesh share.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::bare;
use crate::harness::{Bench, Running};

/// One FRR bgpd among those of a run.
pub(crate) struct Bgpd<'a> {
    /// The program.
    pub(crate) path: &'a Path,
    /// The name of its files.
    pub(crate) name: &'a str,
    /// Where it makes its sockets. Two processes need two directories.
    pub(crate) sockets: PathBuf,
    pub(crate) listen: SocketAddr,
}

impl Bgpd<'_> {
    /// A bgpd without zebra, so that no route reaches the kernel, with the configuration `text`.
    ///
    /// # Errors
    /// Its file or directory cannot be written.
    pub(crate) fn command(&self, bench: &Bench, text: &str) -> Result<Command> {
        let file = |ending: &str| bench.directory.path(&format!("{}.{ending}", self.name));
        let config = file("conf");
        fs::write(&config, text)?;
        fs::create_dir_all(&self.sockets)?;
        let mut command = Command::new(self.path);
        command.args(["-n", "-Z", "-S", "-P", "0"]);
        command.args(["--log", "stdout", "--log-level", "err"]);
        command.arg("-f").arg(&config).arg("-i").arg(file("pid"));
        command.arg("--vty_socket").arg(&self.sockets);
        command.args(["-l", &self.listen.ip().to_string()]);
        command.args(["-p", &self.listen.port().to_string()]);
        Ok(command)
    }
}

/// A bare loop that listens at `address`, or connects from there.
///
/// # Errors
/// The path of this program is not known.
pub(crate) fn bare_loop(kind: bare::Kind, address: SocketAddr) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "bgp-bare", kind.name(), &address.to_string()]);
    Ok(command)
}

/// Reads a process's standard output and drops it, so that a full pipe does not stop the process.
pub(crate) fn drop_output(running: &mut Running) {
    if let Some(mut out) = running.stdout.take() {
        std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
    }
}
