//! Runs daemons as processes of this binary, in a directory of their own: LNS and LAC, or others. They are always
//! ended: after the experiment, by a signal or by a panic.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use reactor::namespace::Namespace;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use cli::interrupt::{self, AtEnd};
use control::client::Client;
use control::request::{Do, Nothing};
use control::rows::Server;

/// How long a daemon may take to open its control socket, or to end.
const PATIENCE: Duration = Duration::from_secs(15);

/// A daemon, reached by its control socket.
pub struct End {
    /// Its control socket.
    pub client: Client,
}

/// A daemon's resource use at one moment, and its loop's counters.
pub struct Measured {
    /// The daemon's own counters.
    pub stats: Server,
    /// The rows of `show event cpu`.
    pub handlers: Vec<Value>,
}

impl End {
    /// The listen address of the LNS.
    pub fn address(&mut self) -> Result<SocketAddr> {
        self.stats()?
            .lns
            .first()
            .copied()
            .context("the LNS listens nowhere")
    }

    /// The row of `show server`.
    ///
    /// # Errors
    /// The daemon does not answer.
    pub fn stats(&mut self) -> Result<Server> {
        self.client.one(&Do::ServerStats(Nothing {}))
    }

    /// The daemon's resource use so far.
    ///
    /// # Errors
    /// The daemon does not answer.
    pub fn measure(&mut self) -> Result<Measured> {
        let stats = self.stats()?;
        let mut handlers = Vec::new();
        self.client.rows(&Do::ShowEventCpu(Nothing {}), |row| {
            handlers.push(serde_json::from_str(row)?);
            Ok(())
        })?;
        Ok(Measured { stats, handlers })
    }

    /// All its counters, by name.
    pub fn counters(&mut self) -> Result<HashMap<String, u64>> {
        let mut counters = HashMap::new();
        self.client.rows(&Do::ShowCounters(Nothing {}), |row| {
            let row: Counter = serde_json::from_str(row)?;
            counters.insert(row.name, row.value);
            Ok(())
        })?;
        Ok(counters)
    }
}

/// The fields of a counter's row that are used.
#[derive(serde::Deserialize)]
struct Counter {
    name: String,
    value: u64,
}

/// Settings that both daemons are started with, LNS first.
pub struct Setup<'a> {
    /// Their configurations without `[control]` and `[log]`.
    pub configs: [&'a str; 2],
    /// Name and content of a file besides the configurations, readable only by its owner.
    pub file: Option<(&'a str, &'a str)>,
    /// The namespaces in which they run, if not in this one.
    pub namespaces: Option<[&'a Namespace; 2]>,
}

/// A daemon to start.
pub struct Daemon<'a> {
    /// The name of its files.
    pub name: &'static str,
    /// Its configuration without `[control]` and `[log]`.
    pub config: &'a str,
    /// The namespace in which it runs, if not in this one.
    pub namespace: Option<&'a Namespace>,
}

/// Daemons that run.
pub struct Ends {
    at_end: Option<AtEnd>,
    home: Arc<Mutex<Home>>,
}

/// Processes and files that must be removed at the end.
struct Home {
    directory: PathBuf,
    children: Vec<(&'static str, Child)>,
}

impl Ends {
    /// Starts both in this namespace, LNS first, with `configs`: the sections other than
    /// `[control]` and `[log]`.
    pub fn start(configs: [&str; 2]) -> Result<Self> {
        Self::set_up(&Setup {
            configs,
            file: None,
            namespaces: None,
        })
    }

    /// Starts both, LNS first.
    pub fn set_up(setup: &Setup<'_>) -> Result<Self> {
        let daemon = |place: usize, name| Daemon {
            name,
            config: setup.configs[place],
            namespace: setup.namespaces.map(|namespaces| namespaces[place]),
        };
        let files: Vec<_> = setup.file.into_iter().collect();
        Self::start_all(&[daemon(0, "lns"), daemon(1, "lac")], &files)
    }

    /// Starts daemons in this order, with files besides the configurations: name and content, readable only by their
    /// owner.
    ///
    /// # Errors
    /// A file cannot be written, or a process cannot be started.
    pub fn start_all(daemons: &[Daemon<'_>], files: &[(&str, &str)]) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("headend-ends-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let home = Arc::new(Mutex::new(Home {
            directory: directory.clone(),
            children: Vec::new(),
        }));
        let at_end = {
            let home = Arc::clone(&home);
            interrupt::at_end(move || lock(&home).clean_up())?
        };
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        let ends = Self {
            at_end: Some(at_end),
            home,
        };
        for (name, content) in files {
            write_private(&lock(&ends.home).directory.join(name), content)?;
        }
        for daemon in daemons {
            lock(&ends.home).spawn(daemon)?;
        }
        Ok(ends)
    }

    /// Connects to the LNS.
    ///
    /// # Errors
    /// The daemon does not answer.
    pub fn lns(&self) -> Result<End> {
        self.connect("lns")
    }

    /// Connects to the LAC.
    ///
    /// # Errors
    /// The daemon does not answer.
    pub fn lac(&self) -> Result<End> {
        self.connect("lac")
    }

    /// Connects to the daemon of this name once it listens.
    ///
    /// # Errors
    /// The daemon has ended; the text has its log. Or it does not answer.
    pub fn connect(&self, name: &str) -> Result<End> {
        let socket = lock(&self.home).path(name, "sock");
        let started = Instant::now();
        loop {
            match Client::connect(&socket) {
                Ok(client) => return Ok(End { client }),
                Err(error) if started.elapsed() > PATIENCE => return Err(error),
                Err(_) => lock(&self.home).check()?,
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether all run.
    ///
    /// # Errors
    /// A daemon has ended; the text has its log.
    pub fn check(&self) -> Result<()> {
        lock(&self.home).check()
    }

    /// Ends all cleanly.
    ///
    /// # Errors
    /// One did not end, or ended with an error.
    pub fn stop(&self) -> Result<()> {
        let mut home = lock(&self.home);
        let children = std::mem::take(&mut home.children);
        for (_, child) in &children {
            signal(child);
        }
        let mut ended_well = true;
        for (_, mut child) in children {
            ended_well &= end_of(&mut child)?;
        }
        home.clean_up();
        if ended_well {
            Ok(())
        } else {
            bail!("a daemon did not end in good order")
        }
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        // While a signal ends the daemons, this waits for the end of the process. Their failure is then not reported.
        self.at_end = None;
        lock(&self.home).clean_up();
    }
}

impl Home {
    fn path(&self, name: &str, extension: &str) -> PathBuf {
        self.directory.join(name).with_extension(extension)
    }

    fn spawn(&mut self, daemon: &Daemon<'_>) -> Result<()> {
        let name = daemon.name;
        let config = self.path(name, "toml");
        let text = configuration(&self.path(name, "sock"), daemon.config);
        write_private(&config, &text)?;
        let log = fs::File::create(self.path(name, "log"))?;
        let program = std::env::current_exe().context("this program's own file is not known")?;
        let mut command = Command::new(program);
        if let Some(namespace) = daemon.namespace {
            namespace.command(&mut command)?;
        }
        let child = command
            .arg("run")
            .arg("--config")
            .arg(&config)
            .arg("--with-parent")
            .arg(std::process::id().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("cannot start a daemon")?;
        self.children.push((name, child));
        Ok(())
    }

    /// Fails with a daemon's log if the daemon has ended.
    fn check(&mut self) -> Result<()> {
        for (name, child) in &mut self.children {
            if let Some(status) = child.try_wait()? {
                let said = fs::read_to_string(self.directory.join(*name).with_extension("log"));
                bail!(
                    "the daemon {name} ended ({status}): {}",
                    said.unwrap_or_default().trim()
                );
            }
        }
        Ok(())
    }

    fn clean_up(&mut self) {
        for (_, mut child) in self.children.drain(..) {
            // Both fail only if it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Writes a file that may hold secrets.
fn write_private(path: &Path, content: &str) -> Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options
        .open(path)
        .and_then(|mut file| file.write_all(content.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}

fn configuration(socket: &Path, sections: &str) -> String {
    let socket = Value::from(socket.to_string_lossy());
    format!("[control]\nsocket = {socket}\n[log]\nlevel = \"warn\"\nto = \"stderr\"\n{sections}")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks a daemon to end.
fn signal(child: &Child) {
    if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
        // It fails only if it has ended already.
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Waits until a daemon has ended; returns whether it ended without error.
fn end_of(child: &mut Child) -> Result<bool> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if started.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
