//! The namespaces that peers run in, so that they do not change this machine: network with only a
//! loopback interface, mounts, and process ids.

use std::fs;
use std::path::Path;
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};
use cli::interrupt;
use reactor::Signals;

use super::run::{self, RunDirectory, find_program};

/// The option that marks the inner process and names its directory.
pub(crate) const INSIDE: &str = "--inside";

pub(crate) const CLUSTER_INTERFACE: &str = "cluster0";

/// Runs the same command line again inside new namespaces.
///
/// # Errors
/// The namespaces cannot be made here.
pub(crate) fn outside() -> Result<ExitCode> {
    for (program, package) in [("unshare", "util-linux"), ("ip", "iproute2")] {
        ensure!(
            find_program(program).is_some(),
            "peers run in a network of their own, for which {program} is needed: apt-get install {package}"
        );
    }
    let signals = Signals::new().context("cannot take signals")?;
    let program = std::env::current_exe().context("this program's own file is not known")?;
    let mut command = Command::new("unshare");
    command.env("PATH", run::path_with_daemons());
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let mut child = command
        .args(["--net", "--mount", "--pid", "--fork", "--kill-child"])
        .arg("--mount-proc")
        .arg(program)
        .args(std::env::args_os().skip(1))
        .arg(INSIDE)
        .arg(run::temporary())
        // The inner process ends when this pipe is closed, which the kernel does however we end.
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot start unshare")?;
    let pipe: &'static Mutex<Option<ChildStdin>> =
        Box::leak(Box::new(Mutex::new(child.stdin.take())));
    std::thread::spawn(move || {
        if interrupt::wait_for(&signals).is_ok() {
            *pipe.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    });
    let status = child.wait().context("unshare")?;
    match status.code() {
        Some(code @ (0 | 1 | 130)) => Ok(ExitCode::from(code as u8)),
        _ => bail!("the namespaces for the peers ended with {status}"),
    }
}

/// Prepares the namespaces, from inside.
///
/// # Errors
/// The output of `ip` or `mount`.
pub(crate) fn ready(directory: &RunDirectory) -> Result<()> {
    directory.end_with_stdin();
    ip("link set lo up")?;
    ip(&format!(
        "link add {CLUSTER_INTERFACE} type veth peer name cluster1"
    ))?;
    ip(&format!("address add 10.77.0.1/24 dev {CLUSTER_INTERFACE}"))?;
    ip(&format!("link set {CLUSTER_INTERFACE} up"))?;
    ip("link set cluster1 up")?;
    // l2tpns reads these files from the path compiled into it.
    let etc = Path::new("/etc/l2tpns");
    if etc.exists() {
        let ours = directory.path("etc-l2tpns");
        fs::create_dir_all(&ours)?;
        fs::write(ours.join("users"), "")?;
        fs::write(ours.join("ip_pool"), "10.66.0.0/29\n")?;
        run(Command::new("mount").arg("--bind").arg(ours).arg(etc))?;
    }
    Ok(())
}

/// Runs `ip` with these arguments.
///
/// # Errors
/// Its output.
pub(crate) fn ip(arguments: &str) -> Result<()> {
    run(Command::new("ip").args(arguments.split(' ')))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {:?}", command.get_program()))?;
    if !output.status.success() {
        bail!(
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}
