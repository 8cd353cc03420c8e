//! A directory of one test, and a shaper between two hosts in namespaces.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use reactor::clock;
use reactor::namespace::{Namespace, veth};
use reactor::port::offloads::OffloadsOff;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

pub(crate) const HEADEND: &str = env!("CARGO_BIN_EXE_headend");

/// Timeout for everything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A policy whose rates are above what the tests send.
pub(crate) const POLICY: &str = "[link]\nup = \"80mbit\"\ndown = \"90mbit\"\noverhead = \"none\"\n\
    [[first]]\nname = \"names\"\nport = 53\n";

/// A directory with the files that the page's commands read.
pub(crate) struct Home(pub(crate) PathBuf);

impl Home {
    pub(crate) fn new(name: &str) -> Self {
        let home = std::env::temp_dir().join(format!("headend-qos-{name}-{}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tc");
        for entry in fs::read_dir(data).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), home.join(entry.file_name())).unwrap();
        }
        Self(home)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(HEADEND);
        command
            .arg("qos")
            .args(words)
            .current_dir(&self.0)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Polls until `look` returns a value.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Hosts `a` (192.0.2.1) and `b` (192.0.2.2), with `lan0` and `wan0` of the middle host between them, and files.
pub(crate) struct Bench {
    pub(crate) home: Home,
    pub(crate) a: Namespace,
    pub(crate) b: Namespace,
    pub(crate) middle: Namespace,
}

impl Bench {
    pub(crate) fn new(name: &str) -> Self {
        let new = || Namespace::new().expect("root, or leave to make namespaces");
        let (a, b, middle) = (new(), new(), new());
        for namespace in [&a, &b, &middle] {
            // A kernel without IPv6 has nothing to turn off.
            let _ = namespace.set("ipv6/conf/default/disable_ipv6", "1");
        }
        veth((&a, "eth0"), (&middle, "lan0")).unwrap();
        veth((&b, "eth0"), (&middle, "wan0")).unwrap();
        for name in ["lan0", "wan0"] {
            middle.netlink().unwrap().set_up(name, true).unwrap();
        }
        for (namespace, address) in [(&a, "192.0.2.1"), (&b, "192.0.2.2")] {
            let mut netlink = namespace.netlink().unwrap();
            netlink.set_up("eth0", true).unwrap();
            let address: IpAddr = address.parse().unwrap();
            netlink.add_address("eth0", address, 24).unwrap();
            let patience = base::Duration::from_secs(10);
            netlink.wait_until_running("eth0", patience).unwrap();
        }
        let home = Home::new(name);
        home.write("policy.toml", POLICY);
        Self { home, a, b, middle }
    }

    /// Runs a command on the middle host.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.home.command(words);
        self.middle.command(&mut command).unwrap();
        command
    }

    /// The arguments of `run` between both interfaces.
    pub(crate) const RUN: [&str; 9] = [
        "run",
        "--policy",
        "policy.toml",
        "--lan",
        "lan0",
        "--wan",
        "wan0",
        "--socket",
        "control",
    ];

    /// Starts a shaper, and waits for its first line.
    pub(crate) fn start(&self) -> Shaper {
        let mut command = self.command(&Self::RUN);
        let errors = self.home.path("errors");
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&errors).unwrap())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        out.read_line(&mut said).unwrap();
        assert!(
            said.starts_with("lan0 <-> wan0: up "),
            "{said}{}",
            fs::read_to_string(&errors).unwrap()
        );
        let shaper = Shaper {
            child,
            out,
            said,
            errors,
        };
        until("an answer", || {
            self.ask(&["show", "--totals"])
                .status
                .success()
                .then_some(())
        });
        shaper
    }

    /// Sends the shaper a request.
    pub(crate) fn ask(&self, words: &[&str]) -> Output {
        let words = [words, &["--socket", "control"]].concat();
        self.home.run(&words)
    }

    /// The current state, rather than a cached snapshot.
    pub(crate) fn shown(&self) -> Value {
        let asked = clock::now().as_nanos();
        until("a fresh look", || {
            let output = self.ask(&["show", "--json", "--totals"]);
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{errors}");
            let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
            (shown["taken_ns"].as_u64().unwrap() >= asked).then_some(shown)
        })
    }

    /// The offloads that are on at an interface of the middle host.
    pub(crate) fn offloads(&self, name: &str) -> Vec<&'static str> {
        let on = || OffloadsOff::new(name).unwrap().turned_off().collect();
        self.middle.run(on).unwrap()
    }

    /// A socket of `a` that sends to one of `b`.
    pub(crate) fn sockets(&self) -> (UdpSocket, UdpSocket) {
        let bind = |address: &'static str| move || UdpSocket::bind(address).unwrap();
        let sender = self.a.run(bind("192.0.2.1:4000")).unwrap();
        let receiver = self.b.run(bind("192.0.2.2:5000")).unwrap();
        sender.connect("192.0.2.2:5000").unwrap();
        receiver.set_read_timeout(Some(PATIENCE)).unwrap();
        (sender, receiver)
    }
}

/// A running shaper; killed if the test does not end it.
pub(crate) struct Shaper {
    child: Child,
    out: BufReader<ChildStdout>,
    /// The first line that it printed.
    pub(crate) said: String,
    errors: PathBuf,
}

impl Shaper {
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Its process id.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Its standard error so far.
    pub(crate) fn errors(&self) -> String {
        fs::read_to_string(&self.errors).unwrap()
    }

    /// Waits for it to end; returns the status and the standard output after the first line.
    pub(crate) fn end(&mut self) -> (ExitStatus, String) {
        let status = until("the end", || self.child.try_wait().unwrap());
        let mut said = String::new();
        self.out.read_to_string(&mut said).unwrap();
        (status, said)
    }
}

impl Drop for Shaper {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
