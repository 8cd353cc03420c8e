//! Tests that `headend lab use` judges the loop of a live daemon.

use std::net::UdpSocket;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::support::{Daemon, Directory, HEADEND};

/// The row of the daemon's loop; the other rows are those of the host.
fn row_of_the_loop(daemon: &Daemon) -> Value {
    let output = Command::new(HEADEND)
        .args(["lab", "use", "--json", "--interval", "0.5", "--socket"])
        .arg(&daemon.socket)
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["resource"] == "daemon loop");
    row.expect("a row of the loop").clone()
}

#[test]
fn the_loop_of_a_flooded_daemon_is_busier_than_that_of_an_idle_one() {
    let directory = Directory::new();
    let (lns, address) = Daemon::lns(&directory, "");
    let idle = row_of_the_loop(&lns);
    assert_eq!(idle["shown_by"], "headend show event poll");
    let is_done = AtomicBool::new(false);
    let flooded = std::thread::scope(|scope| {
        scope.spawn(|| {
            let flood = UdpSocket::bind("127.0.0.1:0").unwrap();
            while !is_done.load(Ordering::Relaxed) {
                flood.send_to(&[0; 100], &address).unwrap();
            }
        });
        let row = row_of_the_loop(&lns);
        is_done.store(true, Ordering::Relaxed);
        row
    });
    assert!(
        idle["value"].as_f64() < flooded["value"].as_f64(),
        "{idle} {flooded}"
    );
    assert_ne!(flooded["verdict"], "unknown");
    // Without a daemon, the figure is unknown.
    drop(lns);
    let output = Command::new(HEADEND)
        .args(["lab", "use", "--interval", "0.1", "--socket"])
        .arg(directory.path("nothing"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.starts_with("daemon loop"));
    assert!(
        line.is_some_and(|line| line.contains(" - unknown ")),
        "{text}"
    );
}
