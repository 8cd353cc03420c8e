//! Sets up logging: to standard error, as text or JSON, or to the systemd journal with its fields.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use anyhow::{Context, Result};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{Registry, reload};

use crate::config::{Faults, Log, LogFormat, LogTo};

/// Changes the level while the process runs.
static LEVEL: OnceLock<reload::Handle<LevelFilter, Registry>> = OnceLock::new();

/// Logs from another level on.
pub(super) fn set_level(level: LevelFilter) {
    if let Some(handle) = LEVEL.get()
        && let Err(error) = handle.reload(level)
    {
        tracing::error!(%error, "the level of the log cannot be changed");
    }
}

/// Sets up logging for the process.
///
/// # Errors
/// The journal is configured but not available.
pub(super) fn start(log: &Log) -> Result<()> {
    let journal = match log.to {
        LogTo::Stderr => false,
        LogTo::Journal => true,
        LogTo::Auto => is_journal(),
    };
    let (level, handle) = reload::Layer::new(log.level);
    // Tests of one process may set up logging twice; the first keeps it.
    let _ = LEVEL.set(handle);
    let registry = tracing_subscriber::registry().with(level);
    if journal {
        let layer = tracing_journald::layer()
            .context("log.to: the journal cannot be reached; \"stderr\" needs none")?
            .with_field_prefix(Some("HEADEND".into()));
        registry.with(layer).try_init()?;
        return Ok(());
    }
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_target(false);
    match log.format {
        LogFormat::Json => registry.with(layer.json().flatten_event(true)).try_init()?,
        LogFormat::Text => {
            let colour =
                std::io::stderr().is_terminal() && !is_colour_refused(std::env::var_os("NO_COLOR"));
            registry.with(layer.with_ansi(colour)).try_init()?;
        }
    }
    Ok(())
}

/// Whether the log level includes packets that a filter rule asks to log.
pub(super) fn logs_packets() -> bool {
    tracing::enabled!(target: "filter", tracing::Level::INFO)
}

/// Whether the value of `NO_COLOR` turns colour off: any text that is not empty.
fn is_colour_refused(value: Option<OsString>) -> bool {
    value.is_some_and(|value| !value.is_empty())
}

/// Logs advice about settings that are valid but may be unintended.
pub(super) fn advice(advice: &Faults) {
    for line in advice.lines() {
        tracing::warn!("{line}");
    }
}

/// Whether standard error is the stream that systemd connected to its journal
/// (systemd.exec(5), `JOURNAL_STREAM`).
fn is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else {
        return false;
    };
    rustix::fs::fstat(std::io::stderr().as_fd())
        .is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_in_no_color_turns_colour_off() {
        for (value, refused) in [
            (None, false),
            (Some(""), false),
            (Some("1"), true),
            (Some("0"), true),
        ] {
            assert_eq!(
                is_colour_refused(value.map(OsString::from)),
                refused,
                "{value:?}"
            );
        }
    }
}
