//! `headend doctor`: what this host lacks for what a configuration asks, each with the command that mends it.
//!
//! `wants` derives from a configuration what it asks for. `gather` reads the facts about the host once. `checks` are
//! functions from both to findings, so that tests give hosts by hand. Start reading at [`run`].
//!
//! | module | purpose | I/O |
//! |---|---|---|
//! | `wants` | what a configuration asks for | none |
//! | `gather` | the facts: `/proc`, sockets, files, RADIUS servers, the systemd unit | yes |
//! | `host` | the facts as data | none |
//! | `checks` | findings | none |
//! | `finding` | one finding as text and as a row | none |
//! | `secrets` | text without the secrets of a configuration and its files | yes |
//! | `report` | what to send with a report of a fault, without secrets | yes |
#![forbid(unsafe_code)]

mod checks;
mod finding;
mod gather;
mod host;
mod report;
mod secrets;
mod wants;

use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use daemon::config;
use finding::{Finding, Findings, State};
use secrets::Secrets;
use settings::Record;
use wants::Wants;

/// Where packages put the configuration.
const DEFAULT_CONFIG: &str = "/etc/headend/headend.toml";

/// Check this host against a configuration.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// The configuration file [default: /etc/headend/headend.toml if it exists, else a plain LNS]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The user that runs the daemon [default: the unit's user, else yours]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// The systemd unit file [default: the installed headend.service, if it starts this configuration]
    #[arg(long, value_name = "FILE")]
    unit: Option<PathBuf>,
    /// An L2TP peer whose path to test; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    peer: Vec<IpAddr>,
    /// Send no packet: leave out RADIUS servers and paths
    #[arg(long)]
    offline: bool,
    /// Print one JSON object per finding
    #[arg(long)]
    json: bool,
    /// Print what to send with a report of a fault: version, machine, configuration without secrets, findings
    #[arg(long, conflicts_with = "json")]
    report: bool,
    /// A log whose last lines the report includes
    #[arg(long, value_name = "FILE", requires = "report")]
    log: Option<PathBuf>,
}

/// Prints all findings. The exit status is 1 if any is a fault.
///
/// # Errors
/// The user or the unit does not exist, or the log cannot be read, or standard output is closed.
pub fn run(args: &DoctorArgs) -> Result<ExitCode> {
    let (findings, record) = examine(args)?;
    let mut out = std::io::stdout().lock();
    let secrets = match chosen(args) {
        Some(path) if args.report => Secrets::of(&path),
        _ => Some(Secrets::default()),
    };
    if args.report {
        report::head(&record, secrets.as_ref(), &mut out)?;
    }
    for finding in &findings {
        match (args.json, &secrets) {
            (true, _) => writeln!(out, "{}", finding.row())?,
            (false, Some(secrets)) if args.report => {
                writeln!(out, "{}", secrets.without(&finding.to_string()))?;
            }
            (false, _) => writeln!(out, "{finding}")?,
        }
    }
    if !args.json {
        writeln!(out, "{}", summary(&findings))?;
    }
    if let Some(log) = &args.log {
        report::log(log, secrets.as_ref(), &mut out)?;
    }
    let has_fault = findings.iter().any(|one| one.state == State::Fault);
    Ok(ExitCode::from(u8::from(has_fault)))
}

/// The findings of the configuration itself and of all checks, and the keys of the configuration.
fn examine(args: &DoctorArgs) -> Result<(Vec<Finding>, Record)> {
    let config = chosen(args);
    let mut own = Findings::of("configuration");
    let (mut wants, record) = match &config {
        None => {
            let text =
                format!("{DEFAULT_CONFIG} does not exist; checking for an LNS with a TUN device.");
            own.advice(text, "headend doctor --config FILE");
            (Wants::without_configuration(), Record::default())
        }
        Some(path) => wants_of(path, &mut own),
    };
    wants.peers.clone_from(&args.peer);
    let sources = gather::Sources {
        user: args.user.as_deref(),
        unit: args.unit.as_deref(),
        config: config.as_deref(),
        is_offline: args.offline,
    };
    let host = gather::host(&wants, sources)?;
    let mut findings = own.into_list();
    findings.extend(checks::all(&wants, &host));
    Ok((findings, record))
}

fn chosen(args: &DoctorArgs) -> Option<PathBuf> {
    let default = || Some(PathBuf::from(DEFAULT_CONFIG)).filter(|path| path.exists());
    args.config.clone().or_else(default)
}

/// What the file at `path` asks for, and its keys. If it has faults, the host is checked for an LNS.
fn wants_of(path: &Path, findings: &mut Findings) -> (Wants, Record) {
    let mend = match path.exists() {
        true => format!("headend check {}", path.display()),
        false => "create the file, or name another one with --config".to_owned(),
    };
    match config::load(path) {
        Ok(settings) => {
            for advice in settings.advice.iter() {
                findings.advice(format!("{}: {advice}", path.display()), &mend);
            }
            if settings.advice.is_empty() {
                findings.ok(format!("{} has no fault.", path.display()));
            }
            (Wants::of(&settings, path), settings.record)
        }
        Err(faults) => {
            for fault in faults.iter() {
                findings.fault(format!("{}: {fault}", path.display()), &mend);
            }
            (Wants::without_configuration(), Record::default())
        }
    }
}

fn summary(findings: &[Finding]) -> String {
    let count = |state| findings.iter().filter(|one| one.state == state).count();
    let (faults, advice) = (count(State::Fault), count(State::Advice));
    let plural = |n: usize, word: &str| match n {
        1 => format!("1 {word}"),
        n => format!("{n} {word}s"),
    };
    format!(
        "{}, {}, {} ok",
        plural(faults, "fault"),
        match advice {
            1 => "1 piece of advice".to_owned(),
            n => format!("{n} pieces of advice"),
        },
        count(State::Ok)
    )
}
