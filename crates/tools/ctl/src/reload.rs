//! `headend reload` makes the daemon read its configuration again, and prints a row per changed key. `headend confirm`
//! keeps the configuration of a reload with a timeout. Left out: the reload itself, which the daemon does.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

use crate::show::Tables;
use cli::Socket;
use control::request::{Do, Nothing, Reload};
use control::rows;

/// Make the daemon read its configuration again, and list what applies and what needs a restart.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct ReloadArgs {
    #[command(flatten)]
    socket: Socket,
    #[command(flatten)]
    reload: Reload,
    /// Print one JSON object a line, each with its schema
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
If the file has a fault, nothing changes, and each fault is printed. EFFECT is one of these:
  applied         the new value applies
  applied-to-new  it applies to tunnels and sessions that start from now on
  restart         it applies when the daemon starts again
  failed          it could not be applied; NOTE says why

Examples:
  headend reload
  headend reload --timeout 60 && headend show subscribers && headend confirm";

/// Keep what \"headend reload --timeout\" applied.
#[derive(Debug, clap::Args)]
pub struct ConfirmArgs {
    #[command(flatten)]
    socket: Socket,
}

/// Sends the request, and prints a row for each changed key. Fails if one could not be applied.
pub fn run(args: &ReloadArgs) -> Result<ExitCode> {
    let mut client = args.socket.connect()?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut tables = Tables::default();
    let mut failed = 0;
    client.rows(&Do::Reload(args.reload), |row| {
        let value: Value = serde_json::from_str(row)?;
        if value["schema"] == rows::Reload::SCHEMA {
            failed += value["failed"].as_u64().unwrap_or(0);
        }
        match args.json {
            true => Ok(writeln!(out, "{row}")?),
            false => tables.push(&value, &mut out),
        }
    })?;
    if !args.json {
        tables.finish(rows::Reload::SCHEMA, &mut out)?;
    }
    out.flush()?;
    Ok(match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Sends the request.
pub fn confirm(args: &ConfirmArgs) -> Result<ExitCode> {
    args.socket.connect()?.call(&Do::Confirm(Nothing {}))?;
    Ok(ExitCode::SUCCESS)
}
