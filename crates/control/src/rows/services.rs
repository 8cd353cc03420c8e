//! Rows of RADIUS and of filters.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;

use serde::Serialize;

use super::text;

/// A RADIUS server's one purpose, `radius.server/1`.
#[derive(Serialize)]
pub struct RadiusServer<'a> {
    pub schema: &'a str,
    pub name: &'a str,
    /// `authentication` or `accounting`.
    pub purpose: &'a str,
    pub address: SocketAddr,
    /// `alive` or `dead`.
    pub state: &'a str,
    pub dead_s: Option<f64>,
    /// Requests that it has.
    pub outstanding: usize,
    pub sockets: u16,
    pub rtt_last_us: Option<f64>,
    pub rtt_us: Option<f64>,
    pub requests: u64,
    pub retransmissions: u64,
    pub timeouts: u64,
    /// Requests that it was given up for.
    pub given_up: u64,
    pub accepts: u64,
    /// Accepts that granted what is not here, taken as rejects.
    pub unusable_accepts: u64,
    pub rejects: u64,
    pub challenges: u64,
    /// Accounting-Responses.
    pub recorded: u64,
    pub attributes_ignored: u64,
    pub intervals_raised: u64,
    pub deaths: u64,
    /// Replies that were ignored.
    pub ignored: u64,
    pub ignored_because: BTreeMap<&'static str, u64>,
}

/// What is of no one server, `radius/1`.
#[derive(Serialize)]
pub struct Radius<'a> {
    pub schema: &'a str,
    pub outstanding: usize,
    pub waiting: usize,
    /// Requests that were not taken.
    pub refused: u64,
    /// Requests that no server answered in time.
    pub failed: u64,
    /// Datagrams that came from no server.
    pub unknown_server: u64,
    /// Accounting records on their way.
    pub records_held: usize,
    pub records_in_flight: usize,
    pub records_delivered: u64,
    pub records_failures: u64,
    pub records_given_up: u64,
    /// Neither on disk nor on their way, for want of room.
    pub records_lost: u64,
    pub store: Option<Store>,
    pub disconnects: Option<Disconnects>,
}

/// Records on disk.
#[derive(Serialize)]
pub struct Store {
    pub stored: u64,
    pub stored_octets: u64,
    /// On their way to the disk.
    pub pending: u64,
    pub commits: u64,
    pub commit_last_us: f64,
    pub commit_longest_us: f64,
    pub refused: u64,
}

/// Disconnect-Requests (RFC 5176).
#[derive(Serialize)]
pub struct Disconnects {
    pub requests: u64,
    pub acks: u64,
    pub naks: u64,
    /// Replies sent again.
    pub repeated: u64,
    /// Ignored: from nobody who may send them, ...
    pub unknown_client: u64,
    /// ... of impossible lengths or another code, ...
    pub malformed: u64,
    /// ... not from who knows the secret, ...
    pub unauthentic: u64,
    /// ... too old or without a time, ...
    pub stale: u64,
    /// ... the same one being worked on, or too many at a time.
    pub busy: u64,
}

/// A filter, `filter/1`.
#[derive(Serialize)]
pub struct Filter<'a> {
    pub schema: &'a str,
    pub name: &'a str,
    /// Line of the file where it begins.
    pub line: usize,
    /// `false`: it was taken out of the file, and is kept for those who have it.
    pub in_file: bool,
    /// Null where packets of that direction are not filtered.
    pub rules_in: Option<usize>,
    pub rules_out: Option<usize>,
    pub accepted: u64,
    pub denied: u64,
}

/// A line of a filter, `filter.line/1`.
#[derive(Serialize)]
pub struct FilterLine<'a> {
    pub schema: &'a str,
    pub filter: &'a str,
    #[serde(serialize_with = "text")]
    pub direction: &'a dyn Display,
    pub rule: u32,
    /// Line of the file; null for what need not be written.
    pub line: Option<usize>,
    pub text: &'a str,
    pub accept: bool,
    pub log: bool,
    /// Packets that it decided on.
    pub hits: u64,
}
