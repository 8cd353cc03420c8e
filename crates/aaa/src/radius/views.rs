//! Statistics of a client for operators.

use core::net::SocketAddr;

use base::{Duration, Instant};

use super::client::Client;
use super::event::{Discard, Purpose};
use super::server::Service;

/// Counters of one purpose of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Requests sent, without retransmissions.
    pub requests: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Timeouts of a request.
    pub timeouts: u64,
    /// Requests moved away from the server without a reply.
    pub given_up: u64,
    /// Access-Accept.
    pub accepts: u64,
    /// Access-Accepts treated as a rejection because they granted something unavailable.
    pub unusable_accepts: u64,
    /// Access-Reject.
    pub rejects: u64,
    /// Access-Challenge.
    pub challenges: u64,
    /// Accounting-Response.
    pub recorded: u64,
    /// Attributes of replies that were ignored.
    pub attributes_ignored: u64,
    /// Acct-Interim-Interval values below a minute, raised.
    pub intervals_raised: u64,
    /// Attributes about queues whose values could not be read.
    pub queues_left_out: u64,
    /// How often it was declared dead.
    pub deaths: u64,
    /// Ignored datagrams, in the order of [`Discard::NAMES`].
    pub discards: [u64; Discard::REASONS],
}

/// Round-trip times in classes that double: unambiguous ones, of requests that were sent once (Karn's algorithm).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RoundTrips {
    classes: [u64; Self::CLASSES],
    total: Duration,
}

impl RoundTrips {
    /// How many classes there are; the last has no upper bound.
    pub const CLASSES: usize = 21;
    /// The upper bound of the first class, in microseconds.
    const FIRST_US: u64 = 64;

    pub(super) fn record(&mut self, rtt: Duration) {
        let us = rtt.as_nanos().div_ceil(1_000);
        let class = us
            .div_ceil(Self::FIRST_US)
            .next_power_of_two()
            .trailing_zeros();
        self.classes[(class as usize).min(Self::CLASSES - 1)] += 1;
        self.total = self.total + rtt;
    }

    /// Every class: its upper bound, which it includes, in microseconds (`None` for the last), and its count.
    pub fn classes(&self) -> impl Iterator<Item = (Option<u64>, u64)> + '_ {
        let last = Self::CLASSES - 1;
        let bound = move |class| (class < last).then_some(Self::FIRST_US << class);
        let classes = self.classes.iter().enumerate();
        classes.map(move |(class, &count)| (bound(class), count))
    }

    /// The sum of all round-trip times.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.total
    }
}

/// State and counters of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Totals {
    /// Requests outstanding at servers.
    pub outstanding: usize,
    /// Requests waiting for others to end.
    pub waiting: usize,
    /// Requests refused.
    pub refused: u64,
    /// Requests that no server answered in time.
    pub failed: u64,
    /// Datagrams from unknown sources.
    pub unknown_server: u64,
    /// Round-trip times of requests to all servers.
    pub round_trips: RoundTrips,
}

/// One purpose of one server.
#[derive(Clone, Copy, Debug)]
pub struct ServiceView<'a> {
    /// Its index in the configuration.
    pub server: usize,
    /// The operator's name for it.
    pub name: &'a str,
    /// Its purpose.
    pub purpose: Purpose,
    /// Its address.
    pub address: SocketAddr,
    /// Since when it has been dead.
    pub dead_since: Option<Instant>,
    /// Requests outstanding at it.
    pub outstanding: usize,
    /// Sockets used for it.
    pub sockets: u16,
    /// The last unambiguous round-trip time.
    pub rtt_last: Option<Duration>,
    /// The average of about the last eight.
    pub rtt_smoothed: Option<Duration>,
    /// Its counters.
    pub counters: Counters,
}

impl Client {
    /// Its servers, each once per purpose.
    pub fn services(&self) -> impl Iterator<Item = ServiceView<'_>> {
        self.services_by_purpose()
            .map(|(server, name, purpose, service)| view(server, name, purpose, service))
    }
}

fn view<'a>(
    server: usize,
    name: &'a str,
    purpose: Purpose,
    service: &'a Service,
) -> ServiceView<'a> {
    ServiceView {
        server,
        name,
        purpose,
        address: service.address,
        dead_since: service.dead_since(),
        outstanding: service.identifiers.taken(),
        sockets: service.identifiers.sockets(),
        rtt_last: service.rtt_last,
        rtt_smoothed: service.rtt_smoothed,
        counters: service.counters,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_is_in_the_class_whose_bound_it_does_not_exceed() {
        let mut trips = RoundTrips::default();
        let micros = [0, 1, 64, 65, 128, 129, 64 << 19, (64 << 19) + 1, 1 << 60];
        for us in micros {
            trips.record(Duration::from_micros(us));
        }
        trips.record(Duration::from_nanos(64_001));
        let classes: Vec<_> = trips.classes().filter(|(_, count)| *count > 0).collect();
        let expected = [
            (Some(64), 3),
            (Some(128), 3),
            (Some(256), 1),
            (Some(33_554_432), 1),
            (None, 2),
        ];
        assert_eq!(classes, expected);
        assert_eq!(trips.classes().count(), RoundTrips::CLASSES);
    }
}
