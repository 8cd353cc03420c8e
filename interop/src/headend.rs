//! headend itself: a daemon under test and its command line.

use crate::net::Namespace;
use crate::process::{Process, until};
use crate::runner::Bench;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const START_MAX: Duration = Duration::from_secs(40);

/// A running `headend run`.
pub(crate) struct Headend {
    /// Its output is in its log.
    pub(crate) process: Process,
    program: PathBuf,
    socket: PathBuf,
}

/// The configuration line for the tunnel secret, if there is one.
pub(crate) fn secret_key(secret: Option<&str>) -> String {
    secret
        .map(|secret| format!("secret = \"{secret}\"\n"))
        .unwrap_or_default()
}

impl Headend {
    /// An LNS on [`crate::net::LNS`], in the bench's LNS namespace; `keys` has additional lines of its section.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn lns(bench: &Bench<'_>, keys: &str) -> Result<Headend> {
        Headend::start(bench, &bench.wire.lns, "lns", keys)
    }

    /// A LAC on [`crate::net::LAC`], in the bench's LAC namespace; `keys` has additional lines of its section.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn lac(bench: &Bench<'_>, keys: &str) -> Result<Headend> {
        Headend::start(bench, &bench.wire.lac, "lac", keys)
    }

    /// A BGP speaker on [`crate::net::LNS`], in the bench's LNS namespace; `sections` is its configuration
    /// except the control socket.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn speaker(bench: &Bench<'_>, sections: &str) -> Result<Headend> {
        Headend::run(bench, &bench.wire.lns, "speaker", sections)
    }

    /// A daemon in a namespace with the configuration that `headend import SOURCE FILE` makes; `bgp` are further lines
    /// of its `[bgp]`.
    ///
    /// # Errors
    /// The import fails, or the daemon does not start.
    pub(crate) fn imported(
        bench: &Bench<'_>,
        namespace: &Namespace,
        source: &str,
        file: &Path,
        bgp: &str,
    ) -> Result<Headend> {
        let folder = bench.directory.join("imported");
        let output = Command::new(bench.headend)
            .args(["import", source])
            .arg(file)
            .args(["--check", "--out"])
            .arg(&folder)
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "headend import: {said}");
        let text = std::fs::read_to_string(folder.join("headend.toml"))?;
        // The run has a socket of its own.
        let sections = text.split_once("[control]").map_or("", |(_, rest)| rest);
        let sections = sections.split_once("\n\n").map_or("", |(_, rest)| rest);
        // Files with secrets are beside the configuration.
        let beside = format!("secret_file = \"{}/", folder.display());
        let sections = sections.replace("secret_file = \"", &beside);
        let sections = sections.replacen("[bgp]\n", &format!("[bgp]\n{bgp}"), 1);
        Headend::run(bench, namespace, "imported", &sections)
    }

    /// A daemon in a namespace; `sections` is its configuration except the control socket, and `name` is unique in the
    /// test.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn in_namespace(
        bench: &Bench<'_>,
        namespace: &Namespace,
        name: &str,
        sections: &str,
    ) -> Result<Headend> {
        Headend::run(bench, namespace, name, sections)
    }

    fn start(bench: &Bench<'_>, namespace: &Namespace, role: &str, keys: &str) -> Result<Headend> {
        let sections = format!(
            "[{role}]\nlisten = [\"0.0.0.0:1701\", \"[::]:1701\"]\nhost_name = \"headend.test\"\n{keys}"
        );
        Headend::run(bench, namespace, role, &sections)
    }

    fn run(
        bench: &Bench<'_>,
        namespace: &Namespace,
        name: &str,
        sections: &str,
    ) -> Result<Headend> {
        // The run's own /run is short enough for a socket's path, wherever the source tree is.
        let test = bench
            .directory
            .file_name()
            .context("a test's name")?
            .to_string_lossy()
            .into_owned();
        let socket = Path::new("/run").join(format!("{test}-{name}.sock"));
        let config = bench.directory.join(format!("{name}.toml"));
        let settings = format!("[control]\nsocket = \"{}\"\n{sections}", socket.display());
        std::fs::write(&config, settings)?;
        // It may contain secrets.
        rustix::fs::chmod(&config, rustix::fs::Mode::from_raw_mode(0o600))?;

        let mut command = namespace.command(bench.headend);
        command.arg("run").arg("--config").arg(&config);
        let mut process = Process::start(command, &format!("headend-{name}"), &bench.directory)?;
        let listening = until(START_MAX, || {
            let ended = process.wait_for_end(Duration::ZERO).ok();
            ensure!(ended.is_none(), "headend ended as it started");
            Ok(std::os::unix::net::UnixStream::connect(&socket).ok())
        })?;
        ensure!(
            listening.is_some(),
            "headend has no control socket after {} s",
            START_MAX.as_secs()
        );
        Ok(Headend {
            process,
            program: bench.headend.to_owned(),
            socket,
        })
    }

    /// Its control socket.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Runs a command that talks to the daemon, and returns its output.
    ///
    /// # Errors
    /// Its exit code is not 0; the error holds its output.
    pub(crate) fn verb(&self, words: &[&str]) -> Result<String> {
        let output = Command::new(&self.program)
            .args(words)
            .arg("--socket")
            .arg(&self.socket)
            .output()?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            bail!(
                "headend {} ({}): {printed}{error}",
                words.join(" "),
                output.status
            );
        }
        Ok(printed)
    }

    /// The rows of `headend show WHAT --json`.
    ///
    /// # Errors
    /// The command fails, or a line is not JSON, or has no schema.
    pub(crate) fn show(&self, what: &[&str]) -> Result<Vec<Value>> {
        let words = [&["show"], what, &["--json"]].concat();
        self.verb(&words)?
            .lines()
            .map(|line| {
                let row: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
                ensure!(row["schema"].is_string(), "a row without a schema: {line}");
                Ok(row)
            })
            .collect()
    }

    /// Waits until `show WHAT --json` has exactly `count` rows in state `state`, and returns them.
    ///
    /// # Errors
    /// `limit` passed; the error holds the last output.
    pub(crate) fn wait_for(
        &self,
        what: &str,
        state: &str,
        count: usize,
        limit: Duration,
    ) -> Result<Vec<Value>> {
        let mut last = Vec::new();
        let found = until(limit, || {
            last = self.show(&[what])?;
            let rows: Vec<Value> = last
                .iter()
                .filter(|row| row["state"] == state)
                .cloned()
                .collect();
            Ok((rows.len() == count).then_some(rows))
        })?;
        found.with_context(|| {
            let first: Vec<&Value> = last.iter().take(3).collect();
            let seen = last.iter().filter(|row| row["state"] == state).count();
            format!(
                "{seen} {what} are {state}, not {count}; {} shown, the first: {first:?}",
                last.len()
            )
        })
    }

    /// Stops it as an operator does; it must close every tunnel and exit with 0.
    ///
    /// # Errors
    /// It does not exit, or exits with another code.
    pub(crate) fn stop(self) -> Result<()> {
        let status = self.process.stop()?;
        ensure!(
            status.success(),
            "headend ended with {status} after SIGTERM"
        );
        Ok(())
    }
}
