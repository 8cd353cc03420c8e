//! `headend ping --responder PORT --load`: TCP streams that load a link, for `headend lab bufferbloat`.
//!
//! One thread accepts connections, and each stream has a thread; [`Gate`] bounds their number. `ping::load` describes
//! the messages. A stream ends when its client closes it, or when its granted time is over.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use ping::load::{Answer, Congestion, Direction, Gate, Greeting, Limits, Refusal, Report, Request};
use reactor::clock;
use rustix::net::sockopt::{set_socket_linger, set_tcp_congestion, tcp_congestion};

use super::packets::random;

/// How long a client may take for its request, and the kernel for one message to it.
const HANDSHAKE: Duration = Duration::from_secs(3);
/// Longest wait for data before the time is looked at, and time between two reports.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Bytes of one call.
const BLOCK: usize = 1 << 16;
/// Pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest token.
const TOKEN_MAX: usize = 1_024;

/// What the user permits.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) limits: Limits,
    /// Empty: everyone may load.
    pub(super) token: base::Redacted<Vec<u8>>,
}

/// The running service.
pub(super) struct Service {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Settings,
    gate: Mutex<Gate>,
    sent: AtomicU64,
    received: AtomicU64,
}

/// A stream's place among those of its source, given back when dropped.
struct Place {
    shared: Arc<Shared>,
    from: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.gate().release(self.from);
    }
}

impl Shared {
    fn gate(&self) -> std::sync::MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The token in the first line of a file.
///
/// # Errors
/// The file cannot be read, or has no token.
pub fn token(path: &Path) -> Result<base::Redacted<Vec<u8>>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the token in {}", path.display()))?;
    let token = text.lines().next().unwrap_or_default().trim();
    if token.is_empty() || token.len() > TOKEN_MAX {
        bail!(
            "{}: the first line is the token, of 1 to {TOKEN_MAX} bytes",
            path.display()
        );
    }
    Ok(base::Redacted::new(token.as_bytes().to_vec()))
}

impl Service {
    /// Listens on the given addresses, those of the responder.
    ///
    /// # Errors
    /// An address cannot be listened on.
    pub(super) fn start(
        settings: Settings,
        addresses: impl Iterator<Item = SocketAddr>,
    ) -> Result<Service> {
        let shared = Arc::new(Shared {
            gate: Mutex::new(Gate::new(settings.limits)),
            settings,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        });
        for address in addresses {
            let listener = listen(address)
                .with_context(|| format!("cannot listen on TCP {address} for --load"))?;
            writeln!(io::stdout(), "loading on TCP {}", listener.local_addr()?)?;
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("load".into())
                .spawn(move || accept(&listener, &shared))?;
        }
        Ok(Service { shared })
    }

    /// What the service did, for the last line.
    pub(super) fn summary(&self) -> String {
        let gate = self.shared.gate();
        format!(
            "load streams {}, refused {}, bytes sent {}, bytes received {}",
            gate.admitted,
            gate.refused,
            self.shared.sent.load(Ordering::Relaxed),
            self.shared.received.load(Ordering::Relaxed),
        )
    }
}

/// A listener for exactly this address: that of the IPv6 wildcard leaves IPv4 to another one.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    bind(&socket, &address)?;
    listen(&socket, 128)?;
    Ok(TcpListener::from(socket))
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut told = false;
    loop {
        match listener.accept() {
            Ok((stream, from)) => welcome(stream, from.ip(), shared),
            Err(error) => {
                if !std::mem::replace(&mut told, true) {
                    eprintln!(
                        "headend ping: connections cannot be accepted: {error}; trying again"
                    );
                }
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// Greets a client. Only an admitted one gets a thread.
fn welcome(mut stream: TcpStream, from: IpAddr, shared: &Arc<Shared>) {
    let admitted = shared.gate().admit(from, clock::now());
    let mut greeting = Greeting {
        refusal: admitted.err(),
        needs_token: !shared.settings.token.reveal().is_empty(),
        streams_max: shared.settings.limits.streams_per_source,
        duration_max_ms: millis(shared.settings.limits.duration.as_nanos()),
        nonce: [0; 16],
    };
    if greeting.refusal.is_some() {
        // A fresh connection takes these few bytes at once.
        let _ = stream.write(&greeting.emit());
        return;
    }
    let place = Place {
        shared: Arc::clone(shared),
        from,
    };
    let (Ok(one), Ok(other)) = (random(), random()) else {
        return;
    };
    greeting.nonce[..8].copy_from_slice(&one.to_be_bytes());
    greeting.nonce[8..].copy_from_slice(&other.to_be_bytes());
    let thread = std::thread::Builder::new().name("stream".into());
    // Without a thread, the client sees its connection closed. An error of a stream is the client's to report.
    let _ = thread.spawn(move || {
        let place = place;
        converse(stream, &greeting, &place.shared)
    });
}

fn millis(ns: u64) -> u32 {
    u32::try_from(ns / 1_000_000).unwrap_or(u32::MAX)
}

/// The conversation with one client.
fn converse(mut stream: TcpStream, greeting: &Greeting, shared: &Shared) -> io::Result<()> {
    stream.set_write_timeout(Some(HANDSHAKE))?;
    stream.set_nodelay(true)?;
    stream.write_all(&greeting.emit())?;
    let mut bytes = [0; ping::load::REQUEST];
    read_all(&mut stream, &mut bytes, Instant::now() + HANDSHAKE)?;
    let token = shared.settings.token.reveal();
    let request = match Request::parse(&bytes) {
        _ if !Request::is_proven(&bytes, greeting, token) => Err(Refusal::Token),
        Ok(request) => prepare(&stream, &request).map(|in_use| (request, in_use)),
        Err(_) => Err(Refusal::Request),
    };
    let mut answer = Answer {
        refusal: request.err(),
        duration_ms: 0,
        congestion: Congestion::default(),
    };
    let Ok((request, in_use)) = request else {
        shared.gate().refused += 1;
        return stream.write_all(&answer.emit());
    };
    answer.duration_ms = request.duration_ms.min(greeting.duration_max_ms);
    answer.congestion = in_use;
    stream.write_all(&answer.emit())?;
    let end = Instant::now() + Duration::from_millis(answer.duration_ms.into());
    let ended = match request.direction {
        Direction::Down => send(&mut stream, end, &shared.sent),
        Direction::Up => receive(&mut stream, end, &shared.received),
    };
    // Nothing of a test may linger in the queue that the next phase measures.
    let _ = set_socket_linger(&stream, Some(Duration::ZERO));
    ended
}

/// Sets the congestion control if this host is the sender, and returns the one in use.
fn prepare(stream: &TcpStream, request: &Request) -> std::result::Result<Congestion, Refusal> {
    let wanted = request.congestion.name();
    if request.direction == Direction::Up {
        return Ok(Congestion::default());
    }
    if !wanted.is_empty() {
        set_tcp_congestion(stream, wanted).map_err(|_| Refusal::Congestion)?;
    }
    let name = tcp_congestion(stream).unwrap_or_default();
    Ok(Congestion::new(&name).unwrap_or_default())
}

/// Fills `bytes` until `end`, however slowly they come.
pub fn read_all(stream: &mut TcpStream, bytes: &mut [u8], end: Instant) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(error) if is_patience(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether an error only means that nothing arrived or left in time.
#[must_use]
pub fn is_patience(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// Bytes that no link can compress, the same for all streams.
#[must_use]
pub fn block() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut block = Vec::with_capacity(BLOCK);
    while block.len() < BLOCK {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        block.extend_from_slice(&state.to_be_bytes());
    }
    block
}

fn send(stream: &mut TcpStream, end: Instant, sent: &AtomicU64) -> io::Result<()> {
    stream.set_write_timeout(Some(LOOK_EVERY))?;
    let block = block();
    while Instant::now() < end {
        match stream.write(&block) {
            Ok(0) => break,
            Ok(taken) => {
                sent.fetch_add(taken as u64, Ordering::Relaxed);
            }
            Err(error) if is_patience(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn receive(stream: &mut TcpStream, end: Instant, received: &AtomicU64) -> io::Result<()> {
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    let mut block = vec![0; BLOCK];
    let start = Instant::now();
    let (mut total, mut next) = (0_u64, start + LOOK_EVERY);
    loop {
        let now = Instant::now();
        if now >= next {
            let report = Report {
                elapsed_us: (now - start).as_micros() as u64,
                received: total,
            };
            stream.write_all(&report.emit())?;
            next = now + LOOK_EVERY;
        }
        if now >= end {
            return Ok(());
        }
        match stream.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(read) => {
                total += read as u64;
                received.fetch_add(read as u64, Ordering::Relaxed);
            }
            Err(error) if is_patience(&error) => {}
            Err(error) => return Err(error),
        }
    }
}
