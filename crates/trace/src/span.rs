//! A span of time as a person would say it.

/// A span in nanoseconds as a person would say it: in ms below a second, otherwise in seconds with so many decimals.
#[must_use]
pub fn span(time: i64, decimals: usize) -> String {
    let seconds = time as f64 / 1e9;
    match time < 1_000_000_000 {
        true => format!("{:.1} ms", seconds * 1e3),
        false => format!("{seconds:.decimals$} s"),
    }
}
