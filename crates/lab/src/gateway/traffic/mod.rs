//! The traffic of the home-gateway experiment: what loads the link, and what is measured beside the load.
//!
//! Everything here is blocking code over plain sockets, meant for threads of its own inside a network namespace, and
//! ends by itself at the time it was given.
//!
//! | file | takes the place of |
//! |---|---|
//! | `bulk` | `scp`: one TCP connection that sends as fast as it may |
//! | `flood` | `iperf -u -b 8M`: datagrams that do not care |
//! | `stream` | `iperf -u -b 200k -l 500`: loss and jitter of a thin stream |
//! | `page` | a web page with a dozen objects, its server and a loader of its own |
//! | `browser` | the same page in headless Chromium |

pub mod browser;
pub mod bulk;
pub mod flood;
pub mod page;
pub mod stream;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Longest that a reader waits before it looks at the clock again.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Where, from when, and until when.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// Who is sent to.
    pub to: SocketAddr,
    /// When sending begins.
    pub begin: Instant,
    /// When it ends.
    pub end: Instant,
}

impl Span {
    /// Waits for the beginning.
    fn wait(&self) {
        std::thread::sleep(self.begin.saturating_duration_since(Instant::now()));
    }
}

/// Times at which packets of one size are due at a rate, without drift: each is reckoned from the first.
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
