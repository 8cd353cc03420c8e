//! UDP flows as text: the ones that lost most, or waited longest.

use std::fmt::Write as _;
use std::net::SocketAddr;

use trace::udp::report::{Report, Weight};

use super::WORST;
use trace::text::span;

/// The worst flows, and how many there are in all.
#[derive(Default)]
pub(super) struct Worst {
    count: u64,
    list: Vec<(Weight, u64, String, String)>,
    /// The flow that lost most time, if one did: time, number and sentence.
    slowest: Option<(i64, u64, String)>,
}

impl Worst {
    pub(super) fn add(&mut self, report: &Report<'_>) {
        self.count += 1;
        let lost = report.lost();
        if lost > self.lost() {
            let (number, sentence) = (report.flow.number, report.sentence.clone());
            self.slowest = Some((lost, number, sentence));
        }
        let weight = report.weight();
        let at = self.list.partition_point(|other| other.0 >= weight);
        if at < WORST {
            let (number, sentence) = (report.flow.number, report.sentence.clone());
            self.list
                .insert(at, (weight, number, sentence, text(report)));
            self.list.truncate(WORST);
        }
    }

    /// How many flows there are, and the numbers of the worst.
    pub(super) fn numbers(&self) -> (u64, Vec<u64>) {
        (self.count, self.list.iter().map(|worst| worst.1).collect())
    }

    /// Time that the slowest flow lost.
    pub(super) fn lost(&self) -> i64 {
        self.slowest.as_ref().map_or(0, |(lost, ..)| *lost)
    }

    /// Number of the slowest flow, or else of the worst.
    pub(super) fn number(&self) -> Option<u64> {
        let slowest = self.slowest.as_ref().map(|(_, number, _)| *number);
        slowest.or_else(|| Some(self.list.first()?.1))
    }

    /// What the packets of this flow show.
    pub(super) fn sentence(&self) -> Option<String> {
        if let Some((lost, number, sentence)) = &self.slowest {
            let lost = span(*lost, 2);
            return Some(format!("UDP flow {number} lost {lost}: {sentence}."));
        }
        let (_, number, sentence, _) = self.list.first()?;
        Some(format!("UDP flow {number}: {sentence}."))
    }

    pub(super) fn write(&self, out: &mut String) {
        let mut texts = self.list.iter().map(|worst| worst.3.as_str());
        if let Some(first) = texts.next() {
            out.push_str("UDP\n");
            out.push_str(first);
        }
        texts.for_each(|text| out.push_str(text));
        let more = self.count - self.list.len() as u64;
        if more > 0 {
            let _ = writeln!(
                out,
                "{more} more UDP flows lost less; --oUDPN shows one, --json all."
            );
        }
    }
}

fn text(report: &Report<'_>) -> String {
    let mut out = String::new();
    // Formatting into a String cannot fail.
    let _ = try_text(report, &mut out);
    out
}

fn try_text(report: &Report<'_>, out: &mut String) -> std::fmt::Result {
    let (flow, traffic) = (report.flow, report.traffic);
    let [a, b] = report
        .ends()
        .map(|(address, port)| SocketAddr::new(address, port));
    let life = span(flow.elapsed(), 2);
    writeln!(
        out,
        "flow {}: a {a}, b {b}, {life}; {}",
        flow.number, report.protocol
    )?;
    writeln!(out, "  {}", report.sentence)?;
    for (name, sent, sender) in [("a2b", flow.a, &traffic.a), ("b2a", flow.b, &traffic.b)] {
        write!(
            out,
            "  {name}  {} packets, {} bytes",
            sent.packets, sent.bytes
        )?;
        match sender.silence {
            (silence, packet) if packet > 0 => {
                writeln!(
                    out,
                    ", silent for at most {} until packet {packet}",
                    span(silence, 2)
                )?;
            }
            _ => out.push('\n'),
        }
    }
    let last = if traffic.last_from_a { "a" } else { "b" };
    writeln!(out, "  the last packet is of end {last}")?;
    writeln!(out, "  not visible: {}", report.not_visible)
}
