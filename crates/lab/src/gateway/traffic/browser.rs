//! Loads the page in headless Chromium, if it is installed.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use reactor::namespace::Namespace;

/// Names of the Chromium program.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// Flags that keep it from doing anything but load our page.
const FLAGS: [&str; 12] = [
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    "--mute-audio",
];

/// The path of a browser, if one is installed.
#[must_use]
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|directory| NAMES.map(|name| directory.join(name)))
        .find(|program| program.is_file())
}

/// A running browser; it is killed when this is dropped.
#[derive(Debug)]
pub struct Browser {
    child: Child,
}

impl Browser {
    /// Starts `program` on the page of `server`, with its profile in `profile`, in `namespace`. It
    /// also ends when the calling thread ends. The page itself reports its load time to the server.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(
        program: &Path,
        server: SocketAddr,
        profile: &Profile,
        namespace: &Namespace,
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(FLAGS);
        // Its own sandbox needs namespaces that root, as which we run here, may not make again.
        command.arg("--no-sandbox");
        command.arg(format!("--user-data-dir={}", profile.path.display()));
        command.arg("--remote-debugging-port=0");
        command.arg(format!("http://{server}/"));
        let child = namespace
            .command(&mut command)?
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { child })
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory for a browser's profile. It is removed when this is dropped, or soon after this
/// process is killed.
#[derive(Debug)]
pub struct Profile {
    path: PathBuf,
    /// A shell that removes the directory when our end of its input is closed.
    keeper: Child,
}

/// The shell's script. It waits for the end of its input, which is the end of this process, and
/// removes the directory it was given. It repeats this while a browser that is ending still writes
/// there. Signals from the terminal do not end it.
const KEEPER: &str = "trap '' HUP INT TERM; read -r _; \
    for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- \"$0\" 2>/dev/null && exit; sleep 0.2; done";

impl Profile {
    /// Makes a directory among the system's temporary files.
    ///
    /// # Errors
    /// It cannot be made, or there is no shell.
    pub fn new() -> io::Result<Self> {
        let name = format!("headend-browser-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let keeper = Command::new("sh")
            .args(["-c", KEEPER])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let profile = Self { path, keeper };
        std::fs::create_dir_all(&profile.path)?;
        Ok(profile)
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
