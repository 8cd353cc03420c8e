//! The clocks' line, its steps, and the delays.

use super::{Hull, Sample, Samples, Span, Times, Way};

/// Clocks drift less than this against each other. Crystals keep 100 ppm, NTP corrects by 500 ppm at most.
const DRIFT_MAX: f64 = 600e-6;

/// A step smaller than this is not looked for.
const STEP_MIN: f64 = 1e6;

/// Both clocks' time stamps may be rounded to a microsecond, so that bounds that contradict each other by less show no
/// step.
const ROUNDING: f64 = 2e3;

/// Gaps that differ by less than this, in nanoseconds, count as equally wide.
const FLAT: f64 = 1.0;

/// Spans on each side of a possible step that are compared.
const AROUND: usize = 10;

/// Delays that the report lists, in thousandths.
const RANKS: [usize; 5] = [100, 500, 900, 990, 999];

/// The clocks during a part of the captures without a step.
#[derive(Debug, Clone, Copy)]
pub struct Piece {
    /// From and to when, by A's clock.
    pub time: (i64, i64),
    /// B's clock less A's, at the start of the piece: at least and at most, in nanoseconds. `None` if packets of that
    /// direction are missing.
    pub offset: (Option<f64>, Option<f64>),
    /// How much faster B's clock runs, as a fraction (1e-6 is 1 ppm).
    pub drift: f64,
    /// The drift is at least and at most this.
    pub drift_bounds: (f64, f64),
    /// Numbers of the first sample, and the one after the last.
    orders: (u64, u64),
    /// Distance of the middle, or of the only bound, from the first difference of all.
    line: f64,
}

impl Piece {
    /// Half of the width between the bounds: the largest error of the middle. `None` with one direction only.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        Some((self.offset.1? - self.offset.0?) / 2.0)
    }
}

/// A step of a clock.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// It was after the first and before the second, by A's clock.
    pub time: (i64, i64),
    /// By how much B's clock less A's grew, in nanoseconds, and the largest error of that.
    pub by: f64,
    /// See `by`.
    pub error: f64,
}

/// Delays of one direction, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Delay {
    /// Packets.
    pub count: u64,
    /// The least one-way delay is at least and at most this. With packets in both directions the second is the sum of
    /// both directions' least delays. `None`: without packets in the other direction it has no upper bound.
    pub least: (f64, Option<f64>),
    /// Above the least: 10 %, 50 %, 90 %, 99 % and 99.9 % of packets take no longer.
    pub ranks: [f64; 5],
    /// Above the least: the longest.
    pub longest: f64,
    /// Mean difference between consecutive samples.
    pub variation: f64,
}

/// The result.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    /// The pieces in order; more than one if a clock was stepped.
    pub pieces: Vec<Piece>,
    /// The steps between them.
    pub steps: Vec<Step>,
    /// Delays by direction.
    pub delays: [Delay; 2],
    /// Samples within spans of a step, which count for no delay.
    pub left_out: u64,
    /// Sum of both directions' least delays; `None` with one direction only.
    pub round_trip: Option<f64>,
    /// The captures have the same clock.
    pub is_one: bool,
    /// For a picture: time at A, delay above the least, for each direction.
    pub curves: [Vec<(i64, f64)>; 2],
}

impl Clock {
    /// A time of B's clock as one of A's, by the middle of the bounds.
    #[must_use]
    pub fn to_a(&self, time: i64) -> i64 {
        let at_a = |piece: &Piece| {
            let offset = match piece.offset {
                (Some(least), Some(most)) => (least + most) / 2.0,
                (least, most) => least.or(most).unwrap_or(0.0),
            };
            let near = time.saturating_sub(offset as i64);
            let ran = piece.drift * near.saturating_sub(piece.time.0) as f64;
            near.saturating_sub(ran as i64)
        };
        let within = |piece: &&Piece| at_a(piece) <= piece.time.1;
        let piece = self.pieces.iter().find(within).or(self.pieces.last());
        piece.map_or(time, at_a)
    }
}

/// Hulls of several spans.
#[derive(Clone, Default)]
struct Run {
    low: [Hull; 2],
    origin: i64,
}

impl Run {
    fn new(span: &Span) -> Run {
        Run {
            low: span.low.clone(),
            origin: span.start,
        }
    }

    fn join(&mut self, span: &Span) {
        for way in 0..2 {
            self.low[way].join(&span.low[way]);
        }
    }

    /// The vertical gap between both directions' points for a line of that slope; `None` with one direction only.
    fn gap(&self, rate: f64) -> Option<f64> {
        Some(self.low[0].least(rate, self.origin)? + self.low[1].least(-rate, self.origin)?)
    }

    /// The slope with the widest gap, and the gap. The gap is a concave function of the slope.
    fn widest(&self) -> Option<(f64, f64)> {
        let (mut low, mut high) = (-DRIFT_MAX, DRIFT_MAX);
        for _ in 0..60 {
            let third = (high - low) / 3.0;
            if self.gap(low + third)? < self.gap(high - third)? {
                low += third;
            } else {
                high -= third;
            }
        }
        let rate = (low + high) / 2.0;
        let (widest, level) = (self.gap(rate)?, self.gap(0.0)?);
        // Few packets allow many slopes: clocks that run alike are then the simplest.
        Some(match level + FLAT >= widest {
            true => (0.0, level),
            false => (rate, widest),
        })
    }

    /// Slopes for which a line passes between the points, around `rate`.
    fn bounds(&self, rate: f64) -> (f64, f64) {
        let edge = |end: f64| {
            if self.gap(end).is_none_or(|gap| gap >= 0.0) {
                return end;
            }
            let (mut good, mut bad) = (rate, end);
            for _ in 0..50 {
                let middle = (good + bad) / 2.0;
                if self.gap(middle).is_some_and(|gap| gap >= 0.0) {
                    good = middle;
                } else {
                    bad = middle;
                }
            }
            good
        };
        (edge(-DRIFT_MAX), edge(DRIFT_MAX))
    }

    /// With points of one direction: the slope of the hull's edge in the middle of the time (Moon et al.).
    fn slope(&self) -> f64 {
        let way = usize::from(self.low[0].points().is_empty());
        let points = self.low[way].points();
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return 0.0;
        };
        let middle = first.0 / 2 + last.0 / 2;
        let edge = points.windows(2).find(|edge| edge[1].0 >= middle);
        let slope = edge.map_or(0.0, |edge| {
            edge[1].1.saturating_sub(edge[0].1) as f64
                / edge[1].0.saturating_sub(edge[0].0).max(1) as f64
        });
        let slope = if way == 0 { slope } else { -slope };
        slope.clamp(-DRIFT_MAX, DRIFT_MAX)
    }
}

impl Times {
    /// Fits the clocks. `offset` is B's clock less A's if that is known: 0 for captures with one clock.
    #[must_use]
    pub fn fit(&self, offset: Option<i64>) -> Clock {
        let mut clock = Clock {
            is_one: offset == Some(0),
            ..Clock::default()
        };
        let Some(base) = self.base else {
            return clock;
        };
        let runs = match offset {
            Some(_) => vec![(0, self.spans.len())],
            None => self.runs(),
        };
        for &(from, to) in &runs {
            let piece = self.piece(&self.spans[from..to], base, offset);
            if let Some(before) = clock.pieces.last() {
                clock.steps.push(step(before, &piece));
            }
            clock.pieces.push(piece);
        }
        // A run's end may be before the next one's start: what is between is within a step. Packets that were on their way
        // during the step are in the spans next to it, so that these count for no delay either.
        for (piece, &(from, to)) in clock.pieces.iter_mut().zip(&runs) {
            let first = |at: usize| self.spans.get(at).map_or(self.order, |span| span.first);
            let is_long = to - from > 2;
            let start = from + usize::from(is_long && from > 0);
            let end = to - usize::from(is_long && to < self.spans.len());
            piece.orders = (first(start), first(end));
        }
        for way in Way::ALL {
            let (delay, curve) = self.delay(&clock.pieces, way, offset.is_some());
            clock.delays[way as usize] = delay;
            clock.curves[way as usize] = curve;
        }
        let counted: u64 = clock.delays.iter().map(|delay| delay.count).sum();
        clock.left_out = self.order.saturating_sub(counted);
        let gaps = clock.pieces.iter().filter_map(Piece::error);
        clock.round_trip = match clock.is_one {
            true => None,
            false => gaps.map(|error| 2.0 * error).reduce(f64::min),
        };
        clock
    }

    /// Ranges of spans without a step.
    fn runs(&self) -> Vec<(usize, usize)> {
        let mut runs = Vec::new();
        let (mut start, mut run) = (0, Run::default());
        for (at, span) in self.spans.iter().enumerate() {
            if start == at {
                run = Run::new(span);
                if run.widest().is_some_and(|(_, gap)| gap < -ROUNDING) {
                    start = at + 1;
                }
                continue;
            }
            let mut longer = run.clone();
            longer.join(span);
            let stepped = longer.widest().is_some_and(|(_, gap)| gap < -ROUNDING);
            if !stepped && !self.both_shift(start, at) {
                run = longer;
                continue;
            }
            runs.push((start, at));
            // The span with the step has points of before and after it.
            start = at + 1;
        }
        if start < self.spans.len() {
            runs.push((start, self.spans.len()));
        }
        runs
    }

    /// Whether both directions' least values change by the same at that span, which a path does not do: its delays
    /// change one by one, or both grow.
    fn both_shift(&self, start: usize, at: usize) -> bool {
        if at < start + 3 || at + 3 >= self.spans.len() {
            return false;
        }
        let before = &self.spans[start.max(at.saturating_sub(AROUND))..at];
        let after = &self.spans[at + 1..self.spans.len().min(at + 1 + AROUND)];
        let least = |spans: &[Span], way: usize| {
            let values = spans.iter().filter_map(|span| span.low[way].least(0.0, 0));
            values.reduce(f64::min)
        };
        let change = |way| Some(least(after, way)? - least(before, way)?);
        let (Some(there), Some(back)) = (change(0), change(1)) else {
            return false;
        };
        let by = (there - back) / 2.0;
        let span = self.width as f64 * (2 * AROUND) as f64;
        by.abs() > STEP_MIN + span * 100e-6 && (there + back).abs() < 0.2 * by.abs()
    }

    fn piece(&self, spans: &[Span], base: i64, known: Option<i64>) -> Piece {
        let mut run = Run::new(&spans[0]);
        for span in &spans[1..] {
            run.join(span);
        }
        let start = spans.iter().map(|span| span.start).min().unwrap_or(0);
        let end = spans.iter().map(|span| span.end).max().unwrap_or(0);
        run.origin = start;
        let (rate, drift_bounds) = match (known, run.widest()) {
            (Some(_), _) => (0.0, (0.0, 0.0)),
            (None, Some((rate, _))) => (rate, run.bounds(rate)),
            (None, None) => (run.slope(), (-DRIFT_MAX, DRIFT_MAX)),
        };
        let high = run.low[0].least(rate, start);
        let low = run.low[1].least(-rate, start).map(|least| -least);
        let (line, offset) = match (known, low, high) {
            (Some(offset), ..) => {
                let line = offset.saturating_sub(base) as f64;
                (line, (Some(offset as f64), Some(offset as f64)))
            }
            (None, Some(low), Some(high)) => (
                (low + high) / 2.0,
                (Some(low + base as f64), Some(high + base as f64)),
            ),
            (None, low, high) => (
                low.or(high).unwrap_or(0.0),
                (
                    low.map(|low| low + base as f64),
                    high.map(|high| high + base as f64),
                ),
            ),
        };
        Piece {
            time: (start, end),
            offset,
            drift: rate,
            drift_bounds,
            orders: (0, u64::MAX),
            line,
        }
    }

    /// The delays of one direction, and their curve. `is_known` says that the clocks' offset is.
    fn delay(&self, pieces: &[Piece], way: Way, is_known: bool) -> (Delay, Vec<(i64, f64)>) {
        let samples = &self.samples[way as usize];
        let sign = match way {
            Way::AToB => 1.0,
            Way::BToA => -1.0,
        };
        let mut delay = Delay::default();
        let (mut values, mut curve) = (Vec::new(), Vec::new());
        let mut least: Option<f64> = None;
        let mut bound: Option<f64> = None;
        for piece in pieces {
            let raw = |time: i64, value: i64| {
                value as f64 - sign * piece.drift * time.wrapping_sub(piece.time.0) as f64
            };
            let spans = self
                .spans
                .iter()
                .filter(|span| (piece.orders.0..piece.orders.1).contains(&span.first));
            let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
            for span in spans {
                let rate = sign * piece.drift;
                low = span.low[way as usize]
                    .least(rate, piece.time.0)
                    .map_or(low, |v| low.min(v));
                high = span.high[way as usize]
                    .least(-rate, piece.time.0)
                    .map_or(high, |v| high.max(-v));
            }
            if low > high {
                continue;
            }
            delay.longest = delay.longest.max(high - low);
            // With a known offset the delay itself is known; otherwise, only what is above the least of the piece.
            let own = match is_known {
                true => low - sign * piece.line,
                false => 0.0,
            };
            least = Some(least.map_or(own, |least: f64| least.min(own)));
            bound = match (is_known, piece.error()) {
                (true, _) => Some(bound.map_or(own, |bound: f64| bound.min(own))),
                (false, Some(error)) => {
                    Some(bound.map_or(2.0 * error, |bound| bound.min(2.0 * error)))
                }
                (false, None) => bound,
            };
            let within =
                |sample: &&Sample| (piece.orders.0..piece.orders.1).contains(&sample.order);
            for sample in samples.kept.iter().filter(within) {
                let value = (raw(sample.time, sample.value) - low).max(0.0);
                values.push(value);
                curve.push((sample.time, value));
            }
        }
        delay.count = counted(samples, values.len());
        delay.variation = variation(&values);
        values.sort_by(f64::total_cmp);
        if let Some(last) = values.len().checked_sub(1) {
            delay.ranks = RANKS.map(|rank| values[last * rank / 1000]);
        }
        delay.least = (least.unwrap_or(0.0), bound);
        (delay, curve)
    }
}

/// Packets that so many kept samples stand for.
fn counted(samples: &Samples, kept: usize) -> u64 {
    match kept == samples.kept.len() {
        true => samples.count,
        false => (kept as u64)
            .saturating_mul(samples.stride)
            .min(samples.count),
    }
}

fn variation(values: &[f64]) -> f64 {
    let steps = values.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    match values.len() {
        0 | 1 => 0.0,
        count => steps.sum::<f64>() / (count - 1) as f64,
    }
}

/// The step between two pieces.
fn step(before: &Piece, after: &Piece) -> Step {
    let ran = before.drift * after.time.0.wrapping_sub(before.time.0) as f64;
    let error = before.error().unwrap_or(0.0) + after.error().unwrap_or(0.0);
    Step {
        time: (before.time.1, after.time.0),
        by: after.line - before.line - ran,
        error,
    }
}
