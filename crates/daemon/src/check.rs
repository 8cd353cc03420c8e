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

/// Prints the advice and "FILE: ok", or every fault. The exit status is 2 if there is a fault.
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
            Ok(ExitCode::from(2))
        }
    }
}
