//! `headend qos import`: turns queues of other programs into a policy file. docs/qos-import.md lists each option with the
//! key that it becomes, or why there is none.
//!
//! A reader makes an [`Import`]: a policy, and a report with a line for each option. Readers do no I/O, and take any
//! bytes. The reader of policies judges the result, and what it refuses is left out and reported.
//!
//! | module | contents |
//! |---|---|
//! | `sheet` | the policy while it is made |
//! | `uci` | OpenWrt's files |
//! | `cake` | the keywords of cake |
//! | `sqm` | `/etc/config/sqm` |
//! | `objects` | queues, classes and filters that tc prints, or a script adds |
//! | `filters` | filters of tc as conditions |
//! | `leaf` | queues without classes |
//! | `tc`, `htb` | trees of tc |

pub mod cake;
mod filters;
mod htb;
mod leaf;
mod objects;
mod sheet;
pub mod sqm;
pub mod tc;
mod uci;

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Subcommand, ValueHint};
pub use convert::Source;
use convert::source::{FILE_BYTES_MAX, content};

pub use sheet::Import;

/// Turn the queues of another program into a policy file.
///
/// Each option of the source becomes a key of the policy file or is listed on standard error with the reason. Comments
/// in the policy file name the line that a key comes from. The result always passes `headend qos check`.
#[derive(Debug, clap::Args)]
pub(super) struct QosImportArgs {
    #[command(subcommand)]
    source: SourceArgs,
}

#[derive(Debug, Subcommand)]
enum SourceArgs {
    /// OpenWrt's /etc/config/sqm
    Sqm(SqmArgs),
    /// What tc prints, with -j or without, or the tc commands of a shell script
    Tc(TcArgs),
}

#[derive(Debug, clap::Args)]
struct TcArgs {
    /// What `tc qdisc show`, `tc class show` and `tc filter show` print of the interface towards the provider, or a
    /// script; - is standard input
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// The same of the interface on which downloads are shaped: an ifb, or that of the hosts
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    down: Vec<PathBuf>,
    /// The interface towards the provider, if the files name several
    #[arg(long, value_name = "IF")]
    wan: Option<String>,
    #[command(flatten)]
    to: ToArgs,
}

#[derive(Debug, clap::Args)]
struct SqmArgs {
    /// The file, or - for standard input
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Import the section of this interface, in place of the first section that is enabled
    #[arg(long, value_name = "IF")]
    interface: Option<String>,
    #[command(flatten)]
    to: ToArgs,
}

#[derive(Debug, clap::Args)]
struct ToArgs {
    /// Write the policy file here, in place of standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
    /// With --out: replace a file that exists
    #[arg(long, requires = "out")]
    force: bool,
    /// Exit with status 1 if an option that has an effect is not carried over
    #[arg(long)]
    strict: bool,
    /// Print the report as one JSON object, in place of the policy file
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &QosImportArgs) -> Result<ExitCode> {
    match &args.source {
        SourceArgs::Sqm(args) => {
            let source = open(&args.file)?;
            if let Some(interface) = &args.interface {
                let known = sqm::interfaces(&source);
                anyhow::ensure!(
                    known.contains(interface),
                    "--interface {interface}: {} has no queue section for it; it has {}",
                    source.name,
                    if known.is_empty() {
                        "none".to_owned()
                    } else {
                        known.join(", ")
                    }
                );
            }
            let import = sqm::read(&[source], args.interface.as_deref());
            anyhow::ensure!(
                import.found > 0,
                "{}: has no section of type queue",
                args.file.display()
            );
            report("sqm", import, &args.to)
        }
        SourceArgs::Tc(args) => {
            let all = |paths: &[PathBuf]| {
                paths
                    .iter()
                    .map(|path| open(path))
                    .collect::<Result<Vec<_>>>()
            };
            let (up, down) = (all(&args.files)?, all(&args.down)?);
            for source in up.iter().chain(&down) {
                let is_cut = crate::graph::loose::is_cut_short(&source.text);
                anyhow::ensure!(!is_cut, "{}: the JSON is cut short", source.name);
            }
            let import = tc::read(&up, &down, args.wan.as_deref());
            let first = &args.files[0];
            anyhow::ensure!(
                import.found > 0,
                "{}: nothing that tc prints, and no tc command",
                first.display()
            );
            report("tc", import, &args.to)
        }
    }
}

/// Reads a file, or standard input for `-`.
fn open(path: &Path) -> Result<Source> {
    if path.as_os_str() != "-" {
        let bytes = content(path).map_err(anyhow::Error::msg)?;
        return Ok(Source::new(&path.to_string_lossy(), &bytes, b"#"));
    }
    let mut bytes = Vec::new();
    let limit = FILE_BYTES_MAX as u64 + 1;
    let read = std::io::stdin().take(limit).read_to_end(&mut bytes);
    read.context("standard input cannot be read")?;
    anyhow::ensure!(
        bytes.len() <= FILE_BYTES_MAX,
        "standard input is longer than {} MiB; that is no configuration",
        FILE_BYTES_MAX >> 20
    );
    Ok(Source::new("stdin", &bytes, b"#"))
}

fn report(name: &str, mut import: Import, to: &ToArgs) -> Result<ExitCode> {
    let text = import.finish()?;
    if let Some(path) = &to.out {
        write(path, &text, to.force)?;
    }
    let mut out = std::io::stdout().lock();
    if to.json {
        let names: Vec<String> = to
            .out
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        writeln!(out, "{:#}", import.report.json(name, &names))?;
    } else if to.out.is_none() {
        out.write_all(text.as_bytes())?;
    }
    eprintln!("{}", import.report);
    if let Some(path) = &to.out {
        eprintln!("written: {}", path.display());
    }
    let lost = import.report.lost_count();
    Ok(match (to.strict, lost) {
        (true, 1..) => {
            eprintln!("headend qos import: not carried over, although they have an effect: {lost}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    })
}

/// Writes the policy. With `force`, a file of that name is replaced as a whole.
fn write(path: &Path, text: &str, force: bool) -> Result<()> {
    let failed = || format!("{}: cannot be written", path.display());
    if !force {
        let exists = path.symlink_metadata().is_ok();
        anyhow::ensure!(!exists, "{} exists; --force replaces it", path.display());
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = PathBuf::from(name);
    let file = OpenOptions::new().write(true).create_new(true).open(&new);
    let written = file
        .with_context(failed)
        .and_then(|mut file| file.write_all(text.as_bytes()).with_context(failed))
        .and_then(|()| std::fs::rename(&new, path).with_context(failed));
    if written.is_err() {
        // Half a file would look like a whole one; it may not exist at all.
        let _ = std::fs::remove_file(&new);
    }
    written
}
