//! What to send with a report of a fault: version, kernel, machine, configuration, the last lines of a log. No secret is
//! in it. Start at [`head`].

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result};
use cli::table::{Shown, show};
use settings::Record;

use crate::secrets::Secrets;

/// Lines of the log, from its end.
const LOG_LINES: usize = 100;
/// Bytes of the log that are read, from its end.
const LOG_BYTES: u64 = 256 * 1024;

/// Writes everything before the findings.
///
/// # Errors
/// `out` cannot be written.
pub(crate) fn head(
    record: &Record,
    secrets: Option<&Secrets>,
    out: &mut impl Write,
) -> io::Result<()> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    writeln!(out, "== headend {}", env!("CARGO_PKG_VERSION"))?;
    let architecture = std::env::consts::ARCH;
    writeln!(
        out,
        "kernel   {} ({architecture})",
        read("/proc/version").trim()
    )?;
    let system = field(&read("/etc/os-release"), "PRETTY_NAME", '=');
    writeln!(out, "system   {}", system.trim_matches('"'))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model = field(&read("/proc/cpuinfo"), "model name", ':');
    writeln!(out, "machine  {cores} cores, {model}")?;
    writeln!(
        out,
        "memory   {}",
        field(&read("/proc/meminfo"), "MemTotal", ':')
    )?;
    writeln!(out, "\n== configuration, without secrets")?;
    for (key, value) in record.values() {
        let value = record.without_secrets(&value.to_string());
        let value = secrets.map_or(value.clone(), |secrets| secrets.without(&value));
        writeln!(out, "{key} = {}", plain(&value))?;
    }
    writeln!(out, "\n== findings")
}

/// The value of the first line that starts with `name` and has a separator.
fn field(text: &str, name: &str, separator: char) -> String {
    let mut lines = text.lines().filter(|line| line.starts_with(name));
    let value = lines.find_map(|line| line.split_once(separator));
    value.map_or_else(
        || "unknown".to_owned(),
        |(_, value)| value.trim().to_owned(),
    )
}

/// Writes the last lines of a log, or that they are left out, because nobody knows the secrets.
///
/// # Errors
/// The log cannot be read, or `out` not written.
pub(crate) fn log(path: &Path, secrets: Option<&Secrets>, out: &mut impl Write) -> Result<()> {
    let bytes = tail(path).with_context(|| format!("cannot read {}", path.display()))?;
    let shown = path.display();
    let Some(secrets) = secrets else {
        return Ok(writeln!(
            out,
            "\n== {shown} is left out: the configuration cannot be read, so its secrets are unknown"
        )?);
    };
    writeln!(out, "\n== the last lines of {shown}")?;
    let text = secrets.without(&String::from_utf8_lossy(&bytes));
    let lines: Vec<&str> = text.lines().collect();
    for line in &lines[lines.len().saturating_sub(LOG_LINES)..] {
        writeln!(out, "{}", plain(line))?;
    }
    Ok(())
}

fn tail(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES).read_to_end(&mut bytes)?;
    if length > LOG_BYTES {
        // The first line lacks its start, and may have a part of a secret.
        let line = bytes.iter().position(|byte| *byte == b'\n');
        bytes.drain(..line.map_or(bytes.len(), |at| at + 1));
    }
    Ok(bytes)
}

/// A line without control characters, which a peer may have put into its names.
fn plain(line: &str) -> String {
    match line {
        "" => String::new(),
        line => show(&line.into(), Shown::Text).replace("\\\"", "\""),
    }
}
