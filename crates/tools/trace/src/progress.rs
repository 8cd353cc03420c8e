//! Progress on standard error: a bar if that is a terminal, and a line at intervals for a live capture.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Shows progress.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    /// Bytes of files that have been read.
    done: u64,
    /// For a live capture: the time of the next line, and the interval.
    next: Option<Instant>,
    interval: Duration,
}

impl Progress {
    /// For `size` bytes in all, or a live capture.
    pub(super) fn new(wanted: bool, size: u64, live: bool, interval: f64) -> Progress {
        let interval = Duration::from_secs_f64(interval);
        let bar = (wanted && !live && size > 0).then(|| {
            let bar = ProgressBar::new(size);
            let template =
                "{bar:30} {percent}% {bytes}/{total_bytes} {bytes_per_sec} {eta} left {wide_msg}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar
        });
        Progress {
            bar,
            done: 0,
            next: (wanted && live).then(|| Instant::now() + interval),
            interval,
        }
    }

    /// Notes the bytes read of the present file.
    pub(super) fn at(&self, consumed: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(self.done + consumed);
        }
    }

    /// The present file, of that size, has been read.
    pub(super) fn file_done(&mut self, size: u64) {
        self.done += size;
        self.at(0);
    }

    /// Prints the counts if the interval has passed.
    pub(super) fn counted(&mut self, packets: u64, connections: u64) {
        if let Some(next) = self.next
            && Instant::now() >= next
        {
            eprintln!("headend: {packets} packets, {connections} connections so far");
            self.next = Some(Instant::now() + self.interval);
        }
    }

    /// Removes the bar.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
