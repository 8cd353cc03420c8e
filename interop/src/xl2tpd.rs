//! Debian's xl2tpd, as LAC and as LNS.

use crate::net::Namespace;
use crate::process::Process;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

const START_MAX: Duration = Duration::from_secs(10);

/// Makes it print each message's contents.
pub(crate) const VERBOSE: &str = "debug avp = yes\ndebug state = yes\ndebug tunnel = yes\n";

/// A running xl2tpd.
pub(crate) struct Xl2tpd {
    /// Its output is in its log.
    pub(crate) process: Process,
    control: PathBuf,
}

/// The settings that differ between instances of xl2tpd.
pub(crate) struct Setup<'a> {
    /// Unique in its directory.
    pub(crate) name: &'a str,
    /// The address it listens on.
    pub(crate) address: &'a str,
    /// The tunnel secret it shares with every peer.
    pub(crate) secret: Option<&'a str>,
    /// Additional lines of its `[global]` section.
    pub(crate) global: &'a str,
    /// Its `[lac ...]` and `[lns ...]` sections.
    pub(crate) sections: String,
}

impl Xl2tpd {
    /// Starts it and waits until it listens.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub(crate) fn start(
        namespace: &Namespace,
        directory: &Path,
        setup: &Setup<'_>,
    ) -> Result<Xl2tpd> {
        let file = |ending: &str| directory.join(format!("{}.{ending}", setup.name));
        let secrets = setup
            .secret
            .map(|secret| format!("* * {secret}\n"))
            .unwrap_or_default();
        std::fs::write(file("secrets"), secrets)?;
        let global = format!(
            "[global]\nlisten-addr = {}\nauth file = {}\n{}",
            setup.address,
            file("secrets").display(),
            setup.global
        );
        std::fs::write(file("conf"), format!("{global}{}", setup.sections))?;

        let mut command = namespace.command("xl2tpd");
        command
            .arg("-D")
            .arg("-c")
            .arg(file("conf"))
            .arg("-p")
            .arg(file("pid"))
            .arg("-C")
            .arg(file("control"));
        let mut process = Process::start(command, setup.name, directory)?;
        process.wait_for("Listening on IP address", START_MAX)?;
        Ok(Xl2tpd {
            process,
            control: file("control"),
        })
    }

    /// Writes one command to its control pipe. It takes one command from each read and loses the rest: leave 8
    /// ms between two commands.
    ///
    /// # Errors
    /// It has exited.
    pub(crate) fn command(&self, command: &str) -> Result<()> {
        // Opening a pipe without a reader would block; opening it for reading and writing does not.
        let mut pipe = File::options()
            .read(true)
            .write(true)
            .open(&self.control)
            .context("xl2tpd's control pipe")?;
        // The zero byte ends the command, whatever else is read with it.
        pipe.write_all(format!("{command}\0").as_bytes())
            .context("xl2tpd's control pipe")
    }
}

/// A section that makes xl2tpd an LNS for any LAC.
pub(crate) fn lns_section(challenge: bool) -> String {
    let challenge = if challenge { "yes" } else { "no" };
    format!(
        "[lns default]\nhostname = xl2tpd.test\nip range = 10.77.0.2-10.77.0.250\nlocal ip = 10.77.0.1\n\
         require authentication = no\nchallenge = {challenge}\n"
    )
}

/// A section that calls `lns`; it dials by itself only if `more` says so.
pub(crate) fn lac_section(name: &str, lns: &str, challenge: bool, more: &str) -> String {
    let challenge = if challenge { "yes" } else { "no" };
    format!(
        "[lac {name}]\nlns = {lns}\nrequire authentication = no\nchallenge = {challenge}\n{more}"
    )
}
