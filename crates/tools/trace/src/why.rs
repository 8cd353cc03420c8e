//! `headend trace why`: what the senders of each connection waited for. [`trace::why`] has the rules, and
//! [`trace::json::why`] the report as JSON.
//!
//! | file | what it does |
//! |---|---|
//! | `why` | chooses the connections to report, and the summary by pair of hosts |
//! | `why/page` | the report as text |
//! | `why/udp` | UDP flows as text, the worst ones |

mod page;
mod udp;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::IpAddr;

use anyhow::Result;
use trace::json::why as lines;
use trace::udp::report::Report as Flow;
use trace::why::{CAUSES, Report};

use super::report::{Paper, Style};
use super::results::{Results, What};

/// Connections that the text reports, the slowest first.
const WORST: usize = 10;

/// Pairs of hosts in the summary. Connections of further pairs are counted as those of "other hosts".
const PAIRS_MAX: usize = 4096;

/// Time of all connections between two hosts.
#[derive(Default)]
struct Pair {
    connections: u64,
    bytes: u64,
    times: [i64; CAUSES],
}

/// A connection that the text reports, and the processes at its ends in words.
struct Slow {
    report: Report,
    processes: Option<String>,
}

/// Everything the text needs.
#[derive(Default)]
struct Summary {
    worst: Vec<Slow>,
    pairs: BTreeMap<Option<(IpAddr, IpAddr)>, Pair>,
    /// Connections with data, and those without.
    with_data: u64,
    without_data: u64,
    /// UDP flows, if they are asked for.
    udp: Option<udp::Worst>,
    /// UDP packets in the capture, if flows are not asked for.
    unexplained: u64,
}

impl Summary {
    fn add(&mut self, slow: Report, processes: Option<String>) {
        self.with_data += 1;
        let hosts = (slow.a.0.min(slow.b.0), slow.a.0.max(slow.b.0));
        let known = self.pairs.contains_key(&Some(hosts)) || self.pairs.len() < PAIRS_MAX;
        let pair = self.pairs.entry(known.then_some(hosts)).or_default();
        pair.connections += 1;
        for side in &slow.sides {
            pair.bytes += side.bytes;
            for (time, share) in pair.times.iter_mut().zip(&side.shares) {
                *time = time.saturating_add(share.time);
            }
        }
        let at = self
            .worst
            .partition_point(|other| other.report.lost() >= slow.lost());
        if at < WORST {
            let report = slow;
            self.worst.insert(at, Slow { report, processes });
            self.worst.truncate(WORST);
        }
    }
}

impl Summary {
    /// Time that the slowest connection lost.
    fn lost(&self) -> i64 {
        self.worst.first().map_or(0, |slow| slow.report.lost())
    }

    /// Whether the first sentence is about a UDP flow: one lost more time than any connection, or no connection lost time.
    fn is_udp_first(&self) -> bool {
        let udp = self.udp.as_ref().map_or(0, udp::Worst::lost);
        self.udp.is_some() && (udp > self.lost() || self.lost() == 0)
    }

    /// What the first sentence is about.
    fn main(&self) -> Option<lines::Main> {
        let udp = self.udp.as_ref().filter(|_| self.is_udp_first());
        if let Some((udp, number)) = udp.and_then(|udp| Some((udp, udp.number()?))) {
            return Some(lines::Main {
                is_udp: true,
                number,
                lost: udp.lost(),
            });
        }
        let slowest = &self.worst.first()?.report;
        Some(lines::Main {
            is_udp: false,
            number: slowest.number,
            lost: slowest.lost(),
        })
    }
}

/// Writes the report.
///
/// # Errors
/// Standard output cannot be written, or a temporary file cannot be read.
pub(super) fn print<W: Write>(
    style: &Style<'_>,
    results: &Results,
    paper: &mut Paper<W>,
) -> Result<()> {
    let (json, udp) = (style.args.low.json, style.args.low.udp);
    let mut seen = results.summary.seen.iter();
    let packets = seen.find(|(name, _)| name == "UDP packets");
    let mut summary = Summary {
        udp: udp.then(udp::Worst::default),
        unexplained: packets.filter(|_| !udp).map_or(0, |(_, count)| *count),
        ..Summary::default()
    };
    let chosen = |number: u64| style.args.chosen(number);
    results.source.each(false, chosen, |entry| {
        let connection = match entry.what {
            What::Connection(connection) => connection,
            What::Flow(flow) => {
                let chosen = style.args.chosen_flow(flow.number);
                let Some((worst, report)) =
                    summary.udp.as_mut().filter(|_| chosen).zip(Flow::new(flow))
                else {
                    return Ok(());
                };
                if json {
                    line(&lines::flow(&report), paper.text());
                    paper.turn()?;
                }
                worst.add(&report);
                return Ok(());
            }
        };
        let Some(slow) = Report::new(connection) else {
            summary.without_data += 1;
            return Ok(());
        };
        let (key, learnt) = (connection.first_packet, results.processes.as_ref());
        if json {
            let mut object = lines::connection(&slow);
            for (name, process) in learnt.into_iter().flat_map(|learnt| learnt.members(key)) {
                object[name] = process;
            }
            line(&object, paper.text());
            paper.turn()?;
        }
        summary.add(slow, learnt.and_then(|learnt| learnt.words(key)));
        Ok::<(), io::Error>(())
    })?;
    if json {
        end(&summary, results, paper.text());
    } else {
        page::write(&summary, paper.text());
    }
    Ok(paper.flush()?)
}

/// Appends the last lines: one for each file with counters, and the summary.
fn end(summary: &Summary, results: &Results, out: &mut String) {
    for file in results.source.reports() {
        if let Some(object) = trace::json::file(&file.name, &file.statistics) {
            out.push_str(&object);
            out.push('\n');
        }
    }
    let worst: Vec<u64> = summary
        .worst
        .iter()
        .map(|slow| slow.report.number)
        .collect();
    let counts = (summary.with_data, summary.without_data);
    let udp = summary.udp.as_ref().map(udp::Worst::numbers);
    let udp = udp
        .as_ref()
        .map(|(count, worst)| (*count, worst.as_slice()));
    let last = lines::summary(counts, &worst, udp, summary.main());
    line(&last, out);
}

/// Appends an object as a line.
fn line(object: &serde_json::Value, out: &mut String) {
    out.push_str(&object.to_string());
    out.push('\n');
}
