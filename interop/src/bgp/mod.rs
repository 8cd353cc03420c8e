//! Other projects' BGP daemons: Debian's FRR, BIRD 2 and GoBGP, each queried through its own command line; and
//! a peer played by hand ([`player`]).

pub(crate) mod player;
mod setup;

pub(crate) use player::{Manner, Player};
pub(crate) use setup::{OUR_ASN, Setup, THEIR_ASN};

use crate::net::Namespace;
use crate::process::{Process, until};
use crate::runner::Bench;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long a daemon may take until its command line answers.
const START_MAX: Duration = Duration::from_secs(15);

/// Debian's path of FRR's daemons.
const BGPD: &str = "/usr/lib/frr/bgpd";

/// Which daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Frr,
    Bird,
    Gobgp,
}

impl Kind {
    /// Its name, for files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Frr => "frr",
            Kind::Bird => "bird",
            Kind::Gobgp => "gobgp",
        }
    }
}

/// A running daemon.
pub(crate) struct Router<'a> {
    /// Its output is in its log.
    pub(crate) process: Process,
    kind: Kind,
    namespace: &'a Namespace,
    /// The directory of its sockets.
    place: PathBuf,
}

impl<'a> Router<'a> {
    /// Starts a daemon in the bench's LAC namespace, and waits until it answers.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub(crate) fn start(bench: &'a Bench<'_>, kind: Kind, setup: &Setup<'_>) -> Result<Router<'a>> {
        let namespace = &bench.wire.lac;
        let test = bench.directory.file_name().context("a test's name")?;
        let place =
            PathBuf::from("/run").join(format!("{}-{}", test.to_string_lossy(), kind.name()));
        std::fs::create_dir_all(&place)?;
        let config = bench.directory.join(format!("{}.conf", kind.name()));
        setup.write(kind, &config)?;
        let command = command(namespace, kind, setup, [&config, &place]);
        let process = Process::start(command, kind.name(), &bench.directory)?;
        let router = Router {
            process,
            kind,
            namespace,
            place,
        };
        let probe = match kind {
            Kind::Frr => "show version",
            Kind::Bird => "show status",
            Kind::Gobgp => "global",
        };
        until(START_MAX, || Ok(router.ask(probe).ok()))?
            .with_context(|| format!("{} does not answer", kind.name()))?;
        if kind == Kind::Gobgp {
            let routes = if setup.is_plain {
                setup::GOBGP_PLAIN
            } else {
                setup::GOBGP_ROUTES
            };
            for route in routes {
                router.ask(route)?;
            }
        }
        Ok(router)
    }

    /// Runs a command in its command line, and returns the output.
    ///
    /// # Errors
    /// It does not answer, or reports a failure.
    pub(crate) fn ask(&self, command: &str) -> Result<String> {
        let output = match self.kind {
            Kind::Frr => Command::new("vtysh")
                .arg("--vty_socket")
                .arg(&self.place)
                .args(["-d", "bgpd", "-c", command])
                .output(),
            Kind::Bird => Command::new("birdc")
                .arg("-s")
                .arg(self.place.join("ctl"))
                .args(command.split(' '))
                .output(),
            Kind::Gobgp => self
                .namespace
                .command("gobgp")
                .args(command.split(' '))
                .output(),
        }
        .with_context(|| format!("the command line of {}", self.kind.name()))?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            bail!("{} {command}: {printed}{error}", self.kind.name());
        }
        Ok(printed)
    }

    /// Repeats a command until `is_there` accepts the output, which is returned.
    ///
    /// # Errors
    /// `limit` passed; the error holds the last output.
    pub(crate) fn wait(
        &self,
        command: &str,
        limit: Duration,
        is_there: impl Fn(&str) -> bool,
    ) -> Result<String> {
        let mut last = String::new();
        let found = until(limit, || {
            last = self
                .ask(command)
                .unwrap_or_else(|error| format!("{error:#}"));
            Ok(is_there(&last).then(|| last.clone()))
        })?;
        found.with_context(|| format!("{} still says to {command}: {last}", self.kind.name()))
    }

    /// Repeats a command until the output, which is returned, contains every one of `words`.
    ///
    /// # Errors
    /// Like [`Router::wait`].
    pub(crate) fn wait_for(
        &self,
        command: &str,
        words: &[&str],
        limit: Duration,
    ) -> Result<String> {
        self.wait(command, limit, |printed| {
            words.iter().all(|word| printed.contains(word))
        })
        .with_context(|| format!("one of {words:?} is not there"))
    }
}

/// The command line of a daemon with this configuration, whose own files go to `place`.
fn command(
    namespace: &Namespace,
    kind: Kind,
    setup: &Setup<'_>,
    [config, place]: [&Path; 2],
) -> Command {
    match kind {
        Kind::Frr => {
            let mut command = namespace.command(BGPD);
            // No zebra, so no route reaches the kernel. No privileges are dropped, because there may be
            // none to drop.
            command.args(["-Z", "-S", "-n", "-P", "0"]);
            command.args(["-p", "179", "-l", setup.address]);
            let level = if setup.is_quiet { "critical" } else { "debug" };
            command.args(["--log", "stdout", "--log-level", level]);
            command.arg("-i").arg(place.join("pid"));
            command.arg("--vty_socket").arg(place);
            command.arg("-f").arg(config);
            command
        }
        Kind::Bird => {
            let mut command = namespace.command("bird");
            command.args(["-f", "-s"]).arg(place.join("ctl"));
            command.arg("-c").arg(config);
            command
        }
        Kind::Gobgp => {
            let mut command = namespace.command("gobgpd");
            let level = if setup.is_quiet { "error" } else { "debug" };
            command.args(["-l", level, "-p", "--pprof-disable", "-t", "toml"]);
            command.arg("-f").arg(config);
            command
        }
    }
}
