//! The measurements of the fifth chapter: packets through a filter whose log lines contain a
//! protocol's name.

use anyhow::Result;
use lab::history::{Chapter, chapter_filter};

use crate::filter::lookups::{self, Rounds};
use cli::progress::spinner;

/// The chapter's measurements.
///
/// # Errors
/// No /etc/protocols, or no sockets.
pub(super) fn chapter(quick: bool) -> Result<Chapter> {
    let rounds = if quick { Rounds::QUICK } else { Rounds::FULL };
    let bar = spinner("history");
    bar.set_message("names of log lines");
    let measured = lookups::measure(rounds)?;
    bar.finish_and_clear();
    let mut chapter = chapter_filter(&measured.runs, measured.call_ns, measured.system_call_ns);
    chapter.method.push(rounds.method());
    Ok(chapter)
}
