//! Compares what `headend trace why` says about a path with its label, and its times with the kernel's.

use super::generate::{Label, Path};
use super::traffic::PORT;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

/// Points of capture.
pub(crate) const POINTS: [&str; 3] = ["sender", "middle", "receiver"];

/// Largest difference between a share of time and the kernel's, as a part of the connection's life.
const TOLERANCE: f64 = 0.15;

/// The causes that are the ends' own work, or nobody's.
const OWN: [&str; 5] = ["handshake", "tls", "idle", "application", "cannot_say"];

/// The answer that is neither right nor wrong.
const CANNOT_SAY: &str = "cannot_say";

/// A path at one point of capture.
#[derive(Debug, Clone)]
pub(crate) struct Judged {
    pub(crate) name: String,
    pub(crate) label: Label,
    pub(crate) point: &'static str,
    /// The vantage that headend found.
    pub(crate) vantage: String,
    /// The main cause.
    pub(crate) cause: String,
    /// Part of the connection's life of each cause.
    pub(crate) parts: BTreeMap<String, f64>,
    /// The kernel's parts: busy, and limited by the receiver's window. None for TLS, where openssl ends too early.
    pub(crate) kernel: Option<(f64, f64)>,
}

impl Judged {
    pub(crate) fn is_right(&self) -> bool {
        self.label.right().contains(&self.cause.as_str())
    }

    pub(crate) fn is_wrong(&self) -> bool {
        !self.is_right() && self.cause != CANNOT_SAY
    }

    fn part(&self, cause: &str) -> f64 {
        self.parts.get(cause).copied().unwrap_or(0.0)
    }

    /// Whether the time that the receiver's window took is the kernel's.
    pub(crate) fn agrees_on_window(&self) -> Option<bool> {
        let (_, window) = self.kernel?;
        Some((self.part("receiver_window") - window).abs() <= TOLERANCE)
    }

    /// Whether the causes that need data in flight took no longer than the kernel was busy.
    pub(crate) fn agrees_on_busy(&self) -> Option<bool> {
        let (busy, _) = self.kernel?;
        let limited: f64 = 1.0 - OWN.iter().map(|cause| self.part(cause)).sum::<f64>();
        Some(limited <= busy + TOLERANCE)
    }

    /// One line with everything.
    pub(crate) fn line(&self) -> String {
        let mut out = format!(
            "{} {:<24} {:<9} {:<9} {:<18} {:<16}",
            if self.is_right() {
                "right "
            } else if self.is_wrong() {
                "WRONG "
            } else {
                "unsaid"
            },
            self.name,
            self.point,
            self.vantage,
            self.label.name(),
            self.cause,
        );
        for (cause, part) in &self.parts {
            if *part >= 0.005 {
                let _ = write!(out, " {cause}={:.0}%", part * 100.0);
            }
        }
        if let Some((busy, window)) = self.kernel {
            let _ = write!(
                out,
                " | kernel busy={:.0}% rwnd={:.0}%",
                busy * 100.0,
                window * 100.0
            );
        }
        out
    }
}

/// What headend says about the captures of a path in `directory`.
///
/// # Errors
/// A capture is missing or incomplete, or headend does not report its connection.
pub(crate) fn judge(
    headend: &std::path::Path,
    directory: &std::path::Path,
    path: &Path,
) -> Result<Vec<Judged>> {
    let judge_one = |point: &'static str| {
        let stem = format!("{}.{point}", path.name);
        judge_capture(headend, directory, path, point).context(stem)
    };
    POINTS.into_iter().map(judge_one).collect()
}

fn judge_capture(
    headend: &std::path::Path,
    directory: &std::path::Path,
    path: &Path,
    point: &'static str,
) -> Result<Judged> {
    let log = directory.join(format!("{}.{point}.log", path.name));
    let log = std::fs::read_to_string(&log).with_context(|| log.display().to_string())?;
    ensure!(
        log.contains("\n0 packets dropped by kernel") || log.contains("\n0 packet dropped"),
        "tcpdump lost packets: {log}"
    );
    let capture = directory.join(format!("{}.{point}.pcap", path.name));
    let output = Command::new(headend)
        .args(["trace", "why", "--json"])
        .arg(&capture)
        .output()
        .context("headend trace why")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout)?;
    let lines: Vec<Value> = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let line = lines
        .iter()
        .filter(|line| line["b_port"] == PORT)
        .max_by_key(|line| line["b2a"]["bytes"].as_u64())
        .context("no connection")?;
    let side = &line["b2a"];
    let life = line["elapsed_ns"].as_f64().context("elapsed_ns")?;
    let word = |value: &Value| value.as_str().map(str::to_owned).context("a word");
    let parts = side["causes"].as_object().context("causes")?;
    let parts = parts.iter().map(|(cause, share)| {
        let time = share["time_ns"].as_f64().unwrap_or(0.0);
        (cause.clone(), time / life)
    });
    Ok(Judged {
        name: path.name.clone(),
        label: path.label,
        point,
        vantage: word(&side["vantage"])?,
        cause: word(&side["cause"])?,
        parts: parts.collect(),
        kernel: match path.label {
            Label::Tls => None,
            _ => Some(kernel(directory, path, life)?),
        },
    })
}

/// Parts of the connection's life: when the sender's kernel was busy, and when the receiver's window limited it.
fn kernel(directory: &std::path::Path, path: &Path, life: f64) -> Result<(f64, f64)> {
    let file = directory.join(format!("{}.info", path.name));
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let port = PORT.to_string();
    let last = text
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .rfind(|words| words.get(1) == Some(&port.as_str()))
        .context("no sample of the sender")?;
    let part = |at: usize| -> Result<f64> {
        let us: f64 = last.get(at).context("a field")?.parse()?;
        Ok(us * 1e3 / life)
    };
    Ok((part(3)?, part(4)?))
}

/// The answers to each label, per point of capture and in all, and how often the times agree with the kernel's.
pub(crate) fn matrix(judged: &[Judged]) -> String {
    let mut out = String::new();
    for point in POINTS {
        let there: Vec<&Judged> = judged.iter().filter(|one| one.point == point).collect();
        table(point, &there, &mut out);
    }
    table("all", &judged.iter().collect::<Vec<_>>(), &mut out);
    out
}

fn table(point: &str, judged: &[&Judged], out: &mut String) {
    let percent = |count: usize, of: usize| 100.0 * count as f64 / of.max(1) as f64;
    let count = |test: &dyn Fn(&Judged) -> bool| judged.iter().filter(|one| test(one)).count();
    let (right, wrong) = (count(&Judged::is_right), count(&Judged::is_wrong));
    let all = judged.len();
    let _ = writeln!(
        out,
        "{point}: {all} cases, {right} right ({:.1} %), {wrong} wrong ({:.1} %), {} cannot say ({:.1} %)",
        percent(right, all),
        percent(wrong, all),
        all - right - wrong,
        percent(all - right - wrong, all),
    );
    for (what, test) in [
        (
            "receiver's window",
            Judged::agrees_on_window as fn(&Judged) -> Option<bool>,
        ),
        ("busy time", Judged::agrees_on_busy),
    ] {
        let known: Vec<bool> = judged.iter().filter_map(|one| test(one)).collect();
        let agree = known.iter().filter(|agrees| **agrees).count();
        let _ = writeln!(
            out,
            "  {what}: within {:.0} % of the life of the kernel's in {agree} of {} ({:.1} %)",
            TOLERANCE * 100.0,
            known.len(),
            percent(agree, known.len()),
        );
    }
    if point == "all" {
        answers(judged, out);
    }
}

/// A row for each label, a column for each answer.
fn answers(judged: &[&Judged], out: &mut String) {
    let mut causes: Vec<&str> = judged.iter().map(|one| one.cause.as_str()).collect();
    causes.sort_unstable_by_key(|cause| (*cause == CANNOT_SAY, *cause));
    causes.dedup();
    let _ = writeln!(out, "| label | right | wrong | {} |", causes.join(" | "));
    let _ = writeln!(out, "|---|---|---|{}", "---|".repeat(causes.len()));
    for label in Label::ALL {
        let row: Vec<&&Judged> = judged.iter().filter(|one| one.label == label).collect();
        let cells = causes.iter().map(|cause| {
            match row.iter().filter(|one| one.cause == **cause).count() {
                0 => String::new(),
                count => count.to_string(),
            }
        });
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} |",
            label.name(),
            row.iter().filter(|one| one.is_right()).count(),
            row.iter().filter(|one| one.is_wrong()).count(),
            cells.collect::<Vec<_>>().join(" | ")
        );
    }
}
