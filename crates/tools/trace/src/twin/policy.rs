//! `--policy`: a queue by its name, or a policy file of `headend qos`.

use std::path::Path as FilePath;

use anyhow::{Context, Result};
use qos::classify::KeySet;
use qos::codel::Parameters;
use qos::fq_codel::Floor;
use qos::policy::Policy;
use qos::tree::{Overhead, Spec};
use qos::{codel, fair, fifo, fq_codel, sfq};
use twin::line::Line;
use twin::path::Path;

/// Names of queues, each with what it does.
pub(super) const NAMES: [(&str, &str); 5] = [
    ("fq_codel", "a queue with controlled delay for each flow"),
    ("fair", "per host, then per flow, with controlled delay"),
    ("codel", "one queue with controlled delay"),
    ("sfq", "stochastic fairness, without controlled delay"),
    ("fifo", "one queue of 100 ms"),
];

/// The queue of a promise.
pub(super) enum Chosen {
    /// At the bottleneck's own rate.
    Named(&'static str),
    /// With its own rates.
    File {
        name: String,
        text: String,
        policy: Box<Policy>,
    },
}

/// Why a policy cannot be used, with the exit status.
pub(super) struct Wrong(pub(super) String);

impl Chosen {
    /// Reads the value of `--policy`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read(word: &str) -> Result<Result<Chosen, Wrong>> {
        if let Some((name, _)) = NAMES.iter().find(|(name, _)| *name == word) {
            return Ok(Ok(Chosen::Named(name)));
        }
        let path = FilePath::new(word);
        if !path.exists() {
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            return Ok(Err(Wrong(format!(
                "--policy {word}: neither a file nor a queue; write one of {}, or the name of a policy file",
                names.join(", ")
            ))));
        }
        let text = settings_text(path)?;
        Ok(match Policy::parse(&text) {
            Ok((policy, _)) => Ok(Chosen::File {
                name: word.to_owned(),
                text,
                policy: Box::new(policy),
            }),
            Err(faults) => Err(Wrong(faults.of(path).lines().join("\n"))),
        })
    }

    /// Its name in the report.
    pub(super) fn name(&self) -> &str {
        match self {
            Chosen::Named(name) => name,
            Chosen::File { name, .. } => name,
        }
    }

    /// The bottleneck with this queue.
    ///
    /// # Errors
    /// The policy's rate is above the bottleneck's, or it does not shape this direction.
    pub(super) fn line(&self, twin: &twin::Twin, is_up: bool) -> Result<Line, Wrong> {
        let path = &twin.path;
        let rate_bps = (path.rate_bps.value + path.cross_bps.value) as u64;
        let frame = twin.demands.iter().map(|demand| demand.mss + demand.header);
        let frame = frame.max().unwrap_or(1514);
        let with = |queue: Spec, overhead: Option<Overhead>| Line {
            rate_bps,
            queue,
            overhead,
            loss: match path.loss {
                // By chance, losses come again; a queue that drops early is replaced.
                twin::path::Loss::Early(share) if path.most_queued < f64::from(frame) => share,
                _ => 0.0,
            },
            policer: None,
        };
        match self {
            Chosen::Named(name) => Ok(with(named(name, rate_bps, frame), None)),
            Chosen::File { name, text, policy } => {
                check(name, text, policy, path, is_up, frame)?;
                let queue = if is_up {
                    policy.up_spec()
                } else {
                    policy.down_spec()
                };
                Ok(with(queue, Some(policy.overhead())))
            }
        }
    }
}

/// A queue at the bottleneck's rate, with Linux's defaults.
fn named(name: &str, rate_bps: u64, frame: u32) -> Spec {
    let parameters = Parameters {
        mtu: frame,
        ..Parameters::default()
    };
    match name {
        "fq_codel" => fq_codel::Options {
            quantum: frame,
            floor: Floor::All,
            parameters,
            keys: KeySet::PLAIN,
            ..fq_codel::Options::default()
        }
        .into(),
        "fair" => fair::Options::default().into(),
        "codel" => codel::Options {
            parameters,
            ..codel::Options::default()
        }
        .into(),
        "sfq" => sfq::Options::default().into(),
        _ => fifo::Limit::Bytes((rate_bps / 80).max(2 * u64::from(frame))).into(),
    }
}

/// Refuses a rate above the bottleneck's.
fn check(
    name: &str,
    text: &str,
    policy: &Policy,
    path: &Path,
    is_up: bool,
    frame: u32,
) -> Result<(), Wrong> {
    let key = if is_up { "up" } else { "down" };
    let place = match line_of(text, key) {
        Some(line) => format!("{name}:{line}: link.{key}"),
        None => format!("{name}: link.{key}"),
    };
    let rate = if is_up {
        policy.up_bps()
    } else {
        policy.down_bps()
    };
    // A policy without a shaper puts its queue at the bottleneck itself.
    let Some(rate) = rate else { return Ok(()) };
    let counted = policy.overhead().on_line(frame.saturating_sub(14));
    let share = f64::from(frame) / f64::from(counted);
    let (own, most) = (
        rate as f64 * share,
        path.rate_bps.value + path.cross_bps.value,
    );
    if own <= most {
        return Ok(());
    }
    let mbit = |bps: f64| bps / 1e6;
    Err(Wrong(format!(
        "{place}: {:.2} Mbit/s is above the bottleneck's {:.2} Mbit/s, so packets would wait in the bottleneck's own \
         queue; write {:.2} Mbit/s or less",
        mbit(rate as f64),
        mbit(most / share),
        mbit(0.95 * most / share)
    )))
}

/// The line of a key of `[link]`, if it is on a line of its own.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let mut is_inside = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.starts_with('[') {
            is_inside = line == "[link]";
        } else if is_inside
            && line
                .split('=')
                .next()
                .is_some_and(|name| name.trim() == key)
        {
            return Some(number);
        }
    }
    None
}

fn settings_text(path: &FilePath) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
