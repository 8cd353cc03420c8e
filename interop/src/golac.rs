//! The LAC built on Katalix's Go module: `interop/golac`.

use crate::net::Namespace;
use crate::process::Process;
use crate::sandbox::{Work, path_with_daemons};
use anyhow::{Result, bail};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Builds it; errors are written beside it, for the test to report.
pub(crate) fn build(root: &Path, work: &Work) {
    let path = path_with_daemons();
    let output = Command::new("sh")
        .args(["-c", "exec go build -buildvcs=false -o \"$0\" ."])
        .arg(work.golac())
        .env("PATH", path)
        .env("GOTOOLCHAIN", "local")
        .current_dir(root.join("interop/golac"))
        .output();
    let fault = match output {
        Ok(output) if output.status.success() => return,
        Ok(output) => output.stderr,
        Err(error) => error.to_string().into_bytes(),
    };
    // The test reports a missing file.
    let _ = std::fs::write(work.golac().with_extension("err"), fault);
}

/// A running `golac`.
pub(crate) struct Golac {
    /// Its output is in its log.
    pub(crate) process: Process,
}

impl Golac {
    /// Opens tunnels, and sessions in each.
    ///
    /// # Errors
    /// It was not built, and the reason.
    pub(crate) fn start(
        work: &Work,
        namespace: &Namespace,
        directory: &Path,
        [local, peer]: [&str; 2],
        [tunnels, sessions]: [usize; 2],
    ) -> Result<Golac> {
        if !work.golac().is_file() {
            let why =
                std::fs::read_to_string(work.golac().with_extension("err")).unwrap_or_default();
            bail!("golac was not built: {why}");
        }
        let mut command = namespace.command(work.golac());
        command.args(["-local", local, "-peer", peer]);
        command
            .arg(format!("-tunnels={tunnels}"))
            .arg(format!("-sessions={sessions}"));
        Ok(Golac {
            process: Process::start(command, "golac", directory)?,
        })
    }

    /// Makes it close its tunnels, and waits until it exits.
    ///
    /// # Errors
    /// It does not exit, or exits with an error.
    pub(crate) fn close(mut self) -> Result<()> {
        drop(self.process.input());
        self.process.wait_for("closed", Duration::from_secs(10))?;
        let status = self.process.wait_for_end(Duration::from_secs(5))?;
        if !status.success() {
            bail!("golac: {status}");
        }
        Ok(())
    }
}
