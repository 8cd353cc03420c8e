//! What an operator sees of a client.

use core::net::SocketAddr;

use base::{Duration, Instant};

use super::client::Client;
use super::event::{Discard, Purpose};
use super::server::Service;

/// What one server was asked for one purpose, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Requests sent, without repetitions.
    pub requests: u64,
    /// Repetitions.
    pub retransmissions: u64,
    /// Times that a request waited in vain.
    pub timeouts: u64,
    /// Requests that the server was given up for.
    pub given_up: u64,
    /// Access-Accept.
    pub accepts: u64,
    /// Access-Accept that granted what is not here, taken as a rejection.
    pub unusable_accepts: u64,
    /// Access-Reject.
    pub rejects: u64,
    /// Access-Challenge.
    pub challenges: u64,
    /// Accounting-Response.
    pub recorded: u64,
    /// Attributes of replies that were ignored.
    pub attributes_ignored: u64,
    /// Acct-Interim-Interval below a minute, raised.
    pub intervals_raised: u64,
    /// Times that it died.
    pub deaths: u64,
    /// What was ignored, as [`Discard::NAMES`].
    pub discards: [u64; Discard::REASONS],
}

/// A client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Totals {
    /// Requests at servers.
    pub outstanding: usize,
    /// Requests that wait for others to end.
    pub waiting: usize,
    /// Requests that were not taken.
    pub refused: u64,
    /// Requests that no server answered in time.
    pub failed: u64,
    /// Datagrams that came from no server.
    pub unknown_server: u64,
}

/// One server's one purpose.
#[derive(Clone, Copy, Debug)]
pub struct ServiceView<'a> {
    /// Its place in the configuration.
    pub server: usize,
    /// What an operator calls it.
    pub name: &'a str,
    /// What it is for.
    pub purpose: Purpose,
    /// Where it is.
    pub address: SocketAddr,
    /// Since when it is dead.
    pub dead_since: Option<Instant>,
    /// Requests that it has.
    pub outstanding: usize,
    /// Sockets used for it.
    pub sockets: u16,
    /// The last round trip that was certain.
    pub rtt_last: Option<Duration>,
    /// The average of the last some eight.
    pub rtt_smoothed: Option<Duration>,
    /// All that is counted.
    pub counters: Counters,
}

impl Client {
    /// Its servers, each once for each of its purposes.
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
