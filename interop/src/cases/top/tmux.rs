//! A terminal in tmux: keys go in, and the screen comes out as text.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process::until;

/// How long a screen may take to show something.
const SOON: Duration = Duration::from_secs(20);

/// A tmux server with one pane, in which a shell with job control runs. It ends when dropped.
pub(super) struct Pane {
    socket: PathBuf,
}

impl Pane {
    /// A shell in a pane of 80 by 24, in a UTF-8 locale.
    ///
    /// # Errors
    /// tmux is not installed, or does not start.
    pub(super) fn start(directory: &Path) -> Result<Self> {
        let pane = Self {
            socket: directory.join("tmux"),
        };
        let shell = "env -u NO_COLOR LC_ALL=C.UTF-8 PS1='ready> ' sh -i";
        pane.tmux(&[
            "-f",
            "/dev/null",
            "-u",
            "new-session",
            "-d",
            "-x",
            "80",
            "-y",
            "24",
            shell,
        ])?;
        pane.sees("ready>")?;
        Ok(pane)
    }

    fn tmux(&self, words: &[&str]) -> Result<String> {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .args(words)
            .output()
            .context("tmux")?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "tmux {words:?}: {error}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Presses keys, named as tmux names them.
    pub(super) fn press(&self, keys: &[&str]) -> Result<()> {
        self.tmux(&[&["send-keys"], keys].concat())?;
        Ok(())
    }

    /// Types a line and presses Enter.
    pub(super) fn run(&self, line: &str) -> Result<()> {
        self.tmux(&["send-keys", "-l", line])?;
        self.press(&["Enter"])
    }

    /// The screen.
    pub(super) fn screen(&self) -> Result<String> {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Whether a cell of the screen has a colour.
    pub(super) fn is_coloured(&self) -> Result<bool> {
        let screen = self.tmux(&["capture-pane", "-p", "-e"])?;
        // The eight colours, and those of a palette.
        let mut starts = (30..38).map(|colour| format!("\x1b[{colour}m"));
        Ok(screen.contains("\x1b[38;") || starts.any(|start| screen.contains(&start)))
    }

    /// Waits until the screen shows a text.
    ///
    /// # Errors
    /// It does not; the message has the screen.
    pub(super) fn sees(&self, text: &str) -> Result<String> {
        self.becomes(text, |screen| screen.contains(text))
    }

    /// Waits until the screen is as `is` says.
    ///
    /// # Errors
    /// It does not become so; the message has the screen.
    pub(super) fn becomes(&self, what: &str, is: impl Fn(&str) -> bool) -> Result<String> {
        let found = until(SOON, || {
            let screen = self.screen()?;
            Ok(is(&screen).then_some(screen))
        })?;
        found.with_context(|| {
            let screen = self.screen().unwrap_or_default();
            format!("no {what:?} on the screen:\n{screen}")
        })
    }

    /// Waits until the shell waits for a line.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn is_back(&self) -> Result<()> {
        let is_last = |screen: &str| screen.trim_end().lines().last() == Some("ready>");
        self.becomes("prompt", is_last).map(|_| ())
    }

    /// Changes the size.
    pub(super) fn resize(&self, width: u16, height: u16) -> Result<()> {
        let (width, height) = (width.to_string(), height.to_string());
        self.tmux(&["resize-window", "-x", &width, "-y", &height])?;
        Ok(())
    }

    /// Closes the terminal, as a lost connection does.
    pub(super) fn close(&self) -> Result<()> {
        self.tmux(&["kill-server"])?;
        Ok(())
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        // The test may have closed it.
        let _ = self.close();
    }
}
