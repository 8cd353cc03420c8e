//! Tests `headend web` as a process: docs/web.md, its start, and what a service manager passes to it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::pages;
use crate::support::{Daemon, Directory, HEADEND};

/// A running server; killed when this is dropped.
struct Web(Child);

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The body of an answer with status 200.
fn get(server: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(server).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {text}");
    body.to_owned()
}

#[test]
fn a_service_manager_opens_the_socket_and_hears_that_it_serves() {
    let directory = Directory::new();
    let (daemon, _) = Daemon::lns(&directory, "");
    let told = directory.path("notify");
    let notify = UnixDatagram::bind(&told).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    // The shell makes descriptor 3 of its input, and keeps its process id.
    let script = "exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\"";
    let child = Command::new("sh")
        .args(["-c", script, HEADEND, "web", "--socket"])
        .arg(&daemon.socket)
        .env("NOTIFY_SOCKET", &told)
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _web = Web(child);
    let mut heard = [0; 64];
    let length = notify.recv(&mut heard).unwrap();
    assert_eq!(&heard[..length], b"READY=1\n");
    let info: Value = serde_json::from_str(&get(server, "/api/info")).unwrap();
    assert_eq!(info["schema"], "web.info/1");
    let pools: Value = serde_json::from_str(&get(server, "/api/pools")).unwrap();
    assert_eq!(pools["rows"][0]["schema"], "pool.outside/1");
    assert!(get(server, "/").contains("<!doctype html>"));
    assert!(get(server, "/metrics").contains("\nheadend_up "));
}

#[test]
fn what_may_not_be_open_is_refused_with_a_remedy() {
    let directory = Directory::new();
    let token = directory.write("token", "0123456789abcdef");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
    let token = token.to_str().unwrap();
    for (flags, status, message) in [
        (&["--listen", "0.0.0.0:0"][..], 1, "add --token-file FILE"),
        (
            &["--listen", "0.0.0.0:0", "--token-file", token],
            1,
            "add --tls-cert FILE",
        ),
        (
            &["--listen", "127.0.0.1:0", "--token-file", token],
            1,
            "chmod 600",
        ),
        (
            &["--listen", "192.0.2.1:0", "--insecure-http"],
            1,
            "add --token-file FILE",
        ),
        (&["--listen", "8080"], 2, "--listen"),
        (&["--tls-cert", "x"], 2, "--tls-key"),
        (&["--client-ca", "x"], 2, "--tls-cert"),
    ] {
        let ended = Command::new(HEADEND)
            .arg("web")
            .args(flags)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(status), "{flags:?}: {said}");
        assert!(said.contains(message), "{flags:?}: {said}");
        assert!(ended.stdout.is_empty(), "{flags:?}");
    }
}

#[test]
fn every_command_of_the_page_of_web_runs() {
    // Other processes may use the page's ports here.
    let free = || {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().to_string()
    };
    let (lns, page, secret) = (free(), free(), free());
    let instead = [
        ("127.0.0.1:17010", lns.as_str()),
        ("127.0.0.1:8080", page.as_str()),
        ("127.0.0.1:8081", secret.as_str()),
    ];
    let done = pages::run("web.md", &instead, |_, _| ());
    assert!(done.files == 1 && done.commands == 5, "{done:?}");
}
