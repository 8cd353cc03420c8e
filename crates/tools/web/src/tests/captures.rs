//! Captures: a file passes through as it comes, and ends.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use super::client::{Got, get, read, send};
use super::{Directory, start};

/// A daemon that captures: it sends `parts`, then the end after a `capture.stop`. It reports the verbs that it heard, and
/// `end` when a connection closes.
fn capturing(path: &Path, parts: &'static [&'static str]) -> Receiver<String> {
    let listener = UnixListener::bind(path).unwrap();
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, sender) = (stream.unwrap(), sender.clone());
            std::thread::spawn(move || {
                for line in BufReader::new(&stream).lines() {
                    let Ok(line) = line else { break };
                    let request: Value = serde_json::from_str(&line).unwrap();
                    let verb = request["do"].as_str().unwrap().to_owned();
                    answer(&stream, &request, &verb, parts);
                    sender.send(verb).unwrap();
                }
                sender.send("end".into()).unwrap();
            });
        }
    });
    heard
}

fn answer(mut out: &UnixStream, request: &Value, verb: &str, parts: &[&str]) {
    let id = &request["id"];
    let lines = match verb {
        "capture.subscriber" if request["of"]["who"] == "nobody" => {
            let error = json!({"code": "not-found", "message": "there is no nobody"});
            format!(
                "{}\n",
                json!({"v": 1, "id": id, "ok": false, "error": error})
            )
        }
        "capture.subscriber" => {
            let row = json!({"schema": "capture/1", "subscribers": 1, "format": "pcapng"});
            let mut text = format!("{}\n", json!({"v": 1, "id": id, "row": row}));
            for part in parts {
                text += &format!(
                    "{}\n{part}",
                    json!({"v": 1, "id": id, "octets": part.len()})
                );
            }
            text
        }
        "capture.stop" => {
            let capture = &request["capture"];
            let row = json!({"schema": "capture.end/1", "inside": 1});
            format!(
                "{}\n{}\n{}\n",
                json!({"v": 1, "id": capture, "row": row}),
                json!({"v": 1, "id": capture, "end": true, "rows": 1}),
                json!({"v": 1, "id": id, "ok": true})
            )
        }
        _ => format!("{}\n", json!({"v": 1, "id": id, "end": true, "rows": 0})),
    };
    // A client that has left needs no answer.
    let _ = out.write_all(lines.as_bytes());
}

fn capture(server: SocketAddr, more: &str) -> Got {
    get(server, &format!("/api/subscriber/capture?{more}"))
}

#[test]
fn a_capture_is_a_download_that_ends() {
    let directory = Directory::new("capture");
    let heard = capturing(&directory.socket(), &["first", "\n{}\n", "third"]);
    let server = start(&directory.socket(), &["--allow-changes"]);
    let got = capture(server, "who=alice%22&seconds=1");
    assert_eq!(got.status, 200);
    let name = got.header("content-disposition");
    assert_eq!(name, Some("attachment; filename=\"alice_.pcapng\""));
    // The body is chunked: one chunk for each part or for several.
    for part in ["first", "{}", "third"] {
        assert!(got.body.contains(part), "{got:?}");
    }
    assert!(got.body.ends_with("0\r\n\r\n"), "{got:?}");
    let verbs: Vec<String> = heard
        .iter()
        .take_while(|verb| verb != "capture.stop")
        .collect();
    assert!(
        verbs.contains(&"capture.subscriber".to_owned()),
        "{verbs:?}"
    );

    for (more, status) in [
        ("who=nobody", 404),
        ("who=alice&seconds=0", 400),
        ("who=alice&seconds=61", 400),
        ("seconds=1", 400),
    ] {
        assert_eq!(capture(server, more).status, status, "{more}");
    }
}

#[test]
fn a_viewer_that_leaves_ends_its_capture() {
    let directory = Directory::new("leaves");
    let heard = capturing(&directory.socket(), &["first"]);
    let server = start(&directory.socket(), &["--allow-changes"]);
    let head =
        "GET /api/subscriber/capture?who=alice&seconds=60 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let viewers = [send(server, head), send(server, head)];
    for _ in 0..2 {
        while heard.recv().unwrap() != "capture.subscriber" {}
    }
    let third = capture(server, "who=alice");
    assert_eq!(
        (third.status, &third.json()["error"]["code"]),
        (429, &json!("limit"))
    );
    drop(viewers);
    let text = "GET /api/subscriber/capture?who=alice&seconds=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut tries = (0..200).map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        read(send(server, text)).status
    });
    assert!(tries.any(|status| status == 200));
}
