//! `headend check FILE`: reads a configuration file, reports its faults and opens nothing.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use crate::config;

/// Check a configuration file without starting the daemon.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// The configuration file
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints "FILE: ok", after any advice. If the file has faults, prints every one and fails.
pub fn run(args: &CheckArgs) -> Result<ExitCode> {
    if args.json {
        return run_json(args);
    }
    match config::load(&args.file) {
        Ok(settings) => {
            if !settings.advice.is_empty() {
                eprintln!("{}", settings.advice);
            }
            println!("{}: ok", args.file.display());
            Ok(ExitCode::SUCCESS)
        }
        Err(faults) => {
            eprintln!("{faults}");
            Ok(ExitCode::from(2))
        }
    }
}

/// The same as one object, `check/1`. Each fault and each piece of advice is one line of text.
fn run_json(args: &CheckArgs) -> Result<ExitCode> {
    let loaded = config::load(&args.file);
    let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (faults, advice) = match &loaded {
        Ok(settings) => (Vec::new(), lines(settings.advice.to_string())),
        Err(faults) => (lines(faults.to_string()), Vec::new()),
    };
    let document = json!({
        "schema": "check/1",
        "file": args.file.to_string_lossy(),
        "usable": loaded.is_ok(),
        "faults": faults,
        "advice": advice,
    });
    println!("{document:#}");
    Ok(match loaded {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(2),
    })
}
