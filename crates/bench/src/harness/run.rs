//! The processes that a run starts, and the directory of their files. Both are removed when the run
//! ends, also after a signal.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use cli::interrupt::{self, AtEnd};

/// Time limit of a run.
const RUN_MAX: Duration = Duration::from_secs(1800);

/// The directory and the processes of a run.
pub(crate) struct RunDirectory {
    at_end: Option<AtEnd>,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    directory: PathBuf,
    children: Vec<Child>,
}

impl RunDirectory {
    /// Makes the directory. A signal, or the end of [`RUN_MAX`], ends all processes and removes it.
    pub(crate) fn new(directory: PathBuf) -> Result<Self> {
        let shared = Arc::new(Mutex::new(Shared {
            directory: directory.clone(),
            children: Vec::new(),
        }));
        let at_end = {
            let shared = Arc::clone(&shared);
            interrupt::at_end(move || lock(&shared).clean_up())?
        };
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        std::thread::spawn(|| {
            std::thread::sleep(RUN_MAX);
            eprintln!("headend: cut off: the benchmark took too long");
            interrupt::end(1)
        });
        Ok(Self {
            at_end: Some(at_end),
            shared,
        })
    }

    /// Ends everything when the process at the other end of standard input is gone.
    pub(crate) fn end_with_stdin(&self) {
        std::thread::spawn(|| {
            // End of input and a read error both mean that it is gone.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            interrupt::end(interrupt::STATUS)
        });
    }

    /// A file of the run.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        lock(&self.shared).directory.join(name)
    }

    /// Starts `command`, whose standard error goes to the file `name.log`.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn spawn(&self, name: &str, mut command: Command) -> Result<Running> {
        let mut shared = lock(&self.shared);
        let log = shared.directory.join(format!("{name}.log"));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log)?)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let running = Running {
            shared: Arc::clone(&self.shared),
            pid: child.id(),
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            log,
        };
        shared.children.push(child);
        Ok(running)
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        self.at_end = None;
        lock(&self.shared).clean_up();
    }
}

impl Shared {
    fn clean_up(&mut self) {
        for mut child in self.children.drain(..) {
            // Both fail only if it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A process of the run; it is killed when this is dropped.
pub(crate) struct Running {
    shared: Arc<Mutex<Shared>>,
    pub(crate) pid: u32,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    log: PathBuf,
}

impl Running {
    /// What it has written to standard error so far.
    pub(crate) fn log(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Fails with its log if it has ended.
    pub(crate) fn check(&self) -> Result<()> {
        let mut shared = lock(&self.shared);
        let child = shared.children.iter_mut().find(|c| c.id() == self.pid);
        let status = child.map(Child::try_wait).transpose()?.flatten();
        match status {
            Some(status) => bail!("a process ended ({status}): {}", self.log().trim()),
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        let place = shared.children.iter().position(|c| c.id() == self.pid);
        if let Some(place) = place {
            let mut child = shared.children.swap_remove(place);
            // Both fail only if it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The directory of a run that makes its own.
pub(crate) fn temporary() -> PathBuf {
    std::env::temp_dir().join(format!("headend-bench-{}", std::process::id()))
}

/// The search path with the directories of daemons, which users may lack.
pub(crate) fn path_with_daemons() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/local/sbin:/usr/sbin:/sbin")
}

/// The path of a program, if it is installed.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = path_with_daemons();
    let places = path.split(':').filter(|place| !place.is_empty());
    let files = places.map(|place| Path::new(place).join(name));
    files.into_iter().find(|file| file.is_file())
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_where_daemons_live_and_one_that_is_nowhere_is_not() {
        assert!(find_program("sh").is_some());
        assert_eq!(find_program("no-such-program-anywhere"), None);
    }

    #[test]
    fn what_a_run_started_and_wrote_goes_with_it() {
        let directory = std::env::temp_dir().join(format!("bench-run-{}", std::process::id()));
        let run = RunDirectory::new(directory.clone()).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo heard >&2; exec cat"]);
        let first = run.spawn("first", command).unwrap();
        let mut command = Command::new("sleep");
        command.arg("60");
        let second = run.spawn("second", command).unwrap();
        while !first.log().contains("heard") {
            std::thread::sleep(Duration::from_millis(2));
        }
        first.check().unwrap();
        let stat = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
        let pids = [first.pid, second.pid];
        drop(first);
        assert_eq!(pids.map(stat), [false, true]);
        std::mem::forget(second);
        drop(run);
        assert!(!stat(pids[1]) && !directory.exists());
    }
}
