//! Tests what a service manager such as systemd sees of the daemon. The test is the manager: it supplies the variables
//! and reads the messages.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Daemon, Directory, bare, shell};

const LNS: &str = "[lns]\nlisten = [\"127.0.0.1:0\"]\n";

/// The manager's end of the notify socket.
struct Manager(UnixDatagram);

impl Manager {
    fn at_path(directory: &Directory) -> (Self, String) {
        let path = directory.path("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        (Self::new(socket), path.display().to_string())
    }

    fn at_name(directory: &Directory) -> (Self, String) {
        let name = directory.path("notify").display().to_string();
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        (Self::new(socket), format!("@{name}"))
    }

    fn new(socket: UnixDatagram) -> Self {
        socket
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Self(socket)
    }

    fn next(&self) -> String {
        let mut octets = [0; 1024];
        let length = self.0.recv(&mut octets).expect("a message comes in time");
        String::from_utf8_lossy(&octets[..length]).into_owned()
    }

    /// The next message that contains `text`.
    fn await_message(&self, text: &str) -> String {
        let started = Instant::now();
        loop {
            let message = self.next();
            if message.contains(text) {
                return message;
            }
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "{text}: {message}"
            );
        }
    }

    /// Reads what has arrived, and returns how many watchdog messages are among it.
    fn beats(&self) -> usize {
        self.0.set_nonblocking(true).unwrap();
        let mut octets = [0; 1024];
        let mut beats = 0;
        loop {
            match self.0.recv(&mut octets) {
                Ok(length) => beats += usize::from(&octets[..length] == b"WATCHDOG=1"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    self.0.set_nonblocking(false).unwrap();
                    return beats;
                }
            }
        }
    }
}

#[test]
fn readiness_reloads_and_the_end_are_reported() {
    let directory = Directory::new();
    let (manager, address) = Manager::at_path(&directory);
    let mut command = bare();
    command.env("NOTIFY_SOCKET", &address);
    let mut lns = Daemon::start_by(command, &directory, "lns", LNS);
    assert_eq!(manager.next(), "READY=1\nSTATUS=0 subscribers");

    let is_reload = |message: &str| {
        let micros = message.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
        micros.is_some_and(|micros| micros.parse::<u64>().is_ok())
    };
    lns.signal("HUP");
    let message = manager.next();
    assert!(is_reload(&message), "{message}");
    assert_eq!(manager.next(), "READY=1\nSTATUS=0 subscribers");

    // A file with a fault changes nothing; the state says so.
    let good = std::fs::read_to_string(directory.path("lns.toml")).unwrap();
    directory.write("lns.toml", &good.replace("listen", "listens"));
    assert_eq!(lns.cli("reload").status.code(), Some(1));
    let message = manager.next();
    assert!(is_reload(&message), "{message}");
    let message = manager.next();
    let refused = "READY=1\nSTATUS=0 subscribers; the last reload changed nothing: ";
    assert!(message.starts_with(refused), "{message}");
    assert!(message.contains("lns.listen"), "{message}");

    directory.write("lns.toml", &good);
    assert_eq!(lns.cli("reload").status.code(), Some(0));
    assert!(is_reload(&manager.next()));
    assert_eq!(manager.next(), "READY=1\nSTATUS=0 subscribers");

    // While a reload waits for its confirmation, a signal is answered too, and the undo is a reload.
    assert_eq!(lns.cli("reload --timeout 1").status.code(), Some(0));
    assert!(is_reload(&manager.next()));
    assert!(manager.next().starts_with("READY=1"));
    lns.signal("HUP");
    assert!(is_reload(&manager.next()));
    let message = manager.next();
    assert!(message.contains("unless it is confirmed"), "{message}");
    assert!(is_reload(&manager.next()));
    assert_eq!(manager.next(), "READY=1\nSTATUS=0 subscribers");

    lns.signal("TERM");
    let message = manager.next();
    assert!(
        message.starts_with("STOPPING=1\nEXTEND_TIMEOUT_USEC="),
        "{message}"
    );
    assert_eq!(lns.wait().code(), Some(0));
    assert_eq!(manager.beats(), 0, "there is no watchdog");
}

#[test]
fn the_watchdog_beats_on_an_idle_loop_and_not_on_one_that_hangs() {
    let directory = Directory::new();
    let (manager, address) = Manager::at_name(&directory);
    // The log is a pipe. When it is full, the handler that writes to it hangs until the test reads it.
    let log = directory.path("pipe");
    let made = Command::new("mkfifo").arg(&log).status().unwrap();
    assert!(made.success());
    let mut reader = File::options().read(true).write(true).open(&log).unwrap();
    let mut command = shell(&format!("exec \"$0\" \"$@\" 2>{}", log.display()));
    command.env("NOTIFY_SOCKET", &address);
    command.env("WATCHDOG_USEC", "200000");
    let lns = Daemon::start_by(command, &directory, "lns", LNS);
    manager.await_message("READY=1");
    for _ in 0..3 {
        manager.await_message("WATCHDOG=1");
    }

    // Each reload writes to the log.
    let mut client = UnixStream::connect(&lns.socket).unwrap();
    std::thread::spawn(move || {
        let request = format!("{}\n", json!({"v": 1, "id": 1, "do": "reload"}));
        while client.write_all(request.as_bytes()).is_ok()
            && client.read(&mut [0; 4096]).is_ok_and(|length| length > 0)
        {}
    });
    let started = Instant::now();
    loop {
        manager.beats();
        std::thread::sleep(Duration::from_millis(500));
        if manager.beats() == 0 {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "it beats on");
    }
    std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    manager.await_message("WATCHDOG=1");
}

#[test]
fn the_control_socket_of_the_manager_is_served_and_left_in_place() {
    let directory = Directory::new();
    let path = directory.path("lns.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let mut command = shell("exec 3<&0 </dev/null; LISTEN_PID=$$ exec \"$0\" \"$@\"");
    command
        .env("LISTEN_FDS", "1")
        .env("LISTEN_FDNAMES", "control")
        .stdin(Stdio::from(OwnedFd::from(listener)));
    let mut lns = Daemon::start_by(command, &directory, "lns", LNS);
    assert_eq!(lns.client().stats()["pid"], lns.pid());
    lns.signal("TERM");
    assert_eq!(lns.wait().code(), Some(0), "{}", lns.log());
    assert!(path.exists(), "the file is the manager's");
}
