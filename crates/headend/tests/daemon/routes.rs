//! Tests routes: docs/bgp.md, and a BGP session between two daemons.

use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::pages;
use crate::support::HEADEND;

#[test]
fn every_command_of_the_page_runs() {
    // Another process may use the page's port here.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let address = format!("127.0.0.1:{port}");
    let key = format!("port = {port}");
    let instead = [
        ("127.0.0.1:1790", address.as_str()),
        ("port = 1790", key.as_str()),
    ];
    let done = pages::run("bgp.md", &instead, |home, command| {
        // The page's `show` commands need an established session, which takes a moment.
        let socket = home.join("router.sock");
        if command.starts_with("headend show bgp summary")
            || command.starts_with("headend bgp refresh")
        {
            until_shown(&socket, "203.0.113.0/24");
        }
    });
    assert!(done.files == 3 && done.commands > 20, "{done:?}");
}

/// Waits until a route is shown.
fn until_shown(socket: &std::path::Path, route: &str) {
    let begun = Instant::now();
    loop {
        let shown = Command::new(HEADEND)
            .args(["show", "bgp", "route", "--socket"])
            .arg(socket)
            .output()
            .unwrap();
        if String::from_utf8_lossy(&shown.stdout).contains(route) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{shown:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
