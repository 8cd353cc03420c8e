//! The files of `headend lab use`: any bytes are read, and each figure is a number.

use lab::host::{FILES, Reading, rows};

/// Gives the two halves of the data to every reader, as two readings of each file.
///
/// # Panics
/// If a figure is negative or no number.
pub fn target(data: &[u8]) {
    let (before, after) = data.split_at(data.len() / 2);
    let [before, after] = [before, after].map(|bytes| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        Reading {
            files: FILES.iter().map(|name| (*name, text.clone())).collect(),
            queues: Some(text),
            ..Reading::default()
        }
    });
    for row in rows(&before, &after, 1.0) {
        let value = row.value.unwrap_or(0.0);
        assert!(value.is_finite() && value >= 0.0, "{row:?}");
    }
}
