//! The harness of all benchmarks: processes that always end, network namespaces, a core for the server and one for the
//! load, and the account of a process under test.
//!
//! | file | purpose |
//! |---|---|
//! | `run` | a directory with the files and processes of a run; both go when the run ends |
//! | `cores` | one core for the server, the other for the load |
//! | `sandbox` | the run again inside network namespaces of its own |
//! | `datagrams` | the load on a bare loop: datagrams from many addresses |
//! | `costs` | the median and the range of runs |
//! | `server` | our LNS, and the processor time and memory of any process |

pub(crate) mod cores;
pub(crate) mod costs;
pub(crate) mod datagrams;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod server;

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use cli::progress::spinner;
use indicatif::ProgressBar;
use lab::report::CoreUse;

pub(crate) use cores::Cores;
use run::temporary;
pub(crate) use run::{RunDirectory, Running};

/// What every measurement needs.
pub(crate) struct Bench {
    pub(crate) directory: RunDirectory,
    pub(crate) cores: Cores,
    pub(crate) bar: ProgressBar,
}

impl Bench {
    /// What a run beside other daemons needs. It says which of them are missing. With `inside`, a directory, it is in
    /// the namespaces that the process outside made for it.
    ///
    /// # Errors
    /// The directory cannot be made, or the namespace cannot be used.
    pub(crate) fn with_others(
        name: &'static str,
        missing: &[String],
        inside: Option<&Path>,
    ) -> Result<Self> {
        for note in missing {
            eprintln!("headend: {note}");
        }
        let directory = RunDirectory::new(inside.map_or_else(temporary, Path::to_owned))?;
        if inside.is_some() {
            directory.end_with_stdin();
            sandbox::ip("link set lo up")?;
        }
        Ok(Self {
            directory,
            cores: Cores::take(),
            bar: spinner(name),
        })
    }

    /// Starts a process on the server's core.
    pub(crate) fn spawn(&self, name: &str, command: Command) -> Result<Running> {
        self.cores.at_server(|| self.directory.spawn(name, command))
    }

    pub(crate) fn say(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }
}

/// What others used, where the run was long enough to say so: the kernel counts in
/// ticks.
pub(crate) fn others_of(used: Option<CoreUse>) -> Option<f64> {
    used.filter(|used| used.tick_percent < 3.0)
        .map(|used| used.others_percent)
}
