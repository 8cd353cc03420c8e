//! Exit statuses, and the message of a failed command.

use std::io;
use std::process::ExitCode;

use anyhow::Result;

/// The exit status of the program; prints the error of a failed command.
pub fn finish(outcome: Result<ExitCode>) -> ExitCode {
    match outcome {
        Ok(code) => code,
        // A reader that closes the pipe has seen enough; that is no failure.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("headend: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the error of `verb` and exits with status 2, for verbs whose errors are faults of usage or of a file.
///
/// # Errors
/// Only a broken pipe, which is no failure.
pub fn or_exit_2(verb: &str, done: Result<ExitCode>) -> Result<ExitCode> {
    match done {
        Err(error) if !is_broken_pipe(&error) => {
            eprintln!("headend {verb}: {error:#}");
            Ok(ExitCode::from(2))
        }
        done => done,
    }
}

/// Whether the reader of our output has closed the pipe.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
