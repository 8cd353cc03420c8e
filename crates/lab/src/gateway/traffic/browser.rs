//! The page in headless Chromium, where there is one.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use reactor::namespace::Namespace;

/// What Chromium is called.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// What keeps it from doing anything but our page.
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

/// A browser on this machine's path.
#[must_use]
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|directory| NAMES.map(|name| directory.join(name)))
        .find(|program| program.is_file())
}

/// A browser that shows the page; it is ended when this is dropped.
#[derive(Debug)]
pub struct Browser {
    child: Child,
}

impl Browser {
    /// Starts `program` on the page of `server`, with its profile in `profile`, in `namespace`; it is ended when the
    /// calling thread ends too. How long the page took, the page itself tells its server.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(
        program: &Path,
        server: SocketAddr,
        profile: &Path,
        namespace: &Namespace,
    ) -> std::io::Result<Self> {
        let mut command = Command::new(program);
        command.args(FLAGS);
        // Its own sandbox needs namespaces that root, and we, may not make again.
        command.arg("--no-sandbox");
        command.arg(format!("--user-data-dir={}", profile.display()));
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
        // One that has ended by itself needs no end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
