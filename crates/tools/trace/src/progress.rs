//! How far the reading has come, on standard error: a bar where that is a terminal, a line now and then for a pipe.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Tells how far the reading has come.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    /// Octets of files that are done.
    done: u64,
    /// For a pipe: when to say something next, and how often.
    next: Option<Instant>,
    interval: Duration,
}

impl Progress {
    /// For `size` octets in all, or a pipe.
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

    /// So many octets of the present file have been read.
    pub(super) fn at(&self, consumed: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(self.done + consumed);
        }
    }

    /// The present file, of that size, is done.
    pub(super) fn file_done(&mut self, size: u64) {
        self.done += size;
        self.at(0);
    }

    /// Says what has been counted, now and then.
    pub(super) fn counted(&mut self, packets: u64, connections: u64) {
        if let Some(next) = self.next
            && Instant::now() >= next
        {
            eprintln!("headend: {packets} packets, {connections} connections so far");
            self.next = Some(Instant::now() + self.interval);
        }
    }

    /// All is read: the bar goes away.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
