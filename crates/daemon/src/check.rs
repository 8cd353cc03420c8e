//! `headend check FILE`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use crate::config;

/// Check a configuration file and open nothing.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file
    file: PathBuf,
}

/// Prints "FILE: ok", after advice if there is some, or every fault and fails.
pub fn run(args: &Args) -> Result<ExitCode> {
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
            Ok(ExitCode::FAILURE)
        }
    }
}
