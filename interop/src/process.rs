//! A process under test: its output goes to a file, and it ends when its handle is dropped.

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often a condition is checked while waiting for it.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long a process may take to exit after SIGTERM.
const END_MAX: Duration = Duration::from_secs(8);

/// A running process; when dropped, it gets SIGTERM and then SIGKILL.
pub(crate) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command`, with both its outputs written to `directory/NAME.log`.
    ///
    /// # Errors
    /// The program is not installed, or the log cannot be written.
    pub(crate) fn start(mut command: Command, name: &str, directory: &Path) -> Result<Process> {
        let log = directory.join(format!("{name}.log"));
        let file = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| log.display().to_string())?;
        let child = command
            .stdin(Stdio::piped())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Process {
            name: name.to_owned(),
            child,
            log,
        })
    }

    /// Its standard input, which is closed when the result is dropped.
    pub(crate) fn input(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Its output so far.
    pub(crate) fn printed(&self) -> String {
        std::fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// How many lines of its output contain `text`.
    pub(crate) fn lines_with(&self, text: &str) -> usize {
        self.printed()
            .lines()
            .filter(|line| line.contains(text))
            .count()
    }

    /// Waits until its output has a line with `text`, and returns the first such line.
    ///
    /// # Errors
    /// It exited without one, or `limit` passed.
    pub(crate) fn wait_for(&mut self, text: &str, limit: Duration) -> Result<String> {
        self.wait_for_lines(text, 1, limit)
    }

    /// Waits until its output has `count` lines with `text`, and returns the last of those.
    ///
    /// # Errors
    /// It exited without them, or `limit` passed.
    pub(crate) fn wait_for_lines(
        &mut self,
        text: &str,
        count: usize,
        limit: Duration,
    ) -> Result<String> {
        let end = Instant::now() + limit;
        loop {
            let ended = self.child.try_wait()?;
            let printed = self.printed();
            if let Some(line) = printed
                .lines()
                .filter(|line| line.contains(text))
                .nth(count - 1)
            {
                return Ok(line.to_owned());
            }
            if let Some(status) = ended {
                bail!("{} ended ({status}) before it printed {text:?}", self.name);
            }
            if Instant::now() >= end {
                let seen = self.lines_with(text);
                bail!(
                    "{} printed {text:?} {seen} times of {count} in {} s",
                    self.name,
                    limit.as_secs()
                );
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Sends SIGTERM and waits for its exit.
    ///
    /// # Errors
    /// It has not exited in time and was killed.
    pub(crate) fn stop(mut self) -> Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        self.wait_for_end(END_MAX)
    }

    /// Waits for its exit without sending a signal.
    ///
    /// # Errors
    /// It has not exited in time and was killed.
    pub(crate) fn wait_for_end(&mut self, limit: Duration) -> Result<ExitStatus> {
        match until(limit, || Ok(self.child.try_wait()?))? {
            Some(status) => Ok(status),
            None => bail!("{} has not ended within {} s", self.name, limit.as_secs()),
        }
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// It has exited already.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.child.id())
            .ok()
            .and_then(Pid::from_raw)
            .context("a process id")?;
        kill_process(pid, signal).with_context(|| format!("{}: it has ended", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Calls `look` until it returns something, or returns `None` after `limit`.
///
/// # Errors
/// The first error of `look`.
pub(crate) fn until<T>(
    limit: Duration,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<Option<T>> {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = look()? {
            return Ok(Some(found));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(name: &str, script: &str) -> Process {
        let directory = std::env::temp_dir().join(format!("interop-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Process::start(command, name, &directory).unwrap()
    }

    #[test]
    fn a_line_is_waited_for_and_given_whole() {
        let mut process = sh("lines", "echo one; echo two a; echo two b; exec sleep 60");
        assert_eq!(process.wait_for_lines("two", 2, END_MAX).unwrap(), "two b");
        assert_eq!(process.lines_with("two"), 2);
        assert!(!process.stop().unwrap().success());
    }

    #[test]
    fn a_process_that_ends_first_is_not_waited_for() {
        let mut process = sh("ends", "echo one; exit 3");
        let error = process
            .wait_for("two", Duration::from_secs(60))
            .unwrap_err();
        assert!(error.to_string().contains("before it printed"), "{error}");
    }
}
