//! Compares the streams of several results: each with the stream of the same name in the first result.

use std::io::{self, Write};

use ping::text::Millis;
use ping::{Outcome, StreamOutcome, Summary};
use serde_json::{Value, json};

/// A result and the name of its file.
pub(super) struct Named {
    pub(super) file: String,
    pub(super) outcome: Outcome,
}

/// The differences between a stream and the first of its name: later minus earlier.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Difference {
    p50_ns: Option<i64>,
    p99_ns: Option<i64>,
    loss: f64,
}

/// Loss: the share of unanswered packets among those whose outcome is known.
fn loss(summary: &Summary) -> f64 {
    let known = summary.transmitted.saturating_sub(summary.waiting);
    let missing = known.saturating_sub(summary.received);
    missing as f64 / known.max(1) as f64
}

fn difference(summary: &Summary, first: &Summary) -> Difference {
    let both = summary.rtt_percentiles.zip(first.rtt_percentiles);
    let less = |a: u64, b: u64| a.wrapping_sub(b).cast_signed();
    Difference {
        p50_ns: both.map(|(a, b)| less(a.p50_ns, b.p50_ns)),
        p99_ns: both.map(|(a, b)| less(a.p99_ns, b.p99_ns)),
        loss: loss(summary) - loss(first),
    }
}

/// The stream to compare with: the one of this name in the first file that has one, unless that is this file.
fn first<'a>(results: &'a [Named], file: usize, name: &str) -> Option<&'a Summary> {
    let earlier = results[..file].iter();
    let mut streams = earlier.flat_map(|named| &named.outcome.streams);
    let found = streams.find(|stream| stream.plan.name == name);
    found.map(|stream| &stream.summary)
}

/// Writes the table.
///
/// # Errors
/// The error of `out`.
pub(super) fn table(results: &[Named], out: &mut impl Write) -> io::Result<()> {
    let head = [
        "file",
        "stream",
        "sent",
        "received",
        "late",
        "loss",
        "min",
        "avg",
        "p50",
        "p90",
        "p99",
        "max",
        "sent late p99",
        "p50 +/-",
        "p99 +/-",
        "loss +/-",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (number, named) in results.iter().enumerate() {
        for stream in &named.outcome.streams {
            let name = &stream.plan.name;
            let difference =
                first(results, number, name).map(|first| difference(&stream.summary, first));
            let mut row = vec![clean(&named.file), clean(name)];
            row.extend(figures(&stream.summary));
            row.extend(differences(difference));
            rows.push(row);
        }
    }
    // With a single file there is nothing to compare.
    if results.len() < 2 {
        rows.iter_mut().for_each(|row| row.truncate(head.len() - 3));
    }
    write_rows(&rows, out)?;
    writeln!(
        out,
        "times in ms; +/- is against the first file with a stream of that name"
    )
}

fn figures(summary: &Summary) -> Vec<String> {
    let rtt = |of: fn(ping::statistics::RoundTrips) -> u64| {
        summary.rtt.map_or("-".to_owned(), |rtt| {
            Millis(of(rtt).saturating_mul(1_000)).to_string()
        })
    };
    let share = |of: fn(ping::statistics::Percentiles) -> u64| {
        let percentiles = summary.rtt_percentiles;
        percentiles.map_or("-".to_owned(), |shares| Millis(of(shares)).to_string())
    };
    let late = summary.lateness.map(|late| Millis(late.p99_ns).to_string());
    vec![
        summary.transmitted.to_string(),
        summary.received.to_string(),
        summary.late.to_string(),
        format!("{:.2}%", loss(summary) * 100.0),
        rtt(|rtt| rtt.min_us),
        rtt(|rtt| rtt.avg_us),
        share(|shares| shares.p50_ns),
        share(|shares| shares.p90_ns),
        share(|shares| shares.p99_ns),
        rtt(|rtt| rtt.max_us),
        late.unwrap_or("-".to_owned()),
    ]
}

fn differences(difference: Option<Difference>) -> [String; 3] {
    let time = |ns: Option<i64>| match ns {
        None => "-".to_owned(),
        Some(ns) => {
            let sign = if ns < 0 { '-' } else { '+' };
            format!("{sign}{}", Millis(ns.unsigned_abs()))
        }
    };
    match difference {
        None => ["-"; 3].map(str::to_owned),
        Some(difference) => [
            time(difference.p50_ns),
            time(difference.p99_ns),
            format!("{:+.2}%", difference.loss * 100.0),
        ],
    }
}

/// Makes each column as wide as its widest cell; text is left-aligned, figures are right-aligned.
fn write_rows(rows: &[Vec<String>], out: &mut impl Write) -> io::Result<()> {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max())
        .map(|width| width.unwrap_or(0))
        .collect();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            line += &match column {
                0 | 1 => format!("{cell:<width$}  "),
                _ => format!("{cell:>width$}  "),
            };
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Removes control characters, which a terminal might interpret.
fn clean(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control()).collect()
}

/// The plan and summary of each stream of one result.
pub(super) fn summary(outcome: &Outcome) -> Value {
    json!({
        "schema": "ping.summary/1",
        "tool": outcome.tool,
        "started_unix_ns": outcome.started_unix_ns,
        "interrupted": outcome.interrupted,
        "streams": outcome.streams.iter().map(of_stream).collect::<Vec<_>>(),
    })
}

fn of_stream(stream: &StreamOutcome) -> Value {
    json!({
        "plan": stream.plan,
        "summary": stream.summary,
        "loss": loss(&stream.summary),
    })
}

/// The comparison as a JSON value.
pub(super) fn json(results: &[Named]) -> Value {
    let files = results.iter().enumerate().map(|(number, named)| {
        let streams = named.outcome.streams.iter().map(|stream| {
            let difference = first(results, number, &stream.plan.name)
                .map(|first| difference(&stream.summary, first))
                .map(|found| json!({"p50_ns": found.p50_ns, "p99_ns": found.p99_ns, "loss": found.loss}));
            let mut value = of_stream(stream);
            value["difference"] = json!(difference);
            value
        });
        json!({
            "file": named.file,
            "tool": named.outcome.tool,
            "started_unix_ns": named.outcome.started_unix_ns,
            "interrupted": named.outcome.interrupted,
            "streams": streams.collect::<Vec<_>>(),
        })
    });
    json!({"schema": "ping.comparison/1", "files": files.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;
    use ping::statistics::{Percentiles, RoundTrips};

    #[test]
    fn no_percentile_is_printed_as_larger_than_the_maximum() {
        // Three replies of 11,600, 11,900 and 11,950 ns.
        let summary = Summary {
            transmitted: 3,
            received: 3,
            late: 0,
            lost: 0,
            failed: 0,
            waiting: 0,
            duplicates: 0,
            reordered: 0,
            skipped: 0,
            errors: 0,
            pipe: 1,
            span_ns: 2_000_000_000,
            rtt: Some(RoundTrips {
                min_us: 11,
                avg_us: 11,
                max_us: 11,
                mdev_us: 0,
            }),
            rtt_percentiles: Some(Percentiles {
                p50_ns: 11_900,
                p90_ns: 11_950,
                p99_ns: 11_950,
                p999_ns: 11_950,
            }),
            lateness: None,
            directions: None,
        };
        let cells = figures(&summary);
        assert_eq!(cells[4..10], ["0.011"; 6].map(str::to_owned));
        let difference = differences(Some(Difference {
            p50_ns: Some(-1_999),
            p99_ns: Some(1_999),
            loss: 0.0,
        }));
        assert_eq!(difference[..2], ["-0.001", "+0.001"].map(str::to_owned));
    }
}
