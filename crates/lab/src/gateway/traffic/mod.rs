//! The traffic of the home-gateway experiment: loads on the link, and measurements beside them.
//!
//! All functions block on plain sockets and are meant for threads of their own in a network
//! namespace. Each ends by itself at a given time.
//!
//! | file | replaces |
//! |---|---|
//! | `bulk` | `scp`: one TCP connection that sends as fast as possible |
//! | `flood` | `iperf -u -b 8M`: datagrams without regard to loss |
//! | `stream` | `iperf -u -b 200k -l 500`: loss and jitter of a thin stream |
//! | `page` | a web page with a dozen objects, with its server and loader |
//! | `browser` | the same page in headless Chromium |

pub mod browser;
pub mod bulk;
pub mod flood;
pub mod page;
pub mod stream;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Longest that a reader waits before it reads the clock again.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A destination, a start and an end.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// The destination.
    pub to: SocketAddr,
    /// When sending starts.
    pub begin: Instant,
    /// When it ends.
    pub end: Instant,
}

impl Span {
    /// Waits for the start.
    fn wait(&self) {
        std::thread::sleep(self.begin.saturating_duration_since(Instant::now()));
    }
}

/// Times at which packets of one size are due at a rate. Each is computed from the first, so there
/// is no drift.
struct Pace {
    begin: Instant,
    bits_per_packet: u64,
    rate_bps: u64,
    sent: u64,
}

impl Pace {
    fn new(begin: Instant, octets: usize, rate_bps: u64) -> Self {
        Self {
            begin,
            bits_per_packet: octets as u64 * 8,
            rate_bps: rate_bps.max(1),
            sent: 0,
        }
    }

    /// Sleeps until the next packet is due.
    fn wait(&mut self) {
        let ns = u128::from(self.sent) * u128::from(self.bits_per_packet) * 1_000_000_000
            / u128::from(self.rate_bps);
        self.sent += 1;
        let due = self.begin + Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

#[cfg(test)]
mod tests;
