//! Counts of the whole input, for the end of a report and the header of a part.

use serde::{Deserialize, Serialize};

/// Counts of packets, connections and flows.
///
/// Each part of a partitioned run reads every packet, so the counts of packets are the same in all parts. Counts of
/// connections and flows are each part's own, and add up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Time of the first packet, in nanoseconds since 1970.
    pub first_time: Option<i64>,
    /// Time of the last packet.
    pub last_time: Option<i64>,
    /// Packets with an IP header.
    pub packets: u64,
    /// TCP packets of the whole input. The parts' `tcp` add up to it.
    pub tcp_seen: u64,
    /// Packets too short in the capture to be analysed.
    pub too_short: u64,
    /// Packets with a wrong checksum of IP, TCP and UDP; `None` if checksums were not verified.
    pub bad_checksums: Option<[u64; 3]>,
    /// Other counts by name: frames skipped by reason, packets by encapsulation.
    pub seen: Vec<(String, u64)>,

    /// TCP packets analysed.
    pub tcp: u64,
    /// UDP packets analysed; `None` if UDP was not analysed.
    pub udp: Option<u64>,
    /// TCP connections.
    pub connections: u64,
    /// UDP flows.
    pub flows: u64,
    /// Packets of UDP flows beyond the limit of flows.
    pub flows_beyond: u64,
    /// Open connections finished early because memory ran out.
    pub finished_early: u64,
    /// Closed connections finished early because memory ran out.
    pub closed_early: u64,
    /// How often segments in flight were forgotten because memory ran out.
    pub flights_cut: u64,
}

/// One count of the summary, for JSON, Parquet's metadata and the documentation.
pub struct Count {
    /// Its name.
    pub name: &'static str,
    /// What it counts, in one sentence.
    pub doc: &'static str,
    /// Its value; `None` if it was not counted.
    pub get: fn(&Summary) -> Option<i128>,
}

const fn count(name: &'static str, get: fn(&Summary) -> Option<i128>, doc: &'static str) -> Count {
    Count { name, doc, get }
}

/// The counts of a summary except those in [`Summary::seen`].
#[rustfmt::skip]
pub const SUMMARY: &[Count] = &[
    count("first_time", |summary| summary.first_time.map(i128::from),
        "Time of the first packet of the input, in nanoseconds since 1970."),
    count("last_time", |summary| summary.last_time.map(i128::from),
        "Time of the last packet of the input, in nanoseconds since 1970."),
    count("packets", |summary| Some(summary.packets.into()),
        "Packets with an IP header."),
    count("tcp_packets", |summary| Some(summary.tcp.into()),
        "TCP packets analysed."),
    count("udp_packets", |summary| summary.udp.map(i128::from),
        "UDP packets analysed; null without `-u`."),
    count("too_short", |summary| Some(summary.too_short.into()),
        "Packets whose captured part is too short to analyse."),
    count("bad_ip_checksums", |summary| summary.bad_checksums.map(|bad| bad[0].into()),
        "Packets with a wrong IP checksum; null without `--checksum`."),
    count("bad_tcp_checksums", |summary| summary.bad_checksums.map(|bad| bad[1].into()),
        "Packets with a wrong TCP checksum; null without `--checksum`."),
    count("bad_udp_checksums", |summary| summary.bad_checksums.map(|bad| bad[2].into()),
        "Packets with a wrong UDP checksum; null without `--checksum`."),
    count("connections", |summary| Some(summary.connections.into()),
        "TCP connections."),
    count("udp_flows", |summary| Some(summary.flows.into()),
        "UDP flows."),
    count("udp_packets_beyond", |summary| Some(summary.flows_beyond.into()),
        "UDP packets of flows that headend does not list, because the flow table was full."),
    count("finished_early", |summary| Some(summary.finished_early.into()),
        "Open connections that headend ended early because memory ran out. headend counts all packets after the early end of a connection as a new connection."),
    count("closed_early", |summary| Some(summary.closed_early.into()),
        "Closed connections that headend ended early because memory ran out. headend ends closed connections before open ones. headend counts late packets of a connection that it ended as a new connection."),
    count("flights_cut", |summary| Some(summary.flights_cut.into()),
        "How often headend stopped tracking segments in flight because memory ran out. headend does not time the retransmissions of segments that it no longer tracks."),
];

impl Summary {
    /// The time of the capture's last packet, in nanoseconds since 1970. The silence of an open connection lasts until
    /// then.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.last_time.unwrap_or(0)
    }

    /// Whether a limit of memory changed the results. Parts may then differ from the whole.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.finished_early > 0
            || self.closed_early > 0
            || self.flights_cut > 0
            || self.flows_beyond > 0
    }

    /// The first count of packets in which the two differ, and both values.
    pub(crate) fn difference(&self, other: &Summary) -> Option<(String, String, String)> {
        let shown = |time: Option<i64>| time.map_or("none".to_owned(), |time| time.to_string());
        let [mine, theirs] = [self, other].map(|summary| {
            let mut figures = vec![
                ("packets".to_owned(), summary.packets.to_string()),
                (
                    "time of the first packet".to_owned(),
                    shown(summary.first_time),
                ),
                (
                    "time of the last packet".to_owned(),
                    shown(summary.last_time),
                ),
                ("TCP packets".to_owned(), summary.tcp_seen.to_string()),
                (
                    "packets too short".to_owned(),
                    summary.too_short.to_string(),
                ),
                (
                    "bad checksums".to_owned(),
                    format!("{:?}", summary.bad_checksums),
                ),
            ];
            let seen = summary.seen.iter();
            figures.extend(seen.map(|(name, count)| (name.clone(), count.to_string())));
            figures
        });
        let length = mine.len().max(theirs.len());
        let none = || ("figures".to_owned(), "none".to_owned());
        (0..length).find_map(|at| {
            let mine = mine.get(at).cloned().unwrap_or_else(none);
            let theirs = theirs.get(at).cloned().unwrap_or_else(none);
            (mine != theirs).then(|| {
                let name = if mine.0 == "figures" {
                    theirs.0
                } else {
                    mine.0
                };
                (name, mine.1, theirs.1)
            })
        })
    }

    /// Adds the counts of another part.
    pub(crate) fn add(&mut self, other: &Summary) {
        self.tcp = self.tcp.saturating_add(other.tcp);
        self.udp = match (self.udp, other.udp) {
            (Some(mine), Some(theirs)) => Some(mine.saturating_add(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        for (mine, theirs) in [
            (&mut self.connections, other.connections),
            (&mut self.flows, other.flows),
            (&mut self.flows_beyond, other.flows_beyond),
            (&mut self.finished_early, other.finished_early),
            (&mut self.closed_early, other.closed_early),
            (&mut self.flights_cut, other.flights_cut),
        ] {
            *mine = mine.saturating_add(theirs);
        }
    }
}
