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
    /// How often it was declared dead.
    pub deaths: u64,
    /// Ignored datagrams, in the order of [`Discard::NAMES`].
    pub discards: [u64; Discard::REASONS],
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
