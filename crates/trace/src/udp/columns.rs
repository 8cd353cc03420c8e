//! The results of UDP flows as a table: a row for each flow. The Python package makes Arrow columns of it. The lines of
//! `headend trace why -u --json` have the same values, of each stream.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::Sent;
use super::report::Report;
use super::sequence::{Protocol, Stream};
use super::traffic::{Dns, Sender};
use crate::quic::{Numbers, Quic, Spin};

/// Version of the columns.
pub const SCHEMA: &str = "why_udp/1";

/// Packets of one direction: the source of a column's value.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Packets and bytes.
    pub sent: &'a Sent,
    /// Silences and streams.
    pub sender: &'a Sender,
}

/// Computes a number of a direction.
pub type OfSide = fn(&Side<'_>) -> Option<u64>;

/// Computes a number of one end of a QUIC connection: 0 is the client, 1 the server.
pub type OfEnd = fn(&Quic, usize) -> Option<u64>;

/// Computes a column's value. The variant is the value's type.
#[derive(Clone, Copy)]
pub enum Get {
    /// A number, or a time in nanoseconds.
    Count(fn(&Report<'_>) -> u64),
    /// A number that may be absent.
    Maybe(fn(&Report<'_>) -> Option<u64>),
    /// A time in nanoseconds that may be absent.
    Span(fn(&Report<'_>) -> Option<i64>),
    /// A time in nanoseconds since 1970.
    Moment(fn(&Report<'_>) -> i64),
    /// Yes or no, which may be absent.
    Flag(fn(&Report<'_>) -> Option<bool>),
    /// Text that may be absent.
    Text(for<'a> fn(&'a Report<'_>) -> Option<Cow<'a, str>>),
    /// A number of the direction that end `a` sends, or of the other one. It may be absent.
    Side(bool, OfSide),
    /// A number of the client, or of the server, of a QUIC connection. It may be absent.
    End(usize, OfEnd),
}

impl Get {
    /// Whether a row may have no value.
    #[must_use]
    pub const fn may_be_absent(self) -> bool {
        !matches!(self, Get::Count(_) | Get::Moment(_))
    }
}

/// A column.
pub struct Column {
    /// Its name.
    pub name: String,
    /// A description in one sentence.
    pub doc: String,
    /// Computes its value.
    pub get: Get,
}

/// Columns before those of the directions: name, value, description.
#[rustfmt::skip]
const FLOW: [(&str, Get, &str); 12] = [
    ("flow", Get::Count(|report| report.flow.number),
        "Number of the flow, in the order of first packets."),
    ("a_address", Get::Text(|report| Some(report.flow.a_end().0.to_string().into())),
        "IP address of end a, the end that sent the flow's first packet."),
    ("a_port", Get::Count(|report| report.flow.a_end().1.into()),
        "UDP port of end a."),
    ("b_address", Get::Text(|report| Some(report.flow.b_end().0.to_string().into())),
        "IP address of end b."),
    ("b_port", Get::Count(|report| report.flow.b_end().1.into()),
        "UDP port of end b."),
    ("first_time", Get::Moment(|report| report.flow.first_time),
        "Time of the flow's first packet."),
    ("elapsed_ns", Get::Count(|report| report.flow.elapsed().unsigned_abs()),
        "Time from the flow's first packet to its last."),
    ("lost_ns", Get::Count(|report| report.lost().unsigned_abs()),
        "Time lost: to packets of QUIC's handshake that were sent again, until DNS's slowest answer, or in RTP's longest outage; otherwise 0."),
    ("protocol", Get::Text(|report| Some(report.protocol.into())),
        "What the payload is: quic, rtp, esp, wireguard, dns or unknown."),
    ("sentence", Get::Text(|report| Some(report.sentence.as_str().into())),
        "What the packets show, in one sentence."),
    ("not_visible", Get::Text(|report| Some(report.not_visible.into())),
        "What the packets do not show."),
    ("last_sender", Get::Text(|report| Some(if report.traffic.last_from_a { "a" } else { "b" }.into())),
        "The end that sent the last packet: a or b."),
];

/// Columns of each direction: the end of the name, value, description. Those after `silence_until_packet` are absent
/// unless the payload shows sequence numbers.
#[rustfmt::skip]
const SIDE: [(&str, OfSide, &str); 14] = [
    ("packets", |side| Some(side.sent.packets),
        "Packets."),
    ("bytes", |side| Some(side.sent.bytes),
        "Bytes, with 8 of UDP header each."),
    ("silence_ns", |side| Some(side.sender.silence.0.unsigned_abs()),
        "The longest time between two packets."),
    ("silence_until_packet", |side| present(side.sender.silence.1),
        "The packet that ended this time."),
    ("payload_type", |side| match main(side)?.protocol { Protocol::Rtp(kind) => Some(kind.into()), _ => None },
        "RTP's payload type, of the stream with the most packets."),
    ("expected", |side| sum(side, Stream::expected),
        "Packets that the sender must have sent, by their sequence numbers."),
    ("lost", |side| sum(side, Stream::lost),
        "Packets that did not arrive at the point of capture."),
    ("lost_in_a_row", |side| Some(longest(side)?.gap_max.0),
        "The most packets lost in a row."),
    ("lost_in_a_row_until_packet", |side| present(longest(side)?.gap_max.1),
        "The packet after them."),
    ("outage_ns", |side| longest_outage(side),
        "Longest outage of an RTP stream: the packets lost in a row, times their spacing."),
    ("out_of_order", |side| sum(side, |stream| stream.reordered),
        "Packets with a sequence number below an earlier one."),
    ("duplicates", |side| sum(side, |stream| stream.duplicates),
        "Packets with a sequence number that had arrived before."),
    ("jitter_mean_ns", |side| Some(main(side)?.jitter.mean_and_max()?.0.unsigned_abs()),
        "Mean of RTP's interarrival jitter, of the stream with the most packets."),
    ("jitter_max_ns", |side| Some(main(side)?.jitter.mean_and_max()?.1.unsigned_abs()),
        "The largest jitter of this stream."),
];

/// Columns after those of the directions: name, value, description.
#[rustfmt::skip]
const PROTOCOLS: [(&str, Get, &str); 22] = [
    ("dns_questions", Get::Maybe(|report| Some(dns(report)?.questions)),
        "Questions, each once."),
    ("dns_unanswered", Get::Maybe(|report| Some(dns(report)?.unanswered())),
        "Questions without an answer."),
    ("dns_repeated", Get::Maybe(|report| Some(dns(report)?.repeated)),
        "Questions sent again before an answer."),
    ("dns_answer_min_ns", Get::Span(|report| Some(answers(report)?.times().min)),
        "Shortest time from a question, as first sent, to its answer."),
    ("dns_answer_avg_ns", Get::Span(|report| answers(report)?.mean()),
        "Mean of these times."),
    ("dns_answer_max_ns", Get::Span(|report| Some(answers(report)?.times().max)),
        "Longest of these times."),
    ("dns_slowest_packet", Get::Maybe(|report| Some(answers(report)?.slowest.1)),
        "The packet with the slowest answer."),
    ("quic_version", Get::Text(|report| Some(format!("0x{:08x}", quic(report)?.version).into())),
        "Version of QUIC, of the client's last Initial packet."),
    ("quic_server_name", Get::Text(|report| Some(quic(report)?.server_name.as_str()).filter(|name| !name.is_empty()).map(Cow::from)),
        "Name of the server in the ClientHello."),
    ("quic_handshake_ns", Get::Span(|report| quic(report)?.handshake()),
        "Time from the client's first packet to its first with a short header."),
    ("quic_answer_ns", Get::Span(|report| quic(report)?.answer()),
        "Time from the client's first packet to the server's first."),
    ("quic_reply_ns", Get::Span(|report| quic(report)?.reply()),
        "Time from the server's first packet to the client's next."),
    ("quic_server_data_ns", Get::Span(|report| quic(report)?.server_data()),
        "Time from the client's first packet to the server's first with a short header."),
    ("quic_repeated_hellos", Get::Maybe(|report| quic(report)?.repeats()),
        "How often the client sent its ClientHello again before the server's first packet; absent if the ClientHello cannot be read."),
    ("quic_first_repeat_ns", Get::Span(|report| quic(report)?.first_repeat()),
        "Time from the client's first packet to the first repeated ClientHello."),
    ("quic_retry", Get::Flag(|report| Some(quic(report)?.retried)),
        "The server sent a Retry packet."),
    ("quic_version_negotiation", Get::Flag(|report| Some(quic(report)?.negotiated_version)),
        "The server sent a Version Negotiation packet."),
    ("quic_early_packets", Get::Maybe(|report| Some(quic(report)?.early_packets)),
        "Packets with the client's 0-RTT data."),
    ("quic_moves", Get::Maybe(|report| Some(quic(report)?.move_count)),
        "Other addresses and ports that the client sent from with the same connection ID."),
    ("quic_first_move_address", Get::Text(|report| Some(quic(report)?.moves.first()?.address.to_string().into())),
        "Address that the client first moved to."),
    ("quic_first_move_port", Get::Maybe(|report| Some(quic(report)?.moves.first()?.port.into())),
        "Port that the client first moved to."),
    ("quic_first_move_packet", Get::Maybe(|report| Some(quic(report)?.moves.first()?.packet)),
        "The first packet from there."),
];

/// Columns of each end of a QUIC connection: the end of the name, value, description.
#[rustfmt::skip]
const END: [(&str, OfEnd, &str); 9] = [
    ("initials_packets", |quic, end| Some(initials(quic, end)?.packets),
        "Initial packets whose numbers can be read, without duplicates."),
    ("initials_missing", |quic, end| Some(initials(quic, end)?.missing()),
        "Numbers between the lowest and the highest without a packet: lost before the point of capture, or left out by the sender."),
    ("initials_duplicates", |quic, end| Some(initials(quic, end)?.duplicates),
        "Initial packets with a number that had arrived before."),
    ("initials_out_of_order", |quic, end| Some(initials(quic, end)?.reordered),
        "Initial packets with a number below an earlier one."),
    ("initials_retransmitted", |quic, end| Some(initials(quic, end)?.retransmitted),
        "Initial packets with CRYPTO data that a packet with another number had."),
    ("initials_first_retransmission_ns", |quic, end| initials(quic, end)?.retransmitted_after(quic.started).map(i64::unsigned_abs),
        "Time from the client's first packet to the first of these."),
    ("spin_rtt_min_ns", |quic, end| Some(spins(quic, end)?.round_trips().min.unsigned_abs()),
        "Shortest round trip by the spin bit; absent unless the end seems to spin."),
    ("spin_rtt_median_ns", |quic, end| Some(spins(quic, end)?.median()?.0.unsigned_abs()),
        "Median of these round trips."),
    ("spin_rtt_max_ns", |quic, end| Some(spins(quic, end)?.round_trips().max.unsigned_abs()),
        "Longest of these round trips."),
];

/// A packet's number; 0 is none.
fn present(packet: u64) -> Option<u64> {
    (packet > 0).then_some(packet)
}

fn streams<'a>(side: &Side<'a>) -> impl Iterator<Item = &'a Stream> + use<'a> {
    side.sender.streams.iter()
}

fn sum(side: &Side<'_>, get: fn(&Stream) -> u64) -> Option<u64> {
    streams(side).map(get).reduce(u64::saturating_add)
}

/// The stream with the most packets.
fn main<'a>(side: &Side<'a>) -> Option<&'a Stream> {
    streams(side).max_by_key(|stream| stream.packets)
}

/// The stream with the most packets lost in a row.
fn longest<'a>(side: &Side<'a>) -> Option<&'a Stream> {
    streams(side).max_by_key(|stream| stream.gap_max.0)
}

fn longest_outage(side: &Side<'_>) -> Option<u64> {
    let rtp = streams(side).filter(|stream| matches!(stream.protocol, Protocol::Rtp(_)));
    rtp.map(|stream| stream.outage.0.unsigned_abs()).max()
}

fn dns<'a>(report: &Report<'a>) -> Option<&'a Dns> {
    report.traffic.dns.as_ref()
}

/// DNS with at least one answer.
fn answers<'a>(report: &Report<'a>) -> Option<&'a Dns> {
    dns(report).filter(|dns| dns.times().count > 0)
}

fn quic<'a>(report: &Report<'a>) -> Option<&'a Quic> {
    report.flow.quic.as_deref()
}

fn initials(quic: &Quic, end: usize) -> Option<&Numbers> {
    quic.initials.get(end)
}

/// The spin bit of an end that seems to spin.
fn spins(quic: &Quic, end: usize) -> Option<&Spin> {
    quic.spin.get(end).filter(|spin| spin.median().is_some())
}

/// All columns, in order.
pub static ALL: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let whole = |(name, get, doc): (&str, Get, &str)| Column {
        name: name.to_owned(),
        doc: doc.to_owned(),
        get,
    };
    let sides = [(true, "a2b", "From a to b"), (false, "b2a", "From b to a")];
    let sides = sides.into_iter().flat_map(|(from_a, side, direction)| {
        SIDE.map(|(end, get, doc)| Column {
            name: format!("{side}_{end}"),
            doc: format!("{direction}: {doc}"),
            get: Get::Side(from_a, get),
        })
    });
    let ends = ["client", "server"].into_iter().enumerate();
    let ends = ends.flat_map(|(at, end)| {
        END.map(|(name, get, doc)| Column {
            name: format!("quic_{end}_{name}"),
            doc: format!("The {end}: {doc}"),
            get: Get::End(at, get),
        })
    });
    let before = FLOW.into_iter().map(whole).chain(sides);
    before
        .chain(PROTOCOLS.into_iter().map(whole))
        .chain(ends)
        .collect()
});

impl<'a> Report<'a> {
    /// The packets that end `a` sent, or those of the other end.
    #[must_use]
    pub fn side(&self, from_a: bool) -> Side<'a> {
        match from_a {
            true => Side {
                sent: &self.flow.a,
                sender: &self.traffic.a,
            },
            false => Side {
                sent: &self.flow.b,
                sender: &self.traffic.b,
            },
        }
    }
}
