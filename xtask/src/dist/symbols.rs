//! A published binary is stripped; its symbols are in a separate file.
//!
//! `headend` names `headend.debug` in its section `.gnu_debuglink` (GDB's manual, "Separate Debug Files"). gdb, perf,
//! addr2line and Rust's own backtraces read that file when it is in the binary's folder.

use crate::run::Report;
use std::path::Path;
use std::process::Command;

/// Moves the debug information of `directory/headend` to `headend.debug` beside it, with this objcopy.
pub(crate) fn split(report: &mut Report, directory: &Path, objcopy: &str) -> bool {
    let objcopy = |arguments: &[&str]| {
        let mut command = Command::new(objcopy);
        command.args(arguments).current_dir(directory);
        command
    };
    report.command(
        "keep the symbols",
        &mut objcopy(&["--only-keep-debug", "headend", "headend.debug"]),
    ) && report.command(
        "strip the binary",
        &mut objcopy(&[
            "--strip-debug",
            "--add-gnu-debuglink=headend.debug",
            "headend",
            "headend.stripped",
        ]),
    ) && report.check("sizes", || {
        replace(directory).map_err(|error| vec![error.to_string()])
    })
}

/// Replaces the binary with the stripped one. Cargo hard-links its output to its cache, which must stay
/// unchanged.
fn replace(directory: &Path) -> std::io::Result<String> {
    let binary = directory.join("headend");
    let before = binary.metadata()?.len();
    std::fs::rename(directory.join("headend.stripped"), &binary)?;
    let after = binary.metadata()?.len();
    let symbols = directory.join("headend.debug").metadata()?.len();
    let megabytes = |octets: u64| octets as f64 / 1e6;
    Ok(format!(
        "{}: {:.1} MB, before {:.1} MB; headend.debug: {:.1} MB",
        binary.display(),
        megabytes(after),
        megabytes(before),
        megabytes(symbols)
    ))
}
