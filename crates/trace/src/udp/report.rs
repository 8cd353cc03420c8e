//! The result for a UDP flow: what its packets show, in one sentence, and what they do not show.

use core::net::{IpAddr, SocketAddr};

use super::Flow;
use super::sequence::{Protocol, Stream};
use super::traffic::{Dns, Traffic};
use crate::quic::Quic;
use crate::span::span;

/// What a passive observer does not see of a flow.
const HIDDEN_QUIC: &str = "losses, reordering and ACKs after the Initial packets: only the two ends have the keys of \
                           Handshake packets and of all later ones; whether the client moved with a new connection ID";
const HIDDEN_STREAM: &str = "losses on the way from this point to the receiver";
const HIDDEN_DNS: &str = "whether a question or its answer was lost";
const HIDDEN_ALL: &str =
    "losses and round trips: the payload shows no sequence numbers that headend knows";

/// The result for a flow.
pub struct Report<'a> {
    /// The flow.
    pub flow: &'a Flow,
    /// What was kept of its packets.
    pub traffic: &'a Traffic,
    /// What the payload is: quic, rtp, esp, wireguard, dns or unknown.
    pub protocol: &'static str,
    /// The result in one sentence.
    pub sentence: String,
    /// What the packets do not show.
    pub not_visible: &'static str,
}

/// How bad a flow is, to sort flows by: packets lost or sent again, then the longest handshake or answer in nanoseconds.
pub type Weight = (u64, i64);

impl<'a> Report<'a> {
    /// The result for a flow; `None` without [`Flows::explain`](super::Flows::explain).
    #[must_use]
    pub fn new(flow: &'a Flow) -> Option<Report<'a>> {
        let traffic = flow.traffic.as_deref()?;
        let stream = main_stream(traffic).map(|(_, stream)| stream);
        let (protocol, sentence, not_visible) = match (&flow.quic, stream, &traffic.dns) {
            (Some(quic), ..) => ("quic", of_quic(quic, flow), HIDDEN_QUIC),
            (None, _, Some(dns)) if dns.questions > 0 => ("dns", of_dns(dns), HIDDEN_DNS),
            (None, Some(stream), _) => (stream.protocol.name(), of_streams(traffic), HIDDEN_STREAM),
            _ => ("unknown", of_unknown(flow), HIDDEN_ALL),
        };
        Some(Report {
            flow,
            traffic,
            protocol,
            sentence,
            not_visible,
        })
    }

    /// Address and port of both ends.
    #[must_use]
    pub fn ends(&self) -> [(IpAddr, u16); 2] {
        [self.flow.a_end(), self.flow.b_end()]
    }

    /// Time that the flow lost, in nanoseconds: to packets of the handshake that were sent again (QUIC), until the slowest
    /// answer (DNS), or in the longest outage (RTP). Of the rest, the packets show no time.
    #[must_use]
    pub fn lost(&self) -> i64 {
        let senders = [&self.traffic.a, &self.traffic.b].into_iter();
        let streams = senders.flat_map(|sender| sender.streams.iter());
        let outage = streams.map(|stream| stream.outage.0).max().unwrap_or(0);
        let handshake = self.flow.quic.as_deref().map_or(0, Quic::lost);
        let answer = self.traffic.dns.as_ref().map_or(0, |dns| dns.slowest.0);
        outage.max(handshake).max(answer)
    }

    /// How bad the flow is: the worst flow has the highest value.
    #[must_use]
    pub fn weight(&self) -> Weight {
        let lost = self
            .traffic
            .lost(true)
            .saturating_add(self.traffic.lost(false));
        let dns = self.traffic.dns.as_ref();
        let asked = dns.map_or(0, |dns| dns.unanswered().saturating_add(dns.repeated));
        let quic = self.flow.quic.as_deref();
        let repeated = quic.map_or(0, |quic| {
            let [client, server] = &quic.initials;
            let repeated = client.retransmitted.max(quic.repeated_hellos);
            let lost = client.missing().saturating_add(server.missing());
            repeated
                .saturating_add(server.retransmitted)
                .saturating_add(lost)
        });
        let waited = quic.and_then(Quic::handshake).unwrap_or(0);
        let slowest = dns.map_or(0, |dns| dns.slowest.0);
        (
            lost.saturating_add(asked).saturating_add(repeated),
            waited.max(slowest),
        )
    }
}

/// The stream with the most losses, or else with the most packets, and whether end `a` sends it.
fn main_stream(traffic: &Traffic) -> Option<(bool, &Stream)> {
    let of = |from_a: bool| {
        let sender = if from_a { &traffic.a } else { &traffic.b };
        sender.streams.iter().map(move |stream| (from_a, stream))
    };
    of(false)
        .chain(of(true))
        .max_by_key(|(_, stream)| (stream.lost(), stream.packets))
}

fn of_streams(traffic: &Traffic) -> String {
    let Some((from_a, stream)) = main_stream(traffic) else {
        return String::new();
    };
    let name = match stream.protocol {
        Protocol::Rtp(kind) => format!("RTP packets (payload type {kind})"),
        Protocol::Esp => "ESP packets".to_owned(),
        Protocol::WireGuard => "WireGuard packets".to_owned(),
    };
    let direction = if from_a { "a to b" } else { "b to a" };
    let (lost, expected) = (stream.lost(), stream.expected());
    let mut out =
        format!("{lost} of {expected} {name} from {direction} were lost before this point");
    if lost > 0 {
        let percent = 100.0 * lost as f64 / expected as f64;
        out += &format!(
            " ({percent:.1} %, at most {} in a row until packet {})",
            stream.gap_max.0, stream.gap_max.1
        );
    }
    for (count, what) in [
        (stream.reordered, "out of order"),
        (stream.duplicates, "duplicate"),
    ] {
        if count > 0 {
            out += &format!(", {count} {what}");
        }
    }
    if stream.restarts > 0 {
        out += &format!(", the numbers started again {}", times(stream.restarts));
    }
    if let Some((mean, max)) = stream.jitter.mean_and_max() {
        out += &format!(", jitter {} (at most {})", span(mean, 2), span(max, 2));
    }
    out
}

fn of_dns(dns: &Dns) -> String {
    let plural = if dns.questions == 1 { "" } else { "s" };
    let mut out = format!("{} question{plural}", dns.questions);
    if dns.unanswered() > 0 {
        out += &format!(", {} without an answer", dns.unanswered());
    }
    if dns.repeated > 0 {
        out += &format!(", {} sent again", dns.repeated);
    }
    let times = dns.times();
    if let Some(mean) = dns.mean() {
        out += &format!(
            "; answers took {} ({} to {}, the slowest in packet {})",
            span(mean, 2),
            span(times.min, 2),
            span(times.max, 2),
            dns.slowest.1
        );
    }
    out
}

fn of_quic(quic: &Quic, flow: &Flow) -> String {
    let mut out = String::new();
    match (quic.handshake(), quic.answer()) {
        (Some(time), _) => out += &format!("the handshake took {}", span(time, 2)),
        (None, Some(_)) => out.push_str("the client did not complete the handshake"),
        (None, None) => out.push_str("the server did not answer"),
    }
    let to_server = quic.answer();
    if let Some(time) = to_server {
        out += &format!(" ({} until the server's first packet", span(time, 2));
        if let Some(time) = quic.reply() {
            out += &format!(", {} from it to the client's next", span(time, 2));
        }
        out.push(')');
    }
    if quic.repeated_hellos > 0 {
        out += &format!(
            ", the client sent its ClientHello again {}, first after {}",
            times(quic.repeated_hellos),
            span(quic.first_repeat().unwrap_or(0), 2)
        );
    }
    initials(quic, &mut out);
    moves(quic, &mut out);
    for (is, what) in [
        (quic.retried, "the server sent Retry"),
        (
            quic.negotiated_version,
            "the server does not know the version",
        ),
        (quic.early_packets > 0, "the client sent 0-RTT data"),
    ] {
        if is {
            out += &format!(", {what}");
        }
    }
    for (spin, name) in quic.spin.iter().zip(["client", "server"]) {
        let Some((median, short)) = spin.median() else {
            continue;
        };
        let times = spin.round_trips();
        out += &format!(
            "; the {name}'s spin bit shows round trips of {} to {}, median {}",
            span(times.min, 2),
            span(times.max, 2),
            span(median, 2)
        );
        if short > 0 {
            out += &format!(", {short} of them too short: packets were out of order");
        }
    }
    if quic.established.is_some() && quic.spin.iter().all(|spin| spin.median().is_none()) {
        let packets = flow.a.packets.saturating_add(flow.b.packets);
        out += &format!(
            "; round trips of its {packets} packets are not visible: no end uses the spin bit"
        );
    }
    out
}

/// What the numbers of the Initial packets show.
fn initials(quic: &Quic, out: &mut String) {
    for (numbers, name) in quic.initials.iter().zip(["client", "server"]) {
        // The client's first repetitions have been described.
        if numbers.retransmitted > 0 && (name == "server" || quic.repeated_hellos == 0) {
            let after = numbers.retransmitted_after(quic.started).unwrap_or(0);
            *out += &format!(
                ", the {name} sent CRYPTO data again {}, first after {}",
                times(numbers.retransmitted),
                span(after, 2)
            );
        }
        let lost = numbers.missing();
        if lost > 0 {
            let sent = numbers.packets.saturating_add(lost);
            *out += &format!(
                ", {lost} of {sent} Initial packets of the {name} did not reach this point"
            );
        }
        for (count, what) in [
            (numbers.reordered, "arrived out of order"),
            (numbers.duplicates, "arrived again"),
        ] {
            let plural = if count == 1 { "" } else { "s" };
            if count > 0 {
                *out += &format!(", {count} Initial packet{plural} of the {name} {what}");
            }
        }
    }
}

/// Where the client moved to.
fn moves(quic: &Quic, out: &mut String) {
    let Some(moved) = quic.moves.first() else {
        return;
    };
    let place = SocketAddr::new(moved.address, moved.port);
    *out += &format!(
        ", the client moved to {place} in packet {}, after {}",
        moved.packet,
        span(moved.after, 2)
    );
    let more = quic.move_count.saturating_sub(1);
    if more > 0 {
        *out += &format!(" and again {}", times(more));
    }
    out.push_str(", with the same connection ID, as when a NAT forgets a flow");
}

fn of_unknown(flow: &Flow) -> String {
    format!(
        "cannot say: {} packets from a to b and {} back show no sequence numbers",
        flow.a.packets, flow.b.packets
    )
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

#[cfg(test)]
mod tests;
