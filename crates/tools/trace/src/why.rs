//! `headend trace why`: what the senders of each connection waited for. [`trace::why`] has the rules.
//!
//! | file | what it does |
//! |---|---|
//! | `why` | chooses the connections to report, and the summary by pair of hosts |
//! | `why/page` | the report as text |
//! | `why/lines` | the report as JSON |

mod lines;
mod page;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::IpAddr;

use anyhow::Result;
use trace::Connection;
use trace::why::{CAUSES, Cause, Findings, Share, Verdict, Why};

use super::report::{Paper, Style};
use super::results::{Results, What};

/// Connections that the text reports, the slowest first.
const WORST: usize = 10;

/// Pairs of hosts in the summary. Connections of further pairs are counted as those of "other hosts".
const PAIRS_MAX: usize = 4096;

/// One direction's division of time, and the result.
struct Side {
    verdict: Verdict,
    shares: [Share; CAUSES],
    bytes: u64,
}

/// A connection's result.
struct Slow {
    number: u64,
    a: (IpAddr, u16),
    b: (IpAddr, u16),
    life: i64,
    /// Round trips from the point of capture to each end, in nanoseconds; 0 if unknown.
    to_a: i64,
    to_b: i64,
    sides: Vec<Side>,
    findings: Findings,
}

impl Slow {
    /// The result for a connection; `None` if neither end sent data.
    fn new(connection: &Connection) -> Option<Slow> {
        let why: Why = connection.why.as_ref()?.until(connection.last_time);
        let side = |from_a: bool| {
            let verdict = Verdict::new(connection, &why, from_a)?;
            let (sender, direction) = match from_a {
                true => (&why.a, &connection.a),
                false => (&why.b, &connection.b),
            };
            Some(Side {
                verdict,
                shares: *sender.shares(),
                bytes: direction.unique_bytes,
            })
        };
        let sides: Vec<Side> = [side(false), side(true)].into_iter().flatten().collect();
        if sides.is_empty() {
            return None;
        }
        let near = |direction: &trace::Direction| match direction.rtt_handshake {
            0 => direction.rtt.min,
            time => time,
        };
        Some(Slow {
            number: connection.number,
            a: connection.a_end(),
            b: connection.b_end(),
            life: connection.elapsed(),
            to_a: near(&connection.b),
            to_b: near(&connection.a),
            sides,
            findings: connection.findings()?,
        })
    }

    /// Time that something else than the ends' own work took, of the direction where it is most.
    fn lost(&self) -> i64 {
        let lost = |side: &Side| {
            let limits = Cause::all().filter(|cause| cause.is_limit());
            limits.map(|cause| side.shares[cause as usize].time).sum()
        };
        self.sides.iter().map(lost).max().unwrap_or(0)
    }

    /// The direction that explains the connection: the one with more time lost, or else with more data.
    fn main(&self) -> Option<&Side> {
        let lost = |side: &Side| match side.verdict.cause.is_limit() {
            true => side.verdict.share.time,
            false => 0,
        };
        self.sides
            .iter()
            .max_by_key(|side| (lost(side), side.bytes))
    }
}

/// Time of all connections between two hosts.
#[derive(Default)]
struct Pair {
    connections: u64,
    bytes: u64,
    times: [i64; CAUSES],
}

/// Everything the text needs.
#[derive(Default)]
struct Summary {
    worst: Vec<Slow>,
    pairs: BTreeMap<Option<(IpAddr, IpAddr)>, Pair>,
    /// Connections with data, and those without.
    with_data: u64,
    without_data: u64,
}

impl Summary {
    fn add(&mut self, slow: Slow) {
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
            .partition_point(|other| other.lost() >= slow.lost());
        if at < WORST {
            self.worst.insert(at, slow);
            self.worst.truncate(WORST);
        }
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
    let mut summary = Summary::default();
    let json = style.args.low.json;
    let chosen = |number: u64| style.args.chosen(number);
    results.source.each(false, chosen, |entry| {
        let What::Connection(connection) = entry.what else {
            return Ok(());
        };
        let Some(slow) = Slow::new(connection) else {
            summary.without_data += 1;
            return Ok(());
        };
        if json {
            lines::write(&slow, paper.text());
            paper.turn()?;
        }
        summary.add(slow);
        Ok::<(), io::Error>(())
    })?;
    if json {
        lines::write_summary(&summary, paper.text());
    } else {
        page::write(&summary, paper.text());
    }
    Ok(paper.flush()?)
}
