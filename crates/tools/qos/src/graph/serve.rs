//! Serves the page and its rates over HTTP (RFC 9112) on a loopback address. It answers `GET /` and `GET /rates.json`,
//! one request per connection. Connections, sizes and times are all limited.
//!
//! Left out: all other features of HTTP.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::fold::fold;
use super::live::Watcher;
use super::model::Tree;
use super::page;
use cli::screen::Beat;

/// Maximum number of simultaneous connections.
const CLIENTS_MAX: usize = 16;
/// Maximum size of a request's head in bytes.
const REQUEST_MAX: usize = 8 * 1024;
/// Timeout for receiving a request, and for sending a response.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a request waits for a reading, if the last one is old.
const READING: Duration = Duration::from_secs(3);
/// Time in addition to a few intervals after which a reading is old, and no client looks any more.
const SLACK: Duration = Duration::from_secs(2);
/// Limits on reading from a client whose request was rejected, so that the rejection reaches it.
const DRAIN_MAX: usize = 64 * 1024;
const DRAIN: Duration = Duration::from_millis(500);

/// The current page and rates.
#[derive(Debug, Default)]
struct Served {
    page: Arc<String>,
    rates: String,
}

/// What the threads share: the reader of queues and those that answer.
struct Site {
    state: Mutex<State>,
    /// A client asked, or there is a new reading.
    changed: Condvar,
    every: Duration,
}

struct State {
    served: Arc<Served>,
    read: Instant,
    asked: Instant,
}

impl Site {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Arc<Served> {
        Arc::clone(&self.state().served)
    }

    /// The page and rates for a client that asks. If no client has asked for a while, waits for a reading of this moment.
    fn ask(&self) -> Arc<Served> {
        let now = Instant::now();
        let mut state = self.state();
        state.asked = now;
        self.changed.notify_all();
        let is_old = |state: &mut State| state.read + self.every * 2 + SLACK < now;
        let fresh = self.changed.wait_timeout_while(state, READING, is_old);
        let (state, _) = fresh.unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&state.served)
    }

    /// Waits while no client asks; returns whether it waited.
    fn rest(&self) -> bool {
        let is_idle = |state: &mut State| state.asked.elapsed() > self.every * 3 + SLACK;
        let mut state = self.state();
        if !is_idle(&mut state) {
            return false;
        }
        let asked = self.changed.wait_while(state, is_idle);
        drop(asked.unwrap_or_else(PoisonError::into_inner));
        true
    }

    fn publish(&self, served: Served) {
        let mut state = self.state();
        state.served = Arc::new(served);
        state.read = Instant::now();
        self.changed.notify_all();
    }
}

/// Draws the page only if the boxes have changed.
struct Painter {
    shape: String,
    page: Arc<String>,
    every: Duration,
}

impl Painter {
    fn paint(&mut self, mut tree: Tree) -> Served {
        fold(&mut tree);
        tree.has_past = true;
        let shape = page::shape(&tree);
        if shape != self.shape {
            self.page = Arc::new(page::live(&tree, self.every.as_millis()));
            self.shape = shape;
        }
        Served {
            page: Arc::clone(&self.page),
            rates: page::rates(&tree),
        }
    }
}

/// Parses the address to listen on, which has to be a loopback address.
pub(super) fn address(text: &str) -> Result<SocketAddr> {
    let address: SocketAddr = text
        .parse()
        .ok()
        .with_context(|| format!("\"{text}\" is no address and port; give 127.0.0.1:8080"))?;
    ensure!(
        address.ip().is_loopback(),
        "{text} can be reached from elsewhere; give 127.0.0.1:{}",
        address.port()
    );
    Ok(address)
}

/// Serves the readings of `watcher`, one per `every`, until a signal ends the process, or `count` readings were taken.
///
/// # Errors
/// The first reading fails, or the address cannot be listened on.
pub(super) fn serve(
    mut watcher: Watcher,
    listen: SocketAddr,
    every: Duration,
    count: Option<u64>,
) -> Result<()> {
    let tree = watcher.look()?;
    let listener = TcpListener::bind(listen).with_context(|| listen.to_string())?;
    let address = listener.local_addr()?;
    // From here on the process only answers requests, and needs no privileges.
    reactor::drop_capabilities().context("cannot give up privileges")?;
    let mut painter = Painter {
        shape: String::new(),
        page: Arc::default(),
        every,
    };
    let now = Instant::now();
    let site = Arc::new(Site {
        state: Mutex::new(State {
            served: Arc::new(painter.paint(tree)),
            read: now,
            asked: now,
        }),
        changed: Condvar::new(),
        every,
    });
    let accepting = Arc::clone(&site);
    thread::Builder::new()
        .name("http".into())
        .spawn(move || accept(&listener, &accepting))?;
    {
        let mut out = io::stdout().lock();
        writeln!(out, "http://{address}/")?;
        out.flush()?;
    }
    let mut beat = Beat::new(every);
    let mut looks = 0;
    while count.is_none_or(|count| looks < count) {
        beat.wait();
        // A number of readings is taken whether or not a client asks.
        if count.is_none() && site.rest() {
            watcher.forget();
            beat = Beat::new(every);
        }
        site.publish(match watcher.look() {
            Ok(tree) => painter.paint(tree),
            // The source may come back; until then the page keeps showing the last picture.
            Err(error) => Served {
                page: Arc::clone(&painter.page),
                rates: page::failure(&format!("{error:#}")),
            },
        });
        looks += 1;
    }
    Ok(())
}

fn accept(listener: &TcpListener, site: &Arc<Site>) {
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // No descriptor is free: wait until other connections close.
            Err(_) => {
                thread::sleep(Duration::from_millis(50));
                continue;
            }
        };
        let client = Client(Arc::clone(&clients));
        if client.0.fetch_add(1, Ordering::Relaxed) >= CLIENTS_MAX {
            // A short response fits into an empty send buffer.
            let _ = stream.set_nonblocking(true);
            let _ = (&stream)
                .write(&Answer::refusal(503, "Service Unavailable", "too many ask at once").head());
            continue;
        }
        let site = Arc::clone(site);
        // If no thread can be started, the connection is closed.
        let _ = thread::Builder::new()
            .name("http client".into())
            .spawn(move || {
                let _client = client;
                let _ = converse(&stream, &site);
            });
    }
}

/// A connection that counts towards the limit.
struct Client(Arc<AtomicUsize>);

impl Drop for Client {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An HTTP response.
struct Answer<'s> {
    status: u16,
    reason: &'static str,
    kind: &'static str,
    body: &'s str,
}

impl<'s> Answer<'s> {
    fn ok(kind: &'static str, body: &'s str) -> Self {
        Self {
            status: 200,
            reason: "OK",
            kind,
            body,
        }
    }

    fn refusal(status: u16, reason: &'static str, body: &'s str) -> Self {
        Self {
            status,
            reason,
            kind: "text/plain; charset=utf-8",
            body,
        }
    }

    /// The whole response, except for a long body.
    fn head(&self) -> Vec<u8> {
        let Self {
            status,
            reason,
            kind,
            body,
        } = self;
        let allow = if *status == 405 { "Allow: GET\r\n" } else { "" };
        let mut head = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
             Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
             connect-src 'self'; frame-ancestors 'none'\r\nConnection: close\r\n\r\n",
            body.len()
        );
        if *status != 200 {
            head.push_str(body);
        }
        head.into_bytes()
    }
}

/// Reads one request and answers it.
fn converse(stream: &TcpStream, site: &Site) -> io::Result<()> {
    let head = hear(stream, Instant::now() + PATIENCE)?;
    // A request that is refused is no reason to read queues.
    let served = match answer(&head, &site.current()).status {
        200 => site.ask(),
        _ => site.current(),
    };
    let answer = answer(&head, &served);
    let end = Instant::now() + PATIENCE;
    say(stream, &answer.head(), end)?;
    if answer.status == 200 {
        return say(stream, answer.body.as_bytes(), end);
    }
    // Closing a socket with unread data would reset the connection and lose the response.
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(DRAIN))?;
    let end = Instant::now() + DRAIN;
    let (mut left, mut buffer) = (DRAIN_MAX, [0; 4_096]);
    while left > 0 && Instant::now() < end {
        match (&*stream).read(&mut buffer)? {
            0 => break,
            count => left = left.saturating_sub(count),
        }
    }
    Ok(())
}

/// Reads a request's head, up to the size limit.
fn hear(mut stream: &TcpStream, end: Instant) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut buffer = [0; 2_048];
    while !is_whole(&head) && head.len() <= REQUEST_MAX {
        stream.set_read_timeout(Some(left(end)?))?;
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => head.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(head)
}

fn is_whole(head: &[u8]) -> bool {
    head.windows(4).any(|four| four == b"\r\n\r\n")
}

fn say(mut stream: &TcpStream, mut octets: &[u8], end: Instant) -> io::Result<()> {
    while !octets.is_empty() {
        stream.set_write_timeout(Some(left(end)?))?;
        match stream.write(octets) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => octets = &octets[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The time left until `end`; an error if it has passed.
fn left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    match left {
        Duration::ZERO => Err(ErrorKind::TimedOut.into()),
        left => Ok(left),
    }
}

/// The response to a request.
fn answer<'s>(head: &[u8], served: &'s Served) -> Answer<'s> {
    let bad = Answer::refusal(400, "Bad Request", "this is no request of HTTP/1.1");
    if head.len() > REQUEST_MAX {
        let reason = "Request Header Fields Too Large";
        return Answer::refusal(431, reason, "the request is too long");
    }
    if !is_whole(head) {
        return bad;
    }
    let Ok(head) = std::str::from_utf8(head) else {
        return bad;
    };
    let mut lines = head.split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = words.as_slice() else {
        return bad;
    };
    if !version.starts_with("HTTP/1.") {
        return bad;
    }
    if *method != "GET" {
        return Answer::refusal(405, "Method Not Allowed", "only GET is served");
    }
    let fields = lines.take_while(|line| !line.is_empty());
    let hosts = fields.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    });
    // DNS rebinding: a foreign page whose name resolves to this address sends a different Host field.
    if !hosts.clone().all(is_here) || hosts.count() != 1 {
        return Answer::refusal(
            421,
            "Misdirected Request",
            "ask for this machine by 127.0.0.1 or localhost",
        );
    }
    match target.split('?').next().unwrap_or_default() {
        "/" => Answer::ok("text/html; charset=utf-8", &served.page),
        "/rates.json" => Answer::ok("application/json", &served.rates),
        _ => Answer::refusal(404, "Not Found", "there are / and /rates.json"),
    }
}

/// Whether a Host field names the local machine: `localhost`, `127.0.0.1:8080`, `[::1]`.
fn is_here(host: &str) -> bool {
    if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.split(']').next().unwrap_or_default();
        return inner
            .parse::<Ipv6Addr>()
            .is_ok_and(|address| address.is_loopback());
    }
    let name = host.split(':').next().unwrap_or_default();
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(request: &str) -> u16 {
        let served = Served {
            page: Arc::new("page".into()),
            rates: "{}".into(),
        };
        answer(request.as_bytes(), &served).status
    }

    #[test]
    fn two_things_are_served_to_this_machine_and_everything_else_is_refused() {
        let get =
            |target: &str, host: &str| format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        for host in [
            "localhost",
            "LocalHost:80",
            "127.0.0.1:8080",
            "127.9.9.9",
            "[::1]:8080",
        ] {
            assert_eq!(status(&get("/", host)), 200, "{host}");
        }
        assert_eq!(status(&get("/rates.json?x", "localhost")), 200);
        for host in [
            "example.org",
            "127.0.0.1.example.org",
            "192.0.2.1",
            "",
            "[::2]",
            "[",
            "localhost.x",
        ] {
            assert_eq!(status(&get("/", host)), 421, "{host}");
        }
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), 421);
        assert_eq!(
            status("GET / HTTP/1.1\r\nHost: localhost\r\nHost: x\r\n\r\n"),
            421
        );
        for target in ["/../etc/passwd", "/rates", "http://localhost/", "*", "//"] {
            assert_eq!(status(&get(target, "localhost")), 404, "{target}");
        }
        for method in ["POST", "HEAD", "get", "OPTIONS", "CONNECT"] {
            let request = format!("{method} / HTTP/1.1\r\nHost: localhost\r\n\r\n");
            assert_eq!(status(&request), 405, "{method}");
        }
        for request in [
            "",
            "\r\n\r\n",
            "GET /\r\n\r\n",
            "GET / HTTP/2\r\n\r\n",
            "GET / HTTP/1.1\r\nHost",
        ] {
            assert_eq!(status(request), 400, "{request:?}");
        }
        assert_eq!(status(&"x".repeat(REQUEST_MAX + 1)), 431);
    }

    #[test]
    fn a_client_after_a_pause_gets_a_reading_of_its_own() {
        let long_ago = Instant::now() - Duration::from_secs(60);
        let site = Site {
            state: Mutex::new(State {
                served: Arc::default(),
                read: long_ago,
                asked: long_ago,
            }),
            changed: Condvar::new(),
            every: Duration::from_millis(1),
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                site.rest();
                site.publish(Served {
                    page: Arc::default(),
                    rates: "new".to_owned(),
                });
            });
            assert_eq!(site.ask().rates, "new");
        });
        assert!(!site.rest(), "a client asked just now");
    }

    #[test]
    fn only_addresses_of_this_machine_alone_are_listened_on() {
        for good in ["127.0.0.1:0", "127.0.0.53:8080", "[::1]:1"] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in [
            "0.0.0.0:80",
            "192.0.2.1:80",
            "[::]:80",
            "8080",
            "localhost:80",
            "",
        ] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
