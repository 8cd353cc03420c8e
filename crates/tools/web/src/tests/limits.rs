//! Peers that misbehave.

use std::io::Write;

use serde_json::json;

use super::client::{get, get_with, read, send};
use super::{Directory, start};

#[test]
fn the_page_is_served_and_nothing_else_of_the_disk() {
    let directory = Directory::new("page");
    let server = start(&directory.socket(), &[]);
    let page = get(server, "/");
    assert_eq!(
        (page.status, page.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    let tag = page.header("etag").unwrap();
    let again = get_with(server, "/", &format!("If-None-Match: {tag}\r\n"));
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    for list in [format!("\"other\", {tag}"), format!("W/{tag}"), "*".into()] {
        let again = get_with(server, "/", &format!("If-None-Match: {list}\r\n"));
        assert_eq!(again.status, 304, "{list}");
    }
    let other = get_with(server, "/", "If-None-Match: \"other\", W/\"another\"\r\n");
    assert_eq!(other.status, 200);
    for path in [
        "/assets/%ff%fe",
        "/assets/../Cargo.toml",
        "/assets/..%2fCargo.toml",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "/assets//etc/passwd",
        "/../../../etc/passwd",
        "/assets/index.html%00.js",
        "/assets/",
    ] {
        let got = get(server, path);
        assert_eq!(
            (got.status, &got.json()["error"]["code"]),
            (404, &json!("not-found")),
            "{path}"
        );
    }
}

#[test]
fn a_body_of_a_gigabyte_is_refused_unread() {
    let directory = Directory::new("body");
    let server = start(&directory.socket(), &[]);
    let head = "GET /api/info HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n";
    let mut stream = send(server, head);
    // Whether the server takes some of it is its own affair; it must not take all.
    let piece = vec![b'x'; 1 << 16];
    let sent = (0..16_384)
        .take_while(|_| stream.write_all(&piece).is_ok())
        .count();
    assert!(sent < 16_384);
    let head = format!("{head}some");
    let got = read(send(server, &head));
    assert_eq!(
        (got.status, &got.json()["error"]["code"]),
        (413, &json!("too-large"))
    );
}

#[test]
fn nonsense_ends_its_own_connection_only() {
    let directory = Directory::new("nonsense");
    let server = start(&directory.socket(), &[]);
    let huge = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "x".repeat(100_000)
    );
    let large = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: {}\r\n\r\n",
        "x".repeat(32 * 1024)
    );
    let many = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        "X: y\r\n".repeat(200)
    );
    for (text, status) in [
        ("hello\r\n\r\n", 400),
        (huge.as_str(), 431),
        (large.as_str(), 431),
        (many.as_str(), 431),
        (
            "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: x\r\n\r\n",
            400,
        ),
    ] {
        let got = read(send(server, text));
        assert_eq!(got.status, status, "{}", &text[..text.len().min(60)]);
    }
    assert_eq!(get(server, "/").status, 200);
}

#[test]
fn a_thousand_connections_leave_the_server_alive() {
    let directory = Directory::new("thousand");
    let server = start(&directory.socket(), &[]);
    let idle: Vec<_> = (0..1000).map(|_| send(server, "GET / HTT")).collect();
    let turned_away = read(send(server, ""));
    assert_eq!(turned_away.status, 503);
    drop(idle);
    // The server sees the ends of those connections before it accepts the next of these, or turns it away.
    let mut tries = (0..1000).map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        get(server, "/").status
    });
    assert!(tries.any(|status| status == 200));
}
