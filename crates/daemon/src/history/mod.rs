//! What the daemon recorded of the last ten minutes, a row a second, and of the last day, a row a minute: so that a fresh
//! page has a past.
//!
//! Nothing wakes the daemon for a row. The first turn after the end of a second fills the rows that were missed: while the
//! daemon waited, no counter changed. A turn in between costs one comparison. `reading` has the numbers of a moment, which
//! `show::past` takes from the daemon; `ring` keeps them.

mod reading;
mod ring;

use base::{Duration, Instant};

pub(crate) use reading::{Classes, Reading};
use ring::Ring;

/// Rows of the two tracks: ten minutes of seconds, a day of minutes.
const SECONDS: usize = 600;
const MINUTES: usize = 1_440;

/// How the number of a series comes from readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The number at the end of a step.
    Gauge,
    /// The increase over a step.
    Rate,
    /// The least over a step.
    Least,
    /// A quantile, in percent, of what a histogram counted in a step.
    Quantile(Histogram, u8),
}

/// A histogram of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Histogram {
    RoundTrips,
    Lateness,
}

/// A recorded series.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// The field of `now/1` that it is of.
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// Rows of one length of step.
struct Track {
    step: Duration,
    /// The end of the step that is not recorded yet.
    due: Instant,
    /// The reading at the end of the last step.
    before: Reading,
    /// The least values since then.
    least: Vec<f64>,
    ring: Ring,
}

/// The recorded series.
pub(crate) struct History {
    series: Vec<Series>,
    tracks: [Track; 2],
}

/// A part of a series, for a row.
#[derive(Debug, PartialEq)]
pub(crate) struct Part {
    /// The end of its first step.
    pub(crate) first: Instant,
    pub(crate) values: Vec<Option<f64>>,
}

impl History {
    /// Records nothing.
    pub(crate) fn none() -> Self {
        Self::new(Vec::new(), &Reading::default(), Instant::FAR_FUTURE)
    }

    /// The first step ends at `due`, at most a second after `reading` was read.
    pub(crate) fn new(series: Vec<Series>, reading: &Reading, due: Instant) -> Self {
        let track = |step: u64, rows| Track {
            step: Duration::from_secs(step),
            due: due + Duration::from_secs(step - 1),
            before: reading.clone(),
            least: vec![f64::NAN; series.len()],
            ring: Ring::new(rows, series.len()),
        };
        Self {
            tracks: [track(1, SECONDS), track(60, MINUTES)],
            series,
        }
    }

    /// Whether a step has ended that is not recorded.
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.tracks[0].due
    }

    /// Records the steps that have ended by `now`. Nothing has changed since the end of the first of them but what
    /// `reading` has.
    pub(crate) fn record(&mut self, reading: &Reading, now: Instant) {
        for track in &mut self.tracks {
            track.record(&self.series, reading, now);
        }
    }

    pub(crate) fn series(&self) -> &[Series] {
        &self.series
    }

    /// At most `most` values of a series from row `from` on, of the track with steps of `step_s` seconds. `None` at the end
    /// of the rows, and if the series has no value at all.
    pub(crate) fn part(
        &self,
        step_s: u32,
        series: usize,
        from: usize,
        most: usize,
    ) -> Option<Part> {
        let step = Duration::from_secs(step_s.into());
        let track = self.tracks.iter().find(|track| track.step == step)?;
        let ring = &track.ring;
        if from >= ring.len() || ring.column(series, 0).all(f32::is_nan) {
            return None;
        }
        let values = ring.column(series, from).take(most);
        let back = step.as_nanos() * (ring.len() - from) as u64;
        Some(Part {
            first: Instant::from_nanos(track.due.as_nanos() - back),
            values: values.map(value).collect(),
        })
    }
}

/// A number as it is shown.
fn value(number: f32) -> Option<f64> {
    let number = f64::from(number);
    (!number.is_nan()).then(|| (number * 1e6).round() / 1e6)
}

impl Track {
    fn record(&mut self, all: &[Series], reading: &Reading, now: Instant) {
        for (least, number) in self.least.iter_mut().zip(&reading.numbers) {
            *least = least.min(*number);
        }
        // More would only replace each other.
        let missed =
            (now.as_nanos() - self.due.as_nanos().min(now.as_nanos())) / self.step.as_nanos();
        let skipped = missed.saturating_sub(self.ring.rows() as u64);
        self.due += Duration::from_nanos(skipped * self.step.as_nanos());
        while self.due <= now {
            let row = self.ring.push();
            for (place, series) in all.iter().enumerate() {
                let (then, number) = (self.before.numbers[place], reading.numbers[place]);
                let number = match series.kind {
                    Kind::Gauge => number,
                    Kind::Rate => number - then,
                    Kind::Least => self.least[place],
                    Kind::Quantile(histogram, percent) => {
                        reading.quantile(&self.before, histogram, percent)
                    }
                };
                row[place] = number as f32;
            }
            self.before.clone_from(reading);
            self.least.fill(f64::NAN);
            self.due += self.step;
        }
    }
}

#[cfg(test)]
mod tests;
