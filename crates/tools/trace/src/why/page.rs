//! The report as text: one sentence, the slowest connections, the pairs of hosts.

use std::fmt::Write as _;
use std::net::IpAddr;

use trace::text::span;
use trace::why::findings::{End, Finding, Seen, Unit};
use trace::why::{Cause, Report, Side};

use super::udp::Worst;
use super::{Pair, Slow, Summary};

/// Pairs of hosts that the text lists.
const PAIRS: usize = 10;

/// Causes with a smaller part of the time are not listed.
const SMALL: f64 = 0.001;

pub(super) fn write(summary: &Summary, out: &mut String) {
    // Formatting into a String cannot fail.
    let _ = try_write(summary, out);
}

fn try_write(summary: &Summary, out: &mut String) -> std::fmt::Result {
    let udp = summary.udp.as_ref();
    if summary.is_udp_first()
        && let Some(sentence) = udp.and_then(Worst::sentence)
    {
        writeln!(out, "{sentence}")?;
    }
    let Some(Slow { report: first, .. }) = summary.worst.first() else {
        writeln!(
            out,
            "No connection sent data ({} connections without data).",
            summary.without_data
        )?;
        if let Some(udp) = udp {
            udp.write(out);
        } else if summary.unexplained > 0 {
            writeln!(
                out,
                "The capture has {} UDP packets; -u explains them.",
                summary.unexplained
            )?;
        }
        return Ok(());
    };
    if let Some(side) = first.main() {
        writeln!(out, "{}.", side.verdict)?;
        writeln!(
            out,
            "connection {}, {} of {} until packet {}, confidence {}\n",
            first.number,
            span(side.verdict.share.longest, 2),
            span(side.verdict.share.time, 2),
            side.verdict.share.packet,
            side.verdict.confidence.name()
        )?;
    }
    for slow in &summary.worst {
        connection(slow, out)?;
    }
    if summary.with_data > summary.worst.len() as u64 {
        let more = summary.with_data - summary.worst.len() as u64;
        writeln!(
            out,
            "{more} more connections waited less; -oN shows one, --json all.\n"
        )?;
    }
    pairs(summary, out)?;
    if let Some(udp) = udp {
        out.push('\n');
        udp.write(out);
    }
    Ok(())
}

fn connection(
    Slow {
        report: slow,
        processes,
    }: &Slow,
    out: &mut String,
) -> std::fmt::Result {
    writeln!(
        out,
        "connection {}: a {}, b {}, {}{}",
        slow.number,
        end(slow.a),
        end(slow.b),
        span(slow.life, 2),
        distance(slow)
    )?;
    if let Some(processes) = processes {
        writeln!(out, "  processes: {processes}")?;
    }
    for side in slow.sides.iter().rev() {
        direction(side, out)?;
    }
    findings(slow, out)?;
    out.push('\n');
    Ok(())
}

fn distance(slow: &Report) -> String {
    let to = |time: Option<i64>| match time {
        None => "an unknown time".to_owned(),
        Some(time) => format!("{:.1} ms", time as f64 / 1e6),
    };
    format!(
        "; round trips from the capture: {} to a, {} to b",
        to(slow.to_a),
        to(slow.to_b)
    )
}

fn direction(side: &Side, out: &mut String) -> std::fmt::Result {
    let verdict = &side.verdict;
    writeln!(
        out,
        "  {}  {} bytes; captured near: {}; confidence {}",
        side.name(),
        side.bytes,
        verdict.vantage.name(),
        verdict.confidence.name()
    )?;
    let mut causes: Vec<Cause> = Cause::all().collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(side.shares[*cause as usize].time));
    for cause in causes {
        let share = side.shares[cause as usize];
        let part = match verdict.life {
            0 => 0.0,
            life => share.time as f64 / life as f64,
        };
        if share.time <= 0 || part < SMALL {
            continue;
        }
        writeln!(
            out,
            "    {:<16} {:>5.1} % {:>11}  {} spans, the longest {} until packet {}",
            cause.rule().name,
            part * 100.0,
            span(share.time, 2),
            share.spans,
            span(share.longest, 2),
            share.packet
        )?;
    }
    if let Some(detail) = &verdict.detail {
        writeln!(out, "    seen: {detail}")?;
    }
    writeln!(
        out,
        "    would contradict {}: {}",
        verdict.cause.rule().name,
        verdict.cause.rule().contradicted_by
    )?;
    writeln!(out, "    not visible: {}", verdict.vantage.cannot_see())
}

/// What the packets of both ends show, in the order of the packets.
fn findings(slow: &Report, out: &mut String) -> std::fmt::Result {
    let of = |name, end: &End| {
        let seen = Finding::all().map(|finding| (finding, end.seen(finding)));
        let seen: Vec<_> = seen.filter(|(_, seen)| seen.count > 0).collect();
        seen.into_iter()
            .map(move |(finding, seen)| (seen.first, name, finding, seen))
    };
    let mut all: Vec<_> = of("a", &slow.findings.a)
        .chain(of("b", &slow.findings.b))
        .collect();
    all.sort_by_key(|(first, name, finding, _)| (*first, *name, *finding));
    for (first, end, finding, seen) in all {
        let place = match first {
            0 => "capture".to_owned(),
            packet => format!("packet {packet}"),
        };
        let phrase = finding.description().phrase;
        writeln!(
            out,
            "  {place:<14} {end}: {phrase}{}",
            amount(finding, seen)
        )?;
    }
    for (name, end) in [("a", &slow.findings.a), ("b", &slow.findings.b)] {
        if let (Some(like), Some(mean)) = (end.response.like(), end.response.mean()) {
            writeln!(
                out,
                "  {:<14} {name}: {:.2} of the data in flight remains after each of {} losses, as with {like}",
                "losses", mean, end.response.count
            )?;
        }
    }
    Ok(())
}

/// How often a finding was made, and its value.
fn amount(finding: Finding, seen: Seen) -> String {
    let value = match finding.description().unit {
        Unit::None => String::new(),
        Unit::Time => span(i64::try_from(seen.value).unwrap_or(i64::MAX), 2),
        Unit::Bytes => format!("{} bytes", seen.value),
        Unit::Segments => format!("{} segments", seen.value),
    };
    match (seen.count, value.as_str()) {
        (1, "") => String::new(),
        (count, "") => format!(" ({count} times)"),
        (1, value) => format!(" ({value})"),
        (count, value) => format!(" ({count} times, at most {value})"),
    }
}

fn pairs(summary: &Summary, out: &mut String) -> std::fmt::Result {
    let lost = |pair: &Pair| -> i64 {
        let limits = Cause::all().filter(|cause| cause.is_limit());
        limits.map(|cause| pair.times[cause as usize]).sum()
    };
    let mut pairs: Vec<_> = summary.pairs.iter().collect();
    pairs.sort_by_key(|(_, pair)| std::cmp::Reverse(lost(pair)));
    writeln!(
        out,
        "{:<48} {:>11} {:>14} {:>11}  MAIN CAUSE",
        "HOSTS", "CONNECTIONS", "BYTES", "LIMITED"
    )?;
    for (hosts, pair) in pairs.iter().take(PAIRS) {
        let name = match hosts {
            Some((low, high)) => format!("{low} - {high}"),
            None => "other hosts".to_owned(),
        };
        let main = Cause::all()
            .filter(|cause| cause.is_limit())
            .max_by_key(|cause| pair.times[*cause as usize])
            .filter(|cause| pair.times[*cause as usize] > 0);
        writeln!(
            out,
            "{name:<48} {:>11} {:>14} {:>11}  {}",
            pair.connections,
            pair.bytes,
            span(lost(pair), 2),
            main.map_or("-", |cause| cause.rule().name)
        )?;
    }
    Ok(())
}

fn end((address, port): (IpAddr, u16)) -> String {
    std::net::SocketAddr::new(address, port).to_string()
}
