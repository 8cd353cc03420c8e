//! `headend import`: turns the configuration of another daemon into `headend.toml`. docs/import.md lists, for each
//! option of each daemon, the key that it becomes or why there is none.
//!
//! A reader of a source makes an [`Import`]: sections, users, secrets, and a [`Report`] with a line for each option.
//! Readers do no I/O but through [`Files`], and take any bytes. `output` lets the daemon's own reader judge the result,
//! and leaves out what it refuses. The crate `convert` has the
//! report and the document, which `headend qos import` uses too. Start reading at [`run`].
//!
//! | module | contents |
//! |---|---|
//! | `files` | the files of a source, and those that they name |
//! | `pattern` | commands of words |
//! | `bgp` | what the readers of BGP share |
//! | `accel` | accel-ppp.conf and chap-secrets |
//! | `bird` | bird.conf |
//! | `frr` | frr.conf |
//! | `gobgp` | gobgpd.conf |
//! | `l2tpns` | startup-config, ip_pool and users |
//! | `xl2tpd` | xl2tpd.conf, pppd's options and secrets |
//! | `output` | checks and writes the files |
#![forbid(unsafe_code)]

pub mod accel;
mod bgp;
pub mod bird;
mod files;
pub mod frr;
pub mod gobgp;
pub mod l2tpns;
mod output;
mod pattern;
pub mod xl2tpd;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use base::Redacted;
use clap::{Subcommand, ValueHint};
use convert::{document, report};

pub use document::{Document, Table, Value};
pub use files::Files;
pub use output::{Output, finish};
pub use report::{Fate, Line, Place, Report, Rule};

/// Turn the configuration of another daemon into one for headend.
///
/// Each option of the source becomes a key of headend.toml or is listed on standard error with the reason. Comments in
/// headend.toml name the file and line that a key comes from. Without --out, headend.toml is printed; secrets are never
/// printed, only written to files.
#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    #[command(subcommand)]
    source: SourceArgs,
}

#[derive(Debug, Subcommand)]
enum SourceArgs {
    /// xl2tpd.conf, with pppd's options files, chap-secrets, pap-secrets and l2tp-secrets
    Xl2tpd(FileArgs),
    /// l2tpns's startup-config, with ip_pool and users
    L2tpns(FileArgs),
    /// accel-ppp.conf, with the chap-secrets file that it names
    AccelPpp(FileArgs),
    /// The BGP parts of FRR's frr.conf or bgpd.conf
    Frr(FileArgs),
    /// The BGP parts of BIRD 2's bird.conf
    Bird(FileArgs),
    /// GoBGP's gobgpd.conf, in TOML or YAML
    Gobgp(FileArgs),
}

#[derive(Debug, clap::Args)]
struct FileArgs {
    /// The main file first, then files that it names, or that have standard names
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Write headend.toml, users.toml and files with secrets here, with mode 0600
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,
    /// With --out: replace files that exist
    #[arg(long, requires = "out")]
    force: bool,
    /// Exit with status 1 if an option that has an effect is not carried over
    #[arg(long)]
    strict: bool,
    /// Check the result as `headend check` does, and print its advice
    #[arg(long)]
    check: bool,
    /// Print the report as one JSON object, in place of headend.toml
    #[arg(long)]
    json: bool,
}

/// What a source becomes.
#[derive(Debug, Default)]
pub struct Import {
    /// `headend.toml`.
    pub config: Document,
    /// `users.toml`, which is written if the configuration has `[users]`.
    pub users: Document,
    /// The filters, which are written if the configuration has `[filter]`.
    pub filters: String,
    /// Files with one secret each, which the configuration names.
    pub secrets: Vec<Output>,
    /// What became of each line.
    pub report: Report,
    /// The comment at the start of `headend.toml`.
    pub head: String,
}

impl Import {
    /// An empty import. `source` names the kind of configuration, `file` the first file.
    pub fn new(source: &str, file: &str) -> Import {
        let mut import = Import {
            head: format!(
                "Made by headend import {source} from {file}.\nThe comment behind a key names the line that it comes from."
            ),
            ..Import::default()
        };
        import.config.note(
            "control",
            "socket",
            "/run/headend.sock",
            "not in the source: headend needs a control socket",
        );
        import
    }

    /// Keeps a secret for a file of its own, and names the file in the configuration.
    pub fn secret(&mut self, table: &str, name: &str, secret: &str, from: &Place) {
        if let Some(name) = self.keep_secret(name, secret) {
            self.config.set(table, "secret_file", name, from);
        }
    }

    /// Keeps a secret and returns the name of its file. An empty secret is none.
    pub fn keep_secret(&mut self, name: &str, secret: &str) -> Option<String> {
        if secret.is_empty() {
            return None;
        }
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '-'
            }
        };
        let stem: String = name.chars().take(100).map(plain).collect();
        let taken = |name: &str, all: &[Output]| all.iter().any(|other| other.name == name);
        let mut name = format!("{stem}.secret");
        let mut number = 2;
        while taken(&name, &self.secrets) {
            name = format!("{stem}-{number}.secret");
            number += 1;
        }
        self.secrets.push(Output {
            name: name.clone(),
            text: Redacted::new(format!("{secret}\n")),
        });
        Some(name)
    }
}

/// Reads a source from files.
type Reader = fn(&mut Files) -> Import;

/// Runs the subcommand.
pub fn run(args: &ImportArgs) -> Result<ExitCode> {
    let (name, args, usual, read): (_, _, _, Reader) = match &args.source {
        SourceArgs::Xl2tpd(args) => ("xl2tpd", args, xl2tpd::USUAL, xl2tpd::read),
        SourceArgs::L2tpns(args) => ("l2tpns", args, l2tpns::USUAL, l2tpns::read),
        SourceArgs::AccelPpp(args) => ("accel-ppp", args, accel::USUAL, accel::read),
        SourceArgs::Bird(args) => ("bird", args, bird::USUAL, bird::read),
        SourceArgs::Gobgp(args) => ("gobgp", args, gobgp::USUAL, gobgp::read),
        SourceArgs::Frr(args) => ("frr", args, frr::USUAL, frr::read),
    };
    cli::or_exit_2("import", convert(name, args, usual, read))
}

fn convert(name: &str, args: &FileArgs, usual: &[&str], read: Reader) -> Result<ExitCode> {
    let mut files = Files::open(&args.files, usual).map_err(anyhow::Error::msg)?;
    let mut import = read(&mut files);
    let outputs = finish(&mut import)?;
    if let Some(folder) = &args.out {
        output::save(folder, &outputs, args.force)?;
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        let names: Vec<String> = outputs.iter().map(|file| file.name.clone()).collect();
        writeln!(out, "{:#}", import.report.json(name, &names))?;
    } else if args.out.is_none() {
        out.write_all(outputs[0].text.reveal().as_bytes())?;
    }
    eprintln!("{}", import.report);
    for file in &outputs {
        match &args.out {
            Some(folder) => eprintln!("written: {}", folder.join(&file.name).display()),
            None if file.name == output::CONFIG => {}
            None => eprintln!("not printed: {}; --out DIR writes it", file.name),
        }
    }
    if args.check {
        let advice = output::advice(&outputs)?;
        eprint!("{advice}");
        eprintln!("{}: ok", output::CONFIG);
    }
    let lost = import.report.lost_count();
    Ok(match (args.strict, lost) {
        (true, 1..) => {
            eprintln!("headend import: not carried over, although they have an effect: {lost}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    })
}
