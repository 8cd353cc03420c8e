//! Compares every TCP stream of real captures between `headend trace` and tshark's analysis. They agree, or
//! `testdata/interop-trace/reasons.tsv` lists the difference and its reason, which `docs/trace-tshark.md`
//! explains.

use crate::runner::Bench;
use crate::tshark::{self, End, Stream};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Directories of captures, below the workspace's root, each with the suffixes of its files.
const CAPTURES: &[(&str, &[&str])] = &[
    ("testdata/interop-trace", &["gz"]),
    ("testdata/trace/tcptrace", &["gz"]),
    ("testdata/capture/files", &["pcap", "pcapng", "snp"]),
];

const REASONS: &str = "testdata/interop-trace/reasons.tsv";

const EXPLANATIONS: &str = "docs/trace-tshark.md";

/// First line of the list of reasons.
const HEAD: &str = "capture\tstream\tfield\ttshark\theadend\treason";

/// The compared columns of each direction.
const COLUMNS: &[&str] = &[
    "packets",
    "data_packets",
    "data_bytes",
    "syns",
    "fins",
    "resets",
    "retransmitted_packets",
    "fast_retransmissions",
    "spurious_retransmissions",
    "out_of_order_packets",
    "duplicate_acks",
    "keep_alives",
    "probe_packets",
    "zero_win_adv",
    "window_scale",
];

/// Differences: file, stream, field, tshark's value and ours.
type Lines = BTreeSet<String>;

/// The streams between one pair of endpoints, in the order of their first packets, on both sides.
type Pairs<'a> = BTreeMap<[End; 2], (Vec<&'a Stream>, Vec<&'a Value>)>;

/// Compares each stream of each capture.
pub(crate) fn agrees_with_tshark(bench: &Bench<'_>) -> Result<()> {
    let (mut found, mut streams) = (Lines::new(), 0);
    for file in captures(bench.root)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        streams += compare(bench, &file, &name, &mut found).with_context(|| name.to_string())?;
    }
    ensure!(streams > 100, "only {streams} streams were compared");
    let all: String = found.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(bench.directory.join("differences.tsv"), all)?;

    let listed = listed(bench.root)?;
    let new: Vec<&str> = found.difference(&listed).map(String::as_str).collect();
    let gone: Vec<&str> = listed.difference(&found).map(String::as_str).collect();
    ensure!(
        new.is_empty() && gone.is_empty(),
        "without a reason:\n{}\nwith a reason, but not so:\n{}",
        new.join("\n"),
        gone.join("\n")
    );
    Ok(())
}

fn captures(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for (folder, endings) in CAPTURES {
        for entry in std::fs::read_dir(root.join(folder)).context(*folder)? {
            let path = entry?.path();
            let ending = path.extension().unwrap_or_default();
            // Some captures are in two directories.
            let known = |file: &PathBuf| file.file_name() == path.file_name();
            if endings.iter().any(|one| *one == ending) && !files.iter().any(known) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The listed differences; each has a reason, and each reason an explanation.
fn listed(root: &Path) -> Result<Lines> {
    let explanations = std::fs::read_to_string(root.join(EXPLANATIONS)).context(EXPLANATIONS)?;
    let text = std::fs::read_to_string(root.join(REASONS)).context(REASONS)?;
    let mut lines = text.lines();
    ensure!(lines.next() == Some(HEAD), "{REASONS} begins otherwise");
    let mut listed = Lines::new();
    for line in lines {
        let (difference, reason) = line.rsplit_once('\t').context(line.to_owned())?;
        ensure!(
            explanations.contains(&format!("\n### {reason}\n")),
            "{EXPLANATIONS} does not explain {reason:?}"
        );
        listed.insert(difference.to_owned());
    }
    Ok(listed)
}

/// Adds the differences in one capture. Returns how many streams were compared.
fn compare(bench: &Bench<'_>, file: &Path, name: &str, found: &mut Lines) -> Result<usize> {
    let ours = connections(bench, file)?;
    let Some(theirs) = tshark::streams(file)? else {
        found.insert(format!("{name}\t-\tstreams\tunread\t{}", ours.len()));
        return Ok(0);
    };
    let mut pairs = Pairs::new();
    for stream in &theirs {
        pairs.entry(sorted(stream.ends)).or_default().0.push(stream);
    }
    for connection in &ours {
        let ends = [end(connection, "a")?, end(connection, "b")?];
        pairs.entry(sorted(ends)).or_default().1.push(connection);
    }
    for (ends, (theirs, ours)) in pairs {
        if theirs.len() != ours.len() {
            let first = theirs.first().map(|stream| stream.number.to_string());
            let first = first.unwrap_or_else(|| format!("{}-{}", ends[0].1, ends[1].1));
            let counts = format!("{}\t{}", theirs.len(), ours.len());
            found.insert(format!("{name}\t{first}\tstreams\t{counts}"));
            continue;
        }
        for (stream, connection) in theirs.into_iter().zip(ours) {
            compare_stream(name, stream, connection, found)?;
        }
    }
    Ok(theirs.len())
}

fn compare_stream(name: &str, stream: &Stream, ours: &Value, found: &mut Lines) -> Result<()> {
    let mut check = |field: &str, theirs: i64, ours: i64| {
        if theirs != ours {
            let number = stream.number;
            found.insert(format!("{name}\t{number}\t{field}\t{theirs}\t{ours}"));
        }
    };
    for (time, column) in stream.times.into_iter().zip(["first_time", "last_time"]) {
        check(column, time, number(ours, column)?);
    }
    let swapped = usize::from(stream.ends[0] != end(ours, "a")?);
    for (side, direction) in ["a2b", "b2a"].into_iter().enumerate() {
        let counts = &stream.counts[side ^ swapped];
        for column in COLUMNS {
            let column_name = format!("{direction}_{column}");
            let theirs = counts.get(column).copied();
            if *column == "window_scale" && theirs.is_none() {
                // It sent only SYNs, whose windows are not scaled.
                continue;
            }
            let theirs = theirs.unwrap_or(0) as i64;
            check(&column_name, theirs, number(ours, &column_name)?);
        }
    }
    Ok(())
}

/// The connections that `headend trace` finds.
fn connections(bench: &Bench<'_>, file: &Path) -> Result<Vec<Value>> {
    let output = Command::new(bench.headend)
        .args(["trace", "--json"])
        .arg(file)
        .output()
        .context("headend trace")?;
    // Some of the files are damaged: whatever could be read is compared.
    let mut connections = Vec::new();
    for line in output.stdout.split(|octet| *octet == b'\n') {
        if !line.is_empty() {
            connections.push(serde_json::from_slice::<Value>(line)?);
        }
    }
    let summary = connections.pop().context("headend trace said nothing")?;
    ensure!(summary["kind"] == "summary", "the end is {summary}");
    connections.retain(|object| object["kind"] == "connection");
    Ok(connections)
}

fn end(connection: &Value, which: &str) -> Result<End> {
    let address = connection[format!("{which}_address")].as_str();
    let address = address.context("an address")?.parse()?;
    let port = number(connection, &format!("{which}_port"))?;
    Ok((address, u16::try_from(port)?))
}

/// A column's value; an absent one is 0.
fn number(connection: &Value, column: &str) -> Result<i64> {
    let value = connection.get(column).context(column.to_owned())?;
    if value.is_null() {
        return Ok(0);
    }
    value.as_i64().with_context(|| format!("{column}: {value}"))
}

fn sorted(mut ends: [End; 2]) -> [End; 2] {
    ends.sort();
    ends
}
