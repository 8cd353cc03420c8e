//! Reports to the service manager (sd_notify(3)): ready, reloading, stopping, a line of status, the watchdog. Without
//! `NOTIFY_SOCKET` nothing is sent.

use std::env;

use base::{Duration, Instant};
use reactor::clock;
use reactor::manager::NotifySocket;

/// The longest line of status, in characters.
const STATUS_MAX: usize = 200;

/// The service manager, if there is one.
pub(super) struct Manager {
    socket: Option<NotifySocket>,
    /// Interval of the watchdog's messages, and when the next one is due.
    beat: Option<(Duration, Instant)>,
}

impl Manager {
    /// The manager that the environment names. What is wrong with it is said, and costs only the reports.
    pub(super) fn open(now: Instant) -> Self {
        let address = env::var_os("NOTIFY_SOCKET").filter(|text| !text.is_empty());
        let socket = address.and_then(|address| match NotifySocket::open(&address) {
            Ok(socket) => Some(socket),
            Err(error) => {
                eprintln!("NOTIFY_SOCKET: the service manager gets no reports: {error}");
                None
            }
        });
        let number = |name: &str| env::var(name).ok()?.parse::<u64>().ok();
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let every = number("WATCHDOG_USEC").filter(|us| is_ours && *us > 0);
        let every = every.filter(|_| socket.is_some());
        Self {
            socket,
            // Twice as often as the manager expects it.
            beat: every.map(|us| (Duration::from_micros(us / 2), now)),
        }
    }

    /// When [`Manager::turn`] has something to send.
    pub(super) fn next(&self) -> Option<Instant> {
        self.beat.map(|(_, at)| at)
    }

    /// Sends the watchdog's message when it is due.
    pub(super) fn turn(&mut self, now: Instant) {
        if let Some((every, at)) = self.beat.filter(|(_, at)| *at <= now) {
            self.send("WATCHDOG=1");
            self.beat = Some((every, at.max(now) + every));
        }
    }

    pub(super) fn ready(&self) {
        self.send("READY=1");
    }

    pub(super) fn reloading(&self, now: Instant) {
        // The manager compares this with the time at which it sent the signal.
        let now = now.max(clock::now()).as_nanos() / 1_000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={now}"));
    }

    pub(super) fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Sends a line about the state.
    pub(super) fn status(&self, text: &str) {
        let line = text.lines().next().unwrap_or_default();
        let line: String = line.chars().take(STATUS_MAX).collect();
        self.send(&format!("STATUS={line}"));
    }

    /// A manager that does not read loses messages.
    fn send(&self, text: &str) {
        if let Some(socket) = &self.socket {
            let sent = socket.send(text);
            drop(sent);
        }
    }
}
