//! Progress on standard error, drawn only on a terminal.

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

/// A progress bar on standard error, if that is a terminal. It has no colours.
pub fn bar(count: u32, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(count.into());
    let template = "{msg} {pos}/{len} [{wide_bar}] {rate} {elapsed}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            // It fails only if writing to a string does.
            let _ = write!(out, "{:.0}/s", state.per_sec());
        };
        bar.set_style(style.with_key("rate", rate).progress_chars("=> "));
    }
    bar.set_message(what);
    bar
}

/// A line that names the work in progress.
pub fn spinner(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{prefix} {spinner} {elapsed} {wide_msg}") {
        bar.set_style(style);
    }
    bar.set_prefix(what);
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    bar
}
