//! `headend trace twin`: infers the bottleneck of a capture, and runs its flows again under another queue. The crate
//! `twin` has the model.
//!
//! | file | what it does |
//! |---|---|
//! | `twin` | the command line, and the order of the work |
//! | `twin/collect` | reads the flows of a capture |
//! | `twin/sides` | divides the flows into directions |
//! | `twin/policy` | the queue of the promise |
//! | `twin/text`, `twin/lines`, `twin/page` | the report as text, as JSON, and as a page |

mod collect;
mod lines;
mod page;
mod policy;
mod sides;
mod text;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use trace::{Captures, Findings};
use twin::{Captured, Figures, NoTwin, Twin};

use super::help;
use super::hi::HiArgs;
use super::low::{LowArgs, Usage};
use super::stop::Stop;
use collect::{Collector, Found};
use policy::{Chosen, Wrong};
use sides::Direction;

/// The flags that only this command has.
struct Own {
    policy: String,
    page: Option<PathBuf>,
    seed: u64,
}

impl Default for Own {
    fn default() -> Own {
        Own {
            policy: "fq_codel".into(),
            page: None,
            seed: 1,
        }
    }
}

impl Own {
    /// Takes this command's flags from the words; the rest is as for `headend trace`.
    fn take(words: &[OsString]) -> Result<(Own, Vec<OsString>), Usage> {
        let mut own = Own::default();
        let mut rest = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let text = word.to_string_lossy();
            let (name, attached) = match text.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (text.to_string(), None),
            };
            if !["--policy", "--page", "--seed"].contains(&name.as_str()) {
                rest.push(word.clone());
                continue;
            }
            let next = || words.next().map(|word| word.to_string_lossy().into_owned());
            let value = attached
                .or_else(next)
                .ok_or_else(|| Usage(format!("{name} needs a value")))?;
            match name.as_str() {
                "--policy" => own.policy = value,
                "--page" => own.page = Some(value.into()),
                _ => {
                    let wrong = |_| Usage(format!("--seed {value}: write a whole number"));
                    own.seed = value.parse().map_err(wrong)?;
                }
            }
        }
        Ok((own, rest))
    }
}

/// The flows of one direction, and their twin.
struct Side {
    direction: Direction,
    found: Vec<Found>,
    twin: Result<Twin, NoTwin>,
    /// What a refused capture's senders waited for.
    reason: Option<String>,
    promise: Option<Promise>,
}

/// The twin under a policy.
struct Promise {
    figures: Figures,
    outcome: twin::world::Outcome,
}

/// Everything that a report needs.
struct Report {
    sides: Vec<Side>,
    policy: Chosen,
    seed: u64,
    packets: u64,
    beyond: u64,
    good: bool,
}

/// Runs the command line after `twin`.
///
/// # Errors
/// No file can be read, or an output cannot be written.
pub(super) fn run(words: &[OsString]) -> Result<ExitCode> {
    let usage = |why: &str| {
        eprintln!("headend trace twin: {why}");
        Ok(ExitCode::from(2))
    };
    let parsed = Own::take(words).and_then(|(own, rest)| Ok((own, LowArgs::parse(&rest)?)));
    let (own, low) = match parsed {
        Ok((own, low)) => (own, low),
        Err(Usage(why)) => return usage(&why),
    };
    if low.help.is_some() {
        io::stdout().write_all(help::TWIN.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let args = match refuse(&low).and_then(|()| HiArgs::new(low)) {
        Ok(args) => args,
        Err(Usage(why)) => return usage(&why),
    };
    let policy = match Chosen::read(&own.policy)? {
        Ok(policy) => policy,
        Err(Wrong(why)) => return usage(&why),
    };
    let mut report = read(&args, policy, own.seed)?;
    if let Err(Wrong(why)) = promise(&mut report) {
        return usage(&why);
    }
    let mut out = io::stdout().lock();
    match args.low.json {
        true => writeln!(out, "{}", lines::document(&report))?,
        false => out.write_all(text::report(&report).as_bytes())?,
    }
    if let Some(path) = &own.page {
        let page = page::page(&report).to_html();
        std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let any = report.sides.iter().any(|side| side.twin.is_ok());
    Ok(match any && report.good {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Refuses flags of `headend trace` that mean nothing here.
fn refuse(low: &LowArgs) -> Result<(), Usage> {
    let values = low.csv || low.tsv || low.separator.is_some();
    let flags = [
        ("graphs", low.graphs.any() || low.svg || low.html),
        ("--csv, --tsv and --sv", values),
        ("--parquet", low.parquet.is_some()),
        ("-u", low.udp),
        ("-f", low.filter.is_some()),
        ("-c", low.complete),
        ("-e", low.contents),
        ("--live", low.live.is_some()),
        ("-O", low.save.is_some()),
        ("--continuous", low.continuous),
        ("--part and --merge", low.part.is_some() || low.merge),
    ];
    match flags.into_iter().find(|flag| flag.1) {
        Some((flag, _)) => Err(Usage(format!("{flag} cannot be combined with twin"))),
        None => Ok(()),
    }
}

/// Reads the capture, and makes a twin of each direction.
fn read(args: &HiArgs, policy: Chosen, seed: u64) -> Result<Report> {
    let stop = Arc::new(Stop::new().context("cannot take signals")?);
    let mut options = args.analysis.clone();
    options.why = true;
    let captures = Captures::open_until(&args.low.files, options, stop);
    let (findings, mut collector) = captures.read_with(Collector::default())?;
    for file in findings.files() {
        for line in file.lines() {
            eprintln!("headend: {line}");
        }
    }
    let reasons = reasons(&findings, &mut collector, args)?;
    let (packets, beyond) = (collector.packets, collector.beyond);
    let found = collector.finish();
    let found = found
        .into_iter()
        .filter(|found| args.chosen(found.connection));
    let mut sides = Vec::new();
    for (direction, found) in sides::divide(found.collect()) {
        let captured = |found: &Found| Captured {
            flow: found.flow.clone(),
            keys: found.keys,
        };
        let captured: Vec<Captured> = found.iter().map(captured).collect();
        let twin = Twin::new(&captured, seed);
        let most = found.iter().max_by_key(|found| found.flow.bytes());
        let reason = most.and_then(|found| reasons.get(&(found.connection, found.from)));
        sides.push(Side {
            direction,
            reason: reason.cloned(),
            found,
            twin,
            promise: None,
        });
    }
    Ok(Report {
        sides,
        policy,
        seed,
        packets,
        beyond,
        good: findings.is_good(),
    })
}

type Sender = (u64, (std::net::IpAddr, u16));

/// What each sender waited for, by the rules of `headend trace why`.
fn reasons(
    findings: &Findings,
    collector: &mut Collector,
    args: &HiArgs,
) -> Result<HashMap<Sender, String>> {
    let mut reasons = HashMap::new();
    for (number, connection) in (1..).zip(findings.connections()) {
        let connection = connection?;
        collector.number(connection.first_packet, number);
        if !args.chosen(number) {
            continue;
        }
        let Some(why) = &connection.why else { continue };
        let why = why.until(connection.last_time);
        for (from_a, end) in [(true, connection.a_end()), (false, connection.b_end())] {
            if let Some(verdict) = trace::why::Verdict::new(&connection, &why, from_a) {
                let share = verdict.share.time as f64 / verdict.life.max(1) as f64;
                let phrase = verdict.cause.rule().phrase;
                let text = format!("{:.0} % of its time {phrase}", 100.0 * share);
                reasons.insert((number, end), text);
            }
        }
    }
    Ok(reasons)
}

/// Runs each twin under the policy.
fn promise(report: &mut Report) -> Result<(), Wrong> {
    for side in &mut report.sides {
        let Ok(twin) = &side.twin else { continue };
        let line = report.policy.line(twin, side.direction.is_up)?;
        if twin.error.is_small() {
            let run = twin.under(&line);
            let (outcome, figures) = run.map_err(|error| Wrong(format!("--policy: {error}")))?;
            side.promise = Some(Promise { figures, outcome });
        }
    }
    Ok(())
}
