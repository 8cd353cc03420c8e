//! Rows of RADIUS and of filters.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;

use serde::Serialize;

use super::text;

row! {
    /// A RADIUS server in one purpose.
    #[derive(Serialize)]
    RadiusServer<'a> is "radius.server/1" as Table {
        /// The server's name.
        name: &'a str = [id text "SERVER"],
        /// `authentication` or `accounting`.
        purpose: &'a str = [id text "PURPOSE"],
        /// Its address and port.
        address: SocketAddr = [text "ADDRESS"],
        /// `alive` or `dead`.
        state: &'a str = [text "STATE"],
        /// Time since it was marked dead.
        dead_s: Option<f64> = [gauge Seconds],
        /// Requests without a reply yet.
        outstanding: usize = [gauge "PENDING"],
        /// Sockets open to the server.
        sockets: u16 = [gauge],
        /// Round trip of the last reply.
        rtt_last_us: Option<f64> = [gauge Micros],
        /// Smoothed round trip.
        rtt_us: Option<f64> = [gauge Micros "RTT (US)"],
        /// Requests sent, without retransmissions.
        requests: u64 = [counter "REQUESTS"],
        /// Requests sent again.
        retransmissions: u64 = [counter "RETRANSMITS"],
        /// Transmissions without a reply in time.
        timeouts: u64 = [counter "TIMEOUTS"],
        /// Requests for which the client stopped using this server.
        given_up: u64 = [counter],
        /// Access-Accepts.
        accepts: u64 = [counter "ACCEPTS"],
        /// Access-Accepts that grant something unsupported, treated as rejections.
        unusable_accepts: u64 = [counter],
        /// Access-Rejects.
        rejects: u64 = [counter "REJECTS"],
        /// Access-Challenges.
        challenges: u64 = [counter],
        /// Accounting-Responses.
        recorded: u64 = [counter "ACCT-OK"],
        /// Attributes in replies that have no effect here.
        attributes_ignored: u64 = [counter],
        /// Interim intervals below 60 s, raised to 60 s.
        intervals_raised: u64 = [counter],
        /// Attributes about queues whose values could not be read.
        queues_left_out: u64 = [counter],
        /// Times that the server was marked dead.
        deaths: u64 = [counter],
        /// Invalid replies.
        ignored: u64 = [counter "IGNORED"],
        /// Invalid replies, by reason.
        ignored_because: BTreeMap<&'static str, u64> = [counter One Text "REASONS"],
    }
}

row! {
    /// RADIUS as a whole.
    #[derive(Serialize)]
    Radius<'a> is "radius/1" as Block {
        /// Requests without a reply yet.
        outstanding: usize = [gauge "pending requests"],
        /// Requests that wait for a free slot.
        waiting: usize = [gauge "queued requests"],
        /// Requests that were refused because the queue was full.
        refused: u64 = [counter "refused requests"],
        /// Requests that no server answered in time.
        failed: u64 = [counter "unanswered requests"],
        /// Datagrams from addresses of no server.
        unknown_server: u64 = [counter "datagrams from unknown addresses"],
        /// Accounting records in memory.
        records_held: usize = [gauge "accounting records in memory"],
        /// Accounting records sent and not yet acknowledged.
        records_in_flight: usize = [gauge "  pending at servers"],
        /// Accounting records that a server acknowledged.
        records_delivered: u64 = [counter "accounting records acknowledged"],
        /// Failed deliveries of accounting records.
        records_failures: u64 = [counter "  failed deliveries"],
        /// Accounting records that no server accepted.
        records_given_up: u64 = [counter "accounting records not accepted"],
        /// Accounting records lost because neither memory nor disk had room.
        records_lost: u64 = [counter "accounting records lost"],
        /// The store on disk.
        store: Option<Store> = [part Store "store on disk"],
        /// Disconnect-Requests and CoA-Requests (RFC 5176).
        disconnects: Option<Disconnects> = [part Disconnects "Disconnect-Requests and CoA-Requests"],
    }
}

row! {
    /// Accounting records on disk.
    #[derive(Serialize)]
    Store is part {
        /// Records on disk.
        stored: u64 = [gauge],
        /// Size of the records on disk.
        stored_octets: u64 = [gauge Bytes],
        /// Open sessions on disk, which get a Stop if the daemon is killed.
        open: u64 = [gauge],
        /// Records that wait for the next commit.
        pending: u64 = [gauge],
        /// Commits so far.
        commits: u64 = [counter],
        /// Time of the last commit.
        commit_last_us: f64 = [gauge Micros],
        /// Time of the longest commit.
        commit_longest_us: f64 = [gauge Micros],
        /// Records that the store refused because it was full.
        refused: u64 = [counter],
    }
}

row! {
    /// Disconnect-Requests and CoA-Requests (RFC 5176).
    #[derive(Serialize)]
    Disconnects is part {
        /// Valid requests.
        requests: u64 = [counter],
        /// Disconnect-ACKs sent.
        acks: u64 = [counter],
        /// Disconnect-NAKs sent.
        naks: u64 = [counter],
        /// Valid CoA-Requests, which `requests` includes.
        changes: u64 = [counter],
        /// CoA-ACKs sent.
        change_acks: u64 = [counter],
        /// CoA-NAKs sent.
        change_naks: u64 = [counter],
        /// NAKs of both kinds, by Error-Cause.
        refused_because: BTreeMap<&'static str, u64> = [counter One Text],
        /// Replies sent again.
        repeated: u64 = [counter],
        /// Requests ignored because their source is not a configured client.
        unknown_client: u64 = [counter],
        /// Requests ignored because of a wrong length or code.
        malformed: u64 = [counter],
        /// Requests ignored because their authenticator is wrong.
        unauthentic: u64 = [counter],
        /// Requests ignored because they are too old, or have no time.
        stale: u64 = [counter],
        /// Requests ignored because the same one, or too many, are in progress.
        busy: u64 = [counter],
    }
}

row! {
    /// A filter.
    #[derive(Serialize)]
    Filter<'a> is "filter/1" as Table {
        /// Its name (Filter-Id).
        name: &'a str = [id text "FILTER"],
        /// Line of the file where it starts.
        line: usize = [id "LINE"],
        /// `false`: it was removed from the file, and subscribers still use it.
        in_file: bool = [text "IN FILE"],
        /// Rules for packets from the subscriber; null: that direction is not filtered.
        rules_in: Option<usize> = [gauge "RULES IN"],
        /// Rules for packets to the subscriber; null: that direction is not filtered.
        rules_out: Option<usize> = [gauge "RULES OUT"],
        /// Packets accepted.
        accepted: u64 = [counter "ACCEPTED"],
        /// Packets denied.
        denied: u64 = [counter "DENIED"],
    }
}

row! {
    /// A line of a filter.
    #[derive(Serialize)]
    FilterLine<'a> is "filter.line/1" as Table {
        /// The filter's name.
        filter: &'a str = [id text],
        /// `in` or `out`.
        #[serde(serialize_with = "text")]
        direction: &'a dyn Display = [id text "DIRECTION"],
        /// Number of the rule in its direction.
        rule: u32 = [id],
        /// Line of the file; null for the rule at the end that the file does not contain.
        line: Option<usize> = [id "LINE"],
        /// Packets that the rule decided on.
        hits: u64 = [counter "HITS"],
        /// The rule.
        text: &'a str = [text "RULE"],
        /// Whether it accepts packets.
        accept: bool = [text],
        /// Whether it logs packets.
        log: bool = [text],
    }
}
