//! A client of HTTP that can misbehave.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(30);

/// An answer.
#[derive(Debug)]
pub(super) struct Got {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Got {
    /// The body as JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// Connects, and sends `text`.
pub(super) fn send(server: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

/// Sends a request with further header lines, and reads the whole answer.
pub(super) fn get_with(server: SocketAddr, path: &str, more: &str) -> Got {
    let text = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n");
    read(send(server, &text))
}

/// Reads an address.
pub(super) fn get(server: SocketAddr, path: &str) -> Got {
    get_with(server, path, "")
}

/// Reads the whole answer.
pub(super) fn read(mut stream: TcpStream) -> Got {
    let mut bytes = Vec::new();
    // A reset after the answer loses nothing of it.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("no answer: {text:?}"));
    Got {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.into(),
        body: body.into(),
    }
}

/// A viewer of a stream.
pub(super) struct Viewer(BufReader<TcpStream>);

impl Viewer {
    pub(super) fn open(server: SocketAddr, path: &str) -> Self {
        let text = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        Self(BufReader::new(send(server, &text)))
    }

    /// The name and data of the next event.
    pub(super) fn event(&mut self) -> (String, Value) {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            assert_ne!(
                self.0.read_line(&mut line).unwrap(),
                0,
                "the stream is closed"
            );
            if let Some(event) = line.strip_prefix("event: ") {
                name = event.trim().into();
            } else if let Some(data) = line.strip_prefix("data: ") {
                return (name, serde_json::from_str(data).unwrap());
            }
        }
    }

    /// The data of the next event of this name.
    pub(super) fn next(&mut self, wanted: &str) -> Value {
        loop {
            let (name, data) = self.event();
            if name == wanted {
                return data;
            }
        }
    }
}
