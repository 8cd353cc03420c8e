//! Graphs of one direction with lines over time: round trips, throughput, bytes in flight, sizes of segments.

use super::plot::{Plot, Pool, Studio};
use super::stroke::{Stroke, What};

/// Microseconds from one time to another; 0 if negative.
fn elapsed(from: i64, to: i64) -> i64 {
    to.saturating_sub(from).max(0)
}

/// Bytes per second, for an axis. A duration of 0 counts as a millisecond.
fn rate(octets: u64, micros: i64) -> i32 {
    let micros = if micros == 0 { 1000 } else { micros };
    (octets as f64 / (micros as f64 / 1e6)) as i32
}

/// A line grows; `which` is its place among the graph's styles.
#[inline]
fn line(which: u16, time: i64, y: i32) -> Stroke {
    Stroke {
        bits: which,
        ..Stroke::one(What::Line, time, y as u32)
    }
}

/// Draws a round trip in microseconds at a time.
pub(super) fn round_trip<S: Studio>(plot: &mut Plot, pool: &mut Pool<S>, now: i64, micros: i64) {
    if micros > 1 {
        let milliseconds = i32::try_from(micros / 1000).unwrap_or(i32::MAX);
        plot.draw(pool, line(0, now, milliseconds));
    }
}

/// Draws the size of a segment; `mean` is that of all so far.
pub(super) fn size<S: Studio>(
    plot: &mut Plot,
    pool: &mut Pool<S>,
    now: i64,
    octets: u32,
    mean: u64,
) {
    plot.draw(pool, line(0, now, octets as i32));
    plot.draw(pool, line(1, now, mean as i32));
}

/// Throughput: at each packet, over some packets, and since the beginning.
#[derive(Debug)]
pub(super) struct Throughput {
    pub(super) plot: Plot,
    /// Start, packets and bytes of the present average.
    first: i64,
    packets: u64,
    octets: u64,
    last: i64,
}

/// A packet for the throughput.
pub(super) struct Passed {
    pub(super) now: i64,
    pub(super) octets: u32,
    /// Time and bytes since the connection's start.
    pub(super) began: i64,
    pub(super) total: u64,
}

impl Throughput {
    pub(super) fn new(plot: Plot, now: i64, octets: u32) -> Throughput {
        Throughput {
            plot,
            first: now,
            packets: 1,
            octets: u64::from(octets),
            last: now,
        }
    }

    /// Adds a packet. `interval` is the number of packets of an average; with `instant`, each packet is drawn.
    pub(super) fn pass<S: Studio>(
        &mut self,
        pool: &mut Pool<S>,
        passed: &Passed,
        interval: u64,
        instant: bool,
    ) {
        if passed.octets == 0 {
            return;
        }
        let now = passed.now;
        if self.packets + 1 >= interval {
            let some = rate(self.octets, elapsed(self.first, now));
            self.plot.draw(pool, line(0, now, some));
            let mean = rate(passed.total, elapsed(passed.began, now));
            self.plot.draw(pool, line(1, now, mean));
            (self.first, self.packets, self.octets) = (now, 0, 0);
        }
        if instant {
            let rate = rate(u64::from(passed.octets), elapsed(self.last, now));
            self.plot
                .draw(pool, Stroke::one(What::Dot, now, rate as u32));
        }
        self.last = now;
        self.packets += 1;
        self.octets += u64::from(passed.octets);
    }
}

/// Bytes in flight, as tcptrace computes them: one too many, with averages truncated to whole numbers.
#[derive(Debug)]
pub(super) struct Outstanding {
    pub(super) plot: Plot,
    total: i64,
    count: u64,
    /// Byte-seconds, each part cut to a whole number.
    area: u64,
    last: Option<(i64, i64)>,
}

impl Outstanding {
    pub(super) fn new(plot: Plot) -> Outstanding {
        Outstanding {
            plot,
            total: 0,
            count: 0,
            area: 0,
            last: None,
        }
    }

    /// Adds a sample of bytes in flight. `window` is the other end's window, if that is drawn, and `began` is the start
    /// of the connection.
    pub(super) fn sample<S: Studio>(
        &mut self,
        pool: &mut Pool<S>,
        now: i64,
        octets: i64,
        window: Option<u32>,
        began: i64,
    ) {
        self.total = self.total.wrapping_add(octets);
        self.count += 1;
        if let Some((time, last)) = self.last {
            let lasted = elapsed(time, now) as f64 / 1e6;
            let whole = elapsed(began, now) as f64 / 1e6;
            self.area = self.area.saturating_add((last as f64 * lasted) as u64);
            let weighted = if whole > 0.0 {
                (self.area as f64 / whole) as u64
            } else {
                0
            };
            self.plot.draw(pool, line(3, time, weighted as i32));
        }
        self.last = Some((now, octets));
        self.plot.draw(pool, line(0, now, octets as i32));
        if let Some(window) = window {
            self.plot.draw(pool, line(1, now, window as i32));
        }
        let mean = self.total as u64 / self.count;
        self.plot.draw(pool, line(2, now, mean as i32));
    }
}
