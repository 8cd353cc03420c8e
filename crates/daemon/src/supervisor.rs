//! Reports the daemon's state to the service manager that started it, by the messages of sd_notify(3): that it serves,
//! reloads or stops, a line of text about its state, and that the event loop makes progress (the watchdog).
//!
//! Only the event loop sends, once per turn at most, so a loop that hangs misses its watchdog. Without `NOTIFY_SOCKET`
//! nothing is sent, and without `WATCHDOG_USEC` nothing wakes an idle loop. Start with [`Supervisor::turn`].

use std::collections::VecDeque;
use std::env;
use std::ffi::OsString;
use std::fmt::Write;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixListener;

use base::{Duration, Instant};
use reactor::clock;
use reactor::manager::{self, NotifySocket, Passed};

/// Minimum interval between two lines about the state.
const STATUS: Duration = Duration::from_secs(5);
/// Pause before a message is sent again that the manager did not accept.
const PAUSE: Duration = Duration::from_millis(100);
/// Messages that may wait for the manager; further ones are dropped.
const UNSENT_MAX: usize = 16;
/// Added to the time for which the daemon waits at shutdown.
const MARGIN: Duration = Duration::from_secs(5);
/// The longest part of a refusal in the line about the state, in characters.
const REFUSAL_MAX: usize = 200;

/// The service manager, if there is one.
#[derive(Default)]
pub(super) struct Supervisor(Option<Box<Link>>);

/// What the line about the state is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) subscribers: u32,
    /// BGP peers with an established session; `None` without BGP.
    pub(super) peers: Option<u32>,
    /// How long the shutdown in progress may take.
    pub(super) stops_within: Option<Duration>,
}

struct Link {
    socket: NotifySocket,
    /// Messages that the manager has not accepted yet, oldest first.
    unsent: VecDeque<String>,
    retry_at: Instant,
    /// Interval of the watchdog's messages.
    every: Option<Duration>,
    beat_at: Instant,
    /// The state as last reported.
    shown: Facts,
    /// The next line is not sent earlier.
    status_at: Instant,
    /// Whether the state differs from that shown.
    has_changed: bool,
    /// Why the last reload changed nothing.
    refusal: Option<String>,
    is_stopping: bool,
}

/// The listening socket for the control socket that the manager passed on, if there is one.
///
/// # Errors
/// What it passed on under this name is no listening Unix socket.
pub(super) fn control_socket() -> io::Result<Option<UnixListener>> {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let passed = Passed {
        pid: &variable("LISTEN_PID"),
        count: &variable("LISTEN_FDS"),
        names: &variable("LISTEN_FDNAMES"),
    };
    manager::inherited(passed, "control")
}

/// The variables by which a manager tells a service how to reach it.
#[derive(Default)]
struct Variables {
    socket: Option<OsString>,
    watchdog_us: Option<OsString>,
    watchdog_pid: Option<OsString>,
}

impl Supervisor {
    /// The manager that the environment names. What is wrong with it is logged, and costs only the reports.
    pub(super) fn open() -> Self {
        Self::from(&Variables {
            socket: env::var_os("NOTIFY_SOCKET"),
            watchdog_us: env::var_os("WATCHDOG_USEC"),
            watchdog_pid: env::var_os("WATCHDOG_PID"),
        })
    }

    fn from(variables: &Variables) -> Self {
        let Some(address) = variables.socket.as_ref().filter(|text| !text.is_empty()) else {
            return Self::default();
        };
        let socket = match NotifySocket::open(address) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(?address, %error, "NOTIFY_SOCKET: the service manager gets no reports");
                return Self::default();
            }
        };
        Self(Some(Box::new(Link {
            socket,
            unsent: VecDeque::new(),
            retry_at: Instant::ZERO,
            every: watchdog(variables),
            beat_at: Instant::ZERO,
            shown: Facts::default(),
            status_at: Instant::ZERO,
            has_changed: false,
            refusal: None,
            is_stopping: false,
        })))
    }

    /// Whether reports are sent.
    pub(super) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// Everything is open, and the daemon serves.
    pub(super) fn ready(&mut self, facts: Facts, now: Instant) {
        if let Some(link) = &mut self.0 {
            link.shown = facts;
            link.status_at = now + STATUS;
            link.tell(format!("READY=1\nSTATUS={}", link.status()), now);
        }
    }

    /// A reload starts, or the request for one was received.
    pub(super) fn reloading(&mut self) {
        if let Some(link) = self.0.as_mut().filter(|link| !link.is_stopping) {
            // The manager compares this with the time at which it sent the signal.
            let now = clock::now();
            let micros = now.as_nanos() / 1_000;
            link.tell(format!("RELOADING=1\nMONOTONIC_USEC={micros}"), now);
        }
    }

    /// The reload is finished; `refusal` says why it changed nothing.
    pub(super) fn reloaded(&mut self, refusal: Option<&str>, now: Instant) {
        if let Some(link) = self.0.as_mut().filter(|link| !link.is_stopping) {
            let line = refusal.map(|text| text.lines().next().unwrap_or_default());
            link.refusal = line.map(|line| line.chars().take(REFUSAL_MAX).collect());
            link.status_at = now + STATUS;
            link.tell(format!("READY=1\nSTATUS={}", link.status()), now);
        }
    }

    /// When [`Supervisor::turn`] has something to send.
    pub(super) fn due(&self) -> Option<Instant> {
        let link = self.0.as_ref()?;
        let beat = link.every.map(|_| link.beat_at);
        let status = link.has_changed.then_some(link.status_at);
        let retry = (!link.unsent.is_empty()).then_some(link.retry_at);
        [beat, status, retry].into_iter().flatten().min()
    }

    /// A turn of the loop ends: sends what is due.
    pub(super) fn turn(&mut self, facts: Facts, now: Instant) {
        if let Some(link) = &mut self.0 {
            link.turn(facts, now);
        }
    }
}

/// Half of the time after which the manager takes the daemon for hung.
fn watchdog(variables: &Variables) -> Option<Duration> {
    let text = variables.watchdog_us.as_ref()?;
    let own = std::process::id().to_string();
    let pid = variables.watchdog_pid.as_ref();
    if pid.is_some_and(|pid| pid.to_str() != Some(&own)) {
        return None;
    }
    match text.to_str().and_then(|text| text.parse::<u64>().ok()) {
        Some(0) => None,
        Some(micros) => Some(Duration::from_nanos(micros.saturating_mul(500))),
        None => {
            tracing::warn!(value = ?text, "WATCHDOG_USEC is not a number of microseconds: no watchdog");
            None
        }
    }
}

impl Link {
    fn turn(&mut self, mut facts: Facts, now: Instant) {
        if let Some(span) = facts.stops_within.filter(|_| !self.is_stopping) {
            self.is_stopping = true;
            self.shown = facts;
            let micros = (span + MARGIN).as_nanos() / 1_000;
            let status = self.status();
            self.tell(
                format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={micros}\nSTATUS={status}"),
                now,
            );
        }
        // The time that is left is reported once.
        facts.stops_within = self.shown.stops_within;
        self.has_changed = facts != self.shown;
        if self.has_changed && self.status_at <= now {
            self.has_changed = false;
            self.shown = facts;
            self.status_at = now + STATUS;
            self.tell(format!("STATUS={}", self.status()), now);
        }
        if let Some(every) = self.every.filter(|_| self.beat_at <= now) {
            self.beat_at = now + every;
            self.tell("WATCHDOG=1".to_owned(), now);
        }
        if self.retry_at <= now {
            self.flush(now);
        }
    }

    fn status(&self) -> String {
        let many = |count: u32| if count == 1 { "" } else { "s" };
        let Facts {
            subscribers,
            peers,
            stops_within,
        } = self.shown;
        let mut text = format!("{subscribers} subscriber{}", many(subscribers));
        // Writing to a string cannot fail.
        if let Some(peers) = peers {
            let _ = write!(text, ", {peers} BGP peer{} established", many(peers));
        }
        if stops_within.is_some() {
            text.push_str("; shutting down: notifying every peer");
        } else if let Some(refusal) = &self.refusal {
            let _ = write!(text, "; the last reload changed nothing: {refusal}");
        }
        text
    }

    fn tell(&mut self, text: String, now: Instant) {
        if self.unsent.len() < UNSENT_MAX {
            self.unsent.push_back(text);
        }
        self.flush(now);
    }

    /// Sends what waits, as far as the manager accepts it. What it can never accept is dropped.
    fn flush(&mut self, now: Instant) {
        while let Some(text) = self.unsent.front() {
            match self.socket.send(text) {
                Err(error) if is_for_now(error.kind()) => {
                    self.retry_at = now + PAUSE;
                    return;
                }
                Err(error) => tracing::debug!(%error, "the service manager was not reached"),
                Ok(()) => {}
            }
            self.unsent.pop_front();
        }
    }
}

fn is_for_now(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests;
