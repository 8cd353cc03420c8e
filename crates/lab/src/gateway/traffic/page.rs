//! A web page with a dozen objects: a server for it, and a loader that fetches it as a browser
//! does.
//!
//! HTTP/1.1 as far as one page needs it: GET, `Content-Length`, persistent connections. The page
//! reports a browser's load time to the server: its script fetches `/loaded?...` once everything
//! has loaded. Then it goes to the same page at the next port, so that each load has new
//! connections, as a first visit has, while the browser process stays the same.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::gateway::stop::Stop;

/// Number of objects on the page, besides the page itself.
pub const OBJECTS: usize = 12;

/// Bytes of each object: 150 kB in all, a small page of its day.
pub const OBJECT_OCTETS: usize = 12_500;

/// Limit of a browser's connections to one server.
const CONNECTIONS: usize = 6;

/// Time after which a page load has failed, as published.
pub const LOAD_MAX: Duration = Duration::from_secs(120);

/// A page load that is unfinished at the end of the measurement counts as failed if it ran at least
/// this long.
pub const CHANCE: Duration = Duration::from_secs(5);

/// Limit of a line in a request or in a response's header.
const LINE_MAX: u64 = 8_192;

/// Limit of connections served at a time.
const SERVED_MAX: usize = 64;

/// Pause of a browser between two loads, in milliseconds.
const BROWSER_PAUSE_MS: u64 = 200;

/// A page load that a browser reports, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reported {
    /// From the start of the navigation to the page's load event.
    pub load_ms: f64,
    /// From the first connection attempt to the last byte of the last object: the part of the load
    /// that waits for the network.
    pub network_ms: f64,
}

impl Reported {
    /// Reads the path that the page's script fetches.
    fn parse(path: &str) -> Option<Self> {
        let values = path.strip_prefix("/loaded?")?;
        let value = |key: &str| {
            let values = values.split('&').filter_map(|pair| pair.split_once('='));
            let mut values = values.filter(|(name, _)| *name == key);
            let value: f64 = values.next()?.1.parse().ok()?;
            (value.is_finite() && value >= 0.0).then_some(value)
        };
        Some(Self {
            load_ms: value("ms")?,
            network_ms: value("network")?,
        })
    }
}

/// Serves the page until `end`, or until `over` is set. Page loads that browsers report are sent to `loads`.
///
/// # Errors
/// The listener cannot be used.
pub fn serve(
    listener: &TcpListener,
    loads: &Sender<Reported>,
    end: Instant,
    over: &Stop,
) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let served = Arc::new(());
    while Instant::now() < end && !over.is_set() {
        match listener.accept() {
            Ok((stream, _)) if Arc::strong_count(&served) <= SERVED_MAX => {
                let (loads, held) = (loads.clone(), Arc::clone(&served));
                std::thread::spawn(move || {
                    // A browser that closes early is not an error.
                    let _ = answer_all(&stream, &loads, end);
                    drop(held);
                });
            }
            Ok(_) => {}
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    Ok(())
}

fn answer_all(stream: &TcpStream, loads: &Sender<Reported>, end: Instant) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let left = end.saturating_duration_since(Instant::now());
    stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
    let mut reader = BufReader::new(stream);
    while let Some(path) = read_request(&mut reader)? {
        if let Some(reported) = Reported::parse(&path) {
            // The receiver may be gone.
            let _ = loads.send(reported);
        }
        let (kind, body) = content(&path);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\r\n",
            body.len()
        );
        let mut stream = stream;
        stream.write_all(&[head.as_bytes(), &body].concat())?;
    }
    Ok(())
}

/// The path of the next request; `None` if the client has closed.
fn read_request(reader: &mut BufReader<&TcpStream>) -> std::io::Result<Option<String>> {
    let mut path = None;
    loop {
        let mut line = String::new();
        if reader.by_ref().take(LINE_MAX).read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() {
            return Ok(path);
        }
        path = path.or_else(|| line.split(' ').nth(1).map(str::to_owned));
    }
}

fn content(path: &str) -> (&'static str, Vec<u8>) {
    if path.starts_with("/object/") {
        // Not a valid image, but of its size; browsers fetch it all the same.
        ("image/png", vec![b'x'; OBJECT_OCTETS])
    } else if path.starts_with("/loaded") || path.starts_with("/favicon") {
        ("text/plain", Vec::new())
    } else {
        ("text/html", page().into_bytes())
    }
}

/// Reports the load and, once the report has arrived, goes on. Image data that is not an image has
/// timing entries all the same.
const SCRIPT: &str = "addEventListener('load', () => { \
    const ms = performance.now(), page = performance.getEntriesByType('navigation')[0]; \
    const ends = performance.getEntriesByType('resource').map(one => one.responseEnd); \
    const network = Math.max(page.responseEnd, ...ends) - page.connectStart; \
    const next = () => { const to = new URL(location); to.port = Number(to.port || 80) + 1; location = to; }; \
    fetch(`/loaded?ms=${ms}&network=${network}`).finally(() =>";

fn page() -> String {
    let objects: String = (0..OBJECTS)
        .map(|number| format!("<img src=\"/object/{number}\" alt=\"\">\n"))
        .collect();
    format!(
        "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>A page</title>\n{objects}\
         <script>{SCRIPT} setTimeout(next, {BROWSER_PAUSE_MS})); }});</script></html>"
    )
}

/// Fetches the page and its objects over up to six connections. Returns the time that took; `None`
/// if it exceeded `limit`.
#[must_use]
pub fn load(server: SocketAddr, limit: Duration) -> Option<Duration> {
    let begin = Instant::now();
    let deadline = begin + limit;
    let mut first = Connection::open(server, deadline)?;
    first.get("/", deadline)?;
    let left = Mutex::new(0..OBJECTS);
    let next = || {
        left.lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .next()
    };
    let fetch_all = |mut connection: Connection| {
        while let Some(number) = next() {
            connection.get(&format!("/object/{number}"), deadline)?;
        }
        Some(())
    };
    let all = std::thread::scope(|scope| {
        let more: Vec<_> = (1..CONNECTIONS)
            .map(|_| scope.spawn(|| Connection::open(server, deadline).and_then(fetch_all)))
            .collect();
        let own = fetch_all(first);
        // Waits for every connection, even if another failed.
        more.into_iter()
            .fold(own, |all, thread| thread.join().ok().flatten().and(all))
    });
    all.map(|()| begin.elapsed())
}

struct Connection {
    reader: BufReader<TcpStream>,
}

impl Connection {
    fn open(server: SocketAddr, deadline: Instant) -> Option<Self> {
        let left = left_until(deadline)?;
        let stream = TcpStream::connect_timeout(&server, left).ok()?;
        stream.set_nodelay(true).ok()?;
        Some(Self {
            reader: BufReader::new(stream),
        })
    }

    /// Fetches one path completely.
    fn get(&mut self, path: &str, deadline: Instant) -> Option<()> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: gateway\r\n\r\n");
        self.reader.get_mut().write_all(request.as_bytes()).ok()?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.wait(deadline)?;
            (&mut self.reader)
                .take(LINE_MAX)
                .read_line(&mut line)
                .ok()?;
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.parse().ok()?;
            }
        }
        let mut block = [0; 4_096];
        let mut left: usize = length;
        while left > 0 {
            self.wait(deadline)?;
            let part = left.min(block.len());
            match self.reader.read(&mut block[..part]).ok()? {
                0 => return None,
                read => left -= read,
            }
        }
        Some(())
    }

    fn wait(&self, deadline: Instant) -> Option<()> {
        let left = left_until(deadline)?;
        self.reader.get_ref().set_read_timeout(Some(left)).ok()
    }
}

fn left_until(deadline: Instant) -> Option<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    (!left.is_zero()).then_some(left)
}
