//! `headend lab use`: reads the files of this host twice, and prints the judgements. docs/lab-use.md is its page.

mod table;

use std::io::{IsTerminal, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use cli::Socket;
use control::request::{Do, Nothing};
use lab::host::{self, Process, Reading, Row, Verdict};
use reactor::Signals;
use serde_json::{Value, json};

/// Longest sleep before signals are checked.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Bytes of a file that are read: tables of sockets may be long.
const BYTES_MAX: u64 = 16 << 20;

/// Processes whose open files are counted.
const PROCESSES_MAX: usize = 4_096;

/// Utilisation, saturation and errors of each resource of this host, each with a verdict.
#[derive(Debug, clap::Args)]
pub(super) struct UseArgs {
    /// Seconds between two readings
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    interval: f64,
    /// Print the rows after each interval, until SIGINT or SIGTERM
    #[arg(long)]
    watch: bool,
    /// Print one JSON object for each interval, `lab.use/1`
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: Socket,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3_600.0).contains(&seconds) => Ok(seconds),
        _ => Err("give seconds from 0.1 to 3600".to_owned()),
    }
}

/// Prints the rows. Exit status 1: something is saturated.
pub(super) fn run(args: &UseArgs) -> Result<ExitCode> {
    // Before any thread starts, since threads inherit the set of blocked signals.
    let signals = Signals::new()?;
    let mut before = reading(&args.socket);
    let mut at = Instant::now();
    let mut is_saturated = false;
    ensure!(
        before.files.contains_key("/proc/stat"),
        "/proc/stat cannot be read; headend lab use needs Linux with /proc"
    );
    while wait(at + Duration::from_secs_f64(args.interval), &signals)? {
        let after = reading(&args.socket);
        let now = Instant::now();
        let seconds = (now - at).as_secs_f64();
        let rows = host::rows(&before, &after, seconds);
        is_saturated = rows.iter().any(|row| row.verdict == Verdict::Saturated);
        print(&rows, seconds, args.json, args.watch)?;
        if !args.watch {
            break;
        }
        (before, at) = (after, now);
    }
    Ok(match is_saturated {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// Waits until `until`. Returns false after a signal.
fn wait(until: Instant, signals: &Signals) -> Result<bool> {
    loop {
        if signals.next_signal()?.is_some() {
            return Ok(false);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(true);
        }
        std::thread::sleep(left.min(LOOK_EVERY));
    }
}

/// Reads all files. What this host does not have is left out.
fn reading(socket: &Socket) -> Reading {
    let mut reading = Reading::default();
    for name in host::FILES {
        if let Some(text) = text(name) {
            reading.files.insert(name, text);
        }
    }
    reading.queues = queues();
    let folders = std::fs::read_dir("/sys/class/net")
        .into_iter()
        .flatten()
        .flatten();
    for folder in folders {
        let name = folder.file_name().to_string_lossy().into_owned();
        let number = |file: &str| {
            let text = text(&folder.path().join(file).display().to_string());
            text?.trim().parse::<u64>().ok()
        };
        // In Mbit/s; -1 if it is not known.
        if let Some(speed) = number("speed") {
            reading
                .speeds
                .insert(name.clone(), speed.saturating_mul(1_000_000));
        }
        if let Some(missed) = number("statistics/rx_missed_errors") {
            reading.missed.insert(name, missed);
        }
    }
    reading.processes = processes();
    reading.loop_busy_s = loop_busy_s(socket);
    reading
}

/// The processes whose open files this user may list.
fn processes() -> Vec<Process> {
    let entries = |path: &str| std::fs::read_dir(path).into_iter().flatten().flatten();
    let numbers = entries("/proc").filter_map(|entry| {
        let name = entry.file_name();
        name.to_str()?.parse::<u32>().ok()
    });
    let process = |number: u32| {
        let open = std::fs::read_dir(format!("/proc/{number}/fd"))
            .ok()?
            .count();
        let name = text(&format!("/proc/{number}/comm"))?;
        let limit = host::read::open_files_limit(&text(&format!("/proc/{number}/limits"))?)?;
        Some(Process {
            name: format!("{} ({number})", name.trim_end()),
            open: open as u64,
            limit,
        })
    };
    numbers.take(PROCESSES_MAX).filter_map(process).collect()
}

/// The text of a file, up to a limit.
fn text(path: &str) -> Option<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The queues of all interfaces, as tc prints them.
fn queues() -> Option<String> {
    let mut tc = Command::new("tc");
    tc.args(["-j", "-s", "qdisc", "show"])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = tc.output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The time that the daemon's loop was busy, if a daemon runs.
fn loop_busy_s(socket: &Socket) -> Option<f64> {
    let mut client = socket.connect().ok()?;
    let mut busy = None;
    // The rows of descriptors come after that of the loop.
    let rows = client.rows(&Do::ShowEventPoll(Nothing {}), |row| {
        let row: Value = serde_json::from_str(row)?;
        if row["schema"] == "event.waits/1" {
            busy = row["busy_s"].as_f64();
        }
        Ok(())
    });
    rows.ok()?;
    busy
}

/// Prints the rows as a table, or as one object on a line.
fn print(rows: &[Row], seconds: f64, json: bool, is_watched: bool) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let failed = "standard output cannot be written";
    if json {
        let rows: Vec<Value> = rows.iter().map(object).collect();
        let document = json!({ "schema": "lab.use/1", "seconds": seconds, "rows": rows });
        return writeln!(out, "{document}").context(failed);
    }
    let terminal = std::io::stdout().is_terminal().then(size);
    let columns = terminal.map(|(columns, _)| columns);
    let Some((_, height)) = terminal.filter(|_| is_watched) else {
        let mut lines = table::lines(rows, columns);
        lines.extend(table::hanging(&summary(rows), columns));
        return writeln!(out, "{}", lines.join("\n")).context(failed);
    };
    // The screen is drawn again: what matters most is at its top.
    let mut lines = table::lines(&table::worst_first(rows), columns);
    let room = height.saturating_sub(1).max(2);
    if lines.len() > room {
        let more = lines.len() - room + 1;
        lines.truncate(room - 1);
        lines.push(format!("... {more} more lines"));
    }
    writeln!(out, "\x1b[H\x1b[J{}", lines.join("\n"))
        .and_then(|()| out.flush())
        .context(failed)
}

/// Columns and rows of the terminal; 80 by 24 if unknown.
fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => (80, 24),
    }
}

/// The resources that are not ok, with the threshold and its source.
fn summary(rows: &[Row]) -> Vec<String> {
    let is_named = |row: &&Row| !matches!(row.verdict, Verdict::Ok | Verdict::Unknown);
    let named: Vec<String> = rows
        .iter()
        .filter(is_named)
        .map(|row| {
            let item = if row.item.is_empty() {
                String::new()
            } else {
                format!(" {}", row.item)
            };
            format!(
                "{} {}{item}: {:.1} {}; the threshold is {} ({})",
                row.verdict.name(),
                row.resource,
                row.value.unwrap_or(0.0),
                row.unit,
                row.threshold,
                row.source
            )
        })
        .collect();
    match named.is_empty() {
        true => vec!["nothing is saturated".to_owned()],
        false => named,
    }
}

fn object(row: &Row) -> Value {
    json!({
        "resource": row.resource,
        "item": row.item,
        "aspect": row.aspect.name(),
        "value": row.value,
        "unit": row.unit,
        "threshold": row.threshold,
        "source": row.source,
        "shown_by": row.shown_by,
        "verdict": row.verdict.name(),
    })
}
