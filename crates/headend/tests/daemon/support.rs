//! Starts daemons of the built binary, on loopback and in a separate directory.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use reactor::namespace::Namespace;
use serde_json::{Value, json};

/// The binary under test.
pub(crate) const HEADEND: &str = env!("CARGO_BIN_EXE_headend");

/// Timeout for everything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory of one test, removed at its end.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("headend-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Makes an empty file that others may not read. It keeps its mode when it is written: files with a secret need it.
    pub(crate) fn private(&self, name: &str) {
        let path = self.write(name, "");
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The socket and the log of a daemon that is to be started.
struct Place {
    socket: PathBuf,
    log: PathBuf,
}

impl Place {
    fn spawn(self, mut command: Command, namespace: Option<&Namespace>, name: &str) -> Daemon {
        let Self { socket, log } = self;
        let log_file = fs::File::create(&log).unwrap();
        if let Some(namespace) = namespace {
            namespace.command(&mut command).unwrap();
        }
        let child = command
            .stdout(Stdio::null())
            .stderr(log_file)
            .spawn()
            .unwrap();
        let mut daemon = Daemon { child, socket, log };
        let started = Instant::now();
        while UnixStream::connect(&daemon.socket).is_err() {
            let ended = daemon.child.try_wait().unwrap();
            assert!(ended.is_none(), "{name} ended: {}", daemon.log());
            assert!(
                started.elapsed() < PATIENCE,
                "{name} does not listen: {}",
                daemon.log()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        daemon
    }
}

/// Executes the rest of its command line, with the variables that the test adds.
pub(crate) fn bare() -> Command {
    let mut command = Command::new("env");
    command.stdin(Stdio::null());
    command
}

/// A shell that runs `script`, with the rest of the command line in `$0` and `$@`.
pub(crate) fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null());
    command
}

/// A running daemon; killed if the test does not end it.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) socket: PathBuf,
    log: PathBuf,
}

impl Daemon {
    /// Starts a daemon whose configuration has `sections` and `[control]`, and waits until it listens.
    pub(crate) fn start(directory: &Directory, name: &str, sections: &str) -> Self {
        Self::start_limited(directory, name, sections, None)
    }

    /// The same with a limit on open descriptors.
    pub(crate) fn start_limited(
        directory: &Directory,
        name: &str,
        sections: &str,
        descriptors: Option<u32>,
    ) -> Self {
        let command = match descriptors {
            None => bare(),
            Some(limit) => shell(&format!("ulimit -n {limit} && exec \"$0\" \"$@\"")),
        };
        Self::start_by(command, directory, name, sections)
    }

    /// The same by a command that executes its arguments, [`bare`] or [`shell`].
    pub(crate) fn start_by(
        command: Command,
        directory: &Directory,
        name: &str,
        sections: &str,
    ) -> Self {
        let (place, command) = Self::prepare(command, directory, name, sections);
        place.spawn(command, None, name)
    }

    fn prepare(
        mut command: Command,
        directory: &Directory,
        name: &str,
        sections: &str,
    ) -> (Place, Command) {
        let socket = directory.path(&format!("{name}.sock"));
        let config = format!(
            "[control]\nsocket = {:?}\n[log]\nto = \"stderr\"\nlevel = \"debug\"\n{sections}",
            socket.display().to_string()
        );
        let config = directory.write(&format!("{name}.toml"), &config);
        let log = directory.path(&format!("{name}.log"));
        command.arg(HEADEND);
        command.arg("run").arg("--config").arg(&config);
        (Place { socket, log }, command)
    }

    /// Starts a daemon in a network namespace.
    pub(crate) fn start_in(
        namespace: &Namespace,
        directory: &Directory,
        name: &str,
        sections: &str,
    ) -> Self {
        let (daemon, command) = Self::prepare(bare(), directory, name, sections);
        daemon.spawn(command, Some(namespace), name)
    }

    /// Starts an LNS on a free port of 127.0.0.1; returns it and its address.
    pub(crate) fn lns(directory: &Directory, more: &str) -> (Self, String) {
        let lns = Self::start(
            directory,
            "lns",
            &format!("[lns]\nlisten = [\"127.0.0.1:0\"]\n{more}"),
        );
        let address = lns.client().stats()["lns"][0].as_str().unwrap().to_owned();
        (lns, address)
    }

    /// Starts a LAC at 127.0.0.1.
    pub(crate) fn lac(directory: &Directory, more: &str) -> Self {
        Self::start(
            directory,
            "lac",
            &format!("[lac]\nlisten = [\"127.0.0.1:0\"]\n{more}"),
        )
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.socket)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a line of the log contains `text`.
    #[track_caller]
    pub(crate) fn await_log(&self, text: &str) {
        let started = Instant::now();
        while !self.log().contains(text) {
            let passed = started.elapsed();
            assert!(passed < Duration::from_secs(60), "{text}: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill")
            .args([&format!("-{name}"), &pid])
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Waits for the daemon to end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "it does not end: {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Runs a subcommand against the daemon.
    pub(crate) fn cli(&self, line: &str) -> Output {
        let words = line.split_ascii_whitespace();
        Command::new(HEADEND)
            .args(words)
            .arg("--socket")
            .arg(&self.socket)
            .output()
            .unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection to a control socket.
pub(crate) struct Client {
    reader: BufReader<UnixStream>,
    next_id: u64,
}

impl Client {
    pub(crate) fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            reader: BufReader::new(stream),
            next_id: 1,
        }
    }

    /// Sends a line unchanged.
    pub(crate) fn send_raw(&mut self, line: &[u8]) {
        self.reader.get_mut().write_all(line).unwrap();
    }

    /// Closes the sending side.
    pub(crate) fn say_no_more(&self) {
        let side = std::net::Shutdown::Write;
        self.reader.get_ref().shutdown(side).unwrap();
    }

    /// Sends a request and returns its id.
    pub(crate) fn send(&mut self, mut request: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        request["v"] = 1.into();
        request["id"] = id.into();
        self.send_raw(format!("{request}\n").as_bytes());
        id
    }

    /// The next line; `None` at the end of the connection.
    pub(crate) fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self
            .reader
            .read_line(&mut line)
            .expect("an answer comes in time");
        (read > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Sends a request and returns its lines up to and including the last.
    pub(crate) fn ask(&mut self, request: Value) -> Vec<Value> {
        let id = self.send(request);
        let mut lines = Vec::new();
        loop {
            let line = self.next().expect("the connection stays open");
            assert_eq!(line["id"], id, "{line}");
            let is_last = line.get("end").is_some() || line.get("ok").is_some();
            lines.push(line);
            if is_last {
                return lines;
            }
        }
    }

    /// The rows of a `show`.
    pub(crate) fn rows(&mut self, verb: &str) -> Vec<Value> {
        let mut lines = self.ask(json!({"do": verb}));
        let end = lines.pop().unwrap();
        assert_eq!(end["rows"], lines.len(), "{end}");
        lines
            .into_iter()
            .map(|mut line| line["row"].take())
            .collect()
    }

    pub(crate) fn stats(&mut self) -> Value {
        self.rows("server.stats").remove(0)
    }

    /// Polls the statistics until they satisfy the condition.
    pub(crate) fn await_stats(&mut self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let started = Instant::now();
        loop {
            let stats = self.stats();
            if is_so(&stats) {
                return stats;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "waited in vain until {what}: {stats}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Creates tunnels, waits for them, and returns the reply's lines without the last.
    pub(crate) fn create(
        &mut self,
        peer: &str,
        version: u8,
        count: u32,
        more: Value,
    ) -> Vec<Value> {
        let mut request =
            json!({"do": "tunnel.create", "peer": peer, "version": version, "count": count});
        for (key, value) in more.as_object().unwrap() {
            request[key] = value.clone();
        }
        let mut lines = self.ask(request);
        let end = lines.pop().unwrap();
        assert_eq!(end["rows"], count, "{end}");
        lines
    }
}
