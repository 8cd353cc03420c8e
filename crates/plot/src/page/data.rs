//! What a page's script draws, as text that is also safe in a page: numbers in base64, names quoted.

use crate::chart::{Chart, Kind};
use crate::picture::extent;
use crate::samples::{Column, Samples, corners_of, halve, narrow};
use crate::svg::LOOKS;
use crate::viewer::quoted;
use base64::Engine as _;
use std::fmt::Write as _;
use std::sync::Arc;

/// Octets of columns in a page, at most; as base64 they take a third more.
const OCTETS_MAX: usize = 3_300_000;

/// Steps of x in a column of average width.
const STEPS: f64 = 1024.0;

/// Columns of steps, at most.
const STEPS_MAX: usize = 1 << 16;

/// The samples of one series as they go into the page.
struct Set<'a> {
    samples: &'a Arc<Samples>,
    columns: Vec<Column>,
    each: u64,
    /// Whether a chart shows its distribution, and whether one shows its columns.
    uses: (bool, bool),
    /// Whether a chart draws it as steps; then a column is a single sample.
    stepped: bool,
}

impl Set<'_> {
    /// About half as many columns; returns whether there are fewer.
    fn halve(&mut self) -> bool {
        let before = self.columns.len();
        if self.stepped {
            // Each may become four samples.
            self.columns = steps(&self.samples.columns, before / 8);
        } else if before > 1 {
            self.columns = halve(&self.columns);
            self.each *= 2;
        }
        self.columns.len() < before
    }

    /// About how many octets the columns take.
    fn octets(&self) -> usize {
        let each = if self.each > 1 { 11 } else { 6 };
        self.columns.len() * each
    }

    /// About how many octets of the page the lost ones and the distribution take.
    fn beside(&self) -> usize {
        let lost = self.samples.lost.len() * usize::from(self.uses.1);
        let shares = self.samples.shares.len() * usize::from(self.uses.0);
        (lost * 6 + shares * 8) / 3 * 4 + 200
    }
}

/// Everything about `charts` as a JavaScript object of about `room` octets at most; series that share samples share
/// them here too.
pub(super) fn object(charts: &[&Chart], room: usize) -> String {
    let mut sets: Vec<Set<'_>> = Vec::new();
    let mut about = String::new();
    for chart in charts {
        let cdf = chart.kind == Kind::Cdf;
        let _ = write!(
            about,
            "{{kind:\"{}\",clock:{},x:{},y:{},ends:{},bands:[{}],series:[",
            match chart.kind {
                Kind::Line | Kind::OverTime => "line",
                Kind::Steps => "steps",
                Kind::Scatter => "scatter",
                Kind::Cdf => "cdf",
            },
            matches!(chart.kind, Kind::OverTime | Kind::Steps | Kind::Scatter),
            axis(&chart.x),
            axis(&chart.y),
            ends(chart),
            bands(chart),
        );
        for (i, series) in chart.series.iter().enumerate() {
            let known = |set: &Set<'_>| Arc::ptr_eq(set.samples, &series.samples);
            let place = sets.iter().position(known).unwrap_or_else(|| {
                sets.push(Set {
                    samples: &series.samples,
                    columns: Vec::new(),
                    each: series.samples.per_column,
                    uses: (false, false),
                    stepped: false,
                });
                sets.len() - 1
            });
            let set = &mut sets[place];
            if chart.kind == Kind::Steps && !std::mem::replace(&mut set.stepped, true) {
                (set.columns, set.each, set.uses.1) =
                    (steps(&series.samples.columns, STEPS_MAX), 1, true);
            }
            if cdf {
                set.uses.0 = true;
            } else if !std::mem::replace(&mut set.uses.1, true) {
                set.columns = series.samples.columns.clone();
            }
            let (name, look) = (quoted(&series.name), chart.colour(i) % LOOKS);
            let _ = write!(about, "{{name:{name},look:{look},data:{place}}},");
        }
        about.push_str("]},");
    }
    let beside: usize = sets.iter().map(Set::beside).sum();
    fit(&mut sets, room.saturating_sub(beside) / 4 * 3);
    let mut text = format!("{{charts:[{about}],\ndata:[");
    for set in &sets {
        write_set(&mut text, set);
    }
    text.push_str("]}");
    text
}

/// Halves the largest set until all fit.
fn fit(sets: &mut [Set<'_>], room: usize) {
    while sets.iter().map(Set::octets).sum::<usize>() > room.min(OCTETS_MAX) {
        let Some(largest) = sets.iter_mut().max_by_key(|set| set.octets()) else {
            return;
        };
        if !largest.halve() {
            return;
        }
    }
}

/// The samples that steps are drawn by, of about `limit` columns at most; each is a column of its own.
pub(super) fn steps(columns: &[Column], limit: usize) -> Vec<Column> {
    let narrow = narrow(columns, limit);
    let corners = narrow.iter().flat_map(corners_of);
    corners.map(|(x, y)| Column::one(x, y)).collect()
}

/// The ends of x on an axis that is not logarithmic, and on one that is; without any, 0 and 1.
fn ends(chart: &Chart) -> String {
    let on = |log: bool| {
        let mut chart = chart.clone();
        chart.x.log = log;
        let span = extent(&chart).0;
        let ends = if span[0] <= span[1] {
            span
        } else {
            [0.0, 1.0].map(|end| end + f64::from(u8::from(log)))
        };
        format!("[{:?},{:?}]", ends[0], ends[1])
    };
    format!("[{},{}]", on(false), on(true))
}

/// The bands, each as its ends, its name and whether it is shaded; a distribution has none.
fn bands(chart: &Chart) -> String {
    let mut text = String::new();
    if chart.kind != Kind::Cdf {
        let is_finite = |band: &&crate::Band| band.x.0.is_finite() && band.x.1.is_finite();
        for band in chart.bands.iter().filter(is_finite) {
            let (low, high) = band.x;
            let name = quoted(&band.name);
            let _ = write!(text, "[{low:?},{high:?},{name},{}],", band.is_shaded);
        }
    }
    text
}

fn axis(axis: &crate::Axis) -> String {
    let (label, unit) = (quoted(&axis.label), quoted(&axis.unit));
    let max = match axis.max {
        Some(max) if max.is_finite() => format!(",max:{max:?}"),
        _ => String::new(),
    };
    format!("{{label:{label},unit:{unit},log:{}{max}}}", axis.log)
}

/// One set: x as steps from the one before, then the columns' values; then the lost.
fn write_set(text: &mut String, set: &Set<'_>) {
    let samples = set.samples;
    let mut octets = Vec::with_capacity(set.octets());
    let lost: &[_] = if set.uses.1 { &samples.lost } else { &[] };
    let starts = set.columns.first().map(|c| c.x.0);
    let low = lost.first().map(|l| l.x.0).into_iter().chain(starts);
    let low = low.reduce(f64::min).unwrap_or(0.0);
    let end = set.columns.iter().map(|c| c.x.1).reduce(f64::max);
    let high = lost.last().map(|l| l.x.1).into_iter().chain(end);
    let high = high.reduce(f64::max).unwrap_or(0.0);
    let places = (set.columns.len() + lost.len()) as f64;
    // Half of each first, since the difference of the largest numbers is not one.
    let step = (high / 2.0 - low / 2.0) / (places * STEPS).max(1e6) * 2.0;
    let step = if step > 0.0 { step } else { 1.0 };
    let place = |x: f64| ((x / 2.0 - low / 2.0) / step * 2.0).round().max(0.0) as u64;
    let mut before = 0;
    let mut after = |octets: &mut Vec<u8>, x: f64| {
        let at = place(x).max(before);
        integer(octets, at - before);
        before = at;
    };
    for column in &set.columns {
        after(&mut octets, column.x.0);
    }
    let float = |value: f64| (value as f32).to_le_bytes();
    octets.extend(set.columns.iter().flat_map(|c| float(c.min)));
    if set.each > 1 {
        octets.extend(set.columns.iter().flat_map(|c| float(c.max)));
    }
    write_lost(&mut octets, lost, place);
    let _ = write!(
        text,
        "{{columns:{},each:{},x:{low:?},step:{step:?},end:{:?},lost:{},octets:\"{}\"",
        set.columns.len(),
        set.each,
        end.unwrap_or(low),
        lost.len(),
        base64(&octets),
    );
    if set.uses.0 {
        let mut octets = Vec::with_capacity(samples.shares.len() * 8 + 3);
        integer(&mut octets, samples.shares.len() as u64);
        octets.extend(samples.shares.iter().flat_map(|s| float(s.0)));
        octets.extend(samples.shares.iter().flat_map(|s| float(s.1)));
        let _ = write!(text, ",cdf:\"{}\"", base64(&octets));
    }
    text.push_str("},\n");
}

/// The lost: each span's distance from the end of the one before, its width, and how many.
fn write_lost(octets: &mut Vec<u8>, lost: &[crate::samples::Lost], place: impl Fn(f64) -> u64) {
    let mut before = 0;
    for span in lost {
        let (from, to) = (place(span.x.0).max(before), place(span.x.1));
        let to = to.max(from);
        integer(octets, from - before);
        integer(octets, to - from);
        integer(octets, span.count);
        before = to;
    }
}

/// An integer as seven bits an octet, the least first, all but the last with the high bit.
fn integer(octets: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        octets.push(value as u8 | 128);
        value >>= 7;
    }
    octets.push(value as u8);
}

/// RFC 4648, section 4.
pub(super) fn base64(octets: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(octets)
}
