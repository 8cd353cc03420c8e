//! Rows of RADIUS and of filters.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;

use serde::Serialize;

use super::text;

/// A RADIUS server's one purpose, `radius.server/1`.
#[derive(Serialize)]
pub(crate) struct RadiusServer<'a> {
    pub(crate) schema: &'a str,
    pub(crate) name: &'a str,
    /// `authentication` or `accounting`.
    pub(crate) purpose: &'a str,
    pub(crate) address: SocketAddr,
    /// `alive` or `dead`.
    pub(crate) state: &'a str,
    pub(crate) dead_s: Option<f64>,
    /// Requests that it has.
    pub(crate) outstanding: usize,
    pub(crate) sockets: u16,
    pub(crate) rtt_last_us: Option<f64>,
    pub(crate) rtt_us: Option<f64>,
    pub(crate) requests: u64,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    /// Requests that it was given up for.
    pub(crate) given_up: u64,
    pub(crate) accepts: u64,
    /// Accepts that granted what is not here, taken as rejects.
    pub(crate) unusable_accepts: u64,
    pub(crate) rejects: u64,
    pub(crate) challenges: u64,
    /// Accounting-Responses.
    pub(crate) recorded: u64,
    pub(crate) attributes_ignored: u64,
    pub(crate) intervals_raised: u64,
    pub(crate) deaths: u64,
    /// Replies that were ignored.
    pub(crate) ignored: u64,
    pub(crate) ignored_because: BTreeMap<&'static str, u64>,
}

/// What is of no one server, `radius/1`.
#[derive(Serialize)]
pub(crate) struct Radius<'a> {
    pub(crate) schema: &'a str,
    pub(crate) outstanding: usize,
    pub(crate) waiting: usize,
    /// Requests that were not taken.
    pub(crate) refused: u64,
    /// Requests that no server answered in time.
    pub(crate) failed: u64,
    /// Datagrams that came from no server.
    pub(crate) unknown_server: u64,
    /// Accounting records on their way.
    pub(crate) records_held: usize,
    pub(crate) records_in_flight: usize,
    pub(crate) records_delivered: u64,
    pub(crate) records_failures: u64,
    pub(crate) records_given_up: u64,
    /// Neither on disk nor on their way, for want of room.
    pub(crate) records_lost: u64,
    pub(crate) store: Option<Store>,
    pub(crate) disconnects: Option<Disconnects>,
}

/// Records on disk.
#[derive(Serialize)]
pub(crate) struct Store {
    pub(crate) stored: u64,
    pub(crate) stored_octets: u64,
    /// On their way to the disk.
    pub(crate) pending: u64,
    pub(crate) commits: u64,
    pub(crate) commit_last_us: f64,
    pub(crate) commit_longest_us: f64,
    pub(crate) refused: u64,
}

/// Disconnect-Requests (RFC 5176).
#[derive(Serialize)]
pub(crate) struct Disconnects {
    pub(crate) requests: u64,
    pub(crate) acks: u64,
    pub(crate) naks: u64,
    /// Replies sent again.
    pub(crate) repeated: u64,
    /// Ignored: from nobody who may send them, ...
    pub(crate) unknown_client: u64,
    /// ... of impossible lengths or another code, ...
    pub(crate) malformed: u64,
    /// ... not from who knows the secret, ...
    pub(crate) unauthentic: u64,
    /// ... too old or without a time, ...
    pub(crate) stale: u64,
    /// ... the same one being worked on, or too many at a time.
    pub(crate) busy: u64,
}

/// A filter, `filter/1`.
#[derive(Serialize)]
pub(crate) struct Filter<'a> {
    pub(crate) schema: &'a str,
    pub(crate) name: &'a str,
    /// Line of the file where it begins.
    pub(crate) line: usize,
    /// `false`: it was taken out of the file, and is kept for those who have it.
    pub(crate) in_file: bool,
    /// Null where packets of that direction are not filtered.
    pub(crate) rules_in: Option<usize>,
    pub(crate) rules_out: Option<usize>,
    pub(crate) accepted: u64,
    pub(crate) denied: u64,
}

/// A line of a filter, `filter.line/1`.
#[derive(Serialize)]
pub(crate) struct FilterLine<'a> {
    pub(crate) schema: &'a str,
    pub(crate) filter: &'a str,
    #[serde(serialize_with = "text")]
    pub(crate) direction: &'a dyn Display,
    pub(crate) rule: u32,
    /// Line of the file; null for what need not be written.
    pub(crate) line: Option<usize>,
    pub(crate) text: &'a str,
    pub(crate) accept: bool,
    pub(crate) log: bool,
    /// Packets that it decided on.
    pub(crate) hits: u64,
}
